#!/usr/bin/env python3
"""Times models in every CPU runtime that bench/peers installs and in loopegg, and prints one table with ratios to the best peer.

    .deps/peers/bin/python3 bench/peers_table.py MODEL[=FOLDER] ...     FOLDER is what `loopegg compile` wrote, or out/original of a run;
                                                                        without one, `optimize --rules exact` makes it first
    .deps/peers/bin/python3 bench/peers_table.py --layers MODEL ...     every distinct convolution of the models by itself, with its batch norm and ReLU
    options: --threads N (default: all cores)  --rounds N (default 20)  --trials N (schedules tried where a folder is made)  --json FILE
             --only NAME (a peer, may be repeated)  --every N (with --layers: the first of each N distinct convolutions)  --versions

All runtimes are forced to float32. Each has a process of its own, and all have the same number of threads. The runtimes take turns, so that each has its
share of good and bad minutes. A peer that cannot read a model is named below the table with its reason.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

from runtimes import RUNTIMES, PyTorch
from interleaved import Ours, interleave, summary

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("LOOPEGG_PROGRAM", os.path.join(root, "loopegg"))


def loopegg(*arguments):
    subprocess.run([PROGRAM, *arguments, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def layer_models(model, folder):
    """One model.json for each distinct convolution: (name of the first site, how many sites, file)."""
    file = os.path.join(folder, "whole.json")
    subprocess.run([PROGRAM, "show", model, "--json", "--quiet"], check=True, stdout=open(file, "w"))
    sites = json.load(open(file))["sites"]
    whole = json.load(open(model))
    nodes = {n["name"]: n for n in whole["nodes"]}
    shapes = {s["name"]: s for s in sites}
    kinds = {}
    for site in sites:
        if site["op"] == "conv2d":
            node = nodes[site["name"]]
            key = json.dumps([node["attrs"], site["input"], site["shape"]], sort_keys=True)
            kinds.setdefault(key, []).append(site["name"])
    for i, names in enumerate(kinds.values()):
        node = dict(nodes[names[0]], inputs=["x"], name="conv")
        text = {"loopegg": 1, "name": f"layer{i}", "inputs": [{"name": "x", "shape": shapes[names[0]]["input"], "dtype": "float32"}],
                "nodes": [node, {"name": "bn", "op": "batch_norm", "inputs": ["conv"], "attrs": {}},
                          {"name": "relu", "op": "relu", "inputs": ["bn"], "attrs": {}}], "outputs": ["relu"]}
        path = os.path.join(folder, f"layer{i}.json")
        json.dump(text, open(path, "w"))
        yield names[0], len(names), path


def machine():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    names = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    return next((n.split(":", 1)[1].strip() for n in names if n.startswith("Model name")), "unknown")


def readable(runtime, file, threads):
    """None if the runtime can run the model in a process of its own, else why not."""
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import runtimes; runtimes.{runtime.__name__}({file!r}, {threads}).run()"]
    done = subprocess.run(words, capture_output=True, text=True)
    return None if done.returncode == 0 else ((done.stderr.strip() or "ended with " + str(done.returncode)).splitlines() or ["?"])[-1]


def entrants_of(model, folder, scratch, options):
    onnx, module = os.path.join(scratch, "model.onnx"), os.path.join(scratch, "model.py")
    loopegg("export", model, "-o", onnx)
    if not folder:
        folder = os.path.join(scratch, "out")
        loopegg("optimize", model, "--rules", "exact", "--trials", str(options.trials), "--out", folder)
        folder = os.path.join(folder, "original")
    all_, missing = [("ours", Ours, (folder,))], {}
    for runtime in RUNTIMES + [PyTorch]:
        if options.only and runtime.name not in options.only:
            continue
        file = onnx
        if runtime is PyTorch:
            file = module
            try:
                loopegg("export", model, "-o", module)
            except subprocess.CalledProcessError:
                missing[runtime.name] = "cannot be exported"
                continue
        why = readable(runtime, file, options.threads)
        if why is None:
            all_.append((runtime.name, runtime, (file, options.threads)))
        else:
            missing[runtime.name] = why
    return all_, missing


def time_model(name, model, folder, options):
    with tempfile.TemporaryDirectory() as scratch:
        entrants, missing = entrants_of(model, folder, scratch, options)
        times = interleave([(make, arguments) for _, make, arguments in entrants], options.rounds)
    return {"model": name, "times": {n: summary(t) for (n, _, _), t in zip(entrants, times)}, "missing": missing}


def peers(row):
    return {n: s for n, s in row["times"].items() if n != "ours"}


def speed(row):
    """How many times as fast as the best other runtime loopegg is."""
    best = min(s["median_ms"] for s in peers(row).values())
    return best / row["times"]["ours"]["median_ms"]


def table(rows, options):
    columns = ["ours"] + [r.name for r in RUNTIMES + [PyTorch] if any(r.name in row["times"] for row in rows)]
    n = min(s["n"] for row in rows for s in row["times"].values())
    lines = [f"{machine()}, {options.threads} threads, float32, batch 1, interleaved; median ms (interquartile range), n {n}", "",
             "| network | " + " | ".join(columns) + " | best other runtime / ours |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        best = min(s["median_ms"] for s in row["times"].values())
        cells = []
        for c in columns:
            s = row["times"].get(c)
            text = f"{s['median_ms']:.2f} ({s['iqr_ms']:.2f})" if s else "-"
            cells.append(f"**{text}**" if s and s["median_ms"] == best else text)
        lines.append(f"| {row['model']} | " + " | ".join(cells) + f" | {speed(row):.2f} |" if peers(row) else f"| {row['model']} | " + " | ".join(cells) + " | - |")
    ratios = [speed(r) for r in rows if peers(r)]
    if ratios:
        lines.append(f"\ngeometric mean of best other runtime / ours: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}; least {min(ratios):.2f}")
    for row in rows:
        for peer, why in row["missing"].items():
            lines.append(f"{peer} does not run {row['model']}: {why[:160]}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--only", action="append")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--versions", action="store_true")
    options = parser.parse_args()
    if options.versions:
        print("runtimes: " + ", ".join(f"{r.name} {r.version()}" for r in RUNTIMES + [PyTorch]))
        return 0
    if not options.models:
        parser.error("name at least one model")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        work = []
        for word in options.models:
            model, _, folder = word.partition("=")
            if options.layers:
                inside = tempfile.mkdtemp(dir=scratch)
                work += [(f"{name} x{count}", file, "") for name, count, file in list(layer_models(model, inside))[::options.every]]
            else:
                work.append((os.path.basename(model).removesuffix(".json"), model, folder))
        for name, model, folder in work:
            rows.append(time_model(name, model, folder, options))
            print(f"{name}: " + "  ".join(f"{n} {s['median_ms']:.3f}" for n, s in rows[-1]["times"].items()), file=sys.stderr, flush=True)
    print(table(rows, options))
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
