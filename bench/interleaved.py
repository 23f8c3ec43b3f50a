#!/usr/bin/env python3
"""Times compiled networks interleaved, each in its own process, and prints median, interquartile range and the ratio to the first. The speed of a machine changes
by the minute, and interleaving gives every network its share of good and bad minutes.

    .deps/peers/bin/python3 bench/interleaved.py out/original out [FOLDER ...] [--rounds 40]

FOLDER is what `loopegg compile` wrote, or a run's out folder, or the `original` inside it.
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import random
import statistics
import time

RUNS_PER_TURN = 6
WARM_SECONDS = 0.5   # compiled networks try numbers of threads in their first runs


def aligned_floats(count):
    """Ones at a multiple of 64 bytes, and not at the end of a page: network.so uses such memory as it is."""
    line, page = 64, 4096
    memory = (ctypes.c_char * (4 * count + 4 * line))()
    begin = -ctypes.addressof(memory) % line
    if page - (ctypes.addressof(memory) + begin + 4 * count - 1) % page <= line:
        begin += line
    floats = (ctypes.c_float * count).from_buffer(memory, begin)
    floats[:] = [1.0] * count
    return floats


class Ours:
    def __init__(self, folder, threads=0):
        library = ctypes.CDLL(os.path.join(folder, "network.so"))
        with open(os.path.join(folder, "network.json")) as file:
            prefix = json.load(file)["prefix"]
        entry = {name: getattr(library, prefix + name) for name in ("open", "create", "run", "input_size", "output_size")}
        entry["open"].restype = entry["create"].restype = ctypes.c_void_p
        entry["input_size"].restype = entry["output_size"].restype = ctypes.c_long
        network = ctypes.c_void_p(entry["open"](os.path.join(folder, "weights.bin").encode()))
        self.context = ctypes.c_void_p(entry["create"](network, threads))
        floats = ctypes.POINTER(ctypes.c_float)
        self.input, self.output = aligned_floats(entry["input_size"](0)), aligned_floats(entry["output_size"](0))
        self.pointers = (floats * 1)(ctypes.cast(self.input, floats)), (floats * 1)(ctypes.cast(self.output, floats))
        self.call = entry["run"]

    def run(self):
        if self.call(self.context, *self.pointers):
            raise RuntimeError("the compiled network failed")


def contestant(make, arguments, pipe, timer):
    entrant = make(*arguments)
    ready = time.monotonic() + WARM_SECONDS
    for _ in range(3):
        entrant.run()
    while time.monotonic() < ready:
        entrant.run()
    pipe.send([])
    while pipe.recv():
        times = []
        for _ in range(RUNS_PER_TURN):
            begin = timer()
            entrant.run()
            times.append(1000 * (timer() - begin))
        pipe.send(times[1:])


def interleave(entrants, rounds, timer=time.perf_counter):
    """The times in milliseconds of each (make, arguments). Every contestant has its own process and runs only in its turn, so that its spinning threads take no core
    from another. A turn is a few runs, of which the first does not count. With time.process_time as the timer, the times are processor time, which other
    programs change little, for contestants that run in one thread."""
    context = multiprocessing.get_context("spawn")
    pipes, processes, times = [], [], [[] for _ in entrants]
    for make, arguments in entrants:
        mine, theirs = context.Pipe()
        process = context.Process(target=contestant, args=(make, arguments, theirs, timer), daemon=True)
        process.start()
        theirs.close()
        pipes.append(mine), processes.append(process)
    for pipe in pipes:
        pipe.recv()
    order, shuffle = list(range(len(pipes))), random.Random(1).shuffle
    for _ in range(rounds):
        shuffle(order)                          # so that nobody always follows the same one
        for i in order:
            time.sleep(0.02)                    # lets the last one's threads fall asleep
            pipes[i].send(True)
            times[i] += pipes[i].recv()
    for pipe, process in zip(pipes, processes):
        pipe.send(False)
        process.join()
    return times


def summary(times):
    quarters = statistics.quantiles(times, n=4)
    return {"median_ms": statistics.median(times), "iqr_ms": quarters[2] - quarters[0], "n": len(times)}


def words(s):
    return f"{s['median_ms']:9.3f} ms (iqr {s['iqr_ms']:.3f}, n {s['n']})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=40, help="turns of five calls each")
    options = parser.parse_args()
    times = [summary(t) for t in interleave([(Ours, (f,)) for f in options.folders], options.rounds)]
    for folder, t in zip(options.folders, times):
        print(f"{folder}: {t['median_ms']:.3f} ms (iqr {t['iqr_ms']:.3f}, n {t['n']}), {times[0]['median_ms'] / t['median_ms']:.2f}x the speed of the first")


if __name__ == "__main__":
    main()
