"""Checks a certificate against the folder that it lies in, part by part."""
import hashlib
import json
import math

from faults import NotCovered, Refused
from graphs import read_network
from loss import Measured, expected_loss
from meaning import network_of
from nests import channels, statement_in
from rules import Application, rule_of
from sizes import Facts, site_of
from terms import part_at, read_term, with_part

VERSION = 1
KEYS = {"loopegg_certificate", "model", "original", "steps", "final", "rules", "channels_multiple", "claims", "files"}
# What must be hashed where it is in the folder.
HASHED = ("original.json", "model.json", "plan.json", "weights.safetensors", "network.so", "network.json", "network.h", "weights.bin")


def near(a, b):
    return isinstance(a, (int, float)) and math.isfinite(a) and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def require(holds, why):
    if not holds:
        raise Refused(why)


def layers_in(net):
    if net.op == "layer" and len(net.parts) == 2:
        yield net
    else:
        for part in net.parts:
            yield from layers_in(part)


class Check:
    """The checks in order. `held` says what was found; `open` what this version does not cover."""

    def __init__(self, folder, trusted):
        self.folder, self.trusted, self.held, self.open = folder, trusted, [], []
        self.c = self.read("certificate.json")

    def read(self, name):
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError, RecursionError) as e:
            raise Refused(f"{name} cannot be read: {e}") from e

    def run(self):
        require(self.c.get("loopegg_certificate") == VERSION, f"it is no certificate of version {VERSION}")
        require(set(self.c) == KEYS, "its keys are not those of the format")
        for part in (self.files, self.rules, self.networks, self.replay, self.claims, self.judged):
            try:
                part()
            except NotCovered as e:
                self.open.append(str(e))
                if part in (self.networks, self.replay):
                    break       # the rest needs both

    def files(self):
        """The files of the folder are those that the certificate is about."""
        files = self.c["files"]
        missing = [n for n in HASHED if n not in files and (self.folder / n).exists()]
        missing += [n for n in (f"{p.parent.name}/{p.name}" for p in sorted((self.folder / self.returned()).glob("*.c"))) if n not in files]
        require(not missing, f"it has no hash of {', '.join(missing)}")
        for name, digest in files.items():
            path = self.folder / name
            require(not {"..", ""} & set(name.split("/")) and path.is_file() and not path.is_symlink(), f"there is no file '{name}'")
            with path.open("rb") as f:
                require(hashlib.file_digest(f, "sha256").hexdigest() == digest, f"{name} is not the file that the certificate is about")
        self.held.append(f"{len(files)} files have the hashes that are stated")

    def returned(self):
        returned = self.read("result.json")["returned"]
        require(returned in ("original", "optimized"), "result.json names no network that is returned")
        return returned

    def rules(self):
        """Each rule has the name and the hash that are stated and, where rule files are trusted, the text that it has there."""
        self.book = {}
        for name, row in self.c["rules"].items():
            rule = self.book[name] = rule_of(row["text"])
            require(rule.name == name and rule.text == row["text"], f"the text of the rule {name} is not that of a rule of this name")
            require(hashlib.sha256(row["text"].encode()).hexdigest() == row["sha256"], f"the text of the rule {name} was changed")
            if self.trusted is not None:
                require(self.trusted.get(name) == row["text"], f"the rule {name} is not that of the trusted rules")
        require(set(self.book) == {s["rule"] for s in self.c["steps"]}, "its rules are not those of its steps")
        self.held.append(f"{len(self.book)} rules" + ("" if self.trusted is None else ", as in the trusted rule files"))

    def networks(self):
        """The first and the last term mean the networks of the files."""
        self.first, self.last = read_term(self.c["original"]), read_term(self.c["final"])
        self.facts = Facts({site_of(layer)[0]: channels(statement_in(layer.parts[1]))[1] for layer in layers_in(self.first)})
        self.original, self.final = read_network(self.read("original.json")), read_network(self.read("model.json"))
        require(self.c["model"] == self.original.name == self.final.name, "it is about another model")
        for term, network, file in ((self.first, self.original, "original.json"), (self.last, self.final, "model.json")):
            made = network_of(term, self.original, self.facts)
            require(made.inputs == network.inputs and made.outputs == network.outputs and made.nodes == network.nodes,
                    f"the network of {file} is not what its term means{self.difference(made, network)}")
        self.held.append(f"the terms mean the networks of original.json and model.json ({len(self.final.nodes)} nodes)")

    @staticmethod
    def difference(made, network):
        names = [n for n in {**made.nodes, **network.nodes} if made.nodes.get(n) is None or network.nodes.get(n) is None or made.nodes[n] != network.nodes[n]]
        return f": '{names[0]}' differs" if names else ""

    def apply(self, step, here):
        given = {variable: read_term(value) for variable, value in step.get("with", {}).items()}
        return Application(self.book[step["rule"]], self.facts, given, self.c["channels_multiple"]).apply(here)

    def replay(self):
        """Each step is an application of its rule at its place, and exact steps change nothing."""
        net, meant = self.first, None
        for i, step in enumerate(self.c["steps"], 1):
            try:
                rule = self.book[step["rule"]]
                require(rule.neural is step["neural"] and ("judged" in step) is rule.neural, f"{rule.name} is of the other kind")
                if not rule.neural and meant is None:
                    meant = network_of(net, self.original, self.facts)
                if rule.neural:
                    meant = self.same(meant, net)
                net = with_part(net, step["at"], self.apply(step, part_at(net, step["at"])))
            except Refused as e:
                raise Refused(f"step {i}: {e}") from e
        self.same(meant, net)
        require(net is self.last, "the steps do not lead to the network that is claimed")
        self.held.append(f"{len(self.c['steps'])} steps lead from the one to the other")

    def same(self, meant, net):
        """Where exact steps went before, the network is what it was before them."""
        if meant is not None:
            now = network_of(net, self.original, self.facts)
            require(now.nodes == meant.nodes and now.outputs == meant.outputs, "exact steps changed the network")

    def claims(self):
        """The figures that are claimed, here and in result.json."""
        c, result = self.c["claims"], self.read("result.json")
        for which, network, row in (("original", self.original, "original"), ("returned", self.final, "optimized")):
            require(c[which] == network.claims(), f"the {which} network has {network.claims()}, and {c[which]} is claimed")
            require(all(result[row][k] == v for k, v in c[which].items()), f"result.json says something else of the {which} network")
        self.held.append("multiply-accumulates and parameters are those of the networks")
        loss = c["loss"]
        require(all(near(result["guard"]["loss"][k], loss[k]) for k in ("points", "low", "high")) and result["guard"]["name"] == loss["guard"]
                and near(result["guard"]["needed"], loss["needed"]), "result.json says something else of the loss")
        if not self.c["steps"]:
            return require(loss["points"] == loss["low"] == loss["high"] == 0, "a network without steps loses nothing")
        if loss["by"] != "expected-loss":
            raise NotCovered(f"the loss is what '{loss['by']}' says, and only the formula of expected-loss is covered")
        want = expected_loss(Measured(self.original), Measured(self.final))
        require(all(near(loss[k], want[k]) for k in want), f"the expected loss is {want['points']:.6f} points, and {loss['points']} are claimed")
        require(2 ** -want["points"] >= loss["needed"] - 1e-9, "the network loses more than is allowed")
        self.held.append(f"the expected loss is {want['points']:.3f} points ({want['low']:.3f} to {want['high']:.3f})")

    def judged(self):
        """What the guard said of each neural step: by itself, at its place in the original."""
        asked, whole = 0, Measured(self.original)
        for i, step in enumerate(self.c["steps"], 1):
            if not step["neural"]:
                continue
            verdict = step["judged"]
            if verdict["by"] not in ("sizes", "network"):
                raise NotCovered(f"step {i} was judged by '{verdict['by']}'")
            try:
                here = part_at(self.first, verdict["at"])
                made = network_of(with_part(self.first, verdict["at"], self.apply(step, here)), self.original, self.facts)
            except Refused as e:
                require(verdict == {"by": "network", "at": verdict["at"]}, f"step {i} by itself is no network: {e}")
                continue        # the rule applies only after others: the verdict about the whole network counts
            want = expected_loss(whole, Measured(made))["points"]
            require(verdict["by"] == "sizes" and near(verdict["points"], want), f"step {i} by itself loses {want:.6f} points, and its evidence says something else")
            require(2 ** -want >= self.c["claims"]["loss"]["needed"] - 1e-9, f"step {i} loses more than is allowed")
            asked += 1
        self.held.append(f"the guard's evidence of {asked} neural steps")
