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

# It answers with figures that depend on the words, counts what it is asked to try, and refuses layers of three channels. Its network has two blocks of two layers.
PROGRAM = r'''#!/usr/bin/python3 -I
import json, pathlib, sys, zlib
words = sys.argv[1:]
calls = pathlib.Path(sys.argv[0] + ".calls")
count = len(calls.read_text().splitlines()) if calls.exists() else 0
stop = pathlib.Path(sys.argv[0] + ".stop")
def drawn(of, most): return zlib.crc32(of.encode()) % 1000 / 1000 * most
def latency(ms): return {"median_ms": ms, "iqr_ms": 0.1, "n": 9, "target": "host", "measured": True, "disturbed": False}
if words[0] == "show":
    shapes = [("conv0", 3)] + [(f"layer1.{i}.conv{j}", 16) for i in (0, 1) for j in (1, 2)] + [("layer2.0.conv1", 32)]
    sites = [{"name": n, "op": "conv2d", "input": [1, c, 8, 8], "shape": [1, c if c > 3 else 16, 8, 8], "macs": 1000 * c, "parameters": 16 * c} for n, c in shapes]
    print(json.dumps({"sites": sites, "macs": sum(s["macs"] for s in sites)}))
elif words[0] == "try":
    with open(calls, "a") as f:
        f.write(" ".join(words) + "\n")
    if stop.exists() and count + 1 == int(stop.read_text()):
        sys.exit(70)
    if "--site" in words and words[words.index("--site") + 1] == "conv0":
        print(json.dumps({"ok": False, "errors": [{"message": "2 divides 3 does not hold"}]}))
        sys.exit(1)
    asked = pathlib.Path(words[words.index("--plan") + 1]).read_text() if "--plan" in words else " ".join(words)
    ms = 1 + drawn(asked, 9)
    print(json.dumps({"guard": None, "target": "host", "layers": [{"original_latency": latency(9.0), "latency": latency(ms), "speedup": 9.0 / ms, "macs": 500,
        "original_macs": 1000, "sequence": "group", "tried": 4, "sites": ["layer1.0.conv1"]}]}))
elif words[0] == "score":
    plans = [pathlib.Path(b).read_text() for a, b in zip(words, words[1:]) if a == "--plan"]
    if any("conv0" in p for p in plans):
        print(json.dumps({"ok": False, "errors": [{"message": "2 divides 3 does not hold"}]}))
        sys.exit(1)
    rows = [{"macs": 500, "parameters": 9, "guards": {"(expected-loss <= 1)": {"loss": {"points": drawn(p, 0.5), "low": -1.0, "high": 1.0}}}} for p in plans]
    print(json.dumps({"variants": rows}))
elif words[0] == "apply":
    pathlib.Path(words[words.index("-o") + 1]).write_text(pathlib.Path(words[2]).read_text())
    print("{}")
elif words[0] == "optimize":
    print(json.dumps({"target": "host", "optimized": dict(latency(2 + drawn(" ".join(words), 1)), macs=700)}))
'''


def program(name):
    file = FOLDER / name
    file.write_text(PROGRAM)
    file.chmod(0o755)
    return file


def paper(name, *words):
    return subprocess.run(["/usr/bin/python3", "-I", PAPER, *words, "--out", FOLDER / f"{name}.out"], capture_output=True, text=True, timeout=240,
                          env=dict(os.environ, LOOPEGG=str(FOLDER / name)))


def rows(name, figure):
    every = map(json.loads, (FOLDER / f"{name}.out/measurements.jsonl").read_text().splitlines())
    return [row for row in every if row["figure"] == figure]


