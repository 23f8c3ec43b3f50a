#!/usr/bin/env python3
"""Collects the networks that runs of extract.sh returned, and writes the trainings of each.

    python3 collect.py RUNS networks.jsonl jobs.jsonl

RUNS/BASE/NAME is the out folder of one run, and its file `asked` holds the options of the run. Each network is made from its plan a second time, by the reader
of plans in experiments/accuracy/networks.py. It must have the channels, parameters and multiply-accumulates of the run's model.json.
"""
import argparse
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "accuracy"))
import networks as N  # noqa: E402

SEEDS = range(6)


def read(*parts):
    with open(os.path.join(*parts)) as f:
        return json.load(f)


def widths(graph):
    return {n["name"]: n["attrs"]["out_channels"] for n in graph["nodes"] if n["op"] == "conv2d"}


def row_of(folder):
    base, name = folder.split(os.sep)[-2:]
    result, plan = read(folder, "result.json"), read(folder, "plan.json")
    with open(os.path.join(folder, "asked")) as f:
        asked = f.read().strip()
    graph = N.apply_plan(N.BASES[base], plan)
    parameters, macs = N.sizes(graph)
    if (parameters, macs) != (result["optimized"]["parameters"], result["optimized"]["macs"]) or widths(graph) != widths(read(folder, "model.json")):
        sys.exit(f"{name}: the two readers make different networks: {parameters:,} parameters and {macs:,} multiply-accumulates here")
    chosen = next(n for n in result["networks"] if n["chosen"])
    return {"name": name, "base": base, "asked": asked, "target": result["target"], "expected": chosen["loss"], "macs": macs, "parameters": parameters,
            "latency": chosen["latency"], "original_ms": chosen["baseline_ms"], "front_gap": result["front_gap"], "plan": plan}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs")
    parser.add_argument("networks")
    parser.add_argument("jobs")
    options = parser.parse_args()
    results = glob.glob(os.path.join(options.runs, "*", "*", "result.json"))
    rows = sorted((row_of(os.path.dirname(r)) for r in results), key=lambda r: (r["base"], -r["macs"]))
    with open(options.networks, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
    with open(options.jobs, "w") as f:
        f.writelines(json.dumps({"name": r["name"], "base": r["base"], "plan": r["plan"], "seed": s}) + "\n" for s in SEEDS for r in rows)
    for r in rows:
        print(f"{r['base']} {r['name']}: {r['macs'] / 1e6:.0f} M, expected to lose {r['expected']['points']:.2f} points, {r['latency']['median_ms']:.2f} ms")


if __name__ == "__main__":
    main()
