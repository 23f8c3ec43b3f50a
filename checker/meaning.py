"""What a network term means: the network of the original's nodes that computes it."""
import re

import sizes
from faults import Refused
from graphs import SITES, Network
from nests import channels, is_depthwise, sizes_of, statement_in, with_fewer_inputs, with_outputs

def node_named(leaf):
    if leaf.parts or not leaf.op.startswith("@"):
        raise Refused(f"'{leaf}' is no name of a node")
    raw = re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), leaf.op[1:].encode())
    return raw.decode("utf-8", "replace")


def smaller(a, b):
    return b if a is None else a if b is None else min(a, b)


def network_of(net, original, facts):
    """The network that the term makes of the original's nodes, with its shapes; raises Refused where there is none."""
    return Meaning(original, facts).network(net)


class Meaning:
    """Walks a term. A value is (name, channels), where None channels cannot be told; `limit`: only so many of the written channels are wanted."""

    def __init__(self, original, facts):
        self.original, self.facts, self.nodes, self.nests, self.joined = original, facts, {}, {}, {}
        self.depends = {name for name, _ in original.inputs}
        for node in original.nodes.values():
            if self.depends & set(node.inputs):
                self.depends.add(node.name)

    def network(self, net):
        inputs = self.original.inputs
        output, _ = self.walk(net, (inputs[0][0] if len(inputs) == 1 else "", None), None)
        outputs = [output] if output else self.original.outputs
        needed = set(outputs)
        for name in reversed(self.original.nodes):
            if name in needed and name in self.nodes:
                needed |= set(self.nodes[name].inputs)
        nodes = {name: self.nodes[name] for name in self.original.nodes if name in self.nodes and name in needed}
        made = Network(self.original.name, inputs, nodes, outputs).infer()
        for site, statement in self.nests.items():
            if site not in nodes:
                raise Refused(f"nothing reads '{site}'")
            if made.statement(nodes[site]) is not statement:
                raise Refused(f"'{site}' is {made.statement(nodes[site])} in the network, and {statement} in its term")
        if set(self.nests) != {n.name for n in nodes.values() if n.op in SITES}:
            raise Refused("the sites of the network are not those of its term")
        return made

    def walk(self, net, into, limit):
        if not sizes.is_net(net):
            raise Refused(f"'{str(net)[:60]}' is no network")
        return getattr(self, "walk_" + net.op)(net, into, limit)

    def copy(self, name, values, **attrs):
        """A node of the original that reads these values in place of its own. Its parameters come with it."""
        if name in self.nodes or name not in self.original.nodes:
            raise Refused(f"'{name}' is computed twice, or is no node of the original")
        node, inputs, values = self.original.nodes[name], [], list(values)
        for value in node.inputs:
            if value not in self.depends:
                self.copy_constant(value)
                inputs.append(value)
            elif values:
                inputs.append(values.pop(0))
        self.nodes[name] = node.changed(inputs + values, **attrs)
        return name

    def copy_constant(self, name):
        if name not in self.nodes:
            node = self.nodes[name] = self.original.nodes[name]
            for value in node.inputs:
                self.copy_constant(value)

    def walk_same(self, net, into, limit):
        return into[0], smaller(into[1], limit)

    def walk_none(self, net, into, limit):
        return "", 0

    def walk_layer(self, net, into, limit):
        leaf, kept = sizes.site_of(net)
        nest, name = net.parts[1], node_named(leaf)
        reads, writes = channels(statement_in(nest))
        if reads == 0:
            return self.site(name, nest, into), None
        present, wanted = reads if into[1] is None else into[1], smaller(writes, limit)
        if present > reads:
            raise Refused(f"'{name}' reads {reads} channels, and {present} come in")
        if is_depthwise(statement_in(nest)):
            wanted = min(present, wanted)
            resized = nest if wanted == reads else with_fewer_inputs(nest, reads - wanted)
        else:
            resized = nest if wanted == writes else with_outputs(nest, wanted)
            resized = resized if present == reads or resized is None else with_fewer_inputs(resized, reads - present)
        if resized is None or (kept and resized is not nest):
            raise Refused(f"'{name}' cannot have so many channels")
        return self.site(name, resized, into), wanted

    def site(self, name, nest, into):
        statement = statement_in(nest)
        op, s = sizes_of(statement)
        wide = {"conv2d": {"out_channels": s.get("G", 1) * s.get("CO", 1), "groups": s.get("G", 1)}, "linear": {"out_features": s.get("CO")}}.get(op, {})
        self.copy(name, [into[0]], **wide)
        if self.nodes[name].op != op:
            raise Refused(f"'{name}' is no {op}")
        self.nests[name] = statement
        return name

    def walk_each(self, net, into, limit):
        name = node_named(net.parts[-1])
        node, before = self.original.nodes.get(name), self.original.nodes.get(into[0])
        if node is None or node.op in SITES:
            raise Refused(f"'{name}' is no operator of the original without a nest")
        twice = before is not None and into[0] in self.nodes and before.op == node.op in ("relu", "relu6")
        if twice and name not in self.original.outputs:     # the rectifier of a rectified value changes nothing
            return into
        return self.copy(name, [into[0]]), into[1]

    walk_opaque = walk_each

    def walk_spread(self, net, into, limit):
        return self.copy(node_named(net.parts[1]), [into[0]]), None if into[1] is None else into[1] * net.parts[0].whole()

    def walk_row(self, net, into, limit):
        second = self.facts.of(net.parts[1])
        before = limit // second.out[0][1] if limit is not None and sizes.channelwise(second) else None
        return self.walk(net.parts[1], self.walk(net.parts[0], into, before), limit)

    walk_stream = walk_row

    def walk_write(self, net, into, limit):
        return self.walk(net.parts[1], into, smaller(net.parts[0].whole(), limit))

    def walk_read(self, net, into, limit):
        return self.walk(net.parts[1], (into[0], net.parts[0].whole()), limit)

    def walk_lack(self, net, into, limit):
        says = self.facts.of(net).into
        if None not in (says, into[1]) and says != into[1]:
            raise Refused(f"{into[1]} channels come in where {says} are said to")
        return self.walk(net.parts[1], (into[0], says if into[1] is None else into[1]), limit)

    def walk_within(self, net, into, limit):
        return self.within(net.parts[1], into, net.parts[0].whole())

    def within(self, net, into, width):
        if net.op == "row":
            return self.within(net.parts[1], self.within(net.parts[0], into, width), width)
        return self.walk(net, (into[0], width), width)

    def operands(self, net, join, into, limit):
        """All operands of joins of one node; nothing is written by what is left out."""
        if net.op == "join" and net.parts[0] is join:
            return self.operands(net.parts[1], join, into, limit) + self.operands(net.parts[2], join, into, limit)
        value = self.walk(net, into, limit)
        return [value] if value[1] != 0 else []

    def walk_join(self, net, into, limit):
        join, name = net.parts[0], node_named(net.parts[0].parts[0])
        if join.op not in ("add", "concat") or (join.op == "concat" and limit is not None):
            raise Refused(f"which channels of '{name}' are written cannot be told")
        values = self.operands(net.parts[1], join, into, limit) + self.operands(net.parts[2], join, into, limit)
        if not values:
            raise Refused(f"nothing is left of '{name}'")
        known = [c for _, c in values if c is not None]
        if join.op == "add" and len(set(known)) > 1:
            raise Refused(f"'{name}' adds values of {known} channels")
        if len(values) == 1:
            return values[0]
        if name not in self.original.nodes or self.original.nodes[name].op != join.op:
            raise Refused(f"'{name}' is no {join.op} of the original")
        own = self.original.nodes[name].inputs
        if join.op == "add":
            names = sorted((v for v, _ in values), key=lambda v: own.index(v) if v in own else len(own))
            return self.copy(name, names), known[0] if known else None
        names = [n for v, _ in values for n in (self.joined[v] if v in self.joined and v not in own else [v])]
        self.joined[name] = names
        return self.copy(name, names), sum(known) if len(known) == len(values) else None

    def walk_tangle(self, net, into, limit):
        """What is inside reads and writes as it does in the original."""
        start, end = map(node_named, net.parts[0].parts)
        inside = {end}
        for node in reversed(self.original.nodes.values()):
            if node.name in inside:
                inside |= {i for i in node.inputs if i != start and i in self.original.nodes}
        for layer in self.layers(net):
            self.nests[node_named(sizes.site_of(layer)[0])] = statement_in(layer.parts[1])
        for node in self.original.nodes.values():
            if node.name in inside or not end:
                self.nodes.setdefault(node.name, node.changed([into[0] if end and i == start else i for i in node.inputs]))
        return end, None

    def layers(self, net):
        return [net] if net.op == "layer" else [layer for part in sizes.nets_in(net) for layer in self.layers(part)]
