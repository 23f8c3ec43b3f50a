"""'loopegg adopt' puts trained weights into the network that a run returned: every form of it computes with them, and its kernels stay as they were."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import expect_certified, run_cases

LOOPEGG = os.path.abspath(sys.argv[1])
MODEL = str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "tiny-residual.json")
FOLDER = tempfile.TemporaryDirectory()
HOME = pathlib.Path(FOLDER.name)
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite")


def run(*words, code=0):
    done = subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, timeout=300, cwd=FOLDER.name)
    assert done.returncode == code, (words, done.returncode, done.stdout[-500:], done.stderr[-1500:])
    return done.stdout if code == 0 else done.stderr


def tensors(file):
    """The header of a .safetensors file, and its bytes."""
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), bytearray(data[8 + length:])


def write_tensors(file, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def hashes(folder, pattern):
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.glob(pattern))}


def outputs(what, name):
    """What a network computes, as numbers."""
    run("run", what, "--seed", 5, "--output", HOME / f"{name}.npy", "-q")
    data = (HOME / f"{name}.npy").read_bytes()
    body = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack(f"<{len(body) // 4}f", body)


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-3 * max(map(abs, b)) for x, y in zip(a, b))


def returned(name, *more):
    """A run, and weights that a training could have left: all of them other than before."""
    out = HOME / name
    run("optimize", MODEL, "--trials", 2, "--out", out, "-q", *more)
    header, data = tensors(out / "weights.safetensors")
    values = struct.unpack(f"<{len(data) // 4}f", data)
    write_tensors(HOME / f"{name}.safetensors", header, struct.pack(f"<{len(values)}f", *[1.5 * v + 0.01 if i % 3 else 0.5 * v for i, v in enumerate(values)]))
    return out, HOME / f"{name}.safetensors"


def check_adoption(out, trained):
    result = json.loads((out / "result.json").read_text())
    folder, before = out / result["returned"], outputs(out, "before")
    kernels, other = hashes(folder, "kernel*.o"), hashes(out / "original", "*")
    steps = json.loads((folder / "network.json").read_text())["steps"]
    (out / "mine.txt").write_text("a file of the user's own\n")
    run("adopt", out, trained, "-q")
    assert kernels and hashes(folder, "kernel*.o") == kernels, "its kernels are others"
    assert json.loads((folder / "network.json").read_text())["steps"] == steps, "its steps are others"
    assert result["returned"] == "original" or hashes(out / "original", "*") == other, "the other network was changed"
    assert tensors(out / "weights.safetensors") == tensors(trained)
    after = outputs(out, "after")
    assert not close(after, before) and close(after, outputs(out / "model.json", "interpreted")), (before, after)
    run("import", out / "model.onnx", "-o", HOME / "again.json", "-q")
    assert close(after, outputs(HOME / "again.json", "onnx")) and close(after, outputs(folder, "folder"))
    adopted = json.loads((out / "result.json").read_text())
    assert adopted.pop("adopted")["file"] == trained.name and adopted == result, "other figures"
    assert "VALID" not in run("explain", out, "--check") and (out / "report.html").exists() and (out / "mine.txt").exists()
    expect_certified(out)


def the_optimized_network_takes_trained_weights():
    out, trained = returned("optimized", "--max-loss", 20)
    assert json.loads((out / "result.json").read_text())["returned"] == "optimized"
    check_adoption(out, trained)


def an_original_that_was_returned_takes_them_too():
    check_adoption(*returned("kept", "--rules", "exact"))


def what_train_writes_is_taken_and_taken_again():
    out, _ = HOME / "optimized", None
    run("train", out, "--epochs", 1, "--limit", 64, "--batch", 16, "-q")
    for _ in range(2):
        said = json.loads(run("adopt", out, out / "trained.safetensors", "--json"))
        assert said["adopted"]["file"] == "trained.safetensors" and said["returned"] == "optimized", said
    assert close(outputs(out, "taken"), outputs(out / "trained.json", "trained"))


def weights_of_another_network_are_refused_and_the_folder_stays():
    out, trained = HOME / "optimized", HOME / "optimized.safetensors"
    before = hashes(out, "*.*")
    header, data = tensors(trained)
    name = next(n for n in header if n.endswith(".weight"))
    write_tensors(HOME / "missing.safetensors", {("other" if n == name else n): t for n, t in header.items()}, data)
    assert name in run("adopt", out, HOME / "missing.safetensors", "-q", code=1)
    shape = header[name]["shape"]
    write_tensors(HOME / "shape.safetensors", {**header, name: {**header[name], "shape": shape[::-1] + [1]}}, data)
    assert name in run("adopt", out, HOME / "shape.safetensors", "-q", code=1)
    (HOME / "text.safetensors").write_text("no tensors")
    assert "text.safetensors" in run("adopt", out, HOME / "text.safetensors", "-q", code=1)
    assert "loopegg optimize" in run("adopt", HOME, trained, "-q", code=1)
    assert hashes(out, "*.*") == before and "VALID" not in run("explain", out, "--check")


run_cases([the_optimized_network_takes_trained_weights, an_original_that_was_returned_takes_them_too, what_train_writes_is_taken_and_taken_again,
           weights_of_another_network_are_refused_and_the_folder_stays], "adopt: ")
