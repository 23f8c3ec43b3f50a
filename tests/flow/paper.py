"""The figures of the paper: lines of data are kept over a kill, and plots and pages say what the lines say. A stand-in answers as the program would."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import run_cases

PAPER = pathlib.Path(__file__).resolve().parents[2] / "experiments/paper/paper.py"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="loopegg-paper-"))

# It answers 'show' and 'try' with figures that depend on the words, counts its calls, and refuses layers of three channels.
PROGRAM = r'''#!/usr/bin/python3 -I
import json, pathlib, sys, zlib
words = sys.argv[1:]
calls = pathlib.Path(sys.argv[0] + ".calls")
count = len(calls.read_text().splitlines()) if calls.exists() else 0
stop = pathlib.Path(sys.argv[0] + ".stop")
if words[0] == "show":
    sites = [{"name": f"conv{i}", "op": "conv2d", "input": [1, c, 8, 8], "shape": [1, 16, 8, 8], "macs": 1000 * c, "parameters": 16 * c} for i, c in enumerate((3, 8, 16))]
    print(json.dumps({"sites": sites}))
elif words[0] == "try":
    with open(calls, "a") as f:
        f.write(" ".join(words) + "\n")
    if stop.exists() and count + 1 == int(stop.read_text()):
        sys.exit(70)
    site = words[words.index("--site") + 1]
    if site == "conv0":
        print(json.dumps({"ok": False, "errors": [{"message": "2 divides 3 does not hold"}]}))
        sys.exit(1)
    ms = 1 + zlib.crc32(" ".join(words).encode()) % 100 / 25
    latency = {"median_ms": ms, "iqr_ms": 0.1, "n": 9, "target": "host", "measured": True, "disturbed": False}
    print(json.dumps({"guard": {"allowed": True, "loss": {"points": 0.25}}, "target": "host", "layers": [{"original_latency": dict(latency, median_ms=3.0), "latency": latency,
        "speedup": 3.0 / ms, "macs": 500, "original_macs": 1000, "sequence": "group", "tried": 4}]}))
'''


def program(name):
    file = FOLDER / name
    file.write_text(PROGRAM)
    file.chmod(0o755)
    return file


def paper(name, *words):
    return subprocess.run(["/usr/bin/python3", "-I", PAPER, *words, "--out", FOLDER / f"{name}.out"], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, LOOPEGG=str(FOLDER / name)))


def rows(name, figure):
    return [json.loads(line) for line in (FOLDER / f"{name}.out/{figure}.jsonl").read_text().splitlines()]


def what_was_measured_before_a_stop_is_not_measured_again():
    fake = program("stopped")
    pathlib.Path(f"{fake}.stop").write_text("7")
    assert paper("stopped", "fig6", "--quick").returncode == 1
    assert len(rows("stopped", "fig6")) == 6
    with open(FOLDER / "stopped.out/fig6.jsonl", "a") as f:
        f.write('{"key": "conv2 S1", "spee')   # a kill in the middle of a line
    refused = paper("stopped", "fig6", "--quick")
    assert refused.returncode == 1 and "--resume" in refused.stderr, refused
    pathlib.Path(f"{fake}.stop").unlink()
    assert paper("stopped", "fig6", "--quick", "--resume").returncode == 0
    calls = [l for l in pathlib.Path(f"{fake}.calls").read_text().splitlines()]
    assert len(calls) == 13 and len(set(calls)) == 12, calls   # three layers, four variants, and the one that was stopped


def a_page_and_a_plot_say_what_the_lines_say():
    program("whole")
    done = paper("whole", "fig6", "fig5", "--quick")
    assert done.returncode == 0, done.stderr
    table = rows("whole", "fig6")
    page, plot = ((FOLDER / f"whole.out/fig6.{kind}").read_text() for kind in ("md", "svg"))
    for row in table:
        if row["refused"]:
            assert "divides" in row["refused"]
            continue
        assert f"{row['speedup']:.2f}" in page and f"{row['site']}, {row['sequence']}: {row['speedup']:.2f}x" in plot, row
    words = " ".join(re.findall(r">([^<]+)</text>", plot))   # a note of several lines
    for fact in ("machine", "commit", "date"):
        assert all(row[fact] in page.replace("\n", " ") and row[fact] in words for row in table if row[fact]), fact
    assert page.index("What does not hold") < page.index("![")
    assert "n = 9" in words and "measured" in plot
    assert {r["key"] for r in rows("whole", "fig5")} >= {f"{r['model']} {r['key']}" for r in table}
    assert "fig6.md" in (FOLDER / "whole.out/README.md").read_text()


def drawing_again_from_the_same_lines_gives_the_same_plot():
    before = (FOLDER / "whole.out/fig6.svg").read_text()
    assert paper("whole", "fig6", "--quick", "--resume").returncode == 0
    assert (FOLDER / "whole.out/fig6.svg").read_text() == before


def an_unknown_figure_is_answered_with_those_there_are():
    program("wrong")
    r = paper("wrong", "fig66")
    assert r.returncode == 2 and "fig66" in r.stderr and "fig6" in r.stderr, r


run_cases([what_was_measured_before_a_stop_is_not_measured_again, a_page_and_a_plot_say_what_the_lines_say, drawing_again_from_the_same_lines_gives_the_same_plot,
           an_unknown_figure_is_answered_with_those_there_are])
