#!/usr/bin/env python3
"""Fits the guard expected-loss to trained networks, and shows how well it predicts networks of base networks that the fit has not seen.

    python3 networks.py /tmp/bases && python3 fit.py build/src/cli/loopegg /tmp/bases [--keep scores.json]

Asks the program for the parts of every labelled network (fisher/expected_loss.hpp says what they are), fits the exponent of the size and the weights of the
parts, and prints them. Everything else that it prints is said of base networks that are left out, one at a time: Spearman's rank correlation, also of
parameters and of multiply-accumulates, the mean absolute error, and how many losses are within the interval. Losses are capped at 8 points, because
beyond that a network is useless in any case.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import networks as N

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = 8.0
PARTS = ("work", "depth", "widths", "mixing", "view", "unread")
# Lines of labels.jsonl before networks were extracted from the e-graph. The parts were chosen by these, and extracted networks confirm the choice.
BEFORE = 641
# The standard deviation of one training run, in points (calibrate.py).
TRAINING_ERROR = 0.25


def accuracies(lines=None):
    """The 16-epoch training runs of labels.jsonl, and by base and name what each seed reached."""
    lines = [json.loads(line) for line in open(os.path.join(HERE, "labels.jsonl"))][:lines]
    lines = [r for r in lines if r["recipe"] == "short"]
    accuracy = {}
    for r in lines:
        accuracy.setdefault((r["base"], r["name"]), []).append(r["accuracy"])
    return lines, accuracy


def extracted():
    """(base, name) of the networks that came after BEFORE, but for uniform scalings."""
    known = {r[:2] for r in labels(BEFORE)}
    return {r[:2] for r in labels() if r[:2] not in known and not r[1].startswith("width")}


def seeds_of(rows, lines=None):
    """How many training runs the loss of each row is the mean of."""
    _, accuracy = accuracies(lines)
    return [len(accuracy[r[:2]]) for r in rows]


def labels(lines=None):
    """(base, name, plan, points lost). The loss is the original's mean accuracy over seeds, less that of the network."""
    lines, accuracy = accuracies(lines)
    plans = {(r["base"], r["name"]): r["plan"] for r in lines}
    return [(b, n, plans[b, n], np.mean(accuracy[b, "original"]) - np.mean(a)) for (b, n), a in accuracy.items() if n != "original"]


def variant_of(program, folder, base_file, base, name, plan):
    """How `score` is given a labelled network: by its plan, or, where today's rules have no such plan, as a network that the Python reader makes."""
    file = os.path.join(folder, f"{name}.json")
    with open(file, "w") as f:
        json.dump(plan, f)
    tried = subprocess.run([program, "apply", base_file, file, "-o", os.path.join(folder, "v.json")], capture_output=True, text=True)
    if tried.returncode == 0:
        return ["--plan", file]
    graph = N.apply_plan(N.BASES[base], plan)
    if any("restrict" in n for n in graph["nodes"]):
        print(f"left out: {base} {name}: {tried.stderr.strip().splitlines()[0].split('error: ')[-1][:100]}")
        return []
    with open(file, "w") as f:
        json.dump(graph, f)
    return ["--variant", file]


def scored(program, base_file, given):
    command = [program, "score", base_file, "--json", "-q", "--no-store", "--seeds", "1", "--batch", "2", "--measure", "fisher", *given]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def parts_of(program, bases, rows):
    """By base and name: the guard's parts, the sizes of the network, and the original's multiply-accumulates."""
    found = {}
    for base in sorted({r[0] for r in rows}):
        file, given = os.path.join(bases, base + ".json"), {"--plan": [], "--variant": []}
        with tempfile.TemporaryDirectory() as folder:
            for b, name, plan, _ in rows:
                if b == base and (option := variant_of(program, folder, file, base, name, plan)):
                    given[option[0]].append((name, option))
            for its in filter(None, given.values()):
                answer = scored(program, file, [word for _, option in its for word in option])
                for (name, _), v in zip(its, answer["variants"]):
                    evidence = v["guards"]["expected-loss"]["evidence"]
                    found[f"{base} {name}"] = {**evidence["parts"], "expected": evidence["loss"]["points"], "macs": v["macs"],
                                               "parameters": v["parameters"], "original_macs": answer["original"]["macs"]}
    return found


