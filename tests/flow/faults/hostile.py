"""Hostile files and names over every reader and every generated text: nothing is executed, nothing is written outside, nothing crashes, memory stays below 1 GB.

Files are seeded damage to good ones (cut, flipped, repeated, swapped, huge numbers, deep nesting) and files made to hurt; names try to end comments, strings, tags, cells and words of
C, Python, HTML, DOT, CSV, shell, Slurm and terminals. LOOPEGG_HOSTILE=N tries N files.
"""
import ast
import collections
import csv
import html.parser
import io
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "fuzz")]
import corpus
import tiny_onnx
from place import DEEP, LOOPEGG, TINY, Place, run_cases

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FILES = int(os.environ.get("LOOPEGG_HOSTILE", "0")) or (1000 if DEEP else 90)
MEMORY = 1024   # MB that any process of ours may take
P = Place()
CORPUS = P.path / "corpus"
corpus.unpack(CORPUS)

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


class Reader:
    """Good files of one kind, and the words that read a damaged one of them."""

    def __init__(self, name, ending, good, words, folder=None, file=None):
        self.name, self.ending, self.good, self.words = name, ending, good, words
        self.folder, self.file = folder, file   # a folder of ours that the file is one of

    def put(self, raw):
        if self.folder is None:
            return P.write(f"hostile/{self.name}.{self.ending}", raw)
        P.write(f"{self.folder}/{self.file}", raw)
        return str(P.path / self.folder)


def folder_of(name, source, file, sealed=True):
    """A copy of a folder in which the file may be anything: its line in the manifest is gone, or the manifest itself is gone."""
    folder = P.path / name
    shutil.copytree(P.path / source, folder)
    manifest = folder / "manifest.json"
    if sealed and file != "manifest.json":
        j = json.loads(manifest.read_text())
        del j["files"][file]
        manifest.write_text(json.dumps(j))
    elif not sealed:
        manifest.unlink(missing_ok=True)
    return name


