"""Networks as files: model.json, the shapes of its values, its parameters and its multiply-accumulates."""
import math

from faults import NotCovered, Refused
from nests import extents
from terms import number, term

FUNCTIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "maximum": 2, "minimum": 2, "prelu": 2,
             **dict.fromkeys("relu relu6 silu gelu gelu_tanh sigmoid tanh hard_sigmoid hard_swish leaky_relu elu clip erf exp sqrt abs neg reciprocal floor "
                             "ceil softsign".split(), 1)}
ONE, NONE, NEEDED = [1, 1], [0, 0], object()
WINDOW = {"kernel": NEEDED, "stride": "kernel", "padding": NONE, "padding_end": "padding"}
# The attributes of each operator, with their defaults; a word is the attribute whose value is the default.
ATTRIBUTES = {
    "conv2d": {"out_channels": NEEDED, "kernel": NEEDED, "stride": ONE, "padding": NONE, "dilation": ONE, "groups": 1, "bias": True},
    "linear": {"out_features": NEEDED, "bias": True}, "matmul": {}, "batch_norm": {"eps": 1e-5}, "layer_norm": {"eps": 1e-5},
    "softmax": {"axis": -1}, "scale": {"value": NEEDED}, "concat": {"axis": 1}, "max_pool": WINDOW, "avg_pool": {**WINDOW, "count_padding": True},
    "global_avg_pool": {}, "flatten": {"axis": 1}, "reshape": {"shape": NEEDED}, "transpose": {"order": NEEDED}, "identity": {},
    "slice": {"starts": NEEDED, "ends": NEEDED, "steps": NEEDED}, "pad": {"before": NEEDED, "after": NEEDED, "value": 0.0}, "expand": {"shape": NEEDED},
    **dict.fromkeys(("reduce_mean", "reduce_sum", "reduce_max"), {"axes": NEEDED, "keepdims": True}), "parameter": {"shape": NEEDED},
    "leaky_relu": {"alpha": 0.01}, "elu": {"alpha": 1}, "clip": {"low": 0, "high": 1},
    "max_pool1d": {"kernel": NEEDED, "stride": "kernel", "padding": [0]}, "max_pool3d": {"kernel": NEEDED, "stride": "kernel", "padding": [0] * 3}}
SITES = ("conv2d", "linear", "matmul")
LISTS = {"conv2d": 2, "max_pool": 2, "avg_pool": 2, "max_pool1d": 1, "max_pool3d": 3}     # how many numbers one number stands for


class Node:
    """A node of a network; its attributes are all there."""

    def __init__(self, name, op, inputs, attrs):
        self.name, self.op, self.inputs, self.attrs = name, op, inputs, attrs

    def __eq__(self, other):
        return (self.name, self.op, self.inputs, self.attrs) == (other.name, other.op, other.inputs, other.attrs)

    def changed(self, inputs, **attrs):
        return Node(self.name, self.op, inputs, {**self.attrs, **attrs})


class Network:
    """Nodes by name, in an order in which each comes after what it reads."""

    def __init__(self, name, inputs, nodes, outputs):
        self.name, self.inputs, self.nodes, self.outputs = name, inputs, nodes, outputs
        self.shapes = dict(inputs)

    def infer(self):
        """Works out all shapes."""
        for node in self.nodes.values():
            shape = inferred(node, [self.shape_of(i, node) for i in node.inputs])
            if not all(isinstance(d, int) and d > 0 for d in shape):
                raise Refused(f"'{node.name}' has the shape {shape}")
            self.shapes[node.name] = shape
        for output in self.outputs:
            self.shape_of(output, None)
        return self

    def shape_of(self, value, reader):
        if value not in self.shapes:
            raise Refused(f"'{reader.name if reader else 'an output'}' reads '{value}', which is not there, or comes later")
        return self.shapes[value]

    def statement(self, node):
        """The statement of a site."""
        out, into, a = self.shapes[node.name], self.shapes[node.inputs[0]], node.attrs
        if node.op == "conv2d":
            g = a["groups"]
            sizes = [into[0], g, out[1] // g, into[1] // g, *into[2:], *a["kernel"], *a["stride"], *a["padding"], *a["dilation"]]
        elif node.op == "linear":
            sizes = [math.prod(out[:-1]), out[-1], into[-1]]
        else:
            sizes = [math.prod(out[:-2]), *out[-2:], into[-1]]
        plain = term(node.op, *map(number, sizes))
        return term("epilogue", term("bias"), plain) if a.get("bias") else plain

    def macs(self, node):
        return math.prod(extents(self.statement(node)).values()) if node.op in SITES else 0

    def parameters(self, node):
        """Values that are trained: statistics are not."""
        if node.op == "parameter":
            return math.prod(node.attrs["shape"])
        into = self.shapes[node.inputs[0]]
        if node.op in ("batch_norm", "layer_norm"):
            return 2 * into[1 if node.op == "batch_norm" else -1]
        if node.op not in ("conv2d", "linear"):
            return 0
        out = self.shapes[node.name][1 if node.op == "conv2d" else -1]
        each = math.prod(node.attrs["kernel"]) * into[1] // node.attrs["groups"] if node.op == "conv2d" else into[-1]
        return out * (each + bool(node.attrs["bias"]))

    def claims(self):
        return {"macs": sum(map(self.macs, self.nodes.values())), "parameters": sum(map(self.parameters, self.nodes.values()))}


def windows(node, into, dilation, end):
    a = node.attrs
    return [(size + p + e - (d * (k - 1) + 1)) // s + 1
            for size, k, s, p, e, d in zip(into[2:], a["kernel"], a["stride"], a["padding"], end, dilation)]


def elementwise(node, shapes):
    a, b = ([1] * (max(map(len, shapes)) - len(s)) + s for s in shapes)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        raise Refused(f"'{node.name}' puts together {a} and {b}")
    return [y if x == 1 else x for x, y in zip(a, b)]


def axis_in(axis, shape):
    if not -len(shape) <= axis < len(shape):
        raise Refused(f"axis {axis} of {shape}")
    return axis % len(shape)


def concatenated(node, shapes):
    axis = axis_in(node.attrs["axis"], shapes[0])
    rest = {(*s[:axis], *s[axis + 1:]) for s in shapes}
    if len(rest) != 1 or len({len(s) for s in shapes}) != 1:
        raise Refused(f"'{node.name}' joins values of other shapes")
    return [*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1:]]


