"""A network that loopegg compiled, from Python: NumPy arrays in, NumPy arrays out. Needs NumPy and nothing of loopegg; copy this file to where you use it.

    import loopegg_network
    network = loopegg_network.Network("out")      # a folder of 'loopegg optimize' or 'loopegg compile'
    logits = network(x)                           # one array an input, in their order or by name: network(x=x)

Answers one array, or a tuple of them where the network has several outputs. Any number of threads may call it: each has a context of its own, made when it
first calls and freed with the thread, and all share the weights.
"""
import ctypes
import json
import os
import threading

import numpy

FLOATS = ctypes.POINTER(ctypes.c_float)


class Context:
    """What one thread needs to run a network: memory for values, and helper threads."""

    def __init__(self, network, threads):
        self._network = network   # the library stays as long as its contexts
        self.address = ctypes.c_void_p(network.entry("create")(network.weights, threads))
        if not self.address:
            raise MemoryError("there is not enough memory to run the network")

    def __del__(self):
        if getattr(self, "address", None):
            self._network.entry("destroy")(self.address)


class Network:
    def __init__(self, folder, threads=0):
        """threads: of one call; 0: as many as this process may use."""
        folder = os.path.abspath(folder)
        with open(os.path.join(folder, "network.json")) as file:
            about = json.load(file)
        self.inputs = {i["name"]: tuple(i["shape"]) for i in about["inputs"]}
        self.outputs = {o["name"]: tuple(o["shape"]) for o in about["outputs"]}
        self._prefix, self._threads, self._mine = about["prefix"], threads, threading.local()
        self._library = ctypes.CDLL(os.path.join(folder, "network.so"))
        self.entry("open").restype = self.entry("create").restype = ctypes.c_void_p
        self.weights = ctypes.c_void_p(self.entry("open")(os.path.join(folder, "weights.bin").encode()))
        if not self.weights:
            raise OSError(f"cannot open the weights in {folder}")

    def entry(self, name):
        return getattr(self._library, self._prefix + name)

    def __call__(self, *arrays, **named):
        if len(arrays) + len(named) != len(self.inputs):
            raise TypeError(f"the network takes {', '.join(f'{n} {s}' for n, s in self.inputs.items())}")
        given = dict(zip((n for n in self.inputs if n not in named), arrays)) | named
        values = []
        for name, shape in self.inputs.items():
            value = numpy.ascontiguousarray(given[name], dtype=numpy.float32)
            if value.shape != shape:
                raise ValueError(f"the input {name} is {value.shape}, the network takes {shape}")
            values.append(value)
        results = [numpy.empty(shape, numpy.float32) for shape in self.outputs.values()]
        pointers = lambda arrays: (FLOATS * len(arrays))(*[a.ctypes.data_as(FLOATS) for a in arrays])
        if not hasattr(self._mine, "context"):
            self._mine.context = Context(self, self._threads)
        if self.entry("run")(self._mine.context.address, pointers(values), pointers(results)):
            raise RuntimeError("the network reported an error")
        return results[0] if len(results) == 1 else tuple(results)

    def __del__(self):
        if getattr(self, "weights", None):
            self.entry("close")(self.weights)   # they are freed with the last context
