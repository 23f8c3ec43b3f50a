"""How many channels a network term reads and writes: the facts that conditions of rules ask for."""
import collections

from faults import Refused
from nests import channels, is_depthwise, statement_in

# parts: how many of its operands are networks
PARTS = {"layer": 0, "each": 0, "spread": 0, "opaque": 0, "same": 0, "row": 2, "join": 2, "stream": 2, "tangle": 2,
         "none": 1, "write": 1, "read": 1, "lack": 1, "within": 1}
ARITY = {"same": 0, "opaque": 1, "none": 1, "join": 3, "tangle": 3}

# into: channels that come in, or None. out: the number that is written is the largest of fixed + copies * into over these pairs; none where
# it cannot be told. The others are truth values (docs/reference/certificate.md).
Sizes = collections.namedtuple("Sizes", "into out mixes computes kept trimmed narrowable adds_input", defaults=(None, (), *[False] * 6))


def is_net(t):
    return t.op in PARTS and len(t.parts) == ARITY.get(t.op, 2)


def nets_in(t):
    return t.parts[len(t.parts) - PARTS[t.op]:]


def site_of(layer):
    """The name of the site of a layer, and whether the site is kept as it is."""
    site = layer.parts[0]
    kept = site.is_("kept", 1)
    return (site.parts[0] if kept else site), kept


def fresh(s):
    return bool(s.out) and all(copies == 0 for _, copies in s.out)


def channelwise(s):
    return not s.mixes and len(s.out) == 1 and s.out[0][0] == 0 and s.out[0][1] > 0


def written(s, into=None):
    into = s.into if into is None else into
    if into is None and not fresh(s):
        return None
    return max((fixed + copies * (into or 0) for fixed, copies in s.out), default=None)


def absent(s, missing):
    """How many fewer channels are written where so many fewer come in."""
    if len(s.out) == 1:
        return s.out[0][1] * missing
    return None if not s.out or s.into is None else written(s) - written(s, s.into - missing)


def largest(pairs):
    """Without pairs that another one is never below."""
    pairs = sorted(set(pairs))
    return tuple(a for a in pairs if not any(a != b and b[0] >= a[0] and b[1] >= a[1] for b in pairs))


class Facts:
    """The sizes of terms. `whole`: the output channels of each site in the original network."""

    def __init__(self, whole):
        self.whole, self.known = whole, {}

    def of(self, t):
        if t not in self.known:
            self.known[t] = self.made(t)
        return self.known[t]

    def made(self, t):
        if not is_net(t):
            raise Refused(f"'{str(t)[:60]}' is no network")
        if t.op == "layer":
            return self.of_layer(t)
        parts = [self.of(p) for p in nets_in(t)]
        count = t.parts[0].whole() if t.op in ("spread", "write", "read", "lack", "within") else None
        if t.op in ("write", "read", "lack", "within", "none"):
            return self.wrapped(t.op, count, parts[0])
        sizes = {"same": Sizes(out=((0, 1),)), "each": Sizes(out=((0, 1),)), "opaque": Sizes(mixes=True), "tangle": Sizes(mixes=True)}.get(t.op)
        if t.op == "spread":
            sizes = Sizes(out=((0, count),))
        elif t.op in ("row", "stream"):
            sizes = self.row(*parts, t.op == "row")
        elif t.op == "join":
            sizes = self.join(t.parts[0].op == "add", *parts)
        return sizes._replace(computes=any(p.computes for p in parts), kept=any(p.kept for p in parts))

    def of_layer(self, t):
        name, kept = site_of(t)
        statement = statement_in(t.parts[1])
        into, out = channels(statement)
        each = is_depthwise(statement)
        sizes = Sizes(computes=True, kept=kept, mixes=not each)
        if out:
            sizes = sizes._replace(into=into, out=((0, 1),) if each else ((out, 0),), narrowable=not each)
        return sizes._replace(trimmed=sizes.mixes and out < self.whole.get(name, 0))

    @staticmethod
    def row(x, y, narrowable):
        into = x.into
        if into is None and channelwise(x) and y.into is not None:
            into = y.into // x.out[0][1]
        out = y.out if fresh(y) else largest((b + d * a, d * c) for a, c in x.out for b, d in y.out)
        return Sizes(into, out, x.mixes or y.mixes, trimmed=y.trimmed or (not fresh(y) and x.trimmed),
                     narrowable=narrowable and (y.narrowable if fresh(y) else channelwise(y) and x.narrowable),
                     adds_input=x.adds_input or (not fresh(x) and y.adds_input))

    @staticmethod
    def join(add, x, y):
        if None not in (x.into, y.into) and x.into != y.into:
            raise Refused(f"of one value, {x.into} and {y.into} channels are read")
        out = x.out + y.out if add else [(a + b, c + d) for a, c in x.out for b, d in y.out]
        return Sizes(y.into if x.into is None else x.into, largest(out), x.mixes or y.mixes, trimmed=x.trimmed or y.trimmed,
                     narrowable=add and x.narrowable and y.narrowable,
                     adds_input=x.adds_input or y.adds_input or (add and fresh(x) != fresh(y)))

    @staticmethod
    def wrapped(op, count, x):
        if op == "none":
            return x._replace(out=((0, 0),), computes=False, kept=False, adds_input=False, trimmed=True)
        if count is None or count < 0:
            raise Refused(f"'{op}' needs a number of channels")
        if op in ("write", "within"):
            all_ = written(x)
            x = x._replace(out=((count, 0),), trimmed=x.trimmed or all_ is None or count < all_)
        if op in ("read", "within"):
            x = x._replace(into=count)
        if op == "lack" and x.into is not None:
            if count > x.into:
                raise Refused(f"{count} of {x.into} channels are absent")
            x = x._replace(into=x.into - count)
        return x
