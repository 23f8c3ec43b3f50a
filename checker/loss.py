"""The points of accuracy that a smaller network is expected to lose after training: the formula of docs/reference/certificate.md."""
import collections
import math

from graphs import SITES

# The coefficients of the formula, and the values at which its parts are cut off.
SPARE, WORK, DEPTH, MIXING, VIEW, UNREAD = 0.38, 0.762, 0.198, 0.660, 5.991, 0.064
TAUGHT, RELATIVE_ERROR, LABEL_ERROR = 3000, 0.39, 0.39
LEAST_WORK, MOST_WORK, LEAST_SHARE, LEAST_DEPTH, LEAST_SPREAD, SUFFICIENT_SPREAD = 0.088, 1.41, 1 / 64, 1 / 3, 0.5, 0.2

Site = collections.namedtuple("Site", "name places macs dense weights")
Stage = collections.namedtuple("Stage", "macs dense weights sites", defaults=(0.0, 0.0, 0.0, 0))
SLIDING = ("conv2d", "max_pool", "avg_pool")


class Measured:
    """What the formula looks at in one network."""

    def __init__(self, network):
        image = network.inputs[0][1]
        self.side = image[2] if len(image) == 4 else 0
        self.spread, self.unread = (spread(network), unread(network)) if self.side else (0.0, 0.0)
        self.macs, self.stages, sites = 0, {}, []
        for node in network.nodes.values():
            work = network.macs(node)
            if work and sites and node.name == sites[-1].name + ".restore":     # it brings the channels of a site back
                last = sites[-1]
                sites[-1] = last._replace(macs=last.macs + work, dense=last.dense + work, weights=last.weights + network.parameters(node))
            elif work:
                sites.append(Site(node.name, *self.at(network, node), network.parameters(node)))
            self.macs += work
        for site in sites:
            s = self.stages.get(site.places, Stage())
            self.stages[site.places] = Stage(s.macs + site.macs, s.dense + site.dense, s.weights + site.weights, s.sites + 1)

    @staticmethod
    def at(network, node):
        """The places of a site, its work, and the work if every output read every input channel."""
        shape, work = network.shapes[node.name], network.macs(node)
        if node.op != "conv2d":
            return max(1, math.prod(shape) // shape[-1]), work, work
        return shape[2] * shape[3], work, math.prod(shape) * network.shapes[node.inputs[0]][1] * math.prod(node.attrs["kernel"])


def spread(network):
    """From how far along one side an output gathers, on the widest way through the network."""
    ways, widest = {}, 0.0
    for node in network.nodes.values():
        variance, step = 0.0, 1.0
        for value in node.inputs:
            if value in ways and (ways[value][0] > variance or ways[value][1] > step):
                variance, step = ways[value]
        if node.op in SLIDING:
            kernel, apart = node.attrs["kernel"][0], node.attrs.get("dilation", [1])[0] * step
            variance += (kernel * kernel - 1) / 12 * apart * apart
            step *= node.attrs["stride"][0]
        widest = max(widest, variance)
        ways[node.name] = variance, step
    return math.sqrt(widest)


def unread(network):
    """How much strides skip. A value of which some reader reads all pixels counts as read."""
    read = {}
    for node in network.nodes.values():
        share = math.prod(min(1.0, k / s) for k, s in zip(node.attrs["kernel"], node.attrs["stride"])) if node.op in SLIDING else 1.0
        for value in node.inputs:
            read[value] = max(read.get(value, 0.0), share)
    return -sum(map(math.log, read.values()))


def useful(stage, places):
    return stage.macs / (1 + stage.weights / (TAUGHT * places * places))


def log_view(m):
    return min(0.0, math.log(max(m.spread, LEAST_SPREAD) / (SUFFICIENT_SPREAD * m.side)))


def expected_loss(original, variant):
    """{"points", "low", "high"} of a variant, both as Measured."""
    whole = sum(useful(s, places) for places, s in original.stages.items())
    lost = UNREAD * max(0.0, variant.unread - original.unread)
    if original.side:
        lost += VIEW * max(0.0, log_view(original) - log_view(variant))
    for places, before in original.stages.items():
        part, left = useful(before, places) / whole, variant.stages.get(places, Stage())
        if left.macs < LEAST_SHARE * before.macs:
            left = Stage(*(LEAST_SHARE * x for x in before[:3]), left.sites)
        depth = math.log(min(1.0, max(LEAST_DEPTH, left.sites / before.sites)))
        lost += WORK * part * max(0.0, math.log(useful(before, places) / useful(left, places))) + DEPTH * part * depth * depth
        lost += MIXING * part * max(0.0, math.log(before.macs / before.dense) - math.log(left.macs / left.dense))
    points = min(MOST_WORK, max(LEAST_WORK, original.macs / 1e9)) ** -SPARE * lost
    half = RELATIVE_ERROR * points + (LABEL_ERROR if lost > 0 else 0)
    return {"points": points, "low": points - half, "high": points + half}


def has_capacity(network):
    return any(n.op in SITES[:2] for n in network.nodes.values())
