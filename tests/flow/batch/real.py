"""A batch of 12 real runs of small networks: killed with -9 at 20 random moments and continued, and shared by two processes.

Without LOOPEGG_DEEP=1 it is skipped: it takes some ten minutes. tests/flow/test_batch_kill.cpp does the same with a stand-in for optimize, always.
"""
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import OnlyDeep, run_cases

LOOPEGG, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
# By memory, not by time, a choice is the same every time; the store of kernels' times is shared, so that the options are, too.
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=f"{FOLDER}/latency.sqlite", LOOPEGG_EVIDENCE=f"{FOLDER}/evidence.sqlite", TALLY=f"{FOLDER}/tally")
JOBS = FOLDER / "jobs.json"
JOBS.write_text(json.dumps({"models": [str(SOURCE / "examples" / m) for m in ("tiny-residual.json", "tiny-plain.json")], "rules": ["default", str(SOURCE / "examples/group-large.rules")],
                            "seeds": [1, 2, 3], "options": {"trials": 2, "objective": "memory"}}))
COUNTED = FOLDER / "counted"
COUNTED.write_text(f'#!/bin/sh\n"{LOOPEGG}" "$@" || exit $?\necho "$2 $6 $*" >> "$TALLY"\n')
COUNTED.chmod(0o755)


def start(out, program=LOOPEGG):
    return subprocess.Popen([LOOPEGG, "batch", str(JOBS), "--out", str(FOLDER / out), "--program", str(program)], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)


def table(out):
    """Everything of the table that does not depend on times."""
    with open(FOLDER / out / "result.csv") as file:
        return [{k: v for k, v in row.items() if k not in ("original_ms", "optimized_ms", "speedup", "seconds")} for row in csv.DictReader(file)]


def killed_and_continued():
    assert start("calm").wait() == 0
    calm = table("calm")
    assert len(calm) == 12 and all(row["state"] == "done" for row in calm), calm
    draw = random.Random(20)
    kills, again = 0, 0
    while kills < 20:
        process = start(f"shaken{again}")
        time.sleep(draw.uniform(0.1, 9))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        else:
            again += 1      # it got through: the kills go on with a fresh folder
        process.wait()
    assert start(f"shaken{again}").wait() == 0
    shaken = table(f"shaken{again}")
    different = [(a, b) for a, b in zip(calm, shaken) if a != b]
    assert not different and len(shaken) == 12, different[:2]
    assert not list(FOLDER.glob("shaken*/**/*.partial")), "a torn file was left"


def each_once():
    first, second = start("shared", COUNTED), start("shared", COUNTED)
    assert first.wait() == 0 and second.wait() == 0
    lines = (FOLDER / "tally").read_text().splitlines()
    assert len(lines) == 12 and len(set(lines)) == 12, lines
    assert table("shared") == table("calm")


def when_deep(case):
    if os.environ.get("LOOPEGG_DEEP", "") in ("", "0"):
        raise OnlyDeep("it takes ten minutes")
    case()


run_cases([("a real batch killed at 20 random moments gives the table of an undisturbed one", killed_and_continued), ("two processes on one queue do each real job once", each_once)],
          call=when_deep)
