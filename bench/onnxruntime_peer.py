#!/usr/bin/env python3
"""Times networks compiled by loopegg against ONNX Runtime, in turns on one machine, and prints the ratio.

    .deps/peers/bin/python3 bench/onnxruntime_peer.py network MODEL FOLDER...   MODEL in ONNX Runtime against each compiled FOLDER
    .deps/peers/bin/python3 bench/onnxruntime_peer.py layers MODEL              every distinct convolution of MODEL by itself
    options: --threads N (default: all cores)  --rounds N (default 40)  --trials N (layers: schedules tried for each)

FOLDER is what `loopegg compile` writes, or out/original and out/optimized of a run. MODEL is what every loopegg command reads.
Every contestant has a process of its own and runs only in its turn, so that no one's spinning threads take another's core;
a turn is a few runs of which the first is not counted, and turns go round.
`layers` makes a network of one convolution with its batch norm and ReLU for each, tunes it with `optimize --rules exact`
and times that: what ONNX Runtime may fuse, it fuses too.
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS_A_TURN = 6


class Ours:
    def __init__(self, folder):
        library = ctypes.CDLL(os.path.join(folder, "network.so"))
        library.loopegg_open.restype = ctypes.c_void_p
        library.loopegg_input_size.restype = library.loopegg_output_size.restype = ctypes.c_long
        self.network = ctypes.c_void_p(library.loopegg_open(os.path.join(folder, "weights.bin").encode()))
        floats = ctypes.POINTER(ctypes.c_float)
        self.input = (ctypes.c_float * library.loopegg_input_size(0))(*[1.0] * library.loopegg_input_size(0))
        self.output = (ctypes.c_float * library.loopegg_output_size(0))()
        self.pointers = (floats * 1)(ctypes.cast(self.input, floats)), (floats * 1)(ctypes.cast(self.output, floats))
        self.library = library

    def run(self):
        if self.library.loopegg_run(self.network, *self.pointers):
            raise RuntimeError("the compiled network failed")


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


def contestant(make, arguments, pipe):
    entrant = make(*arguments)
    for _ in range(3):
        entrant.run()
    pipe.send([])
    while pipe.recv():
        times = []
        for _ in range(RUNS_A_TURN):
            begin = time.perf_counter()
            entrant.run()
            times.append(1000 * (time.perf_counter() - begin))
        pipe.send(times[1:])


def in_turns(entrants, rounds):
    """The times in milliseconds of each (make, arguments), taken in turns."""
    context = multiprocessing.get_context("spawn")
    pipes, processes, times = [], [], [[] for _ in entrants]
    for make, arguments in entrants:
        mine, theirs = context.Pipe()
        process = context.Process(target=contestant, args=(make, arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(mine), processes.append(process)
    for pipe in pipes:
        pipe.recv()
    for _ in range(rounds):
        for i, pipe in enumerate(pipes):
            time.sleep(0.02)                    # lets the last one's threads fall asleep
            pipe.send(True)
            times[i] += pipe.recv()
    for pipe, process in zip(pipes, processes):
        pipe.send(False)
        process.join()
    return times


def summary(times):
    quarters = statistics.quantiles(times, n=4)
    return {"median_ms": statistics.median(times), "iqr_ms": quarters[2] - quarters[0], "n": len(times)}


def words(s):
    return f"{s['median_ms']:9.3f} ms (iqr {s['iqr_ms']:.3f}, n {s['n']})"


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
