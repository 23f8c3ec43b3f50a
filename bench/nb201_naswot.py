#!/usr/bin/env python3
"""What moves the rank correlation of naswot on NAS-Bench-201: dead operations, batch size, initialisation. Plain PyTorch, no loopegg.

    python3 nb201_naswot.py CELLS.csv CIFAR_FOLDER OUT.jsonl [--cells 300] [--seconds 300]      (needs torch and numpy; goes on where OUT ends)

Each cell is scored as the published code does it: every ReLU of every operation counts, also those whose result reaches no output (their
input may be all zeros), weights are drawn as torch draws them by default, and naswot is log |det K| over one batch of training images. Then one
thing is changed at a time: 'live' leaves out the operations that reach no output or read zeros, as loopegg does; 'he' draws normal weights of variance 2 / fan-in.
"""
import argparse
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

SETTINGS = [(batch, init, which) for batch in (32, 128) for init in ("torch", "he") for which in ("all", "live")]


def parse(arch):
    """[(to, from, operation)] of the six edges."""
    return [(to, int(edge.split("~")[1]), edge.split("~")[0]) for to, node in enumerate(arch.split("+"), 1) for edge in node.strip("|").split("|")]


def live_edges(edges):
    """Edges that carry something from the input to the output."""
    fed, read = {0}, {3}
    for to, at, op in sorted(edges):
        if op != "none" and at in fed:
            fed.add(to)
    for to, at, op in sorted(edges, reverse=True):
        if op != "none" and to in read:
            read.add(at)
    return {(to, at) for to, at, op in edges if op != "none" and at in fed and to in read}


class Scorer:
    """One forward pass; kernels of agreeing codes by whether the ReLU belongs to a live operation."""
    def __init__(self, init, seed):
        self.init, self.random = init, torch.Generator().manual_seed(seed)
        self.kernels = {"live": 0, "dead": 0}

    def weight(self, *shape):
        fan = math.prod(shape[1:])
        if self.init == "he":
            return torch.randn(shape, generator=self.random) * math.sqrt(2 / fan)
        return (torch.rand(shape, generator=self.random) * 2 - 1) / math.sqrt(fan)

    def relu(self, x, kind):
        code = (x > 0).flatten(1).float()
        on = code.sum(1)
        same = 2 * code @ code.T + code.shape[1] - on[:, None] - on[None]
        self.kernels[kind] = self.kernels[kind] + same.double()
        return F.relu(x)

    def conv(self, x, out, kernel, stride=1, kind="live"):
        y = F.conv2d(self.relu(x, kind), self.weight(out, x.shape[1], kernel, kernel), stride=stride, padding=kernel // 2)
        return self.norm(y)

    @staticmethod
    def norm(x):
        return F.batch_norm(x, None, None, training=True)

    def cell(self, x, edges, alive):
        value = [x] + [torch.zeros_like(x) for _ in range(3)]
        for to, at, op in edges:
            kind = "live" if (to, at) in alive else "dead"
            if op == "skip_connect":
                y = value[at]
            elif op == "avg_pool_3x3":
                y = F.avg_pool2d(value[at], 3, 1, 1, count_include_pad=False)
            elif op == "none":
                continue
            else:
                y = self.conv(value[at], x.shape[1], int(op[-1]), kind=kind)
            value[to] = value[to] + y
        return value[3]

    def run(self, arch, images):
        edges = parse(arch)
        alive = live_edges(edges)
        x = self.norm(F.conv2d(images, self.weight(16, 3, 3, 3), padding=1))
        for stage, width in enumerate((16, 32, 64)):
            if stage:
                y = self.conv(self.conv(x, width, 3, 2), width, 3)
                x = y + F.conv2d(F.avg_pool2d(x, 2), self.weight(width, x.shape[1], 1, 1))
            for _ in range(5):
                x = self.cell(x, edges, alive)
        self.relu(self.norm(x), "live")
        live, every = self.kernels["live"], self.kernels["live"] + self.kernels["dead"]
        return {"live": torch.linalg.slogdet(live)[1].item(), "all": torch.linalg.slogdet(every)[1].item(), "dead": len([e for e in edges if e[2].startswith("nor") and (e[0], e[1]) not in alive])}


def spearman(a, b):
    def ranks(values):
        values = np.asarray(values)
        order, out = np.argsort(values, kind="stable"), np.empty(len(values))
        out[order] = np.arange(len(values))
        for v in np.unique(values):
            out[values == v] = out[values == v].mean()
        return out
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells"), parser.add_argument("data"), parser.add_argument("out")
    parser.add_argument("--cells", dest="count", type=int, default=300), parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    rows = [line.split(",") for line in open(options.cells).read().split("\n")[1:] if line][:options.count]
    records = np.fromfile(os.path.join(options.data, "data_batch_1.bin"), np.uint8).reshape(-1, 3073)[:128, 1:].reshape(-1, 3, 32, 32)
    images = (torch.from_numpy(records.copy()).float() / 255 - torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)) / torch.tensor([0.247, 0.2435, 0.2616]).view(3, 1, 1)
    done = {r["arch"]: r for r in map(json.loads, open(options.out))} if os.path.exists(options.out) else {}
    began = time.time()
    with torch.no_grad(), open(options.out, "a") as out:
        for arch, accuracy, *_ in rows:
            if arch in done or time.time() - began > options.seconds:
                continue
            row = {"arch": arch, "accuracy": float(accuracy)}
            for batch in (32, 128):
                for init in ("torch", "he"):
                    got = Scorer(init, 0).run(arch, images[:batch])
                    row.update({f"{batch} {init} all": got["all"], f"{batch} {init} live": got["live"], "dead": got["dead"]})
            done[arch] = row
            out.write(json.dumps(row) + "\n")
            out.flush()
    scored = [done[r[0]] for r in rows if r[0] in done]
    accuracy = [r["accuracy"] for r in scored]
    finite = lambda v: v if math.isfinite(v) else -1e300
    print(f"{len(scored)} cells, {sum(r['dead'] > 0 for r in scored)} of them with dead convolutions\n\n| images | weights | ReLUs | rho |\n|---|---|---|---|")
    for batch, init, which in SETTINGS:
        print(f"| {batch} | {init} | {which} | {spearman([finite(r[f'{batch} {init} {which}']) for r in scored], accuracy):.3f} |")


if __name__ == "__main__":
    main()
