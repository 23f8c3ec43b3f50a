"""Compares times on a machine whose speed changes by the minute: contestants take turns, so that each has its share of good and bad minutes."""
import ctypes
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import time

RUNS_A_TURN = 6
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


def contestant(make, arguments, pipe, clock):
    entrant = make(*arguments)
    ready = time.monotonic() + WARM_SECONDS
    for _ in range(3):
        entrant.run()
    while time.monotonic() < ready:
        entrant.run()
    pipe.send([])
    while pipe.recv():
        times = []
        for _ in range(RUNS_A_TURN):
            begin = clock()
            entrant.run()
            times.append(1000 * (clock() - begin))
        pipe.send(times[1:])


def in_turns(entrants, rounds, clock=time.perf_counter):
    """The times in milliseconds of each (make, arguments), taken in turns. Every contestant has a process of its own and runs only in its turn, so that no one's spinning
    threads take another's core; a turn is a few runs of which the first is not counted. time.process_time as the clock counts the processor time of those who run in
    one thread, which others on the machine change little."""
    context = multiprocessing.get_context("spawn")
    pipes, processes, times = [], [], [[] for _ in entrants]
    for make, arguments in entrants:
        mine, theirs = context.Pipe()
        process = context.Process(target=contestant, args=(make, arguments, theirs, clock), daemon=True)
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


def commands_in_turns(commands, seconds=5):
    """Runs commands (words, environment, file for what they print) all together, but never two at once: each has so many seconds, then stands still while the next has its own.
    How many seconds each had until it ended, and its exit code."""
    had, running = [0.0] * len(commands), {}
    try:
        waiting = list(range(len(commands)))
        while waiting:
            for i in list(waiting):
                command, environment, out = commands[i]
                begin = time.monotonic()
                if i in running:
                    os.killpg(running[i].pid, signal.SIGCONT)
                else:
                    with open(out, "w") as file:
                        running[i] = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)   # a group: its workers stand still with it
                try:
                    running[i].wait(seconds)
                    waiting.remove(i)
                except subprocess.TimeoutExpired:
                    if len(waiting) > 1:
                        os.killpg(running[i].pid, signal.SIGSTOP)
                had[i] += time.monotonic() - begin
    finally:
        for process in running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return had, [running[i].returncode for i in range(len(commands))]
