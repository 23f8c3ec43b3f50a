#!/usr/bin/env python3
"""Compares trained networks of one base network: accuracy by seed, means, and the difference of paired seeds with its 95% interval.

    python3 compare.py resnet34-cifar10 found5 width5-depth67 width4 original [--recipe short] [--seeds 0,1,2,3,4,5]
    python3 compare.py resnet34-cifar10 t2-rules-8@distil original@full

NAME@RECIPE names the recipe of one network, and --recipe that of the others.
The first network is compared with each of the others. Only seeds that both have are paired.
A seed that picked a network should not judge it: --seeds leaves it out.
"""
import argparse
import json
import os
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))
# The 97.5% point of Student's distribution, by degrees of freedom.
STUDENT = [float("nan"), 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--recipe", default="short")
    parser.add_argument("--seeds", type=lambda text: {int(s) for s in text.split(",")}, help="only these")
    options = parser.parse_args()
    names = [n if "@" in n else f"{n}@{options.recipe}" for n in options.names]
    found = {n: {} for n in names}
    for line in open(os.path.join(HERE, "labels.jsonl")):
        r = json.loads(line)
        name = f"{r['name']}@{r['recipe']}"
        if r["base"] == options.base and name in found and (not options.seeds or r["seed"] in options.seeds):
            found[name][r["seed"]] = r
    first = found[names[0]]
    for name, by_seed in found.items():
        if not by_seed:
            print(f"{name}: no label")
            continue
        values = [by_seed[s]["accuracy"] for s in sorted(by_seed)]
        one = next(iter(by_seed.values()))
        spread = f", standard deviation {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        line = f"{name}: {statistics.mean(values):.2f}% ({len(values)} seeds{spread}), {one['macs'] / 1e6:.0f} M MACs, {one['params'] / 1e6:.1f} M parameters"
        both = sorted(set(first) & set(by_seed))
        if name != names[0] and both:
            gaps = [first[s]["accuracy"] - by_seed[s]["accuracy"] for s in both]
            line += f"; {names[0]} is {statistics.mean(gaps):+.2f} points better"
            if len(gaps) > 1:
                half = STUDENT[min(len(gaps) - 1, 10)] * statistics.stdev(gaps) / len(gaps) ** 0.5
                line += f" (95%: {statistics.mean(gaps) - half:+.2f} to {statistics.mean(gaps) + half:+.2f}, {len(gaps)} paired seeds)"
        print(line)


if __name__ == "__main__":
    main()
