"""How a site may run as the nests of a bilinear algorithm, and how far its float32 outputs may be from its sums (docs/reference/certificate-loops.md)."""
import math
from fractions import Fraction
from nests import extents, plain, sizes_of
from schedules import SUMMED
from terms import Term, require

UNIT, OF_WEIGHTS, OF_COEFFICIENTS, OF_SCALING, OPERANDS = 2.0 ** -24, 2, 3, 4, {"float32": 0, "bf16": 2.0 ** -8, "fp16": 2.0 ** -11, "tf32": 2.0 ** -11, "int8": 1 / 253}

class Algorithm:
    """A leaf that holds matrices for outputs, weights and inputs: correlation[...][...][...]. They compute a filter, exactly over the rationals."""
    def __init__(self, leaf):
        self.texts = leaf.op.removeprefix("correlation")[1:-1].split("][")
        self.outputs, self.weights, self.inputs = ([list(map(Fraction, row.split(","))) for row in text.split("|")] for text in self.texts)
        self.rows, self.products, self.taps = len(self.outputs), len(self.weights), len(self.weights[0])
        made = [[[sum(c * w[k] * b[i] for c, w, b in zip(row, self.weights, self.inputs, strict=True)) for i in range(self.rows + self.taps - 1)]
                 for k in range(self.taps)] for row in self.outputs]
        require(all(x == (i == o + k) for o, row in enumerate(made) for k, tap in enumerate(row) for i, x in enumerate(tap)), "its matrices compute no filter")
    def growth(self):
        enlarged = [[abs(w) * sum(map(abs, b)) for w in row] for row, b in zip(self.weights, self.inputs)]
        return float(max(sum(abs(c) * e[k] for c, e in zip(row, enlarged)) for row in self.outputs for k in range(self.taps)))

def numbers(op, *parts):
    return Term(op, *(p if isinstance(p, Term) else Term(str(p)) for p in parts))
def algorithms_of(value, own, runs, site):
    """The algorithms, for columns and for rows, by which three kernels compute a statement; their extents, in order."""
    down, along = map(Algorithm, value.parts[0].parts)
    s, e, tiles = sizes_of(own)[1], extents(own), lambda size, each: -(-size // each)
    require([s[k] for k in ("KH", "KW", "SH", "SW", "DH", "DW")] == [down.taps, along.taps, 1, 1, 1, 1], f"'{site}' is no filter of these taps")
    (n, g, height, width), matrices = (e[a] for a in ("n", "g", "oh", "ow")), [[Term(f"[{a.texts[i]}]") for a in (down, along)] for i in (2, 0)]
    rows, columns, count = tiles(height, down.rows), tiles(width, along.rows), down.products * along.products
    want = [numbers("bilinear_input", *matrices[0], down.rows, along.rows, n, g * s["CI"], s["IH"], s["IW"], s["PH"], s["PW"]),
            numbers("conv2d", n, count * g, s["CO"], s["CI"], 1, rows * columns, 1, 1, 1, 1, 0, 0, 1, 1),
            numbers("bilinear_output", *matrices[1], n, g * s["CO"], height, width)]
    require(runs == want, f"the kernels of '{site}' are not those of its algorithm")
    first = {"n": n, "c": g * s["CI"], "th": rows, "tw": columns, "u": down.products, "v": along.products, "kh": len(down.inputs[0]), "kw": len(along.inputs[0])}
    last = {"n": n, "c": g * s["CO"], "th": rows, "tw": columns, "i": down.rows, "j": along.rows, "kh": down.products, "kw": along.products}
    return (down, along), [first, extents(want[1]), last]

def summed(statement):
    return math.prod(extent for name, extent in extents(statement).items() if name in SUMMED)
def kinds(schedule):
    return sorted({p.op[7:] for p in schedule.parts[:1] if schedule.op == "bind" and p.op.startswith("tensor.")}.union(*map(kinds, schedule.parts)))
def additions(statement):
    return 0 if plain(statement) is statement else (statement.op == "epilogue" and statement.parts[0].op in ("bias", "add")) + additions(statement.parts[-1])

def error_bound(own, nests, algorithms):
    """The bound of a site's error, and what it is made of."""
    products, longest = nests[len(nests) // 2], lambda matrix: max(sum(x != 0 for x in row) for row in matrix)
    operands = (kinds(products) or ["float32"])[0]
    require(operands in OPERANDS, f"operands are rounded to {operands}, of which nothing is known")
    roundings = (OF_SCALING if operands == "int8" else summed(plain(products.parts[0]))) + additions(nests[-1].parts[0])
    if algorithms:
        transforms = [math.prod(longest(matrices) for matrices in both) for both in zip(*((a.inputs, a.outputs) for a in algorithms))]
        roundings += OF_WEIGHTS + sum(transforms) + len(transforms) * OF_COEFFICIENTS
    growth, lost, r = math.prod(a.growth() for a in algorithms), roundings * UNIT / (1 - roundings * UNIT), OPERANDS[operands] * (2 + OPERANDS[operands])
    return {"terms": summed(own), "roundings": roundings, "growth": growth, "operands": operands, "bound": growth * (r + lost + r * lost)}
