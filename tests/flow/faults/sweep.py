"""Every write, store call, worker start, compile, measurement and guard call fails or is cut once, at each place in turn, over a small 'optimize' and a small 'batch'.

After each fault: the program ended in time and said why; what was measured is still stored; the out folder is the old or the new one, whole; and the next run gives
the undisturbed answer. Without LOOPEGG_DEEP a sample of the places; LOOPEGG_SWEEP=N tries N of them.
"""
import json
import os
import pathlib
import random
import shutil
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import DEEP, Place, run_cases

TRIES = int(os.environ.get("LOOPEGG_SWEEP", "0")) or (10**6 if DEEP else 8)
LIMIT = 150   # seconds: what a run takes when every worker is late once


def measured(place):
    store = place.path / "latency.sqlite"
    if not store.exists():
        return {}
    with sqlite3.connect(store, timeout=30) as db:
        if not db.execute("SELECT name FROM sqlite_master WHERE name='latency'").fetchone():
            return {}
        return {k: v for k, *v in db.execute("SELECT key, median_ms, iqr_ms, n FROM latency WHERE state='measured'")}


def own_failures(place):
    with sqlite3.connect(place.path / "latency.sqlite", timeout=30) as db:
        return db.execute("SELECT count(*) FROM latency WHERE state='failed'").fetchone()[0]


class Sweep:
    """`command`: what runs; `roles`: whose places count; `prepare`: a place with what a run before left."""

    def __init__(self, command, roles):
        self.command, self.roles = command, roles
        self.base = Place()
        began = time.monotonic()
        assert self.command(self.base).returncode == 0
        self.seconds = time.monotonic() - began
        self.answer = self.output(self.base)
        counting = Place()
        log = counting.path / "places"
        r = self.command(counting, env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT_LOG": str(log)})
        assert r.returncode == 0, r.stderr[-800:]
        lines = log.read_text().splitlines()
        self.places = []
        for role in roles:
            kinds = [line.split()[1] for line in lines if line.split()[0] == role]
            if role == "worker":   # several workers, each with places of its own: the first few of each
                kinds = kinds[:12]
            self.places += [(role, n + 1, kind) for n, kind in enumerate(kinds)]

    def folder(self, place):
        return place.path / ("out" if self.roles[0] == "optimize" else "batch/runs")

    def folders(self, place):
        top = self.folder(place)
        return [top] if self.roles[0] == "optimize" else sorted(f for f in top.iterdir() if f.is_dir()) if top.exists() else []

    def output(self, place):
        """What the returned networks compute on one input, and how many sites they have."""
        all = []
        for f in self.folders(place):
            r = place.done("run", f, "--seed", "3", "--json")
            all.append([[round(v, 3) for v in o["values"]] for o in json.loads(r.stdout)["outputs"]])
            all.append(len(json.loads((f / "result.json").read_text())["sites"]))
        return all

    def whole(self, place, after):
        for f in self.folders(place):
            if (f / "result.json").exists() or (f / ".loopegg-committed").exists():
                r = place.run("explain", f, "--check")
                assert r.returncode == 0, (after, r.stdout[-600:], r.stderr[-600:])

    def one(self, role, number, kind, how, warm):
        place = Place()
        if warm:
            for name in ("latency.sqlite", "evidence.sqlite"):
                with sqlite3.connect(self.base.path / name) as a, sqlite3.connect(place.path / name) as b:
                    a.backup(b)
            for f in self.folders(self.base):
                shutil.copytree(f, self.folder(place) / f.name if self.roles[0] != "optimize" else self.folder(place))
        what = f"{role} {number} ({kind}) {how}{' warm' if warm else ''}"
        known = measured(place)
        began = time.monotonic()
        r = self.command(place, env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT": f"{role}:{number}:{how}:{place.path}/flag"}, limit=LIMIT)
        took = time.monotonic() - began
        assert took < 10 + 4 * self.seconds + 60, (what, "took", took)
        happened = (place.path / "flag").exists()
        assert r.returncode in (0, 1, -9), (what, r.returncode, r.stderr[-800:])
        assert r.returncode != 1 or r.stderr.strip(), what
        assert "internal fault" not in r.stderr, (what, r.stderr[-800:])
        self.whole(place, what)
        now = measured(place)
        assert all(k in now for k in known), (what, "lost measurements")
        again = self.command(place, env={})
        assert again.returncode == 0, (what, "then", again.returncode, again.stderr[-800:])
        self.whole(place, what + ", then")
        assert self.output(place) == self.answer, (what, "another answer")
        after = measured(place)
        assert all(after.get(k) for k in now), (what, "lost measurements later")
        assert own_failures(place) <= own_failures(self.base), (what, "a fault of the machine is kept as a candidate's")
        left = [f for top in self.folders(place) for f in top.iterdir() if f.name.startswith(".loopegg")]
        assert not left, (what, left)
        return happened

    def run(self):
        draw = random.Random(11)
        cases = [(role, n, kind, how, warm) for role, n, kind in self.places for how in ("fail", "cut") for warm in (False, True)]
        draw.shuffle(cases)
        happened, tried, kinds = 0, 0, {}
        for case in cases[:TRIES]:
            done = self.one(*case)
            happened, tried = happened + done, tried + 1
            kinds[case[2]] = kinds.get(case[2], 0) + done
            print(f"  {tried} of {min(TRIES, len(cases))}: {case} {'happened' if done else 'was not reached'}", file=sys.stderr, flush=True)
        return f": {happened} faults at {len(self.places)} places ({', '.join(f'{k} {n}' for k, n in sorted(kinds.items()))})"


def a_fault_anywhere_in_optimize_costs_that_run_at_most():
    def command(place, env=(), limit=LIMIT):
        return place.run("optimize", place.model, "--rules", "exact", "--trials", "2", "--out", "out", "--quiet", env=env, limit=limit)
    return Sweep(command, ["optimize", "worker"]).run()


def a_fault_anywhere_in_batch_costs_that_job_at_most():
    def command(place, env=(), limit=LIMIT):
        jobs = place.write("jobs.json", {"models": [place.model], "rules": ["exact"], "options": {"trials": 2}})
        r = place.run("batch", jobs, "--out", "batch", "--retry", "--quiet", env=env, limit=limit)
        return r
    return Sweep(command, ["batch"]).run()


def guard_calls_may_fail():
    def command(place, env=(), limit=LIMIT):
        return place.run("optimize", place.model, "--budget", "6", "--trials", "2", "--keep", "fc", "--out", "out", "--quiet", env=env, limit=limit)
    place = Place()
    log = place.path / "places"
    assert command(place, env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT_LOG": str(log)}).returncode == 0
    guards = [i + 1 for i, line in enumerate(log.read_text().splitlines()) if line == "optimize guard"]
    assert guards, "no guard was asked"
    for number in guards[:TRIES]:
        for how in ("fail", "cut"):
            other = Place()
            r = command(other, env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT": f"optimize:{number}:{how}:{other.path}/flag"})
            assert r.returncode in (1, -9) and (other.path / "flag").exists(), (number, how, r)
            assert command(other).returncode == 0
            assert other.run("explain", "out", "--check").returncode == 0
    return f": {2 * len(guards[:TRIES])} faults"


run_cases([a_fault_anywhere_in_optimize_costs_that_run_at_most, a_fault_anywhere_in_batch_costs_that_job_at_most, guard_calls_may_fail])
