#!/usr/bin/env python3
"""Checks slices against the original with everything switched off that a choice takes away: both networks must answer alike. For every size and criterion.

    python3 check.py [BASE...]
"""
import sys

import torch

import cells as C
import importance
import slices
import train


@torch.no_grad()
def switched_off(space, original, plan, kept):
    """The original with zeros where the choice has nothing. What is dropped writes zeros."""
    graph = C.N.apply_plan(space.graph, plan)
    left = {n["name"]: n for n in graph["nodes"]}
    network = train.Network(space.graph)
    network.load_state_dict(original.state_dict())
    for name, layer in train.layers_by_name(network).items():
        n, root = space.node[name], space.channels.stream(name)
        gone = torch.ones(space.width.get(root, 10), dtype=torch.bool)
        if root in kept:
            gone[kept[root]] = False
        if n["op"] == "batch_norm":
            layer.weight[gone], layer.bias[gone] = 0, 0
        elif n["op"] == "conv2d":
            w = layer.weights[0]
            w[gone] = 0
            g = left.get(name, n)["attrs"].get("groups", 1)
            if g > 1:
                block = torch.full((2, max(w.shape[:2])), -1)
                for b, (r, c) in enumerate(zip(kept[root].chunk(g), kept[space.channels.stream(n["inputs"][0])].chunk(g))):
                    block[0, r], block[1, c] = b, b
                w[block[0, :len(w), None] != block[1, None, :w.shape[1]]] = 0
    ends = {s["site"] for s in plan["steps"] if s["apply"][0]["rule"] == "drop-branch"}
    for end in ends:        # nothing of a dropped branch is added
        layers = train.layers_by_name(network)
        layers[end].weights[0].zero_()
        if space.written(end) != end:
            layers[space.written(end)].weight.zero_()
            layers[space.written(end)].bias.zero_()
    return network.eval()


def main():
    x, y = torch.randn(4, 3, 32, 32), torch.arange(4)
    for base in sys.argv[1:] or C.BASES:
        torch.manual_seed(0)
        space, worst, count = C.Space(C.BASES[base]), 0.0, 0
        original = train.Network(space.graph).eval()
        for m in original.modules():        # no channel is like another
            if isinstance(m, torch.nn.BatchNorm2d):
                for v in (m.weight, m.bias, m.running_mean, m.running_var):
                    v.data.uniform_(0.1, 0.6)
        scores = importance.importance(space, original, x, y)
        for job in C.students(1, [base]):
            if job["seed"] or job["epochs"] > 1:
                continue
            plan, kept = slices.choose(space, scores, job["size"], job["criterion"], job["cell"])
            graph = C.N.apply_plan(space.graph, plan)
            sliced = train.Network(graph).eval()
            slices.carry(space, original, graph, sliced, kept)
            slices.features(space, scores, plan, kept)
            with torch.no_grad():
                ours, theirs = sliced(x[:2]), switched_off(space, original, plan, kept)(x[:2])
            apart = float((ours - theirs).abs().max() / theirs.abs().max())
            worst, count = max(worst, apart), count + 1
            if apart > 1e-3:
                sys.exit(f"{base} {job['cell']} {job['criterion']}: the answers differ by {apart:.2g}")
        print(f"{base}: {count} choices, answers differ by {worst:.1e} at most", flush=True)


if __name__ == "__main__":
    main()
