"""Edits of certificates, and of the files that they are about, each of which claims what does not hold. Hashes are made to fit after each edit but those of hashes."""
import copy
import json
import random
import re

from recorded import sha256

OPERATORS = {"row": "stream", "stream": "row", "none": "same", "add": "concat", "concat": "add", "write": "read", "read": "write", "lack": "write", "each": "opaque",
             "layer": "each", "nest": "site", "at": "par", "join": "row", "tangle": "join", "conv2d": "linear", "linear": "matmul", "same": "none", "within": "read"}


def other_number(draw, value):
    return draw.choice([v for v in (value + 1, value - 1, value * 2, 0, -value, value + 8) if v != value])


def in_text(draw, text, pattern, change):
    """The text with one match of the pattern changed; None where there is no match."""
    places = [m for m in re.finditer(pattern, text)]
    if not places:
        return None
    m = draw.choice(places)
    return text[:m.start()] + change(m) + text[m.end():]


def edited_term(draw, text):
    """Another term: an operator, a number, a name, or brackets."""
    kind = draw.randrange(4)
    if kind == 0:
        return in_text(draw, text, r"(?<=\()(?:" + "|".join(OPERATORS) + r")(?= )", lambda m: OPERATORS[m[0]])
    if kind == 1:
        return in_text(draw, text, r"(?<=[ :])\d+(?=[ )])", lambda m: str(other_number(draw, int(m[0]))))
    if kind == 2:
        return in_text(draw, text, r"@[\w.]+", lambda m: m[0] + "x")
    return in_text(draw, text, r"[()]", lambda m: "")


def edited_rule(draw, text):
    """A rule that says something else: a number, a function, a condition, or a variable."""
    kind = draw.randrange(4)
    if kind == 0:
        return in_text(draw, text, r" \((?:fresh|channelwise|narrowable|whole|computes|separate|free|changeable|divides)[^()]*(?:\([^()]*\)[^()]*)*\)(?=[ )])", lambda m: "")
    if kind == 1:
        return in_text(draw, text, r"\?[a-z]", lambda m: "?z")
    if kind == 2:
        return in_text(draw, text, r"(?<=\()(?:write|read|lack|within|none|row|join|channels|absent|floor-div|-|\+|shares)(?= )", lambda m: "same")
    return in_text(draw, text, r"=>|~>", lambda m: "~>" if m[0] == "=>" else "=>")


def edit_terms(draw, files):
    which = draw.choice(["original", "final"])
    c = files["certificate.json"]
    c[which] = edited_term(draw, c[which])
    return c[which] is not None and f"{which} term"


def edit_rules(draw, files):
    rules = files["certificate.json"]["rules"]
    row = rules[draw.choice(sorted(rules))]
    text = edited_rule(draw, row["text"])
    row.update(text=text, sha256=sha256((text or "").encode()))
    return text is not None and "text of a rule"


def edit_step(draw, files):
    c = files["certificate.json"]
    i = draw.randrange(len(c["steps"]))
    step = c["steps"][i]
    kind = draw.choice(["rule", "neural", "at", "gone", "twice", "key"] + ["with"] * 3 * ("with" in step))
    if kind == "rule":
        step["rule"] = draw.choice(sorted(set(c["rules"]) - {step["rule"]}))
    elif kind == "neural":
        step["neural"] = not step["neural"]
    elif kind == "at":
        step["at"] = draw.choice([step["at"] + [0], step["at"] + [1], step["at"][:-1] + [7], [-1] + step["at"], [1 - j if j < 2 else j for j in step["at"]] or [0]])
    elif kind == "gone":
        del c["steps"][i]
    elif kind == "twice":
        c["steps"].insert(i, copy.deepcopy(step))
    elif kind == "key":
        step["more"] = 1
    else:
        width = int(step["with"]["?w"])
        step["with"] = draw.choice([{"?w": str(other_number(draw, width))}, {"?v": str(width)}, {}, {"?w": "(+ 1 1)"}, {"?w": str(width), "?x": "same"}])
    return f"{kind} of a step"


