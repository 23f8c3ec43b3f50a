#!/usr/bin/env python3
"""Holds measures and guards against trained networks: how well does each tell the networks that lose more than a point?

    python3 judge.py LOOPEGG RESULTS.jsonl SCORES.json [--data CIFAR_FOLDER] [--seeds 4] [--batch 16]

RESULTS.jsonl is what train_variants.py wrote. Their plans are scored with `LOOPEGG score` (once: SCORES.json keeps the answer), and a table
of areas under the curve is printed, over all networks, over uniform ones and over mixtures. 0.5 is chance, 1 tells them all.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile


LATER = {"group8-stages34", "s1-stages34", "hidden4-stages34", "group4-stages12", "every-second-stages34", "half-input-stages12"}


def area(values, lost):
    safe = [v for v, l in zip(values, lost) if not l]
    bad = [v for v, l in zip(values, lost) if l]
    if not safe or not bad:
        return math.nan
    return sum((s > b) + 0.5 * (s == b) for s in safe for b in bad) / (len(safe) * len(bad))


def later(name):
    """Networks that were drawn and trained after the others, and never fitted on."""
    return name in LATER or name.startswith("mix") and name[-1] in "678"


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    for r, i in enumerate(order):
        out[i] = r
    return out


def score(options, plans):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.loopegg, "score", "zoo:resnet34-cifar10", "--json", "--no-store", "--raw", "--guard", "fisher-paper",
                   *(a for m in options.measures.split(",") for a in ("--measure", m)), "--seeds", str(options.seeds), "--batch", str(options.batch)]
        if options.data:
            command += ["--data", options.data]
        for name, plan in plans.items():
            path = os.path.join(folder, name + ".json")
            json.dump(plan, open(path, "w"))
            command += ["--plan", path]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    for v in answer["variants"]:
        v["plan"] = os.path.basename(v["plan"])[:-5]
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loopegg"), parser.add_argument("results"), parser.add_argument("scores")
    parser.add_argument("--data", default=""), parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--measures", default="fisher,fisher-layer,naswot,params,macs"), parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    trained, plans = {}, {}
    for line in open(options.results):
        r = json.loads(line)
        trained.setdefault(r["name"], []).append(r["accuracy"])
        plans[r["name"]] = r["plan"]
    if not os.path.exists(options.scores):
        json.dump(score(options, {n: p for n, p in plans.items() if n != "original"}), open(options.scores, "w"), indent=1)
    answer = json.load(open(options.scores))
    base = sum(trained["original"]) / len(trained["original"])
    rows = []
    for v in answer["variants"]:
        name = v["plan"]
        loss = base - sum(trained[name]) / len(trained[name])
        values = {f"{m} (more is better)": v["measures"][m]["ratio"] for m in v["measures"] if v["measures"][m]["ratio"] is not None}
        values |= {f"{m} (two-sided)": -abs(math.log(v["measures"][m]["ratio"])) for m in ("fisher", "fisher-layer", "snip", "grad-norm") if m in v["measures"]}
        values["codes tell images apart"] = -v["guards"]["fisher-band"]["evidence"]["parts"]["codes"]
        values |= {f"guard {g}": v["guards"][g]["margin"] for g in v["guards"]}
        rows.append((name, loss, v, values))
    for name in ("fisher (two-sided)", "macs (more is better)"):
        for r, value in zip(rows, ranks([x[3][name] for x in rows])):
            r[3]["rank sum: two-sided fisher + macs"] = r[3].get("rank sum: two-sided fisher + macs", 0) + value
    print(f"original {base:.2f}% (" + ", ".join(f"{a:.2f}" for a in trained["original"]) + ")\n")
    print("| network | points lost | MACs kept | Fisher ratio | fisher-band keeps | fisher-band | fisher-paper |\n|---|---|---|---|---|---|---|")
    for name, loss, v, _ in sorted(rows, key=lambda r: -r[1]):
        band, paper = v["guards"]["fisher-band"], v["guards"]["fisher-paper"]
        word = {True: "admits", False: "refuses"}
        print(f"| {name} | {loss:.2f} | {v['measures']['macs']['ratio']:.2f} | {v['measures']['fisher']['ratio']:.2f} | {band['evidence']['kept']:.2f} | {word[band['allowed']]} | {word[paper['allowed']]} |")
    kinds = {"all": lambda n: True, "uniform": lambda n: not n.startswith("mix"), "mixtures": lambda n: n.startswith("mix"), "drawn later": later}
    print("\n| detector of a loss above one point | " + " | ".join(f"{k} ({sum(f(r[0]) for r in rows)})" for k, f in kinds.items()) + " |\n|---|" + "---|" * len(kinds))
    for name in rows[0][3]:
        cells = []
        for f in kinds.values():
            some = [r for r in rows if f(r[0])]
            cells.append(area([r[3][name] for r in some], [r[1] > 1 for r in some]))
        print(f"| {name} | " + " | ".join("-" if math.isnan(c) else f"{c:.2f}" for c in cells) + " |")


if __name__ == "__main__":
    main()
