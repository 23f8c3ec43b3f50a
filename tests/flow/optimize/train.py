"""Search, train, learn: 'optimize --train' with trainers whose accuracies are known functions of the network."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import expect_certified, run_cases

LOOPEGG = sys.argv[1]
SOURCE = pathlib.Path(__file__).resolve().parents[3]
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
ENVIRONMENT = dict(os.environ, LOOPEGG=LOOPEGG, LOOPEGG_STORE=f"{FOLDER}/latency.sqlite", LOOPEGG_EVIDENCE=f"{FOLDER}/evidence.sqlite")
TARGET = "i7" if os.uname().machine == "aarch64" else "a57"     # another kind of machine: its times are estimates, the same in every run

# A small ResNet whose blocks can be narrowed and left out.
def block(name, x, channels):
    conv = {"op": "conv2d", "attrs": {"out_channels": channels, "kernel": [3, 3], "padding": [1, 1], "bias": False}}
    return [dict(conv, name=f"{name}.conv1", inputs=[x]), {"name": f"{name}.bn1", "op": "batch_norm", "inputs": [f"{name}.conv1"]},
            {"name": f"{name}.relu1", "op": "relu", "inputs": [f"{name}.bn1"]}, dict(conv, name=f"{name}.conv2", inputs=[f"{name}.relu1"]),
            {"name": f"{name}.bn2", "op": "batch_norm", "inputs": [f"{name}.conv2"]}, {"name": f"{name}.sum", "op": "add", "inputs": [f"{name}.bn2", x]},
            {"name": f"{name}.relu2", "op": "relu", "inputs": [f"{name}.sum"]}]


def resnet():
    stem = [{"name": "stem", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 32, "kernel": [3, 3], "padding": [1, 1], "bias": False}},
            {"name": "stem.bn", "op": "batch_norm", "inputs": ["stem"]}, {"name": "stem.relu", "op": "relu", "inputs": ["stem.bn"]}]
    nodes, x = stem, "stem.relu"
    for i in range(4):
        nodes += block(f"block{i}", x, 32)
        x = f"block{i}.relu2"
    nodes += [{"name": "pool", "op": "global_avg_pool", "inputs": [x]}, {"name": "flat", "op": "flatten", "inputs": ["pool"]},
              {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"out_features": 10}}]
    return {"loopegg": 1, "name": "four-blocks", "inputs": [{"name": "x", "shape": [1, 3, 32, 32], "dtype": "float32"}], "nodes": nodes, "outputs": ["fc"]}


MODEL = FOLDER / "four-blocks.json"
MODEL.write_text(json.dumps(resnet()))

# Trainers whose accuracies are known functions: what was predicted, or the work that is left and what is punished besides.
TRAINER = FOLDER / "trainer.py"
TRAINER.write_text(f"""
import json, math, os, pathlib, sys

def work_of(model):
    channels, work = {{"x": 3}}, 0
    for node in model["nodes"]:
        channels[node["name"]] = channels[node["inputs"][0]]
        if node["op"] == "conv2d":
            channels[node["name"]] = node["attrs"]["out_channels"]
            work += channels[node["inputs"][0]] * channels[node["name"]]
    return work

def lost_by(model, how):
    gone = 4 - sum(n["op"] == "add" for n in model["nodes"])
    narrower = any(n["op"] == "conv2d" and n["attrs"]["out_channels"] < 32 for n in model["nodes"])
    punished = {{"dropping": 5 * gone, "narrowing": 5 * narrower}}[how]
    return punished + math.log(work_of(json.loads(pathlib.Path({str(MODEL)!r}).read_text())) / work_of(model))

if __name__ == "__main__":
    folder, how = pathlib.Path(sys.argv[1]), sys.argv[2]
    with open({str(FOLDER / "calls")!r}, "a") as calls:
        print(folder.parent.name, os.environ["LOOPEGG_SEED"], file=calls)
    lost = json.loads((folder.parent / "network.json").read_text())["predicted"]["points"] if how == "agrees" else lost_by(json.loads((folder / "model.json").read_text()), how)
    print(json.dumps({{"accuracy": 90 - lost}}))