def edit_verdict(draw, files):
    steps = [s for s in files["certificate.json"]["steps"] if s["neural"]]
    step = draw.choice(steps)
    rows = step["judged"]
    kind = draw.choice(["column", "gone", "none", "more"] if rows else ["gone", "more"])
    if kind == "column":
        column = draw.randrange(4)
        rows[0][column] = draw.choice([["params", "expected", None], [">=", "<", ""], [rows[0][2] + 1, None, "1"], [rows[0][3] * 0.9 + 0.01, None, "0.1", -1]][column])
        kind = f"column {column}"
    elif kind == "gone":
        del step["judged"]
    elif kind == "none":
        step["judged"] = draw.choice([None, []])
    else:
        step["judged"] = [*(rows or []), ["macs", "<=", 1, 0.5]]
    return f"verdict: {kind}"


def edit_measures(draw, claims, result):
    """The conditions of the whole network. A threshold that it meets, too, would be another run's setting and no wrong claim."""
    kind, row, shown = draw.choice(["value", "threshold", "comparison", "gone", "more"]), claims["measures"][0], result["guard"]["measures"][0]
    if kind in ("gone", "more"):
        claims["measures"] = [] if kind == "gone" else [row, ["macs", "<=", 1e-9, 0.5]]
        if draw.random() < 0.7:
            result["guard"]["measures"] = [dict(zip(("measure", "comparison", "threshold", "value"), r)) for r in claims["measures"]]
        return f"measures {kind}"
    column = {"value": 3, "threshold": 2, "comparison": 1}[kind]
    row[column] = {"value": row[3] * 0.9 + 0.01, "threshold": row[3] * 0.9, "comparison": ">="}[kind]
    if draw.random() < 0.7:
        shown[kind] = row[column]
    return f"measures {kind}"


def edit_claims(draw, files):
    claims, result = files["certificate.json"]["claims"], files["result.json"]
    where = draw.choice(["original", "returned", "loss", "measures"])
    if where == "measures":
        return edit_measures(draw, claims, result)
    key = draw.choice(sorted(claims[where]))
    old = claims[where][key]
    new = old + "x" if isinstance(old, str) else draw.choice([old * 0.99, old + 1, -old - 1, 0, None, str(old)])
    claims[where][key] = new
    if draw.random() < 0.7:     # result.json says the same
        row = {"original": result["original"], "returned": result["optimized"], "loss": result["guard"]["loss"]}[where]
        row[key] = new
    return f"claim {where} {key}"


def edit_hashes(draw, files):
    hashes = files["certificate.json"]["files"]
    name = draw.choice(sorted(hashes))
    kind = draw.choice(["digit", "gone", "more", "upper"])
    if kind == "digit":
        hashes[name] = in_text(draw, hashes[name], "[0-9a-f]", lambda m: "0" if m[0] != "0" else "1")
    elif kind == "gone":
        del hashes[name]
    elif kind == "upper":
        hashes[name] = hashes[name][:-1]
    else:
        hashes[draw.choice(["../model.json", "result.json", "no-such-file"])] = hashes[name]
    return f"hash: {kind}"


def edit_header(draw, files):
    c = files["certificate.json"]
    key = draw.choice(sorted(c))
    if draw.random() < 0.5:
        del c[key]
    elif key == "channels_multiple":
        c[key] = 1009
    else:
        c[key] = draw.choice([None, [], 2, "x", {}])
    return f"{key} of the certificate"


