"""A run that is killed with -9 at random moments and started again: the same answer, nothing measured twice, no torn file."""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

LOOPEGG = sys.argv[1]
KILLS = 50 if os.environ.get("LOOPEGG_DEEP") == "1" else 5
MODEL = str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "tiny-residual.json")
FOLDER = tempfile.TemporaryDirectory()
STORE = FOLDER.name + "/latency.sqlite"
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=STORE, LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite")


def command(out):
    return [LOOPEGG, "optimize", MODEL, "--trials", "6", "--out", f"{FOLDER.name}/{out}", "--quiet"]


def measured():
    """The times of schedules in the store: key to figures. Whole networks are left out, because they are timed again when the machine was busy."""
    if not os.path.exists(STORE):
        return {}
    with sqlite3.connect(STORE, timeout=30) as store:
        rows = store.execute("SELECT key, median_ms, iqr_ms, n FROM latency WHERE state = 'measured' AND nest LIKE '(%'") if store.execute(
            "SELECT name FROM sqlite_master WHERE name = 'latency'").fetchone() else []
        return {key: figures for key, *figures in rows}


def whole_files(out):
    """Checks that every JSON file in the folder can be read, so that none is torn."""
    for path in pathlib.Path(FOLDER.name, out).rglob("*.json"):
        json.loads(path.read_text())


def answer(out):
    result = json.load(open(f"{FOLDER.name}/{out}/result.json"))
    # The network that is returned is timed once more at the end of each run, so its own latency is not the store's.
    return result["configurations"], result["rejected"], [p["macs"] for p in result["pareto"]], [p["latency_ms"] for p in result["pareto"] if not p.get("chosen")]


def main():
    draw = random.Random(7)
    began = time.monotonic()
    # How long a run takes. Its answer may be another one: its times are its own, and which networks are judged goes by times.
    undisturbed = subprocess.run(command("before"), env=dict(ENVIRONMENT, LOOPEGG_STORE=STORE + ".other", LOOPEGG_EVIDENCE=FOLDER.name + "/other.sqlite"))
    assert undisturbed.returncode == 0
    length = time.monotonic() - began
    known = {}
    for _ in range(KILLS):
        process = subprocess.Popen(command("killed"), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0, length))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = measured()
        assert all(now.get(key) == figures for key, figures in known.items()), "something was measured twice"
        known = now
        whole_files("killed")
    assert subprocess.run(command("killed"), env=ENVIRONMENT).returncode == 0
    whole_files("killed")
    now = measured()
    assert all(now[key] == figures for key, figures in known.items()), "something was measured twice"
    assert subprocess.run(command("again"), env=ENVIRONMENT).returncode == 0
    assert measured() == now, "a finished run measured schedules again"
    assert answer("killed") == answer("again"), (answer("killed"), answer("again"))
    print(f"{KILLS} kills: {len(now)} schedules measured once, the same answer")


main()
