"""Base networks as graphs in the form of model.json, and plans applied to them. The networks that are trained for labels are drawn from these.

This is a second, independent reading of plan.json for the rules that labels use. `loopegg apply` is the first.
A graph is {"name", "inputs", "nodes", "outputs"}; a node has one output, which bears its name.

    python3 networks.py FOLDER        writes the base networks as model.json files
"""
import copy
import fnmatch
import json
import os
import sys

# ---- base networks -----------------------------------------------------------------------------------------------------------


class Builder:
    def __init__(self, name):
        self.graph = {"loopegg": 1, "name": name, "inputs": [{"name": "input", "shape": [1, 3, 32, 32], "dtype": "float32"}], "nodes": []}

    def node(self, name, op, inputs, **attrs):
        self.graph["nodes"].append({"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})})
        return name

    def conv(self, name, x, out, kernel=3, stride=1, groups=1):
        more = {k: v for k, v in (("stride", [stride] * 2), ("groups", groups)) if v not in (1, [1, 1])}
        return self.node(name, "conv2d", [x], out_channels=out, kernel=[kernel] * 2, padding=[kernel // 2] * 2, **more, bias=False)

    def norm(self, name, x):
        return self.node(name, "batch_norm", [x])

    def finish(self, x, head):
        x = self.node("flatten", "flatten", [self.node("avgpool", "global_avg_pool", [x])])
        self.graph["outputs"] = [self.node(head, "linear", [x], out_features=10)]
        return self.graph


def resnet(name="resnet34-cifar10", blocks=(3, 4, 6, 3), width=64):
    b = Builder(name)
    x = b.node("relu", "relu", [b.norm("bn1", b.conv("conv1", "input", width))])
    channels = width
    for stage, count in enumerate(blocks):
        for i in range(count):
            at, out, stride = f"layer{stage + 1}.{i}", width << stage, 2 if stage > 0 and i == 0 else 1
            y = b.node(at + ".relu", "relu", [b.norm(at + ".bn1", b.conv(at + ".conv1", x, out, stride=stride))])
            y = b.norm(at + ".bn2", b.conv(at + ".conv2", y, out))
            if stride != 1 or channels != out:
                x = b.norm(at + ".downsample.1", b.conv(at + ".downsample.0", x, out, 1, stride))
            x = b.node(at + ".relu_1", "relu", [b.node(at + ".add", "add", [y, x])])
            channels = out
    return b.finish(x, "fc")


def bottlenecks(name, blocks, width, groups=1, stem=1, widening=2):
    """Residual branches of three convolutions: 1x1, 3x3 in groups, and 1x1 to `widening` times as many channels."""
    b = Builder(name)
    x = b.node("relu", "relu", [b.norm("bn1", b.conv("conv1", "input", 64, stem))])
    channels = 64
    for stage, count in enumerate(blocks):
        for i in range(count):
            at, hidden, stride = f"layer{stage + 1}.{i}", width << stage, 2 if stage > 0 and i == 0 else 1
            y = b.node(at + ".relu", "relu", [b.norm(at + ".bn1", b.conv(at + ".conv1", x, hidden, 1))])
            y = b.node(at + ".relu_1", "relu", [b.norm(at + ".bn2", b.conv(at + ".conv2", y, hidden, 3, stride, groups))])
            y = b.norm(at + ".bn3", b.conv(at + ".conv3", y, widening * hidden, 1))
            if stride != 1 or channels != widening * hidden:
                x = b.norm(at + ".downsample.1", b.conv(at + ".downsample.0", x, widening * hidden, 1, stride))
            x = b.node(at + ".relu_2", "relu", [b.node(at + ".add", "add", [y, x])])
            channels = widening * hidden
    return b.finish(x, "fc")


def resnext29(name="resnext29_2x64d", groups=2):
    return bottlenecks(name, (3, 3, 3), groups * 64, groups)


def resnet50(name="resnet50-cifar10"):
    return bottlenecks(name, (3, 4, 6, 3), 64, stem=3, widening=4)


def densenet(name="densenet64-cifar10", growth=24, blocks=(8, 10, 12)):
    b = Builder(name)
    x, channels = b.conv("features.conv0", "input", 2 * growth), 2 * growth
    for block, layers in enumerate(blocks, 1):
        for layer in range(1, layers + 1):
            at = f"features.denseblock{block}.denselayer{layer}"
            y = b.conv(at + ".conv1", b.node(at + ".relu1", "relu", [b.norm(at + ".norm1", x)]), 4 * growth, 1)
            y = b.conv(at + ".conv2", b.node(at + ".relu2", "relu", [b.norm(at + ".norm2", y)]), growth)
            x, channels = b.node(at + ".cat", "concat", [x, y]), channels + growth
        if block < len(blocks):
            at, channels = f"features.transition{block}", channels // 2 // 8 * 8
            x = b.conv(at + ".conv", b.node(at + ".relu", "relu", [b.norm(at + ".norm", x)]), channels, 1)
            x = b.node(at + ".pool", "avg_pool", [x], kernel=[2, 2], stride=[2, 2])
    return b.finish(b.node("relu", "relu", [b.norm("features.norm5", x)]), "classifier")


def mobilenet(name="mobilenet_v2-cifar10"):
    b = Builder(name)

    def unit(at, x, out, kernel, stride=1, groups=1):
        return b.node(at + ".2", "relu6", [b.norm(at + ".1", b.conv(at + ".0", x, out, kernel, stride, groups))])
    x, channels, block = unit("features.0", "input", 32, 3), 32, 1
    # CIFAR-10's usual strides: the first two reductions of the ImageNet network are left out.
    for expand, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            at, s, y, n = f"features.{block}", stride if i == 0 else 1, x, 0
            if expand != 1:
                y, n = unit(f"{at}.conv.{n}", y, channels * expand, 1), n + 1
            y, n = unit(f"{at}.conv.{n}", y, channels * expand, 3, s, channels * expand), n + 1
            y = b.norm(f"{at}.conv.{n + 1}", b.conv(f"{at}.conv.{n}", y, out, 1))
            x = b.node(at + ".add", "add", [x, y]) if s == 1 and channels == out else y
            channels, block = out, block + 1
    return b.finish(unit(f"features.{block}", x, 1280, 1), "classifier.1")


def vgg(name="vgg16-cifar10", stages=((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))):
    b, x, n = Builder(name), "input", 0
    for stage in stages:
        if n:
            x = b.node(f"features.{n}", "max_pool", [x], kernel=[2, 2], stride=[2, 2])
            n += 1
        for out in stage:
            x = b.node(f"features.{n + 2}", "relu", [b.norm(f"features.{n + 1}", b.conv(f"features.{n}", x, out))])
            n += 3
    return b.finish(x, "classifier")


def wide_resnet(name="wide-resnet22-4-cifar10", blocks=(3, 3, 3), width=64):
    """Norm and relu come before each convolution, and nothing follows an addition: no other base network is built so."""
    b = Builder(name)
    x, channels = b.conv("conv1", "input", 16), 16
    for stage, count in enumerate(blocks):
        for i in range(count):
            at, out, stride = f"layer{stage + 1}.{i}", width << stage, 2 if stage > 0 and i == 0 else 1
            y = b.node(at + ".relu1", "relu", [b.norm(at + ".bn1", x)])
            if channels != out:
                x = b.conv(at + ".shortcut", y, out, 1, stride)
            y = b.conv(at + ".conv1", y, out, stride=stride)
            y = b.conv(at + ".conv2", b.node(at + ".relu2", "relu", [b.norm(at + ".bn2", y)]), out)
            x, channels = b.node(at + ".add", "add", [y, x]), out
    return b.finish(b.node("relu", "relu", [b.norm("bn", x)]), "fc")


def regnet(name="regnet-cifar10", depths=(2, 4, 8), widths=(48, 112, 240), group_width=8):
    """The blocks of RegNetX (Radosavovic et al. 2020): three convolutions of one width, the 3x3 one in groups of 8 channels."""
    b = Builder(name)
    x, channels = b.node("relu", "relu", [b.norm("bn1", b.conv("conv1", "input", 32))]), 32
    for stage, (count, out) in enumerate(zip(depths, widths)):
        for i in range(count):
            at, stride = f"layer{stage + 1}.{i}", 2 if stage > 0 and i == 0 else 1
            y = b.node(at + ".relu", "relu", [b.norm(at + ".bn1", b.conv(at + ".conv1", x, out, 1))])
            y = b.node(at + ".relu_1", "relu", [b.norm(at + ".bn2", b.conv(at + ".conv2", y, out, 3, stride, out // group_width))])
            y = b.norm(at + ".bn3", b.conv(at + ".conv3", y, out, 1))
            if stride != 1 or channels != out:
                x = b.norm(at + ".downsample.1", b.conv(at + ".downsample.0", x, out, 1, stride))
            x, channels = b.node(at + ".relu_2", "relu", [b.node(at + ".add", "add", [y, x])]), out
    return b.finish(x, "fc")


# The guard was fitted to variants of these.
LABELLED = (resnet(), resnext29(), densenet(), mobilenet(), vgg(), wide_resnet(),
            wide_resnet("wide-resnet16-8-cifar10", (2, 2, 2), 128), resnet50())
# And not to variants of these.
UNSEEN = (resnet("resnet18-cifar10", (2, 2, 2, 2)), vgg("vgg11-cifar10", ((64,), (128,), (256, 256), (512, 512), (512, 512))), regnet())
BASES = {g["name"]: g for g in LABELLED + UNSEEN}

# ---- channels ----------------------------------------------------------------------------------------------------------------


class Channels:
    """Which channels are one and the same all through the network: every value is a list of streams, one after another."""
    def __init__(self, graph):
        self.parent, self.width, self.of, self.added = {}, {}, {"input": ["input"]}, set()
        self.parent["input"], self.width["input"] = "input", 3
        for n in graph["nodes"]:
            ins, op, a = [self.of[i] for i in n["inputs"]], n["op"], n.get("attrs", {})
            if op in ("conv2d", "linear"):
                out = a.get("out_channels", a.get("out_features"))
                depthwise = op == "conv2d" and a.get("groups", 1) > 1 and a["groups"] == out == self.total(ins[0])
                if depthwise:
                    self.of[n["name"]] = ins[0]
                else:
                    self.parent[n["name"]], self.width[n["name"]] = n["name"], out
                    self.of[n["name"]] = [n["name"]]
            elif op == "add":
                for x, y in zip(*ins):
                    self.parent[self.find(y)] = self.find(x)
                    self.added.add(self.find(x))
                self.of[n["name"]] = ins[0]
            elif op == "concat":
                self.of[n["name"]] = sum(ins, [])
            else:
                self.of[n["name"]] = ins[0]

    def find(self, s):
        while self.parent[s] != s:
            s = self.parent[s]
        return s

    def total(self, streams):
        return sum(self.width[self.find(s)] for s in streams)

    def stream(self, node):
        return self.find(self.of[node][0])

    def residual(self, stream):
        return self.find(stream) in {self.find(s) for s in self.added}


# ---- plans -------------------------------------------------------------------------------------------------------------------

def consumers(graph, name):
    return [n for n in graph["nodes"] if name in n["inputs"]]


def drop_branch(graph, site):
    """Removes the operand of the join that the site leads to, and all nodes that feed nothing else. The site may be any one of the branch."""
    value = site
    while True:
        after = consumers(graph, value)
        assert len(after) == 1, f"{site} is not in a branch"
        if after[0]["op"] in ("add", "concat"):
            join = after[0]
            break
        value = after[0]["name"]
    join["inputs"].remove(value)
    if len(join["inputs"]) == 1:
        graph["nodes"].remove(join)
        for n in graph["nodes"]:
            n["inputs"] = [join["inputs"][0] if i == join["name"] else i for i in n["inputs"]]
    needed = set(graph["outputs"])
    for n in reversed(graph["nodes"]):
        if n["name"] in needed:
            needed.update(n["inputs"])
    graph["nodes"] = [n for n in graph["nodes"] if n["name"] in needed]


def narrow(graph, stream, width):
    """Every writer of a stream of channels writes `width` of them."""
    c = Channels(graph)
    before = c.width[c.find(stream)]
    assert width <= before, (stream, width, before)
    for n in graph["nodes"]:
        if n["op"] == "conv2d" and c.stream(n["name"]) == c.find(stream):
            a = n["attrs"]
            if a.get("groups", 1) == a["out_channels"]:
                a["groups"] = width
            a["out_channels"] = width


def apply_plan(base, plan):
    """The base network under a plan. Nodes may have "restrict", for restrictions that ordinary attributes cannot express."""
    graph = copy.deepcopy(base)
    for step in plan["steps"]:
        for application in step["apply"]:
            rule, values, restore = application["rule"], application.get("with", {}), application.get("restore")
            sites = [n["name"] for n in graph["nodes"] if n["op"] == "conv2d" and fnmatch.fnmatchcase(n["name"], step["site"])]
            assert sites, step["site"]
            if rule == "drop-branch":
                for s in sites:
                    drop_branch(graph, s)
            elif rule == "narrow-stream":
                c = Channels(graph)
                streams = {c.stream(s) for s in sites}
                if len(sites) > 1:      # a stream that is named by one site may have lost its last branch before
                    streams = {s for s in streams if c.residual(s)}
                assert len(streams) == 1, (step["site"], streams)
                narrow(graph, streams.pop(), values["?w"])
            elif rule == "narrow-width" or (rule == "bottleneck-output" and restore == "propagate"):
                for s in sites:
                    narrow(graph, Channels(graph).stream(s), values["?w"])
            else:
                for s in sites:
                    restrict(next(n for n in graph["nodes"] if n["name"] == s), rule, values, restore, application.get("part"), Channels(graph))
    return graph


def restrict(node, rule, values, restore, part, channels):
    a = node["attrs"]
    out, ins, groups = a["out_channels"], channels.total(channels.of[node["inputs"][0]]), a.get("groups", 1)
    if rule == "group-axes" and values["?a"] == "co" and part is None:
        g = ins // groups if values["?g"] == "(extent ci)" else values["?g"]
        assert out // groups % g == 0 and ins // groups % g == 0
        a["groups"] = groups * g
    else:
        node.setdefault("restrict", []).append((rule, values.get("?a"), values.get("?k", values.get("?g")), restore, part))


# ---- what is left of one convolution -----------------------------------------------------------------------------------------

class Pieces:
    """A convolution under "restrict", as ordinary convolutions: (inputs from, inputs to, outputs, groups) for each piece of its outputs."""
    def __init__(self, node, ins):
        a = node["attrs"]
        self.out, self.groups, self.kernel = a["out_channels"], a.get("groups", 1), a["kernel"][0]
        self.stride, self.padding = a.get("stride", [1])[0], a["padding"][0]
        self.rows, self.every_second, self.repeat, self.pointwise = False, False, 1, 0
        self.pieces = [(0, ins, self.out, self.groups)]
        for rule, axis, k, restore, part in node.get("restrict", ()):
            assert self.groups == 1
            if rule == "cut-domain":
                self.pieces = [(0, ins, self.out // 2, 1), (0, ins, self.out - self.out // 2, 1)]
            elif rule == "group-axes" and part is not None:
                lo, hi, n, _ = self.pieces[part]
                self.pieces[part] = (lo, hi, n, k)
            elif rule == "group-axes" and axis.startswith("(quo oh"):
                assert k == 2 and self.stride == 1
                self.rows, self.pieces = True, [(0, ins // 2, self.out, 1), (ins // 2, ins, self.out, 1)]
            elif axis == "ci":
                self.pieces = [(0, ins // k, self.out, 1)]
            elif axis == "co":
                self.pieces = [(0, ins, self.out // k, 1)]
                self.repeat, self.pointwise = (k, 0) if restore == "repeat" else (1, self.out // k)
            elif axis in ("(rem oh 2)", "(rem ow 2)"):
                assert self.stride == 1 and k == 2
                self.every_second = True
            else:
                raise ValueError(f"{node['name']}: {rule} {axis}")

    def counts(self, side):
        """(parameters, multiply-accumulates) where the output has side * side pixels."""
        params = sum((hi - lo) // g * n * self.kernel ** 2 for lo, hi, n, g in self.pieces)
        macs = params * side ** 2 // (4 if self.every_second else 1) // (2 if self.rows else 1)
        return params + self.pointwise * self.out * bool(self.pointwise), macs + self.pointwise * self.out * side ** 2


def sides(graph):
    """By name: how many pixels a value has along one side."""
    side = {"input": 32}
    for n in graph["nodes"]:
        stride = n.get("attrs", {}).get("stride", [1])[0] if n["op"] in ("conv2d", "max_pool", "avg_pool") else 1
        side[n["name"]] = side[n["inputs"][0]] // stride
    return side


def sizes(graph):
    """(parameters, multiply-accumulates), as `loopegg show` counts them."""
    c, side, params, macs = Channels(graph), sides(graph), 0, 0
    for n in graph["nodes"]:
        a, ins = n.get("attrs", {}), c.total(c.of[n["inputs"][0]])
        if n["op"] == "conv2d":
            p, m = Pieces(n, ins).counts(side[n["name"]])
            params, macs = params + p, macs + m
        elif n["op"] == "batch_norm":
            params += 2 * ins
        elif n["op"] == "linear":
            params, macs = params + (ins + 1) * a["out_features"], macs + ins * a["out_features"]
    return params, macs


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, graph in BASES.items():
        with open(os.path.join(sys.argv[1], name + ".json"), "w") as f:
            json.dump(graph, f)
        print(name, *sizes(graph))
