"""Every write, store call, worker start, compile, measurement and guard call fails or is cut once, at each place in turn, over a small 'optimize' and a small 'batch'.

A run comes to its places in one of two states: 'fresh' (no store, no folder) or 'again' (with the store and the folder of a run before). After each fault: the
program ended and said why; what was measured is still stored; the folder is the old or the new one, whole; and the next run gives the undisturbed answer.
Without LOOPEGG_DEEP a sample of the places, in which every kind of place and of fault has its turn. LOOPEGG_SWEEP=N tries N faults of each case,
LOOPEGG_SWEEP_FROM=N leaves out the first N, LOOPEGG_SWEEP_AT_ONCE=N has N of them under way, LOOPEGG_SWEEP_LOG=FILE gets a line for each.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import DEEP, Place, run_cases

TRIES = int(os.environ.get("LOOPEGG_SWEEP", "0")) or (10**6 if DEEP else 8)
FIRST = int(os.environ.get("LOOPEGG_SWEEP_FROM", "0"))
AT_ONCE = int(os.environ.get("LOOPEGG_SWEEP_AT_ONCE", "1"))
TUNE = 20     # seconds that every run is given for tuning
LATE = TUNE + 10   # seconds that a fault may add to a run, of those that wait_fairly counts: 10 past the limit that the run was given
LIMIT = 240   # seconds after which a run is killed, counted in the same way
STORES = ("latency.sqlite", "evidence.sqlite")


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


def content(folder):
    """All files but those of an update that was not committed, and the lock that a killed process leaves. The next run removes both (see `one`)."""
    return {name: f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file() and not (name := str(f.relative_to(folder))).startswith((".loopegg-new-", ".loopegg-lock"))}


class Harm(Exception):
    """Harm that must not happen, with its kind: 'a hang', 'a wrong answer'."""

    def __init__(self, kind, what):
        super().__init__(f"{kind}: {what}")
        self.kind = kind


def expect(holds, kind, what=""):
    if not holds:
        raise Harm(kind, what)


class Sweep:
    """`words`: what runs, given a place; `roles`: whose places count; `kinds`: which of them; `batch`: its folders are those of a batch."""

    def __init__(self, words, roles, kinds=None, batch=False):
        self.words, self.batch, self.top = words, batch, "batch" if batch else "out"
        self.base = Place()
        r = self.command(self.base)
        assert r.returncode == 0, r.stderr[-800:]
        self.seconds, self.slowest, self.starved = r.seconds, 0.0, 0.0   # of the undisturbed run; of the slowest one with a fault; without a processor, of all
        self.before = {f.name: content(f) for f in self.folders(self.base)}
        self.answer = self.output(self.base)
        self.own = own_failures(self.base)
        self.faults = []
        for state in ("fresh", "again"):
            place = self.place(state)
            log = place.path / "places"
            r = self.command(place, LOOPEGG_FAULT_LOG=str(log))
            assert r.returncode == 0, (state, r.stderr[-800:])
            by_process = collections.defaultdict(list)
            for line in log.read_text().splitlines():
                role, kind, process = line.split()
                by_process[role, process].append(kind)
            for role in roles:   # of several workers, the one that came to most places
                places = max((p for (r, _), p in by_process.items() if r == role), key=len, default=[])
                self.faults += [(state, role, n + 1, kind, how) for n, kind in enumerate(places) if not kinds or kind in kinds for how in ("fail", "cut")]
        self.places = len(self.faults) // 2

    def command(self, place, limit=LIMIT, **faults):
        try:
            return place.run(*self.words(place), limit=limit, env=dict(faults, LOOPEGG_FAULTS="1") if faults else {})
        except subprocess.TimeoutExpired as e:
            raise Harm("a hang", f"no end after {limit} s") from e

    def timely(self, r):
        self.slowest, self.starved = max(self.slowest, r.seconds), self.starved + r.starved
        expect(r.seconds <= self.seconds + LATE, "a hang", f"{r.seconds:.0f} s and {r.starved:.0f} s without a processor, where the undisturbed run took {self.seconds:.0f} s: {r.stderr[-400:]}")

    def folders(self, place):
        if not self.batch:
            return [f for f in [place.path / "out"] if f.exists()]
        runs = place.path / "batch/runs"
        return sorted(f for f in runs.iterdir() if f.is_dir()) if runs.exists() else []

    def place(self, state):
        place = Place()
        if state == "again":
            for name in STORES:
                if (self.base.path / name).exists():
                    with sqlite3.connect(self.base.path / name) as a, sqlite3.connect(place.path / name) as b:
                        a.backup(b)
            shutil.copytree(self.base.path / self.top, place.path / self.top)
        return place

    def output(self, place):
        """What the returned networks compute on one input, and how many sites they have."""
        all = []
        for f in self.folders(place):
            r = place.done("run", f, "--seed", "3", "--json")
            all.append([[round(v, 3) for v in o["values"]] for o in json.loads(r.stdout)["outputs"]])
            all.append(len(json.loads((f / "result.json").read_text())["sites"]))
        return all

    def job_s_words(self, place):
        """Why jobs of a batch failed."""
        table = place.path / self.top / "result.json"
        return " ".join(str(job.get("error", "")) for job in json.loads(table.read_text())["jobs"])[-800:] if self.batch and table.exists() else ""

    def whole(self, place):
        """Each folder must be that of the run before, byte for byte, or a new one that passes the check. A folder without a result was never begun."""
        for f in self.folders(place):
            if content(f) == self.before[f.name]:
                continue
            if (f / "result.json").exists() or (f / ".loopegg-committed").exists():
                r = place.run("explain", f, "--check")
                expect(r.returncode == 0, "a torn folder", r.stdout[-600:] + r.stderr[-600:])
            else:
                left = [name for name in content(f) if name != "log.txt"]
                expect(not left, "a torn folder", left)

    def one(self, state, role, number, kind, how):
        """Tries one fault. Returns whether the fault happened. Raises Harm where the program reacts wrongly."""
        place = self.place(state)
        known = measured(place)
        r = self.command(place, LOOPEGG_FAULT=f"{role}:{number}:{how}:{place.path}/flag")
        self.timely(r)
        happened = (place.path / "flag").exists()
        expect(r.returncode in (0, 1, -9), "a crash", (r.returncode, r.stderr[-800:]))
        expect(r.returncode != 1 or r.stderr.strip(), "a failure without a word")
        expect("internal fault" not in r.stderr, "a crash", r.stderr[-800:])
        self.whole(place)
        now = measured(place)
        expect(all(now.get(k) for k in known), "a lost measurement")
        again = self.command(place)
        self.timely(again)
        expect(again.returncode == 0, "a next run that fails", again.stderr[-800:] + self.job_s_words(place))
        self.whole(place)
        expect(self.output(place) == self.answer, "a wrong answer")
        after = measured(place)
        expect(all(after.get(k) for k in now), "a lost measurement", "in the next run")
        expect(own_failures(place) <= self.own, "a lasting poison", "a fault of the machine is kept as a candidate's")
        left = [f.name for top in self.folders(place) for f in top.iterdir() if f.name.startswith(".loopegg")]
        expect(not left, "a torn folder", left)
        return happened

    def in_turns(self):
        """All faults, in an order that begins with one fault of each kind of place, fault, role and state."""
        groups = collections.defaultdict(list)
        draw = random.Random(11)
        for fault in self.faults:
            state, role, _, kind, how = fault
            groups[role, kind, how, state].append(fault)
        for group in groups.values():
            draw.shuffle(group)
        while any(groups.values()):
            for group in groups.values():
                if group:
                    yield group.pop()

    def run(self):
        tried, happened = 0, collections.Counter()
        harms, lock = [], threading.Lock()
        wanted = list(self.in_turns())[FIRST:FIRST + TRIES]

        def try_one(fault):
            nonlocal tried
            began = time.monotonic()
            try:
                said = "happened" if self.one(*fault) else "was not reached"
            except Harm as e:
                said = str(e)
            except Exception as e:   # a check that could not be made is a failure, too
                said = f"a failed check: {type(e).__name__}: {e}"
            with lock:
                tried += 1
                if said == "happened":
                    happened[fault[3]] += 1
                elif said != "was not reached":
                    harms.append((" ".join(map(str, fault)), said))
                line = f"  {tried} of {len(wanted)}: {' '.join(map(str, fault))}: {said} ({time.monotonic() - began:.1f} s)"
                print(line, file=sys.stderr, flush=True)
                if os.environ.get("LOOPEGG_SWEEP_LOG"):
                    with open(os.environ["LOOPEGG_SWEEP_LOG"], "a") as log:
                        log.write(line + "\n")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(try_one, wanted))
        assert not harms, "\n".join(f"{fault}: {why}" for fault, why in harms)
        assert happened, "no fault happened"
        return f": {sum(happened.values())} faults happened of {tried} tried, at {self.places} places ({', '.join(f'{k} {n}' for k, n in sorted(happened.items()))}); the slowest run took {self.slowest:.0f} s, the undisturbed {self.seconds:.0f} s, {self.starved:.0f} s of waiting for a processor not counted"


def a_fault_anywhere_in_optimize_costs_that_run_at_most():
    return Sweep(lambda place: ("optimize", place.model, "--rules", "exact", "--trials", "1", "--tune-seconds", TUNE, "--out", "out", "--quiet"), ["optimize", "worker"]).run()


def a_fault_anywhere_in_batch_costs_that_job_at_most():
    def words(place):
        jobs = place.write("jobs.json", {"models": [place.model], "rules": ["exact"], "options": {"trials": 1, "tune-seconds": TUNE}})
        return "batch", jobs, "--out", "batch", "--retry", "--quiet"
    return Sweep(words, ["batch", "optimize"], batch=True).run()


def guard_calls_may_fail():
    return Sweep(lambda place: ("optimize", place.model, "--trials", "1", "--tune-seconds", TUNE, "--keep", "fc", "--max-loss", "20", "--out", "out", "--quiet"),
                 ["optimize"], kinds={"guard"}).run()


run_cases([a_fault_anywhere_in_optimize_costs_that_run_at_most, a_fault_anywhere_in_batch_costs_that_job_at_most, guard_calls_may_fail])
