"""Others' models against ONNX's own tests and ONNX Runtime, where those are installed: peers.py LOOPEGG_PROGRAM SOURCE_FOLDER.

LOOPEGG_PEERS names a virtual environment with onnx, onnxruntime (bench/peers makes one) and, for models, torch, torchvision and timm; LOOPEGG_MODELS a
folder that 'bench/anyones_models.py export' wrote. Both take minutes, so LOOPEGG_DEEP=1 alone runs them.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Skipped, run_cases

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
PYTHON = pathlib.Path(os.environ.get("LOOPEGG_PEERS", SOURCE / ".deps/peers")) / "bin/python3"


def ask(script, *words):
    if os.environ.get("LOOPEGG_DEEP", "") in ("", "0"):
        raise Skipped("it takes minutes: LOOPEGG_DEEP=1")
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import onnx, onnxruntime, numpy"], capture_output=True).returncode:
        raise Skipped("no onnx and onnxruntime in .deps/peers (bench/peers installs them)")
    ran = subprocess.run([PYTHON, SOURCE / "bench" / script, *words, "--loopegg", PROGRAM], capture_output=True, text=True)
    return ran.returncode, ran.stdout


def what_is_read_of_onnx_s_node_tests_is_right():
    code, said = ask("onnx_node_tests.py")
    assert code == 0, said[-2000:]
    return ": " + said.strip().splitlines()[-1]


def models_that_others_export_compute_what_onnx_runtime_computes():
    folder = os.environ.get("LOOPEGG_MODELS")
    if not folder:
        raise Skipped("LOOPEGG_MODELS names no folder (bench/anyones_models.py export DIR writes it)")
    code, said = ask("anyones_models.py", "check", folder)
    assert code == 0 and "WRONG" not in said, "\n".join(line for line in said.splitlines() if "WRONG" in line)[-2000:]
    return ": " + "; ".join(line for line in said.splitlines() if " read, " in line)


run_cases([what_is_read_of_onnx_s_node_tests_is_right, models_that_others_export_compute_what_onnx_runtime_computes], "onnx: ")
