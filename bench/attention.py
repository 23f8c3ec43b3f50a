#!/usr/bin/env python3
"""Times softmax(q k^T / sqrt(d)) v as loopegg compiles it, block by block and node by node, and as PyTorch's scaled_dot_product_attention computes it. All take turns,
each in a process of its own, and so does the memory that each needs beyond its inputs.

    .deps/peers/bin/python3 bench/attention.py [--tokens 512,2048] [--heads 12] [--width 64] [--threads 2] [--rounds 10] [--json table.json]

Node by node is the same network with the softmax as a second output, so that the rules of the phase `stream` do not apply.
"""
import argparse
import ctypes
import json
import math
import multiprocessing
import os
import random
import subprocess
import tempfile

from interleaved import aligned_floats, in_turns, summary


def network(tokens, heads, width, node_by_node):
    """As a model.json. Keys come with a column for each token, as a product wants them."""
    nodes = [{"name": "scores", "op": "matmul", "inputs": ["q", "k"]},
             {"name": "scale", "op": "scale", "inputs": ["scores"], "attrs": {"value": 1 / math.sqrt(width)}},
             {"name": "softmax", "op": "softmax", "inputs": ["scale"]},
             {"name": "context", "op": "matmul", "inputs": ["softmax", "v"]}]
    shape = [1, heads, tokens, width]
    inputs = [{"name": "q", "shape": shape}, {"name": "k", "shape": [1, heads, width, tokens]}, {"name": "v", "shape": shape}]
    return {"loopegg": 1, "name": "attention", "inputs": inputs, "nodes": nodes, "outputs": ["context"] + ["softmax"] * node_by_node}


def numbers(count, seed):
    draw = random.Random(seed)
    table = [draw.gauss(0, 1) for _ in range(4099)]
    return [table[i % 4099] for i in range(count)]


def resident(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


class Ours:
    def __init__(self, folder, threads):
        library = ctypes.CDLL(os.path.join(folder, "network.so"))
        with open(os.path.join(folder, "network.json")) as file:
            manifest = json.load(file)
        entry = {name: getattr(library, manifest["prefix"] + name) for name in ("open", "create", "run", "input_size", "output_size")}
        entry["open"].restype = entry["create"].restype = ctypes.c_void_p
        entry["input_size"].restype = entry["output_size"].restype = ctypes.c_long
        floats = ctypes.POINTER(ctypes.c_float)
        self.memory = [[aligned_floats(entry[size](i)) for i in range(len(manifest[which]))] for which, size in (("inputs", "input_size"), ("outputs", "output_size"))]
        for i, memory in enumerate(self.memory[0]):
            memory[:] = numbers(len(memory), i)
        for memory in self.memory[1]:
            memory[:] = [0.0] * len(memory)
        self.pointers = [(floats * len(some))(*(ctypes.cast(m, floats) for m in some)) for some in self.memory]
        self.before = resident("VmRSS:")
        network = ctypes.c_void_p(entry["open"](os.path.join(folder, "weights.bin").encode()))
        self.context, self.call = ctypes.c_void_p(entry["create"](network, threads)), entry["run"]

    def run(self):
        if self.call(self.context, *self.pointers):
            raise RuntimeError("the compiled network failed")

    def output(self):
        return list(self.memory[1][0])


class Torch:
    def __init__(self, tokens, heads, width, threads):
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.sdpa = torch.nn.functional.scaled_dot_product_attention
        shape, count = (1, heads, tokens, width), heads * tokens * width
        q, k, v = (torch.tensor(numbers(count, i)) for i in range(3))
        self.q, self.v = q.reshape(shape), v.reshape(shape)
        self.k = k.reshape(1, heads, width, tokens).transpose(2, 3).contiguous()
        self.before = resident("VmRSS:")

    def run(self):
        self.result = self.sdpa(self.q, self.k, self.v)

    def output(self):
        return self.result.flatten().tolist()


def alone(make, arguments, pipe):
    entrant = make(*arguments)
    with open("/proc/self/clear_refs", "w") as file:   # the peak begins here
        file.write("5")
    entrant.run()
    pipe.send(((resident("VmHWM:") - entrant.before) / 1024, entrant.output()))


def memory_and_output(make, arguments):
    """What a contestant needs beyond its inputs and outputs, in MiB, and what it computes. PyTorch's output counts."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=alone, args=(make, arguments, theirs), daemon=True)
    process.start()
    answer = mine.recv()
    process.join()
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="512,2048")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10, help="turns of five calls each")
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    program, table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "loopegg"), {}
    for tokens in map(int, options.tokens.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            entrants = []
            for node_by_node in (False, True):
                model, out = os.path.join(folder, f"{node_by_node}.json"), os.path.join(folder, str(node_by_node))
                with open(model, "w") as file:
                    json.dump(network(tokens, options.heads, options.width, node_by_node), file)
                subprocess.run([program, "compile", model, "--target", "host", "--out", out, "-q"], check=True, stdout=subprocess.DEVNULL)
                with open(os.path.join(out, "network.json")) as file:
                    steps = json.load(file)["steps"]
                entrants.append((f"loopegg, {'node by node' if node_by_node else 'as it compiles'} ({len(steps)} steps)", Ours, (out, options.threads)))
            entrants.append(("PyTorch", Torch, (tokens, options.heads, options.width, options.threads)))
            alone = [memory_and_output(make, arguments) for _, make, arguments in entrants]
            times = [summary(t) for t in in_turns([e[1:] for e in entrants], options.rounds)]
        for (name, _, _), (mib, output), time in zip(entrants, alone, times):
            far = max(abs(a - b) for a, b in zip(output, alone[-1][1]))
            print(f"{tokens:5} tokens  {name:34} {time['median_ms']:9.3f} ms (iqr {time['iqr_ms']:.3f}, n {time['n']}), {times[-1]['median_ms'] / time['median_ms']:.2f}x the speed"
                  f" of PyTorch, {mib:6.1f} MiB, at most {far:.1e} from PyTorch", flush=True)
            table.setdefault(tokens, {})[name] = {**time, "mib": mib, "from_pytorch": far}
        if options.json:
            with open(options.json, "w") as file:
                json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
