#!/usr/bin/env python3
"""Prints the tables of this page from networks.jsonl, ../accuracy/labels.jsonl and, where it is there, times.json.

    python3 table.py
"""
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ACCURACY = os.path.join(HERE, "..", "accuracy")
sys.path.insert(0, ACCURACY)
from compare import STUDENT  # noqa: E402

# What the extracted networks are compared with: answers of the genetic search of version 0.1, and uniform scalings.
GENETIC = {"resnet34-cifar10": ["t2-rules-8", "found5", "t32-rules-17", "default3", "default4", "default5"],
           "wide-resnet22-4-cifar10": ["found-253", "m3-rules-8"], "wide-resnet16-8-cifar10": ["m3-rules-5"]}
UNIFORM = {"resnet34-cifar10": ["width5", "width5-depth84", "width6-depth50", "width5-depth67", "width4", "width3"],
           "wide-resnet22-4-cifar10": ["width6", "width5", "width5-depth67"], "wide-resnet16-8-cifar10": ["width4"]}
SEEDS = range(6)


def rows(file):
    with open(file) as f:
        return [json.loads(line) for line in f]


def trained():
    """By base network and name: the row of a training by seed."""
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
        times = os.path.join(HERE, "times.json")
        self.times = json.load(open(times)) if os.path.exists(times) else {}

    def ms(self, base, name):
        t = self.times.get(base, {}).get(name)
        return f"{t['median_ms']:.2f} ({t['iqr_ms']:.2f})" if t else ""

    def all_networks(self, base):
        own = [(r["name"], "extracted", r) for r in self.extracted if r["base"] == base]
        return own + [(n, kind, None) for kind, by in (("genetic", GENETIC), ("uniform", UNIFORM)) for n in by[base]]

    def networks(self, base):
        original = self.found[base, "original"]
        print(f"\n### {base}\n\n| network | how | expected loss | MACs | ms (iqr) | `short` (seeds) | lost (95% interval) |\n|---|---|---|---|---|---|---|")
        print(self.row(base, "original", "", "", original, ""))
        macs = lambda n: -next(iter(self.found[base, n[0]].values()))["macs"]  # noqa: E731
        for name, how, own in sorted((n for n in self.all_networks(base) if (base, n[0]) in self.found), key=macs):
            expected = f"{own['expected']['points']:.2f} ({own['expected']['low']:.2f} to {own['expected']['high']:.2f})" if own else ""
            mean, half, _ = paired(original, self.found[base, name])
            print(self.row(base, name, how, expected, self.found[base, name], f"{mean:.2f} ({mean - half:.2f} to {mean + half:.2f})"))

    def row(self, base, name, how, expected, by_seed, lost):
        accuracy = statistics.mean(r["accuracy"] for r in by_seed.values())
        macs = next(iter(by_seed.values()))["macs"]
        return f"| {name} | {how} | {expected} | {macs / 1e6:.0f} M | {self.ms(base, name)} | {accuracy:.2f}% ({len(by_seed)}) | {lost} |"

    def pairs(self, base):
        print("\n| extracted | MACs | compared with | MACs | points better (95% interval) |\n|---|---|---|---|---|")
        macs = lambda name: next(iter(self.found[base, name].values()))["macs"]  # noqa: E731
        for name, how, _ in self.all_networks(base):
            if how != "extracted" or (base, name) not in self.found:
                continue
            for kind in ("genetic", "uniform"):
                others = [n for n, k, _ in self.all_networks(base) if k == kind and (base, n) in self.found]
                near = min(others, key=lambda n: abs(self.cost(base, n, macs) / self.cost(base, name, macs) - 1))
                mean, half, _ = paired(self.found[base, name], self.found[base, near])
                print(f"| {name} | {macs(name) / 1e6:.0f} M | {near}, {kind} | {macs(near) / 1e6:.0f} M | {interval(mean, half)} |")

    def cost(self, base, name, macs):
        """Milliseconds where all were timed, and otherwise multiply-accumulates."""
        t = self.times.get(base, {})
        return t[name]["median_ms"] if all(n in t for n, _, _ in self.all_networks(base)) else macs(name)


def main():
    page = Page()
    for base in GENETIC:
        page.networks(base)
        page.pairs(base)


if __name__ == "__main__":
    main()
