"""Networks as files: model.json, the shapes of its values, its parameters and its multiply-accumulates."""
import collections
import math
from nests import extents
from terms import NotCovered, Term, require

NEEDED, ONE, NONE, SITES, SLIDING = object(), [1, 1], [0, 0], ("conv2d", "linear", "matmul"), ("conv2d", "max_pool", "avg_pool")
WINDOW = {"kernel": NEEDED, "stride": "kernel", "padding": NONE, "padding_end": "padding"}
# The attributes of each operator, with their defaults; a word is the attribute whose value is the default.
ATTRIBUTES = {"conv2d": {"out_channels": NEEDED, "kernel": NEEDED, "stride": ONE, "padding": NONE, "dilation": ONE, "groups": 1, "bias": True},
    "linear": {"out_features": NEEDED, "bias": True}, "batch_norm": {"eps": 1e-5}, "layer_norm": {"eps": 1e-5}, "softmax": {"axis": -1},
    "scale": {"value": NEEDED}, "concat": {"axis": 1}, "max_pool": WINDOW, "avg_pool": {**WINDOW, "count_padding": True}, "flatten": {"axis": 1},
    "reshape": {"shape": NEEDED}, "transpose": {"order": NEEDED}, "parameter": {"shape": NEEDED}, "pad": {"before": NEEDED, "after": NEEDED, "value": 0},
    "slice": {"starts": NEEDED, "ends": NEEDED, "steps": NEEDED}, "leaky_relu": {"alpha": 0.01}, "elu": {"alpha": 1}, "clip": {"low": 0, "high": 1},
    **dict.fromkeys(("quantize", "fake_quantize"), {"scale": 1, "zero": 0, "low": -128, "high": 127}),
    **dict.fromkeys(("reduce_mean", "reduce_sum", "reduce_max"), {"axes": NEEDED, "keepdims": True})}
OF_TWO = set("add sub mul div maximum minimum prelu".split())
PLAIN = set("matmul global_avg_pool identity relu relu6 silu gelu gelu_tanh sigmoid tanh hard_sigmoid hard_swish erf exp sqrt abs neg reciprocal "
            "floor ceil round softsign".split()) | OF_TWO

