"""The nests of sites: the loops of a statement, and the same site with other numbers of channels."""
import functools
from terms import NotCovered, Term, require

# The sizes of each statement, and its loops in order.
SIZES = {"conv2d": "N G CO CI IH IW KH KW SH SW PH PW DH DW".split(), "linear": "N CO CI".split(), "matmul": "B M N K".split()}
LOOPS = {"conv2d": "n g co ci oh ow kh kw".split(), "linear": "n co ci".split(), "matmul": "b i j k".split()}

def plain(statement):
    """The statement inside its epilogues, layouts and orders."""
    return plain(statement.parts[-1]) if statement.op in ("epilogue", "layout", "order") else statement

def sizes_of(statement):
    """The operator of a statement inside its epilogues, and its sizes by name."""
    statement = plain(statement)
    if statement.op not in SIZES or len(statement.parts) != len(SIZES[statement.op]):
        raise NotCovered(f"'{statement}' is no statement of a site that is covered")
    sizes = dict(zip(SIZES[statement.op], [p.whole() for p in statement.parts]))
    require(all(v is not None and v >= (k not in ("PH", "PW")) for k, v in sizes.items()), f"'{statement}' has sizes that are none")
    return statement.op, sizes

@functools.cache
def extents(statement):
    """The extent of each loop, by its name, in order."""
    op, s = sizes_of(statement)
    if op != "conv2d":
        return dict(zip(LOOPS[op], s.values()))
    for side in "HW":
        s["O" + side] = (s["I" + side] + 2 * s["P" + side] - s["D" + side] * (s["K" + side] - 1) - 1) // s["S" + side] + 1
    return {a: s[a.upper()] for a in LOOPS[op]}

def whole_nest(statement):
    """The naive nest over the whole domain, with the loops over channels first."""
    size, loops = extents(statement), Term("done")
    for axis in [a for a in sorted(size, key=lambda a: a not in ("co", "ci"))[::-1] if size[a] > 1]:
        loops = Term("at", Term(f"{axis}:{size[axis]}"), loops)
    return Term("nest", statement, loops)

def statement_in(nest):
    """The statement of a whole nest."""
    if not nest.is_("nest", 2) or whole_nest(nest.parts[0]) is not nest:
        raise NotCovered("the nest of a site is not whole: steps over nests of single sites are not covered")
    return nest.parts[0]

def is_depthwise(statement):
    return extents(statement).get("g", 1) > 1 and extents(statement)["co"] == extents(statement)["ci"] == 1
def channels(statement):
    """How many channels a site reads and writes; (0, 0) for a product of two values, which has none of its own."""
    e = extents(statement)
    return (e["ci"] * e.get("g", 1), e["co"] * e.get("g", 1)) if "co" in e else (0, 0)
def resized(statement, size, value):
    names = SIZES.get(statement.op, ("E", "STATEMENT"))
    return Term(statement.op, *(Term(str(value)) if n == size else resized(p, size, value) if p.parts else p for n, p in zip(names, statement.parts)))

def with_outputs(nest, wanted):
    """The nest of the same site with so many output channels, or None."""
    statement, groups = statement_in(nest), extents(nest.parts[0]).get("g", 1)
    if not 1 <= wanted <= channels(statement)[1] or is_depthwise(statement) or wanted % groups:
        return None
    return whole_nest(resized(statement, "CO", wanted // groups))

def with_fewer_inputs(nest, missing):
    """The nest of the same site with so many input channels less, or None. A depthwise site writes what it reads."""
    statement = statement_in(nest)
    left, groups = channels(statement)[0] - missing, extents(statement).get("g", 1)
    if missing < 0 or left <= 0 or (left % groups and not is_depthwise(statement)):
        return None
    return whole_nest(resized(statement, "G", left) if is_depthwise(statement) else resized(statement, "CI", left // groups))
