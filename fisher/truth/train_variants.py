#!/usr/bin/env python3
"""Trains the networks of variants.py on CIFAR-10 and appends one JSON line for each to a results file.

    python3 train_variants.py --data FOLDER --out results.jsonl [--epochs 10] [--workers 2] [--seconds 560] [--only GLOB,GLOB...] [--seed S]
    python3 train_variants.py --data FOLDER --out results.jsonl --models chosen=out/network.py original=m.py --seeds 3 --epochs 14

FOLDER holds CIFAR-10's binary files, or the parts that pack_cifar.py made (they are unpacked first), or is 'synthetic'. A network that the results
file already has (same name, seed and epochs) is skipped, so a run that was stopped is continued by running it again. Nothing is
started that would not end within --seconds.

Restricted convolutions run as dense ones with masked weights: the same function, at one speed for every variant.
"""
import argparse
import fnmatch
import json
import math
import os
import runpy
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pack_cifar  # noqa: E402
import variants as V  # noqa: E402


# ---- the network -------------------------------------------------------------------------------------------------------------

def axis_index(axis, size):
    shape = [1, 1, 1, 1]
    shape[("co", "ci", "kh", "kw").index(axis)] = size
    return torch.arange(size).view(shape)


def digits_hold(part, value):
    """Where all conditions of a part hold; `value` gives the index of an axis, in shapes that broadcast."""
    digit = lambda axis, stride, radix: value(axis) // stride % radix
    keep = torch.ones(1, dtype=torch.bool)
    for axis, (lo, hi) in part.spans.items():
        keep = keep & (value(axis) >= lo) & (value(axis) < hi)
    for axis, stride, radix, lo, hi in part.ranges:
        keep = keep & (digit(axis, stride, radix) >= lo) & (digit(axis, stride, radix) < hi)
    for first, second in part.pairs:
        keep = keep & (digit(*first) == digit(*second))
    return keep


def weight_mask(site, row, column):
    """Which entries of the dense weight the instances of one output position read."""
    e = site.extents
    shape = (e["co"], e["ci"], e["kh"], e["kw"])
    value = lambda axis: torch.tensor({"oh": row, "ow": column}[axis]) if axis in ("oh", "ow") else axis_index(axis, e[axis])
    mask = torch.zeros(shape, dtype=torch.bool)
    for part in site.parts:
        mask |= digits_hold(part, value).expand(shape)
    return mask


def repeated_from(site, axis):
    """For every index of an output axis, the computed index that it repeats: bounded digits wrap into their range."""
    index = torch.arange(site.extents[axis])
    for part in site.parts:
        for name, stride, radix, lo, hi in part.ranges:
            if name == axis:
                digit = index // stride % radix
                index = index + (lo + (digit - lo) % (hi - lo) - digit) * stride
    return index


