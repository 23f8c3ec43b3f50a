"""The engine as a person types it: 'rules', 'saturate' and 'extract', with the keys that programs build on and the files that are wrong."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

LOOPEGG = os.environ.get("LOOPEGG") or sys.argv[1]
SOURCE = pathlib.Path(os.environ.get("LOOPEGG_SOURCE") or pathlib.Path(__file__).resolve().parents[3])
MATH, TERMS = SOURCE / "rules/math.rules", SOURCE / "examples/math.terms"
HERE = pathlib.Path(tempfile.mkdtemp(prefix="loopegg-engine-"))
SATURATE_KEYS = {"stop", "seconds", "iterations", "peak_bytes", "best"}
EXTRACT_KEYS = {"method", "cost", "bound", "optimal", "seconds", "choice"}


def run(*words):
    return subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, cwd=HERE)


def answer(*words, code=0):
    r = run(*words, "--json")
    assert r.returncode == code, r
    return json.loads(r.stdout)   # one object, and nothing beside it


def refused(*words, saying, code=1):
    r = run(*words)
    assert r.returncode == code and r.stdout == "", (words, r)
    for text in saying:
        assert text in r.stderr, (text, r.stderr)


def file(name, text):
    (HERE / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return HERE / name


def egraph(name, nodes, roots):
    return file(name, {"nodes": {n: {"op": op, "children": children, "eclass": eclass, "cost": cost} for n, op, children, eclass, cost in nodes}, "root_eclasses": roots})


# Rules that come to an end.
SMALL = file("small.rules", "(rule add-commutes (+ ?a ?b) => (+ ?b ?a))\n(rule add-zero (+ ?a 0) => ?a)\n(rule mul-commutes (* ?a ?b) => (* ?b ?a))\n")


def rules_are_checked_with_every_mistake_in_its_place():
    good = answer("rules", "check", MATH)
    assert good["ok"] is True and good["rules"] == 24 and good["errors"] == [], good
    bad = file("bad.rules", "(rule one (+ ?a ?b) => (+ ?b ?c))\n(rule two (+ ?a 0) >= ?a)\n")
    found = answer("rules", "check", MATH, bad, code=1)
    assert found["ok"] is False and len(found["errors"]) == 2, found
    for e, line, rule in zip(found["errors"], (1, 2), ("one", "two")):
        assert {"file", "line", "column", "rule", "message"} <= set(e) and e["line"] == line and e["rule"] == rule and e["file"].endswith("bad.rules"), e
    r = run("rules", "check", bad)
    assert r.returncode == 1 and "bad.rules:1:" in r.stderr and "?c" in r.stderr and "^" in r.stderr, r
    refused("rules", "check", HERE / "none.rules", saying=["none.rules"])


def rules_are_listed():
    sets = answer("rules", "list", MATH)["sets"]
    assert [s["name"] for s in sets] == ["arithmetic", "calculus"] and sum(len(s["rules"]) for s in sets) == 24, sets
    assert {l["name"] for l in answer("rules", "list")["languages"]} >= {"nest"}
    assert "factor" in run("rules", "list", MATH).stdout


def saturating_says_how_far_it_came_and_why_it_stopped():
    a = answer("saturate", TERMS, "--rules", MATH, "--iterations", 4)
    assert SATURATE_KEYS <= set(a) and a["stop"] == "iterations" and len(a["iterations"]) == 4, a
    assert all({"nodes", "classes", "seconds"} <= set(i) for i in a["iterations"]) and a["peak_bytes"] > 0
    assert len(a["best"]) == 7 and all({"term", "cost"} <= set(b) for b in a["best"]), a["best"]
    assert a["iterations"][0]["nodes"] == 69 and a["iterations"][3]["nodes"] == 389, a["iterations"]   # as every engine counts them
    again = answer("saturate", TERMS, "--rules", MATH, "--iterations", 4, "--proofs")
    assert [i["nodes"] for i in again["iterations"]] == [i["nodes"] for i in a["iterations"]] and again["best"] == a["best"]
    small = answer("saturate", file("t.terms", "(+ x 0)\n"), "--rules", SMALL, "--scheduler", "backoff")
    assert small["stop"] == "saturated" and small["best"] == [{"term": "x", "cost": 1.0}], small
    assert answer("saturate", TERMS, "--rules", MATH, "--iterations", 50, "--nodes", 500)["stop"] == "nodes"
    assert answer("saturate", TERMS, "--rules", MATH, "--iterations", 50, "--nodes", 100000000, "--seconds", 0.2)["stop"] == "seconds"


def saturating_explains_an_equality():
    t = file("e.terms", "(* (+ x 0) 1)\n")
    steps = answer("saturate", t, "--rules", MATH, "--iterations", 3, "--explain", "(* (+ x 0) 1)", "x")["proof"]
    assert steps, steps
    r = run("saturate", t, "--rules", MATH, "--iterations", 3, "--explain", "(* (+ x 0) 1)", "x")
    assert r.returncode == 0 and "add-zero" in r.stdout and "mul-one" in r.stdout, r
    refused("saturate", t, "--rules", MATH, "--iterations", 3, "--explain", "x", "y", saying=["y"])


def an_egraph_goes_to_a_file_and_comes_back():
    out, dot = HERE / "g.json", HERE / "g.dot"
    t = file("r.terms", "(* y (+ x 0))\n")
    a = answer("saturate", t, "--rules", MATH, "--iterations", 3, "--out", out, "--dot", dot)
    written = json.loads(out.read_text())
    assert len(written["nodes"]) == a["iterations"][-1]["nodes"] and len(written["root_eclasses"]) == 1
    assert dot.read_text().startswith("digraph")
    for method in ("tree", "greedy-dag", "ilp"):
        e = answer("extract", out, "--method", method)
        assert EXTRACT_KEYS <= set(e) and e["method"] == method and e["cost"] == a["best"][0]["cost"] == 3, e
    # Read back as the start of another run, it holds the same, and nothing is left to find.
    whole = answer("saturate", t, "--rules", SMALL, "--out", out)
    again = answer("saturate", out, "--rules", SMALL)
    assert whole["stop"] == again["stop"] == "saturated" and again["best"] == whole["best"], (whole, again)
    assert again["iterations"][-1]["nodes"] == whole["iterations"][-1]["nodes"] and again["iterations"][-1]["classes"] == whole["iterations"][-1]["classes"]


def extraction_shares_and_never_answers_a_circle():
    shared = egraph("shared.json", [("r", "pair", ["a", "b"], "R", 0), ("a", "f", ["s"], "A", 1), ("a2", "x", [], "A", 4), ("b", "g", ["s"], "B", 1), ("b2", "y", [], "B", 4),
                                    ("s", "s", [], "S", 5)], ["R"])
    dag = answer("extract", shared, "--method", "ilp")
    assert dag["cost"] == 7 and dag["optimal"] is True and dag["bound"] == 7, dag   # a tree's costs, 8 against 12, would choose x and y
    assert dag["choice"] == {"R": "r", "A": "a", "B": "b", "S": "s"}, dag
    circle = egraph("circle.json", [("a", "f", ["b"], "A", 1), ("b", "g", ["a"], "B", 1), ("b2", "z", [], "B", 100)], ["A"])
    for method in ("tree", "greedy-dag", "ilp"):
        e = answer("extract", circle, "--method", method)
        assert e["cost"] == 101 and e["choice"]["B"] == "b2", e
    endless = egraph("endless.json", [("a", "f", ["b"], "A", 1), ("b", "g", ["a"], "B", 1)], ["A"])
    for method in ("tree", "greedy-dag", "ilp"):
        refused("extract", endless, "--method", method, saying=["A"])
    refused("saturate", endless, "--rules", MATH, saying=["endless.json"])
    two = egraph("two.json", [("a", "f", ["b"], "A", 1), ("c", "g", ["b"], "C", 1), ("b", "z", [], "B", 10)], ["A", "C"])
    assert answer("extract", two)["cost"] == 12


def wrong_egraphs_are_answered_with_the_place():
    node = [("a", "f", [], "A", 1)]
    refused("extract", egraph("root.json", node, ["AA"]), saying=["root.json:1:", "root 'AA' is no class of this e-graph", "did you mean 'A'"])
    refused("extract", egraph("child.json", [("a", "f", ["b"], "A", 1)], ["A"]), saying=["child 'b' is no node"])
    refused("extract", egraph("negative.json", [("a", "f", [], "A", -2)], ["A"]), saying=["a cost must not be negative, but this one is -2"])
    refused("extract", egraph("words.json", [("a", "f", [], "A", "cheap")], ["A"]), saying=["a cost must be a number that is not negative, not a string"])
    refused("extract", file("nan.json", '{"nodes": {"a": {"op": "f", "eclass": "A", "cost": NaN}}, "root_eclasses": ["A"]}'), saying=["nan.json:1:"])
    refused("extract", file("huge.json", '{"nodes": {"a": {"op": "f", "eclass": "A", "cost": 1e999}}, "root_eclasses": ["A"]}'), saying=["huge.json:1:"])
    refused("extract", file("rootless.json", '{"nodes": {"a": {"op": "f", "eclass": "A"}}, "root_eclasses": []}'), saying=["no root"])
    refused("extract", file("cut.json", '{"nodes": {"a": '), saying=["cut.json:1:"])
    refused("extract", HERE / "missing.json", saying=["missing.json"])
    refused("extract", HERE, saying=[str(HERE)])
    many = answer("extract", HERE / "negative.json", code=1)
    assert many["ok"] is False and many["errors"][0]["line"] == 1, many


def wrong_words_are_answered():
    refused("saturate", TERMS, "--rules", MATH, "--scheduler", "backof", code=2, saying=["did you mean 'backoff'"])
    refused("saturate", TERMS, "--rules", MATH, "--phase", "tune", saying=["the rules have no phase 'tune'"])
    refused("saturate", file("open.terms", "(+ x"), "--rules", MATH, saying=["open.terms:1:"])
    refused("extract", HERE / "two.json", "--method", "ilq", code=2, saying=["did you mean 'ilp'"])
    refused("extract", HERE / "two.json", "--seconds", 0, code=2, saying=["--seconds must be a number above 0"])
    contradiction = file("c.rules", "(rule zero (f ?a) => 0)\n(rule one (f ?a) => 1)\n")
    refused("saturate", file("c.terms", "(f x)\n"), "--rules", contradiction, saying=["zero at root", "one at root", "two different numbers, 0 and 1"])


def every_shipped_rule_over_nests_is_used_by_a_phase_of_a_command():
    for path in sorted((SOURCE / "rules").glob("*.rules")):
        listed = answer("rules", "list", path)
        for s in listed["sets"]:
            if listed["language"] == "nest":
                assert any(use["commands"] for use in s["used_by"]), f"no command uses the set '{s['name']}' of {path.name}"
        for phase in listed["phases"]:
            assert phase["commands"], f"no command uses the phase '{phase['name']}' of {path.name}"
    structure = answer("rules", "list", SOURCE / "rules/structure.rules")["sets"][0]
    assert {"file": "discover.rules", "phase": "sites", "commands": ["saturate"]} in structure["used_by"], structure["used_by"]
    own = file("own.rules", '(language nest)\n(ruleset mine (rule swap (at ?a (at ?b ?s)) => (at ?b (at ?a ?s)) :when (permutable ?a ?b)))\n(phase grow :rules mine)\n')
    assert answer("rules", "list", own)["sets"][0]["used_by"] == [{"file": None, "phase": "grow", "commands": []}]
    assert "mine, in grow (no command)" in run("rules", "list", own).stdout


def a_phase_goes_before_that_of_an_included_file():
    inner = file("inner.rules", "(ruleset one (rule swap (f ?a ?b) => (f ?b ?a)))\n(phase grow :rules one :iterations 3)\n(phase rest :rules one)\n")
    for form in ['(include "inner.rules")\n(phase grow :rules two one)\n', '(phase grow :rules two one)\n(include "inner.rules")\n']:
        outer = file("outer.rules", form + "(ruleset two (rule twice (g ?a) => (f ?a ?a)))\n")
        phases = {p["name"]: p["sets"] for p in answer("rules", "list", outer)["phases"]}
        assert phases == {"grow": ["two", "one"], "rest": ["one"]}, phases
    refused("rules", "list", file("both.rules", "(phase grow :rules one)\n(phase grow :rules one)\n(include \"inner.rules\")\n"), saying=["is there already"])


CASES = [rules_are_checked_with_every_mistake_in_its_place, rules_are_listed, every_shipped_rule_over_nests_is_used_by_a_phase_of_a_command,
         a_phase_goes_before_that_of_an_included_file, saturating_says_how_far_it_came_and_why_it_stopped, saturating_explains_an_equality,
         an_egraph_goes_to_a_file_and_comes_back, extraction_shares_and_never_answers_a_circle, wrong_egraphs_are_answered_with_the_place, wrong_words_are_answered]
run_cases(CASES)