def readers():
    rules, math = SOURCE / "rules/math.rules", SOURCE / "examples/math.terms"
    good = {k: sorted((CORPUS / k).iterdir()) for k in ("model", "onnx", "rules", "egraph", "engine", "plan", "target", "jobs", "npy", "nest")}
    good["rules"] += [rules, SOURCE / "rules/neural.rules"]
    subprocess.run([sys.executable, "-I", SOURCE / "tests/errors/graph/make.py", P.path / "broken"], check=True)
    good["onnx"] += sorted(f for f in (P.path / "broken").glob("*.onnx") if f.is_file())
    assert P.optimize("out").returncode == 0
    P.done("compile", P.model, "--out", "compiled")
    P.done("export", P.model, "-o", "seed.onnx")
    P.write("bundle/index.json", {"target": "h200", "id": "b", "programs": [{"key": "0" * 32, "what": "(x)"}, {"key": "1" * 32, "what": "(y)"}]})
    P.write("bundle/results.txt", "loopegg-results 1 b\n" + "0" * 32 + " ok 1.5 0.1 10\n" + "1" * 32 + " wrong element 3 is 1\n")
    P.write("accuracies.json", {"original": 95.7, "front-1": [95.1, 95.3]})
    half = {"steps": [{"site": "conv1", "apply": [{"rule": "bottleneck-output", "with": {"?w": 4}, "restore": "propagate"}]}]}
    P.write("trainings.jsonl", "".join(json.dumps({"plan": p, "accuracy": a}) + "\n" for p, a in (({"steps": []}, 95.7), (half, 95.1))))
    P.write("data/images.npy", (CORPUS / "npy/f4").read_bytes())
    P.write("network/model.json", (P.path / "out/model.json").read_bytes())
    P.write("network/weights.safetensors", (P.path / "out/weights.safetensors").read_bytes())
    few = ("--iterations", "2", "--nodes", "5000", "--seconds", "2")

    def plain(name, ending, files, words):
        return Reader(name, ending, files, words)

    def inside(name, source, file, words, sealed=True):
        return Reader(name, "", [P.path / source / file], words, folder_of(f"in-{name}", source, file, sealed), file)
    shutil.copytree(P.path / "bundle", P.path / "bundle2")
    all = [plain("model", "json", good["model"], lambda f: ("show", f)), plain("dot", "json", good["model"], lambda f: ("show", f, "--dot")),
           plain("model-to-python", "json", good["model"], lambda f: ("export", f, "-o", "exported.py")),
           plain("onnx", "onnx", good["onnx"] + [P.path / "seed.onnx"], lambda f: ("import", f, "-o", "imported.json")),
           plain("onnx-to-onnx", "onnx", good["onnx"] + [P.path / "seed.onnx"], lambda f: ("export", f, "-o", "exported.onnx")),
           Reader("weights", "", [P.path / "out/weights.safetensors"], lambda f: ("run", f"{f}/model.json"), "network", "weights.safetensors"),
           plain("rules", "rules", good["rules"], lambda f: ("rules", "list", f)), plain("rules-check", "rules", [rules], lambda f: ("rules", "check", f)),
           plain("terms", "terms", [math], lambda f: ("saturate", f, "--rules", rules, *few)), plain("term", "terms", [math], lambda f: ("term", f)),
           plain("saturate", "rules", [rules], lambda f: ("saturate", math, "--rules", f, *few)),
           plain("egraph", "json", good["egraph"], lambda f: ("extract", f, "--method", "greedy-dag")), plain("best", "json", good["engine"], lambda f: ("extract", f, "--best", "3")),
           plain("plan", "json", good["plan"], lambda f: ("apply", "zoo:resnet34-cifar10", f, "-o", "applied.json")),
           plain("jobs", "json", good["jobs"], lambda f: ("batch", f, "--out", "batch", "--dry-run")), plain("npy", "npy", good["npy"], lambda f: ("run", "compiled", "--input", f)),
           Reader("target", "", good["target"], lambda f: ("targets",), "targets", "damaged.json"),
           plain("nest", "nests", good["nest"], lambda f: ("bundle", "--nests", f, "--target", "h200", "--out", "bundled")),
           Reader("results", "", [P.path / "bundle/results.txt"], lambda f: ("bundle", "import", f, "--store", "other.sqlite"), "bundle", "results.txt"),
           Reader("index", "", [P.path / "bundle/index.json"], lambda f: ("bundle", "import", f, "--store", "other.sqlite"), "bundle2", "index.json"),
           plain("store", "sqlite", [P.path / "latency.sqlite"], lambda f: ("store", "check", f)), plain("store-repair", "sqlite", [P.path / "latency.sqlite"], lambda f: ("store", "repair", f)),
           plain("used-store", "sqlite", [P.path / "latency.sqlite"], lambda f: ("measure", "compiled", "--rounds", "1", "--store", f)),
           inside("result", "out", "result.json", lambda f: ("report", f, "-o", "page.html"), False), inside("evidence", "out", "evidence.jsonl", lambda f: ("report", f, "-o", "page.html"), False),
           inside("sequences", "out", "sequences.json", lambda f: ("explain", f), False), inside("study", "out", "result.json", lambda f: ("study", f, "--out", "studied"), False),
           inside("chosen", "out", "result.json", lambda f: ("choose", f, "--accuracies", "accuracies.json")),
           plain("accuracies", "json", [P.path / "accuracies.json"], lambda f: ("choose", "out", "--accuracies", f)),
           plain("trainings", "jsonl", [P.path / "trainings.jsonl"],
                 lambda f: ("score", P.model, "--trainings", f, "--measure", "params", "--seeds", "1", "--batch", "2", "--no-store")),
           inside("checked-plan", "out", "plan.json", lambda f: ("explain", f, "--check")), inside("checked-original", "out", "original.json", lambda f: ("explain", f, "--check")),
           inside("manifest", "compiled", "manifest.json", lambda f: ("run", f)), inside("network", "compiled", "network.json", lambda f: ("run", f)),
           inside("weights-bin", "compiled", "weights.bin", lambda f: ("run", f)), inside("library", "compiled", "network.so", lambda f: ("run", f)),
           Reader("data", "", good["npy"], lambda f: ("score", P.model, "--measure", "params", "--seeds", "1", "--batch", "2", "--no-store", "--data", f), "data", "images.npy")]
    return all


def outside():
    return {str(f) for f in P.path.rglob("*") if "HARM" in f.name}


def faults_of(r):
    """The faults of a run: what the program must not say or do, whatever it read."""
    if r.returncode not in (0, 1, 2) or "internal fault" in r.stderr:
        yield f"ended with {r.returncode}: {r.stderr[-300:]}"
    if "\x1b" in r.stdout + r.stderr:
        yield "an escape sequence reached the terminal"
    if r.returncode and not r.stderr.strip() and not r.stdout.strip():
        yield "it failed without a word"


