"""Rounds of measuring on the machine with the GPU: a command runs a bundle, and the same command of ours goes on from the results that came back."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from cases import run_cases   # noqa: E402

LOOPEGG = sys.argv.pop(1)
MODEL = str(HERE.parents[2] / "examples/tiny-residual.json")
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = {**os.environ, "LOOPEGG_STORE": FOLDER.name + "/latency.sqlite", "XDG_CACHE_HOME": FOLDER.name}
# Stands for the machine with the GPU: all programs are right but the second, and each is faster than the one before it.
MACHINE = pathlib.Path(FOLDER.name, "machine.py")
MACHINE.write_text("""import json, sys
index = json.load(open(sys.argv[1] + '/index.json'))
with open(sys.argv[1] + '/results.txt', 'w') as f:
    f.write('loopegg-results 1 ' + index['id'] + chr(10))
    for i, p in enumerate(index['programs']):
        f.write(p['key'] + (' failed it crashed by signal 11' if i == 1 else ' ok %f 0.001 21' % (1 / (i + 2))) + chr(10))
""")


def bundle(name, *more):
    folder = f"{FOLDER.name}/{name}"
    done = subprocess.run([LOOPEGG, "bundle", MODEL, "--target", "gtx1080ti", "--schedules", "2", "--out", folder, "--json", *more], capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    index = pathlib.Path(folder, "index.json")
    return done, json.loads(index.read_text())["programs"] if index.exists() else []


def times_that_came_back_are_not_asked_for_again():
    done, first = bundle("first", "--runner", f"{sys.executable} {MACHINE} {{}}")
    answer = json.loads(done.stdout)
    assert answer["programs"] == len(first) and answer["right"] == len(first) - 1 and done.returncode == 1, done
    _, second = bundle("second")
    assert [p["what"] for p in second[:-1]] == [first[1]["what"]], second     # what crashed, and the network
    assert second[-1]["what"].startswith("network") and second[-1]["key"] != first[-1]["key"], second   # which runs with the fastest schedules


def a_command_must_say_where_the_folder_goes():
    done, programs = bundle("third", "--runner", "true")
    assert done.returncode == 2 and "{}" in done.stderr and not programs, done


def a_command_that_brings_nothing_back_is_named():
    done, _ = bundle("fourth", "--runner", "true {}")
    assert done.returncode == 1 and "results.txt" in done.stderr, done


run_cases([times_that_came_back_are_not_asked_for_again, a_command_must_say_where_the_folder_goes, a_command_that_brings_nothing_back_is_named], "rounds: ")
