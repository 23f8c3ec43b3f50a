#!/usr/bin/env python3
"""Packs CIFAR-10's binary files without loss into parts of at most 50 MB, for machines that are reached through a narrow pipe.

    python3 pack_cifar.py pack CIFAR_FOLDER OUT_FOLDER      writes part0.xz, part1.xz, ... (1.66 kB an image; raw is 3.07)
    python3 pack_cifar.py unpack PART_FOLDER CIFAR_FOLDER   writes the six binary files back, byte for byte

Green, red minus green and blue minus green are predicted from their left, upper and upper-left neighbours (the median edge
detector of JPEG-LS) and the residuals go through xz.
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
    """Left, up and upper-left values of pixel (i, j) of every plane; at a border the ones that exist stand in."""
    if i == 0 and j == 0:
        zero = np.zeros_like(y[..., 0, 0])
        return zero, zero, zero
    if i == 0:
        return (y[..., 0, j - 1],) * 3
    if j == 0:
        return (y[..., i - 1, 0],) * 3
    return y[..., i, j - 1], y[..., i - 1, j], y[..., i - 1, j - 1]


def encode(records):
    x = records[:, 1:].reshape(-1, 3, 32, 32).astype(np.int16)
    y = np.stack([x[:, 1], x[:, 0] - x[:, 1], x[:, 2] - x[:, 1]])          # [3, n, 32, 32]
    residual = np.empty(y.shape, np.uint8)
    for i in range(32):
        for j in range(32):
            residual[..., i, j] = (y[..., i, j] - predict(*neighbours(y, i, j))) & 255
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 0, "pb": 0}]
    return lzma.compress(records[:, 0].tobytes() + residual.tobytes(), lzma.FORMAT_XZ, filters=filters)


def decode(stream):
    data = np.frombuffer(lzma.decompress(stream), np.uint8)
    n = len(data) // RECORD
    residual = np.moveaxis(data[n:].reshape(3, n, 32, 32), 1, 3).astype(np.int16)     # pixels outermost: rows are contiguous
    y = np.zeros((3, 32, 32, n), np.int16)
    view = np.moveaxis(y, 3, 1)
    for i in range(32):
        for j in range(32):
            # Residuals are kept modulo 256. Green is a byte, so it comes back at once; a difference is the one that makes a
            # byte again when green is added.
            value = predict(*neighbours(view, i, j)) + residual[:, i, j]
            green = value[0] & 255
            red = (value[1] + green) & 255
            blue = (value[2] + green) & 255
            y[0, i, j], y[1, i, j], y[2, i, j] = green, red - green, blue - green
    out = np.empty((n, RECORD), np.uint8)
    out[:, 0] = data[:n]
    planes = np.moveaxis(y, 3, 1)
    out[:, 1:1025] = (planes[1] + planes[0]).reshape(n, -1)
    out[:, 1025:2049] = planes[0].reshape(n, -1)
    out[:, 2049:] = (planes[2] + planes[0]).reshape(n, -1)
    return out


def pack(source, target):
    records = np.concatenate([np.fromfile(os.path.join(source, f), np.uint8).reshape(-1, RECORD) for f in FILES])
    chunks = [records[i:i + CHUNK] for i in range(0, len(records), CHUNK)]
    os.makedirs(target, exist_ok=True)
    with ProcessPoolExecutor(2) as pool:
        streams = list(pool.map(encode, chunks))
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
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](sys.argv[2], sys.argv[3])