""")
sys.path.insert(0, str(FOLDER))
from trainer import lost_by   # noqa: E402


def command(how):
    return f"{sys.executable} {TRAINER} {{}} {how}"


def run(*words, **more):
    return subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, timeout=600, **more)


def words_for(out, *more):
    return ["optimize", MODEL, "--target", TARGET, "--tune-seconds", "8", "--trials", "1", "--min-speedup", "2", "--max-loss", "9", "--out", FOLDER / out, *more]


def optimize(out, *more):
    r = run(*words_for(out, *more), "--json")
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def a_trainer_that_agrees_changes_nothing():
    plain = optimize("plain")
    trained = optimize("agrees", "--train", command("agrees"), "--train-budget", "6", "--train-jobs", "2")
    t = trained["training"]
    assert t["runs"] == 6 and not t["failures"] and t["original"]["accuracies"] == [90], t
    assert abs(t["returned"]["lost"] - t["returned"]["predicted"]["points"]) < 1e-3, t
    assert t["returned"]["low"] < t["returned"]["accuracy"] < t["returned"]["high"], t
    known = {n["finalist"]: n for n in plain["networks"]}
    best = trained["networks"][[n["chosen"] for n in trained["networks"]].index(True)]
    expected = next(n for n in known.values() if n["chosen"])
    assert best["loss"]["points"] <= expected["loss"]["points"] + 1e-3, (best["loss"], expected["loss"])
    if best["plan"] != expected["plan"]:     # then the longer search has found another network, which was not worse in time either
        assert best["plan"] not in [n["plan"] for n in known.values()] and best["latency_ms"] <= expected["baseline_ms"] / 2 * 1.02, (best, expected)
    lines = [json.loads(line) for line in (FOLDER / "agrees/trainings.jsonl").read_text().splitlines()]
    assert len(lines) == 6 and all(line["accuracy"] <= 90 for line in lines), lines
    checked = run("explain", FOLDER / "agrees", "--check", "--recheck", MODEL)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    expect_certified(str(FOLDER / "agrees"), 2)     # what trainings taught is no formula
    r = run("optimize", MODEL, "--trainings", FOLDER / "agrees/trainings.jsonl", "--target", TARGET, "--trials", "1", "--tune-seconds", "5", "--max-loss", "9", "--out", FOLDER / "taught")
    assert r.returncode == 0, r.stderr


def the_answer_follows_what_a_trainer_punishes():
    plain = FOLDER / "plain"
    if not plain.exists():
        optimize("plain")
    for punished in ("dropping", "narrowing"):
        r = optimize(punished, "--train", command(punished), "--train-budget", "14", "--train-jobs", "3")
        returned = r["training"]["returned"]
        lost = [n["lost"] for n in r["networks"] if "lost" in n and n["latency_ms"] <= n["baseline_ms"] / 2]
        assert returned and abs(returned["lost"] - min(lost)) < 1e-6, (returned, lost)     # the one that trained best within the limit
        assert abs(returned["lost"] - lost_by(json.loads((FOLDER / punished / "model.json").read_text()), punished)) < 1e-6, returned
        untaught = lost_by(json.loads((plain / "model.json").read_text()), punished)
        assert returned["lost"] <= untaught + 1e-6, (punished, returned, untaught)
        if punished == "dropping":
            assert not any(site["sequence"] == "dropped" for site in r["sites"]), r["sites"]
        assert max(len(n.get("accuracies", [])) for n in r["networks"]) <= 2, r["networks"]     # most runs are of other networks


def what_failed_costs_one_network_and_is_reported():
    failing = f"case {{}} in *front-1/*) echo 'error: out of memory' >&2; exit 1;; *) {command('agrees')};; esac"
    r = run(*words_for("failing", "--train", failing, "--train-budget", "4"))
    assert r.returncode == 0, r.stderr
    failures = json.loads((FOLDER / "failing/result.json").read_text())["training"]["failures"]
    assert failures in ([], [{"name": "front-1", "seed": 1, "why": "error: out of memory"}]), failures
    assert not failures or "the training of front-1 failed: error: out of memory" in r.stderr, r.stderr
    assert " points lost, " in r.stdout and "had been predicted" in r.stdout, r.stdout


def a_trainer_that_answers_nothing_ends_the_run_at_once():
    r = run(*words_for("silent", "--train", "echo training {}", "--train-budget", "4"))
    assert r.returncode == 1 and "the original could not be trained" in r.stderr and '{"accuracy": 91.4}' in r.stderr, r.stderr
    for more, says in ((["--train", "true"], "expected a command with {} in it"), (["--train-budget", "4"], "expected a command that trains"),
                       (["--train", "true {}", "--trainings", "x.jsonl"], "give only one of them"), (["--train", "true {}", "--rules", "paper"], "no condition in")):
        r = run("optimize", MODEL, "--target", TARGET, "--out", FOLDER / "none", *more)
        assert r.returncode == 2 and says in r.stderr, r.stderr


def a_killed_run_loses_only_what_was_in_flight():
    calls, words = FOLDER / "calls", words_for("killed", "--train", f"sleep 1; {command('agrees')}", "--train-budget", "5", "--train-jobs", "2")
    calls.write_text("")
    process = subprocess.Popen([LOOPEGG, *map(str, words)], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list((FOLDER / "killed").rglob("outcome.json"))) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    ended = len(list((FOLDER / "killed").rglob("outcome.json")))
    assert ended >= 2, "the run ended before it could be killed"
    r = run(*words, "--json")
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout)["training"]["runs"] == 5 and json.loads(r.stdout)["training"]["returned"], r.stdout
    lines = calls.read_text().split("\n")[:-1]
    assert 5 <= len(lines) <= 5 + 2, lines     # two were in flight
    again = run(*words, "--json")              # a run that is done trains nothing
    assert again.returncode == 0 and calls.read_text().split("\n")[:-1] == lines, again.stderr
    assert json.loads(again.stdout)["training"]["returned"]["accuracies"] == json.loads(r.stdout)["training"]["returned"]["accuracies"]
    r = run(*words_for("killed", "--train", "true {}", "--train-budget", "5"))
    assert r.returncode == 1 and "their accuracies cannot be compared" in r.stderr, r.stderr


run_cases([a_trainer_that_agrees_changes_nothing, the_answer_follows_what_a_trainer_punishes, what_failed_costs_one_network_and_is_reported,
           a_trainer_that_answers_nothing_ends_the_run_at_once, a_killed_run_loses_only_what_was_in_flight])
