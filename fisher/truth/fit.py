#!/usr/bin/env python3
"""How well fisher-band's five parts distinguish trained networks when their weights are fitted on other networks.

    python3 fit.py SCORES.json

SCORES.json is what judge.py kept. Weights come from a coarse grid, by the mean area under the curve for lines at 0.6 to 1.4 points (a line at exactly one
point would follow the luck of single training runs). Printed: areas with the weights as shipped and 90% intervals by drawing networks again; areas where
each kind of network is judged by weights that were fitted without it; and what a detector that knew each network's true mean could reach on
labels that differ from seed to seed as ours do.
"""
import itertools
import json
import math
import random
import statistics
import sys

from judge import area, losses, trained

SHIPPED = {"fisher": 0.15, "codes": 6.0, "stages": 0.25, "sites": 0.1, "params": 0.1}   # as in fisher/measures.cpp
GRID = {"fisher": (0.05, 0.1, 0.15, 0.2, 0.3, 0.5), "codes": (2.0, 4.0, 6.0, 8.0, 12.0), "stages": (0.25,), "sites": (0.0, 0.05, 0.1, 0.2), "params": (0.0, 0.1, 0.2)}


def parts_of(scores):
    rows = {}
    for name, s in scores.items():
        p = s["guards"]["fisher-band"]["evidence"]["parts"]
        rows[name] = {"fisher": abs(math.log(p["fisher"])), "codes": max(0.0, p["codes"]), "stages": p["stages"], "sites": p["sites"], "params": max(0.0, -math.log(p["params"]))}
    return rows


def kind(name):
    """Networks that are alike: the kind of a mixture, or the transform of a uniform network whatever its stages."""
    if name.startswith("mix"):
        return name.rsplit("-", 1)[0]
    return name.split("-stages")[0].rstrip("0123456789")


def values(weights, rows, names):
    return [-sum(w * rows[n][part] for part, w in weights.items()) for n in names]


def auc(weights, rows, lost, names, line=1.0):
    return area(values(weights, rows, names), [lost[n] > line for n in names])


def soft(weights, rows, lost, names):
    areas = [a for line in (0.6, 0.8, 1.0, 1.2, 1.4) if not math.isnan(a := auc(weights, rows, lost, names, line))]
    return sum(areas) / len(areas)


def fitted(rows, lost, names):
    return max((dict(zip(GRID, ws)) for ws in itertools.product(*GRID.values())), key=lambda w: soft(w, rows, lost, names))


def interval(weights, rows, lost, names, draws=2000):
    draw, areas = random.Random(1), []
    while len(areas) < draws:
        if not math.isnan(a := auc(weights, rows, lost, [draw.choice(names) for _ in names])):
            areas.append(a)
    areas.sort()
    return areas[draws // 20], areas[-draws // 20]


def kind_out(rows, lost, names):
    """Every network's value by weights that were fitted without its kind."""
    value = {}
    for k in {kind(n) for n in names}:
        w = fitted(rows, lost, [n for n in names if kind(n) != k])
        value |= {n: v for n, v in zip(names, values(w, rows, names)) if kind(n) == k}
    return value


def perfect(observed, seeds, spread, draws=2000):
    """Area of a detector that knows the true means, on labels with this spread from seed to seed. True means: the observed ones, shrunk by the noise in them."""
    draw, areas = random.Random(2), []
    middle, variance = statistics.mean(observed), statistics.pvariance(observed)
    true_variance = max(0.02, variance - spread ** 2)
    while len(areas) < draws:
        truth, label = [], []
        for o, k in zip(observed, seeds):
            share = true_variance / (true_variance + spread ** 2 / k)
            truth.append(middle + share * (o - middle) + draw.gauss(0, 1) * math.sqrt(true_variance * (1 - share)))
            label.append(truth[-1] + draw.gauss(0, spread) / math.sqrt(k) > 1)
        if not math.isnan(a := area([-t for t in truth], label)):
            areas.append(a)
    areas.sort()
    return statistics.mean(areas), areas[draws // 20], areas[-draws // 20]


def main():
    rows = parts_of(json.load(open(sys.argv[1])))
    fast, gentle = losses("fast"), losses("gentle")
    everything = sorted(fast)
    groups = {"all": everything, "uniform": [n for n in everything if not n.startswith("mix")], "mixtures": [n for n in everything if n.startswith("mix")]}
    print("| networks | lose | as shipped (90% interval) | fitted without its kind |\n|---|---|---|---|")
    out = kind_out(rows, fast, everything)
    for name, names in groups.items():
        low, high = interval(SHIPPED, rows, fast, names)
        print(f"| {name} ({len(names)}) | {sum(fast[n] > 1 for n in names)} | {auc(SHIPPED, rows, fast, names):.2f} ({low:.2f}-{high:.2f}) | {area([out[n] for n in names], [fast[n] > 1 for n in names]):.2f} |")
    names = sorted(gentle)
    low, high = interval(SHIPPED, rows, gentle, names)
    w = fitted(rows, fast, [n for n in everything if n not in gentle])
    print(f"| peak 0.15 ({len(names)}) | {sum(gentle[n] > 1 for n in names)} | {auc(SHIPPED, rows, gentle, names):.2f} ({low:.2f}-{high:.2f}) | {auc(w, rows, gentle, names):.2f} (weights from the other networks, peak 0.4) |")

    accuracies, _ = trained("fast")
    pairs = [(a[0] - a[1]) ** 2 / 2 for n, a in accuracies.items() if n.startswith("mix") and len(a) == 2]
    spread = math.sqrt(statistics.mean(pairs))
    print(f"\nseed to seed, {len(pairs)} mixtures with two seeds: {spread:.2f} points (their first seeds lay near one point). A detector that knew the true means would reach:")
    for at in sorted({0.3, 0.5, round(spread, 2)}):
        words = [f"{n} {m:.2f} ({l:.2f}-{h:.2f})" for n, names in groups.items() for m, l, h in [perfect([min(fast[x], 6) for x in names], [len(accuracies[x]) for x in names], at)]]
        print(f"- at {at:.2f} points a seed: " + ", ".join(words))


if __name__ == "__main__":
    main()
