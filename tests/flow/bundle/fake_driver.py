"""A stand-in for libcuda.so.1 (driver.cpp), and the runner of bundles, built once for a test."""
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RUNTIME = ROOT / "backends/runtime"


def build(source, output, *more):
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", f"-I{ROOT}", f"-I{RUNTIME}", *more, str(source), "-o", output, "-ldl"], check=True)
    return output


def build_driver(folder):
    return build(HERE / "driver.cpp", folder + "/libcuda.so", "-shared", "-fPIC")


def build_runner(folder):
    return build(RUNTIME / "bundle_runner.cpp", folder + "/runner")
