"""'loopegg measure' as a person uses it: again, twice at once, and on a board behind TVM's own RPC server and tracker."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, Skipped, run_cases

LOOPEGG = os.environ.get("LOOPEGG") or sys.argv[1]
SITE = pathlib.Path(os.environ.get("LOOPEGG_SITE") or sys.argv[2])
PYTHONS = [SITE.parent / "peers/bin/python", sys.executable]

MODEL = {"loopegg": 1, "name": "two", "inputs": [{"name": "x", "shape": [1, 4, 8, 8]}], "outputs": ["fc"], "nodes": [
    {"name": "c", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 8, "kernel": 3, "padding": 1}},
    {"name": "r", "op": "relu", "inputs": ["c"]},
    {"name": "g", "op": "global_avg_pool", "inputs": ["r"]},
    {"name": "f", "op": "flatten", "inputs": ["g"]},
    {"name": "fc", "op": "linear", "inputs": ["f"], "attrs": {"out_features": 10}}]}


def start(folder, *words):
    env = dict(os.environ, LOOPEGG_STORE=f"{folder}/store.sqlite", LOOPEGG_TARGETS=f"{folder}/targets", LOOPEGG_SITE=str(SITE))
    return subprocess.Popen([LOOPEGG, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, stdin=subprocess.DEVNULL)


def measure(folder, *words):
    return start(folder, "measure", f"{folder}/model.json", "--json", *words)


def answer(process):
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, (process.returncode, out, said)
    return json.loads(out)


def a_second_run_asks_the_machine_nothing(folder):
    first, second = answer(measure(folder)), answer(measure(folder))
    assert first["compiled"] > 0 and first["timed"] > 0 and first["measured"], first
    assert second["compiled"] == 0 and second["timed"] == 0, second
    assert second["median_ms"] == first["median_ms"], (first, second)


def two_at_once_share_the_work(folder):
    both = [measure(folder), measure(folder)]
    a, b = (answer(p) for p in both)
    assert a["median_ms"] == b["median_ms"], (a, b)
    assert min(a["compiled"], b["compiled"]) == 0 and min(a["timed"], b["timed"]) == 0, (a, b)
    assert max(a["compiled"], b["compiled"]) > 0, (a, b)


def tvm(module, *words, needs=()):
    """Starts one of TVM's own programs. Returns its process and the first port that it says it listens on."""
    for python in PYTHONS:
        env = dict(os.environ, PYTHONUNBUFFERED="1")
        probe = subprocess.run([str(python), "-c", f"import tvm.rpc, {', '.join(('numpy', 'cloudpickle') + needs)}"], env=env, capture_output=True, text=True) if pathlib.Path(python).exists() else None
        if probe is None or probe.returncode != 0:
            continue
        process = subprocess.Popen([str(python), "-m", module, "--host", "127.0.0.1", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        for line in process.stdout:
            if found := re.search(r"bind to [\d.]+:(\d+)", line):
                return process, int(found[1])
        process.wait()
        raise Skipped(f"{module} does not start")
    raise Lacking("no Python with " + " and ".join(("TVM", "numpy", "cloudpickle") + needs))


def end(process):
    """Ends a process and the processes that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def on_the_board(folder, *address):
    added = start(folder, "targets", "add", "board", *address)
    assert added.wait(timeout=60) == 0, added.stderr.read()
    first, second = answer(measure(folder, "--target", "board")), answer(measure(folder, "--target", "board"))
    assert first["target"] == "board" and first["measured"] and first["median_ms"] > 0 and first["timed"] > 0, first
    assert second["timed"] == 0 and second["median_ms"] == first["median_ms"], second


def a_board_is_measured_over_tvm_s_rpc_server(folder):
    server, port = tvm("tvm.exec.rpc_server", "--port", "19090", "--port-end", "19290")
    try:
        on_the_board(folder, "--rpc", f"127.0.0.1:{port}")
    finally:
        end(server)


def a_board_is_found_through_tvm_s_tracker(folder):
    tracker, port = tvm("tvm.exec.rpc_tracker", "--port", "19390", "--port-end", "19490", needs=("tornado",))
    try:
        server, _ = tvm("tvm.exec.rpc_server", "--port", "19500", "--port-end", "19590", "--tracker", f"127.0.0.1:{port}", "--key", "shelf")
        try:
            time.sleep(1)
            on_the_board(folder, "--rpc", f"127.0.0.1:{port}", "--key", "shelf")
        finally:
            end(server)
    finally:
        end(tracker)


def in_a_folder(case):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "model.json").write_text(json.dumps(MODEL))
        case(folder)


def every_step_of_a_compiled_network_is_timed(folder):
    compiled = start(folder, "compile", f"{folder}/model.json", "--out", f"{folder}/compiled", "--quiet")
    assert compiled.wait(300) == 0, compiled.stderr.read()
    told = answer(start(folder, "measure", f"{folder}/compiled", "--steps", "--json"))
    steps = json.loads(pathlib.Path(folder, "compiled/network.json").read_text())["steps"]
    assert [s["site"] for s in told["steps"]] == [s.get("site", "") for s in steps], told
    assert all(s["ms"] >= 0 for s in told["steps"]) and abs(sum(s["ms"] for s in told["steps"]) - told["sum_ms"]) < 1e-6, told
    refused = start(folder, "measure", f"{folder}/model.json", "--steps")
    assert refused.wait(60) == 2 and "loopegg compile MODEL" in refused.stderr.read(), refused


run_cases([every_step_of_a_compiled_network_is_timed, a_second_run_asks_the_machine_nothing, two_at_once_share_the_work, a_board_is_measured_over_tvm_s_rpc_server, a_board_is_found_through_tvm_s_tracker],
          call=in_a_folder)
