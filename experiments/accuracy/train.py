#!/usr/bin/env python3
"""Trains networks on CIFAR-10 by one recipe and appends one JSON line for each training to a results file.

    python3 train.py --data CIFAR --out labels.jsonl --jobs jobs.jsonl --recipe short [--workers 4] [--seconds 560] [--keep FOLDER]

jobs.jsonl has one training on each line: {"name", "base", "plan", "seed"}. "base" is a network of networks.py, "plan" is the content of a plan.json.
{"name", "module": "network.py", "seed"} trains a module that `loopegg export` or `optimize` wrote, from fresh weights.
CIFAR holds CIFAR-10's binary files, or the parts that pack_cifar.py made. A training that the results file has (same name, seed and recipe) is
skipped. Nothing is started that would not end within --seconds.

| recipe | epochs | batch | largest rate | cutout | for |
|---|---|---|---|---|---|
| full | 75 | 512 | 0.4 | 12 | every accuracy that is cited as final |
| short | 16 | 512 | 0.4 | none | labels: ranks networks as `full` does (README.md) |
| distil | 30 | 512 | 0.2 | 12 | a restricted network that begins with weights of the trained original, which teaches it |
| distil-mixed | 30 | 512 | 0.2 | 12 | the same with more of the teacher and with mixed images: no gain is shown |

`distil` and `distil-mixed` want the original of the same base network and seed, trained by `full` and kept by --keep. The network begins with the
channels of the original that weigh most. The loss of `distil` is 0.3 of the cross entropy and 0.7 of the divergence from the original's answers at
temperature 2. `distil-mixed` takes 0.1 and 0.9 at temperature 4, and mixes half of the images with another image of the batch.

All of them: SGD with Nesterov momentum 0.9, weight decay 5e-4 on weights of more than one dimension, one linear warm-up over a fifth of the steps and a
linear fall to zero, label smoothing 0.1, crops of 4 reflected pixels and flips, bfloat16 activations with float32 weights and sums; the last
batch norm of a residual branch begins at zero. The accuracy is that of the last epoch on the 10,000 test images, without augmentation.
"""
import argparse
import json
import os
import runpy
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "fisher", "truth")]
import networks as N  # noqa: E402
import pack_cifar  # noqa: E402

RECIPES = {"full": dict(epochs=75, batch=512, peak=0.4, cutout=12), "short": dict(epochs=16, batch=512, peak=0.4, cutout=0),
           "distil": dict(epochs=30, batch=512, peak=0.2, cutout=12, taught=0.7, temperature=2.0),
           "distil-mixed": dict(epochs=30, batch=512, peak=0.2, cutout=12, taught=0.9, temperature=4.0, mixed=0.5)}

# ---- networks ----------------------------------------------------------------------------------------------------------------


def he(*shape):
    fan_in = int(np.prod(shape[1:]))
    return nn.Parameter((torch.randn(shape) * (2.0 / fan_in) ** 0.5).contiguous(memory_format=torch.channels_last))


