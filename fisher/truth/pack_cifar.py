#!/usr/bin/env python3
"""Packs CIFAR-10's binary files into parts of at most 50 MB, for machines that are reached through a narrow pipe.

    python3 pack_cifar.py pack CIFAR_FOLDER OUT_FOLDER      writes part0.xz, part1.xz, ... (1.66 kB an image; raw is 3.07)
    python3 pack_cifar.py pack CIFAR_FOLDER OUT_FOLDER 5 9  the same in 0.85 kB an image: green may be off by 2 of 255, red and blue by 4
    python3 pack_cifar.py unpack PART_FOLDER CIFAR_FOLDER   writes the six binary files back, byte for byte where no steps were given

Green, red minus green and blue minus green are predicted from their left, upper and upper-left neighbours (the median edge
detector of JPEG-LS). The residuals are rounded to multiples of a step, one for green and one for the two differences, and go
through xz. The prediction starts from the rounded values, so errors do not add up.
"""
import lzma
import os
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

FILES = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
RECORD = 3073
CHUNK = 5000      # images in one xz stream: what one process works on
PART = 30000      # images in one part file


def predict(left, up, corner):
    low, high = np.minimum(left, up), np.maximum(left, up)
    return np.where(corner >= high, low, np.where(corner <= low, high, left + up - corner))


def neighbours(y, i, j):
    """Left, up and upper-left values of pixel (i, j) of every plane; at a border the ones that exist are in."""
    if i == 0 and j == 0:
        zero = np.zeros_like(y[..., 0, 0])
        return zero, zero, zero
    if i == 0:
        return (y[..., 0, j - 1],) * 3
    if j == 0:
        return (y[..., i - 1, 0],) * 3
    return y[..., i, j - 1], y[..., i - 1, j], y[..., i - 1, j - 1]


def along_pixels(steps, visit):
    """Calls visit(plane, i, j, step, predicted, green) for every pixel; it returns the value to continue predicting from. Green comes first."""
    def through(y):
        view = np.moveaxis(y, 3, 1)
        for i in range(32):
            for j in range(32):
                predicted = predict(*neighbours(view, i, j))
                for plane, step in enumerate((steps[0], steps[1], steps[1])):
                    y[plane, i, j] = visit(plane, i, j, step, predicted[plane], y[0, i, j] if plane else 0)
        return y
    return through


def rebuilt(q, step, predicted, green):
    """The value that a residual represents. Whole residuals are kept modulo 256: a value is the one that makes a byte when green is added."""
    value = predicted + q * step + green
    return (value & 255 if step == 1 else np.clip(value, 0, 255)) - green


def encode(records, steps):
    x = np.moveaxis(records[:, 1:].reshape(-1, 3, 32, 32), 0, 3).astype(np.int16)[[1, 0, 2]]     # green first; pixels outermost: rows are contiguous
    residual = np.empty(x.shape, np.int8)

    def visit(plane, i, j, step, predicted, green):
        q = (x[plane, i, j] - green - predicted + step // 2) // step
        residual[plane, i, j] = q.astype(np.int8)
        return rebuilt(q, step, predicted, green)
    along_pixels(steps, visit)(np.zeros(x.shape, np.int16))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 0, "pb": 0}]
    return bytes(steps) + lzma.compress(records[:, 0].tobytes() + np.moveaxis(residual, 3, 1).tobytes(), lzma.FORMAT_XZ, filters=filters)


def decode(stream):
    steps, data = tuple(stream[:2]), np.frombuffer(lzma.decompress(stream[2:]), np.uint8)
    n = len(data) // RECORD
    residual = np.moveaxis(data[n:].view(np.int8).reshape(3, n, 32, 32), 1, 3).astype(np.int16)

    def visit(plane, i, j, step, predicted, green):
        return rebuilt(residual[plane, i, j], step, predicted, green)
    planes = np.moveaxis(along_pixels(steps, visit)(np.zeros((3, 32, 32, n), np.int16)), 3, 1)
    out = np.empty((n, RECORD), np.uint8)
    out[:, 0] = data[:n]
    out[:, 1:1025] = (planes[1] + planes[0]).reshape(n, -1)
    out[:, 1025:2049] = planes[0].reshape(n, -1)
    out[:, 2049:] = (planes[2] + planes[0]).reshape(n, -1)
    return out


def pack(source, target, green="1", others="1"):
    steps = int(green), int(others)
    records = np.concatenate([np.fromfile(os.path.join(source, f), np.uint8).reshape(-1, RECORD) for f in FILES])
    chunks = [records[i:i + CHUNK] for i in range(0, len(records), CHUNK)]
    os.makedirs(target, exist_ok=True)
    with ProcessPoolExecutor(2) as pool:
        streams = list(pool.map(encode, chunks, [steps] * len(chunks)))
    per_part = PART // CHUNK
    for p in range(0, len(streams), per_part):
        with open(os.path.join(target, f"part{p // per_part}.xz"), "wb") as f:
            for s in streams[p:p + per_part]:
                f.write(len(s).to_bytes(8, "little") + s)
        print(f.name, os.path.getsize(f.name))


def unpack(source, target):
    streams = []
    for name in sorted(n for n in os.listdir(source) if n.startswith("part") and n.endswith(".xz")):
        with open(os.path.join(source, name), "rb") as f:
            while head := f.read(8):
                streams.append(f.read(int.from_bytes(head, "little")))
    with ProcessPoolExecutor() as pool:
        records = np.concatenate(list(pool.map(decode, streams)))
    if len(records) != 60000:
        sys.exit(f"expected 60,000 images in {source}, found {len(records):,}: a part is missing")
    os.makedirs(target, exist_ok=True)
    for i, name in enumerate(FILES):
        records[i * 10000:(i + 1) * 10000].tofile(os.path.join(target, name))


if __name__ == "__main__":
    if (len(sys.argv), *sys.argv[1:2]) not in ((4, "pack"), (6, "pack"), (4, "unpack")):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
