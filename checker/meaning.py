"""What a network term means: the network of the original's nodes that computes it."""
import re
from graphs import SITES, Network
from nests import channels, is_depthwise, sizes_of, statement_in, with_fewer_inputs, with_outputs
from sizes import networks_in, site_of
from terms import Term, require

def node_named(leaf):
    require(not leaf.parts and leaf.op.startswith("@"), f"'{leaf}' is no name of a node")
    return re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), leaf.op[1:].encode()).decode("utf-8", "replace")
def smaller(a, b):
    return b if a is None else a if b is None else min(a, b)
def layers_in(net):
    return [net] if net.op == "layer" else [layer for part in networks_in(net) for layer in layers_in(part)]

class Meaning:
    """Walks a term. A value is (name, channels), with None for a number that cannot be determined; `limit`: only so many channels are wanted, or None."""
    def __init__(self, original, facts):
        self.original, self.facts, self.nodes, self.statements, self.joined = original, facts, {}, {}, {}
        self.depends = {name for name, _ in original.inputs}    # the values that depend on the inputs; parameters do not
        for name, node in original.nodes.items():
            if self.depends & set(node.inputs):
                self.depends.add(name)
            else:
                self.nodes[name] = node
    def network(self, net):
        """The network that the term makes of the original's nodes, with its shapes."""
        inputs, original = self.original.inputs, self.original.nodes
        output, _ = self.walk(net, (inputs[0][0] if len(inputs) == 1 else "", None), None)
        outputs = [output] if output else self.original.outputs
        needed = set(outputs)
        for name in reversed(original):
            needed.update(self.nodes[name].inputs if name in needed else ())
        nodes = {name: self.nodes[name] for name in original if name in needed}
        made = Network(self.original.name, inputs, nodes, outputs).infer()
        require(set(self.statements) == {n.name for n in nodes.values() if n.op in SITES}, "the sites of the network are not those of its term")
        for site, statement in self.statements.items():
            require(made.statement(nodes[site]) is statement, f"'{site}' is {made.statement(nodes[site])} in the network, and {statement} in its term")
        return made
    def walk(self, net, into, limit):
        networks_in(net)
        if net.op in ("none", "same"):
            return ("", 0) if net.op == "none" else (into[0], smaller(into[1], limit))
        if net.op == "write":
            return self.walk(net.parts[1], into, smaller(net.parts[0].whole(), limit))
        if net.op == "read":
            return self.walk(net.parts[1], (into[0], net.parts[0].whole()), limit)
        return getattr(self, "walk_" + {"opaque": "each", "spread": "each", "stream": "row"}.get(net.op, net.op))(net, into, limit)
    def copy(self, name, values, **attrs):
        """A node of the original that reads these values in place of its own."""
        require(name not in self.nodes and name in self.original.nodes, f"'{name}' is computed twice, or is no node of the original")
        node, values = self.original.nodes[name], list(values)
        inputs = [v for value in node.inputs for v in ([value] if value not in self.depends else [values.pop(0)] if values else [])]
        self.nodes[name] = node.changed(inputs + values, **attrs)
        return name
    def walk_layer(self, net, into, limit):
        (leaf, kept), nest = site_of(net), net.parts[1]
        name, (reads, writes) = node_named(leaf), channels(statement_in(nest))
        present, wanted = reads if into[1] is None else into[1], smaller(writes, limit)
        require(present <= reads, f"'{name}' reads {reads} channels, and {present} come in")
        if is_depthwise(statement_in(nest)):
            present = wanted = min(present, wanted)
        resized = nest if wanted == writes or is_depthwise(statement_in(nest)) else with_outputs(nest, wanted)
        if resized and present < reads:
            resized = with_fewer_inputs(resized, reads - present)
        require(resized and (resized is nest or not kept), f"'{name}' cannot have so many channels")
        return self.site(name, resized, into), wanted
    def site(self, name, nest, into):
        self.statements[name] = statement_in(nest)
        op, s = sizes_of(self.statements[name])
        require(name in self.original.nodes and self.original.nodes[name].op == op != "matmul", f"'{name}' is no {op} of the original in a row")
        return self.copy(name, [into[0]], **({"out_channels": s["G"] * s["CO"], "groups": s["G"]} if op == "conv2d" else {"out_features": s["CO"]}))
    def walk_each(self, net, into, limit):
        name, nodes = node_named(net.parts[-1]), self.original.nodes
        require(name in nodes and nodes[name].op not in SITES, f"'{name}' is no operator of the original without a nest")
        twice = into[0] in self.nodes and nodes[into[0]].op == nodes[name].op in ("relu", "relu6")
        if twice and name not in self.original.outputs:     # the rectifier of a rectified value changes nothing
            return into
        return self.copy(name, [into[0]]), into[1] if net.op != "spread" or into[1] is None else into[1] * net.parts[0].whole()
    def walk_row(self, net, into, limit):
        second = self.facts.of(net.parts[1])
        before = limit // second.out[0][1] if limit is not None and second.channelwise() else None
        return self.walk(net.parts[1], self.walk(net.parts[0], into, before), limit)
    def walk_lack(self, net, into, limit):
        says = self.facts.of(net).into
        require(None in (says, into[1]) or into[1] <= says, f"{into[1]} channels come in where {says} are said to")
        return self.walk(net.parts[1], (into[0], smaller(says, into[1])), limit)
    def walk_within(self, net, into, limit):
        width, inner = net.parts[0].whole(), net.parts[1]
        if inner.op != "row":
            return self.walk(inner, (into[0], width), width)
        for part in inner.parts:
            into = self.walk_within(Term("within", net.parts[0], part), into, limit)
        return into
    def operands(self, net, join, into, limit):
        """All operands of joins of one node; nothing is written by what is left out."""
        if net.op == "join" and net.parts[0] is join:
            return [value for part in networks_in(net) for value in self.operands(part, join, into, limit)]
        value = self.walk(net, into, limit)
        return [value] if value[1] != 0 else []
    def walk_join(self, net, into, limit):
        join, name = net.parts[0], node_named(net.parts[0].parts[0])
        require(join.op == "add" or (join.op == "concat" and limit is None), f"which channels of '{name}' are written cannot be determined")
        values = self.operands(net, join, into, limit)
        require(values, f"nothing is left of '{name}'")
        known = [count for _, count in values if count is not None]
        require(join.op != "add" or len(set(known)) < 2, f"'{name}' adds values of {known} channels")
        if len(values) == 1:
            return values[0]
        require(name in self.original.nodes and self.original.nodes[name].op == join.op, f"'{name}' is no {join.op} of the original")
        own = self.original.nodes[name].inputs
        if join.op == "add":
            names = sorted((v for v, _ in values), key=lambda v: own.index(v) if v in own else len(own))
            return self.copy(name, names), known[0] if known else None
        names = self.joined[name] = [n for v, _ in values for n in (self.joined[v] if v in self.joined and v not in own else [v])]
        return self.copy(name, names), sum(known) if len(known) == len(values) else None
    def walk_tangle(self, net, into, limit):
        """What is inside reads and writes as it does in the original."""
        start, end = map(node_named, net.parts[0].parts)
        inside = {end}
        for node in reversed(self.original.nodes.values()):
            if node.name in inside:
                inside.update(i for i in node.inputs if i != start and i in self.original.nodes)
        for layer in layers_in(net):
            self.statements[node_named(site_of(layer)[0])] = statement_in(layer.parts[1])
        for node in self.original.nodes.values():
            if node.name in inside or not end:
                self.nodes.setdefault(node.name, node.changed([into[0] if end and i == start else i for i in node.inputs]))
        return end, None
