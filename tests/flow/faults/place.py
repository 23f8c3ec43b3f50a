"""A place of their own for tests that do harm: folders, stores, a small network, and the program run in it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Skipped, run_cases  # noqa: F401

LOOPEGG = os.path.abspath(sys.argv[1])
DEEP = os.environ.get("LOOPEGG_DEEP") == "1"

TINY = {"loopegg": 1, "name": "tiny", "inputs": [{"name": "x", "shape": [1, 3, 8, 8], "dtype": "float32"}],
        "nodes": [{"name": "conv1", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 8, "kernel": [3, 3], "padding": [1, 1], "bias": False}},
                  {"name": "relu1", "op": "relu", "inputs": ["conv1"]},
                  {"name": "pool", "op": "global_avg_pool", "inputs": ["relu1"]},
                  {"name": "flat", "op": "flatten", "inputs": ["pool"]},
                  {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"out_features": 4}}],
        "outputs": ["fc"]}


class Place:
    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="loopegg-faults-")
        self.path = pathlib.Path(self.temporary.name)
        self.model = self.write("tiny.json", TINY)
        self.environment = dict(os.environ, LOOPEGG_STORE=str(self.path / "latency.sqlite"), LOOPEGG_EVIDENCE=str(self.path / "evidence.sqlite"),
                                LOOPEGG_TARGETS=str(self.path / "targets"), HOME=str(self.path))

    def write(self, name, what):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, bytes):
            file.write_bytes(what)
        else:
            file.write_text(what if isinstance(what, str) else json.dumps(what))
        return str(file)

    def run(self, *words, limit=300, env=(), before=None):
        """The program in this place; words that are paths are given as they are. A run that does not end within the limit is a failure."""
        return subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=self.path,
                              env=dict(self.environment, **dict(env)), timeout=limit, preexec_fn=before)

    def done(self, *words, **more):
        r = self.run(*words, **more)
        assert r.returncode == 0, (words, r.returncode, r.stdout[-500:], r.stderr[-1500:])
        return r

    def refused(self, *words, saying="", codes=(1, 2), **more):
        """It says why, and ends as a refusal ends: no crash, no fault of ours."""
        r = self.run(*words, **more)
        assert r.returncode in codes, (words, r.returncode, r.stdout[-500:], r.stderr[-1500:])
        assert saying in r.stderr + r.stdout, (saying, r.stdout[-500:], r.stderr[-1500:])
        assert r.stderr.strip(), words
        return r

    def optimize(self, out="out", *more, **options):
        return self.run("optimize", self.model, "--rules", "exact", "--trials", "3", "--out", out, "--json", *more, **options)


def crashed(r):
    return r.returncode < 0 or r.returncode in (70, 134, 139, 128 + signal.SIGSEGV)
