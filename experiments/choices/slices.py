#!/usr/bin/env python3
"""Chooses which channels, branches and blocks of connections of a trained network stay at given sizes, and slices its weights accordingly. As a command, it checks
slices against the original with everything switched off that a choice takes away, for every size and criterion: both networks must answer alike.

    python3 slices.py [BASE...]
"""
import random
import sys

import cells as C
import importance
import networks as N
import torch
import train
from cells import candidates, make_plan

CRITERIA = {"fisher": ("fisher", "fisher"), "gate": ("gate", "fisher"), "magnitude": ("magnitude", "magnitude"), "anti": ("fisher", "fisher")}


def choose(space, scores, size, criterion, seed=0):
    """(plan, kept): plan.json with the dropped branches, and for each stream the channels that stay, in the order in which the sliced network has them."""
    by, links_by = CRITERIA.get(criterion, (criterion, None))
    draw = random.Random(f"{criterion} {seed}")

    def worth(values):
        """One number for each candidate; the larger ones stay."""
        if by == "first":
            return [-i for i in range(len(values))]
        if by.startswith("random"):
            return [draw.random() for _ in values]
        own = [float(v[by]) for v in values]
        return [-v for v in own] if criterion == "anti" else own

    drops = []
    for stage, count in size.get("drop", {}).items():
        branches = candidates(space, stage)
        order = sorted(zip(worth([scores["branches"][b] for b in branches]), range(len(branches))))
        drops += [branches[i] for i in sorted(i for _, i in order[:count])]
    kept = {}
    for root, channels in scores["channels"].items():
        whole, width = space.width[root], size.get("width", {}).get(root, space.width[root])
        if width == whole:
            kept[root] = torch.arange(whole)
            continue
        by_channel = channels.get(by)
        value = torch.tensor(worth([None] * whole)) if by_channel is None else by_channel * (-1 if criterion == "anti" else 1)
        kept[root] = value.topk(width).indices.sort().values
    plan = make_plan(space, size, drops)
    grouped = [s["site"] for s in plan["steps"] if s["apply"][0]["rule"] == "group-axes"]
    if grouped and links_by:
        sign = -1 if criterion == "anti" else 1
        arrange(space, {s: sign * scores["links"][s][links_by].double() for s in grouped}, size["group"][grouped[0]], kept)
    elif grouped and by.startswith("random"):
        for r in sorted({r for s in grouped for r in roots_of(space, s)}):
            kept[r] = kept[r][torch.tensor(draw.sample(range(len(kept[r])), len(kept[r])))]
    return plan, kept


def roots_of(space, site):
    """The streams that a site writes and reads."""
    return space.channels.stream(site), space.channels.stream(space.node[site]["inputs"][0])