class Conv(nn.Module):
    def __init__(self, node, ins):
        super().__init__()
        self.p = p = N.Pieces(node, ins)
        self.weights = nn.ParameterList(he(n, (hi - lo) // g, p.kernel, p.kernel) for lo, hi, n, g in p.pieces)
        self.mix = he(p.out, p.pointwise, 1, 1) if p.pointwise else None

    def forward(self, x):
        p, half = self.p, x.shape[2] // 2
        stride = 2 if p.every_second else p.stride
        y = []
        for i, ((lo, hi, _, g), w) in enumerate(zip(p.pieces, self.weights)):
            part = x if hi - lo == x.shape[1] else x[:, lo:hi]
            if p.rows:      # the upper half of the rows reads these channels, the lower half those
                part = F.pad(part[:, :, :half + 1], (1, 1, 1, 0)) if i == 0 else F.pad(part[:, :, half - 1:], (1, 1, 0, 1))
            y.append(F.conv2d(part, w.to(x.dtype), stride=stride, padding=0 if p.rows else p.padding, groups=g))
        y = y[0] if len(y) == 1 else torch.cat(y, 2 if p.rows else 1)
        if p.every_second:
            y = y.repeat_interleave(2, 2).repeat_interleave(2, 3)
        if p.repeat > 1:
            y = y.repeat(1, p.repeat, 1, 1)
        return y if self.mix is None else F.conv2d(y, self.mix.to(y.dtype))


def branch_ends(graph):
    """The deeper operand of each addition, which is the end of a branch. The other operand is the stream."""
    depth, ends = {"input": 0}, set()
    for n in graph["nodes"]:
        depth[n["name"]] = 1 + max(depth[i] for i in n["inputs"])
        if n["op"] == "add":
            ends.add(max(n["inputs"], key=depth.get))
    return ends


class Network(nn.Module):
    """A graph of networks.py, run node by node."""
    def __init__(self, graph):
        super().__init__()
        c, self.steps, self.layers = N.Channels(graph), [], nn.ModuleList()
        self.output = graph["outputs"][0]
        branches = branch_ends(graph)
        for n in graph["nodes"]:
            op, ins, layer = n["op"], c.total(c.of[n["inputs"][0]]), None
            if op == "conv2d":
                layer = Conv(n, ins)
            elif op == "batch_norm":
                layer = nn.BatchNorm2d(ins)
                if n["name"] in branches:
                    nn.init.zeros_(layer.weight)
            elif op == "linear":
                layer = nn.Linear(ins, n["attrs"]["out_features"])
            self.steps.append((n["name"], op, n["inputs"], n.get("attrs", {}), None if layer is None else len(self.layers)))
            if layer is not None:
                self.layers.append(layer)
        last = {i: at for at, s in enumerate(self.steps) for i in s[2]}
        self.dead = [[i for i in set(s[2]) if last[i] == at] for at, s in enumerate(self.steps)]
        self.watched, self.seen = (), {}        # nodes whose values are wanted, and their values of the last call

    def forward(self, x):
        v = {"input": x}
        for (name, op, inputs, a, layer), dead in zip(self.steps, self.dead):
            x = v[inputs[0]]
            if op in ("conv2d", "batch_norm"):
                y = self.layers[layer](x)
            elif op == "linear":
                y = self.layers[layer](x.float())
            elif op == "relu":
                y = F.relu(x)
            elif op == "relu6":
                y = F.relu6(x)
            elif op == "add":
                y = x + v[inputs[1]]
            elif op == "concat":
                y = x if len(inputs) == 1 else torch.cat([v[i] for i in inputs], 1)
            elif op == "max_pool":
                y = F.max_pool2d(x, a["kernel"], a["stride"])
            elif op == "avg_pool":
                y = F.avg_pool2d(x, a["kernel"], a["stride"])
            elif op == "global_avg_pool":
                y = x.mean((2, 3), keepdim=True)
            elif op == "flatten":
                y = x.flatten(1)
            else:
                raise ValueError(op)
            v[name] = y
            if name in self.watched:
                self.seen[name] = y
            for i in dead:
                v.pop(i, None)
        return v[self.output].float()


class Exported(nn.Module):
    def __init__(self, file):
        super().__init__()
        self.net = runpy.run_path(file)["Network"]()
        for m in self.net.modules():
            if isinstance(m, nn.Conv2d):
                masks = [kept for name, kept in m.named_buffers(recurse=False) if name.startswith("kept")]
                used = torch.stack(masks).any(0) if masks else torch.ones_like(m.weight, dtype=torch.bool)
                fan_in = used.flatten(1).sum(1).clamp(min=1).view(-1, 1, 1, 1)
                with torch.no_grad():
                    m.weight.copy_(torch.randn(used.shape) * (2.0 / fan_in).sqrt() * used)

    def forward(self, x):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.dtype == torch.bfloat16, cache_enabled=False):
            return self.net(x).float()


# ---- weights that are carried over -------------------------------------------------------------------------------------------

def layers_by_name(network):
    return {name: network.layers[at] for name, _, _, _, at in network.steps if at is not None}


def channel_weights(graph, layers, writers):
    """How much each channel of a stream weighs: the norm of the weights that write it, times the scale of the batch norm that follows; the mean over writers."""
    total = 0
    for w in writers:
        weight = layers[w].weights[0].detach().flatten(1).norm(dim=1)
        for after in N.consumers(graph, w):
            if after["op"] == "batch_norm":
                norm = layers[after["name"]]
                weight = weight * norm.weight.detach().abs() / (norm.running_var + norm.eps).sqrt()
        total = total + weight / weight.mean().clamp(min=1e-12)
    return total


@torch.no_grad()
def carry(original, trained, graph, network):
    """Gives `network`, of `graph`, the weights of `trained`, of `original`. Every stream keeps the channels that weigh most.

    Only narrower streams and dropped branches are carried: what splits one convolution begins with fresh weights.
    """
    before, now = N.Channels(original), N.Channels(graph)
    old, new = layers_by_name(trained), layers_by_name(network)
    sites = [n for n in graph["nodes"] if n["op"] == "conv2d"]
    kept = {}

    def channels(streams):
        out, offset = [], 0
        for s in streams:
            root = now.find(s)
            if root not in kept:
                width, writers = now.width[root], [n["name"] for n in sites if now.stream(n["name"]) == root]
                whole = before.width[before.find(root)]
                kept[root] = torch.arange(whole) if width == whole else channel_weights(original, old, writers).topk(width).indices.sort().values.cpu()
            out.append(kept[root] + offset)
            offset += before.width[before.find(root)]
        return torch.cat(out)

    for n in graph["nodes"]:
        name, op = n["name"], n["op"]
        if name not in new:
            continue
        ins, outs = channels(now.of[n["inputs"][0]]), channels(now.of[name])
        if op == "conv2d" and new[name].weights[0].shape == (len(outs), len(ins), *old[name].weights[0].shape[2:]) and not n.get("restrict"):
            new[name].weights[0].copy_(old[name].weights[0][outs][:, ins])
        elif op == "batch_norm":
            for own, theirs in zip((new[name].weight, new[name].bias, new[name].running_mean, new[name].running_var),
                                   (old[name].weight, old[name].bias, old[name].running_mean, old[name].running_var)):
                own.copy_(theirs[ins])
        elif op == "linear":
            new[name].weight.copy_(old[name].weight[:, ins])
            new[name].bias.copy_(old[name].bias)


# ---- data --------------------------------------------------------------------------------------------------------------------

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def load(folder, device, limit=None):
    if folder == "synthetic":       # noise: for trying the machine
        images = torch.randint(0, 256, (limit or 50000, 3, 32, 32), dtype=torch.uint8, device=device)
        labels = torch.randint(0, 10, (len(images),), device=device)
        return (images, labels), (images[:1000], labels[:1000])
    sets = []
    for files in (pack_cifar.FILES[:5], pack_cifar.FILES[5:]):
        records = np.concatenate([np.fromfile(os.path.join(folder, f), np.uint8).reshape(-1, 3073) for f in files])[:limit]
        sets.append((torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).to(device), torch.from_numpy(records[:, 0].astype(np.int64)).to(device)))
    return sets


