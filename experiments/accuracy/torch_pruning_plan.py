#!/usr/bin/env python3
"""Asks Torch-Pruning which channels of a trained original to keep, and writes what is left as a plan of ours.

    python3 torch_pruning_plan.py --weights KEPT.pt --macs 364 --out plan.json [--base resnet34-cifar10]

KEPT.pt is what `train.py --keep` kept of the original. Torch-Pruning (PyPI: torch-pruning) removes whole channels with all that depend on them: all
writers and readers of a stream together. Its importance is the L2 norm of such a group, compared over the whole network, and widths are rounded to 8 as
ours are. The plan then goes through the same training, tuning and timing as every other network.
"""
import argparse
import json
import os
import sys

import torch
import torch_pruning
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import networks as N  # noqa: E402
import train as T  # noqa: E402


class Plain(nn.Module):
    """The network with ordinary convolutions, which Torch-Pruning knows how to narrow."""
    def __init__(self, graph, trained):
        super().__init__()
        self.graph, layers = graph, T.layers_by_name(trained)
        self.made = nn.ModuleDict()
        for n in graph["nodes"]:
            if n["op"] == "conv2d":
                a, weight = n["attrs"], layers[n["name"]].weights[0].detach().float()
                groups = a.get("groups", 1)
                conv = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], a["kernel"], a.get("stride", [1, 1]), a["padding"], groups=groups, bias=False)
                conv.weight = nn.Parameter(weight.clone().contiguous())
                self.made[self.key(n["name"])] = conv
            elif n["op"] in ("batch_norm", "linear"):
                self.made[self.key(n["name"])] = layers[n["name"]].float()

    @staticmethod
    def key(name):
        return name.replace(".", "_")

    def forward(self, x):
        v = {"input": x}
        for n in self.graph["nodes"]:
            ins, op, a = [v[i] for i in n["inputs"]], n["op"], n.get("attrs", {})
            if op in ("conv2d", "batch_norm", "linear"):
                v[n["name"]] = self.made[self.key(n["name"])](ins[0])
            elif op == "add":
                v[n["name"]] = ins[0] + ins[1]
            elif op == "concat":
                v[n["name"]] = torch.cat(ins, 1)
            elif op == "max_pool":
                v[n["name"]] = nn.functional.max_pool2d(ins[0], a["kernel"], a["stride"])
            else:
                v[n["name"]] = {"relu": torch.relu, "relu6": nn.functional.relu6, "flatten": lambda t: t.flatten(1),
                                "global_avg_pool": lambda t: t.mean((2, 3), keepdim=True)}[op](ins[0])
        return v[self.graph["outputs"][0]]


def plan_of(base, model):
    """The widths that are left, as steps of a plan: streams first, hidden widths after them."""
    channels, streams, steps = N.Channels(base), {}, []
    for n in base["nodes"]:
        if n["op"] == "conv2d":
            streams.setdefault(channels.stream(n["name"]), []).append(n["name"])
    for stream, sites in streams.items():
        left = {model.made[Plain.key(s)].out_channels for s in sites}
        assert len(left) == 1, (sites, left)
        width = left.pop()
        if width == channels.width[channels.find(stream)]:
            continue
        if channels.residual(stream):
            steps.append({"site": sites[0], "apply": [{"rule": "narrow-stream", "with": {"?w": width}}]})
        else:
            steps.append({"site": sites[0], "apply": [{"rule": "bottleneck-output", "with": {"?w": width}, "restore": "propagate"}]})
    return {"steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", help="without: fresh weights, for a trial")
    parser.add_argument("--base", default="resnet34-cifar10")
    parser.add_argument("--macs", type=float, required=True, help="multiply-accumulates that may be left, in millions")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    base = N.BASES[options.base]
    trained = T.Network(base)
    if options.weights:
        trained.load_state_dict(torch.load(options.weights, map_location="cpu"))
    model = Plain(base, trained).eval()
    head = model.made[Plain.key(base["outputs"][0])]
    pruner = torch_pruning.pruner.MetaPruner(model, torch.randn(1, 3, 32, 32), importance=torch_pruning.importance.GroupMagnitudeImportance(p=2), global_pruning=True,
                                             pruning_ratio=0.9, max_pruning_ratio=0.875, iterative_steps=200, ignored_layers=[head], round_to=8)
    while True:
        pruner.step()
        plan = plan_of(base, model)
        parameters, macs = N.sizes(N.apply_plan(base, plan))
        if macs <= options.macs * 1e6 or pruner.current_step >= 200:
            break
    json.dump(plan, open(options.out, "w"), indent=1)
    print(f"{macs / 1e6:.0f} M multiply-accumulates, {parameters / 1e6:.1f} M parameters, {len(plan['steps'])} widths changed, after {pruner.current_step} of 200 steps")


if __name__ == "__main__":
    main()
