"""A place of its own for each test that does harm: folders, stores, a small network, and a way to run the program there."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, Skipped, run_cases  # noqa: F401

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
        """The program in this place; words that are paths are given as they are. A run that does not end within the limit is a failure (wait_fairly says how it is counted)."""
        words = [LOOPEGG, *map(str, words)]
        with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
            process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=self.path, env=dict(self.environment, **dict(env)), preexec_fn=before)
            seconds, starved = wait_fairly(process, limit)
            out.seek(0), err.seek(0)
            done = subprocess.CompletedProcess(words, process.returncode, out.read(), err.read())
            done.seconds, done.starved = seconds, starved
            return done

    def done(self, *words, **more):
        r = self.run(*words, **more)
        assert r.returncode == 0, (words, r.returncode, r.stdout[-500:], r.stderr[-1500:])
        return r

    def refused(self, *words, saying="", codes=(1, 2), **more):
        """The program must say why, and end as a refusal ends: without a crash or a fault of ours."""
        r = self.run(*words, **more)
        assert r.returncode in codes, (words, r.returncode, r.stdout[-500:], r.stderr[-1500:])
        assert saying in r.stderr + r.stdout, (saying, r.stdout[-500:], r.stderr[-1500:])
        assert r.stderr.strip(), words
        return r

    def optimize(self, out="out", *more, **options):
        return self.run("optimize", self.model, "--rules", "exact", "--trials", "3", "--out", out, "--json", *more, **options)


def delays(top):
    """Nanoseconds that each thread of a process and of its descendants was ready and had no processor, by the kernel's account."""
    children, found, ours = {}, {}, [top]
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    for pid in ours:
        ours += children.get(pid, [])
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                found[thread] = int(open(f"/proc/{pid}/task/{thread}/schedstat").read().split()[1])
        except OSError:   # it has ended
            pass
    return found


def wait_fairly(process, limit, look_every=0.5):
    """Waits until a process ends, `limit` seconds at most. Seconds in which one of its threads waited for a processor do not count, so a busy machine makes no hang.
    Answers the seconds that counted and those that did not."""
    began, starved, before = time.monotonic(), 0.0, {}
    looked = began
    while True:
        try:
            process.wait(look_every)
            return time.monotonic() - began - starved, starved
        except subprocess.TimeoutExpired:
            now, after = time.monotonic(), delays(process.pid)
            waited = max((ns - before.get(thread, 0) for thread, ns in after.items()), default=0) / 1e9
            starved += min(waited, now - looked)
            looked, before = now, after
            if now - began - starved > limit:
                process.kill()
                process.wait()
                raise subprocess.TimeoutExpired(process.args, limit) from None


def crashed(r):
    return r.returncode < 0 or r.returncode in (70, 134, 139, 128 + signal.SIGSEGV)
