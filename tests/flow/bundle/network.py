"""Runs a network that was compiled for a GPU by its own entry points, on a driver that emulates its kernels. The output must be that of the same network on this machine."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
from cases import build_driver, run_cases   # noqa: E402

LOOPEGG = sys.argv.pop(1)
ROOT = HERE.parents[2]
FOLDER = tempfile.TemporaryDirectory()
GPU, HOST = FOLDER.name + "/gpu", FOLDER.name + "/host"
ENVIRONMENT = {**os.environ, "LOOPEGG_STORE": FOLDER.name + "/latency.sqlite", "XDG_CACHE_HOME": FOLDER.name}
FLOATS = ctypes.POINTER(ctypes.c_float)

for target, folder in [("gtx1080ti", GPU), ("host", HOST)]:
    subprocess.run([LOOPEGG, "compile", str(ROOT / "examples/tiny-residual.json"), "--target", target, "--out", folder], check=True, env=ENVIRONMENT, capture_output=True)
os.environ.update(LOOPEGG_CUDA_DRIVER=build_driver(FOLDER.name), LOOPEGG_EMULATED=GPU, TMPDIR=FOLDER.name)


class Network:
    def __init__(self, folder, weights=None):
        self.library, self.prefix = ctypes.CDLL(folder + "/network.so"), json.loads(pathlib.Path(folder, "network.json").read_text())["prefix"]
        self.entry("open").restype = self.entry("create").restype = ctypes.c_void_p
        self.entry("input_size").restype = self.entry("output_size").restype = ctypes.c_long
        if folder == GPU:
            self.entry("error").restype = ctypes.c_char_p
            self.entry("input_address").restype = self.entry("output_address").restype = ctypes.c_ulonglong
        self.network = ctypes.c_void_p(self.entry("open")((weights or folder + "/weights.bin").encode()))
        self.contexts = [self.another_context()] if self.network else []
        self.given = (ctypes.c_float * self.entry("input_size")(0))(*[(i * 37 % 101 - 50) / 50 for i in range(self.entry("input_size")(0))])
        self.result = (ctypes.c_float * self.entry("output_size")(0))()

    def entry(self, name):
        return getattr(self.library, self.prefix + name)

    def another_context(self):
        return ctypes.c_void_p(self.entry("create")(self.network, 0))

    def addresses(self):
        return self.contexts[0], (FLOATS * 1)(ctypes.cast(self.given, FLOATS)), (FLOATS * 1)(ctypes.cast(self.result, FLOATS))

    def run(self):
        assert self.entry("run")(*self.addresses()) == 0
        return list(self.result)


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 * max(1, abs(y)) for x, y in zip(a, b))


WANTED = Network(HOST).run()


def it_gives_what_the_network_gives_here():
    network = Network(GPU)
    assert network.network, network.entry("error")()
    assert close(network.run(), WANTED) and close(network.run(), WANTED), (list(network.result), WANTED)   # weights stay where they were uploaded
    network.entry("close")(network.network)   # its context keeps the weights
    assert close(network.run(), WANTED)
    network.entry("destroy")(network.contexts.pop())


def one_launch_runs_it_on_the_device():
    network = Network(GPU)
    at = network.entry("input_address")(network.contexts[0], 0)
    ctypes.memmove(at, network.given, ctypes.sizeof(network.given))   # this device's memory is ours
    assert network.entry("launch")(network.contexts[0], None) == 0, network.entry("error")()
    ctypes.memmove(network.result, network.entry("output_address")(network.contexts[0], 0), ctypes.sizeof(network.result))
    assert close(list(network.result), WANTED), (list(network.result), WANTED)


def every_context_has_its_own_memory():
    network = Network(GPU)
    other, result = network.another_context(), (ctypes.c_float * len(network.result))()
    zeros = (ctypes.c_float * len(network.given))()
    pointers = (FLOATS * 1)(ctypes.cast(zeros, FLOATS)), (FLOATS * 1)(ctypes.cast(result, FLOATS))
    assert network.entry("input_address")(other, 0) != network.entry("input_address")(network.contexts[0], 0)
    assert network.entry("run")(other, *pointers) == 0 and close(network.run(), WANTED) and not close(list(result), WANTED)


def its_steps_are_timed():
    network = Network(GPU)
    ms = (ctypes.c_double * network.entry("steps")())()
    assert network.entry("run_steps")(*network.addresses(), ms) == 0 and all(m == 1 for m in ms), list(ms)   # this driver's clock
    assert close(list(network.result), WANTED)


def what_is_missing_is_told():
    cut = FOLDER.name + "/cut.bin"
    pathlib.Path(cut).write_bytes(pathlib.Path(GPU, "weights.bin").read_bytes()[:-8])
    network = Network(GPU, cut)
    assert not network.network and b"weights" in network.entry("error")(), network.entry("error")()
    os.environ["LOOPEGG_CUDA_DRIVER"], driver = "/nowhere/libcuda.so", os.environ["LOOPEGG_CUDA_DRIVER"]
    said = subprocess.run([sys.executable, "-c", f"import ctypes\nl = ctypes.CDLL({GPU + '/network.so'!r})\nopened, error = l.{network.prefix}open, l.{network.prefix}error\n"
                           f"opened.restype, error.restype = ctypes.c_void_p, ctypes.c_char_p\nprint(opened({GPU + '/weights.bin'!r}.encode()), error().decode())"], capture_output=True, text=True, check=True).stdout
    os.environ["LOOPEGG_CUDA_DRIVER"] = driver
    assert said.startswith("None the driver of the GPU cannot be loaded"), said


def the_examples_of_c_and_cpp_build_with_it_alone():
    for compiler, source in [("cc", "run_network.c"), ("c++", "run_network.cpp")]:
        program = FOLDER.name + "/" + source + ".out"
        subprocess.run([compiler, str(ROOT / "examples" / source), f"-I{GPU}", GPU + "/network.so", f"-Wl,-rpath,{GPU}", "-o", program], check=True)
        done = subprocess.run([program, GPU + "/weights.bin"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done


def it_can_be_built_by_hand():
    first = pathlib.Path(GPU, "network.c").read_text().split("\n")[0]
    command = first[first.index("Build: ") + 7:first.index(" */")].replace("network.so", FOLDER.name + "/by-hand.so").split()
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror"], check=True, cwd=GPU)


run_cases([it_gives_what_the_network_gives_here, one_launch_runs_it_on_the_device, every_context_has_its_own_memory, its_steps_are_timed, what_is_missing_is_told,
           the_examples_of_c_and_cpp_build_with_it_alone, it_can_be_built_by_hand], "network on a GPU: ")
