#!/usr/bin/env python3
"""Fits the guard expected-loss to trained networks, and tells how well it predicts networks that the fit has not seen.

    python3 networks.py /tmp/bases && python3 fit.py build/src/cli/loopegg /tmp/bases [--keep scores.json]

Asks the program for the parts of every labelled network (fisher/expected_loss.hpp says what they are), fits the exponent of
the size and five weights, and prints them. For each base network it prints what a fit to the other base networks says of it:
Spearman's rank correlation, the area under the curve for a loss above one point, and the mean loss of networks predicted to lose about 0.5.
Base networks that are held back are in no fit at all. For them the fit to all others is used, which is the guard's own fit.
Losses are capped at 8 points, because beyond that a network is useless in any case.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = 8.0
# No fit sees these labels. A search over such a base network is a search over a network that no label came from. experiments/rivals reports on
# such a network, and the guard that let it through had not seen it.
HELD_BACK = {"wide-resnet22-4-cifar10", "wide-resnet16-8-cifar10", "resnet50-cifar10"}
# The shipped constants were fitted to so many lines of labels.jsonl. Networks that came later judge the fit.
FITTED_TO = 460
REPORTED = {("resnext29_2x64d", "found-465"), ("resnet34-cifar10", "rival-blockswap")}


def accuracies(lines=None):
    """The short trainings of labels.jsonl, and by base and name what each seed reached."""
    lines = [json.loads(line) for line in open(os.path.join(HERE, "labels.jsonl"))][:lines]
    lines = [r for r in lines if r["recipe"] == "short"]
    accuracy = {}
    for r in lines:
        accuracy.setdefault((r["base"], r["name"]), []).append(r["accuracy"])
    return lines, accuracy


def seeds_of(rows, lines=None):
    """How many trainings the loss of each row is the mean of."""
    _, accuracy = accuracies(lines)
    return [len(accuracy[r[:2]]) for r in rows]


def labels(lines=None):
    """(base, name, plan, points lost). The loss is the original's mean accuracy over seeds, less that of the network."""
    lines, accuracy = accuracies(lines)
    plans = {(r["base"], r["name"]): r["plan"] for r in lines}
    return [(b, n, plans[b, n], np.mean(accuracy[b, "original"]) - np.mean(a)) for (b, n), a in accuracy.items() if n != "original"]


def parts_of(program, bases, rows):
    """By base and name: the guard's parts, and the original's multiply-accumulates."""
    found = {}
    for base in sorted({r[0] for r in rows}):
        with tempfile.TemporaryDirectory() as folder:
            command, names = [program, "score", os.path.join(bases, base + ".json"), "--json", "-q", "--no-store", "--seeds", "1", "--batch", "2", "--measure", "fisher"], []
            for b, name, plan, _ in rows:
                if b == base:
                    file = os.path.join(folder, f"{name}.json")
                    json.dump(plan, open(file, "w"))
                    tried = subprocess.run([program, "apply", command[2], file, "-o", os.path.join(folder, "v.json")], capture_output=True, text=True)
                    if tried.returncode:
                        print(f"left out: {base} {name}: {tried.stderr.strip().splitlines()[0][:120]}")
                        continue
                    command += ["--plan", file]
                    names.append(name)
            answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for name, v in zip(names, answer["variants"]):
            evidence = v["guards"]["expected-loss"]["evidence"]
            found[f"{base} {name}"] = {**evidence["parts"], "expected": evidence["loss"]["points"], "macs": v["macs"], "original_macs": answer["original"]["macs"]}
    return found


