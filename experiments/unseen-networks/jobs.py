#!/usr/bin/env python3
"""Collects the networks that runs of extract.sh returned, and writes their training runs, those of the originals, and those of uniform scalings.

    python3 jobs.py RUNS networks.jsonl jobs.jsonl

The jobs are ordered by seed, so that training that is cut off leaves pairs.
"""
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "extracted-networks"))
import collect  # noqa: E402

SEEDS = range(4)
UNIFORM = {"resnet18-cifar10": (6, 5, 4, 3), "vgg11-cifar10": (6, 5, 4, 3), "regnet-cifar10": (7, 6, 5, 4)}     # eighths of each width


def main():
    runs, networks, jobs = sys.argv[1:]
    rows = sorted((collect.row_of(os.path.dirname(r)) for r in glob.glob(os.path.join(runs, "*", "*", "result.json"))), key=lambda r: (r["base"], -r["macs"]))
    with open(networks, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
    networks_to_train = [("original", base, {"steps": []}) for base in UNIFORM] + [(r["name"], r["base"], r["plan"]) for r in rows]
    networks_to_train += [(f"width{e}", base, collect.uniform_plan(base, e)) for base, eighths in UNIFORM.items() for e in eighths]
    with open(jobs, "w") as f:
        f.writelines(json.dumps({"name": n, "base": b, "plan": p, "seed": s}) + "\n" for s in SEEDS for n, b, p in networks_to_train)
    for r in rows:
        print(f"{r['base']} {r['name']}: {r['macs'] / 1e6:.0f} M, expected to lose {r['expected']['points']:.2f} points, {r['latency']['median_ms']:.2f} ms")


if __name__ == "__main__":
    main()