def no_file_hurts():
    draw = random.Random(3)
    all = readers()
    bad, codes, by_reader = [], collections.Counter(), collections.Counter()
    for i in range(FILES):
        reader = all[i % len(all)]
        raw = damage(draw.choice(reader.good).read_bytes(), draw)
        where = reader.put(raw)
        r = P.run(*reader.words(where), "--quiet", limit=180, before=little)
        codes[r.returncode] += 1
        by_reader[reader.name] += 1
        for fault in faults_of(r):
            bad.append((reader.name, P.write(f"kept/{i}-{reader.name}", raw), fault))
        if reader.name == "target":
            (P.path / "targets/damaged.json").unlink()
        if i % 50 == 49:
            print(f"  {i + 1} of {FILES} files, {len(bad)} did harm", file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if bad and os.environ.get("LOOPEGG_KEEP"):
        shutil.copytree(P.path / "kept", os.environ["LOOPEGG_KEEP"], dirs_exist_ok=True)
    assert not bad, "\n".join(map(str, bad))
    assert not outside(), outside()
    assert peak < MEMORY, f"{peak} MB"
    return f": {FILES} files over {len(by_reader)} readers, ended with {dict(codes)}, at most {peak:.0f} MB"


def sizes_that_are_only_announced_are_not_allocated():
    """Small files that announce gigabytes: each is refused, or read as the few bytes that it holds."""
    nodes = {f"n{i}": {"op": "f", "children": [f"n{i - 1}"] * 1000 if i else [], "eclass": f"c{i}", "cost": 1} for i in range(4)}
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 65536, 4), }"
    npy = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    tensors = json.dumps({"w": {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 2**42]}}).encode()
    big = json.loads(json.dumps(TINY))
    big["inputs"][0]["shape"] = [65536, 4096, 4096, 4096]
    wide = json.loads(json.dumps(TINY))
    wide["nodes"][0]["attrs"]["out_channels"] = 2**31
    padded = json.loads(json.dumps(TINY))
    padded["nodes"][0]["attrs"]["padding"] = [2**30, 2**30]
    # field 7 (graph) of ModelProto is said to be 2 GB long; an initializer (field 5) of graph has dims 2^20 x 2^20 and no data
    huge_graph = b"\x08\x08\x3a\xff\xff\xff\xff\x07"
    no_data = b"\x08\x08\x42\x02\x10\x0e\x3a\x10\x2a\x0e\x08\x80\x80\x40\x08\x80\x80\x40\x10\x01\x42\x01w\x4a\x00"
    unfolds = [tiny_onnx.model([tiny_onnx.one("c"), tiny_onnx.integers("to", [2**n]), tiny_onnx.node("Expand", ["c", "to"], ["w"]), tiny_onnx.node("ReduceSum", ["w"], ["s"]), tiny_onnx.node("Add", ["x", "s"], ["y"])], [1, 2])
               for n in (24, 25, 27, 28)]
    P.done("compile", P.model, "--out", "sized")
    cases = [("show", "big.json", json.dumps(big).encode()), ("run", "big.json", json.dumps(big).encode()), ("export", "big.json", json.dumps(big).encode()), ("show", "wide.json", json.dumps(wide).encode()),
             ("run", "wide.json", json.dumps(wide).encode()), ("compile", "wide.json", json.dumps(wide).encode()), ("run", "padded.json", json.dumps(padded).encode()), ("compile", "padded.json", json.dumps(padded).encode()),
             ("import", "graph.onnx", huge_graph), ("import", "data.onnx", no_data), *[("import", f"unfolds{i}.onnx", raw) for i, raw in enumerate(unfolds)], ("run", "x.npy", npy), ("extract", "wide-egraph.json", json.dumps({"nodes": nodes, "root_eclasses": ["c3"]}).encode()),
             ("term", "deep.terms", b"(" * 1_000_000), ("rules", "deep.rules", b"(rule x " + b"(f " * 500_000), ("show", "deep.json", b"[" * 1_000_000), ("plan", "plan.json", b'{"steps": [' + b"[" * 200_000),
             ("saturate", "for.rules", b"(rule grow (f ?x) => (g ?a ?b) :for ?a (range 0 1000000000) :for ?b (range 0 1000000000))"), ("tensors", "network2/weights.safetensors", len(tensors).to_bytes(8, "little") + tensors),
             ("tensors", "network2/weights.safetensors", (2**62).to_bytes(8, "little") + tensors)]
    P.write("network2/model.json", (P.path / "out/model.json").read_bytes() if (P.path / "out").exists() else json.dumps(dict(TINY, weights="weights.safetensors")))
    P.write("fx.terms", "(f x)\n")
    bad = []
    for kind, name, raw in cases:
        file = P.write(name, raw)
        words = {"show": ("show", file), "run": ("run", "sized", "--input", file) if name.endswith("npy") else ("run", file), "export": ("export", file, "-o", "sized.onnx"), "compile": ("compile", file, "--out", "sized2"),
                 "import": ("import", file, "-o", "sized.json"), "extract": ("extract", file, "--method", "greedy-dag"), "term": ("term", file), "rules": ("rules", "list", file), "plan": ("apply", P.model, file, "-o", "y.json"),
                 "saturate": ("saturate", "fx.terms", "--rules", file, "--seconds", "2", "--nodes", "5000"), "tensors": ("run", "network2/model.json")}[kind]
        usage = P.path / "usage"
        # A process of its own waits for the program, so that the peak is this run's alone.
        watch = "import resource, subprocess, sys\nr = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL)\nopen(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))\nsys.exit(r.returncode if r.returncode >= 0 else 128 - r.returncode)"
        r = subprocess.run([sys.executable, "-I", "-c", watch, str(usage), LOOPEGG, *map(str, words)], capture_output=True, text=True, errors="replace", cwd=P.path, env=P.environment, timeout=180, preexec_fn=little)
        peak = int(usage.read_text())
        bad += [(name, words[0], fault) for fault in faults_of(r)]
        if peak > MEMORY:
            bad.append((name, words[0], f"{peak} MB"))
    assert not bad, "\n".join(map(str, bad))
    return f": {len(cases)} files"


