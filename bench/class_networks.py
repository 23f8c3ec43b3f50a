#!/usr/bin/env python3
"""Writes networks that rules are counted on for rules/classes.json, as model.json files: published networks that the zoo does not have.

    bench/class_networks.py DIR

mobile: MobileNetV1 (Howard et al. 2017) and MobileNetV2 (Sandler et al. 2018) at half the width, and MnasNet (Tan et al. 2019) at half the width, all for images
of 128 pixels. residual: ResNet-20 (He et al. 2016) and WRN-16-4 (Zagoruyko and Komodakis 2016) for CIFAR-10. transformer: the encoders of 2 and of 4 layers of 256
(Turc et al. 2019).
"""
import json
import math
import pathlib
import sys


class Network:
    def __init__(self, name, shape):
        self.name, self.shape, self.nodes = name, shape, []

    def node(self, name, op, *inputs, **attrs):
        self.nodes.append({"name": name, "op": op, "inputs": list(inputs), "attrs": attrs})
        return name

    def conv(self, name, x, out, kernel, stride=1, groups=1):
        return self.node(name, "conv2d", x, out_channels=out, kernel=[kernel, kernel], stride=[stride, stride], padding=[kernel // 2, kernel // 2], groups=groups, bias=False)

    def norm(self, name, x, activation=None):
        x = self.node(name, "batch_norm", x)
        return self.node(f"{name}.{activation}", activation, x) if activation else x

    def head(self, x, classes):
        x = self.node("flatten", "flatten", self.node("avgpool", "global_avg_pool", x))
        return self.node("classifier", "linear", x, out_features=classes)

    def write(self, folder, output):
        model = {"loopegg": 1, "name": self.name, "inputs": [{"name": "input", "shape": self.shape, "dtype": "float32"}], "nodes": self.nodes, "outputs": [output]}
        (folder / f"{self.name}.json").write_text(json.dumps(model, indent=1) + "\n")


def separable(n, at, x, width, out, stride):
    """A depthwise convolution and a pointwise one, as in MobileNetV1."""
    x = n.norm(f"{at}.bn1", n.conv(f"{at}.depthwise", x, width, 3, stride, groups=width), "relu")
    return n.norm(f"{at}.bn2", n.conv(f"{at}.pointwise", x, out, 1), "relu")


def inverted(n, at, x, width, out, stride, expand, kernel, activation):
    inner, y = width * expand, x
    if expand > 1:
        y = n.norm(f"{at}.bn0", n.conv(f"{at}.expand", y, inner, 1), activation)
    y = n.norm(f"{at}.bn1", n.conv(f"{at}.depthwise", y, inner, kernel, stride, groups=inner), activation)
    y = n.norm(f"{at}.bn2", n.conv(f"{at}.project", y, out, 1))
    return n.node(f"{at}.add", "add", x, y) if stride == 1 and width == out else y


def mobilenet_v1(folder):
    n = Network("mobilenet_v1-half-128", [1, 3, 128, 128])
    x, width = n.norm("stem.bn", n.conv("stem", "input", 16, 3, 2), "relu"), 16
    for i, (out, stride) in enumerate([(32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2)] + [(256, 1)] * 5 + [(512, 2), (512, 1)]):
        x, width = separable(n, f"block{i}", x, width, out, stride), out
    n.write(folder, n.head(x, 1000))


def inverted_residuals(folder, name, first, stages, last, activation):
    """stages: (expansion, channels, blocks, stride, kernel)."""
    n = Network(name, [1, 3, 128, 128])
    x, width, i = n.norm("stem.bn", n.conv("stem", "input", first, 3, 2), activation), first, 0
    for expand, out, blocks, stride, kernel in stages:
        for b in range(blocks):
            x, width, i = inverted(n, f"block{i}", x, width, out, stride if b == 0 else 1, expand, kernel, activation), out, i + 1
    n.write(folder, n.head(n.norm("last.bn", n.conv("last", x, last, 1), activation), 1000))


def resnet20(folder):
    n = Network("resnet20-cifar10", [1, 3, 32, 32])
    x, width = n.norm("bn1", n.conv("conv1", "input", 16, 3), "relu"), 16
    for stage, out in enumerate((16, 32, 64)):
        for b in range(3):
            at, stride = f"layer{stage}.{b}", 2 if stage > 0 and b == 0 else 1
            y = n.norm(f"{at}.bn1", n.conv(f"{at}.conv1", x, out, 3, stride), "relu")
            y = n.norm(f"{at}.bn2", n.conv(f"{at}.conv2", y, out, 3))
            shortcut = x if width == out else n.norm(f"{at}.bn3", n.conv(f"{at}.shortcut", x, out, 1, stride))
            x, width = n.node(f"{at}.relu", "relu", n.node(f"{at}.add", "add", y, shortcut)), out
    n.write(folder, n.head(x, 10))


def wide_resnet(folder):
    n = Network("wrn16-4-cifar10", [1, 3, 32, 32])
    x, width = n.conv("conv1", "input", 16, 3), 16
    for stage, out in enumerate((64, 128, 256)):
        for b in range(2):
            at, stride = f"layer{stage}.{b}", 2 if stage > 0 and b == 0 else 1
            before = n.norm(f"{at}.bn1", x, "relu")
            y = n.norm(f"{at}.bn2", n.conv(f"{at}.conv1", before, out, 3, stride), "relu")
            y = n.conv(f"{at}.conv2", y, out, 3)
            x, width = n.node(f"{at}.add", "add", y, x if width == out else n.conv(f"{at}.shortcut", before, out, 1, stride)), out
    n.write(folder, n.head(n.norm("bn", x, "relu"), 10))


def bert(folder, layers, width):
    heads, tokens = width // 64, 128
    n = Network(f"bert-{layers}x{width}", [1, tokens, width])

    def per_head(name, x, order):
        x = n.node(f"{name}.heads", "reshape", n.node(name, "linear", x, out_features=width), shape=[0, 0, heads, width // heads])
        return n.node(f"{name}.order", "transpose", x, order=order)

    x = "input"
    for i in range(layers):
        at = f"layer{i}"
        scores = n.node(f"{at}.scores", "matmul", per_head(f"{at}.query", x, [0, 2, 1, 3]), per_head(f"{at}.key", x, [0, 2, 3, 1]))
        scores = n.node(f"{at}.softmax", "softmax", n.node(f"{at}.scale", "scale", scores, value=1 / math.sqrt(width // heads)))
        y = n.node(f"{at}.context", "matmul", scores, per_head(f"{at}.value", x, [0, 2, 1, 3]))
        y = n.node(f"{at}.concat", "reshape", n.node(f"{at}.merge", "transpose", y, order=[0, 2, 1, 3]), shape=[0, 0, width])
        y = n.node(f"{at}.attended", "linear", y, out_features=width)
        x = n.node(f"{at}.norm1", "layer_norm", n.node(f"{at}.add1", "add", y, x), eps=1e-12)
        y = n.node(f"{at}.gelu", "gelu", n.node(f"{at}.wide", "linear", x, out_features=4 * width))
        x = n.node(f"{at}.norm2", "layer_norm", n.node(f"{at}.add2", "add", n.node(f"{at}.narrow", "linear", y, out_features=width), x), eps=1e-12)
    n.write(folder, x)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    mobilenet_v1(folder)
    inverted_residuals(folder, "mobilenet_v2-half-128", 16, [(1, 8, 1, 1, 3), (6, 16, 2, 2, 3), (6, 16, 3, 2, 3), (6, 32, 4, 2, 3), (6, 48, 3, 1, 3), (6, 80, 3, 2, 3), (6, 160, 1, 1, 3)], 1280, "relu6")
    inverted_residuals(folder, "mnasnet-half-128", 16, [(1, 8, 1, 1, 3), (3, 16, 3, 2, 3), (3, 24, 3, 2, 5), (6, 40, 3, 2, 5), (6, 48, 2, 1, 3), (6, 96, 4, 2, 5), (6, 160, 1, 1, 3)], 1280, "relu")
    resnet20(folder)
    wide_resnet(folder)
    bert(folder, 2, 256)
    bert(folder, 4, 256)


if __name__ == "__main__":
    sys.exit(main())
