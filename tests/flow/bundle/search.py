"""A search for a GPU that is elsewhere: rounds go out, results come back, and the same command goes on from them; a script stands for the machine."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from cases import run_cases   # noqa: E402

LOOPEGG = sys.argv.pop(1)
MODEL = str(HERE.parents[2] / "examples/tiny-residual.json")
FOLDER = tempfile.TemporaryDirectory()
# Stands for the machine with the GPU. A program takes as long as its key says, networks longer than nests; the program that is named crashes there.
MACHINE = pathlib.Path(FOLDER.name, "machine.py")
MACHINE.write_text("""import json, os, signal, sys
folder, *how = sys.argv[1:]
index = json.load(open(folder + '/index.json'))
count = len(index['programs'])
if 'half' in how:   # the machine dies in the middle, and takes the search with it
    count //= 2
with open(folder + '/results.txt', 'w') as f:
    f.write('loopegg-results 1 ' + index['id'] + chr(10))
    for i, p in enumerate(index['programs'][:count]):
        ms = (0.4 if p['what'].startswith('network') else 0.02) + int(p['key'][:4], 16) / 1e7
        f.write(p['key'] + (' failed it crashed by signal 11' if i == 0 and 'crash' in how else ' ok %f 0.001 21' % ms) + chr(10))
if 'half' in how:
    os.kill(int(open(folder + '/../../pid').read()), signal.SIGKILL)
