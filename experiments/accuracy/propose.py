#!/usr/bin/env python3
"""Proposes variants of a residual network that are worth training next, from the labels of variants that were trained before.

    python3 propose.py --runs out/result.json [RUN/result.json ...] --speedup 3 --count 24 --jobs jobs.jsonl
    python3 propose.py --again jobs.jsonl --labels new.jsonl --count 8 --seeds 1,2 --jobs more.jsonl

A Gaussian process learns the accuracy by `short` from labels.jsonl and from --labels. Its twelve numbers are the stream width, the mean hidden width and the
number of blocks of each stage. A linear model learns the time, as a share of the original's, from the networks that `loopegg optimize` has timed (--runs).
Each proposal is the best network of one draw from the process, among networks that the linear model expects to be as fast as --speedup says. So proposals
are good by what is known, and unlike each other where little is known. With --again, nothing new is proposed: the jobs of that file are ordered by what the
process expects of them now, and the best get more seeds.
"""
import argparse
import collections
import json
import os
import random
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import networks as N  # noqa: E402

BASE, WIDTHS, BLOCKS, SIDES = "resnet34-cifar10", (64, 128, 256, 512), (3, 4, 6, 3), (32, 16, 8, 4)
# Whole vectors of channels: other widths are slower for the work that they do.
CHOICES = [[32, 48, 64], range(48, 129, 16), range(96, 257, 32), range(64, 513, 64)]
torch.set_default_dtype(torch.float64)

# ---- variants: (stream width, hidden width, blocks) of each stage -----------------------------------------------------------


def plan_of(variant):
    step = lambda site, rule, more={}, **values: {"site": site, "apply": [{"rule": rule, "with": values, **more}]}  # noqa: E731
    steps = [step(f"layer{i}.{b}.conv2", "drop-branch") for i, (_, _, n) in enumerate(variant, 1) for b in range(n, BLOCKS[i - 1])]
    for i, (stream, hidden, n) in enumerate(variant, 1):
        if stream < WIDTHS[i - 1]:
            steps.append(step("conv1" if i == 1 else f"layer{i}.0.conv2", "narrow-stream", **{"?w": stream}))
        if hidden < WIDTHS[i - 1]:
            steps += [step(f"layer{i}.{b}.conv1", "bottleneck-output", {"restore": "propagate"}, **{"?w": hidden}) for b in range(n)]
    return {"steps": steps}


def convolutions(plan):
    """By name: input channels and output channels. None for a network with groups or other restrictions, which have more than twelve numbers."""
    graph = N.apply_plan(N.BASES[BASE], plan)
    channels, found = N.Channels(graph), {}
    for n in graph["nodes"]:
        if n["op"] == "conv2d":
            p = N.Pieces(n, channels.total(channels.of[n["inputs"][0]]))
            if len(p.pieces) > 1 or p.pieces[0][3] > 1 or p.every_second or p.repeat > 1 or p.pointwise or p.rows:
                return None
            found[n["name"]] = (channels.total(channels.of[n["inputs"][0]]), p.out)
    return found


def numbers_of(plan):
    sites = convolutions(plan)
    if sites is None:
        return None
    out = []
    for i, (width, _) in enumerate(zip(WIDTHS, BLOCKS), 1):
        hidden = [c[1] for name, c in sites.items() if name.startswith(f"layer{i}.") and name.endswith("conv1")]
        if not hidden:
            return None     # an empty stage is unlike everything else
        stream = sites.get(f"layer{i}.0.conv2") or sites["conv1"]
        out += [np.log2(stream[1] / width), np.log2(np.mean(hidden) / width), np.log2(len(hidden))]
    return out


def numbers(variant):
    return [v for (s, h, n), width in zip(variant, WIDTHS) for v in (np.log2(s / width), np.log2(h / width), np.log2(n))]


# ---- time --------------------------------------------------------------------------------------------------------------------

def work_of(sites):
    """Multiply-accumulates (M) of each stage, parameters (M) of the last two stages, sites, work on ragged vectors, and one."""
    f = np.zeros(8)
    for name, (i, o) in sites.items():
        stage = 0 if name == "conv1" else int(name[5]) - 1
        weights = i * o * (1 if "downsample" in name else 9) / 1e6
        work = weights * SIDES[stage] ** 2
        f[stage] += work
        f[4] += weights if stage >= 2 else 0
        f[5] += 1
        f[6] += work if o % 16 or (i % 16 and i > 3) else 0
    f[7] = 1
    return f


