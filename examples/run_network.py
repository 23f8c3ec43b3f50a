"""Runs a network that 'loopegg compile MODEL --out DIR' wrote, from Python with nothing but the standard library.

    python3 examples/run_network.py DIR
"""
import ctypes
import os
import sys

folder = os.path.abspath(sys.argv[1])
library = ctypes.CDLL(os.path.join(folder, "network.so"))
library.loopegg_open.restype = ctypes.c_void_p
library.loopegg_input_size.restype = library.loopegg_output_size.restype = ctypes.c_long
network = ctypes.c_void_p(library.loopegg_open(os.path.join(folder, "weights.bin").encode()))
if not network:
    sys.exit("cannot open the weights")

Floats = ctypes.POINTER(ctypes.c_float)
given = (ctypes.c_float * library.loopegg_input_size(0))(*[1.0] * library.loopegg_input_size(0))
result = (ctypes.c_float * library.loopegg_output_size(0))()
failed = library.loopegg_run(network, (Floats * 1)(ctypes.cast(given, Floats)), (Floats * 1)(ctypes.cast(result, Floats)))
print(*list(result)[:10], sep="\n")
library.loopegg_close(network)
sys.exit(1 if failed else 0)
