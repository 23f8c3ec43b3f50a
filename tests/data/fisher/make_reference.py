#!/usr/bin/env python3
"""Fisher Potential by layer of ResNet-34/CIFAR-10 and four variants, in plain PyTorch with autograd: the reference of test_autograd.cpp.

    python3 make_reference.py > reference.json        (needs torch and numpy; 64-bit floats; about a minute)
    python3 make_reference.py --rounding              how far PyTorch's own 32-bit floats are from its 64-bit ones, layer by layer

Weights and images are a fixed function of their names, which the C++ test computes as well, so no weights need to be kept.
"""
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

N = 16
KINDS = ("original", "group4", "depthwise", "repeat2", "s1")
TYPE = torch.float64


def uniform(name, count):
    """`count` values in [-1, 1), by splitmix64 started at an FNV-1a hash of the name."""
    h = 0xcbf29ce484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001b3 & (2 ** 64 - 1)
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    # 24 bits: exact in 32-bit floats, so both sides start from the same numbers
    return (z >> np.uint64(40)).astype(np.float64) / 2 ** 23 - 1


def weight(name, *shape):
    fan_in = int(np.prod(shape[1:]))
    values = np.float32(uniform(name + ".weight", int(np.prod(shape)))) * np.float32(np.sqrt(6.0 / fan_in))
    return torch.from_numpy(values.astype(np.float64).reshape(shape)).to(TYPE)


def conv(kind, name, x, w, stride, acts):
    """A 3x3 convolution of a block under one transform; w is the dense weight."""
    co, ci = w.shape[:2]
    if kind == "original":
        y = F.conv2d(x, w, stride=stride, padding=1)
    elif kind in ("group4", "depthwise"):
        g = 4 if kind == "group4" else ci
        blocks = [w[i * co // g:(i + 1) * co // g, i * ci // g:(i + 1) * ci // g] for i in range(g)]
        y = F.conv2d(x, torch.cat(blocks), stride=stride, padding=1, groups=g)
    elif kind == "repeat2":       # half of the output channels, repeated
        y = F.conv2d(x, w[:co // 2], stride=stride, padding=1)
        y = torch.cat([y, y], 1)
    elif kind == "s1":            # the upper rows read the first half of the inputs, the lower rows the second
        upper = F.conv2d(x[:, :ci // 2], w[:, :ci // 2], stride=stride, padding=1)
        lower = F.conv2d(x[:, ci // 2:], w[:, ci // 2:], stride=stride, padding=1)
        half = upper.shape[2] // 2
        y = torch.cat([upper[:, :, :half], lower[:, :, half:]], 2)
    acts.append((name, y))
    return y


def norm(x):
    return F.batch_norm(x, None, None, training=True, eps=1e-5)


def fisher(kind, images, labels):
    acts = []
    x = images.to(TYPE).clone().requires_grad_(True)
    y = F.conv2d(x, weight("conv1", 64, 3, 3, 3), padding=1)
    acts.append(("conv1", y))
    x = F.relu(norm(y))
    inputs = 64
    for stage, (width, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for i in range(depth):
            name, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            y = F.relu(norm(conv(kind, name + ".conv1", x, weight(name + ".conv1", width, inputs, 3, 3), stride, acts)))
            y = norm(conv(kind, name + ".conv2", y, weight(name + ".conv2", width, width, 3, 3), 1, acts))
            if stride != 1:
                s = F.conv2d(x, weight(name + ".downsample.0", width, inputs, 1, 1), stride=stride)
                acts.append((name + ".downsample.0", s))
                x = norm(s)
            x = F.relu(y + x)
            inputs = width
    logits = F.linear(x.mean((2, 3)), weight("fc", 10, 512))
    loss = F.cross_entropy(logits, labels)
    grads = torch.autograd.grad(loss, [a for _, a in acts])
    layers = {n: float(((a.detach() * g).double().sum((2, 3)) ** 2).sum() / (2 * N)) for (n, a), g in zip(acts, grads)}
    return {"loss": float(loss.detach()), "layers": layers}


def rounding(images, labels):
    """Both precisions run the same PyTorch code on the same numbers: what differs is rounding alone."""
    global TYPE
    print("| network | worst layer | median layer | layers beyond 1e-4 |\n|---|---|---|---|")
    for kind in KINDS:
        TYPE = torch.float64
        exact = fisher(kind, images, labels)["layers"]
        TYPE = torch.float32
        rounded = fisher(kind, images, labels)["layers"]
        off = sorted(abs(rounded[n] / exact[n] - 1) for n in exact)
        print(f"| {kind} | {off[-1]:.1e} | {off[len(off) // 2]:.1e} | {sum(o > 1e-4 for o in off)} of {len(off)} |", flush=True)


if __name__ == "__main__":
    images = torch.from_numpy(uniform("images", N * 3072).reshape(N, 3, 32, 32) * 2)
    labels = torch.arange(N) % 10
    if "--rounding" in sys.argv[1:]:
        rounding(images, labels)
    else:
        print(json.dumps({kind: fisher(kind, images, labels) for kind in KINDS}, indent=1))
