#!/usr/bin/env python3
"""Fits how the guard is calibrated by training runs (fisher/calibrated_loss.hpp), and reports how much a few runs improve its predictions for a base network that was
held out.

    python3 networks.py /tmp/bases && python3 calibrate.py build/src/cli/loopegg /tmp/bases [--keep scores.json]

For each base network, fit.py's formula and the constants of the covariance are fitted to the other base networks. Then the guard is calibrated on some labels of
the base network, drawn at random, and predicts the loss of its other networks. The last line has the shipped constants, a fit to all base networks with the
first FITTED_TO labels.
"""
import numpy as np
import torch

import fit as guard
import networks as N

torch.set_default_dtype(torch.float64)
START = {"scale": 0.37, "work_slope": 0.22, "sites_slope": 0.22, "work_steepness": 1.65, "sites_steepness": 1.65, "bend": 0.22, "training_error": 0.22}
FITTED_TO = 547     # lines of labels.jsonl: later ones are of networks that a calibrated guard found
LEAST_ERROR, TRAINABLE, DRAWS = 0.05, 3000.0, 30   # the first two as in fisher/calibrated_loss.cpp and fisher/expected_loss.cpp


def stages(graph):
    """By places: multiply-accumulates, sites and parameters."""
    c, side, found = N.Channels(graph), {"input": 32}, {}
    for n in graph["nodes"]:
        a, before = n.get("attrs", {}), side[n["inputs"][0]]
        side[n["name"]] = before // a.get("stride", [1])[0] if n["op"] in ("conv2d", "max_pool", "avg_pool") else before
        if n["op"] == "conv2d":
            params, macs = N.Pieces(n, c.total(c.of[n["inputs"][0]])).counts(side[n["name"]])
            found.setdefault(side[n["name"]] ** 2, np.zeros(3))
            found[side[n["name"]] ** 2] += (macs, 1, params)
    return found


def stages_left(original, variant):
    """For each stage of the original: its part of the useful work, and logarithms of the shares of work and of sites that are left."""
    useful = {places: s[0] / (1 + s[2] / (TRAINABLE * places ** 2)) for places, s in original.items()}
    share = lambda places, k, least: np.log(max(variant.get(places, np.zeros(3))[k] / original[places][k], least))  # noqa: E731
    return np.array([(useful[p] / sum(useful.values()), min(0, share(p, 0, 1 / 64)), min(0, share(p, 1, 1 / 4))) for p in sorted(original)])


class Labels:
    """The labelled networks of one base network: what the guard expects of them, what they lost, how often they were trained, and their stages."""
    def __init__(self, guess, lost, seeds, left):
        self.guess, self.lost, self.seeds, self.left = (torch.tensor(np.array(v), dtype=torch.float64) for v in (guess, lost, seeds, left))

    def some(self, which):
        return Labels(self.guess[which], self.lost[which], self.seeds[which], self.left[which])


def labels_by_base(parts, lines=None):
    """The labels of each base network. What the guard expects of them comes from a fit to the other base networks."""
    rows = [r for r in guard.labels(lines) if f"{r[0]} {r[1]}" in parts and r[3] < guard.CAP]
    seeds = np.array(guard.seeds_of(rows, lines), float)
    x, work, y, base = guard.table(rows, parts)
    found = {}
    for b in sorted(set(base)):
        others, its, whole = base != b, np.flatnonzero(base == b), stages(N.BASES[b])
        guess = guard.predict(guard.fit(x[others], work[others], y[others]), x[its], work[its])
        found[b] = Labels(guess, y[its], seeds[its], [stages_left(whole, stages(N.apply_plan(N.BASES[b], rows[i][2]))) for i in its])
    return found


def covariance(a, b, p):
    guesses = a.guess[:, None] * b.guess[None]
    k, apart = p["scale"] ** 2 * guesses, 0
    for i, what in ((1, "work"), (2, "sites")):
        k = k + p[what + "_slope"] ** 2 * (a.left[:, :, i] * a.left[:, :, 0]) @ (b.left[:, :, i] * b.left[:, :, 0]).T
        apart = apart + p[what + "_steepness"] * (a.left[:, None, :, 0] * (a.left[:, None, :, i] - b.left[None, :, :, i]) ** 2).sum(-1)
    return k + p["bend"] ** 2 * guesses.sqrt() * torch.exp(-apart / 2)


def with_errors(a, p):
    return covariance(a, a, p) + torch.diag(p["training_error"] ** 2 / a.seeds + LEAST_ERROR ** 2)


def fit(all_labels):
    """The constants of the largest marginal likelihood. A prior keeps them near START, and keeps the error of a training run near that of repeated runs."""
    logs = {k: torch.tensor(np.log(v), requires_grad=True) for k, v in START.items()}
    optimizer = torch.optim.Adam(logs.values(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        p, loss = {k: torch.exp(v) for k, v in logs.items()}, 0
        for a in all_labels:
            root, error = torch.linalg.cholesky(with_errors(a, p)), a.lost - a.guess
            loss = loss + 0.5 * error @ torch.cholesky_solve(error[:, None], root)[:, 0] + torch.log(torch.diag(root)).sum()
        loss = loss + sum(0.25 * (v - np.log(START[k])) ** 2 * (20 if k == "training_error" else 1) for k, v in logs.items())
        loss.backward()
        optimizer.step()
    return {k: float(torch.exp(v)) for k, v in logs.items()}


def calibrated(known, others, p):
    return others.guess + covariance(others, known, p) @ torch.linalg.solve(with_errors(known, p), known.lost - known.guess)


def mean_error(predicted, lost):
    return float((predicted - lost).abs().mean())


def main():
    parts = guard.parts_of_labels(__doc__)
    labels = labels_by_base(parts)
    random = np.random.default_rng(1)
    for b, its in labels.items():
        p = fit([labels[c] for c in labels if c != b])
        for count in (4, 8, 16, 40):
            if count > len(its.lost) - 4:
                break
            before, after = [], []
            for _ in range(DRAWS):
                order = random.permutation(len(its.lost))
                others = its.some(order[count:])
                before.append(mean_error(others.guess, others.lost))
                after.append(mean_error(calibrated(its.some(order[:count]), others, p), others.lost))
            print(f"{b:23} {count:3} training runs: mean absolute error {np.mean(before):.2f} -> {np.mean(after):.2f} points")
    print(", ".join(f"{k} = {v:.3f}" for k, v in fit(list(labels_by_base(parts, FITTED_TO).values())).items()))


if __name__ == "__main__":
    main()