NAMES = ["*/ int harm = system(\"touch HARMED\"); /*", "\"; system(\"touch HARMED\"); //", "'''", '"""\nopen("HARMED","w")\n"""', "\\", "\\\n#include <x>", "??/\n", "$(touch HARMED)", "`touch HARMED`", "; touch HARMED;",
         "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</script><script>", "=cmd|' /C calc'!A0", "+1+cmd", "@SUM(1)", "-2+3+cmd", "\t=1", "../../HARMED", "/etc/passwd", "a\x1b[2Jb", "a\rb", "%n%s%p", "{}{0}{1:9999}",
         "x" * 5000, "\u202eevil", "name with spaces", "#define x", "\"]; evil [label=\"", "--out", "-rf", "*", "[!a]", "conv1\n  evil: 1", "NUL", "\ufeffx", "\u0000x", "javascript:alert(1)", "' onload='alert(1)", "]]><script>alert(1)",
         "\\\"; system(\"touch HARMED\"); //", "\" + open(\"HARMED\", \"w\") + \"", "$HARMED", "${IFS}touch${IFS}HARMED", "a\nb\n#SBATCH --wrap=touch", "x,y\",\"z", "\u2028x", "%00", "\udc80"]


class Page(html.parser.HTMLParser):
    """Collects the scripts, handlers and addresses of a page. None of them may be made from a name."""

    def __init__(self, text):
        super().__init__()
        self.found, self.in_script = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.in_script = tag == "script"
        for name, value in attributes:
            if name.startswith("on") or "alert(1)" in (value or "") and name in ("src", "href") or tag == "img" and value == "x":
                self.found.append((tag, name, value))

    def handle_data(self, data):
        if self.in_script and re.match(r"\s*alert\(1\)", data):
            self.found.append(("script", data))


def csv_faults(file):
    text = file.read_text(errors="replace")
    rows = list(csv.reader(io.StringIO(text)))
    if len({len(r) for r in rows}) > 1:
        yield f"{file.name}: rows of different lengths"
    for row in rows:
        for cell in row:
            if cell[:1] in ("=", "@", "\t", "\r") or cell[:1] in ("+", "-") and not re.fullmatch(r"[-+.0-9eE]+", cell):
                yield f"{file.name}: a cell that a spreadsheet runs: {cell[:60]}"


def text_faults(folder):
    for f in folder.rglob("*"):
        # Symbols begin with the network's name, in which everything but letters and digits is an underscore.
        if f.suffix in (".c", ".h") and re.search(r"\bHARMED|#include <x>|#define x", re.sub(r"/\*.*?\*/|\"(\\.|[^\"\\])*\"", "", f.read_text(), flags=re.S)):
            yield f"{f.name}: a name is code"
        elif f.suffix == ".py":
            if [n for n in ast.walk(ast.parse(f.read_text())) if isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("open", "system")]:
                yield f"{f.name}: a name is code"
        elif f.suffix in (".html", ".svg") and (found := Page(f.read_text(errors="replace")).found):
            yield f"{f.name}: {found}"
        elif f.suffix == ".csv":
            yield from csv_faults(f)


