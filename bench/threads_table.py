#!/usr/bin/env python3
"""Times compiled networks and other runtimes at several numbers of threads, interleaved in random order, each in a process of its own.

    .deps/peers/bin/python3 bench/threads_table.py model.onnx FOLDER [FOLDER ...] [--threads 1,2,4,8,16] [--rounds 30] [--json table.json]

FOLDER is what `loopegg compile` wrote, or `original` or `optimized` of a run. A line shows the median in milliseconds of each, and how often the fastest
other runtime's time is the first folder's.
"""
import argparse
import json

from runtimes import OnnxRuntime, OpenVino, OpenVinoAsInstalled
from interleaved import Ours, interleave, summary


def installed():
    found = []
    for runtime in (OnnxRuntime, OpenVino, OpenVinoAsInstalled):
        try:
            print(runtime.name, runtime.version())
            found.append(runtime)
        except ImportError as why:
            print(f"{runtime.name} is left out: {why}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the ONNX file that the other runtimes read")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=30, help="turns of five calls each")
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    others = installed()
    names, table = options.folders + [o.name for o in others], {}
    print("threads  " + "  ".join(f"{n[-24:]:>24}" for n in names) + "   best other / first")
    for threads in map(int, options.threads.split(",")):
        entrants = [(Ours, (f, threads)) for f in options.folders] + [(o, (options.model, threads)) for o in others]
        row = [summary(t) for t in interleave(entrants, options.rounds)]
        table[threads] = dict(zip(names, row))
        best = min(r["median_ms"] for r in row[len(options.folders):])
        print(f"{threads:7}  " + "  ".join(f"{r['median_ms']:14.3f} (iqr {r['iqr_ms']:.2f})" for r in row) + f"   {best / row[0]['median_ms']:.2f}", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
