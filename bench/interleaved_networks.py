#!/usr/bin/env python3
"""Times compiled networks in turns, each in a process of its own, and prints median, interquartile range and the ratio to the first.

    .deps/peers/bin/python3 bench/interleaved_networks.py out/original out [FOLDER ...] [--rounds 40]

FOLDER is what `loopegg compile` wrote, or a run's out folder, or the `original` inside it.
"""
import argparse

from turns import Ours, in_turns, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=40, help="turns of five calls each")
    options = parser.parse_args()
    times = [summary(t) for t in in_turns([(Ours, (f,)) for f in options.folders], options.rounds)]
    for folder, t in zip(options.folders, times):
        print(f"{folder}: {t['median_ms']:.3f} ms (iqr {t['iqr_ms']:.3f}, n {t['n']}), {times[0]['median_ms'] / t['median_ms']:.2f}x the speed of the first")


if __name__ == "__main__":
    main()
