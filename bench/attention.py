#!/usr/bin/env python3
"""Times softmax(q k^T / sqrt(d) + mask) v as loopegg tunes or compiles it and as it computes it node by node, as PyTorch's scaled_dot_product_attention does, and as
OpenVINO does where it is installed. All are interleaved, each in a process of its own, and so is the memory that each needs beyond its inputs measured.

    .deps/peers/bin/python3 bench/attention.py [--tokens 512,2048] [--masked] [--tune 60] [--heads 12] [--width 64] [--threads 2] [--rounds 10] [--json table.json]

Node by node is the same network with the softmax as a second output, so that the rules of the phase `stream` do not apply. A mask is added to all rows of all heads.
"""
import argparse
import ctypes
import importlib.util
import json
import math
import multiprocessing
import os
import random
import statistics
import subprocess
import tempfile
import time

from interleaved import aligned_floats, interleave, summary


MASKED = -3.4028234663852886e38    # the lowest float32, which exports of transformers add


def network(tokens, heads, width, masked, node_by_node):
    """As a model.json. Keys come with a column for each token, as a product wants them."""
    nodes = [{"name": "scores", "op": "matmul", "inputs": ["q", "k"]},
             {"name": "scale", "op": "scale", "inputs": ["scores"], "attrs": {"value": 1 / math.sqrt(width)}},
             {"name": "masked", "op": "add", "inputs": ["scale", "mask"]},
             {"name": "softmax", "op": "softmax", "inputs": ["masked" if masked else "scale"]},
             {"name": "context", "op": "matmul", "inputs": ["softmax", "v"]}]
    shape = [1, heads, tokens, width]
    inputs = [{"name": "q", "shape": shape}, {"name": "k", "shape": [1, heads, width, tokens]}, {"name": "v", "shape": shape}, {"name": "mask", "shape": [1, 1, 1, tokens]}]
    if not masked:
        nodes, inputs = [n for n in nodes if n["name"] != "masked"], inputs[:3]
    return {"loopegg": 1, "name": "attention", "inputs": inputs, "nodes": nodes, "outputs": ["context"] + ["softmax"] * node_by_node}


def mask_of(tokens):
    """The last eighth of the tokens is padding."""
    return [MASKED if i >= tokens - tokens // 8 else 0.0 for i in range(tokens)]


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
            memory[:] = numbers(len(memory), i) if i < 3 else mask_of(len(memory))
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
    def __init__(self, tokens, heads, width, masked, threads):
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.sdpa = torch.nn.functional.scaled_dot_product_attention
        shape, count = (1, heads, tokens, width), heads * tokens * width
        q, k, v = (torch.tensor(numbers(count, i)) for i in range(3))
        self.q, self.v = q.reshape(shape), v.reshape(shape)
        self.k = k.reshape(1, heads, width, tokens).transpose(2, 3).contiguous()
        self.mask = torch.tensor(mask_of(tokens)).reshape(1, 1, 1, tokens) if masked else None
        self.before = resident("VmRSS:")

    def run(self):
        self.result = self.sdpa(self.q, self.k, self.v, attn_mask=self.mask)

    def output(self):
        return self.result.flatten().tolist()


class OpenVino:
    """Its own operator for the whole, which reads keys with a row for each token."""

    def __init__(self, tokens, heads, width, masked, threads):
        import numpy
        import openvino
        from openvino import opset13
        shape, count = (1, heads, tokens, width), heads * tokens * width
        q, k, v = (numpy.array(numbers(count, i), dtype=numpy.float32) for i in range(3))
        self.feed = [q.reshape(shape), numpy.ascontiguousarray(k.reshape(1, heads, width, tokens).swapaxes(2, 3)), v.reshape(shape)]
        if masked:
            self.feed.append(numpy.array(mask_of(tokens), dtype=numpy.float32).reshape(1, 1, 1, tokens))
        inputs = [opset13.parameter(a.shape, openvino.Type.f32) for a in self.feed]
        model = openvino.Model([opset13.scaled_dot_product_attention(*inputs, causal=False)], inputs)
        hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        self.request = openvino.Core().compile_model(model, "CPU", hints).create_infer_request()
        for i, array in enumerate(self.feed):
            self.request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
        self.before = resident("VmRSS:")

    def run(self):
        self.request.infer()

    def output(self):
        return self.request.get_output_tensor(0).data.flatten().tolist()


def compiled(folder, options, tokens, node_by_node):
    """The folder of the compiled network, and what it is called."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "loopegg")
    model, out = os.path.join(folder, f"{node_by_node}.json"), os.path.join(folder, str(node_by_node))
    with open(model, "w") as file:
        json.dump(network(tokens, options.heads, options.width, options.masked, node_by_node), file)
    how = ["optimize", model, "--rules", "exact", "--tune-seconds", str(options.tune)] if options.tune and not node_by_node else ["compile", model, "--target", "host"]
    subprocess.run([program, *how, "--out", out, "-q"], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "network.json")) as file:
        steps = json.load(file)["steps"]
    return out, f"loopegg, {'node by node' if node_by_node else 'tuned' if options.tune else 'as it compiles'} ({len(steps)} steps)"


def speed(times, reference):
    """How much faster than the reference, by the medians of the turns of one round: the quartiles."""
    turns = [[statistics.median(some[i:i + 5]) for i in range(0, len(some), 5)] for some in (times, reference)]
    return statistics.quantiles([theirs / ours for ours, theirs in zip(*turns)], n=4)


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
    parser.add_argument("--masked", action="store_true", help="adds a mask to the scores")
    parser.add_argument("--tune", type=int, default=0, metavar="SECONDS", help="optimizes the network for so long; 0: compiles it without measuring")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor-time", action="store_true", help="for --threads 1: time that other programs change little")
    parser.add_argument("--rounds", type=int, default=10, help="turns of five calls each")
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    table = {}
    others = [("PyTorch", Torch)] + [("OpenVINO", OpenVino)] * (importlib.util.find_spec("openvino") is not None)
    for tokens in map(int, options.tokens.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            entrants = []
            for node_by_node in (False, True):
                out, name = compiled(folder, options, tokens, node_by_node)
                entrants.append((name, Ours, (out, options.threads)))
            entrants += [(name, make, (tokens, options.heads, options.width, options.masked, options.threads)) for name, make in others]
            alone = [memory_and_output(make, arguments) for _, make, arguments in entrants]
            all_times = interleave([e[1:] for e in entrants], options.rounds, time.process_time if options.processor_time else time.perf_counter)
        for (name, _, _), (mib, output), times in zip(entrants, alone, all_times):
            far = max(abs(a - b) for a, b in zip(output, alone[2][1]))
            took, (low, ratio, high) = summary(times), speed(times, all_times[2])
            print(f"{tokens:5} tokens{', masked' * options.masked}  {name:34} {took['median_ms']:9.3f} ms (iqr {took['iqr_ms']:.3f}, n {took['n']}), {ratio:.2f}x the speed of"
                  f" PyTorch ({low:.2f} to {high:.2f}), {mib:6.1f} MiB, at most {far:.1e} from PyTorch, load {os.getloadavg()[0]:.1f}", flush=True)
            table.setdefault(tokens, {})[name] = {**took, "speed": [low, ratio, high], "mib": mib, "from_pytorch": far, "load": os.getloadavg()[0]}
        if options.json:
            with open(options.json, "w") as file:
                json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
