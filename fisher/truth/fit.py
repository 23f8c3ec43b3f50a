#!/usr/bin/env python3
"""Chooses the weights of fisher-band's parts on some trained networks and tells how well they do on others.

    python3 fit.py RESULTS.jsonl SCORES.json

RESULTS.jsonl is what train_variants.py wrote, SCORES.json what judge.py kept. A network's loss is the mean over its seeds. Weights are taken from a
coarse grid, by the mean area under the curve for lines at 0.6 to 1.4 points (a line at exactly one point would follow the luck of
single trainings). Networks 'drawn later' (mixtures 6 to 8, and stages that were added with them) are never fitted on.
"""
import itertools
import json
import math
import random
import sys

from judge import area, later

PARTS = ("fisher", "layers", "codes", "sites", "params", "macs")
SCALE = {"fisher": 1.0, "layers": 1.0, "codes": 10.0, "sites": 0.3, "params": 0.3, "macs": 0.3}     # about equal spreads
GRID = (0, 0.25, 0.5, 1)
SHIPPED = {"fisher": 0.3, "codes": 5.0, "sites": 0.15, "params": 0.1}                                      # as in fisher/guards.cpp


def read(results, scores):
    trained = {}
    for line in open(results):
        r = json.loads(line)
        trained.setdefault(r["name"], []).append(r["accuracy"])
    base = sum(trained["original"]) / len(trained["original"])
    rows = []
    for v in json.load(open(scores))["variants"]:
        p = v["guards"]["fisher-band"]["evidence"]["parts"]
        x = {"fisher": abs(math.log(p["fisher"])), "layers": p["layers"], "codes": max(0.0, p["codes"]), "sites": p["sites"],
             "params": max(0.0, -math.log(p["params"])), "macs": max(0.0, -math.log(p["macs"]))}
        rows.append((v["plan"], base - sum(trained[v["plan"]]) / len(trained[v["plan"]]), x))
    return rows


def values(weights, rows):
    return [-sum(w * x[part] for part, w in weights.items()) for _, _, x in rows]


def auc(weights, rows, line=1.0):
    return area(values(weights, rows), [loss > line for _, loss, _ in rows])


def soft(weights, rows):
    areas = [auc(weights, rows, line) for line in (0.6, 0.8, 1.0, 1.2, 1.4)]
    areas = [a for a in areas if not math.isnan(a)]
    return sum(areas) / len(areas)


def chosen(parts, rows):
    grid = [dict(zip(parts, (w * SCALE[p] for w, p in zip(ws, parts)))) for ws in itertools.product(GRID, repeat=len(parts)) if max(ws) == 1]
    return max(grid, key=lambda w: soft(w, rows))


def interval(weights, rows, draws=2000):
    draw, areas = random.Random(1), []
    while len(areas) < draws:
        a = auc(weights, [draw.choice(rows) for _ in rows])
        if not math.isnan(a):
            areas.append(a)
    areas.sort()
    return areas[draws // 20], areas[-draws // 20]


def one_out(parts, rows):
    """Each network is judged by weights that were fitted without it."""
    values_of = []
    for i, row in enumerate(rows):
        w = chosen(parts, rows[:i] + rows[i + 1:])
        scale = sum(w[p] / SCALE[p] for p in parts)
        values_of.append(values(w, [row])[0] / scale)
    return area(values_of, [loss > 1 for _, loss, _ in rows])


def tell(name, weights, groups):
    cells = []
    for rows in groups:
        low, high = interval(weights, rows)
        cells.append(f"{auc(weights, rows):.2f} ({low:.2f}-{high:.2f})")
    print(f"| {name} | " + ", ".join(f"{p} {w:g}" for p, w in weights.items() if w) + " | " + " | ".join(cells) + " |")


def main():
    rows = read(sys.argv[1], sys.argv[2])
    first, second = [r for r in rows if not later(r[0])], [r for r in rows if later(r[0])]
    groups = [first, second, rows, [r for r in rows if not r[0].startswith("mix")], [r for r in rows if r[0].startswith("mix")]]
    names = ("fitted on", "drawn later", "all", "uniform", "mixtures")
    print("| parts | weights | " + " | ".join(f"{n} ({len(g)}, {sum(l > 1 for _, l, _ in g)} lose)" for n, g in zip(names, groups)) + " |\n|---|---|" + "---|" * len(groups))
    tell("as shipped", SHIPPED, groups)
    for parts in (("fisher",), ("fisher", "macs"), ("fisher", "params"), ("fisher", "codes"), ("fisher", "codes", "macs"), ("fisher", "codes", "params"),
                  ("fisher", "codes", "sites"), ("fisher", "layers", "codes", "sites"), ("fisher", "codes", "sites", "params")):
        tell(" + ".join(parts), chosen(parts, first), groups)
    for parts in (("fisher", "macs"), ("fisher", "codes", "params"), ("fisher", "codes", "sites", "params")):
        print(f"leaving one out, {' + '.join(parts)}: {one_out(parts, rows):.2f}")


if __name__ == "__main__":
    main()
