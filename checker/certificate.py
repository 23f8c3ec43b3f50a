"""Checks a certificate against the folder that it is in, part by part."""
import hashlib
import json
import math
from graphs import SITES, Network
from loss import FORMULAS, Measured, expected_loss
from meaning import Meaning, layers_in
from nests import channels, extents, plain, statement_in
from rounding import algorithms_of, error_bound
from rules import Application, Rule
from schedules import check_loops
from sizes import Facts, site_of
from terms import NotCovered, Refused, part_at, read_forms, read_term, require, with_part

VERSION, WIDTHS = 2, ("write", "read", "lack", "within")
KEYS = {"loopegg_certificate", "model", "original", "steps", "final", "nests", "rules", "channels_multiple", "claims", "files"}
HASHED = ("original.json", "model.json", "plan.json", "weights.safetensors", "network.so", "network.json", "network.h", "weights.bin")

def keys_are(j, *keys):
    require(isinstance(j, dict) and set(j) == set(keys), f"{', '.join(map(str, j))} stand where {', '.join(keys)} are expected")

def errs_within(bound, said, site):
    keys_are(said, "measured", *bound)
    require(all(said[k] == v if isinstance(v, str) else math.isclose(said[k], v) for k, v in bound.items()), f"the bound of '{site}' is {bound['bound']:.3g}")
    require(said["measured"] is None or 0 <= said["measured"] <= bound["bound"], f"the kernels of '{site}' err more than their bound, {bound['bound']:.3g}")

