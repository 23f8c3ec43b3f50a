#!/usr/bin/env python3
"""What moves a rank correlation on NAS-Bench-201: the cells that are drawn, the number of images, the poorest cells.

    python3 nb201_resample.py SCORES.jsonl [OTHER.jsonl] [--measure naswot] [--draws 200]

bench_nb201 wrote both files. OTHER was made with another --batch, and both are compared on the cells that they share.
"""
import argparse
import json
import random


def ranks(values):
    order, out, i = sorted(range(len(values)), key=lambda k: values[k]), [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j < len(order) and values[order[j]] == values[order[i]]:
            j += 1
        for k in range(i, j):
            out[order[k]] = (i + j - 1) / 2
        i = j
    return out


def spearman(pairs):
    x, y = (ranks(column) for column in zip(*pairs))
    m = (len(x) - 1) / 2
    return sum((a - m) * (b - m) for a, b in zip(x, y)) / (sum((a - m) ** 2 for a in x) * sum((b - m) ** 2 for b in y)) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores"), parser.add_argument("other", nargs="?")
    parser.add_argument("--measure", default="naswot"), parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    read = lambda file: {r["arch"]: (r["scores"][options.measure], r["accuracy"]) for r in map(json.loads, open(file))}
    cells = read(options.scores)
    pairs, draw = list(cells.values()), random.Random(0)
    print(f"{options.measure}, all {len(pairs)} cells: {spearman(pairs):.3f}")
    again = sorted(spearman([draw.choice(pairs) for _ in pairs]) for _ in range(options.draws))
    print(f"cells drawn again {options.draws} times: {again[options.draws // 20]:.3f} to {again[-options.draws // 20]:.3f} (90%)")
    for floor in (50, 80, 90):
        some = [p for p in pairs if p[1] > floor]
        print(f"the {len(some)} cells above {floor}%: {spearman(some):.3f}")
    if options.other:
        other = read(options.other)
        both = [a for a in cells if a in other]
        print(f"the {len(both)} cells of both files: {spearman([cells[a] for a in both]):.3f} and {spearman([other[a] for a in both]):.3f}")


if __name__ == "__main__":
    main()
