#!/usr/bin/env python3
"""Reads choices.jsonl and says which criterion chooses better at equal sizes, and which numbers tell the loss over sizes.

    python3 judge.py choices.jsonl [--program build/src/cli/loopegg] [--keep parts.json]

Choices: for each cell (base network, sizes, seed, epochs), the accuracy of one criterion less that of another; of several random draws, the mean.
A gain is the mean over cells, with Student's 95% interval; cells of two seeds count once. "bases" is the interval over the means of base networks.
Sizes: Spearman's correlation of each number with the points lost, for each base network, and the partial one where the expected loss, the
parameters and the multiply-accumulates are held fixed. Then each number is added to a fit over sizes, and base networks left out are predicted.
--program asks it for the expected loss (fit.py), else only parameters and multiply-accumulates represent sizes.
Corrections: the predictor to which a power of one number is added, predicted = k * predictor^(1 - c) * number^c. k and c are fitted to the other base
networks, by least absolute error. The level k belongs to the recipe, so it is fitted for the predictor alone as well.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "accuracy"), os.path.join(HERE, "..", "..", "fisher", "truth")]
import fit  # noqa: E402

SHORT = 4
KINDS = {"channels": ("hidden", "width", "stream", "both"), "branches": ("branches", "anywhere"), "connections": ("group",), "all of them": ("mixed", "drawn")}
# By degrees of freedom, the 97.5% point of Student's distribution; beyond them 1.96 + 2.4 / degrees is near enough.
STUDENT = [math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]


def interval(values):
    """"+0.12 (-0.03 to 0.27), n 9"."""
    values = list(values)
    if len(values) < 2:
        return f"{values[0]:+.2f} (one)" if values else "nothing"
    degrees = len(values) - 1
    half = (STUDENT[degrees] if degrees < len(STUDENT) else 1.96 + 2.4 / degrees) * statistics.stdev(values) / len(values) ** 0.5
    mean = statistics.mean(values)
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f}), n {len(values)}"


def read(path):
    """Originals by base network, and students; a choice that equals another one gets the line of that one."""
    originals, students, alike = {}, {}, []
    for line in open(path):
        r = json.loads(line)
        if r["cell"] == "original":
            originals[r["base"]] = r
        elif "same_as" in r:
            alike.append(r)
        else:
            students[r["base"], r["cell"], r["seed"], r["epochs"], r["criterion"]] = r
    for r in alike:
        of = students.get((r["base"], r["cell"], r["seed"], r["epochs"], r["same_as"]))
        if of:
            students[r["base"], r["cell"], r["seed"], r["epochs"], r["criterion"]] = of
    return originals, students


def kind_of(cell):
    return next(k for k, names in KINDS.items() if cell.split("-")[0] in names)


def cells_of(students, epochs, field):
    """By (base, cell): by criterion, the mean over seeds and random draws of a field. Only seeds are averaged that both sides of a pair have."""
    cells = {}
    for (base, cell, seed, length, criterion), r in students.items():
        if length == epochs:
            cells.setdefault((base, cell), {}).setdefault(criterion.rstrip("0123456789"), {}).setdefault(seed, []).append(r[field])
    return cells


def gains(cells, one, other):
    """By (base, cell): what `one` has over `other`."""
    out = {}
    for at, by in cells.items():
        seeds = by.get(one, {}).keys() & by.get(other, {}).keys()
        if seeds:
            out[at] = statistics.mean(statistics.mean(by[one][s]) - statistics.mean(by[other][s]) for s in seeds)
    return out


PAIRS = (("fisher", "magnitude"), ("fisher", "first"), ("fisher", "random"), ("magnitude", "random"), ("magnitude", "first"), ("gate", "fisher"),
         ("gate", "magnitude"), ("gate", "random"), ("first", "random"), ("fisher", "anti"))


def tell_choices(students, epochs):
    for field, scale, what in (("accuracy", 1, "points of accuracy after fine-tuning"), ("loss", -100, "hundredths of test loss after fine-tuning (less is a gain)"),
                               ("settled_accuracy", 1, "points of accuracy before fine-tuning, norms settled")):
        print(f"\n{what}, {epochs} epochs")
        cells = cells_of(students, epochs, field)
        for one, other in PAIRS:
            by_cell = {at: scale * g for at, g in gains(cells, one, other).items()}
            if not by_cell:
                continue
            by_base = {}
            for (base, _), g in by_cell.items():
                by_base.setdefault(base, []).append(g)
            print(f"  {one} over {other}: {interval(by_cell.values())}; bases {interval(map(statistics.mean, by_base.values()))}; "
                  f"better in {sum(g > 0 for g in by_cell.values())}, equal in {sum(g == 0 for g in by_cell.values())}")
            if field == "settled_accuracy":
                continue
            for kind in KINDS:
                if of := [g for (_, cell), g in by_cell.items() if kind_of(cell) == kind]:
                    print(f"      {kind}: {interval(of)}")
            if one == "fisher":
                print("      " + "; ".join(f"{b} {interval(g)}" for b, g in sorted(by_base.items())))


def tell_noise(students):
    pairs = [(r, students.get((b, c, 1, e, k))) for (b, c, s, e, k), r in students.items() if s == 0]
    apart = [r["accuracy"] - t["accuracy"] for r, t in pairs if t]
    if len(apart) > 2:
        print(f"\nOne choice trained twice with other batches: standard deviation of one training {statistics.pstdev(apart) / 2 ** 0.5:.2f} points ({len(apart)} pairs)")


def tell_lengths(students):
    """Whether 16-epoch training runs rank as long ones do."""
    lengths = sorted({k[3] for k in students})
    for long in lengths[1:]:
        both = [(k, students[k[:3] + (lengths[0],) + k[4:]], r) for k, r in students.items() if k[3] == long and k[:3] + (lengths[0],) + k[4:] in students]
        if len(both) < 4:
            continue
        short_acc, long_acc = (np.array([pair[i]["accuracy"] for pair in both]) for i in (1, 2))
        groups = {}
        for i, (k, _, _) in enumerate(both):
            groups.setdefault(k[:2], []).append(i)
        inside = np.concatenate([[short_acc[g] - short_acc[g].mean(), long_acc[g] - long_acc[g].mean()] for g in groups.values()], 1)
        print(f"\n{lengths[0]} and {long} epochs, {len(both)} networks: rank correlation {fit.spearman(short_acc, long_acc):.2f}; "
              f"within cells of equal sizes {np.corrcoef(inside)[0, 1]:.2f} (linear)")


# ---- sizes -------------------------------------------------------------------------------------------------------------------

def rows_of(originals, students):
    """One row for each short training: base, plan, points lost and numbers that may tell them."""
    rows = []
    for (base, cell, seed, epochs, criterion), r in students.items():
        if epochs != SHORT or seed or base not in originals:
            continue
        o = originals[base]
        kept = {k: max(v, 1e-6) for k, v in r["features"].items()}
        rows.append({"base": base, "cell": cell, "criterion": criterion, "plan": r["plan"], "lost": o["accuracy"] - r["accuracy"], "original_macs": o["macs"],
                     "macs": -math.log(r["macs"] / o["macs"]), "params": -math.log(r["params"] / o["params"]),
                     "settled loss": r["settled_train_loss"] - o["train_loss"], "cut loss": r["cut_train_loss"] - o["train_loss"],
                     **{k.replace("_", " "): v if k.endswith("lost") else -math.log(kept[k]) for k, v in r["features"].items()}})
    return rows


def add_expected(rows, options):
    import cells as C
    plans = {}
    for r in rows:
        r["plan name"] = plans.setdefault((r["base"], json.dumps(r["plan"])), f"p{len(plans)}")
    keep = options.keep and os.path.exists(options.keep) and json.load(open(options.keep))
    if not keep:
        with tempfile.TemporaryDirectory() as folder:
            for base in {r["base"] for r in rows}:
                with open(os.path.join(folder, base + ".json"), "w") as f:
                    json.dump(C.BASES[base], f)
            keep = fit.parts_of(options.program, folder, [(b, name, json.loads(text), 0) for (b, text), name in plans.items()])
        if options.keep:
            with open(options.keep, "w") as f:
                json.dump(keep, f, indent=1)
    for r in rows:
        if of := keep.get(f"{r['base']} {r['plan name']}"):
            r["expected"] = of["expected"]


def partial_spearman(a, b, held):
    """The rank correlation of what is left of a and b when a linear fit to the ranks of `held` is taken away."""
    x = np.column_stack([np.ones(len(a))] + [fit.ranks(h) for h in held])
    left = [r - x @ np.linalg.lstsq(x, r, rcond=None)[0] for r in (fit.ranks(a), fit.ranks(b))]
    return float(np.corrcoef(*left)[0, 1])


def predicted_left_out(rows, names, bases):
    """Predictions of the root of the loss for base networks that the fit has not seen."""
    target = np.sqrt(np.maximum([r["lost"] for r in rows], 0.0))
    x = np.column_stack([np.ones(len(rows))] + [np.sqrt(np.maximum([r[n] for r in rows], 0.0)) for n in names] + [[math.log(r["original_macs"]) for r in rows]])
    out = np.zeros(len(rows))
    for b in set(bases):
        its = bases == b
        spread = np.diag(np.concatenate([[0], np.ones(x.shape[1] - 1)]))
        out[its] = x[its] @ np.linalg.solve(x[~its].T @ x[~its] + spread, x[~its].T @ target[~its])
    return np.maximum(out, 0) ** 2


def tell_sizes(rows):
    sizes = ["macs", "params"] + (["expected"] if all("expected" in r for r in rows) else [])
    numbers = [k for k, v in rows[0].items() if isinstance(v, float) and k not in ("lost", "expected", "macs", "params")]
    bases, lost = np.array([r["base"] for r in rows]), np.array([r["lost"] for r in rows])
    value = {n: np.array([r.get(n, math.nan) for r in rows]) for n in sizes + numbers}
    # All networks, and those that one criterion chose, so that only sizes differ.
    for what, chosen in (("all criteria", np.full(len(rows), True)), ("chosen by fisher", np.array([r["criterion"] == "fisher" for r in rows])),
                         ("chosen by magnitude", np.array([r["criterion"] == "magnitude" for r in rows]))):
        print(f"\nRank correlation with the points lost, {what}: " + ", ".join(f"{b} n {np.sum((bases == b) & chosen)}" for b in sorted(set(bases))) + "; last: all else fixed")
        for n in sizes + numbers:
            by = [fit.spearman(value[n][its], lost[its]) for b in sorted(set(bases)) for its in [(bases == b) & chosen] if np.isfinite(value[n][its]).all()]
            rest = [partial_spearman(value[n][its], lost[its], [value[s][its] for s in sizes if s != n]) for b in sorted(set(bases))
                    for its in [(bases == b) & chosen] if np.isfinite(value[n][its]).all() and its.sum() > 8]
            print(f"  {n:24} " + " ".join(f"{v:5.2f}" for v in by) + f"   mean {statistics.mean(by):5.2f}" + (f"   partial {interval(rest)}" if rest else ""))
    print("\nBase networks left out: the size alone, and with one number more")
    for n in [None] + numbers:
        names = sizes + ([n] if n else [])
        if not all(np.isfinite(value[m]).all() for m in names):
            continue
        predicted = predicted_left_out(rows, names, bases)
        print(f"  {'+ ' + n if n else 'sizes':26} mean absolute error {np.mean(np.abs(predicted - lost)):.2f}; Spearman "
              + " ".join(f"{fit.spearman(predicted[bases == b], lost[bases == b]):.2f}" for b in sorted(set(bases))))


def report_within_cells(rows):
    """Whether a number orders the choices of one size: the mean rank correlation over cells, in which sizes are equal."""
    print("\nRank correlation with the points lost within cells of equal sizes")
    cells = {}
    for r in rows:
        cells.setdefault((r["base"], r["cell"]), []).append(r)
    for n in [k for k, v in rows[0].items() if isinstance(v, float) and k not in ("lost", "expected", "macs", "params")]:
        found = []
        for of in cells.values():
            values = [(r[n], r["lost"]) for r in of if math.isfinite(r.get(n, math.nan))]
            if len(values) > 2 and all(np.std(column) > 1e-9 for column in zip(*values)):
                found.append(fit.spearman(*map(np.array, zip(*values))))
        if len(found) > 2:
            print(f"  {n:24} {interval(found)} cells")


def corrected_left_out(predictor, number, lost, bases):
    """Predictions for base networks left out, by the best k and c for the others; without a number, by the best k."""
    out = np.zeros(len(lost))
    for b in set(bases):
        others = bases != b
        powers = [predictor ** (1 - c) * number ** c for c in np.arange(0, 1.01, 0.05)] if number is not None else [predictor]
        _, i, k = min((np.mean(np.abs(k * p[others] - lost[others])), i, k) for i, p in enumerate(powers) for k in np.arange(0.3, 4.01, 0.05))
        out[~others] = k * powers[i][~others]
    return out


def report_corrections(rows):
    predictors = ["expected", "macs", "params"] if all("expected" in r for r in rows) else ["macs", "params"]
    numbers = [None, "links fisher", "links fisher mean", "links magnitude", "channels fisher mean", "channels magnitude mean"]
    by_fisher = [r for r in rows if r["criterion"] == "fisher"]
    narrowed = [r for r in by_fisher if r["channels fisher mean"] > 0]
    for what, chosen in (("all criteria", rows), ("chosen by fisher", by_fisher), ("chosen by fisher, some channels gone", narrowed)):
        bases, lost = np.array([r["base"] for r in chosen]), np.array([r["lost"] for r in chosen])
        names = sorted(set(bases))
        print(f"\nCorrections, base networks left out, {what}, n {len(chosen)}: mean absolute error, by base network, Spearman")
        for p in predictors:
            for n in numbers:
                predicted = corrected_left_out(np.array([r[p] for r in chosen]), n and np.maximum([r[n] for r in chosen], 1e-3), lost, bases)
                print(f"  {p + (f' with {n}' if n else ''):38} {np.mean(np.abs(predicted - lost)):.2f}   "
                      + " ".join(f"{np.mean(np.abs(predicted - lost)[bases == b]):.2f}" for b in names) + "   "
                      + " ".join(f"{fit.spearman(predicted[bases == b], lost[bases == b]):.2f}" for b in names))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--program")
    parser.add_argument("--keep", help="cache the program's answers in this file")
    options = parser.parse_args()
    originals, students = read(options.results)
    own = {id(r) for r in students.values()}
    print(f"{len(own)} trainings of {len(originals)} originals: " + ", ".join(f"{b} {o['accuracy']:.2f}%" for b, o in sorted(originals.items())))
    for epochs in sorted({k[3] for k in students}):
        tell_choices(students, epochs)
    tell_noise(students)
    tell_lengths(students)
    rows = rows_of(originals, students)
    if options.program or options.keep:
        add_expected(rows, options)
    if len(rows) > 20:
        tell_sizes(rows)
        report_within_cells(rows)
        report_corrections(rows)


if __name__ == "__main__":
    main()
