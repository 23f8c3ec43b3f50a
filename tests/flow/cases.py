"""The cases of a test script: each is run, and one line says how it ended ('ok - NAME', 'not ok - NAME' or 'SKIPPED: NAME: WHY'), as setup/run_tests.py reads them.
What several test scripts use is here, too: the checker of certificates, and programs of setup/ as modules.

LOOPEGG_CASES="cable power" runs only the cases whose names hold one of these words.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Skipped(Exception):
    """A case raises this when the machine lacks something that the case needs. The message says what."""


class Lacking(Skipped):
    """The machine lacks something that one command installs."""

    def __str__(self):
        return f"{super().__str__()} (setup/prepare test-extras installs it)"


class OnlyDeep(Skipped):
    """The case takes too long for every run of the tests. The message says how long."""

    def __str__(self):
        return f"only ./test --deep runs it: {super().__str__()}"


def sentence(case):
    """A function's name as words: a_command_s_name is "a command's name"."""
    return case.__name__.replace("_s_", "'s ").replace("_", " ")


def run_cases(cases, prefix="", call=lambda case: case()):
    """Runs all cases, whatever fails, and ends the script. `cases`: functions, or (name, function). What a case returns is added to its name."""
    failed, wanted = 0, os.environ.get("LOOPEGG_CASES", "").split()
    named = [case if isinstance(case, tuple) else (prefix + sentence(case), case) for case in cases]
    chosen = [(name, function) for name, function in named if not wanted or any(word in name for word in wanted)]
    if not chosen:
        sys.exit(f"no case has one of the words '{' '.join(wanted)}' in its name; there are: {'; '.join(name for name, _ in named)}")
    for name, function in chosen:
        try:
            said = call(function)
            print(f"ok - {name}{said or ''}", flush=True)
        except Skipped as e:
            print(f"SKIPPED: {name}: {e}", flush=True)
        except Exception as e:
            failed += 1
            print(f"  {type(e).__name__}: {e}\nnot ok - {name}", flush=True)
    sys.exit(1 if failed else 0)


def certified(out, *words):
    """(exit code, what is printed) of the checker of certificates, for the folder of a run."""
    done = subprocess.run([sys.executable, "-I", str(ROOT / "checker"), str(out), *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout + done.stderr


def expect_certified(out, code=0):
    """The checker accepts the certificate, or reports that it is not covered (2)."""
    got, said = certified(out)
    assert got == code, (str(out), got, said)


def setup_program(name):
    """A program of setup/ as a module. Such a program has no suffix, so `import` does not find it."""
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(ROOT / "setup" / name)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A stand-in for libcuda.so.1 (bundle/driver.cpp), and the runner of bundles, built for a test.

def build(source, output, *more):
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", f"-I{ROOT}", f"-I{ROOT / 'backends/runtime'}", *more, str(source), "-o", output, "-ldl"], check=True)
    return output


def build_driver(folder):
    return build(ROOT / "tests/flow/bundle/driver.cpp", folder + "/libcuda.so", "-shared", "-fPIC")


def build_runner(folder):
    return build(ROOT / "backends/runtime" / "bundle_runner.cpp", folder + "/runner")
