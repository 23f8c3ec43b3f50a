#!/usr/bin/env python3
"""Prints the tables of this page from networks.jsonl, estimates.json and ../accuracy/labels.jsonl. With the program, it first estimates what estimates.json lacks:
how long each network takes on i7 with the first schedules, and what the guard expects of it.

    python3 table.py [LOOPEGG]
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ACCURACY = os.path.join(HERE, "..", "accuracy")
ESTIMATES = os.path.join(HERE, "estimates.json")
sys.path.insert(0, ACCURACY)
import networks as N  # noqa: E402
from compare import STUDENT  # noqa: E402

# What the extracted networks are compared with: answers of the genetic search of version 0.1, and uniform scalings.
GENETIC = {"resnet34-cifar10": ["t2-rules-8", "found5", "t32-rules-17", "default3", "default4", "default5"],
           "wide-resnet22-4-cifar10": ["found-253", "m3-rules-8"], "wide-resnet16-8-cifar10": ["m3-rules-5"]}
UNIFORM = {"resnet34-cifar10": ["width5", "width5-depth84", "width6-depth50", "width5-depth67", "width4", "width3"],
           "wide-resnet22-4-cifar10": ["width6", "width5", "width4", "width5-depth67"], "wide-resnet16-8-cifar10": ["width4", "width3"]}
SEEDS = range(6)
SAME = 1.03    # estimates that differ by less are the same latency


def rows(file):
    with open(file) as f:
        return [json.loads(line) for line in f]


def trained():
    """By base network and name: the row of a training run by seed."""
    found = {}
    for r in rows(os.path.join(ACCURACY, "labels.jsonl")):
        if r["recipe"] == "short" and r["seed"] in SEEDS:
            found.setdefault((r["base"], r["name"]), {})[r["seed"]] = r
    return found


def paired(one, other):
    """How many points `one` is better than `other`, seed by seed, with the 95% interval."""
    gaps = [one[s]["accuracy"] - other[s]["accuracy"] for s in sorted(set(one) & set(other))]
    half = STUDENT[len(gaps) - 1] * statistics.stdev(gaps) / len(gaps) ** 0.5
    return statistics.mean(gaps), half, len(gaps)


def interval(mean, half):
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


class Page:
    def __init__(self):
        self.found = trained()
        self.extracted = rows(os.path.join(HERE, "networks.jsonl"))
        self.estimates = {}
        if os.path.exists(ESTIMATES):
            with open(ESTIMATES) as f:
                self.estimates = json.load(f)

    def ms(self, base, name):
        return self.estimates[base][name]["ms"]

    def all_networks(self, base):
        own = [(r["name"], "extracted" if r["name"].startswith("extracted") else "extracted, other rules", r) for r in self.extracted if r["base"] == base]
        return own + [(n, kind, None) for kind, by in (("genetic", GENETIC), ("uniform", UNIFORM)) for n in by[base]]

    def networks(self, base):
        original = self.found[base, "original"]
        print(f"\n### {base}\n\n| network | how | expected loss | MACs | ms on i7, estimated | `short` (seeds) | lost (95% interval) |\n|---|---|---|---|---|---|---|")
        print(self.row(base, "original", "", "", original, ""))
        macs = lambda n: -next(iter(self.found[base, n[0]].values()))["macs"]  # noqa: E731
        for name, how, _ in sorted((n for n in self.all_networks(base) if (base, n[0]) in self.found), key=macs):
            e = self.estimates[base][name]["expected"]
            expected = f"{e['points']:.2f} ({e['low']:.2f} to {e['high']:.2f})"
            mean, half, _ = paired(original, self.found[base, name])
            print(self.row(base, name, how, expected, self.found[base, name], f"{mean:.2f} ({mean - half:.2f} to {mean + half:.2f})"))

    def row(self, base, name, how, expected, by_seed, lost):
        macs = next(iter(by_seed.values()))["macs"]
        return f"| {name} | {how} | {expected} | {macs / 1e6:.0f} M | {self.ms(base, name):.2f} | {self.accuracy(base, name):.2f}% ({len(by_seed)}) | {lost} |"

    def pairs(self, base):
        """Each extracted network compared with the most accurate one of each kind that takes no longer (within SAME)."""
        print("\n| extracted | ms | compared with | ms | points better (95% interval), paired seeds |\n|---|---|---|---|---|")
        known = [n for n in self.all_networks(base) if (base, n[0]) in self.found]
        for name in (n for n, how, _ in known if how.startswith("extracted")):
            for kind in ("genetic", "uniform"):
                baselines = [n for n, how, _ in known if how == kind and self.ms(base, n) <= SAME * self.ms(base, name)]
                if baselines:
                    best = max(baselines, key=lambda n: self.accuracy(base, n))
                    mean, half, seeds = paired(self.found[base, name], self.found[base, best])
                    print(f"| {name} | {self.ms(base, name):.2f} | {best}, {kind} | {self.ms(base, best):.2f} | {interval(mean, half)}, {seeds} |")
                else:
                    print(f"| {name} | {self.ms(base, name):.2f} | no {kind} one is as fast | | |")

    def accuracy(self, base, name):
        return statistics.mean(r["accuracy"] for r in self.found[base, name].values())

    def guard(self):
        """How far the guard's expectation is off, by kind of network."""
        off = {}
        for base in GENETIC:
            for name, how, _ in self.all_networks(base):
                expected = self.estimates[base][name]["expected"]
                lost, _, _ = paired(self.found[base, "original"], self.found[base, name])
                off.setdefault(how, []).append((lost - expected["points"], expected["low"] <= lost <= expected["high"]))
        print("## Errors of the guard\n\n| networks | n | loss minus expected loss, mean | smallest and largest | within the guard's interval |\n|---|---|---|---|---|")
        for how, rows in off.items():
            gaps = [gap for gap, _ in rows]
            print(f"| {how} | {len(rows)} | {statistics.mean(gaps):+.2f} | {min(gaps):+.2f} to {max(gaps):+.2f} | {sum(within for _, within in rows)} |")


