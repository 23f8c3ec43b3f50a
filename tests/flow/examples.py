"""Checks and runs what examples/ holds: rule files, plans of a batch, a user's own target, programs that use the engine or a compiled network."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import run_cases

LOOPEGG, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
EXAMPLES = SOURCE / "examples"
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite")


def run(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=dict(ENVIRONMENT, **more), timeout=300, cwd=FOLDER.name)
    assert done.returncode == 0, f"{words}: {done.stdout[-500:]}{done.stderr[-800:]}"
    return done.stdout


def rule_files_are_sound():
    for file in sorted(EXAMPLES.glob("*.rules")):
        assert json.loads(run(LOOPEGG, "rules", "check", file, "--json"))["ok"], file


def a_neural_rule_and_a_guard_of_ones_own_are_used():
    r = json.loads(run(LOOPEGG, "optimize", EXAMPLES / "tiny-residual.json", "--rules", EXAMPLES / "group-large.rules", "--tune-seconds", 10, "--trials", 2, "--max-loss", 20, "--out", "ruled", "--json"))
    assert r["rules_fired"]["group-large-axes"] > 0 and r["configurations"] > 0, r["rules_fired"]
    sites = {s["name"]: s for s in r["sites"]}
    assert sites["conv1"]["sequence"] == "dense", "three input channels are fewer than the guard of the rule allows"


def models_are_read():
    for file in sorted(EXAMPLES.glob("*.json")):
        if "batch" not in file.name:
            assert json.loads(run(LOOPEGG, "show", file, "--json"))["sites"], file


def a_target_of_ones_own_compiles():
    done = json.loads(run(LOOPEGG, "compile", EXAMPLES / "tiny-residual.json", "--target", "atom", "--out", "atom", "--json", LOOPEGG_TARGETS=str(EXAMPLES / "targets")))
    assert done["target"] == "atom" and (pathlib.Path(FOLDER.name) / "atom" / "network.json").exists()


def batch_files_make_their_jobs():
    assert len(json.loads(run(LOOPEGG, "batch", EXAMPLES / "batch.json", "--out", "b", "--dry-run", "--json"))["jobs"]) == 4
    assert len(json.loads(run(LOOPEGG, "batch", EXAMPLES / "batch-tiny.json", "--out", "b", "--dry-run", "--json"))["jobs"]) == 12


def a_network_for_another_machine_is_refused_with_what_to_do():
    run(LOOPEGG, "compile", EXAMPLES / "tiny-residual.json", "--target", "a57" if os.uname().machine == "x86_64" else "i7", "--out", "foreign")
    done = subprocess.run([LOOPEGG, "run", "foreign"], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, cwd=FOLDER.name)
    assert done.returncode == 1 and "was compiled for" in done.stderr and "loopegg compile MODEL" in done.stderr, done.stderr


def a_compiled_network_runs_from_python_and_from_cpp():
    run(LOOPEGG, "compile", EXAMPLES / "tiny-residual.json", "--out", "compiled")
    python = run("python3", EXAMPLES / "run_network.py", "compiled")
    assert len(python.split()) == 10
    run("c++", "-std=c++20", "-O1", EXAMPLES / "run_network.cpp", "-I", "compiled", "-o", "program", "compiled/network.so", f"-Wl,-rpath,{FOLDER.name}/compiled")
    assert run("./program", "compiled/weights.bin") == python or len(run("./program", "compiled/weights.bin").split()) == 10
    run("cc", "-O1", EXAMPLES / "run_network.c", "-I", "compiled", "-o", "program_c", "compiled/network.so", f"-Wl,-rpath,{FOLDER.name}/compiled")
    assert run("./program_c", "compiled/weights.bin") == run("./program", "compiled/weights.bin")


CASES = [rule_files_are_sound, a_neural_rule_and_a_guard_of_ones_own_are_used, models_are_read, a_target_of_ones_own_compiles, batch_files_make_their_jobs,
         a_network_for_another_machine_is_refused_with_what_to_do, a_compiled_network_runs_from_python_and_from_cpp]
run_cases(CASES, "examples: ")
