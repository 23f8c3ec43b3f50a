#!/usr/bin/env python3
"""Prints the tables of this page from labels.jsonl and estimates.json. The expected losses are those of checker/loss.py. With the program, it first estimates how
long the networks that estimates.json lacks take on i7, with the first schedules.

    python3 table.py [LOOPEGG]
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "checker"), os.path.join(HERE, "..", "accuracy")]
import graphs  # noqa: E402
import loss  # noqa: E402
import networks as N  # noqa: E402
from fit import spearman  # noqa: E402

ESTIMATES, LABELS = os.path.join(HERE, "estimates.json"), os.path.join(HERE, "labels.jsonl")
SAME = 1.03     # estimates that differ by less are the same latency


class Trained:
    """A network, its accuracy by seed, and what the guard expects it to lose."""
    def __init__(self, row):
        self.name, self.macs, self.parameters, self.by_seed = row["name"], row["macs"], row["params"], {}
        made, original = (loss.Measured(graphs.Network.read(g)) for g in (N.apply_plan(N.BASES[row["base"]], row["plan"]), N.BASES[row["base"]]))
        self.expected = loss.expected_loss(original, made)

    def accuracy(self):
        return statistics.mean(self.by_seed.values())

    def better_than(self, other):
        """By how many points on average, and over how many seeds that both have."""
        gaps = [self.by_seed[s] - other.by_seed[s] for s in sorted(set(self.by_seed) & set(other.by_seed))]
        return statistics.mean(gaps), len(gaps)


def trained():
    """By base network and name."""
    found = {}
    with open(LABELS) as f:
        for r in map(json.loads, f):
            own = found.setdefault(r["base"], {})
            own.setdefault(r["name"], Trained(r)).by_seed[r["seed"]] = r["accuracy"]
    return found


def comparisons(base, by_name, ms):
    """Each extracted network compared with the most accurate uniform scaling that takes no longer, and the one without the floor with the one that has it."""
    for name in sorted(n for n in by_name if n.startswith(("floor", "free"))):
        scalings = [n for n in by_name.values() if n.name.startswith("width") and ms[n.name] <= SAME * ms[name]]
        others = [max(scalings, key=Trained.accuracy)] if scalings else []
        others += [by_name[n] for n in (name.replace("free", "floor"),) if n != name]
        for other in others:
            gap, seeds = by_name[name].better_than(other)
            print(f"| {base} | {name} | {ms[name]:.2f} | {other.name} | {ms[other.name]:.2f} | {gap:+.2f} ({seeds}) |")


def networks(base, by_name, ms):
    print(f"\n## {base}\n\n| network | MACs | ms on i7, estimated | expected loss | `short`, by seed | lost (seeds) |\n|---|---|---|---|---|---|")
    for n in sorted(by_name.values(), key=lambda n: -n.macs):
        gap, seeds = by_name["original"].better_than(n)
        expected = "{points:.2f} ({low:.2f} to {high:.2f})".format(**n.expected)
        print(f"| {n.name} | {n.macs / 1e6:.0f} M | {ms[n.name]:.2f} | " + (f"{expected} | " if n.name != "original" else " | ")
              + ", ".join(f"{n.by_seed[s]:.2f}%" for s in sorted(n.by_seed)) + (f" | {gap:.2f} ({seeds}) |" if n.name != "original" else " | |"))


def guard(found):
    """How well the guard predicts networks of base networks that were held out."""
    print("\n## Errors of the guard\n\n| base network | networks | Spearman | #Params | #MACs | mean error | mean absolute error | within the interval |"
          "\n|---|---|---|---|---|---|---|---|")
    for base, by_name in found.items():
        its = [n for n in by_name.values() if n.name != "original"]
        lost = [by_name["original"].better_than(n)[0] for n in its]
        off = [gap - n.expected["points"] for gap, n in zip(lost, its)]
        inside = sum(n.expected["low"] <= gap <= n.expected["high"] for gap, n in zip(lost, its))
        rank = " | ".join(f"{spearman(by, lost):.2f}" for by in ([n.expected["points"] for n in its], [-n.parameters for n in its], [-n.macs for n in its]))
        print(f"| {base} | {len(its)} | {rank} | {statistics.mean(off):+.2f} | {statistics.mean(map(abs, off)):.2f} | {inside} of {len(its)} |")


def milliseconds(program, graph):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.json")
        with open(file, "w") as f:
            json.dump(graph, f)
        return json.loads(subprocess.run([program, "measure", file, "--target", "i7", "--json", "-q"], check=True, capture_output=True).stdout)["median_ms"]


def estimate_missing(program):
    known = json.load(open(ESTIMATES)) if os.path.exists(ESTIMATES) else {}
    for job in map(json.loads, open(LABELS)):
        estimates = known.setdefault(job["base"], {})
        if job["name"] not in estimates:
            estimates[job["name"]] = milliseconds(program, N.apply_plan(N.BASES[job["base"]], job["plan"]))
            with open(ESTIMATES, "w") as f:
                json.dump(known, f, indent=1)


def main():
    if len(sys.argv) > 1:
        estimate_missing(sys.argv[1])
    found, estimates = trained(), json.load(open(ESTIMATES))
    guard(found)
    print("\n## At equal latency\n\n| base network | extracted | ms | compared with | ms | points better (paired seeds) |\n|---|---|---|---|---|---|")
    for base in found:
        comparisons(base, found[base], estimates[base])
    for base in found:
        networks(base, found[base], estimates[base])


if __name__ == "__main__":
    main()