def answer_of(*command):
    return json.loads(subprocess.run([*command, "--json", "-q"], check=True, capture_output=True, text=True).stdout)


def estimate(program, base, plan):
    with tempfile.TemporaryDirectory() as folder:
        original, model = os.path.join(folder, "original.json"), os.path.join(folder, "model.json")
        for file, graph in (original, N.BASES[base]), (model, N.apply_plan(N.BASES[base], plan)):
            with open(file, "w") as f:
                json.dump(graph, f)
        ms = answer_of(program, "measure", model, "--target", "i7")["median_ms"]
        score = answer_of(program, "score", original, "--variant", model, "--measure", "fisher", "--seeds", "1", "--batch", "2", "--no-store")
    return {"ms": ms, "expected": score["variants"][0]["guards"]["expected-loss"]["evidence"]["loss"]}


def estimate_missing(page, program):
    """Times on i7 with the first schedules, and expected losses. What estimates.json already holds is kept."""
    for base in GENETIC:
        for name, _, own in [("original", "", None)] + page.all_networks(base):
            if name in page.estimates.setdefault(base, {}):
                continue
            plan = own["plan"] if own else next(iter(page.found[base, name].values()))["plan"]
            page.estimates[base][name] = estimate(program, base, plan)
            print(base, name, page.estimates[base][name], flush=True)
            with open(ESTIMATES, "w") as f:
                json.dump(page.estimates, f, indent=1)


def main():
    page = Page()
    if len(sys.argv) > 1:
        estimate_missing(page, sys.argv[1])
    page.guard()
    for base in GENETIC:
        page.networks(base)
        page.pairs(base)


if __name__ == "__main__":
    main()