def reshaped(node, into):
    """Where the channels of the input became fewer, the one extent that can follow does."""
    out = [into[i] if d == 0 else d for i, d in enumerate(node.attrs["shape"])]
    total, known = math.prod(into), math.prod(d for d in out if d != -1)
    open_ = [i for i, d in enumerate(out) if d == -1]
    if not open_ and known != total:
        open_ = [i for i, d in enumerate(out) if node.attrs["shape"][i] and d > 1 and total * d % known == 0 and total * d // known > 0]
        known //= out[open_[0]] if len(open_) == 1 else 1
    if len(open_) > 1 or known == 0 or total % known or (not open_ and known != total):
        raise NotCovered(f"'{node.name}' is not covered: which extent follows from {into} cannot be told")
    for i in open_:
        node.attrs["shape"] = [d if j != i or d in (0, -1) else total // known for j, d in enumerate(node.attrs["shape"])]
        out[i] = total // known
    return out


def inferred(node, shapes):
    """The shape of what a node writes."""
    into, a = shapes[0] if shapes else [], node.attrs
    if node.op == "conv2d":
        if len(into) != 4 or into[1] % a["groups"] or a["out_channels"] % a["groups"]:
            raise Refused(f"'{node.name}' cannot have {a['groups']} groups of {into}")
        return [into[0], a["out_channels"], *windows(node, into, a["dilation"], a["padding"])]
    if node.op == "linear":
        return [*into[:-1], a["out_features"]]
    if node.op == "matmul":
        if len(shapes[1]) != len(into) or into[:-2] != shapes[1][:-2] or into[-1] != shapes[1][-2]:
            raise Refused(f"'{node.name}' multiplies {into} by {shapes[1]}")
        return [*into[:-1], shapes[1][-1]]
    if node.op in ("max_pool", "avg_pool"):
        return [*into[:2], *windows(node, into, ONE, a["padding_end"])]
    if node.op in ("max_pool1d", "max_pool3d"):
        return [*into[:2], *windows(node, into, ONE + ONE, a["padding"])]
    if node.op == "concat":
        return concatenated(node, shapes)
    if node.op == "global_avg_pool":
        return [*into[:2], 1, 1]
    if node.op == "flatten":
        axis = axis_in(a["axis"], into)
        return [*into[:axis], math.prod(into[axis:])]
    if node.op == "reshape":
        return reshaped(node, into)
    if node.op == "transpose":
        return [into[d] for d in a["order"]]
    if node.op == "slice":
        return [(min(e, d) - b - 1) // s + 1 for d, b, e, s in zip(into, a["starts"], a["ends"], a["steps"])]
    if node.op == "pad":
        return [d + b + e for d, b, e in zip(into, a["before"], a["after"])]
    if node.op == "expand":
        more = len(a["shape"]) - len(into)
        return [d or into[i - more] for i, d in enumerate(a["shape"])]
    if node.op.startswith("reduce_"):
        return [1 if d in a["axes"] else size for d, size in enumerate(into) if d not in a["axes"] or a["keepdims"]]
    if node.op == "parameter":
        return list(a["shape"])
    return elementwise(node, shapes) if FUNCTIONS.get(node.op) == 2 else into


def read_node(j):
    name, op = j["name"], j["op"]
    if j.get("domain"):
        raise NotCovered(f"'{name}' is restricted: only whole nests are covered")
    if op not in ATTRIBUTES and op not in FUNCTIONS:
        raise NotCovered(f"'{name}' is a node '{op}', which is not covered")
    given, attrs = j.get("attrs", {}), {}
    known = ATTRIBUTES.get(op, {})
    for key, default in known.items():
        value = given.get(key, attrs.get(default, default) if isinstance(default, str) else default)
        if value is NEEDED or set(given) - set(known):
            raise Refused(f"the attributes of '{name}' are not those of {op}")
        attrs[key] = [value] * LISTS[op] if op in LISTS and isinstance(value, int) and (key in WINDOW or key == "dilation") else value
    return Node(name, op, list(j["inputs"]), attrs)


def read_network(j):
    """The network of a model.json, with its shapes."""
    nodes = [read_node(n) for n in j["nodes"]]
    inputs = [(i["name"], list(i["shape"])) for i in j["inputs"]]
    if len({*dict(inputs), *(n.name for n in nodes)}) != len(inputs) + len(nodes):
        raise Refused("two values of the network have one name")
    return Network(j["name"], inputs, {n.name: n for n in nodes}, list(j["outputs"])).infer()
