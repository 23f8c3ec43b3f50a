"""What the second program says of the folder of a run (checker/)."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def certified(out, *words):
    """(exit code, what is printed)"""
    done = subprocess.run([sys.executable, "-I", str(ROOT / "checker"), str(out), *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout + done.stderr


def expect_certified(out, code=0):
    """The second program accepts the certificate, or says that it is not covered (2)."""
    got, said = certified(out)
    assert got == code, (str(out), got, said)