def parts_of_labels(doc):
    """Reads the command line that fit.py and calibrate.py share, and gives the parts of every labelled network."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("bases", help="the folder that networks.py wrote")
    parser.add_argument("--keep", help="write the parts that the program computed here, and read them from here if they are there")
    options = parser.parse_args()
    if options.keep and os.path.exists(options.keep):
        return json.load(open(options.keep))
    parts = parts_of(options.program, options.bases, labels())
    if options.keep:
        json.dump(parts, open(options.keep, "w"), indent=1)
    return parts


def predict(p, x, work):
    """By a fit: the smallest and the largest base network, beyond which it is not extrapolated, the exponent and the weights."""
    return np.clip(work, p[0], p[1]) ** -p[2] * (x @ p[3:])


def least_squares(gram, right, w):
    """One weight after another, none below zero."""
    for _ in range(300):
        before = w.copy()
        for k in range(len(w)):
            w[k] = max(0.0, (right[k] - gram[k] @ w + gram[k, k] * w[k]) / gram[k, k])
        if np.max(np.abs(w - before)) < 1e-6:
            break
    return w


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
            w = least_squares(z.T @ (z * trust[:, None]) + ridge * np.diag(spread ** 2), z.T @ (target * trust), w)
            off = np.abs(z @ w - target)
            trust = 1 / np.maximum(1, off / 0.5)
        cost = np.mean(np.minimum(off ** 2, off - 0.25)) + ridge * np.mean((spread * w) ** 2) / len(y)
        if best is None or cost < best[0]:
            best = cost, np.concatenate([[work.min(), work.max(), spare], w])
    return best[1]


def ranks(v):
    order = np.argsort(v, kind="stable")
    r = np.empty(len(v))
    r[order] = np.arange(len(v))
    return r


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1]) if len(a) > 2 else float("nan")


def table(rows, parts):
    """Arrays with a row for each network: the guard's parts, the original's work in billions, the points lost, the base network."""
    of = [parts[f"{b} {n}"] for b, n, _, _ in rows]
    return (np.array([[p[k] for k in PARTS] for p in of]), np.array([p["original_macs"] / 1e9 for p in of]),
            np.minimum(np.array([r[3] for r in rows]), CAP), np.array([r[0] for r in rows]))


def left_out(labelled, columns, seen):
    """What fits to the networks that are `seen`, without the base network of each, predict of all networks."""
    x, work, y, base = labelled
    predicted = np.zeros(len(y))
    for b in sorted(set(base)):
        others = (base != b) & seen
        predicted[base == b] = predict(fit(x[others][:, columns], work[others], y[others]), x[base == b][:, columns], work[base == b])
    return predicted


def by_base(values, base):
    """The mean over base networks, however many networks each has."""
    return np.mean([np.mean(values[base == b]) for b in sorted(set(base))])


def half_width(off, base):
    """The smallest share of 1 + prediction within which nine of ten errors are, as a mean over base networks."""
    return next(h for h in np.arange(0.1, 2, 0.01) if by_base(off <= h, base) >= 0.9)


def choice(labelled, is_new):
    """Prints how well older labels predict extracted networks, with the part for widths and without it."""
    _, _, y, base = labelled
    every = list(range(len(PARTS)))
    for name, columns in (("without widths", [c for c in every if PARTS[c] != "widths"]), ("with widths", every)):
        off = y - left_out(labelled, columns, ~is_new)
        old, new = ~is_new, is_new
        print(f"{name:14} fitted to older labels, base left out: mean error {np.mean(np.abs(off[old])):.3f} (mean over bases "
              f"{by_base(np.abs(off[old]), base[old]):.3f}), extracted networks {np.mean(np.abs(off[new])):.3f}, of which bias {np.mean(off[new]):+.3f}")
        p = fit(labelled[0][old][:, columns], labelled[1][old], y[old])
        off = y[new] - predict(p, labelled[0][new][:, columns], labelled[1][new])
        print(f"{'':14} fitted to all older labels: extracted networks {np.mean(np.abs(off)):.3f}, of which bias {np.mean(off):+.3f}")


def half_widths_without(labelled):
    """By base network: the half width that all other base networks give, so that no network takes part in choosing the interval by which it is judged."""
    x, work, y, base = labelled
    halves = {}
    for b in sorted(set(base)):
        its = base != b
        others = x[its], work[its], y[its], base[its]
        predicted = left_out(others, list(range(len(PARTS))), np.ones(len(others[2]), bool))
        halves[b] = half_width(np.abs(predicted - others[2]) / (1 + predicted), others[3])
    return halves


def highest_correlation(lost, seeds):
    """The correlation that exact predictions would have with these losses, because a training run that is repeated does not reach the same accuracy."""
    noise = np.mean(TRAINING_ERROR ** 2 / seeds)
    return np.sqrt(max(0.0, 1 - noise / np.var(lost)))


def report(labelled, sizes, seeds):
    """Prints the table of base networks that are left out, and the interval."""
    _, _, y, base = labelled
    predicted = left_out(labelled, list(range(len(PARTS))), np.ones(len(y), bool))
    off = np.abs(predicted - y) / (1 + predicted)
    half, without = half_width(off, base), half_widths_without(labelled)
    unseen = off <= np.array([without[b] for b in base])
    print("| left out | networks | Spearman | highest possible | #Params | #MACs | mean absolute error | within the interval | interval chosen without it |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for b in [*sorted(set(base)), None]:
        its = base == b if b else np.ones(len(y), bool)
        rank = [spearman(predicted[its], y[its]), highest_correlation(y[its], seeds[its]), *(spearman(-sizes[its, i], y[its]) for i in (0, 1))]
        print(f"| {b or 'all'} | {its.sum()} | " + " | ".join(f"{r:.2f}" for r in rank)
              + f" | {np.mean(np.abs(predicted - y)[its]):.2f} | {100 * np.mean(off[its] <= half):.0f}% | {100 * np.mean(unseen[its]):.0f}% |")
    print(f"mean over base networks: error {by_base(np.abs(predicted - y), base):.2f}, within the interval {100 * by_base(off <= half, base):.0f}%, "
          f"within intervals chosen without the base network {100 * by_base(unseen, base):.0f}%")
    print(f"relative_error = label_error = {half:.2f}")


def main():
    parts = parts_of_labels(__doc__)
    rows = [r for r in labels() if f"{r[0]} {r[1]}" in parts]
    labelled, new = table(rows, parts), extracted()
    print(f"{len(rows)} networks of {len(set(labelled[3]))} base networks")
    choice(labelled, np.array([r[:2] in new for r in rows]))
    p = fit(*labelled[:3])
    print(f"min_work = {p[0]:.3f}, max_work = {p[1]:.3f}, spare = {p[2]:.3f}, " + ", ".join(f"{k}_weight = {w:.3f}" for k, w in zip(PARTS, p[3:])))
    report(labelled, np.array([[parts[f"{b} {n}"][k] for k in ("parameters", "macs")] for b, n, _, _ in rows]), np.array(seeds_of(rows)))


if __name__ == "__main__":
    sys.exit(main())
