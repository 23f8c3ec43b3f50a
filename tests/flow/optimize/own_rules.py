"""When a rule is taken out of a user's own rule file, its effect is gone from the run: tiles, vectors, fusion, a neural rule, threads of a GPU."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

LOOPEGG = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite")


def forms(text):
    """The top-level forms of a rule file, as text without comments."""
    text = "\n".join(line.split(";")[0] for line in text.splitlines())
    depth, begin = 0, 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
            begin = i if depth == 1 else begin
        elif c == ")":
            depth -= 1
            if depth == 0:
                yield text[begin:i + 1]


def without_rules(form, names):
    """A ruleset without the rules of these names."""
    head = form[:form.index("(rule ")] if "(rule " in form else form
    rules = [r for r in forms(form[len(head):-1]) if r.split()[1] not in names]
    return head + "\n".join(rules) + ")" if rules else None


def own(name, files, phases, leave_out=()):
    """Writes a file with the rulesets of shipped files, without some rules. No phase names a set that has no rules left."""
    sets = {}
    for file in files:
        for form in forms((ROOT / "rules" / f"{file}.rules").read_text()):
            if form.startswith("(ruleset "):
                sets[form.split()[1]] = without_rules(form, leave_out)
    text = "(language nest)\n" + "\n".join(s for s in sets.values() if s) + "\n"
    for phase, (names, limits) in phases.items():
        left = [n for n in names if sets[n]]
        text += f"(phase {phase} :rules {' '.join(left)} {limits})\n" if left else ""
    path = pathlib.Path(FOLDER.name) / f"{name}.rules"
    path.write_text(text)
    return path


CPU = {"networks": (["networks", "widths"], ":iterations 60 :nodes 20000 :when (expected-loss <= 3.3)"),
       "schedule": (["registers", "sweeps"], ":iterations 1 :nodes 60000"),
       "refine": (["vectors", "one-core"], ":iterations 1 :nodes 80000"),
       "fuse": (["fusion-of-sites", "folding"], ":iterations 12 :nodes 10000")}
GPU = {"schedule": (["gpu-blocks"], ":iterations 1 :nodes 60000")}


def run(name, rules, *more, model=ROOT / "examples/tiny-residual.json"):
    out = f"{FOLDER.name}/{name}"
    r = subprocess.run([LOOPEGG, "optimize", str(model), "--class", "all", "--tune-seconds", "10", "--trials", "1", "--rules", str(rules),
                        "--out", out, "--json", *more], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, timeout=300)
    assert r.returncode == 0, r.stderr
    result = json.loads(r.stdout)
    network = json.loads(pathlib.Path(out, "network.json").read_text())
    return {"nests": [n["nest"] for n in network["kernels"].values()] if isinstance(network["kernels"], dict) else [n["nest"] for n in network["kernels"]],
            "fused": [f for step in network["steps"] for f in step.get("fused", [])], "fired": result["rules_fired"]}


def cpu(name, *leave_out, **more):
    return run(name, own(name, ["networks", "tune-cpu", "fusion"], CPU, leave_out), **more)


def sums(answer):
    return [n for n in answer["nests"] if "(conv2d " in n or "(linear " in n]


def whole():
    if not hasattr(whole, "answer"):
        whole.answer = cpu("whole")
    return whole.answer


def with_all_rules_there_are_tiles_vectors_fused_nests_and_variants():
    answer = whole()
    assert any("(quo " in n for n in sums(answer)) and any("(vec " in n for n in sums(answer)), answer["nests"]
    assert any(f.startswith("fuse-activation ") for f in answer["fused"]) and "fold-scale" in answer["fused"], answer["fused"]
    assert answer["fired"]["narrow-stream"] > 0, answer["fired"]


def without_rules_that_tile_loops_stay_whole():
    answer = cpu("untiled", "tile-registers", "share-rows", "share-weights", "share-channels")
    assert sums(answer) and not any("(quo " in n or "(rem " in n for n in sums(answer)), answer["nests"]


def without_the_rule_that_makes_vectors_there_are_none():
    product = pathlib.Path(FOLDER.name) / "product.json"   # tiles without vectors are long programs: one of a window takes minutes to compile
    product.write_text(json.dumps({"loopegg": 1, "name": "product", "inputs": [{"name": "x", "shape": [8, 32], "dtype": "float32"}],
                                   "nodes": [{"name": "fc", "op": "linear", "inputs": ["x"], "attrs": {"out_features": 32}}], "outputs": ["fc"]}))
    assert any("(vec " in n for n in cpu("vectors", model=product)["nests"])
    answer = cpu("scalar", "vectorize-loop", "sweep-rows", model=product)
    assert answer["nests"] and not any("vec" in n for n in answer["nests"]), answer["nests"]


def without_a_rule_that_fuses_sites_stay_apart():
    answer = cpu("apart", "fuse-activation", "fuse-activation-restored")
    assert not any("fuse-activation" in f for f in answer["fused"]) and any("(map relu " in n for n in answer["nests"]), answer


def without_a_neural_rule_there_are_none_of_its_variants():
    answer = cpu("unnarrowed", "narrow-stream")
    assert "narrow-stream" not in answer["fired"] and answer["fired"]["drop-branch"] > 0, answer["fired"]


def without_a_rule_that_binds_threads_they_are_bound_by_the_others_alone():
    def gpu(name, *leave_out):
        return sums(run(name, own(name, ["structure", "tune-gpu"], GPU, leave_out), "--target", "nano"))

    assert any("(shared " in n for n in gpu("threads")), "no tile in shared memory"
    plain = gpu("plain", "block-shared", "block-vthreads", "split-sums")
    assert plain and all("threadIdx" in n and "(shared " not in n for n in plain), plain


run_cases([with_all_rules_there_are_tiles_vectors_fused_nests_and_variants, without_rules_that_tile_loops_stay_whole, without_the_rule_that_makes_vectors_there_are_none,
           without_a_rule_that_fuses_sites_stay_apart, without_a_neural_rule_there_are_none_of_its_variants,
           without_a_rule_that_binds_threads_they_are_bound_by_the_others_alone])