def normalised(images, dtype):
    mean, std = (torch.tensor(v, device=images.device).view(1, 3, 1, 1) * 255 for v in (MEAN, STD))
    return ((images.float() - mean) / std).to(dtype).contiguous(memory_format=torch.channels_last)


# ---- one step ----------------------------------------------------------------------------------------------------------------

class Trainer:
    """One step, from drawing a batch to the new weights, as one CUDA graph: the host only replays it."""
    def __init__(self, model, padded, labels, recipe, device, teacher=None):
        self.teacher = teacher
        self.model, self.padded, self.labels, self.recipe, self.device = model, padded, labels, recipe, device
        batch, total = recipe["batch"], recipe["epochs"] * (len(labels) // recipe["batch"])
        self.per_epoch = len(labels) // batch
        warm = max(1, total // 5)
        rates = [recipe["peak"] * batch / 512 * min((i + 1) / warm, (total - i) / (total - warm)) for i in range(total)]
        self.rates = torch.tensor(rates, device=device)
        self.order = torch.zeros(len(labels), dtype=torch.int64, device=device)
        self.at, self.step_number = torch.zeros(1, dtype=torch.int64, device=device), torch.zeros(1, dtype=torch.int64, device=device)
        self.offsets = torch.arange(batch, device=device)
        self.params = list(model.parameters())
        self.decayed = [i for i, p in enumerate(self.params) if p.ndim > 1]
        self.momenta = [torch.zeros_like(p) for p in self.params]
        self.classes = torch.eye(10, device=device)
        self.graph = None
        self.loss_sum, self.losses = torch.zeros((), device=device), []      # of this epoch; the mean of each epoch

    def batch(self):
        """Images and the class of each. Where images are mixed, the probability of every class."""
        index = self.order[self.at * self.recipe["batch"] + self.offsets]
        d, n, rows = self.device, len(index), torch.arange(32, device=self.device)
        top = torch.randint(0, 9, (n, 1, 1, 1), device=d) + rows.view(1, 1, 32, 1)
        flip = torch.rand(n, 1, 1, 1, device=d) < 0.5
        left = torch.randint(0, 9, (n, 1, 1, 1), device=d) + torch.where(flip, 31 - rows, rows)
        x = self.padded[index.view(-1, 1, 1, 1), torch.arange(3, device=d).view(1, 3, 1, 1), top, left]
        if c := self.recipe["cutout"]:
            y0, x0 = (torch.randint(-c // 2, 32 - c // 2, (n, 1, 1, 1), device=d) for _ in range(2))
            r, s = rows.view(1, 1, 32, 1), rows.view(1, 1, 1, 32)
            x = x.masked_fill((r >= y0) & (r < y0 + c) & (s >= x0) & (s < x0 + c), 0)
        y = self.labels[index]
        if m := self.recipe.get("mixed"):     # this share of the images is mixed with another image of the batch
            own = torch.where(torch.rand(n, 1, 1, 1, device=d) < m, torch.rand(n, 1, 1, 1, device=d), torch.ones(n, 1, 1, 1, device=d))
            x = (own * x + (1 - own) * x.roll(1, 0)).to(x.dtype)
            y = self.classes[y]
            y = own.view(n, 1) * y + (1 - own.view(n, 1)) * y.roll(1, 0)
        return x.contiguous(memory_format=torch.channels_last), y

    def forward_backward(self):
        x, y = self.batch()
        answers = self.model(x)
        self.loss = F.cross_entropy(answers, y, label_smoothing=0.1)
        if self.teacher is not None:
            taught, t = self.recipe["taught"], self.recipe["temperature"]
            with torch.no_grad():
                wanted = F.softmax(self.teacher(x) / t, 1)
            apart = F.kl_div(F.log_softmax(answers / t, 1), wanted, reduction="batchmean") * t * t
            self.loss = (1 - taught) * self.loss + taught * apart
        self.loss.backward()

    @torch.no_grad()
    def update(self):
        grads, rate = [p.grad for p in self.params], self.rates[self.step_number].squeeze()
        torch._foreach_add_([grads[i] for i in self.decayed], [self.params[i] for i in self.decayed], alpha=5e-4)
        torch._foreach_mul_(self.momenta, 0.9)
        torch._foreach_add_(self.momenta, grads)
        torch._foreach_add_(grads, self.momenta, alpha=0.9)
        torch._foreach_mul_(grads, rate)
        torch._foreach_sub_(self.params, grads)
        self.at += 1
        self.step_number += 1
        self.loss_sum += self.loss.detach()

    def eager(self):
        self.model.zero_grad(set_to_none=True)
        self.forward_backward()
        self.update()

    def capture(self):
        """Captures one step. The warm-up changes nothing, because parameters, norms and counters are put back afterwards."""
        kept = {k: v.clone() for k, v in self.model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.eager()
        torch.cuda.current_stream().wait_stream(side)
        self.model.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.forward_backward()
            self.update()
        self.model.load_state_dict(kept)
        for m in self.momenta:
            m.zero_()
        self.step_number.zero_()

    def epoch(self, steps=None):
        self.order.copy_(torch.randperm(len(self.order), device=self.device))
        self.at.zero_()
        self.loss_sum.zero_()
        for _ in range(steps or self.per_epoch):
            if self.graph is None:
                self.eager()
            else:
                self.graph.replay()
        self.losses.append(self.loss_sum / (steps or self.per_epoch))


@torch.no_grad()
def test(model, tests, dtype):
    model.eval()
    images, answers = tests
    right, loss = 0, 0.0
    for i in range(0, len(images), 1000):
        out = model(normalised(images[i:i + 1000], dtype))
        right += int((out.argmax(1) == answers[i:i + 1000]).sum())
        loss += float(F.cross_entropy(out, answers[i:i + 1000], reduction="sum"))
    return round(100.0 * right / len(images), 3), round(loss / len(images), 5)


def kept_file(folder, job):
    return os.path.join(folder, "-".join(str(job[k]) for k in ("base", "name", "recipe", "seed")) + ".pt")


def train(job, data, recipe, device, deadline, options):
    began, no_graph, steps = time.time(), options.no_graph, options.max_steps
    torch.manual_seed(job["seed"] * 1000 + 17)
    teacher, before = None, {}
    if "module" in job:
        model, counts = Exported(job["module"]), (None, None)
    else:
        graph = N.apply_plan(N.BASES[job["base"]], job["plan"])
        model, counts = Network(graph), N.sizes(graph)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    if "taught" in recipe:
        original = N.BASES[job["base"]]
        teacher = Network(original)
        teacher.load_state_dict(torch.load(kept_file(options.keep, {**job, "name": "original", "recipe": "full"}), map_location="cpu"))
        carry(original, teacher, graph, model)
        teacher = teacher.to(device, memory_format=torch.channels_last).eval()
    model = model.to(device, memory_format=torch.channels_last)
    if teacher is not None:
        before = {"carried_accuracy": test(model, data["test"], dtype)[0], "teacher_accuracy": test(teacher, data["test"], dtype)[0]}
    model.train()
    trainer = Trainer(model, data["padded"], data["train"][1], recipe, device, teacher)
    if device == "cuda" and not no_graph:
        trainer.capture()
    for epoch in range(recipe["epochs"]):
        trainer.epoch(steps)
        if epoch % 2:
            if device == "cuda":
                torch.cuda.synchronize()
            if time.time() > deadline:
                return None
    loss = float(trainer.loss.detach())
    accuracy, test_loss = test(model, data["test"], dtype)
    if options.keep and "base" in job:
        os.makedirs(options.keep, exist_ok=True)
        torch.save(model.state_dict(), kept_file(options.keep, job))
    return {**{k: v for k, v in job.items() if k != "module"}, "recipe": job.get("recipe"), "params": counts[0], "macs": counts[1],
            "accuracy": accuracy, "test_loss": test_loss, **before, "loss": round(loss, 4),
            "losses": [round(float(l), 4) for l in trainer.losses], "seconds": round(time.time() - began, 2)}


def key(r):
    return r["name"], r.get("base"), r["seed"], r["recipe"]


def finished(path):
    done = set()
    if os.path.exists(path):
        for line in open(path):
            try:
                done.add(key(json.loads(line)))
            except (ValueError, KeyError):      # the torn last line of a run that was killed
                pass
    return done


def work(rank, options, jobs, counter, deadline):
    torch.backends.cudnn.benchmark = options.benchmark
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set, test_set = load(options.data, device, options.limit)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    data = {"train": train_set, "test": test_set, "padded": F.pad(normalised(train_set[0], dtype), (4, 4, 4, 4), mode="reflect").contiguous()}
    slowest = {}                # seconds an epoch, the most seen of each base network
    while True:
        with counter.get_lock():
            i = counter.value
            counter.value += 1
        if i >= len(jobs):
            return
        job = jobs[i]
        recipe = RECIPES[job["recipe"]] | ({"epochs": options.epochs} if options.epochs else {})
        if time.time() + slowest.get(job.get("base"), 0) * recipe["epochs"] > deadline:
            continue
        try:
            result = train(job, data, recipe, device, deadline, options)
        except Exception as e:      # one network that fails must not cost the others
            print(f"{job['name']}: {type(e).__name__}: {e}", flush=True)
            torch.cuda.empty_cache()
            continue
        if result is None:
            print(f"{job['name']}: stopped by the deadline", flush=True)
            return
        slowest[job.get("base")] = max(slowest.get(job.get("base"), 0), result["seconds"] / recipe["epochs"])
        with open(options.out, "a") as f:
            f.write(json.dumps(result) + "\n")
        print(f"{job.get('base', '')} {job['name']} seed {job['seed']} {job['recipe']}: {result['accuracy']}% {result['test_loss']}, {result['seconds']} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--recipe", choices=RECIPES, default="short", help="for jobs that name none")
    parser.add_argument("--epochs", type=int, help="in place of the recipe's, for a trial")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--keep", metavar="FOLDER", help="keeps the weights of every training there; `distil` reads the original's")
    parser.add_argument("--limit", type=int, help="images a set, for a trial")
    parser.add_argument("--max-steps", type=int, help="steps an epoch, for a trial")
    parser.add_argument("--benchmark", action="store_true", help="let cuDNN try its algorithms")
    parser.add_argument("--no-graph", action="store_true", help="launch every kernel by itself")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    if options.data != "synthetic" and not os.path.exists(os.path.join(options.data, pack_cifar.FILES[0])):
        pack_cifar.unpack(options.data, options.data)
        print(f"unpacked in {time.time() + options.seconds - deadline:.0f} s", flush=True)
    jobs = [{"recipe": options.recipe, **json.loads(line)} for line in open(options.jobs) if line.strip()]
    done = finished(options.out)
    jobs = [j for j in jobs if key(j) not in done]
    print(f"{len(jobs)} trainings, {len(done)} done before", flush=True)
    context = torch.multiprocessing.get_context("spawn")
    counter = context.Value("i", 0)
    workers = [context.Process(target=work, args=(r, options, jobs, counter, deadline)) for r in range(options.workers)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    left = len([j for j in jobs if key(j) not in finished(options.out)])
    print(f"{left} trainings left" if left else "all trained", flush=True)


if __name__ == "__main__":
    main()
