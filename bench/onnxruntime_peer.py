#!/usr/bin/env python3
"""Times networks compiled by loopegg against ONNX Runtime, in turns on one machine, and prints the ratio.

    .deps/peers/bin/python3 bench/onnxruntime_peer.py network MODEL FOLDER...   MODEL in ONNX Runtime against each compiled FOLDER
    .deps/peers/bin/python3 bench/onnxruntime_peer.py layers MODEL              every distinct convolution of MODEL by itself
    options: --threads N (default: all cores)  --rounds N (default 40)  --trials N (layers: schedules tried for each)

FOLDER is what `loopegg compile` writes, or out/original and out/optimized of a run. MODEL is what every loopegg command reads.
`layers` makes a network of one convolution with its batch norm and ReLU for each, tunes it with `optimize --rules exact`
and times that: what ONNX Runtime may fuse, it fuses too.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from turns import Ours, in_turns, summary, words

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class OnnxRuntime:
    def __init__(self, file, threads):
        import numpy
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.feed = {i.name: numpy.ones(i.shape, numpy.float32) for i in self.session.get_inputs()}

    def run(self):
        self.session.run(None, self.feed)


def loopegg(*arguments):
    subprocess.run([os.path.join(root, "loopegg"), *arguments, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def network(options):
    with tempfile.TemporaryDirectory() as scratch:
        file = os.path.join(scratch, "model.onnx")
        loopegg("export", options.model, "-o", file)
        entrants = [(OnnxRuntime, (file, options.threads))] + [(Ours, (f,)) for f in options.folders]
        peer, *ours = [summary(t) for t in in_turns(entrants, options.rounds)]
    print(f"{'ONNX Runtime':<40} {words(peer)}")
    for folder, s in zip(options.folders, ours):
        print(f"{folder:<40} {words(s)}   {peer['median_ms'] / s['median_ms']:.2f}x its speed")


def layer_models(model, folder):
    """One model.json for each distinct convolution: (name of the first site, how many sites, file)."""
    file = os.path.join(folder, "whole.json")
    subprocess.run([os.path.join(root, "loopegg"), "show", model, "--json", "--quiet"], check=True, stdout=open(file, "w"))
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


def layers(options):
    worst = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, count, file in layer_models(options.model, scratch):
            out, onnx = file[:-5], file[:-5] + ".onnx"
            loopegg("optimize", file, "--rules", "exact", "--trials", str(options.trials), "--out", out)
            loopegg("export", file, "-o", onnx)
            peer, ours = [summary(t) for t in in_turns([(OnnxRuntime, (onnx, options.threads)), (Ours, (out + "/original",))], options.rounds)]
            ratio = ours["median_ms"] / peer["median_ms"]
            worst = max(worst, ratio)
            print(f"{name:<28} x{count:<3} ours {words(ours)}   ONNX Runtime {words(peer)}   ours / theirs {ratio:.2f}", flush=True)
    print(f"slowest against ONNX Runtime: {worst:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["network", "layers"])
    parser.add_argument("model")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--trials", type=int, default=24)
    options = parser.parse_args()
    {"network": network, "layers": layers}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
