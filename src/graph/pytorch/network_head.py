"""@NAME@, written by loopegg @VERSION@ as a plain PyTorch module.

    import runpy
    network = runpy.run_path("network.py")    # by path: 'import network' would find a compiled network.so next to it
    model = network["load"]()                 # weights.safetensors next to this file
    outputs = model(@CALL@)                   # inputs: @SHAPES@

Train it as any other module; state_dict() has the names of weights.safetensors, and save(model, path) writes such a file.
"""
import ctypes
import functools
import itertools
import json
import pathlib
import struct

import torch
import torch.nn.functional as F
from torch import nn


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8:8 + length]), 8 + length
    kinds = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32}
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        kind = kinds[about["dtype"]]
        flat = torch.frombuffer(bytearray(data[body + begin:body + end]), dtype=kind) if end > begin else torch.empty(0, dtype=kind)
        tensors[name] = flat.reshape(about["shape"])
    return tensors


def write_safetensors(tensors, path):
    header, body = {}, b""
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().to(torch.float32).contiguous()
        raw = ctypes.string_at(values.data_ptr(), values.numel() * 4)
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


RESERVED = {"", *dir(nn.Module())}   # what no part of a module can be called


def is_reserved(part):
    """Also with underscores behind it, so that no two names become one."""
    while part and part not in RESERVED and part.endswith("_"):
        part = part[:-1]
    return part in RESERVED


def attributes(name):
    return [part + "_" if is_reserved(part) else part for part in name.split(".")]


def name_of(path):
    return ".".join(part[:-1] if is_reserved(part) else part for part in path.split("."))


def find(root, name):
    for part in attributes(name):
        root = getattr(root, part)
    return root


def put(root, name, thing):
    """Hangs a module or a parameter into the tree, so that its dotted name is its name in the state_dict, unless a part of it is reserved."""
    *path, last = attributes(name)
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]
    if isinstance(thing, nn.Parameter):
        root.register_parameter(last, thing)
    else:
        if last in root._modules:   # made before as a mere holder of deeper names
            for deeper, module in root._modules[last]._modules.items():
                thing.add_module(deeper, module)
        root.add_module(last, thing)