def renamed(j, name):
    """The same JSON with the network's, the site's and the input's names replaced, and every text that people read."""
    if isinstance(j, dict):
        return {k: renamed(v, name) for k, v in j.items()}
    if isinstance(j, list):
        return [renamed(v, name) for v in j]
    return name if j in ("tiny", "conv1", "x", "dense", "exact") else j


def no_name_is_more_than_a_name():
    """Each name as the network's, a node's and an input's, through every text that we generate: C, Python, DOT, ONNX, HTML, SVG, CSV, a terminal's lines."""
    bad, tried, texts = [], 0, 0
    if not (P.path / "out").exists():
        assert P.optimize("out").returncode == 0
    names = NAMES if DEEP else NAMES[:6] + NAMES[10:12] + NAMES[13:14] + NAMES[20:21] + NAMES[28:29]
    for i, name in enumerate(names):
        model = json.loads(json.dumps(TINY))
        model["name"] = name
        model["inputs"][0]["name"] = model["nodes"][0]["inputs"][0] = name + "in"
        model["nodes"][0]["name"] = model["nodes"][1]["inputs"][0] = name
        file, top = P.write("named.json", model), P.path / f"named{i}"
        top.mkdir()
        run = top / "run"
        shutil.copytree(P.path / "out", run, ignore=lambda _, files: [f for f in files if f == "manifest.json" or f.endswith((".so", ".bin", ".c", ".h", ".py"))])
        for part in ("result.json", "sequences.json", "network.json"):
            (run / part).write_text(json.dumps(renamed(json.loads((run / part).read_text()), name)))
        jobs = P.write("named-jobs.json", {"models": [name], "rules": [name], "guards": [name]})
        commands = [("report", run, "-o", top / "report.html"), ("explain", run), ("study", run, "--out", top / "study"), ("batch", jobs, "--out", top / "batch"), ("batch", jobs, "--out", top / "batch", "--dry-run"),
                    ("batch", jobs, "--out", top / "batch", "--status"), ("dashboard", top / "batch"), ("show", name), ("targets", "check", name), ("store", "check", name), ("rules", "list", name)]
        if P.run("show", file).returncode != 1:   # refused by its reader: also an answer
            commands += [("show", file), ("show", file, "--dot"), ("show", file, "--json"), ("export", file, "-o", top / "named.onnx"), ("show", top / "named.onnx"), ("export", file, "-o", top / "named.py"),
                         ("compile", file, "--out", top / "compiled"), ("run", top / "compiled"), ("measure", top / "compiled", "--rounds", "1")]
        for words in commands:
            if any("\0" in str(w) or "\udc80" in str(w) for w in words):   # no word of a command line
                continue
            r = P.run(*words)
            tried += 1
            bad += [(name, words[0], fault) for fault in faults_of(r)]
        bad += [(name, fault) for fault in text_faults(top)]
        texts += sum(1 for f in top.rglob("*") if f.suffix in (".c", ".h", ".py", ".html", ".svg", ".csv", ".onnx"))
        shutil.rmtree(top)
    assert not bad, "\n".join(map(str, bad))
    assert not outside(), outside()
    return f": {len(names)} names, {tried} commands, {texts} texts"


def a_batch_file_runs_no_command_and_writes_nowhere_else():
    """Options that would run a command or write elsewhere, in every disguise that a command line knows."""
    bad, tried = [], 0
    elsewhere = P.path / "elsewhere"
    for models, options in ((["--runner=touch HARMED {}"], {}), (["-o"], {}), (["--help"], {}), ([P.model], {"runner": "touch HARMED {}"}), ([P.model], {"runner=touch HARMED {}": True}), ([P.model], {f"out={elsewhere}": True}),
                            ([P.model], {"out": str(elsewhere)}), ([P.model], {"store": str(elsewhere / "s.sqlite")}), ([P.model], {"store=x": True}), ([P.model], {"o": str(elsewhere)}), ([P.model], {"-out": str(elsewhere)}),
                            ([P.model], {"trials 1 --out": str(elsewhere)}), ([P.model], {"": "x"})):
        jobs = P.write("hostile-jobs.json", {"models": models, "options": options})
        r = P.run("batch", jobs, "--out", "hostile-batch", "--quiet")
        tried += 1
        if r.returncode not in (1, 2) or not r.stderr.strip() or elsewhere.exists() or outside() or (P.path / "hostile-batch").exists():
            bad.append((models, options, r.returncode, r.stderr[-300:], outside()))
    assert not bad, "\n".join(map(str, bad))
    return f": {tried} files"


run_cases([no_file_hurts, sizes_that_are_only_announced_are_not_allocated, no_name_is_more_than_a_name, a_batch_file_runs_no_command_and_writes_nowhere_else])
