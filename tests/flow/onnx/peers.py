"""Compares other people's models with ONNX's own tests and ONNX Runtime, where these are installed: peers.py LOOPEGG_PROGRAM SOURCE_FOLDER.

LOOPEGG_PEERS names a virtual environment with onnx, onnxruntime (bench/peers makes one) and, for models, torch, torchvision and timm; LOOPEGG_MODELS a
folder that 'bench/anyones_models.py export' wrote. Both take minutes, so LOOPEGG_DEEP=1 alone runs them; the tutorial's own line is run in any case.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, OnlyDeep, Skipped, run_cases

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
PYTHON = pathlib.Path(os.environ.get("LOOPEGG_PEERS", SOURCE / ".deps/peers")) / "bin/python3"


def ask(script, *words):
    if os.environ.get("LOOPEGG_DEEP", "") in ("", "0"):
        raise OnlyDeep("it takes minutes")
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import onnx, onnxruntime, numpy"], capture_output=True).returncode:
        raise Lacking("no onnx and onnxruntime in .deps/peers")
    ran = subprocess.run([PYTHON, SOURCE / "bench" / script, *words, "--loopegg", PROGRAM], capture_output=True, text=True)
    return ran.returncode, ran.stdout


def what_is_read_of_onnx_s_node_tests_is_right():
    code, said = ask("onnx_node_tests.py")
    assert code == 0, said[-2000:]
    return ": " + said.strip().splitlines()[-1]


def models():
    if os.environ.get("LOOPEGG_DEEP", "") in ("", "0"):
        raise OnlyDeep("it takes minutes")
    folder = os.environ.get("LOOPEGG_MODELS")
    if not folder:
        raise Skipped("LOOPEGG_MODELS names no folder (bench/anyones_models.py export DIR writes it)")
    return folder


def models_that_others_export_compute_what_onnx_runtime_computes():
    code, said = ask("anyones_models.py", "check", models())
    assert code == 0, "\n".join(line for line in said.splitlines() if ": right" not in line)[-2000:]
    return ": " + "; ".join(line for line in said.splitlines() if " read, " in line)


def what_comes_back_of_them_computes_in_onnx_runtime_what_network_so_computes():
    folder = models()
    with tempfile.TemporaryDirectory() as out:
        code, said = ask("what_comes_back.py", folder, out, "--most", "inf")   # how long it takes is told, and judged by people
    assert code == 0, said[-2000:]
    return ": " + said.strip().splitlines()[-1]


TUTORIAL = """
import numpy, onnxruntime, torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16), nn.SiLU(), nn.Conv2d(16, 16, 1))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Sigmoid())
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    def forward(self, x):
        x = self.stem(x)
        y = self.deep(x)
        return self.head(x + y * self.squeeze(y))
torch.manual_seed(0)
model = Block()
LINE
session = onnxruntime.InferenceSession("mine.onnx")
x = torch.randn(1, 3, 32, 32).numpy()
numpy.save("x.npy", x), numpy.save("theirs.npy", session.run(None, {session.get_inputs()[0].name: x})[0])
"""


def the_tutorial_s_own_line_of_pytorch_is_read_and_computed_right():
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import onnxscript, onnxruntime, torch"], capture_output=True).returncode:
        raise Lacking("no torch, onnxscript and onnxruntime in .deps/peers")
    fence = re.search(r"```python\n(torch\.onnx\.export\(.*?)```", (SOURCE / "docs/tutorial/README.md").read_text(), re.S)
    assert fence, "the tutorial has no fence of Python that begins with torch.onnx.export"
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([PYTHON, "-c", TUTORIAL.replace("LINE", fence[1])], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:]
        for words in (["import", "mine.onnx", "-o", "mine.json"], ["run", "mine.onnx", "--input", "x.npy", "--output", "ours.npy"]):
            ran = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr[-2000:]
        compare = 'import numpy; a, b = numpy.load("ours.npy"), numpy.load("theirs.npy"); assert a.shape == b.shape; print(abs(a - b).max() / abs(b).max())'
        worst = float(subprocess.run([PYTHON, "-c", compare], cwd=folder, check=True, capture_output=True, text=True).stdout)
        assert worst < 1e-4, worst
        return ": " + ", ".join(sorted(p.name for p in pathlib.Path(folder).glob("mine.onnx*")))


run_cases([the_tutorial_s_own_line_of_pytorch_is_read_and_computed_right, what_is_read_of_onnx_s_node_tests_is_right, models_that_others_export_compute_what_onnx_runtime_computes,
           what_comes_back_of_them_computes_in_onnx_runtime_what_network_so_computes], "onnx: ")
