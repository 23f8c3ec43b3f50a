#!/usr/bin/env python3
"""Prints the plan of a network that was trained, for `loopegg apply`.

    python3 plan.py NAME [--base resnet34-cifar10] > NAME.plan.json

Every line of labels.jsonl and jobs.jsonl holds the plan of its network, so no plan is kept in a file of its own.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def plans():
    """{(base, name): plan} of every network that was trained or is to be."""
    lines = (line for file in ("jobs.jsonl", "labels.jsonl") for line in open(HERE / file))
    return {(r["base"], r["name"]): r["plan"] for r in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name"), parser.add_argument("--base", default="resnet34-cifar10")
    options = parser.parse_args()
    known = plans()
    if (options.base, options.name) not in known:
        bases = sorted(base for base, name in known if name == options.name)
        sys.exit(f"plan.py: no network '{options.name}' of {options.base}" + (f"; there is one of {', '.join(bases)}" if bases else ""))
    print(json.dumps(known[options.base, options.name], indent=1))


if __name__ == "__main__":
    main()
