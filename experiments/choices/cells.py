"""The sizes that are compared (cells), and which networks of a cell are trained: equal sizes, chosen by different criteria.

A cell says how wide each stream and each hidden layer is, how many branches of each stage are dropped and which sites are grouped. It does not say which
channels, branches and connections stay: a criterion does (slices.py). `python3 cells.py` prints the networks in the order in which run.py trains them.
"""
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "accuracy"), os.path.join(HERE, "..", "..", "fisher", "truth")]
import networks as N  # noqa: E402
import train  # noqa: E402

BASES = {"resnet34-cifar10": N.BASES["resnet34-cifar10"], "wide-resnet22-4-cifar10": N.BASES["wide-resnet22-4-cifar10"],
         "bottleneck29-cifar10": N.bottlenecks("bottleneck29-cifar10", (3, 3, 3), 32, stem=3, widening=4),
         "resnet18-cifar10": N.resnet("resnet18-cifar10", (2, 2, 2, 2)), "vgg16-cifar10": N.BASES["vgg16-cifar10"],
         "trial": N.resnet("trial", (2, 2), 16)}        # small enough for a CPU
TRAINED = [b for b in BASES if b != "trial"]


class Space:
    """What can be chosen in a base network: streams, hidden layers and branches."""
    def __init__(self, graph):
        self.graph, self.channels = graph, N.Channels(graph)
        c, self.node = self.channels, {n["name"]: n for n in graph["nodes"]}
        self.convs = [n["name"] for n in graph["nodes"] if n["op"] == "conv2d"]
        side = N.sides(graph)
        self.stage = {s: side[s] for s in self.convs}       # sites with as many pixels are one stage; a root is a site, too
        roots = {c.stream(s): s for s in self.convs}
        self.width = {r: c.width[r] for r in roots}
        self.streams = [r for r in roots if c.residual(r)]
        self.hidden = [r for r in roots if not c.residual(r)]
        self.branches, self.projections = [], set()         # the sites that end a branch which can be dropped; what is next to one that cannot
        deeper = train.branch_ends(graph)
        for n in graph["nodes"]:
            if n["op"] == "add":
                branch, other = (self.writer(i) for i in sorted(n["inputs"], key=lambda i: i not in deeper))
                if other is None:
                    self.branches.append(branch)
                else:
                    self.projections.add(other)

    def writer(self, value):
        """The convolution that writes a value, with or without a norm; None for any other value."""
        n = self.node[value]
        if n["op"] == "batch_norm":
            n = self.node[n["inputs"][0]]
        return n["name"] if n["op"] == "conv2d" else None

    def writers(self, root):
        return [s for s in self.convs if self.channels.stream(s) == root]

    def written(self, site):
        """The value in which a site's channels can be switched off: its norm where a norm alone reads the site."""
        after = N.consumers(self.graph, site)
        return after[0]["name"] if len(after) == 1 and after[0]["op"] == "batch_norm" else site


def make_plan(space, size, drops):
    """plan.json of these sizes where these branches are dropped. Drops come first, so that no later step names a site that is gone."""
    def step(site, rule, restore=None, **values):
        a = {"rule": rule, **({"with": {f"?{k}": v for k, v in values.items()}} if values else {}), **({"restore": restore} if restore else {})}
        return {"site": site, "apply": [a]}
    steps = [step(s, "drop-branch") for s in drops]
    graph = N.apply_plan(space.graph, {"steps": steps})
    left, now = {n["name"] for n in graph["nodes"]}, N.Channels(graph)
    for root, width in size.get("width", {}).items():
        writers = [s for s in space.writers(root) if s in left]
        if not writers or width >= space.width[root]:
            continue
        if now.residual(now.stream(writers[0])):
            steps.append(step(writers[0], "narrow-stream", w=width))
        else:
            steps.append(step(writers[0], "bottleneck-output", "propagate", w=width))
    steps += [step(s, "group-axes", a="co", b="ci", g=g) for s, g in size.get("group", {}).items() if s in left]
    return {"steps": steps}


# ---- cells -------------------------------------------------------------------------------------------------------------------

