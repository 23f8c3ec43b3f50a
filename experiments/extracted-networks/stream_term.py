#!/usr/bin/env python3
"""Tests a term for the guard: the squared logarithm of the share of its channels that the residual stream of a stage keeps.

    python3 stream_term.py

Fits work and depth, as the guard counts them, without and with the term, to the variants of resnet34-cifar10 that were trained before this page, and
predicts the others. Variants with groups or restricted sites are left out, since the guard's other terms are for these. Needs numpy.
"""
import collections
import os

import numpy as np

import table
from collect import N

BEFORE = 641            # lines of labels.jsonl that are older than this page
TAUGHT, SPARE = 3000.0, 0.38    # as in fisher/expected_loss.cpp
TERMS = ("work", "depth", "stream")


class Stage:
    def __init__(self):
        self.macs = self.parameters = self.sites = 0
        self.stream = None      # channels

    def useful(self, places):
        return self.macs / (1 + self.parameters / (TAUGHT * places ** 2))


def stages(graph, streams):
    """The stages of a network, by their places. `streams`: the sites that write residual streams."""
    channels, side, found = N.Channels(graph), N.sides(graph), collections.defaultdict(Stage)
    for n in graph["nodes"]:
        if n["op"] == "conv2d":
            parameters, macs = N.Pieces(n, channels.total(channels.of[n["inputs"][0]])).counts(side[n["name"]])
            s = found[side[n["name"]] ** 2]
            s.macs, s.parameters, s.sites = s.macs + macs, s.parameters + parameters, s.sites + 1
            if n["name"] in streams:
                s.stream = n["attrs"]["out_channels"]
    return found


def terms(before, left):
    whole, sums = sum(s.useful(p) for p, s in before.items()), np.zeros(3)
    for p, s in before.items():
        if p in left:
            now = left[p]
            shares = (min(1, max(1 / 64, now.useful(p) / s.useful(p))), max(1 / 3, now.sites / s.sites), (now.stream or s.stream) / s.stream)
            work, depth, stream = -np.log(shares)
            sums += s.useful(p) / whole * np.array([work, depth ** 2, stream ** 2])
    return sums


def ordinary(graph):
    return not any(n.get("restrict") or (n["op"] == "conv2d" and n["attrs"].get("groups", 1) > 1) for n in graph["nodes"])


def variants(base, found, names):
    graph = N.BASES[base]
    channels = N.Channels(graph)
    streams = {n["name"] for n in graph["nodes"] if n["op"] == "conv2d" and channels.residual(channels.stream(n["name"]))}
    before, original = stages(graph, streams), np.mean([r["accuracy"] for r in found[base, "original"]])
    rows = []
    for name in names:
        made = N.apply_plan(graph, found[base, name][0]["plan"])
        if ordinary(made):
            scale, own = (N.sizes(graph)[1] / 1e9) ** -SPARE, found[base, name]
            rows.append((scale * terms(before, stages(made, streams)), original - np.mean([r["accuracy"] for r in own]), len(own)))
    return rows


def fit(rows, columns):
    """Least squares of relative errors; a network counts by its training runs, up to six. No weight comes out negative here."""
    x, y = np.array([r[0][columns] for r in rows]), np.array([r[1] for r in rows])
    trust = np.sqrt([min(r[2], 6) for r in rows]) / (0.6 + 0.5 * y)
    return np.linalg.lstsq(x * trust[:, None], y * trust, rcond=None)[0]


def main():
    found, first = collections.defaultdict(list), {}
    for i, r in enumerate(table.rows(os.path.join(table.ACCURACY, "labels.jsonl"))):
        if r["recipe"] == "short":
            found[r["base"], r["name"]].append(r)
            first.setdefault((r["base"], r["name"]), i)
    groups = {}
    for base in table.GENETIC:
        names = [n for b, n in found if b == base and n != "original"]
        extracted = [n for n in names if first[base, n] >= BEFORE and not n.startswith("width")]
        groups[base, "others"], groups[base, "extracted"] = (variants(base, found, part) for part in ([n for n in names if n not in extracted], extracted))
    old = groups["resnet34-cifar10", "others"]
    print("| fitted | " + " | ".join(f"{b}, {k} ({len(rows)})" for (b, k), rows in groups.items()) + " |\n|---" + "|---" * len(groups) + "|")
    for columns in ([0, 1], [0, 1, 2]):
        weights = fit(old, columns)
        errors = [np.array([r[1] - r[0][columns] @ weights for r in rows]) for rows in groups.values()]
        print("| " + ", ".join(f"{w:.2f} {TERMS[c]}" for c, w in zip(columns, weights)) + " | " + " | ".join(f"{np.mean(np.abs(e)):.2f} ({np.mean(e):+.2f})" for e in errors) + " |")


if __name__ == "__main__":
    main()
