#!/usr/bin/env python3
"""Draws the networks of the trained truth: random plans from the rules that are searched, and the scalings that anyone would try.

    python3 draw.py jobs.jsonl [--random 30] [--seed 1]
    python3 draw.py shapes.jsonl --shapes 30 [--seed 1]

Every line is a job for train.py. A draw has between a tenth and two thirds of the multiply-accumulates of its base network. Base networks
alternate, so that any prefix is a fair sample. `--shapes` draws only what the stage `networks` of `optimize` searches: how deep and how wide
each stage is, the stages independently of each other.
"""
import argparse
import json
import random

import networks as N

# Streams of residual networks and the sites that may be dropped, hidden widths, and sites with whole 3x3 kernels, by base network.


def stages_of(base):
    return {"resnet34-cifar10": [f"layer{s}.*" for s in (1, 2, 3, 4)], "resnext29_2x64d": [f"layer{s}.*" for s in (1, 2, 3)],
            "wide-resnet22-4-cifar10": [f"layer{s}.*" for s in (1, 2, 3)],
            "mobilenet_v2-cifar10": ["features.[23].*", "features.[456].*", "features.[789].*", "features.1[123].*", "features.1[456].*"]}.get(base, [])


class Space:
    def __init__(self, base):
        self.base, self.graph = base, N.BASES[base]
        self.channels = c = N.Channels(self.graph)
        convs = [n for n in self.graph["nodes"] if n["op"] == "conv2d"]
        self.width = {n["name"]: n["attrs"]["out_channels"] for n in convs}
        self.groups = {n["name"]: n["attrs"].get("groups", 1) for n in convs}
        self.drops = []
        for n in convs:
            try:
                N.drop_branch(json.loads(json.dumps(self.graph)), n["name"])
                if "downsample" not in n["name"]:
                    self.drops.append(n["name"])
            except AssertionError:
                pass
        # Stems and the last stage's features of plain networks are hidden widths as well.
        self.hidden = [n["name"] for n in convs if not c.residual(c.stream(n["name"])) and c.stream(n["name"]) == n["name"]]
        self.groupable = [n["name"] for n in convs if n["attrs"]["kernel"] == [3, 3] and self.groups[n["name"]] == 1 and n["inputs"] != ["input"]]
        self.pointwise = [n["name"] for n in convs if n["attrs"]["kernel"] == [1, 1] and n["inputs"] != ["input"] and "downsample" not in n["name"]]

    def narrowed(self, site, eighths):
        """The number of channels for a share in eighths: a multiple of 8, or of the groups of the sites that read or write them."""
        return max(8, self.width[site] * eighths // 8 // 8 * 8)


def step(site, rule, restore=None, part=None, **values):
    a = {"rule": rule, **({"with": {f"?{k}": v for k, v in values.items()}} if values else {})}
    if restore:
        a["restore"] = restore
    if part is not None:
        a["part"] = part
    return {"site": site, "apply": [a]}


def specials(draw, site, kernel):
    """One restriction of a dense site that ordinary attributes cannot express."""
    menu = [[step(site, "bottleneck-axis", a="ci", k=k)] for k in (2, 4)]
    if kernel == 3:
        cut = step(site, "cut-domain", a="co", k="(/ (extent co) 2)")
        menu += [[cut, step(site, "group-axes", part=1, a="co", b="ci", g=2)],
                 [cut, step(site, "group-axes", part=0, a="co", b="ci", g=2), step(site, "group-axes", part=1, a="co", b="ci", g=4)],
                 [step(site, "bottleneck-axis", restore="repeat", a="co", k=2)], [step(site, "bottleneck-axis", restore="pointwise", a="co", k=4)]]
        if not site.endswith("conv1") or site.startswith("layer1"):
            menu += [[step(site, "group-axes", a="(quo oh (/ (extent oh) 2))", b="ci", g=2)],
                     [step(site, "bottleneck-axis", restore="repeat", a="(rem oh 2)", k=2), step(site, "bottleneck-axis", restore="repeat", a="(rem ow 2)", k=2)]]
    return [{"site": site, "apply": [a for s in draw.choice(menu) for a in s["apply"]]}]     # parts are numbered within one list


def block_of(site):
    """The block that a site's name names: layer1.0, features.3, features.denseblock1.denselayer2."""
    return ".".join(site.split(".")[:3 if "dense" in site else 2])


def stream_steps(space, draw, eighths_of):
    steps = []
    for glob in stages_of(space.base):
        sites = [s for s in space.width if N.fnmatch.fnmatchcase(s, glob) and space.channels.residual(space.channels.stream(s))]
        e = eighths_of()
        if e < 8:
            steps.append(step(glob, "narrow-stream", w=space.narrowed(sites[0], e)))
    return steps


def random_plan(space, draw):
    """Draws a style first (how often branches are dropped, how narrow streams and hidden layers are, how many sites are restricted otherwise), then every site."""
    drop = draw.choice((0, 0, 0.2, 0.4, 0.6, 0.8))
    even = draw.choice((None, 4, 5, 6, 7, 8, 8, 8))
    steps = stream_steps(space, draw, lambda: even or draw.randint(4, 8))
    thin, group, other = draw.choice((0, 0.3, 0.6, 1)), draw.choice((0, 0, 0.2, 0.5, 0.9)), draw.choice((0, 0, 0.1, 0.2))
    low = draw.choice((2, 3, 4, 5))
    dropped = {block_of(s) for s in space.drops if draw.random() < drop}
    gone = lambda site: block_of(site) in dropped and "downsample" not in site
    for s in space.drops:
        if gone(s):
            steps.append(step(s, "drop-branch"))
    widths = {}
    for s in space.hidden:
        if not gone(s) and draw.random() < thin:
            w = space.narrowed(s, draw.randint(low, 7))
            if w < space.width[s]:
                widths[s] = w
                steps.append(step(s, "bottleneck-output", restore="propagate", w=w))
    for s in space.groupable:
        if gone(s):
            continue
        if draw.random() < group:
            steps.append(step(s, "group-axes", a="co", b="ci", g=draw.choice((2, 2, 4, 4, 8))))
        elif draw.random() < other:
            steps += specials(draw, s, 3)
    for s in space.pointwise:
        if not gone(s) and draw.random() < other:
            steps += specials(draw, s, 1)
    return {"steps": steps}


def shape_plan(space, draw):
    """Draws every stage by itself: how many branches stay, how wide its stream is, how wide its hidden layers are."""
    steps, gone = [], set()
    for glob in stages_of(space.base):
        own = [s for s in space.width if N.fnmatch.fnmatchcase(s, glob)]
        stream = next(s for s in own if space.channels.residual(space.channels.stream(s)))
        width, hidden = draw.randint(3, 8), draw.choice((4, 5, 6, 7, 8, 8, 8))
        if width < 8:
            steps.append(step(glob, "narrow-stream", w=space.narrowed(stream, width)))
        drops = [s for s in space.drops if s in own]
        kept = draw.randint(1, len(drops))
        gone |= {block_of(s) for s in drops[kept:]}
        steps += [step(s, "drop-branch") for s in drops[kept:]]
        for s in own:
            w = space.narrowed(s, min(width, 8) * hidden // 8 or 1)
            if s in space.hidden and block_of(s) not in gone and w < space.width[s]:
                steps.append(step(s, "bottleneck-output", restore="propagate", w=w))
    return {"steps": steps}


def shapes_of(base, count, seed):
    """Shapes of one base network, between an eighth and a half of its work."""
    space, original, out, k = Space(base), N.sizes(N.BASES[base])[1], [], 0
    while len(out) < count:
        k += 1
        plan = shape_plan(space, random.Random(f"shape {base} {seed} {k}"))
        share = N.sizes(N.apply_plan(N.BASES[base], plan))[1] / original
        if 0.125 <= share <= 0.5:
            out.append((f"shape{seed}-{k}", plan, share))
    return out


def uniform(space, width=8, depth=1.0, hidden=8, groups=1):
    """A uniform scaling: every width in eighths, every stage's depth by a share (the first branch of a stage stays), hidden widths alone, or groups everywhere."""
    steps = stream_steps(space, None, lambda: width)
    gone = []
    if depth < 1:
        by_stage = {}
        for s in space.drops:
            by_stage.setdefault(s.split(".")[1] if "dense" in s else space.channels.stream(s), []).append(s)
        for sites in by_stage.values():
            for s in sites[max(1, round(len(sites) * depth)):]:
                gone.append(block_of(s))
                steps.append(step(s, "drop-branch"))
    alive = lambda site: block_of(site) not in gone or "downsample" in site
    for s in space.hidden:
        w = space.narrowed(s, min(width, hidden))
        if alive(s) and w < space.width[s]:
            steps.append(step(s, "bottleneck-output", restore="propagate", w=w))
    if groups > 1:
        steps += [step(s, "group-axes", a="co", b="ci", g=groups) for s in space.groupable if alive(s)]
    return {"steps": steps}


NAIVE = {"width6": dict(width=6), "width5": dict(width=5), "width4": dict(width=4), "width3": dict(width=3), "depth50": dict(depth=0.5), "depth67": dict(depth=0.67), "depth30": dict(depth=0.3),
         "width6-depth50": dict(width=6, depth=0.5), "width5-depth67": dict(width=5, depth=0.67), "width5-depth30": dict(width=5, depth=0.3), "hidden4": dict(hidden=4), "hidden2": dict(hidden=2),
         "groups2": dict(groups=2), "groups4": dict(groups=4), "hidden4-depth50": dict(hidden=4, depth=0.5)}


def networks_of(base, count, seed):
    space, original = Space(base), N.sizes(N.BASES[base])[1]
    seen, out = set(), []

    def take(name, plan, low=0.1, high=0.67):
        if not plan["steps"]:
            return False
        try:
            share = N.sizes(N.apply_plan(N.BASES[base], plan))[1] / original
        except AssertionError:
            return False
        text = json.dumps(plan)
        if not low <= share <= high or text in seen:
            return False
        seen.add(text)
        out.append((name, plan, share))
        return True
    for name, options in NAIVE.items():
        take(name, uniform(space, **options), 0.05, 0.8)
    scaled, drawn, k = len(out), 0, 0
    while drawn < count and k < 40 * count:
        k += 1
        # Shares are spread evenly on a logarithmic scale, because most draws keep a third. Where a base network hardly ever
        # yields the share that is due, any share will do.
        low, high = (0.1 * 6.7 ** (drawn % 6 / 6), 0.1 * 6.7 ** (drawn % 6 / 6 + 1 / 6)) if k < 15 * (drawn + 1) else (0.1, 0.67)
        drawn += take(f"draw{seed}-{k}", random_plan(space, random.Random(f"{base} {seed} {k}")), low, high)
    # Scalings and draws take turns.
    scalings, draws = out[:scaled], out[scaled:]
    order = []
    while scalings or draws:
        order += draws[:2] + scalings[:1]
        draws, scalings = draws[2:], scalings[1:]
    return order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--random", type=int, default=30)
    parser.add_argument("--shapes", type=int, help="so many shapes of each residual base network, and nothing else")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.shapes:
        lists = {b: shapes_of(b, options.shapes, options.seed) for b in (g["name"] for g in N.LABELLED) if stages_of(b)}
    else:
        lists = {b: [("original", {"steps": []}, 1.0)] + networks_of(b, options.random, options.seed) for b in (g["name"] for g in N.LABELLED)}
    jobs = []
    for i in range(max(map(len, lists.values()))):
        jobs += [{"name": l[i][0], "base": b, "seed": 0, "plan": l[i][1]} for b, l in lists.items() if i < len(l)]
    with open(options.out, "w") as f:
        f.writelines(json.dumps(j) + "\n" for j in jobs)
    for b, l in lists.items():
        print(b, len(l), "shares", " ".join(f"{s:.2f}" for _, _, s in l))


if __name__ == "__main__":
    main()