def eighths(width, share):
    return max(8, round(width * share) // 8 * 8)


def candidates(space, stage):
    """The branches of a stage that can be dropped, or all that can."""
    return [b for b in space.branches if stage in ("anywhere", space.stage[b])]


def size(space, stream=1.0, hidden=1.0, drop=0.0, group=1, anywhere=0.0):
    """Shares of widths and branches that are the same everywhere, or functions of the stage; `anywhere` is the share of all branches that are dropped."""
    def of(share, stage):
        return share(stage) if callable(share) else share
    out = {"width": {}, "drop": {}, "group": {}}
    for roots, share in ((space.streams, stream), (space.hidden, hidden)):
        for r in roots:
            w = eighths(space.width[r], of(share, space.stage[r]))
            if w < space.width[r]:
                out["width"][r] = w
    if anywhere:
        out["drop"]["anywhere"] = round(anywhere * len(space.branches))
    for stage in sorted({space.stage[b] for b in space.branches}, reverse=True):
        if count := round(of(drop, stage) * len(candidates(space, stage))):
            out["drop"][stage] = count
    for s in space.convs:
        n, g = space.node[s], of(group, space.stage[s])
        ins, outs = (space.channels.stream(v) for v in (n["inputs"][0], s)) if n["inputs"] != ["input"] else (None, None)
        if g > 1 and ins and s not in space.projections and all(out["width"].get(r, space.width[r]) % (8 * g) == 0 for r in (ins, outs)):
            out["group"][s] = g
    return {k: v for k, v in out.items() if v}


def ways(space, of):
    """In how many ways branches can be dropped at this size; many where channels or connections are chosen as well."""
    if of.get("width") or of.get("group"):
        return math.inf
    return math.prod(math.comb(len(candidates(space, stage)), count) for stage, count in of.get("drop", {}).items())


def macs_share(space, of):
    drops = [b for stage, count in of.get("drop", {}).items() for b in candidates(space, stage)[-count:]]
    return N.sizes(N.apply_plan(space.graph, make_plan(space, of, drops)))[1] / N.sizes(space.graph)[1]


def drawn(space, draw):
    """A size whose stages differ from each other, with a tenth to six tenths of the work."""
    stages = sorted(set(space.stage.values()))
    while True:
        of = {s: {"stream": draw.choice((3, 4, 5, 6, 7, 8)) / 8, "hidden": draw.choice((2, 3, 4, 5, 6, 8)) / 8,
                  "drop": draw.choice((0, 0, 0, 0.34, 0.5, 0.67)), "group": draw.choice((1, 1, 1, 1, 2))} for s in stages}
        of = size(space, *(lambda s, k=k: of[s][k] for k in ("stream", "hidden", "drop", "group")))
        if 0.1 < macs_share(space, of) < 0.6:
            return of


CHANNELS = ("fisher", "magnitude", "random0", "first", "random1")
STREAMS = ("fisher", "magnitude", "gate", "random0", "first", "random1")
BRANCHES = ("fisher", "magnitude", "gate", "random0", "first", "random1", "random2")
DRAWN = ("fisher", "magnitude", "random0")


def cells(base, draws=10):
    """(name, size, criteria) of each cell, the most telling ones first."""
    space = Space(BASES[base])
    if space.streams:
        out = [("both-4", size(space, 0.5, 0.5), STREAMS), ("branches-1", size(space, drop=0.4), BRANCHES),
               ("hidden-2", size(space, hidden=0.25), (*CHANNELS, "anti")), ("group-2", size(space, group=2), CHANNELS),
               ("mixed", size(space, 0.75, 0.5, 0.4), (*STREAMS, "anti")), ("stream-3", size(space, 0.375), STREAMS),
               ("anywhere", size(space, anywhere=0.4), (*BRANCHES, "anti")), ("group-4", size(space, group=4), CHANNELS),
               ("hidden-4", size(space, hidden=0.5), CHANNELS), ("branches-2", size(space, drop=0.67), BRANCHES),
               ("stream-5", size(space, 0.625), (*STREAMS, "anti"))]
    else:
        out = [("width-4", size(space, hidden=0.5), CHANNELS), ("width-3", size(space, hidden=0.375), (*CHANNELS, "anti")),
               ("group-2", size(space, group=2), CHANNELS), ("width-6", size(space, hidden=0.75), CHANNELS), ("group-4", size(space, group=4), CHANNELS),
               ("width-2", size(space, hidden=0.25), (*CHANNELS, "anti"))]
    out = [c for i, c in enumerate(out) if all(c[1] != other[1] for other in out[:i]) and ways(space, c[1]) > 4]
    draw = random.Random(f"{base} 1")
    random_sizes = [(f"drawn-{i}", drawn(space, draw), DRAWN) for i in range(draws)]
    mixed = []
    while out or random_sizes:          # two cells of equal shares, then one drawn
        mixed += out[:2] + random_sizes[:1]
        out, random_sizes = out[2:], random_sizes[1:]
    return mixed


LONG = ("both-4", "branches-1", "hidden-2", "width-4", "width-3")       # cells that are also fine-tuned for longer
LONG_CRITERIA, LONG_EPOCHS = ("fisher", "magnitude", "random0"), 10


def students(epochs, bases=None):
    """All training runs, in order: the bases alternate, and after the first cells the longer training runs follow."""
    bases = bases or TRAINED
    of = {b: cells(b) for b in bases}
    made = []

    def add(base, cell, seed, length, criteria=None):
        name, sizes, asked = cell
        made.extend({"base": base, "cell": name, "size": sizes, "criterion": c, "seed": seed, "epochs": length} for c in criteria or asked)
    most = max(map(len, of.values()))
    for i in range(most):
        for b in bases:
            if i < len(of[b]):
                add(b, of[b][i], 0, epochs)
        if i == 4:
            for b in bases:
                for cell in of[b]:
                    if cell[0] in LONG:
                        add(b, cell, 0, LONG_EPOCHS, LONG_CRITERIA)
    for i in range(most):                   # as far as time goes, the same again with other batches
        for b in bases:
            if i < len(of[b]):
                add(b, of[b][i], 1, epochs)
    return made


if __name__ == "__main__":
    for j in students(4):
        space = Space(BASES[j["base"]])
        print(j["base"], j["cell"], j["criterion"], j["seed"], j["epochs"], round(macs_share(space, j["size"]), 3))