def what_was_measured_before_a_stop_is_not_measured_again():
    fake = program("stopped")
    pathlib.Path(f"{fake}.stop").write_text("7")
    assert paper("stopped", "fig6", "--quick").returncode == 1
    assert len(rows("stopped", "fig6")) == 6
    with open(FOLDER / "stopped.out/measurements.jsonl", "a") as f:
        f.write('{"figure": "fig6", "key": "conv2 S1", "spee')   # a kill in the middle of a line
    refused = paper("stopped", "fig6", "--quick")
    assert refused.returncode == 1 and "--resume" in refused.stderr, refused
    pathlib.Path(f"{fake}.stop").unlink()
    assert paper("stopped", "fig6", "--quick", "--resume").returncode == 0
    calls = [l for l in pathlib.Path(f"{fake}.calls").read_text().splitlines()]
    assert len(calls) == 13 and len(set(calls)) == 12, calls   # three kinds of layers, four variants, and the one that was stopped


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
    assert "resnet34-cifar10 | S1" in (FOLDER / "whole.out/fig5.md").read_text(), "what Figure 6 tried counts in Figure 5, too"
    assert "fig6.md" in (FOLDER / "whole.out/README.md").read_text()


def drawing_again_from_the_same_lines_gives_the_same_plot():
    before = (FOLDER / "whole.out/fig6.svg").read_text()
    assert paper("whole", "fig6", "--quick", "--resume").returncode == 0
    assert (FOLDER / "whole.out/fig6.svg").read_text() == before


def a_choice_is_the_best_of_all():
    """The integer program against every combination, on random tables."""
    import itertools, random
    sys.path.insert(0, str(PAPER.parent))
    import fig7
    for seed in range(60):
        r = random.Random(seed)
        parts = [[(r.uniform(1, 9), r.choice([0, r.uniform(0, 2)]), f"{i}{j}") for j in range(r.randint(1, 4))] for i in range(r.randint(1, 5))]
        every = [(sum(o[0] for o in c), sum(o[1] for o in c)) for c in itertools.product(*parts)]
        ms, points = r.uniform(2, 30), r.uniform(0, 5)
        slack = fig7.STEP * len(parts)
        allowed = [p for m, p in every if m <= ms]
        safest, fastest = fig7.safest(parts, ms), fig7.fastest(parts, points)
        assert (safest is None) == (not allowed) and (safest is None or safest[0] <= ms and safest[1] <= min(allowed) + slack), seed
        times = [m for m, p in every if p <= points - slack]
        assert not times or fastest[1] <= points and fastest[0] <= min(times) + 1e-9, seed
        for found in (safest, fastest):
            if found:
                taken = [next(o for o in options if o[2] == name) for options, name in zip(parts, found[2])]
                assert abs(sum(o[0] for o in taken) - found[0]) < 1e-9 and abs(sum(o[1] for o in taken) - found[1]) < 1e-9, seed


def networks_are_chosen_within_the_loss_and_timed_whole():
    program("chosen")
    done = paper("chosen", "fig7", "interleaving", "--quick")
    assert done.returncode == 0, done.stderr
    of_blocks, drawn = rows("chosen", "fig7"), [r for r in rows("chosen", "interleaving") if r.get("plan")]
    assert [r for r in of_blocks if r.get("plan")] and all(r["sum_ms"] <= r["blocks_ms"] / r["speedup_asked"] + 1e-9 for r in of_blocks if r.get("plan"))
    assert all(r["sum_points"] <= 1 and r["timed"] <= 16 for r in drawn), drawn
    assert len({r["arm"] for r in drawn}) == 4 and len({r["seed"] for r in drawn if "interleaved" in r["arm"]}) == 5
    page = (FOLDER / "chosen.out/interleaving.md").read_text()
    assert all(r["arm"] in page for r in drawn) and page.index("What does not hold") < page.index("![")


def an_unknown_figure_is_answered_with_those_there_are():
    program("wrong")
    r = paper("wrong", "fig66")
    assert r.returncode == 2 and "fig66" in r.stderr and "fig6" in r.stderr, r


run_cases([what_was_measured_before_a_stop_is_not_measured_again, a_page_and_a_plot_say_what_the_lines_say, drawing_again_from_the_same_lines_gives_the_same_plot, a_choice_is_the_best_of_all,
           networks_are_chosen_within_the_loss_and_timed_whole, an_unknown_figure_is_answered_with_those_there_are])