class RestrictedConv(nn.Module):
    """A dense convolution for each set of weights that some output position uses, and each position picks its own."""
    def __init__(self, site):
        super().__init__()
        e = site.extents
        self.stride, self.padding = site.stride, (e["kh"] // 2, e["kw"] // 2)
        digits = [r for p in site.parts for r in p.ranges] + [d for p in site.parts for pair in p.pairs for d in pair]
        rows = e["oh"] if any(d[0] == "oh" for d in digits) else 1
        columns = e["ow"] if any(d[0] == "ow" for d in digits) else 1
        alike = {}                                      # positions whose digits are the same use the same weights
        for row in range(rows):
            for column in range(columns):
                key = tuple((row if d[0] == "oh" else column) // d[1] % d[2] for d in digits if d[0] in ("oh", "ow"))
                alike.setdefault(key, []).append((row, column))
        classes = []                                    # (mask of the weights, positions that use it)
        for positions in alike.values():
            mask, where = weight_mask(site, *positions[0]), torch.zeros(1, 1, rows, columns, dtype=torch.bool)
            for row, column in positions:
                where[0, 0, row, column] = True
            if mask.any():
                classes.append((mask, where))
        computed = classes[0][0].flatten(1).any(1)
        assert all(torch.equal(m.flatten(1).any(1), computed) for m, _ in classes)
        used = torch.stack([m for m, _ in classes]).any(0)
        fan_in = classes[0][0].flatten(1).sum(1).clamp(min=1).view(-1, 1, 1, 1)
        self.weight = nn.Parameter((torch.randn(used.shape) * (2.0 / fan_in).sqrt() * used)
                                   .contiguous(memory_format=torch.channels_last))
        for i, (mask, where) in enumerate(classes):
            self.register_buffer(f"mask{i}", None if mask.all() else mask.float().contiguous(memory_format=torch.channels_last))
            self.register_buffer(f"where{i}", where.float() if len(classes) > 1 else None)
        self.classes = len(classes)
        # Missing outputs: repeated by an index, zero, or mixed from the computed channels by a 1x1 convolution.
        self.mix, self.gathers = None, []
        if site.restore == "repeat":
            for dim, axis in ((1, "co"), (2, "oh"), (3, "ow")):
                index = repeated_from(site, axis)
                if not torch.equal(index, torch.arange(len(index))):
                    self.register_buffer(f"from_{axis}", index)
                    self.gathers.append((dim, f"from_{axis}"))
        elif site.restore == "pointwise":
            kept = int(computed.sum())
            self.register_buffer("kept", computed.nonzero().flatten())
            self.mix = nn.Parameter(torch.randn(e["co"], kept, 1, 1) * math.sqrt(2.0 / kept))
        area = e["oh"] * e["ow"] // (rows * columns)
        self.macs = sum(int(m.sum()) * int(w.sum()) * area for m, w in classes)
        self.params = int(used.sum())
        if self.mix is not None:
            self.macs += self.mix.numel() * e["oh"] * e["ow"]
            self.params += self.mix.numel()

    def forward(self, x):
        y = None
        for i in range(self.classes):
            mask, where = getattr(self, f"mask{i}"), getattr(self, f"where{i}")
            part = F.conv2d(x, (self.weight if mask is None else self.weight * mask).to(x.dtype), stride=self.stride, padding=self.padding)
            part = part if where is None else part * where.to(x.dtype)
            y = part if y is None else y + part
        for dim, index in self.gathers:
            y = y.index_select(dim, getattr(self, index))
        if self.mix is not None:
            y = F.conv2d(y.index_select(1, self.kept), self.mix.to(y.dtype))
        return y.contiguous(memory_format=torch.channels_last)


def plain(co, ci, size, stride=1, kernel=3):
    return RestrictedConv(V.Site(dict(co=co, ci=ci, oh=size, ow=size, kh=kernel, kw=kernel), stride))


class Block(nn.Module):
    def __init__(self, first, second, inputs):
        super().__init__()
        self.conv1, self.bn1 = RestrictedConv(first), nn.BatchNorm2d(first.extents["co"])
        self.conv2, self.bn2 = RestrictedConv(second), nn.BatchNorm2d(second.extents["co"])
        self.downsample = None
        if first.stride != 1:
            e = second.extents
            self.downsample = nn.Sequential(plain(e["co"], inputs, e["oh"], first.stride, 1), nn.BatchNorm2d(e["co"]))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet34(nn.Module):
    def __init__(self, sites):
        super().__init__()
        self.conv1, self.bn1 = plain(64, 3, 32), nn.BatchNorm2d(64)
        blocks, inputs = [], 64
        for b in V.BLOCKS:
            blocks.append(Block(sites[f"{b}.conv1"], sites[f"{b}.conv2"], inputs))
            inputs = sites[f"{b}.conv2"].extents["co"]
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)).float())

    def counts(self):
        convs = [m for m in self.modules() if isinstance(m, RestrictedConv)]
        others = sum(p.numel() for m in self.modules() if isinstance(m, (nn.BatchNorm2d, nn.Linear)) for p in m.parameters())
        return sum(c.params for c in convs) + others, sum(c.macs for c in convs) + self.fc.weight.numel()


class Exported(nn.Module):
    """A module that `loopegg export` or `optimize` wrote, from fresh weights: whatever was chosen is trained as it is."""
    def __init__(self, file):
        super().__init__()
        self.net = runpy.run_path(file)["Network"]()
        self.unused = 0
        for m in self.net.modules():
            if not isinstance(m, nn.Conv2d):
                continue
            masks = [kept for name, kept in m.named_buffers(recurse=False) if name.startswith("kept")]
            used = torch.stack(masks).any(0) if masks else torch.ones_like(m.weight, dtype=torch.bool)
            fan_in = used.flatten(1).sum(1).clamp(min=1).view(-1, 1, 1, 1)
            self.unused += int((~used).sum())
            with torch.no_grad():
                m.weight.copy_(torch.randn(used.shape) * (2.0 / fan_in).sqrt() * used)

    def forward(self, x):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.dtype == torch.bfloat16, cache_enabled=False):
            return self.net(x).float()

    def counts(self):
        return sum(p.numel() for p in self.parameters()) - self.unused, None


# ---- training ----------------------------------------------------------------------------------------------------------------

def load(folder, device, limit=None):
    names = {"train": pack_cifar.FILES[:5], "test": pack_cifar.FILES[5:]}
    out = {}
    if folder == "synthetic":           # noise: for trying the machine
        for split, n in (("train", 50000), ("test", 10000)):
            n = min(n, limit or n)
            out[split] = (torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, device=device),
                          torch.randint(0, 10, (n,), device=device))
        return out
    for split, files in names.items():
        records = np.concatenate([np.fromfile(os.path.join(folder, f), np.uint8).reshape(-1, 3073) for f in files])[:limit]
        out[split] = (torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).to(device),
                      torch.from_numpy(records[:, 0].astype(np.int64)).to(device))
    return out


MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def normalised(images, dtype):
    mean = torch.tensor(MEAN, device=images.device).view(1, 3, 1, 1) * 255
    std = torch.tensor(STD, device=images.device).view(1, 3, 1, 1) * 255
    return ((images.float() - mean) / std).to(dtype).contiguous(memory_format=torch.channels_last)


def augmented(padded, index):
    """The images at `index` of N, 3, 40, 40, each cropped to 32 by 32 somewhere and flipped or not."""
    device, batch = padded.device, len(index)
    rows = torch.arange(32, device=device)
    top = torch.randint(0, 9, (batch, 1, 1, 1), device=device) + rows.view(1, 1, 32, 1)
    flip = torch.rand(batch, 1, 1, 1, device=device) < 0.5
    left = torch.randint(0, 9, (batch, 1, 1, 1), device=device) + torch.where(flip, 31 - rows, rows)
    return padded[index.view(-1, 1, 1, 1), torch.arange(3, device=device).view(1, 3, 1, 1), top, left]


class Nesterov:
    """SGD with Nesterov momentum whose rate is a tensor, so that a captured step can be replayed with another rate."""
    def __init__(self, model, device, momentum=0.9, decay=5e-4):
        self.params = list(model.parameters())
        self.decayed = [i for i, p in enumerate(self.params) if p.ndim > 1]
        self.buffers = [torch.zeros_like(p) for p in self.params]
        self.momentum, self.decay = momentum, decay
        self.rate = torch.zeros((), device=device)

    @torch.no_grad()
    def step(self):
        grads = [p.grad for p in self.params]
        torch._foreach_add_([grads[i] for i in self.decayed], [self.params[i] for i in self.decayed], alpha=self.decay)
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        torch._foreach_add_(grads, self.buffers, alpha=self.momentum)
        torch._foreach_mul_(grads, self.rate)
        torch._foreach_sub_(self.params, grads)

    def forget(self):
        torch._foreach_zero_(self.buffers)


class Trainer:
    """One training step, captured as a CUDA graph where that works: launching its thousand kernels one by one costs more."""
    def __init__(self, model, optimizer, batch, device, dtype, capture):
        self.model, self.optimizer, self.graph = model, optimizer, None
        if not capture:
            return
        self.x = torch.randn(batch, 3, 32, 32, device=device).to(dtype).contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (batch,), device=device)
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):          # the rate is zero: nothing is learned yet
                    self.eager(self.x, self.y)
            torch.cuda.current_stream().wait_stream(side)
            model.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.loss = F.cross_entropy(self.model(self.x), self.y, label_smoothing=0.1)
                self.loss.backward()
                self.optimizer.step()
            self.graph = graph
        except RuntimeError as e:
            print(f"no CUDA graph: {e}", flush=True)
            torch.cuda.synchronize()
        optimizer.forget()

    def eager(self, x, y):
        self.model.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x), y, label_smoothing=0.1)
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self, x, y):
        if self.graph is None:
            return self.eager(x, y)
        self.x.copy_(x)
        self.y.copy_(y)
        self.graph.replay()
        return self.loss


def train(name, plan, seed, data, options, device, deadline):
    """The result line, or None when the deadline came first. `plan` is a plan, or a whole model.json, or {"module": network.py}."""
    began = time.time()
    epochs, batch = options.epochs, options.batch
    torch.manual_seed(seed * 1000 + 17)
    model = Exported(plan["module"]) if "module" in plan else ResNet34(V.sites_of_model(plan) if "nodes" in plan else V.sites_under(plan))
    params, macs = model.counts()
    model = model.to(device, memory_format=torch.channels_last)
    model.train()
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    images, labels = data["train"]
    padded = data["padded"]                                                 # N, 3, 40, 40
    optimizer = Nesterov(model, device)
    trainer = Trainer(model, optimizer, batch, device, dtype, device == "cuda" and not options.no_graph)
    steps_per_epoch = len(images) // batch
    total = epochs * steps_per_epoch
    peak, warm = options.peak * batch / 512, max(1, int(0.25 * total))
    step = 0
    for epoch in range(epochs):
        order = torch.randperm(len(images), device=device)
        for i in range(steps_per_epoch):
            optimizer.rate.fill_(peak * (step + 1) / warm if step < warm else peak * max(0.0, (total - step) / (total - warm)))
            index = order[i * batch:(i + 1) * batch]
            x = augmented(padded, index).contiguous(memory_format=torch.channels_last)
            loss = trainer.step(x, labels[index])
            step += 1
            if options.max_steps and step >= options.max_steps:
                break
        if options.max_steps and step >= options.max_steps:
            break
        if device == "cuda":
            torch.cuda.synchronize()
        if time.time() > deadline:
            return None
    model.eval()
    right = 0
    tests, answers = data["test"]
    with torch.no_grad():
        for i in range(0, len(tests), 1000):
            guess = model(normalised(tests[i:i + 1000], dtype)).argmax(1)
            right += int((guess == answers[i:i + 1000]).sum())
    return {"name": name, "seed": seed, "epochs": epochs, "batch": batch, "peak": options.peak, "params": params, "macs": macs,
            "accuracy": round(100.0 * right / len(tests), 3), "loss": round(float(loss.detach()), 4),
            "seconds": round(time.time() - began, 2), **({} if "nodes" in plan or "module" in plan else {"plan": plan})}


