#!/usr/bin/env python3
"""Writes a bundle of one program: the convolutions of resnet34-cifar10 in their order, each with the fastest schedule that was right.

    gpu_chain.py BUNDLE RESULTS OUT     BUNDLE: of bench_gpu_schedules, with its RESULTS

There are no residual additions, no pooling and no last product, convolutions that the bundle lacks are left out and named, and the output is not
checked.
"""
import json
import os
import re
import sys

bundle, results, out = sys.argv[1:]
text = open(f"{bundle}/bundle.txt").read()
head, *programs = text.split("program ")
by_key = {p.split("\n", 1)[0]: p.split("\n", 1)[1] for p in programs}
index = json.load(open(f"{bundle}/index.json"))["programs"]
times = {w[0]: float(w[2]) for w in (line.split() for line in open(results).read().splitlines()[1:]) if w[1] == "ok"}
best = {}
for p in index:
    shape = tuple(map(int, re.search(r"\(conv2d ([0-9 ]+)\)", p["what"])[1].split()))
    if p["key"] in times and (shape not in best or times[p["key"]] < times[best[shape]]):
        best[shape] = p["key"]
order, n = [], int(next(iter(best))[0])


def conv(co, ci, size, k, s):
    order.append((n, 1, co, ci, size, size, k, k, s, s, k // 2, k // 2, 1, 1))


conv(64, 3, 32, 3, 1)
width, size = 64, 32
for i, count in enumerate((3, 4, 6, 3)):
    for j in range(count):
        to, s = 64 << i, 2 if i > 0 and j == 0 else 1
        conv(to, width, size, 3, s)
        if s > 1:
            conv(to, width, size, 1, 2)
        size, width = size // s, to
        conv(to, width, size, 3, 1)
missing = [o for o in order if o not in best]
if missing:
    print("no right schedule for", sorted(set(missing)))
order = [o for o in order if o in best]
print("sum of the fastest, us:", 1000 * sum(times[best[o]] for o in order), "of", len(order))
lines, kernels, base = [], {}, 0
body = []
for o in order:
    words = [line.split() for line in by_key[best[o]].splitlines()]
    for w in words:
        if w[0] == "kernel" and w[2] not in kernels:
            kernels[w[2]] = len(kernels)
            lines.append(" ".join(["kernel", str(kernels[w[2]])] + w[2:]))
    kernel = next(w for w in words if w[0] == "kernel")[2]
    for w in words:
        if w[0] in ("load",):
            w[1] = str(int(w[1]) + base)
        if w[0] == "gather":
            w[2] = str(int(w[2]) + base)
        if w[0] in ("load", "gather", "logical"):
            body.append(" ".join(w))
        if w[0] == "launch":
            body.append(" ".join(["launch", str(kernels[kernel]), w[2]] + [str(int(a) + base) for a in w[3:]]))
    base += (int(next(w for w in words if w[0] == "memory")[1]) + 63) // 64 * 64
os.makedirs(out, exist_ok=True)
for name in os.listdir(bundle):
    if name not in ("bundle.txt", "results.txt", "index.json", "bundle_runner"):
        os.path.exists(f"{out}/{name}") or os.symlink(os.path.abspath(f"{bundle}/{name}"), f"{out}/{name}")
with open(f"{out}/bundle.txt", "w") as file:
    file.write(head + "program " + "0" * 31 + "1\n" + "\n".join(lines) + f"\nmemory {base}\n" + "\n".join(body) + "\nend\n")
