"""Hostile files and names over every reader and every generated text: nothing is executed, nothing is written outside, nothing crashes, memory stays below 1 GB.

Files are seeded damage to good ones (cut, flipped, repeated, swapped, huge numbers, deep nesting) and files made to hurt; names try to end comments, strings, tags, cells and words of
C, Python, HTML, DOT, CSV, shell and terminals. LOOPEGG_HOSTILE=N tries N files.
"""
import json
import os
import pathlib
import random
import re
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import DEEP, TINY, Place, run_cases

SOURCE = pathlib.Path(__file__).resolve().parents[3]
CORPUS = SOURCE / "tests/fuzz/corpus"
FILES = int(os.environ.get("LOOPEGG_HOSTILE", "0")) or (1000 if DEEP else 60)
P = Place()

NUMBERS = [b"-1", b"0", b"1e308", b"-1e308", b"9223372036854775807", b"18446744073709551616", b"1e-400", b"99999999999999999999999", b"2147483648", b"nan"]


def damage(raw, draw):
    raw = bytearray(raw)
    for _ in range(draw.choice([1, 1, 1, 2, 4, 16])):
        if not raw:
            break
        kind = draw.randrange(8)
        at = draw.randrange(len(raw))
        if kind == 0:
            raw[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del raw[at:]
        elif kind == 2:
            end = min(len(raw), at + draw.choice([1, 8, 100, 1000]))
            raw[at:at] = raw[at:end] * draw.choice([1, 2, 50])
        elif kind == 3:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(raw)))
            if numbers:
                m = draw.choice(numbers)
                raw[m.start():m.end()] = draw.choice(NUMBERS)
        elif kind == 4:
            raw[at:at] = draw.choice([b"(" * 5000, b"[" * 5000, b'{"a":' * 3000, b'"', b"\x00", b"\xff\xfe", b"\n" * 1000])
        elif kind == 5:
            del raw[at:at + draw.choice([1, 4, 40])]
        elif kind == 6:
            other = draw.randrange(len(raw))
            raw[at:at + 8], raw[other:other + 8] = raw[other:other + 8], raw[at:at + 8]
        else:
            raw[at:at + 8] = bytes(draw.randrange(256) for _ in range(8))
    return bytes(raw[:2_000_000])


def little():
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))


def commands():
    """Reader by reader: good files, and the words that read one."""
    rules, math = SOURCE / "rules/math.rules", SOURCE / "examples/math.terms"
    good = {k: [f for f in sorted((CORPUS / k).iterdir())] for k in ("model", "onnx", "rules", "egraph", "engine", "plan", "target", "jobs", "npy", "safetensors", "nest")}
    good["terms"], good["rules"] = [math], good["rules"] + [rules, SOURCE / "rules/neural.rules"]
    P.done("compile", P.model, "--out", "compiled")
    weights = json.loads(json.dumps(TINY))
    weights["weights"] = "w.safetensors"
    P.write("weighted.json", weights)
    return [("model", "json", good["model"], lambda f: ("show", f)), ("model2", "json", good["model"], lambda f: ("show", f, "--dot")), ("onnx", "onnx", good["onnx"], lambda f: ("import", f, "-o", "imported.json")),
            ("rules", "rules", good["rules"], lambda f: ("rules", "list", f)), ("terms", "terms", good["terms"], lambda f: ("saturate", f, "--rules", rules, "--iterations", "2", "--nodes", "5000", "--seconds", "2")),
            ("saturate", "rules", [rules], lambda f: ("saturate", math, "--rules", f, "--iterations", "2", "--nodes", "5000", "--seconds", "2")),
            ("egraph", "json", good["egraph"], lambda f: ("extract", f, "--method", "greedy-dag")), ("best", "json", good["engine"], lambda f: ("extract", f, "--best", "3")), ("plan", "json", good["plan"], lambda f: ("apply", "zoo:resnet34-cifar10", f, "-o", "applied.json")),
            ("jobs", "json", good["jobs"], lambda f: ("batch", f, "--out", "batch", "--dry-run")), ("npy", "npy", good["npy"], lambda f: ("run", "compiled", "--input", f)),
            ("nest", "nests", good["nest"], lambda f: ("bundle", "--nests", f, "--target", "h200", "--out", "bundle")),
            ("results", "txt", [P.path / "results.txt"], lambda f: ("bundle", "import", pathlib.Path(f).parent)), ("store", "sqlite", [P.path / "latency.sqlite"], lambda f: ("store", "check", f)),
            ("result", "json", [P.path / "out/result.json"], lambda f: ("report", pathlib.Path(f).parent, "-o", "page.html")), ("sequences", "json", [P.path / "out/sequences.json"], lambda f: ("explain", pathlib.Path(f).parent))]


def outside():
    return {str(f) for f in P.path.rglob("*") if "HARM" in f.name}


