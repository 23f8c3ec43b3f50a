"""Single edits of the folder of a run, over every file and every kind of field: 'explain --check' notices each one."""
import json
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import DEEP, Place, run_cases

P = Place()
OUT = P.path / "out"
EDITS = int(os.environ.get("LOOPEGG_EDITS", "0")) or (300 if DEEP else 14)


def leaves(j, path=()):
    """Every field of a JSON value: (path, value)."""
    if isinstance(j, dict):
        for k, v in j.items():
            yield from leaves(v, path + (k,))
    elif isinstance(j, list):
        for i, v in enumerate(j):
            yield from leaves(v, path + (i,))
        if j:
            yield path, j
    else:
        yield path, j


def edited(value, draw):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return draw.choice([value + 1, -value - 1, value * 2 + 1])
    if isinstance(value, str):
        return draw.choice([value + "x", value[1:] + "y", "", value.replace("1", "2", 1) if "1" in value else value + "1"])
    if isinstance(value, list):
        return draw.choice([value[:-1], value + value[:1]])
    return "was null"


def put(j, path, value):
    for key in path[:-1]:
        j = j[key]
    j[path[-1]] = value


def one_edit(file, draw):
    """Changes the file; says what was done."""
    raw = file.read_bytes()
    if raw and file.suffix in (".json", ".jsonl") and draw.random() < 0.8:
        lines = file.suffix == ".jsonl"
        texts = [t for t in raw.decode().split("\n") if t] if lines else [raw.decode()]
        at = draw.randrange(len(texts))
        j = json.loads(texts[at])
        path, value = draw.choice(list(leaves(j)))
        new = edited(value, draw)
        if path and new != value:
            put(j, path, new)
            texts[at] = json.dumps(j)
            file.write_text("\n".join(texts) + "\n" if lines else texts[0])
            return f"{file.name} {'.'.join(map(str, path))}"
    kind = draw.choice(["flip", "cut", "more", "empty", "gone"]) if raw else draw.choice(["more", "gone"])
    if kind == "flip":
        at = draw.randrange(len(raw))
        file.write_bytes(raw[:at] + bytes([raw[at] ^ (1 << draw.randrange(8))]) + raw[at + 1:])
    elif kind == "cut":
        file.write_bytes(raw[:draw.randrange(len(raw))])
    elif kind == "more":
        file.write_bytes(raw + b"\n{}")
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    return f"{file.name} {kind}"


MASK = 2**64 - 1