def sites_of(variant):
    sites, before = {"conv1": (3, variant[0][0])}, variant[0][0]
    for i, (s, h, n) in enumerate(variant, 1):
        for b in range(n):
            sites[f"layer{i}.{b}.conv1"], sites[f"layer{i}.{b}.conv2"] = (before if b == 0 else s, h), (h, s)
        if i > 1:
            sites[f"layer{i}.0.downsample"] = (before, s)
        before = s
    return sites


def fit_time(runs):
    """Weights of work_of that give the time as a share of the original's; none is negative. The prior is that all work takes as long."""
    rows, shares = [work_of(convolutions({"steps": []}))], [1.0]
    for file in runs:
        for n in json.load(open(file))["networks"]:
            sites = convolutions(n["plan"]) if n["measured"] and n.get("beside_ms") else None
            if sites:
                rows.append(work_of(sites))
                shares.append(n["latency"]["median_ms"] / n["beside_ms"])
    scale, y = np.mean(rows, 0), np.array(shares)
    A, prior = np.array(rows) / scale, np.array([1 / 1300] * 4 + [0.005, 0.001, 0.5 / 1300, 0.02]) * scale
    w = prior.copy()
    for _ in range(20000):
        slope = A.T @ ((A @ w - y) / y ** 2) / len(y) + 0.02 * (w - prior) / prior / y.mean()
        w = np.maximum(0, w - 0.02 * slope * y.mean() ** 2)
    print(f"time: {len(y)} networks, relative error {np.sqrt(np.mean((A @ w / y - 1) ** 2)):.3f}")
    return w / scale


# ---- accuracy ----------------------------------------------------------------------------------------------------------------

class Process:
    """A Gaussian process with a linear and a smooth part. The noise of a label falls with its seeds."""
    def __init__(self, labels):
        accuracy, plans = collections.defaultdict(list), {}
        for file in labels:
            for line in open(file):
                r = json.loads(line)
                if r["base"] == BASE and r["recipe"] == "short":
                    accuracy[r["name"]].append(r["accuracy"])
                    plans[r["name"]] = r["plan"]
        known = {name: x for name, plan in plans.items() if (x := numbers_of(plan)) is not None}
        self.X = torch.tensor(np.array(list(known.values())))
        y = torch.tensor([np.mean(accuracy[name]) for name in known])
        seeds = torch.tensor([float(len(accuracy[name])) for name in known])
        self.middle, self.level = self.X.mean(0), y.median()
        d = self.X.shape[1]
        self.p = {"length": torch.full((d,), 0.5), "slope": torch.full((d,), -1.5), "height": torch.tensor(-1.0), "noise": torch.tensor(-1.4)}
        for v in self.p.values():
            v.requires_grad_()
        optimizer = torch.optim.Adam(self.p.values(), lr=0.03)
        covariance = lambda: self.kernel(self.X, self.X) + torch.diag(torch.exp(self.p["noise"]) ** 2 / seeds + 0.05 ** 2)  # noqa: E731
        for _ in range(600):
            optimizer.zero_grad()
            root = torch.linalg.cholesky(covariance())
            solved = torch.cholesky_solve((y - self.level)[:, None], root)[:, 0]
            loss = 0.5 * (y - self.level) @ solved + torch.log(torch.diag(root)).sum()
            for key, mean, weight in (("length", 0.5, 0.25), ("slope", -1.5, 0.25), ("noise", -1.5, 10.0)):
                loss = loss + weight * ((self.p[key] - mean) ** 2).sum()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            self.inverse = torch.linalg.inv(covariance())
            self.solved = self.inverse @ (y - self.level)
            left_out = y - self.solved / torch.diag(self.inverse)
        rank = lambda v: v.argsort().argsort().double()  # noqa: E731
        print(f"accuracy: {len(y)} networks; each left out: rank correlation {torch.corrcoef(torch.stack([rank(left_out), rank(y)]))[0, 1]:.2f}, "
              f"error {((left_out - y) ** 2).mean().sqrt():.2f} points")

    def kernel(self, A, B):
        apart = ((A[:, None] - B[None]) / torch.exp(self.p["length"])).pow(2).sum(-1)
        slope = torch.exp(self.p["slope"])
        return torch.exp(2 * self.p["height"] - 0.5 * apart) + ((A - self.middle) * slope) @ ((B - self.middle) * slope).T + 4.0

    @torch.no_grad()
    def expect(self, rows):
        F = torch.tensor(np.array(rows))
        K = self.kernel(F, self.X)
        return self.level + K @ self.solved, self.kernel(F, F) - K @ self.inverse @ K.T