# The values that are trained, from the shape that a node reads (a parameter: writes) and its attributes.
PARAMETERS = {
    "conv2d": lambda i, a: a["out_channels"] * (i[1] // a["groups"] * math.prod(a["kernel"]) + bool(a["bias"])), "parameter": lambda i, a: math.prod(i),
    "linear": lambda i, a: a["out_features"] * (i[-1] + bool(a["bias"])), "batch_norm": lambda i, a: 2 * i[1], "layer_norm": lambda i, a: 2 * i[-1]}

class Node(collections.namedtuple("Node", "name op inputs attrs")):
    """A node of a network; its attributes are all there."""
    def changed(self, inputs, **attrs):
        return self._replace(inputs=inputs, attrs={**self.attrs, **attrs})
    @staticmethod
    def read(j):
        name, op, given, attrs = j["name"], j["op"], j.get("attrs", {}), {}
        if "domain" in j or (op not in ATTRIBUTES and op not in PLAIN):
            raise NotCovered(f"'{name}' is restricted, or its operator '{op}' is not covered")
        known = ATTRIBUTES.get(op, {})
        require(set(given) <= set(known), f"the attributes of '{name}' are not those of {op}")
        for key, default in known.items():
            value = given.get(key, attrs.get(default, default) if isinstance(default, str) else default)
            require(value is not NEEDED, f"'{name}' has no {key}")
            attrs[key] = [value] * 2 if op in SLIDING and isinstance(value, int) and (key in WINDOW or key == "dilation") else value
        return Node(name, op, list(j["inputs"]), attrs)

class Network:
    """Nodes by name, each after what it reads."""
    def __init__(self, name, inputs, nodes, outputs):
        self.name, self.inputs, self.nodes, self.outputs = name, inputs, nodes, outputs
        self.shapes = {value: tuple(shape) for value, shape in inputs}
    @staticmethod
    def read(j):
        """The network of a model.json, with its shapes."""
        inputs, nodes = [(i["name"], list(i["shape"])) for i in j["inputs"]], list(map(Node.read, j["nodes"]))
        require(len({*dict(inputs), *(n.name for n in nodes)}) == len(inputs) + len(nodes), "two values of the network have one name")
        network = Network(j["name"], inputs, {n.name: n for n in nodes}, list(j["outputs"])).infer()
        require(nodes == list(map(Node.read, j["nodes"])), "a value does not have the shape that it is given")
        return network
    def same(self, other):
        return (self.inputs, self.outputs, self.nodes) == (other.inputs, other.outputs, other.nodes)
    def infer(self):
        """Works out all shapes."""
        for node in self.nodes.values():
            for value in node.inputs:
                require(value in self.shapes, f"'{node.name}' reads '{value}', which is not there, or comes later")
            shape = self.shapes[node.name] = tuple(inferred(node, [self.shapes[i] for i in node.inputs]))
            require(all(isinstance(d, int) and d > 0 for d in shape), f"'{node.name}' has the shape {shape}")
        require(self.outputs and all(o in self.shapes for o in self.outputs), "an output is not there")
        return self
    def statement(self, node):
        """The statement of a site."""
        out, into, a = self.shapes[node.name], self.shapes[node.inputs[0]], node.attrs
        if node.op == "conv2d":
            g = a["groups"]
            require(into[1] % g == out[1] % g == 0, f"'{node.name}' has {g} groups of {into[1]} and {out[1]} channels")
            sizes = [into[0], g, out[1] // g, into[1] // g, *into[2:], *a["kernel"], *a["stride"], *a["padding"], *a["dilation"]]
        else:
            sizes = [math.prod(out[:-1]), out[-1], into[-1]] if node.op == "linear" else [math.prod(out[:-2]), *out[-2:], into[-1]]
        plain = Term(node.op, *(Term(str(size)) for size in sizes))
        return Term("epilogue", Term("bias"), plain) if a.get("bias") else plain
    def macs(self, node):
        return math.prod(extents(self.statement(node)).values()) if node.op in SITES else 0
    def parameters(self, node):
        """Values that are trained: statistics are not."""
        a, into = node.attrs, self.shapes[(*node.inputs, node.name)[0]]
        return PARAMETERS[node.op](into, a) if node.op in PARAMETERS else 0
    def figures(self):
        return {"macs": sum(map(self.macs, self.nodes.values())), "parameters": sum(map(self.parameters, self.nodes.values()))}

def windows(a, into):
    reaches, ends = [d * (k - 1) + 1 for d, k in zip(a.get("dilation", ONE), a["kernel"])], a.get("padding_end", a["padding"])
    return [(size + p + e - reach) // s + 1 for size, p, e, reach, s in zip(into[2:], a["padding"], ends, reaches, a["stride"])]

def reshaped(node, into):
    """Where the input became narrower, the one extent that can follow does."""
    shape, total = node.attrs["shape"], math.prod(into)
    out = [into[i] if d == 0 else d for i, d in enumerate(shape)]
    whole = math.prod(out)
    places = [i for i, d in enumerate(shape) if d == -1 or (d > 1 and -1 not in shape and total != whole and total * d % whole == 0)]
    if len(places) == 1:
        out[places[0]] = total * out[places[0]] // whole
        node.attrs["shape"] = [out[i] if i in places and d > 1 else d for i, d in enumerate(shape)]
    if math.prod(out) != total:
        raise NotCovered(f"which extent of '{node.name}' follows from {into} cannot be determined")
    return out

def joined(node, shapes):
    axis = node.attrs["axis"] % len(shapes[0])
    require(len({(*s[:axis], *s[axis + 1:]) for s in shapes}) == 1, f"'{node.name}' joins values of other shapes")
    return [*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1:]]

def stretched(node, shapes):
    a, b = ((1,) * (max(map(len, shapes)) - len(s)) + s for s in shapes)
    if not all(x == y or 1 in (x, y) for x, y in zip(a, b)):
        raise NotCovered(f"'{node.name}' puts together {a} and {b}: parameters that became narrower are not covered")
    return map(max, a, b)

# The shape of what a node writes, from the node, the shapes that it reads, its first one, and its attributes. All others write what they read.
SHAPES = {"conv2d": lambda n, s, i, a: [i[0], a["out_channels"], *windows(a, i)], "linear": lambda n, s, i, a: [*i[:-1], a["out_features"]],
    "matmul": lambda n, s, i, a: [*i[:-1], s[1][-1]], **dict.fromkeys(("max_pool", "avg_pool"), lambda n, s, i, a: [*i[:2], *windows(a, i)]),
    "concat": lambda n, s, i, a: joined(n, s), "global_avg_pool": lambda n, s, i, a: [*i[:2], 1, 1],
    "flatten": lambda n, s, i, a: [*i[:a["axis"] % len(i)], math.prod(i[a["axis"] % len(i):])], "reshape": lambda n, s, i, a: reshaped(n, i),
    "transpose": lambda n, s, i, a: [i[d] for d in a["order"]], "parameter": lambda n, s, i, a: a["shape"],
    "pad": lambda n, s, i, a: map(sum, zip(i, a["before"], a["after"])),
    "slice": lambda n, s, i, a: [(min(e, d) - b - 1) // by + 1 for d, b, e, by in zip(i, a["starts"], a["ends"], a["steps"])],
    **dict.fromkeys(("reduce_mean", "reduce_sum", "reduce_max"),
                    lambda n, s, i, a: [1 if d in a["axes"] else size for d, size in enumerate(i) if d not in a["axes"] or a["keepdims"]]),
    **dict.fromkeys(OF_TWO, lambda n, s, i, a: stretched(n, s))}

def inferred(node, shapes):
    into = shapes[0] if shapes else ()
    return SHAPES[node.op](node, shapes, into, node.attrs) if node.op in SHAPES else into