def read_model(file):
    """The model of FILE.json, or the one that FILE.jsonl#NAME names."""
    path, _, name = file.partition("#")
    if not name:
        return json.load(open(path))
    return next(row["model"] for row in map(json.loads, open(path)) if row["name"] == name)


def finished(path):
    done = set()
    if os.path.exists(path):
        for line in open(path):
            try:
                r = json.loads(line)
                done.add((r["name"], r["seed"], r["epochs"], r.get("peak", 0.4)))
            except (ValueError, KeyError):       # the torn last line of a run that was killed
                pass
    return done


def work(rank, options, jobs, counter, deadline):
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = load(options.data, device, options.limit)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    data["padded"] = F.pad(normalised(data["train"][0], dtype), (4, 4, 4, 4), mode="reflect").contiguous()
    longest = 0.0
    while True:
        with counter.get_lock():
            i = counter.value
            counter.value += 1
        if i >= len(jobs):
            return
        if time.time() + longest * 1.05 > deadline:
            print(f"worker {rank}: no time left for another network", flush=True)
            return
        name, plan, seed = jobs[i]
        try:
            result = train(name, plan, seed, data, options, device, deadline)
        except Exception as e:      # one variant that fails must not cost the others
            print(f"{name}: {type(e).__name__}: {e}", flush=True)
            continue
        if result is None:
            print(f"{name}: stopped by the deadline", flush=True)
            return
        longest = max(longest, result["seconds"])
        with open(options.out, "a") as f:
            f.write(json.dumps(result) + "\n")
        print(f"{name} seed {seed}: {result['accuracy']}% in {result['seconds']} s, {result['params'] / 1e6:.2f} M parameters, loss {result['loss']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--peak", type=float, default=0.4, help="the largest rate, for a batch of 512; a smaller one leaves less to luck")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--only", default="*", help="names of networks, as globs with commas between them")
    parser.add_argument("--models", nargs="*", metavar="NAME=FILE", help="train these instead of the variants: model.json (ResNet-34 as `optimize` wrote it), models.jsonl#NAME (one of several), or network.py (any network)")
    parser.add_argument("--seeds", type=int, default=1, help="with --models: how often each is trained")
    parser.add_argument("--seed", type=int, help="train each of them once with this seed: how much of a loss is luck?")
    parser.add_argument("--limit", type=int, help="images per split, for a trial")
    parser.add_argument("--no-graph", action="store_true", help="launch every kernel by itself")
    parser.add_argument("--max-steps", type=int, help="steps per network, for a trial")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    if options.data != "synthetic" and not os.path.exists(os.path.join(options.data, pack_cifar.FILES[0])):
        pack_cifar.unpack(options.data, options.data)
        print("unpacked", flush=True)
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    if os.path.exists(options.out) and not open(options.out).read().endswith("\n"):
        open(options.out, "a").write("\n")       # ends the torn line of a run that was killed
    done = finished(options.out)
    wanted = V.variants() if not options.models else [
        (name, {"module": file} if file.endswith(".py") else read_model(file), seed) for seed in range(options.seeds) for name, file in (m.split("=", 1) for m in options.models)]
    jobs = [j for j in wanted if any(fnmatch.fnmatchcase(j[0], glob) for glob in options.only.split(","))]
    if options.seed is not None:
        jobs = list({name: (name, plan, options.seed) for name, plan, _ in jobs}.values())
    jobs = [j for j in jobs if (j[0], j[2], options.epochs, options.peak) not in done]
    print(f"{len(jobs)} networks to train, {len(done)} done before", flush=True)
    context = torch.multiprocessing.get_context("spawn")
    counter = context.Value("i", 0)
    workers = [context.Process(target=work, args=(r, options, jobs, counter, deadline)) for r in range(options.workers)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    left = len(jobs) - (len(finished(options.out)) - len(done))
    print(f"{left} networks left" if left else "all networks trained", flush=True)


if __name__ == "__main__":
    main()