def edit_network(draw, files):
    """The returned or the original network: a width, a window, a node, an edge, its outputs."""
    which = draw.choice(["model.json", "original.json"])
    j = files[which]
    node = draw.choice(j["nodes"])
    kind = draw.choice(["attribute", "gone", "edge", "name", "op", "outputs", "shape", "domain"])
    if kind == "attribute":
        attrs = [(k, v) for k, v in node.get("attrs", {}).items() if not isinstance(v, str)]
        if not attrs:
            return False
        key, value = draw.choice(attrs)
        node["attrs"][key] = not value if isinstance(value, bool) else [v + 1 for v in value] if isinstance(value, list) else value + 1
    elif kind == "gone":
        j["nodes"].remove(node)
    elif kind == "edge":
        if not node["inputs"]:
            return False
        node["inputs"] = [draw.choice([i for i in ["nowhere", "x", j["nodes"][0]["name"]] if i != node["inputs"][0]]), *node["inputs"][1:]]
    elif kind == "name":
        node["name"] += "y"
    elif kind == "op":
        node["op"] = "sqrt" if node["op"] != "sqrt" else "exp"
    elif kind == "outputs":
        j["outputs"] = [j["nodes"][0]["name"]]
    elif kind == "shape":
        j["inputs"][0]["shape"][-1] += 4
    else:
        node["domain"] = {"parts": []}
    return f"{kind} of {which}"


def edit_loops(draw, files):
    """The loops of a site: a size, an extent or a factor; a loop that is lost; a sum that runs at once; or the site runs another kernel, or none."""
    network, model = files["network.json"], files["model.json"]
    sites = {node["name"] for node in model["nodes"] if node["op"] in ("conv2d", "linear", "matmul")}
    step = draw.choice([step for step in network["steps"] if step["site"] in sites])
    kernel = network["kernels"][step["kernel"]]
    kind = draw.choice(["number", "number", "loop", "sum", "gone", "other"])
    if kind == "number":
        # a factor of a span is in both of its parts
        kernel["nest"] = in_text(draw, kernel["nest"], r"(?<=[a-z]:)\d+(?=[ )])", lambda m: str(other_number(draw, int(m[0]))))
    elif kind == "loop":
        kernel["nest"] = in_text(draw, kernel["nest"], r"\((?:at|par|vec|unroll) [^()]*", lambda m: "(stage O")
    elif kind == "sum":
        kernel["nest"] = in_text(draw, kernel["nest"], r"(?<=\()(?:at|unroll)(?= (?:ci|kh|kw|k):)", lambda m: draw.choice(["par", "vec"]))
    elif kind == "gone":
        network["steps"].remove(step)
    else:
        step["kernel"] = draw.choice([i for i, other in enumerate(network["kernels"]) if other["nest"].split("(at")[0] != kernel["nest"].split("(at")[0]] or [-1])
    return kernel["nest"] and f"{kind} of the loops"


def edit_errors(draw, files):
    """A site's bound, what it is made of, or an error beyond it, and mostly in result.json, too."""
    claimed, shown = files["certificate.json"]["claims"]["errors"], files["result.json"]["errors"]
    site, kind = draw.choice(sorted(claimed)), draw.choice(["terms", "roundings", "growth", "operands", "bound", "measured", "gone"])
    row = dict(claimed[site])
    if kind != "gone":
        row[kind] = {"growth": 2, "operands": draw.choice(["bf16", "tf32", "float64"]), "bound": row["bound"] * draw.choice([0.5, 2]),
                     "measured": row["bound"] * draw.choice([1.01, -1])}.get(kind) or row[kind] + draw.choice([-1, 1])
    for errors in (claimed, shown) if draw.random() < 0.7 else (claimed,):
        errors.pop(site) if kind == "gone" else errors.update({site: row})
    return f"{kind} of an error"


EDITS = {edit_terms: 16, edit_rules: 14, edit_step: 20, edit_verdict: 8, edit_claims: 12, edit_header: 8, edit_network: 16, edit_loops: 16, edit_errors: 10}


def mutants(files, seed):
    """(what was edited, the files)"""
    draw = random.Random(seed)
    for edit, count in EDITS.items():
        for _ in range(count):
            mutant = copy.deepcopy(files)
            what = edit(draw, mutant)
            if what and mutant != files and json.dumps(mutant) != json.dumps(files):
                yield what, mutant