def arrange(space, links, count, kept):
    """Orders the kept channels so that the blocks of connections which groups leave hold as much as possible: one stream after another, until none changes."""
    root_of = {s: roots_of(space, s) for s in links}
    touched = {r for roots in root_of.values() for r in roots}
    held = {s: links[s][kept[o]][:, kept[i]] for s, (o, i) in root_of.items()}
    block = {r: torch.arange(len(kept[r])) * count // len(kept[r]) for r in touched}
    for _ in range(8):
        before = {r: b.clone() for r, b in block.items()}
        for r in sorted(touched):
            gain = torch.zeros(len(kept[r]), count, dtype=torch.double)
            for s, (o, i) in root_of.items():
                if o == r:
                    gain += held[s] @ torch.nn.functional.one_hot(block[i], count).double()
                if i == r:
                    gain += held[s].T @ torch.nn.functional.one_hot(block[o], count).double()
            block[r] = shared_out(block[r], gain, count)
        if all(torch.equal(before[r], block[r]) for r in touched):
            break
    for r in touched:
        kept[r] = kept[r][block[r].argsort(stable=True)]


def shared_out(block, gain, count):
    """Blocks of equal sizes: for each pair of blocks their members are shared out again, which is exact for two blocks."""
    block = block.clone()
    for _ in range(count):
        before = block.clone()
        for a in range(count):
            for b in range(a + 1, count):
                members = ((block == a) | (block == b)).nonzero().flatten()
                order = members[(gain[members, b] - gain[members, a]).argsort(stable=True)]
                block[order[:len(members) // 2]], block[order[len(members) // 2:]] = a, b
        if torch.equal(before, block):
            break
    return block


@torch.no_grad()
def carry(space, trained, graph, network, kept):
    """Gives `network`, of `graph`, the chosen slices of the weights of `trained`. Scores and choices are on the CPU; networks may be elsewhere."""
    now, old, new = N.Channels(graph), train.layers_by_name(trained), train.layers_by_name(network)
    device = next(trained.parameters()).device
    kept = {r: k.to(device) for r, k in kept.items()}
    for n in graph["nodes"]:
        name, op = n["name"], n["op"]
        if name not in new:
            continue
        ins = torch.arange(3, device=device) if n["inputs"] == ["input"] else kept[space.channels.stream(n["inputs"][0])]
        assert len(ins) == now.total(now.of[n["inputs"][0]]), name
        if op == "conv2d":
            g, w = n["attrs"].get("groups", 1), old[name].weights[0]
            new[name].weights[0].copy_(torch.cat([w[r][:, c] for r, c in zip(kept[space.channels.stream(name)].chunk(g), ins.chunk(g))]))
        elif op == "batch_norm":
            for field in ("weight", "bias", "running_mean", "running_var"):
                getattr(new[name], field).copy_(getattr(old[name], field)[ins])
        elif op == "linear":
            new[name].weight.copy_(old[name].weight[:, ins])
            new[name].bias.copy_(old[name].bias)


def features(space, scores, plan, kept):
    """What is left of the original by each measure: shares of connections over all sites, of channels over streams, and of branches."""
    graph = N.apply_plan(space.graph, plan)
    left = {n["name"]: n for n in graph["nodes"]}
    out = {}
    for by in ("fisher", "magnitude"):
        shares, whole, rest = [], 0.0, 0.0
        for s in space.convs:
            links, own = scores["links"][s][by], 0.0
            total = float(links.sum())
            if s in left:
                g, ins = left[s]["attrs"].get("groups", 1), space.node[s]["inputs"][0]
                columns = torch.arange(3) if ins == "input" else kept[space.channels.stream(ins)]
                rows = kept[space.channels.stream(s)]
                own = sum(float(links[r][:, c].sum()) for r, c in zip(rows.chunk(g), columns.chunk(g)))
            shares.append(own / max(total, 1e-30))
            whole, rest = whole + total, rest + own
        out[f"links_{by}"] = rest / max(whole, 1e-30)
        out[f"links_{by}_mean"] = sum(shares) / len(shares)
        out[f"links_{by}_lost"] = whole - rest
    for by in ("fisher", "gate", "magnitude"):
        shares = [float(v[by][kept[r]].sum() / v[by].sum().clamp(min=1e-30)) for r, v in scores["channels"].items()]
        out[f"channels_{by}_mean"] = sum(shares) / len(shares)
        if space.branches:
            total = sum(v[by] for v in scores["branches"].values())
            out[f"branches_{by}"] = sum(v[by] for b, v in scores["branches"].items() if b in left) / max(total, 1e-30)
    return out


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
            plan, kept = choose(space, scores, job["size"], job["criterion"], job["cell"])
            graph = C.N.apply_plan(space.graph, plan)
            sliced = train.Network(graph).eval()
            carry(space, original, graph, sliced, kept)
            features(space, scores, plan, kept)
            with torch.no_grad():
                ours, theirs = sliced(x[:2]), switched_off(space, original, plan, kept)(x[:2])
            apart = float((ours - theirs).abs().max() / theirs.abs().max())
            worst, count = max(worst, apart), count + 1
            if apart > 1e-3:
                sys.exit(f"{base} {job['cell']} {job['criterion']}: the answers differ by {apart:.2g}")
        print(f"{base}: {count} choices, answers differ by {worst:.1e} at most", flush=True)


if __name__ == "__main__":
    main()
