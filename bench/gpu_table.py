#!/usr/bin/env python3
"""The times of a bundle's convolutions compared with cuDNN's, as the rows of a table.

    gpu_table.py BUNDLE PEERS.json     BUNDLE has its results.txt; gpu_peers.py wrote PEERS.json in the same call

The first schedule of a convolution is the one that the bundle names first. Times are in microseconds.
"""
import json
import math
import re
import sys


def programs_of(bundle):
    """By shape of the convolution: the times of its schedules in the order of the bundle, without schedules whose output was wrong."""
    with open(bundle + "/index.json") as file:
        index = json.load(file)["programs"]
    with open(bundle + "/results.txt") as file:
        results = {words[0]: words for words in (line.split() for line in file.read().splitlines()[1:])}
    times, wrong = {}, 0
    for program in index:
        words = results.get(program["key"])
        wrong += words is None or words[1] != "ok"
        found = re.search(r"\(conv2d ([0-9 ]+)\)", program["what"])
        if found and words and words[1] == "ok" and "restore" not in program["what"]:
            times.setdefault(tuple(map(int, found[1].split())), []).append(1000 * float(words[2]))
    return times, len(index), wrong


def words_of(shape):
    n, g, co, ci, ih, iw, kh, kw, sh, sw, *_ = shape
    kind = f"depthwise {kh}x{kw}, {g}" if g > 1 and co == ci == 1 else f"{kh}x{kw}{f' in {g} groups' if g > 1 else ''}, {g * ci} -> {g * co}"
    return f"{kind}{f', stride {sh}' if sh > 1 else ''}, {ih}x{iw}{f', batch {n}' if n > 1 else ''}"


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main(bundle, peers):
    times, programs, wrong = programs_of(bundle)
    with open(peers) as file:
        cudnn = {tuple(row["conv2d"]): row for row in json.load(file)["convolutions"]}
    print("| convolution | first | best | cuDNN, float32 | cuDNN, TF32 |\n|---|---|---|---|---|")
    first, best = [], []
    for shape, own in times.items():
        if shape not in cudnn:
            continue
        strict, tf32 = (1000 * cudnn[shape][key]["median_ms"] for key in ("strict", "tf32"))
        first.append(strict / own[0])
        best.append(strict / min(own))
        print(f"| {words_of(shape)} | {own[0]:.1f} | {min(own):.1f} | {strict:.1f} | {tf32:.1f} |")
    print(f"\n{len(first)} convolutions; cuDNN's float32 time over ours, geometric mean: first {mean(first):.2f}, best {mean(best):.2f}; "
          f"least: first {min(first):.2f}, best {min(best):.2f}; {programs - wrong} of {programs} programs right")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
