"""The networks of the trained truth: ResNet-34 for CIFAR-10 and plans of neural rules over its convolutions.

A plan is what plan.json holds, so `loopegg score resnet34-cifar10 --plan P` scores the very network that is trained here.
Run as a program, it writes every plan to a folder: python3 variants.py FOLDER
"""
import fnmatch
import json
import os
import random
import re
import sys
from dataclasses import dataclass, field

WIDTHS, DEPTHS = (64, 128, 256, 512), (3, 4, 6, 3)
BLOCKS = [f"layer{s + 1}.{i}" for s in range(4) for i in range(DEPTHS[s])]


# ---- transforms as lists of rule applications --------------------------------------------------------------------------------

def rule(name, restore=None, part=None, **values):
    step = {"rule": name, "with": {f"?{k}": v for k, v in values.items()}}
    if restore:
        step["restore"] = restore
    if part is not None:
        step["part"] = part
    return step


def group(g):
    return [rule("group-axes", a="co", b="ci", g=g)]


TRANSFORMS = {
    "group2": group(2),
    "group4": group(4),
    "group8": group(8),
    "group16": group(16),
    "depthwise": group("(extent ci)"),
    "s1": [rule("group-axes", a="(quo oh (/ (extent oh) 2))", b="ci", g=2)],
    "s2": [rule("cut-domain", a="co", k="(/ (extent co) 2)"), rule("group-axes", part=1, a="co", b="ci", g=2)],
    "s3": [rule("cut-domain", a="co", k="(/ (extent co) 2)"), rule("group-axes", part=0, a="co", b="ci", g=2),
           rule("group-axes", part=1, a="co", b="ci", g=4)],
    "repeat2": [rule("bottleneck-axis", restore="repeat", a="co", k=2)],
    "repeat4": [rule("bottleneck-axis", restore="repeat", a="co", k=4)],
    "zero2": [rule("bottleneck-axis", restore="zero", a="co", k=2)],
    "pointwise4": [rule("bottleneck-axis", restore="pointwise", a="co", k=4)],
    "half-input": [rule("bottleneck-axis", a="ci", k=2)],
    "quarter-input": [rule("bottleneck-axis", a="ci", k=4)],
    "thin-kernel": [rule("bottleneck-axis", a="kw", k=3)],
    "every-second": [rule("bottleneck-axis", restore="repeat", a="(rem oh 2)", k=2),
                     rule("bottleneck-axis", restore="repeat", a="(rem ow 2)", k=2)],
    # The hidden width of a block: conv1's outputs and conv2's inputs together.
    "hidden2": [rule("bottleneck-axis", restore="propagate", a="co", k=2)],
    "hidden4": [rule("bottleneck-axis", restore="propagate", a="co", k=4)],
    "hidden8": [rule("bottleneck-axis", restore="propagate", a="co", k=8)],
}


def sites_of(transform, block_glob):
    return block_glob + (".conv1" if transform.startswith("hidden") else ".conv?")


def uniform(transform, stages="1234"):
    blocks = "layer*.*" if stages == "1234" else f"layer[{stages}].*"
    return {"steps": [{"site": sites_of(transform, blocks), "apply": TRANSFORMS[transform]}]}


def mixture(seed, pool, share):
    """Each block draws its own transform from the pool; a share of the blocks is changed."""
    draw = random.Random(seed)
    steps = []
    for block in BLOCKS:
        changed, name = draw.random() < share, draw.choice(pool)
        if changed:
            steps.append({"site": sites_of(name, block), "apply": TRANSFORMS[name]})
    return {"steps": steps}


MILD = ["group2", "group4", "s1", "s2", "s3", "hidden2", "half-input", "group8"]
HARSH = ["group8", "group16", "depthwise", "every-second", "repeat4", "zero2", "quarter-input", "hidden8", "thin-kernel"]
ALL = sorted(TRANSFORMS)


def variants():
    """(name, plan, seed of the training), most telling first, kinds interleaved so that any prefix is a fair sample."""
    everywhere = [(t, uniform(t)) for t in
                  ("group4", "hidden2", "s1", "depthwise", "group16", "s3", "every-second", "group2", "repeat2", "s2",
                   "half-input", "hidden8", "group8", "thin-kernel", "pointwise4", "zero2")]
    stages = [(f"{t}-stages{s}", uniform(t, s)) for t, s in
              (("group16", "34"), ("hidden4", "4"), ("depthwise", "4"), ("every-second", "12"), ("repeat4", "34"))]
    mixed = [(f"mix-{kind}-{seed}", mixture(seed, pool, share)) for seed in range(1, 6)
             for kind, pool, share in (("mild", MILD, 1.0), ("any", ALL, 0.9), ("harsh", HARSH, 0.6), ("few", ALL, 0.35))]
    uniforms = everywhere[:12] + stages + everywhere[12:]
    # Drawn later, to hold against what was fitted on the others.
    mixed += [(f"mix-{kind}-{seed}", mixture(seed, pool, share)) for seed in range(6, 9)
              for kind, pool, share in (("mild", MILD, 1.0), ("any", ALL, 0.9), ("harsh", HARSH, 0.6), ("few", ALL, 0.35))]
    uniforms += [(f"{t}-stages{s}", uniform(t, s)) for t, s in
                 (("group8", "34"), ("s1", "34"), ("hidden4", "34"), ("group4", "12"), ("every-second", "34"), ("half-input", "12"))]
    # Two neighbours differ in kind.
    order = [("original", {"steps": []}, 0)]
    rest = [("original", {"steps": []}, s) for s in (1, 2)]
    for i in range(max(len(uniforms), len(mixed))):
        if i < len(uniforms):
            order.append((*uniforms[i], 0))
        if i < len(mixed):
            order.append((*mixed[i], 0))
        if i in (3, 8) and rest:
            order.append(rest.pop(0))
    return order