class Check:
    """The checks in order, with a line in `held` for each that holds. `trusted`: texts of rules by name, or None."""
    def __init__(self, folder, trusted, held):
        self.folder, self.trusted, self.held, self.places, self.book = folder, trusted, held, [], {}
        self.c, self.result = self.read("certificate.json"), self.read("result.json")
    def read(self, name):
        require((self.folder / name).is_file(), f"there is no file {name}")
        return json.loads((self.folder / name).read_text())
    def run(self):
        keys_are(self.c, *KEYS)
        require(self.c["loopegg_certificate"] == VERSION and self.c["channels_multiple"] > 0, f"it is no certificate of version {VERSION}")
        for part in (self.files, self.rules, self.networks, self.loops, self.replay, self.claims, self.judged):
            self.held.append(part())
        rows = sum((s.get("judged") or [] for s in self.c["steps"]), self.c["claims"]["measures"])
        if open_ := sorted({measure for measure, *_ in rows} - set(FORMULAS)):
            raise NotCovered(f"all else holds, and {', '.join(open_)} cannot be computed from these files: no formula of sizes")
    def files(self):
        """The files of the folder are those that the certificate is about: these and the kernels."""
        files, returned = self.c["files"], self.result["returned"]
        require(returned in ("original", "optimized"), "result.json names no network that is returned")
        kernels = [p for pattern in ("kernel*", "network.c") for p in (self.folder / returned).glob(pattern)]
        named = {name for name in HASHED if (self.folder / name).exists()} | {f"{returned}/{p.name}" for p in kernels}
        require(named == set(files), f"it has to name {', '.join(sorted(named ^ set(files)))}, or must not")
        for name, digest in files.items():
            require((self.folder / name).is_file() and not (self.folder / name).is_symlink(), f"{name} is no file, or a link")
            require(hashlib.sha256((self.folder / name).read_bytes()).hexdigest() == digest, f"{name} is not the file that the certificate is about")
        return f"{len(files)} files have the hashes that are stated"
    def rules(self):
        """Each rule has the name and the hash that are stated and, where rule files are trusted, the text that it has there."""
        for name, row in self.c["rules"].items():
            keys_are(row, "text", "sha256")
            rule = self.book[name] = Rule(*read_forms(row["text"]))
            require((rule.name, rule.text) == (name, row["text"]), f"the text of the rule {name} is not that of a rule of this name")
            require(hashlib.sha256(row["text"].encode()).hexdigest() == row["sha256"], f"the text of the rule {name} was changed")
            require(self.trusted is None or self.trusted.get(name) == row["text"], f"the rule {name} is not that of the trusted rules")
        require(set(self.book) == {s["rule"] for s in self.c["steps"]}, "its rules are not those of its steps")
        return f"{len(self.book)} rules " + ("are in the certificate" if self.trusted is None else "are those of the trusted rule files")
    def networks(self):
        """The first and the last term mean the networks of the files."""
        if self.c["nests"] != []:
            raise NotCovered(f"the steps over the nests of {', '.join(self.c['nests'])} are not covered")
        self.first, self.last = read_term(self.c["original"]), read_term(self.c["final"])
        self.facts = Facts({site_of(layer)[0]: channels(statement_in(layer.parts[1]))[1] for layer in layers_in(self.first)})
        self.mean = lambda net: Meaning(self.original, self.facts).network(net)
        self.original, self.final = Network.read(self.read("original.json")), Network.read(self.read("model.json"))
        require(self.c["model"] == self.original.name == self.final.name == self.result["model"], "it is about another model")
        first, original = self.mean(self.first), self.original      # what no output needs is not in the term
        require(first.outputs == original.outputs and first.nodes.items() <= original.nodes.items(), "the first term does not mean the network of original.json")
        require(self.mean(self.last).same(self.final), "the last term does not mean the network of model.json")
        return f"the terms mean the networks of original.json and model.json ({len(self.final.nodes)} nodes)"
    def loops(self):
        """Each site runs its statement, or the nests of a bilinear algorithm, in loops that visit each instance once. Its kernels err within their bound."""
        network, nests, claimed = self.read("network.json"), {}, self.c["claims"]["errors"]
        if "(blockwise " in json.dumps(network["kernels"]):
            raise NotCovered("nests that compute several sites block by block are not covered")
        for step in (step for step in network["steps"] if step["kernel"] >= 0):
            nests.setdefault(step["site"], []).append(read_term(network["kernels"][step["kernel"]]["nest"]))
        sites = {node.name: plain(self.final.statement(node)) for node in self.final.nodes.values() if node.op in SITES}
        require(set(claimed) == set(sites) and self.result["errors"] == claimed, "result.json says something else of the errors of sites, or they are of other sites")
        for site, own in sites.items():
            runs, algorithms, each = [plain(nest.parts[0]) for nest in nests.get(site, [])], (), [extents(own)]
            if len(runs) > 1 and site in network["schedules"]:
                algorithms, each = algorithms_of(read_term(network["schedules"][site]), own, runs, site)
            require(algorithms or runs == [own], f"the kernels of '{site}' do not run {own}")
            for nest, size in zip(nests[site], each):
                check_loops(size, nest.parts[1], f"the loops of '{site}'")
            errs_within(error_bound(own, nests[site], algorithms), claimed[site], site)
        return f"the loops of {len(sites)} sites visit each instance once, and their kernels err less than their bounds"
    def apply(self, step, here):
        given = {variable: read_term(value) for variable, value in step.get("with", {}).items()}
        return Application(self.book[step["rule"]], self.facts, given, self.c["channels_multiple"]).apply(here)
    def replay(self):
        """Each step is an application of its rule at its place. Exact steps do not change what the term means."""
        net, meant = self.first, None       # meant: by the term before a run of exact steps
        for i, step in enumerate(self.c["steps"], 1):
            keys_are(step, "rule", "neural", "at", *(["judged"] if step["neural"] else []), *(["with"] if "with" in step else []))
            try:
                require(step["neural"] is self.book[step["rule"]].neural, f"{step['rule']} is of the other kind")
                if step["neural"] is (meant is not None):   # a run of exact steps begins or ends
                    require(meant is None or self.mean(net).same(meant), "exact steps changed the network")
                    meant = None if step["neural"] else self.mean(net)
                self.places.append([j for depth, j in enumerate(step["at"]) if part_at(net, step["at"][:depth]).op not in WIDTHS])  # the original has no widths
                net = with_part(net, step["at"], self.apply(step, part_at(net, step["at"])))
            except Refused as e:
                raise Refused(f"step {i}: {e}") from e
        require(net is self.last, "the steps do not lead to the network that is claimed")
        require(meant is None or self.final.same(meant), "exact steps changed the network")
        return f"{len(self.c['steps'])} steps lead from the one to the other"
    def claims(self):
        """The figures that are claimed, here and in result.json."""
        c, guard = self.c["claims"], self.result["guard"]
        keys_are(c, "original", "returned", "loss", "measures", "errors")
        keys_are(c["loss"], "by", "points", "low", "high")
        for which, network, row in (("original", self.original, "original"), ("returned", self.final, "optimized")):
            require(c[which] == network.figures(), f"the {which} network has {network.figures()}, and {c[which]} is claimed")
            require(all(self.result[row][k] == v for k, v in c[which].items()), f"result.json says something else of the {which} network")
        loss, self.whole, last = c["loss"], Measured(self.original), Measured(self.final)
        require(loss == {**guard["loss"], "by": loss["by"]} and loss["by"] in ("sizes", "trainings"), "result.json says something else of the loss")
        if self.c["steps"] and loss["by"] != "sizes":
            raise NotCovered("the loss was calibrated with trainings, and only the formula of sizes is covered")
        want = expected_loss(self.whole, last) if self.c["steps"] else dict.fromkeys(("points", "low", "high"), 0)
        require(all(math.isclose(loss[k], v, abs_tol=1e-9) for k, v in want.items()), f"the expected loss is {want['points']:.6f} points, and {loss['points']} are claimed")
        said = [[row[key] for key in ("measure", "comparison", "threshold", "value")] for row in guard.get("measures", [])]
        require(c["measures"] == said and (said or not self.c["steps"]), "result.json has other measures")
        self.hold(said, last, "the network")
        return f"multiply-accumulates, parameters and {len(said)} conditions are as claimed, and the expected loss is {want['points']:.3f} points"
    def hold(self, rows, network, of):
        """Each condition holds for the value that is claimed, which is computed again where it is a formula of sizes."""
        for measure, comparison, threshold, value in rows:
            want = FORMULAS[measure](self.whole, network) if measure in FORMULAS else value
            require(math.isclose(value, want, abs_tol=1e-9), f"{measure} of {of} is {want:.6f}, and its evidence differs")
            require((want - threshold) * {"<=": 1e9, ">=": -1e9}[comparison] <= 1, f"{of} loses more than is allowed: {measure} is {want:.6f}")
    def asked(self, rule):
        """What a step of the rule is asked by itself: the conditions that it names, and those of the network where it says (capacity)."""
        network, asked = [row[:3] for row in self.c["claims"]["measures"]], []
        for name, *rest in rule.guards:
            asked += network if name == "capacity" else [[name, rest[0], float(rest[1])]] if rest[0] in ("<=", ">=") else []
        return [condition for i, condition in enumerate(asked) if condition not in asked[:i]]
    def judged(self):
        """What was asked of each neural step: by itself, at its place in the original."""
        steps = [(f"step {i} by itself", s, s["judged"], place) for i, (s, place) in enumerate(zip(self.c["steps"], self.places), 1) if s["neural"]]
        for of, step, rows, place in steps:
            try:
                alone = Measured(self.mean(with_part(self.first, place, self.apply(step, part_at(self.first, place)))))
            except Refused as e:    # the rule applies only after others: the verdict about the whole network counts
                require(rows is None, f"{of} is no network: {e}")
                continue
            require(rows and [row[:3] for row in rows] == self.asked(self.book[step["rule"]]), f"{of} was asked something else: its evidence differs")
            self.hold(rows, alone, of)
        return f"the evidence of {len(steps)} neural steps"
