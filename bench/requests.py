#!/usr/bin/env python3
"""Requests a second of a server: many callers of one network at once, loopegg's network.so against ONNX Runtime with as many threads.

    .deps/peers/bin/python3 bench/requests.py MODEL.onnx=FOLDER ... [--callers 8] [--threads 2] [--rounds 12] [--seconds 2]

FOLDER is what 'loopegg compile MODEL.onnx' wrote. Each contestant is a process of its own with its callers as threads (Python's lock is released inside both), and
they serve in turns, so that a machine whose speed changes treats both alike. Every caller asks again as soon as it has its answer. ONNX Runtime has one session, as
its documentation advises, with `threads` threads inside an operator; loopegg has a context of `threads` threads for each caller.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../examples"))


class Ours:
    def __init__(self, model, folder, threads):
        import loopegg_network
        self.network = loopegg_network.Network(folder, threads)
        self.shapes = self.network.inputs

    def caller(self):
        inputs = [numpy.ones(s, numpy.float32) for s in self.shapes.values()]
        return lambda: self.network(*inputs)


class OnnxRuntime:
    def __init__(self, model, folder, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        with open(os.path.join(folder, "network.json")) as file:
            self.shapes = {i["name"]: i["shape"] for i in json.load(file)["inputs"]}

    def caller(self):
        inputs = {i.name: numpy.ones(self.shapes[i.name], numpy.float32) for i in self.session.get_inputs()}
        return lambda: self.session.run(None, inputs)


def serve(entrant, callers, seconds):
    """Requests a second, and how long one took at the median and at worst of a hundred, in milliseconds."""
    end, counts, times = time.perf_counter() + seconds, [0] * callers, [[] for _ in range(callers)]

    def ask(c):
        call = entrant.caller()
        while (begin := time.perf_counter()) < end:
            call()
            times[c].append(1000 * (time.perf_counter() - begin))
            counts[c] += 1

    begin = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(c,)) for c in range(callers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    took = sorted(t for of in times for t in of)
    return sum(counts) / (time.perf_counter() - begin), statistics.median(took), took[int(0.99 * len(took))]


def contestant(kind, model, folder, arguments, pipe):
    entrant = kind(model, folder, arguments.threads)
    serve(entrant, arguments.callers, 1)
    pipe.send(None)
    while pipe.recv():
        pipe.send(serve(entrant, arguments.callers, arguments.seconds))


def compared(model, folder, arguments):
    context, pipes, rounds = multiprocessing.get_context("spawn"), [], [[], []]
    for kind in (Ours, OnnxRuntime):
        mine, theirs = context.Pipe()
        context.Process(target=contestant, args=(kind, model, folder, arguments, theirs), daemon=True).start()
        mine.recv()
        pipes.append(mine)
    for _ in range(arguments.rounds):
        for pipe, results in zip(pipes, rounds):
            pipe.send(True)
            results.append(pipe.recv())
    for pipe in pipes:
        pipe.send(False)
    return rounds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("networks", nargs="+", metavar="MODEL.onnx=FOLDER")
    p.add_argument("--callers", type=int, default=8)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--seconds", type=float, default=2)
    arguments = p.parse_args()
    print(f"{arguments.callers} callers, {arguments.threads} threads, {os.cpu_count()} processors, {arguments.rounds} rounds of {arguments.seconds:g} s each, interleaved; medians over rounds")
    print("| network | loopegg, requests/s | ONNX Runtime | ratio (quartiles) | loopegg p50, p99 ms | ONNX Runtime p50, p99 ms |\n|---|---|---|---|---|---|")
    for network in arguments.networks:
        model, _, folder = network.partition("=")
        ours, theirs = compared(model, folder, arguments)
        middle = [[statistics.median(r[i] for r in all_of) for i in range(3)] for all_of in (ours, theirs)]
        ratios = sorted(o[0] / t[0] for o, t in zip(ours, theirs))
        print(f"| {os.path.basename(model)} | {middle[0][0]:.1f} | {middle[1][0]:.1f} | {statistics.median(ratios):.2f} ({ratios[len(ratios) // 4]:.2f} to {ratios[3 * len(ratios) // 4]:.2f}) "
              f"| {middle[0][1]:.1f}, {middle[0][2]:.1f} | {middle[1][1]:.1f}, {middle[1][2]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
