#!/usr/bin/env python3
"""Trains PyTorch modules that 'loopegg export' wrote on CIFAR-10, from fresh weights, by a recipe for transformers; appends one JSON line for each to a results file.

    loopegg apply original.json group4.json -o m.json && loopegg export m.json -o nets/group4.py
    python3 train_exported.py --data FOLDER --out results.jsonl --nets nets/original.py nets/group4.py [--seeds 3] [--epochs 15] [--worker K --workers N]

original.json and the plan group4.json are lines of networks.jsonl. FOLDER holds CIFAR-10's binary files. AdamW, 10% warm-up and a cosine, crops and flips; needs a CUDA device.
"""
import argparse
import json
import math
import os
import pathlib
import runpy
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import train_variants as T  # noqa: E402

BATCH, PEAK, DECAY = 256, 1e-3, 0.05


def fresh(net):
    with torch.no_grad():
        for name, p in net.named_parameters():
            if p.ndim >= 2:
                nn.init.trunc_normal_(p, std=0.02)
            else:
                p.fill_(0.0 if name.endswith("bias") else 1.0)
    return net


def train(path, seed, epochs, data):
    began = time.time()
    torch.manual_seed(seed * 1000 + 17)
    net = fresh(runpy.run_path(path)["Network"]()).to("cuda").train()
    images, labels = data["train"]
    padded = F.pad(T.normalised(images, torch.float32).contiguous(), (4, 4, 4, 4))
    groups = [{"params": [p for p in net.parameters() if p.ndim >= 2], "weight_decay": DECAY}, {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, fused=True)
    steps = len(images) // BATCH
    total = steps * epochs
    for step in range(total):
        if step % steps == 0:
            order = torch.randperm(len(images), device="cuda")
        done = max(0.0, (step - 0.1 * total) / (0.9 * total))
        for group in optimizer.param_groups:
            group["lr"] = PEAK * min(1, (step + 1) / (0.1 * total)) * 0.5 * (1 + math.cos(math.pi * done))
        index = order[step % steps * BATCH:][:BATCH]
        with torch.autocast("cuda", torch.bfloat16):
            outputs = net(T.augmented(padded, index))
        loss = F.cross_entropy(outputs.float(), labels[index], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    net.eval()
    tests, answers = data["test"]
    with torch.no_grad():
        right = sum(int((net(T.normalised(tests[i:i + 1000], torch.float32)).argmax(1) == answers[i:i + 1000]).sum()) for i in range(0, len(tests), 1000))
    return {"name": pathlib.Path(path).stem, "seed": seed, "epochs": epochs, "accuracy": 100 * right / len(tests), "loss": float(loss), "seconds": round(time.time() - began, 1)}


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--nets", nargs="+", required=True)
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--worker", type=int, default=0)
parser.add_argument("--workers", type=int, default=1)
a = parser.parse_args()
dataset = T.load(a.data, "cuda")
for number, (seed, path) in enumerate((s, n) for s in range(a.seeds) for n in a.nets):
    if number % a.workers == a.worker:
        line = json.dumps(train(path, seed, a.epochs, dataset))
        print(line, flush=True)
        with open(a.out, "a") as out:
            out.write(line + "\n")