def no_file_hurts():
    draw = random.Random(3)
    assert P.optimize("out").returncode == 0
    P.write("results.txt", "0" * 32 + " ok 1.5 0.1 10\n" + "1" * 32 + " wrong element 3 is 1\n")
    readers = commands()
    bad, peak, codes = [], 0, {}
    for i in range(FILES):
        name, ending, good, words = readers[i % len(readers)]
        raw = damage(draw.choice(good).read_bytes(), draw)
        folder = P.path / "hostile"
        folder.mkdir(exist_ok=True)
        if name == "results":
            P.write("hostile/index.json", {"target": "h200", "programs": [{"key": "0" * 32, "what": "(x)"}, {"key": "1" * 32, "what": "(y)"}]})
            file = P.write("hostile/results.txt", raw)
        elif name in ("result", "sequences"):
            for other in ("result.json", "sequences.json", "evidence.jsonl"):
                P.write(f"hostile/{other}", (P.path / "out" / other).read_bytes())
            (folder / "manifest.json").unlink(missing_ok=True)
            file = P.write(f"hostile/{name}.json", raw)
        else:
            file = P.write(f"hostile/{name}.{ending}", raw)
        r = P.run(*words(file), "--quiet" if name != "x" else "", limit=180, before=little)
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        peak = max(peak, used)
        codes[r.returncode] = codes.get(r.returncode, 0) + 1
        if r.returncode not in (0, 1, 2) or "internal fault" in r.stderr:
            keep = P.write(f"kept/{i}.{ending}", raw)
            bad.append((name, keep, r.returncode, r.stderr[-300:]))
        if "\x1b" in r.stdout + r.stderr:
            bad.append((name, "an escape sequence reached the terminal"))
    assert not bad, bad
    assert peak < 1024, f"{peak} MB"
    return f": {FILES} files over {len(readers)} readers, {codes}, at most {peak:.0f} MB"


NAMES = ["*/ int harm = system(\"touch HARMED\"); /*", "\"; system(\"touch HARMED\"); //", "'''", '"""\nopen("HARMED","w")\n"""', "\\", "\\\n#include <x>", "??/\n", "$(touch HARMED)", "`touch HARMED`", "; touch HARMED;",
         "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</script><script>", "=cmd|' /C calc'!A0", "+1+cmd", "@SUM(1)", "-2+3+cmd", "\t=1", "../../HARMED", "/etc/passwd", "a\x1b[2Jb", "a\rb", "%n%s%p", "{}{0}{1:9999}",
         "x" * 5000, "\u202eevil", "name with spaces", "#define x", "\"]; evil [label=\"", "--out", "-rf", "*", "[!a]", "conv1\n  evil: 1", "NUL", "\ufeffx", "\u0000x"]


def no_name_is_more_than_a_name():
    """Each name as the network's, a node's and an input's, through every text that we generate."""
    bad = []
    tried = 0
    names = NAMES if DEEP else NAMES[:6] + NAMES[10:12] + NAMES[13:14] + NAMES[20:21] + NAMES[28:29]
    for i, name in enumerate(names):
        model = json.loads(json.dumps(TINY))
        model["name"] = name
        model["inputs"][0]["name"] = model["nodes"][0]["inputs"][0] = name + "in"
        model["nodes"][0]["name"] = model["nodes"][1]["inputs"][0] = name
        file = P.write("named.json", model)
        if P.run("show", file).returncode == 1:   # refused by its reader: also an answer
            continue
        out = P.path / f"named{i}"
        for words in (("show", file), ("show", file, "--dot"), ("optimize", file, "--rules", "exact", "--trials", "1", "--out", out, "--quiet"), ("run", out), ("explain", out), ("report", out)):
            r = P.run(*words)
            tried += 1
            if r.returncode not in (0, 1) or "internal fault" in r.stderr or "\x1b" in r.stdout + r.stderr:
                bad.append((name, words[0], r.returncode, r.stderr[-300:]))
        for source in (out / "network.h", out / "original/network.c"):
            if source.exists() and any(word in source.read_text().replace("/* ", "").split("*/", 1)[1] for word in ("touch HARMED", "#include <x>")):
                bad.append((name, source.name))
        import ast
        if (out / "network.py").exists():
            tree = ast.parse((out / "network.py").read_text())
            if [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("open", "system")]:
                bad.append((name, "network.py"))
        if (out / "report.html").exists():
            page = (out / "report.html").read_text(errors="replace")
            if "<script>alert" in page or "<img src=x" in page:
                bad.append((name, "report.html"))
        if "HARM" in name and outside():
            bad.append((name, "executed", outside()))
    assert not bad, bad
    assert not outside(), outside()
    return f": {len(names)} names, {tried} texts"


run_cases([no_file_hurts, no_name_is_more_than_a_name])