def scramble(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def rotl(x, n):
    return (x << n | x >> (64 - n)) & MASK


def hash_of(data):
    """src/base/hash.cpp in other words: who can edit a file can edit its line in the manifest."""
    a, b, words = 0x6c6f6f7065676721, 0x9ae16a3b2f90404f, 0

    def mix(word):
        nonlocal a, b, words
        words += 1
        a = (rotl(a ^ scramble(word), 29) * 0x9fb21c651e98df25 + b) & MASK
        b = (rotl(b ^ scramble((word + 0x9e3779b97f4a7c15) & MASK), 37) * 0xd6e8feb86659fd93 + a) & MASK
    mix(len(data))
    for i in range(0, len(data), 8):
        mix(int.from_bytes(data[i:i + 8], "little"))
    x = scramble((a + words) & MASK)
    y = scramble(b ^ rotl(x, 17))
    return f"{scramble((x + y) & MASK):016x}{y:016x}"


def reseal(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in list(manifest["files"]):
        file = folder / name
        if not file.exists():
            del manifest["files"][name]
            continue
        data = file.read_bytes()
        if len(data) < 300_000:
            manifest["files"][name] = {"bytes": len(data), "hash": hash_of(data)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def made():
    if not OUT.exists():
        model = pathlib.Path(__file__).resolve().parents[3] / "examples" / "tiny-residual.json"
        P.done("optimize", model, "--trials", "3", "--max-loss", "20", "--out", "out", "--quiet")
        P.done("explain", "out", "--check")
        for file in OUT.rglob("*"):
            if file.is_file() and file.stat().st_nlink > 1:   # links would change two files by one edit
                data = file.read_bytes()
                file.unlink()
                file.write_bytes(data)
    return sorted(f for f in OUT.rglob("*") if f.is_file() and not f.name.startswith("."))


def every_edit_of_a_file_is_noticed():
    draw = random.Random(5)
    files = made()
    missed = []
    for i in range(EDITS):
        file = files[i % len(files)]
        raw = file.read_bytes()
        what = one_edit(file, draw)
        r = P.run("explain", "out", "--check")
        if r.returncode != 1:
            missed.append((what, r.returncode, r.stderr[-300:]))
        file.write_bytes(raw)
        if i % 20 == 19:
            print(f"  {i + 1} of {EDITS} edits, {len(missed)} not noticed", file=sys.stderr, flush=True)
    P.done("explain", "out", "--check")
    assert not missed, missed
    return f": {EDITS} edits of {len(files)} files"


# What means something by itself: noticed also when the manifest was made to fit.
MEANINGFUL = [("plan.json", lambda j: j.update(steps=[])), ("model.json", lambda j: j["nodes"][0]["attrs"].update(out_channels=8)), ("model.json", lambda j: j["nodes"].pop()),
              ("original.json", lambda j: j["nodes"][0]["attrs"].update(out_channels=8)),
              ("sequences.json", lambda j: j["sites"].pop()), ("sequences.json", lambda j: j["sites"][1].update(original=j["sites"][1]["chosen"], proofs=[], steps=[], key="")),
              ("sequences.json", lambda j: j["sites"][1].update(chosen=j["sites"][1]["original"])), ("sequences.json", lambda j: j["sites"][0].update(name="conv9")),
              ("result.json", lambda j: j["optimized"].update(parameters=1)), ("result.json", lambda j: j["original"].update(macs=10**9)), ("result.json", lambda j: j.update(speedup=100.0)),
              ("result.json", lambda j: j["sites"].pop()), ("result.json", lambda j: j["guard"].update(allowed=False)), ("result.json", lambda j: j.update(returned="neither")),
              ("result.json", lambda j: j["sites"][1].update(variant="(domain)")), ("network.json", lambda j: j["inputs"][0].update(shape=[1, 16, 16, 3])), ("network.json", lambda j: j["steps"].pop()),
              ("result.json", lambda j: j.update({"class": "mobile"})), ("result.json", lambda j: j["sites"][0].update(effect="nothing")), ("result.json", lambda j: j["sites"][0].update(pseudo_after="for ever")),
              ("result.json", lambda j: j["sites"][0]["latency"].update(target="nano")), ("result.json", lambda j: j["optimized"].update(target="nano")), ("result.json", lambda j: j["metrics"].update(weights_mb=0.5)),
              ("network.json", lambda j: j.update(weight_floats=j["weight_floats"] + 1))]


# Of other networks than the returned one, and of files that are made of others.
MEANINGFUL += [("network.json", lambda j: j["kernels"][0].update(nest=j["kernels"][-1]["nest"])),
               ("result.json", lambda j: j["guard"].update(threshold=j["guard"]["threshold"] / 2)), ("result.json", lambda j: j["guard"]["loss"].update(points=0.1)), ("result.json", lambda j: j.update(batch=2)),
               ("result.json", lambda j: j["sites"][-1].update({k: j["sites"][-1][k.replace("after", "before")] for k in ("nest_after", "pseudo_after")})), ("result.json", lambda j: j["networks"][0].update(macs=1)),
               ("original/network.json", lambda j: j["kernels"][0].update(nest=j["kernels"][-1]["nest"])), ("finalists/front-1/plan.json", lambda j: j["steps"].pop()),
               ("finalists/front-1/model.json", lambda j: j["nodes"][0]["attrs"].update(out_channels=8)),
               ("certificate.json", lambda j: j["claims"]["returned"].update(macs=1)), ("certificate.json", lambda j: j["files"].pop("model.json")),
               ("certificate.json", lambda j: j.update(final=j["final"] + " ")), ("certificate.json", lambda j: j.update(more=1))]


def replaced(old, new):
    return lambda raw, folder: raw.replace(old, new, 1)


def of_another(name):
    return lambda raw, folder: (folder / name).read_bytes()


def kept_more(raw, folder):
    """Every verdict of the guard is better than it was, and agrees with itself."""
    rows = [json.loads(line) for line in raw.decode().splitlines()]
    for e in rows:
        e["kept"] = (1 + e["kept"]) / 2
        for measure in e["measures"]:
            measure["value"] = measure.get("value", 1) / 2
    return "".join(json.dumps(e) + "\n" for e in rows).encode()


# What is no JSON: the file, and what it becomes.
MEANINGFUL_TEXTS = [("network.h", replaced(b"(", b" (")), ("optimized/network.h", replaced(b"(", b" (")), ("optimized/network.c", replaced(b"static const long", b"static long")), ("original/network.c", replaced(b"static const long", b"static long")),
                    ("original/kernel000.o", of_another("original/kernel001.o")), ("original/network.so", of_another("network.so")), ("optimized/kernel001.o", of_another("optimized/kernel000.o")),
                    ("original/weights.bin", of_another("weights.bin")), ("finalists/front-1/network.py", replaced(b"padding=(1, 1)", b"padding=(0, 0)")), ("evidence.jsonl", kept_more)]


def is_not_noticed(name, edited):
    """What the check says of a file with other bytes under a manifest that fits; None where it notices the edit."""
    file, manifest = OUT / name, OUT / "manifest.json"
    raw, seal = file.read_bytes(), manifest.read_bytes()
    file.write_bytes(edited)
    reseal(OUT)
    r = P.run("explain", "out", "--check")
    file.write_bytes(raw)
    manifest.write_bytes(seal)
    return None if r.returncode == 1 else (r.stdout[-300:], r.stderr[-300:])


def damaged(name, raw, changed):
    if name == "network.so":
        return (OUT / "original" / name).read_bytes() if changed else raw[:-200]
    if name == "evidence.jsonl":
        return b""
    if name == "network.py":
        return raw.replace(b"padding=(1, 1)", b"padding=(0, 0)", 1)
    at = len(raw) - 64 if name == "weights.safetensors" else len(raw) // 2
    return raw[:at] + bytes(b ^ 0x41 for b in raw[at:at + 4]) + raw[at + 4:]


def edited_runs(changed):
    """The edits: the name of a file, and its other bytes. No other network may be a finalist, and then its files are not there."""
    for name, change in MEANINGFUL:
        if not (OUT / name).exists():
            continue
        j = json.loads(raw := (OUT / name).read_bytes())
        change(j)
        if j != json.loads(raw):
            yield name, json.dumps(j).encode()
    for name in ("network.so", "weights.bin", "weights.safetensors", "model.onnx", "network.py", "evidence.jsonl"):
        if changed or name != "evidence.jsonl":
            yield name, damaged(name, (OUT / name).read_bytes(), changed)
    for name, change in MEANINGFUL_TEXTS:
        if not (OUT / name).exists():
            continue
        raw = (OUT / name).read_bytes()
        edited = change(raw, OUT)
        assert edited != raw, name
        yield name, edited


def what_means_something_is_noticed_even_under_a_manifest_that_fits():
    files = made()
    changed = json.loads((OUT / "plan.json").read_text())["steps"] != []
    missed, tried = [], 0
    for name, edited in edited_runs(changed):
        tried += 1
        if said := is_not_noticed(name, edited):
            missed.append((name, tried, *said))
    P.done("explain", "out", "--check")
    assert not missed, missed
    assert files
    return f": {tried} edits"


run_cases([every_edit_of_a_file_is_noticed, what_means_something_is_noticed_even_under_a_manifest_that_fits])