def asked_parts(doc):
    """Reads the command line that fit.py and teach.py share, and gives the parts of every labelled network."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("bases", help="the folder that networks.py wrote")
    parser.add_argument("--keep", help="write the parts that the program told here, and read them from here if they are there")
    options = parser.parse_args()
    if options.keep and os.path.exists(options.keep):
        return json.load(open(options.keep))
    parts = parts_of(options.program, options.bases, labels())
    if options.keep:
        json.dump(parts, open(options.keep, "w"), indent=1)
    return parts


def predict(p, x, work):
    return work ** -p[0] * (x @ p[1:])


def fit(x, work, y, ridge=0.5):
    """Weights that are not negative, of least relative error, robustly: beyond a whole relative error the square becomes straight. What the
    networks do not tell apart is kept small by the ridge. The exponent is the best of a list."""
    spread = np.sqrt(np.mean(x ** 2, 0)) + 1e-9
    best = None
    for spare in np.arange(0, 0.81, 0.02):
        z = x * (work ** -spare / (0.6 + 0.5 * y))[:, None]
        target, trust = y / (0.6 + 0.5 * y), np.ones(len(y))
        w = np.zeros(x.shape[1])
        for _ in range(12):
            gram = z.T @ (z * trust[:, None]) + ridge * np.diag(spread ** 2)
            right = z.T @ (target * trust)
            for _ in range(200):        # one weight after another, none below zero
                for k in range(len(w)):
                    w[k] = max(0.0, (right[k] - gram[k] @ w + gram[k, k] * w[k]) / gram[k, k])
            off = np.abs(z @ w - target)
            trust = 1 / np.maximum(1, off / 0.5)
        cost = np.mean(np.minimum(off ** 2, off - 0.25)) + ridge * np.mean((spread * w) ** 2) / len(y)
        if best is None or cost < best[0]:
            best = cost, np.concatenate([[spare], w])
    return best[1]


def ranks(v):
    order = np.argsort(v, kind="stable")
    r = np.empty(len(v))
    r[order] = np.arange(len(v))
    return r


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1]) if len(a) > 2 else float("nan")


def area(predicted, lost):
    bad, good = predicted[lost > 1], predicted[lost <= 1]
    return float(np.mean([[a > b for b in good] for a in bad])) if len(bad) and len(good) else float("nan")


def table(rows, parts):
    """Arrays with a row for each network: the guard's parts, the original's work in billions, the points lost, the base network."""
    of = [parts[f"{b} {n}"] for b, n, _, _ in rows]
    return (np.array([[p[k] for k in ("work", "depth", "mixing", "view", "unread")] for p in of]), np.array([p["original_macs"] / 1e9 for p in of]),
            np.minimum(np.array([r[3] for r in rows]), CAP), np.array([r[0] for r in rows]))


def quality(name, predicted, lost):
    return (f"{name:23} n {len(lost):3} Spearman {spearman(predicted, lost):5.2f}  area {area(predicted, lost):5.2f}  "
            f"mean absolute error {np.mean(np.abs(predicted - lost)):.2f} points")


def main():
    parts = asked_parts(__doc__)
    rows = labels(FITTED_TO)
    before = {r[:2] for r in rows}
    later = [r for r in labels() if r[:2] not in before]
    rows = [r for r in rows if f"{r[0]} {r[1]}" in parts]
    held_back = table([r for r in rows if r[0] in HELD_BACK], parts)
    rows = [r for r in rows if r[0] not in HELD_BACK and r[:2] not in REPORTED]
    x, work, y, base = table(rows, parts)
    print(f"{len(rows)} networks of {len(set(base))} base networks")
    p = fit(x, work, y)
    print("spare = {:.3f}, work_weight = {:.3f}, depth_weight = {:.3f}, mixing_weight = {:.3f}, view_weight = {:.3f}, unread_weight = {:.3f}".format(*p))
    unseen = np.zeros(len(y))
    for b in sorted(set(base)):
        others = base != b
        unseen[~others] = predict(fit(x[others], work[others], y[others]), x[~others], work[~others])
        print(quality(b, unseen[~others], y[~others]))
    print(quality("all, each left out", unseen, y))
    for b in sorted(HELD_BACK & set(held_back[3])):
        its = held_back[3] == b
        predicted = predict(p, held_back[0][its], held_back[1][its])
        near = np.abs(predicted - 0.5) < 0.25
        print(quality(b, predicted, held_back[2][its]) + f", held back; predicted to lose 0.25 to 0.75: {np.sum(near)}, mean loss {np.mean(held_back[2][its][near]):.2f}")
    near = np.abs(unseen - 0.5) < 0.25
    if near.any():
        print(f"predicted to lose 0.25 to 0.75 points: {np.sum(near)} networks, mean loss {np.mean(y[near]):.2f}")
    later = [r for r in later if f"{r[0]} {r[1]}" in parts]
    x_later, work_later, y_later, base_later = table(later, parts)
    predicted = predict(p, x_later, work_later)
    for b in sorted(set(base_later)):
        print(quality(b, predicted[base_later == b], y_later[base_later == b]) + ", labels that came after the fit")
    print(quality("all labels after the fit", predicted, y_later))
    near = np.abs(predicted - 0.5) < 0.25
    if near.any():
        print(f"predicted to lose 0.25 to 0.75 points: {np.sum(near)} networks, mean loss {np.mean(y_later[near]):.2f}, labels that came after the fit")
    print("predicted and lost: " + ", ".join(f"{b} {n} {q:.2f} {lost:.2f}" for (b, n, _, lost), q in zip(later, predicted)))
    # |error| <= relative * predicted + label for 90%: the smallest such line, with as much of either.
    half = float(np.quantile(np.abs(unseen - y) / (1 + unseen), 0.9))
    print(f"relative_error = label_error = {half:.2f}  (90% of the networks left out lie within it)")
    worst = np.argsort(-np.abs(unseen - y))[:5]
    print("worst: " + ", ".join(f"{rows[i][0]} {rows[i][1]} {y[i]:.1f} predicted {unseen[i]:.1f}" for i in worst))


if __name__ == "__main__":
    sys.exit(main())
