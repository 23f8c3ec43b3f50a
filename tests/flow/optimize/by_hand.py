"""'loopegg try' as a person types it: rules at a layer, what the guard and the clock say of them, and what a rule that does not match is answered with."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

LOOPEGG = sys.argv[1]
MODEL = str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "tiny-plain.json")
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite")
FEW = ["--trials", "1", "--tune-seconds", "5"]


def run(*words):
    return subprocess.run([LOOPEGG, "try", MODEL, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, timeout=300)


def tried(*words):
    r = run(*words, *FEW, "--json")
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def at(site, *rules):
    return ["--site", site, *(w for rule in rules for w in ("--apply", rule))]


def a_grouped_layer_is_judged_tuned_and_timed():
    a = tried(*at("conv2", "group-axes a=co b=ci g=4"))
    layer, = a["layers"]
    assert layer["sites"] == ["conv2"] and layer["sequence"] == "group" and layer["macs"] * 4 == layer["original_macs"], layer
    assert a["original"]["macs"] - a["variant"]["macs"] == layer["original_macs"] - layer["macs"], a
    assert all(layer[k]["measured"] and layer[k]["median_ms"] > 0 and layer[k]["n"] > 1 for k in ("original_latency", "latency")), layer
    assert abs(layer["speedup"] - layer["original_latency"]["median_ms"] / layer["latency"]["median_ms"]) < 1e-9, layer
    assert [m["measure"] for m in a["guard"]["measures"]] == ["expected-loss"] and a["guard"]["loss"]["low"] <= a["guard"]["loss"]["points"] <= a["guard"]["loss"]["high"], a["guard"]


def sequences_of_the_paper_are_told_by_their_steps():
    cut = "cut-domain a=co k=8"
    for name, rules in {"S1": ["group-axes a=(quo oh 2) b=ci g=2"], "S2": [cut, "group-second-part a=co b=ci g=2"],
                        "S3": [cut, "group-first-part a=co b=ci g=2", "group-second-part a=co b=ci g=4"]}.items():
        layer, = tried("--unjudged", *at("conv2", *rules))["layers"]
        assert layer["sequence"] == name, layer


def a_plan_says_the_same_as_rules_that_are_typed():
    typed = tried("--unjudged", *at("conv*", "bottleneck-axis a=kh k=3"))
    plan = pathlib.Path(FOLDER.name, "plan.json")
    plan.write_text(json.dumps(typed["plan"]))
    planned = tried("--unjudged", "--plan", str(plan))
    assert [(l["sites"], l["macs"], l["nest_after"].keys()) for l in planned["layers"]] == [(l["sites"], l["macs"], l["nest_after"].keys()) for l in typed["layers"]]
    assert [l["sites"] for l in typed["layers"]] == [["conv1"], ["conv2"]] and planned["guard"] is None


def channels_that_a_convolution_restores_belong_to_their_layer():
    layer, = tried("--unjudged", *at("conv1", "bottleneck-output k=2 restore=pointwise"))["layers"]
    assert set(layer["nest_after"]) == {"conv1", "conv1.restore"} and set(layer["nest_before"]) == {"conv1"}, layer


def what_does_not_match_is_answered_with_what_does():
    r = run(*at("conv2", "group-axes a=co b=ci g=3"))
    assert r.returncode == 1 and "--apply:1:1" in r.stderr and "divides" in r.stderr, r.stderr
    offered = [line.strip() for line in r.stderr.split("what matches conv2")[1].splitlines()[1:] if "=" in line]
    assert any(line.startswith("group-axes a=co b=ci g=2|4|8") for line in offered), offered
    name, *values = offered[0].split()   # what is offered is accepted
    first = " ".join([name, *(v.split("|")[0] for v in values)])
    assert run(*at("conv2", first), "--unjudged", *FEW, "--quiet").returncode == 0, first


def mistakes_have_their_place_and_exit_code():
    for words, code, saying in [(["--site", "conv2"], 2, "--apply RULE"), (at("conv9", "drop-branch"), 1, "conv"), (at("conv2", "group-axis a=co"), 1, "group-axes"),
                                (at("conv2", "group-axes a=co b=ci h=2"), 1, "expected ?a, ?b, ?g"), (at("conv2", "group-axes a=co b"), 1, "--apply:1:17"),
                                ([*at("conv2", "drop-branch"), "--plan", "p.json"], 2, "--plan"), (at("conv2", "group-second-part a=co b=ci g=2"), 1, "cut-domain")]:
        r = run(*words)
        assert r.returncode == code and saying in r.stderr and r.stdout == "", (words, r)


run_cases([a_grouped_layer_is_judged_tuned_and_timed, sequences_of_the_paper_are_told_by_their_steps, a_plan_says_the_same_as_rules_that_are_typed,
           channels_that_a_convolution_restores_belong_to_their_layer, what_does_not_match_is_answered_with_what_does, mistakes_have_their_place_and_exit_code])
