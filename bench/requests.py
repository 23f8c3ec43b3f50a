#!/usr/bin/env python3
"""Requests per second of a server: many callers of one network at once, loopegg's network.so against ONNX Runtime on as many processors.

    .deps/peers/bin/python3 bench/requests.py MODEL.onnx=FOLDER ... [--callers 8] [--threads 2] [--rounds 12] [--seconds 2]

FOLDER is what 'loopegg compile MODEL.onnx' or 'loopegg optimize' wrote. Each contestant is a process with its callers as threads (Python's lock is released inside
each), and they serve interleaved, so that a machine whose speed changes treats them alike. Every caller asks again as soon as it has its answer. loopegg has a
context of `threads` threads for each caller. ONNX Runtime has one session, as its documentation advises, in three settings: `threads` threads inside an operator (its
default on a machine with as many cores), the same without spinning, and one thread for each caller. `best` is its setting with the most requests.
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import statistics
import sys
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
    spinning, alone = "1", False

    def __init__(self, model, folder, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1 if self.alone else threads
        options.add_session_config_entry("session.intra_op.allow_spinning", self.spinning)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        with open(os.path.join(folder, "network.json")) as file:
            self.shapes = {i["name"]: i["shape"] for i in json.load(file)["inputs"]}

    def caller(self):
        inputs = {i.name: numpy.ones(self.shapes[i.name], numpy.float32) for i in self.session.get_inputs()}
        return lambda: self.session.run(None, inputs)


class OnnxRuntimeAsleep(OnnxRuntime):
    spinning = "0"


class OnnxRuntimeAlone(OnnxRuntime):
    alone = True


CONTESTANTS = {"loopegg": Ours, "default": OnnxRuntime, "without spinning": OnnxRuntimeAsleep, "one thread each": OnnxRuntimeAlone}


def serve(entrant, pool, callers, seconds):
    """Requests per second, and percentiles of the time that one took, in milliseconds."""
    end = time.perf_counter() + seconds

    def ask():
        call, took = entrant.caller(), []
        while (begin := time.perf_counter()) < end:
            call()
            took.append(1000 * (time.perf_counter() - begin))
        return took

    begin = time.perf_counter()
    took = sorted(t for caller in [pool.submit(ask) for _ in range(callers)] for t in caller.result())
    return len(took) / (time.perf_counter() - begin), [took[int(share * len(took))] for share in (0.5, 0.9, 0.99)]


def shown_quartiles(values, form):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"


def contestant(kind, model, folder, arguments, pipe):
    entrant, pool = kind(model, folder, arguments.threads), concurrent.futures.ThreadPoolExecutor(arguments.callers)   # the threads of a server stay
    serve(entrant, pool, arguments.callers, 1)
    pipe.send(None)
    while pipe.recv():
        pipe.send(serve(entrant, pool, arguments.callers, arguments.seconds))


def compared(model, folder, arguments):
    context, pipes, rounds = multiprocessing.get_context("spawn"), [], [[] for _ in CONTESTANTS]
    for kind in CONTESTANTS.values():
        mine, theirs = context.Pipe()
        context.Process(target=contestant, args=(kind, model, folder, arguments, theirs), daemon=True).start()
        theirs.close()   # so that a contestant that fails ends the comparison
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
    print(f"{arguments.callers} callers, {arguments.threads} threads, {os.cpu_count()} processors, {arguments.rounds} rounds of {arguments.seconds:g} s each, interleaved; medians and quartiles over rounds")
    print("| network | contestant | requests/s (quartiles) | p50, p90, p99 ms | loopegg's ratio (quartiles) |\n|---|---|---|---|---|")
    for network in arguments.networks:
        model, _, folder = network.partition("=")
        rounds = compared(model, folder, arguments)
        per_second = [statistics.median(r[0] for r in of) for of in rounds]
        best = max(range(1, len(rounds)), key=per_second.__getitem__)
        for i, name in enumerate(CONTESTANTS):
            name = "ONNX Runtime, " * (i > 0) + name + " (best)" * (i == best)
            times = ", ".join(f"{statistics.median(r[1][k] for r in rounds[i]):.1f}" for k in range(3))
            ratio = shown_quartiles([o[0] / t[0] for o, t in zip(rounds[0], rounds[i])], "{:.2f}") if i else ""
            print(f"| {os.path.basename(folder.rstrip('/'))} | {name} | {shown_quartiles([r[0] for r in rounds[i]], '{:.1f}')} | {times} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
