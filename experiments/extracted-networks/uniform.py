#!/usr/bin/env python3
"""Writes trainings of uniform scalings: all widths of the base network in eighths, as multiples of eight channels.

    python3 uniform.py >> jobs.jsonl
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "accuracy"))
import networks as N  # noqa: E402

# (base network, eighths, seeds). What labels.jsonl had before is not here.
WANTED = [("wide-resnet22-4-cifar10", 4, range(1, 6)), ("wide-resnet22-4-cifar10", 5, [5]), ("wide-resnet22-4-cifar10", 6, [3, 4, 5]),
          ("wide-resnet16-8-cifar10", 3, range(6))]


def unit(base, channels, stream):
    """A width is a multiple of this: of 8, or of the groups of a site that writes or reads it."""
    groups = [n["attrs"].get("groups", 1) for n in N.BASES[base]["nodes"] if n["op"] == "conv2d"
              and stream in (channels.stream(n["name"]), *map(channels.find, channels.of[n["inputs"][0]]))]
    return next((g for g in groups if 8 % g), 8)


def plan(base, eighths):
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
    for base, eighths, seeds in WANTED:
        for seed in seeds:
            print(json.dumps({"name": f"width{eighths}", "base": base, "plan": plan(base, eighths), "seed": seed}))


if __name__ == "__main__":
    main()
