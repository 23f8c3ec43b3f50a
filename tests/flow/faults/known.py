"""Faults that were found once in what the program was given: names and files that ran code, and wrong files, stores and numbers that were taken. None of them
may come back."""
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import TINY, Place, run_cases

P = Place()
HARM = '*/ __attribute__((constructor)) static void harm(void) { __builtin_system("touch HARMED"); } /*'


def harmed():
    return [str(f) for f in P.path.rglob("HARMED*")] + [f for f in ("HARMED",) if os.path.exists(f)]


def npy(file, shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    pathlib.Path(file).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}f", *values))


def read_npy(file):
    raw = pathlib.Path(file).read_bytes()
    length = struct.unpack("<H", raw[8:10])[0]
    return struct.unpack(f"<{(len(raw) - 10 - length) // 4}f", raw[10 + length:])


def compiled(name="compiled", model=None):
    if not (P.path / name).exists():
        P.done("compile", model or P.model, "--out", name)
    return P.path / name


def copied(name):
    folder = P.path / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(compiled(), folder)
    return folder


def names_run_no_code_in_what_is_compiled():
    evil = json.loads(json.dumps(TINY))
    evil["name"] = HARM
    evil["nodes"][0]["name"] = evil["nodes"][1]["inputs"][0] = "*/ int x[-1]; /*"
    P.write("evil.json", evil)
    P.done("compile", "evil.json", "--out", "evil")
    P.done("run", "evil")
    P.done("measure", "evil", "--rounds", "1")
    assert not harmed(), harmed()
    assert "harm(" not in (P.path / "evil/network.h").read_text().replace("?/ __attribute__((constructor))", "").split("*/", 1)[1]


def names_run_no_code_in_network_py():
    evil = json.loads(json.dumps(TINY))
    evil["name"] = '"""\nopen("HARMED", "w")\n"""'
    evil["inputs"][0]["name"] = evil["nodes"][0]["inputs"][0] = '"""\nopen("HARMED2", "w")\n"""\\'
    P.write("evil-py.json", evil)
    assert P.run("export", "evil-py.json", "-o", "evil.py").returncode == 1     # a name with a control character
    evil["inputs"][0]["name"] = evil["nodes"][0]["inputs"][0] = '""" + open("HARMED2", "w") + """\\'
    P.write("evil-py.json", evil)
    r = P.run("export", "evil-py.json", "-o", "evil.py")
    if r.returncode:
        P.done("optimize", "evil-py.json", "--rules", "exact", "--trials", "1", "--out", "evil-py")
        text = (P.path / "evil-py/network.py").read_text()
    else:
        text = (P.path / "evil.py").read_text()
    import ast
    tree = ast.parse(text)
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "open"], text[:600]


def weights_of_another_network_are_refused():
    larger = json.loads(json.dumps(TINY))
    larger["nodes"][0]["attrs"]["out_channels"] = 16
    P.write("larger.json", larger)
    compiled("larger", "larger.json")
    folder = copied("swapped")
    shutil.copy(P.path / "larger/weights.bin", folder / "weights.bin")
    P.refused("run", "swapped", saying="weights.bin")
    same = copied("same-size")
    raw = bytearray((same / "weights.bin").read_bytes())
    raw[100] ^= 64
    (same / "weights.bin").write_bytes(raw)
    P.refused("run", "same-size", saying="weights.bin")
    manifest = json.loads((same / "manifest.json").read_text())
    del manifest["files"]["weights.bin"]
    (same / "manifest.json").write_text(json.dumps(manifest))
    P.refused("run", "same-size", saying="weights")


def an_input_of_another_shape_is_refused():
    compiled()
    npy(P.path / "nhwc.npy", (1, 8, 8, 3), [0.5] * 192)
    P.refused("run", "compiled", "--input", "nhwc.npy", saying="1x8x8x3")


