"""How many channels a network term reads and writes: the facts that conditions of rules ask for."""
import collections
from nests import channels, is_depthwise, statement_in
from terms import Refused, require

# How many operands an operator of networks has, and how many of them, the last ones, are networks.
OPERANDS = {"layer": (2, 0), "each": (2, 0), "spread": (2, 0), "opaque": (1, 0), "same": (0, 0), "row": (2, 2), "join": (3, 2), "stream": (2, 2),
            "tangle": (3, 2), "none": (1, 1), "write": (2, 1), "read": (2, 1), "lack": (2, 1), "within": (2, 1)}

def networks_in(net):
    """The operands of a network that are networks."""
    count, networks = OPERANDS.get(net.op, (-1, 0))
    if len(net.parts) != count:
        raise Refused(f"'{str(net)[:60]}' is no network")
    return net.parts[count - networks:]

def site_of(layer):
    """The name of the site of a layer, and whether the site is kept as it is."""
    site = layer.parts[0]
    return (site.parts[0], True) if site.is_("kept", 1) else (site, False)
def largest(pairs):
    """Without pairs that another one is never below."""
    pairs = set(pairs)
    return tuple(sorted(a for a in pairs if not any(a != b and b[0] >= a[0] and b[1] >= a[1] for b in pairs)))

class Sizes(collections.namedtuple("Sizes", "into out mixes computes kept trimmed narrowable adds_input", defaults=(None, (), *[False] * 6))):
    """into: channels that come in, or None. out: the number that is written is the largest of fixed + copies * into over these pairs; none where it
    cannot be determined. The others are truth values (docs/reference/certificate.md)."""
    def fresh(self):
        return bool(self.out) and all(copies == 0 for _, copies in self.out)
    def channelwise(self):
        return not self.mixes and len(self.out) == 1 and self.out[0][0] == 0 and self.out[0][1] > 0
    def written(self, into=None):
        into = self.into if into is None else into
        if into is None and not self.fresh():
            return None
        return max((fixed + copies * (into or 0) for fixed, copies in self.out), default=None)
    def absent(self, missing):
        """How many fewer channels are written where so many fewer come in."""
        if len(self.out) == 1:
            return self.out[0][1] * missing
        return None if not self.out or self.into is None else self.written() - self.written(self.into - missing)

class Facts:
    """The sizes of terms. `whole`: the output channels of each site in the original network."""
    def __init__(self, whole):
        self.whole, self.known = whole, {}
    def of(self, net):
        if net not in self.known:
            self.known[net] = self.made(net, [self.of(part) for part in networks_in(net)])
        return self.known[net]
    def made(self, net, parts):
        count = net.parts[0].whole() if net.op in ("spread", "write", "read", "lack", "within") else 0
        require(count is not None and count >= 0, f"'{net.op}' needs a number of channels")
        if net.op == "layer":
            return self.layer(net)
        if net.op in ("none", "write", "read", "lack", "within"):
            return self.wrapped(net.op, count, parts[0])
        if net.op in ("row", "stream"):
            sizes = self.row(*parts, net.op == "row")
        elif net.op == "join":
            sizes = self.join(net.parts[0].op == "add", *parts)
        else:
            sizes = Sizes(mixes=True) if net.op in ("opaque", "tangle") else Sizes(out=((0, count if net.op == "spread" else 1),))
        return sizes._replace(computes=any(p.computes for p in parts), kept=any(p.kept for p in parts))
    def layer(self, net):
        (name, kept), statement = site_of(net), statement_in(net.parts[1])
        (into, out), mixes = channels(statement), not is_depthwise(statement)
        if not out:
            return Sizes(computes=True, kept=kept, mixes=True)
        return Sizes(into, ((out, 0),) if mixes else ((0, 1),), mixes, True, kept, trimmed=mixes and out < self.whole.get(name, 0), narrowable=mixes)
    @staticmethod
    def row(x, y, narrowable):
        into = x.into
        if into is None and x.channelwise() and y.into is not None:
            into = y.into // x.out[0][1]
        out, makes = largest((d + c * b, c * a) for b, a in x.out for d, c in y.out), y.fresh()
        return Sizes(into, y.out if makes else out, x.mixes or y.mixes, trimmed=y.trimmed or (not makes and x.trimmed),
                     narrowable=narrowable and (y.narrowable if makes else y.channelwise() and x.narrowable),
                     adds_input=x.adds_input or (not x.fresh() and y.adds_input))
    @staticmethod
    def join(add, x, y):
        require(None in (x.into, y.into) or x.into == y.into, f"of one value, {x.into} and {y.into} channels are read")
        out = x.out + y.out if add else [(a + b, c + d) for a, c in x.out for b, d in y.out]
        return Sizes(y.into if x.into is None else x.into, largest(out), x.mixes or y.mixes, trimmed=x.trimmed or y.trimmed,
                     narrowable=add and x.narrowable and y.narrowable, adds_input=x.adds_input or y.adds_input or (add and x.fresh() != y.fresh()))
    @staticmethod
    def wrapped(op, count, x):
        if op == "none":
            return x._replace(out=((0, 0),), computes=False, kept=False, adds_input=False, trimmed=True)
        if op in ("write", "within"):
            whole = x.written()
            x = x._replace(out=((count, 0),), trimmed=x.trimmed or whole is None or count < whole)
        if op in ("read", "within"):
            return x._replace(into=count)
        if op == "write" or x.into is None:
            return x
        require(count <= x.into, f"{count} of {x.into} channels are absent")
        return x._replace(into=x.into - count)
