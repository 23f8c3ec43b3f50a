"""Runs a network that 'loopegg compile MODEL --out DIR' wrote, from Python with nothing but the standard library.

    python3 examples/run_network.py DIR
"""
import ctypes
import json
import os
import sys

folder = os.path.abspath(sys.argv[1])
library = ctypes.CDLL(os.path.join(folder, "network.so"))
with open(os.path.join(folder, "network.json")) as file:
    prefix = json.load(file)["prefix"]   # of the names in network.h
entry = {name: getattr(library, prefix + name) for name in ("open", "create", "run", "destroy", "close", "input_size", "output_size")}
entry["open"].restype = entry["create"].restype = ctypes.c_void_p
entry["input_size"].restype = entry["output_size"].restype = ctypes.c_long
network = ctypes.c_void_p(entry["open"](os.path.join(folder, "weights.bin").encode()))
if not network:
    sys.exit("cannot open the weights")
context = ctypes.c_void_p(entry["create"](network, 0))

Floats = ctypes.POINTER(ctypes.c_float)
given = (ctypes.c_float * entry["input_size"](0))(*[1.0] * entry["input_size"](0))
result = (ctypes.c_float * entry["output_size"](0))()
failed = entry["run"](context, (Floats * 1)(ctypes.cast(given, Floats)), (Floats * 1)(ctypes.cast(result, Floats)))
print(*list(result)[:10], sep="\n")
entry["destroy"](context)
entry["close"](network)
sys.exit(1 if failed else 0)