# ---- what a plan leaves of one convolution -----------------------------------------------------------------------------------

@dataclass
class Part:
    spans: dict = field(default_factory=dict)       # axis -> (lo, hi) of a cut
    ranges: list = field(default_factory=list)      # (axis, stride, radix, lo, hi): lo <= digit < hi
    pairs: list = field(default_factory=list)       # ((axis, stride, radix), (axis, stride, radix)): digits equal


@dataclass
class Site:
    """One convolution: its extents, and the parts of its domain that a plan keeps."""
    extents: dict
    stride: int
    parts: list = field(default_factory=lambda: [Part()])
    restore: str = ""
    hidden: int = 1                                 # divides the outputs together with the consumer's inputs

    def extent(self, axis, part):
        lo, hi = part.spans.get(axis, (0, self.extents[axis]))
        return hi - lo

    def number(self, text, part):
        if isinstance(text, int):
            return text
        text = re.sub(r"\(extent (\w+)\)", lambda m: str(self.extent(m[1], part)), text)
        if m := re.fullmatch(r"\(/ (\d+) (\d+)\)", text):
            return int(m[1]) // int(m[2])
        return int(text)

    def digit(self, text, part):
        """(axis, stride, extent) of an axis expression."""
        if m := re.fullmatch(r"\((quo|rem) (\w+) (.+)\)", text):
            k, whole = self.number(m[3], part), self.extent(m[2], part)
            assert whole % k == 0
            return (m[2], k, whole // k) if m[1] == "quo" else (m[2], 1, k)
        return text, 1, self.extent(text, part)

    def apply(self, step):
        values = step["with"]
        if step["rule"] == "cut-domain":
            part, = self.parts
            axis, _, whole = self.digit(values["?a"], part)
            k = self.number(values["?k"], part)
            self.parts = [Part({axis: (0, k)}), Part({axis: (k, whole)})]
            return
        targets = [self.parts[step["part"]]] if "part" in step else self.parts
        if step.get("restore") == "propagate":
            self.hidden = values["?k"]
            return
        for part in targets:
            axis, stride, whole = self.digit(values["?a"], part)
            if step["rule"] == "bottleneck-axis":
                assert whole % values["?k"] == 0
                part.ranges.append((axis, stride, whole, 0, whole // values["?k"]))
                self.restore = step.get("restore", self.restore)
            else:
                g = self.number(values["?g"], part)
                other, ostride, owhole = self.digit(values["?b"], part)
                assert whole % g == 0 and owhole % g == 0, (axis, whole, other, owhole, g)
                part.pairs.append(((axis, stride * whole // g, g), (other, ostride * owhole // g, g)))


def sites_under(plan):
    """All 3x3 convolutions of the blocks of ResNet-34 under a plan, by name."""
    sites = {}
    ci, size = 64, 32
    for stage in range(4):
        for i in range(DEPTHS[stage]):
            co, stride = WIDTHS[stage], 2 if stage > 0 and i == 0 else 1
            size //= stride
            for name, inputs, s in (("conv1", ci, stride), ("conv2", co, 1)):
                sites[f"layer{stage + 1}.{i}.{name}"] = Site(dict(co=co, ci=inputs, oh=size, ow=size, kh=3, kw=3), s)
            ci = co
    for step in plan["steps"]:
        found = [s for name, s in sites.items() if fnmatch.fnmatchcase(name, step["site"])]
        assert found, step["site"]
        for site in found:
            for application in step["apply"]:
                site.apply(application)
    for block in BLOCKS:
        first, second = sites[f"{block}.conv1"], sites[f"{block}.conv2"]
        first.extents["co"] //= first.hidden
        second.extents["ci"] //= first.hidden
    return sites


# ---- the same from a model.json -------------------------------------------------------------------------------------------------

def domain_part(conditions):
    """A part of a domain as model.json writes it: ["0 <= oh%2 < 1", "co/16%4 == ci/16%4"]."""
    def digit(text):
        m = re.fullmatch(r"(\w+?)(?:/(\d+))?%(\d+)", text)
        return m[1], int(m[2] or 1), int(m[3])

    part = Part()
    for condition in conditions:
        if m := re.fullmatch(r"(\d+) <= (\S+) < (\d+)", condition):
            part.ranges.append((*digit(m[2]), int(m[1]), int(m[3])))
        else:
            first, second = condition.split(" == ")
            part.pairs.append((digit(first), digit(second)))
    return part


def sites_of_model(model):
    """As sites_under, from what `loopegg optimize` wrote as model.json for this network: hidden widths, groups and domains."""
    sites = sites_under({"steps": []})
    for node in model["nodes"]:
        site = sites.get(node["name"])
        if site is None:
            continue
        attrs = node.get("attrs", {})
        site.extents["co"] = attrs["out_channels"]
        if node["name"].endswith("conv2"):
            site.extents["ci"] = sites[node["name"][:-1] + "1"].extents["co"]
        site.extents["kh"], site.extents["kw"] = attrs["kernel"]
        groups, domain = attrs.get("groups", 1), node.get("domain")
        assert groups == 1 or not domain
        if groups > 1:
            co, ci = site.extents["co"], site.extents["ci"]
            site.parts = [Part(pairs=[(("co", co // groups, groups), ("ci", ci // groups, groups))])]
        if domain:
            site.parts, site.restore = [domain_part(p) for p in domain["parts"]], domain.get("restore", "")
    return sites


if __name__ == "__main__":
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, plan, seed in variants():
        with open(os.path.join(folder, f"{name}.json"), "w") as f:
            json.dump(plan, f, indent=1)
