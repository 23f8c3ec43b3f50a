#!/usr/bin/env python3
"""Collects the networks that runs of extract.sh returned, and writes the training runs of each, followed by those of uniform scalings: all widths of a base
network in eighths, as multiples of eight channels.

    python3 collect.py RUNS networks.jsonl jobs.jsonl

RUNS/BASE/NAME is the out folder of one run, and its file `options` holds the options of the run. Each network is made from its plan a second time, by the
reader of plans in experiments/accuracy/networks.py. It must have the channels, parameters and multiply-accumulates of the run's model.json.
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
# (base network, eighths, seeds). Training runs that labels.jsonl already had are not repeated.
UNIFORM = [("wide-resnet22-4-cifar10", 4, range(1, 6)), ("wide-resnet22-4-cifar10", 5, [5]), ("wide-resnet22-4-cifar10", 6, [3, 4, 5]),
          ("wide-resnet16-8-cifar10", 3, range(6))]


def read(*parts):
    with open(os.path.join(*parts)) as f:
        return json.load(f)


def widths(graph):
    return {n["name"]: n["attrs"]["out_channels"] for n in graph["nodes"] if n["op"] == "conv2d"}


def row_of(folder):
    base, name = folder.split(os.sep)[-2:]
    result, plan = read(folder, "result.json"), read(folder, "plan.json")
    with open(os.path.join(folder, "options")) as f:
        options = f.read().strip()
    graph = N.apply_plan(N.BASES[base], plan)
    parameters, macs = N.sizes(graph)
    if (parameters, macs) != (result["optimized"]["parameters"], result["optimized"]["macs"]) or widths(graph) != widths(read(folder, "model.json")):
        sys.exit(f"{name}: the two readers make different networks: {parameters:,} parameters and {macs:,} multiply-accumulates here")
    chosen = next(n for n in result["networks"] if n["chosen"])
    return {"name": name, "base": base, "options": options, "target": result["target"], "expected": chosen["loss"], "macs": macs, "parameters": parameters,
            "latency": chosen["latency"], "original_ms": chosen["baseline_ms"], "front_gap": result["front_gap"], "plan": plan}


def unit(base, channels, stream):
    """A width is a multiple of this: of 8, or of the groups of a site that writes or reads it."""
    groups = [n["attrs"].get("groups", 1) for n in N.BASES[base]["nodes"] if n["op"] == "conv2d"
              and stream in (channels.stream(n["name"]), *map(channels.find, channels.of[n["inputs"][0]]))]
    return next((g for g in groups if 8 % g), 8)


def uniform_plan(base, eighths):
    channels, steps, seen = N.Channels(N.BASES[base]), [], set()
    for node in N.BASES[base]["nodes"]:
        stream = channels.stream(node["name"])
        if node["op"] == "conv2d" and stream not in seen:
            seen.add(stream)
            least = unit(base, channels, stream)
            width = max(least, channels.width[stream] * eighths // 8 // least * least)
            rule = "narrow-stream" if channels.residual(stream) else "narrow-width"
            steps.append({"site": node["name"], "apply": [{"rule": rule, "with": {"?w": width}}]})
    return {"steps": steps}


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
        f.writelines(json.dumps({"name": f"width{eighths}", "base": base, "plan": uniform_plan(base, eighths), "seed": s}) + "\n"
                     for base, eighths, seeds in UNIFORM for s in seeds)
    for r in rows:
        print(f"{r['base']} {r['name']}: {r['macs'] / 1e6:.0f} M, expected to lose {r['expected']['points']:.2f} points, {r['latency']['median_ms']:.2f} ms")


if __name__ == "__main__":
    main()
