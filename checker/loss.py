"""The measures that are formulas of sizes, among them the points that a network is expected to lose after training: docs/reference/certificate.md."""
import collections
import math
from graphs import SLIDING

# The coefficients of the formula, and the values at which its parts are cut off.
SPARE, WORK, DEPTH, WIDTHS, MIXING, VIEW, UNREAD = 0.36, 0.610, 0.511, 0.222, 0.759, 5.313, 0.061
TRAINABLE, RELATIVE_ERROR, LABEL_ERROR, UNLIKE = 3000, 0.41, 0.41, 2
LEAST_WORK, MOST_WORK, LEAST_SHARE, LEAST_DEPTH, LEAST_SPREAD, SUFFICIENT_SPREAD = 0.0879, 1.549, 1 / 64, 1 / 3, 0.5, 0.2
FORMULAS = {"expected-loss": lambda a, b: expected_loss(a, b)["points"], "params": lambda a, b: b.params / a.params, "macs": lambda a, b: b.macs / a.macs}

Stage = collections.namedtuple("Stage", "macs dense weights sites", defaults=(0.0, 0.0, 0.0, 0))

class Measured:
    """What the formula looks at in one network."""
    def __init__(self, network):
        self.side, self.classes = image[2] if len(image := network.inputs[0][1]) == 4 else 0, network.shapes[network.outputs[0]][1:]
        self.view, self.unread = (self.view_of(network), self.unread_of(network)) if self.side else (0.0, 0.0)
        self.params, self.macs, self.stages, self.sites, before, places = sum(map(network.parameters, network.nodes.values())), 0, {}, {}, "", 0
        for node in filter(network.macs, network.nodes.values()):
            work, shape, read = network.macs(node), network.shapes[node.name], network.shapes[node.inputs[0]]
            dense = math.prod(shape) * read[1] * math.prod(node.attrs["kernel"]) if node.op == "conv2d" else work   # if every output read every input channel
            axis, restores = 1 if node.op == "conv2d" else -1, node.name == before + ".restore"
            if not restores:    # it brings the channels of the site before it back, and belongs to it
                before, places = node.name, shape[2] * shape[3] if node.op == "conv2d" else max(1, math.prod(shape) // shape[-1])
                self.sites[before] = [places, 0, read[axis], 0]     # and its work, and the channels that it reads and writes
            site, s = self.sites[before], self.stages.get(places, Stage())
            self.macs, site[1], site[3] = self.macs + work, site[1] + work, shape[axis]
            self.stages[places] = Stage(s.macs + work, s.dense + dense, s.weights + network.parameters(node), s.sites + (not restores))
    def view_of(self, network):
        """From how far along one side an output gathers, on the widest way through the network."""
        ways, widest = {}, 0.0
        for node in network.nodes.values():
            variance, step = 0.0, 1.0
            for value in node.inputs:
                if value in ways and (ways[value][0] > variance or ways[value][1] > step):
                    variance, step = ways[value]
            if node.op in SLIDING:
                kernel, apart = node.attrs["kernel"][0], node.attrs.get("dilation", [1])[0] * step
                variance, step = variance + (kernel * kernel - 1) / 12 * apart * apart, step * node.attrs["stride"][0]
            widest, ways[node.name] = max(widest, variance), (variance, step)
        return min(0.0, math.log(max(math.sqrt(widest), LEAST_SPREAD) / (SUFFICIENT_SPREAD * self.side)))
    @staticmethod
    def unread_of(network):
        """How much strides skip. A value of which some reader reads all pixels counts as read."""
        read = {}
        for node in network.nodes.values():
            share = math.prod(min(1.0, k / s) for k, s in zip(node.attrs["kernel"], node.attrs["stride"])) if node.op in SLIDING else 1.0
            for value in node.inputs:
                read[value] = max(read.get(value, 0.0), share)
        return -sum(map(math.log, read.values()))

def useful(stage, places):
    return stage.macs / (1 + stage.weights / (TRAINABLE * places * places))

def expected_loss(original, variant):
    """{"points", "low", "high"} of a variant, both as Measured."""
    whole = sum(useful(s, places) for places, s in original.stages.items())
    lost = UNREAD * max(0.0, variant.unread - original.unread) + VIEW * max(0.0, original.view - variant.view)
    for places, before in original.stages.items():
        part, left = useful(before, places) / whole, variant.stages.get(places, Stage())
        if left.macs < LEAST_SHARE * before.macs:
            left = Stage(*(LEAST_SHARE * x for x in before[:3]), left.sites)
        depth, mixing = math.log(min(1.0, max(LEAST_DEPTH, left.sites / before.sites))), math.log(before.macs / before.dense) - math.log(left.macs / left.dense)
        lost += part * (WORK * max(0.0, math.log(useful(before, places) / useful(left, places))) + DEPTH * depth * depth + MIXING * max(0.0, mixing))
    for name, (places, macs, *channels) in original.sites.items():
        narrowed = sum(max(0.0, math.log(b / v)) ** 2 for b, v in zip(channels, variant.sites.get(name, ())[2:]))
        lost += WIDTHS * useful(original.stages[places], places) / whole * macs / original.stages[places].macs * narrowed
    work = min(MOST_WORK, max(LEAST_WORK, original.macs / 1e9))
    points, unlike = work ** -SPARE * lost, (original.side, original.classes, work) != (32, (10,), original.macs / 1e9)
    half = (RELATIVE_ERROR * points + LABEL_ERROR * (lost > 0)) * UNLIKE ** unlike
    return {"points": points, "low": points - half, "high": points + half}