""")


def environment(store):
    return {**os.environ, "LOOPEGG_STORE": f"{FOLDER.name}/{store}.sqlite", "LOOPEGG_EVIDENCE": f"{FOLDER.name}/evidence.sqlite", "XDG_CACHE_HOME": FOLDER.name}


def words(out, *more):
    return [LOOPEGG, "optimize", MODEL, "--target", "gtx1080ti", "--max-loss", "6", "--trials", "4", "--round-programs", "12", "--out", f"{FOLDER.name}/{out}", "--json", *more]


def optimize(out, *more, store=None):
    done = subprocess.run(words(out, *more), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(store or out), timeout=600)
    return done, json.loads(done.stdout) if done.returncode == 0 else None


def machine(folder, *how):
    subprocess.run([sys.executable, str(MACHINE), folder, *how], check=True)


def programs(out, number):
    return json.loads(pathlib.Path(FOLDER.name, out, "rounds", str(number), "index.json").read_text())["programs"]


def without_a_device_the_answer_is_an_estimate_and_says_so():
    done, r = optimize("steps")
    assert done.returncode == 0, done.stderr
    assert not r["original"]["measured"] and not r["optimized"]["measured"], r["original"]
    assert r["rounds"]["done"] == 0 and r["rounds"]["measured"] == 0 and r["rounds"]["waiting"]["round"] == 1, r["rounds"]
    assert 0 < r["rounds"]["waiting"]["programs"] <= 12 + 6 and pathlib.Path(r["rounds"]["waiting"]["folder"], "run_bundle.sh").exists(), r["rounds"]
    assert any(p["what"].startswith("network") for p in programs("steps", 1)), programs("steps", 1)


def a_round_that_is_out_is_waited_for():
    before = pathlib.Path(FOLDER.name, "steps/rounds/1/bundle.txt").read_bytes()
    done, r = optimize("steps")
    assert done.returncode == 0 and r["rounds"]["waiting"]["round"] == 1 and not pathlib.Path(FOLDER.name, "steps/rounds/2").exists(), (done.stderr, r)
    assert pathlib.Path(FOLDER.name, "steps/rounds/1/bundle.txt").read_bytes() == before


def results_that_no_runner_writes_are_refused_and_leave_nothing():
    results = pathlib.Path(FOLDER.name, "steps/rounds/1/results.txt")
    machine(str(results.parent))
    good = results.read_text()
    head, first, rest = good.split("\n", 2)
    key = first.split()[0]
    for bad, said in [(f"{key} ok -1 0.001 21", "impossible times"), (f"{key} ok nan 0.001 21", "impossible times"), (f"{key} ok 1e400 0 21", "expected a median"),
                      (f"{key} ok 0.1 0.001 0", "impossible times"), (f"{key} ok 0.1", "expected a median"), (f"{key} perhaps 0.1 0 1", "expected 'ok'"),
                      ("f" * 32 + " ok 0.1 0.001 21", "expected the key"), ("\x1b[31m", "expected the key")]:
        results.write_text(head + "\n" + rest.split("\n")[0] + "\n" + bad + "\n")
        done, _ = optimize("steps")
        assert done.returncode == 1 and said in done.stderr and "results.txt:3:" in done.stderr and "\x1b[31m" not in done.stderr, (bad, done.stderr)
    results.write_text("loopegg-results 1 " + "0" * 32 + "\n" + rest)
    done, _ = optimize("steps")
    assert done.returncode == 1 and "not the results of this bundle" in done.stderr, done.stderr
    results.unlink()
    done, r = optimize("steps")
    assert r["rounds"]["measured"] == 0, r["rounds"]   # not even the lines before the bad one
    results.write_text(good)


def the_same_command_goes_on_from_the_results():
    machine(f"{FOLDER.name}/steps/rounds/1", "crash")
    results = pathlib.Path(FOLDER.name, "steps/rounds/1/results.txt")
    results.write_text(results.read_text() + programs("steps", 1)[0]["key"] + " ok 0.0")   # a last line that does not end
    done, r = optimize("steps")
    assert done.returncode == 0 and r["rounds"]["done"] == 1 and r["rounds"]["measured"] > 0 and r["rounds"]["failed"] == 1, (done.stderr, r and r["rounds"])
    asked = {p["key"] for p in programs("steps", 1)}
    if r["rounds"]["waiting"]:
        assert not asked & {p["key"] for p in programs("steps", 2)}, "what is known, and what crashed, is not asked for again"


def a_runner_makes_all_rounds_in_one_go():
    done, r = optimize("all", "--runner", f"{sys.executable} {MACHINE} {{}}")
    assert done.returncode == 0, done.stderr
    assert r["rounds"]["waiting"] is None and 1 < r["rounds"]["done"] <= 6, r["rounds"]
    assert r["original"]["measured"] and r["optimized"]["measured"] and r["original"]["n"] == 21, (r["original"], r["optimized"])
    assert all(s["original_latency"]["measured"] for s in r["sites"]), r["sites"]
    keys = [p["key"] for i in range(r["rounds"]["done"]) for p in programs("all", i + 1)]
    assert len(keys) == len(set(keys)), "nothing is measured twice"
    assert pathlib.Path(FOLDER.name, "all/network.so").exists() and pathlib.Path(FOLDER.name, "all/network.h").exists()
    again, same = optimize("all")
    assert same["original"] == r["original"] and same["optimized"] == r["optimized"] and same["rounds"]["done"] == r["rounds"]["done"], (r, same)


def a_search_that_is_killed_between_rounds_loses_nothing():
    out = pathlib.Path(FOLDER.name, "killed")
    out.mkdir()
    runner = f"{sys.executable} {MACHINE} {{}} $(test -e {out}/rounds/2 && echo half)"
    process = subprocess.Popen(words("killed", "--runner", runner), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment("killed"))
    (out / "pid").write_text(str(process.pid))
    process.communicate(timeout=600)
    assert process.returncode == -9 and (out / "rounds/2/results.txt").exists() and (out / "result.json").exists(), process.returncode
    done, r = optimize("killed", "--runner", f"{sys.executable} {MACHINE} {{}}")
    assert done.returncode == 0 and r["rounds"]["waiting"] is None, done.stderr
    _, whole = optimize("all", store="all")
    for name in ["original", "optimized", "returned"]:   # as if nothing had been
        assert r[name] == whole[name], (name, r[name], whole[name])


def rounds_of_another_network_are_not_taken_for_these():
    shutil.copytree(f"{FOLDER.name}/all/rounds", f"{FOLDER.name}/other/rounds")
    done = subprocess.run([*words("other")[:2], str(HERE.parents[2] / "examples/tiny-plain.json"), *words("other")[3:]], capture_output=True, text=True, env=environment("other"), timeout=600)
    assert done.returncode == 1 and "choose another --out" in done.stderr, done.stderr


def a_runner_is_for_targets_that_have_rounds():
    done = subprocess.run([LOOPEGG, "optimize", MODEL, "--runner", "true {}", "--out", f"{FOLDER.name}/host"], capture_output=True, text=True, env=environment("host"), timeout=60)
    assert done.returncode == 2 and re.search("--runner: .*'host' is none", done.stderr), done.stderr
    done, _ = optimize("none", "--runner", "true")
    assert done.returncode == 2 and "{}" in done.stderr, done.stderr
    done, _ = optimize("none", "--runner", "true {}")
    assert done.returncode == 1 and "left no results.txt" in done.stderr, done.stderr


def wide_model():
    """A network that is so wide that tensor cores pay."""
    model = json.loads(pathlib.Path(MODEL).read_text())
    model["inputs"][0]["shape"] = [1, 64, 16, 16]
    for node in model["nodes"]:
        if node["op"] == "conv2d":
            node["attrs"]["out_channels"] = 128
    file = pathlib.Path(FOLDER.name, "wide.json")
    file.write_text(json.dumps(model))
    return str(file)


def tensor_words(out, *more):
    all_words = words(out, "--allow", "tf32", "--rounds", "0", *more)
    all_words[all_words.index("gtx1080ti")] = "h200"
    all_words[all_words.index(MODEL)] = wide_model()
    return all_words


def rounding_is_off_unless_it_is_allowed_and_gains_something():
    done, _ = optimize("rounded", "--allow", "tf32")
    assert done.returncode == 1 and "'gtx1080ti' has no unit that multiplies such numbers" in done.stderr and not pathlib.Path(FOLDER.name, "rounded").exists(), done.stderr
    done, _ = optimize("rounded", "--allow", "tf23")
    assert done.returncode == 1 and "known are bf16, fp16, int8, tf32" in done.stderr, done.stderr


def rounding_is_measured_told_and_left_out_beyond_its_limit():
    for limit, allowed in [("0.01", True), ("0", False)]:
        done = subprocess.run(tensor_words("limit" + limit, "--max-rounding-error", limit), capture_output=True, text=True, env=environment("rounded"), timeout=600)
        assert done.returncode == 0, done.stderr
        original = json.loads(done.stdout)["original"]
        rounding = original["rounding"]
        assert (rounding["sites"] > 0) is allowed and rounding["sites"] + rounding["kept_in_float32"] == len(rounding["of_site"]) > 0, rounding
        assert not allowed or 0 < rounding["mean"] <= rounding["largest"] < 0.01 and rounding["outputs"] == 32, rounding
        assert all(site["precision"] == ("tf32" if allowed else "float32") and site["largest"] > 0 for site in rounding["of_site"].values()), rounding
        folder = pathlib.Path(FOLDER.name, "limit" + limit)
        assert any("mma.sync" in f.read_text() for f in (folder / "original").glob("*.cu")) is allowed
        lines = [json.loads(line) for line in (folder / "evidence.jsonl").read_text().splitlines()]
        assert any(line.get("oracle") == "rounding" and line["evidence"] == rounding for line in lines), lines[-1]


run_cases([without_a_device_the_answer_is_an_estimate_and_says_so, a_round_that_is_out_is_waited_for, results_that_no_runner_writes_are_refused_and_leave_nothing,
           the_same_command_goes_on_from_the_results, a_runner_makes_all_rounds_in_one_go, a_search_that_is_killed_between_rounds_loses_nothing,
           rounds_of_another_network_are_not_taken_for_these, a_runner_is_for_targets_that_have_rounds,
           rounding_is_off_unless_it_is_allowed_and_gains_something, rounding_is_measured_told_and_left_out_beyond_its_limit], "search: ")