def what_is_no_number_stays_none():
    """As in ONNX Runtime 1.31, for relu, relu6 (Clip), softmax, sigmoid inside silu, and averages; max_pool keeps it wherever it stands in its window (docs/reference/trust.md)."""
    nan, inf = float("nan"), float("inf")
    values = [nan, -nan, 1.0, -1.0, inf, -inf, 0.0, 7.0]
    expected = {"relu": [nan, nan, 1, 0, inf, 0, 0, 7], "relu6": [nan, nan, 1, 0, 6, 0, 0, 6], "silu": [nan, nan, 0.7310586, -0.26894143, inf, nan, 0, 6.993624]}
    for op, wanted in expected.items():
        P.write(f"{op}.json", {"loopegg": 1, "name": op, "inputs": [{"name": "x", "shape": [1, 8], "dtype": "float32"}], "nodes": [{"name": "y", "op": op, "inputs": ["x"]}], "outputs": ["y"]})
        P.done("compile", f"{op}.json", "--out", op)
        npy(P.path / "v.npy", (1, 8), values)
        P.done("run", op, "--input", "v.npy", "--output", "w.npy")
        alike(op, read_npy(P.path / "w.npy"), wanted)
    for row, wanted in {(nan, 1, 2): [nan] * 3, (inf, 1, 2): [nan] * 3, (-inf, 1, 2): [0, 0.26894143, 0.7310586], (-inf, -inf, -inf): [nan] * 3, (1e30, 1, 2): [1, 0, 0]}.items():
        P.write("softmax.json", {"loopegg": 1, "name": "s", "inputs": [{"name": "x", "shape": [1, 3], "dtype": "float32"}], "nodes": [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"axis": 1}}], "outputs": ["y"]})
        compiled("softmax", "softmax.json")
        npy(P.path / "v.npy", (1, 3), row)
        P.done("run", "softmax", "--input", "v.npy", "--output", "w.npy")
        alike(f"softmax {row}", read_npy(P.path / "w.npy"), wanted)
    for op, wanted in {"max_pool": [nan, 8, 14, 16], "avg_pool": [nan, 5.5, 11.5, 13.5]}.items():
        P.write(f"{op}.json", {"loopegg": 1, "name": op, "inputs": [{"name": "x", "shape": [1, 1, 4, 4], "dtype": "float32"}],
                               "nodes": [{"name": "y", "op": op, "inputs": ["x"], "attrs": {"kernel": [2, 2], "stride": [2, 2]}}], "outputs": ["y"]})
        P.done("compile", f"{op}.json", "--out", op)
        for place in (0, 1, 4, 5):
            x = [float(i + 1) for i in range(16)]
            x[place] = nan
            npy(P.path / "v.npy", (1, 1, 4, 4), x)
            P.done("run", op, "--input", "v.npy", "--output", "w.npy")
            alike(f"{op} {place}", read_npy(P.path / "w.npy"), wanted)


def alike(what, got, wanted):
    for g, w in zip(got, wanted, strict=True):
        same = g != g if w != w else g == w or abs(g - w) < 1e-5 * max(1, abs(w))
        assert same, (what, list(got), wanted)


def a_network_that_is_cut_or_swapped_is_refused_and_not_run():
    for how, say in {"cut": "network.so", "gone": "network.so is gone", "text": "network.so"}.items():
        folder = copied(f"so-{how}")
        so = folder / "network.so"
        if how == "cut":
            so.write_bytes(so.read_bytes()[:5000])
        elif how == "gone":
            so.unlink()
        else:
            so.write_text("not a library")
        P.refused("run", f"so-{how}", saying=say)
        P.refused("measure", f"so-{how}", saying=say)


