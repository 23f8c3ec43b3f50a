"""A network that loopegg compiled, from Python: NumPy arrays in, NumPy arrays out. Needs NumPy and nothing of loopegg; copy this file to where you use it.

    import loopegg_network
    network = loopegg_network.Network("out")      # a folder of 'loopegg optimize' or 'loopegg compile'
    logits = network(x)                           # one array an input, in their order or by name: network(x=x)

Answers one array, or a tuple of them where the network has several outputs. One call at a time in a process.
"""
import ctypes
import json
import os

import numpy

FLOATS = ctypes.POINTER(ctypes.c_float)


class Network:
    def __init__(self, folder, threads=0):
        folder = os.path.abspath(folder)
        with open(os.path.join(folder, "network.json")) as file:
            about = json.load(file)
        self.inputs = {i["name"]: tuple(i["shape"]) for i in about["inputs"]}
        self.outputs = {o["name"]: tuple(o["shape"]) for o in about["outputs"]}
        self._library = ctypes.CDLL(os.path.join(folder, "network.so"))
        self._library.loopegg_open.restype = ctypes.c_void_p
        self._library.loopegg_set_threads(threads)   # 0: as many as there are cores
        self._network = ctypes.c_void_p(self._library.loopegg_open(os.path.join(folder, "weights.bin").encode()))
        if not self._network:
            raise OSError(f"cannot open the weights in {folder}")

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
        if self._library.loopegg_run(self._network, pointers(values), pointers(results)):
            raise RuntimeError("the network reported an error")
        return results[0] if len(results) == 1 else tuple(results)

    def __del__(self):
        if getattr(self, "_network", None):
            self._library.loopegg_close(self._network)