# ---- proposals ---------------------------------------------------------------------------------------------------------------

def changed(variant):
    stages = [list(s) for s in variant]
    for _ in range(random.choice((1, 1, 2, 3))):
        i, j = random.randrange(4), random.randrange(3)
        stages[i][j] = random.choice(CHOICES[i]) if j < 2 else random.randint(1, BLOCKS[i])
    return tuple(map(tuple, stages))


def pool_of(process, time, speedup, size=2500, rounds=60):
    """The networks that are expected to be best, of those as fast as that and not much faster, by random changes to the best so far."""
    any_one = lambda: tuple((random.choice(w), random.choice(w), random.randint(1, b)) for w, b in zip(CHOICES, BLOCKS))  # noqa: E731
    best, fresh = {}, [any_one() for _ in range(8000)]
    for _ in range(rounds):
        fresh = [v for v in set(fresh) if v not in best and speedup <= 1 / (work_of(sites_of(v)) @ time) <= speedup + 0.6]
        for at in range(0, len(fresh), 1000):
            mean, spread = process.expect([numbers(v) for v in fresh[at:at + 1000]])
            best |= zip(fresh[at:at + 1000], (mean + 0.5 * torch.diag(spread).clamp(min=0).sqrt()).tolist())
        best = dict(sorted(best.items(), key=lambda b: -b[1])[:size])
        fresh = [changed(random.choice(list(best)[:500])) for _ in range(3000)] if best else [any_one() for _ in range(8000)]
    return list(best)


def proposals(process, time, options):
    pool = pool_of(process, time, options.speedup)
    mean, spread = process.expect([numbers(v) for v in pool])
    root, picked = torch.linalg.cholesky(spread + 1e-6 * torch.eye(len(pool))), []
    while len(picked) < min(options.count, len(pool)):
        i = int((mean + root @ torch.randn(len(pool))).argmax())
        if i not in picked:
            picked.append(i)
            print(f"{options.name}-{len(picked) - 1}: {pool[i]}, expected {mean[i]:.2f}%, {1 / (work_of(sites_of(pool[i])) @ time):.2f}x")
    return [{"name": f"{options.name}-{k}", "base": BASE, "plan": plan_of(pool[i])} for k, i in enumerate(picked)]


def best_again(process, options):
    jobs = list({j["name"]: {k: j[k] for k in ("name", "base", "plan")} for j in map(json.loads, open(options.again))}.values())
    mean, spread = process.expect([numbers_of(j["plan"]) for j in jobs])
    order = mean.argsort(descending=True).tolist()
    for i in order:
        print(f"{jobs[i]['name']}: expected {mean[i]:.2f}% (standard deviation {spread[i, i].clamp(min=0).sqrt():.2f})")
    return [jobs[i] for i in order[:options.count]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--runs", nargs="+", metavar="RESULT", help="result.json of runs that timed variants of the network")
    what.add_argument("--again", metavar="JOBS", help="jobs that were proposed before")
    parser.add_argument("--labels", nargs="*", default=[], help="labels beside labels.jsonl")
    parser.add_argument("--speedup", type=float, default=3.0, help="how many times as fast as the original (default: %(default)s)")
    parser.add_argument("--count", type=int, default=24, help="how many networks (default: %(default)s)")
    parser.add_argument("--seeds", default="0", help="seeds of each network, with commas between (default: %(default)s)")
    parser.add_argument("--recipe", default="short", help="the recipe of the jobs (default: %(default)s)")
    parser.add_argument("--name", default="proposed", help="what the names of new networks begin with (default: %(default)s)")
    parser.add_argument("--draw", type=int, default=1, help="what the draws depend on (default: %(default)s)")
    parser.add_argument("--jobs", required=True, help="the file to write")
    options = parser.parse_args()
    random.seed(options.draw)
    torch.manual_seed(options.draw)
    process = Process([os.path.join(HERE, "labels.jsonl"), *options.labels])
    jobs = best_again(process, options) if options.again else proposals(process, fit_time(options.runs), options)
    with open(options.jobs, "w") as out:
        for seed in options.seeds.split(","):
            for j in jobs:
                out.write(json.dumps({**j, "seed": int(seed), "recipe": options.recipe}) + "\n")


if __name__ == "__main__":
    main()