def what_a_manifest_lets_through_runs_in_a_process_of_its_own():
    """A hostile library: the manifest fits, since who can change a file can change that too. It crashes alone, and reaches no network."""
    source = P.write("hostile.c", r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
__attribute__((constructor)) static void harm(void) {
    FILE* f = fopen("HARMED-BY-NETWORK", "w");
    if (f) fclose(f);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s >= 0) { f = fopen("/dev/shm/loopegg-HARMED-SOCKET", "w"); if (f) fclose(f); }
    if (fork() == 0) { execlp("touch", "touch", "HARMED-BY-PROGRAM", (char*)0); _exit(0); }
    abort();
}
""")
    folder = copied("hostile")
    assert os.system(f"cc -shared -fPIC {source} -o {folder}/network.so") == 0
    P.done("run", "compiled")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["network.so"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    P.refused("run", "hostile", saying="cannot be run")
    assert not os.path.exists("/dev/shm/loopegg-HARMED-SOCKET")
    landlock = "landlock" in (open("/sys/kernel/security/lsm").read() if os.path.exists("/sys/kernel/security/lsm") else "")
    found = [f for f in harmed() if landlock or "NETWORK" not in f]
    assert not found, found


def a_description_that_lies_is_refused():
    for change in ({"inputs": [{"name": "x", "shape": [1, 3, 4, 4]}]}, {"outputs": [{"name": "fc", "shape": [1, 400000]}]}, {"steps": []}, {"inputs": [{"name": "x", "shape": [2**31, 2**31]}]}, {"architecture": 7}):
        folder = copied("lies")
        j = json.loads((folder / "network.json").read_text())
        j.update(change)
        (folder / "network.json").write_text(json.dumps(j))
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["files"]["network.json"]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        P.refused("run", "lies")


def a_row_of_evidence_that_is_null_is_told():
    folder = P.path / "report"
    if P.optimize("report").returncode:
        raise AssertionError("no run")
    with open(folder / "evidence.jsonl", "a") as f:
        f.write("null\n")
    (folder / "manifest.json").unlink()
    P.refused("report", "report", saying="expected an object")


def targets_are_added_whole_or_not_at_all():
    P.done("targets", "add", "board", "--rpc", "10.0.0.1:9090", "--key", "pi")
    listed = P.done("targets")
    assert "10.0.0.1:9090/pi" in listed.stdout, listed.stdout
    for name in ("../../evil", "a/b", "", "x\ny", ".hidden", "-x", "a" * 200):
        r = P.run("targets", "add", "--rpc", "10.0.0.1:9090", "--", name)
        assert r.returncode in (1, 2), (name, r)
    for address in ("nonsense", "h:99999", "h:1/../../x", ":1", "h:"):
        P.refused("targets", "add", "other", "--rpc", address)
    assert sorted(f.name for f in (P.path / "targets").iterdir()) == ["board.json"], list(P.path.rglob("*.json"))
    P.write("targets/broken.json", "{")
    r = P.run("targets")
    assert r.returncode == 1 and "host" in r.stdout and "broken.json" in r.stderr, r
    (P.path / "targets/broken.json").unlink()


def a_target_with_a_bad_triple_is_refused():
    host = {"name": "bad", "reach": "compile", "tvm": {"kind": "llvm", "mtriple": "nonsense-linux-gnu"}}
    P.write("targets/bad.json", host)
    P.refused("compile", P.model, "--target", "bad", "--out", "bad", saying="architecture")
    (P.path / "targets/bad.json").unlink()


def a_large_fraction_is_told_as_what_it_is():
    scale = {"loopegg": 1, "name": "s", "inputs": [{"name": "x", "shape": [1, 3], "dtype": "float32"}], "nodes": [{"name": "y", "op": "scale", "inputs": ["x"], "attrs": {"value": 1e30}}], "outputs": ["y"]}
    P.write("scale.json", scale)
    P.done("show", "scale.json")


def nonsense_numbers_are_refused():
    for words in (("--max-loss", "nan"), ("--max-loss", "inf"), ("--tune-seconds", "-5"), ("--tune-seconds", "nan"), ("--seed", "-1"), ("--max-latency", "nan"), ("--min-speedup", "nan"), ("--min-speedup", "0")):
        r = P.run("optimize", P.model, "--out", "never", *words)
        assert r.returncode == 2, (words, r.returncode, r.stderr)
    assert not (P.path / "never").exists()


def a_store_of_a_later_version_is_refused():
    place = Place()
    with sqlite3.connect(place.path / "latency.sqlite") as db:
        db.execute("PRAGMA user_version=99")
    place.refused("optimize", place.model, "--out", "x", saying="later loopegg")


def a_store_runs_nothing_that_a_stranger_wrote_into_it():
    """SQLite runs what a file's schema says. A trigger or a view could count for ever."""
    for_ever = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    for name, harm in {"trigger": f"CREATE TRIGGER evil AFTER INSERT ON latency BEGIN {for_ever}; END", "guarded trigger": f"CREATE TRIGGER evil BEFORE INSERT ON latency WHEN ({for_ever}) > 1 BEGIN SELECT RAISE(ABORT, 'x'); END",
                       "view": f"ALTER TABLE latency RENAME TO other; CREATE VIEW latency AS {for_ever}"}.items():
        place = Place()
        assert place.optimize("out").returncode == 0
        store = place.path / "latency.sqlite"
        with sqlite3.connect(store) as db:
            db.executescript(harm)
        place.refused("optimize", place.model, "--out", "x", saying="which no loopegg wrote", limit=60)
        assert "which no loopegg wrote" in place.run("store", "check", store, limit=60).stdout, name
        place.done("store", "repair", store, limit=60)
        place.done("store", "check", store, limit=60)
        assert place.optimize("out").returncode == 0
        with sqlite3.connect(store) as db:   # its rows were kept where they still were in their table
            assert name == "view" or db.execute("SELECT count(*) FROM latency WHERE state='measured'").fetchone()[0] > 0


run_cases([names_run_no_code_in_what_is_compiled, names_run_no_code_in_network_py, weights_of_another_network_are_refused,
           an_input_of_another_shape_is_refused, what_is_no_number_stays_none, a_network_that_is_cut_or_swapped_is_refused_and_not_run,
           what_a_manifest_lets_through_runs_in_a_process_of_its_own, a_description_that_lies_is_refused, a_row_of_evidence_that_is_null_is_told,
           targets_are_added_whole_or_not_at_all, a_target_with_a_bad_triple_is_refused, a_large_fraction_is_told_as_what_it_is,
           nonsense_numbers_are_refused, a_store_of_a_later_version_is_refused, a_store_runs_nothing_that_a_stranger_wrote_into_it])
