"""Runs the tests that Meson knows, shows how far it is, and ends with 'N passed, N failed' (', N skipped' when any).

A Catch2 executable reports its cases through the file in LOOPEGG_TEST_EVENTS (tests/catch_main.cpp). Any other test is a script: its
lines 'ok - NAME' and 'not ok - NAME' are its cases, or the script itself is one, by its exit code (77: skipped).
A line 'SKIPPED: NAME: WHY' on standard output takes the case of that name out of the passed ones.
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN_LINES = 120   # of a failed test's output


class Outcome:
    def __init__(self, name):
        self.name, self.passed, self.failures, self.skipped = name, [], [], []   # failures: (case, reason); skipped: (case, why)
        self.seconds, self.output, self.slowest = 0.0, "", (0.0, "")


def ended_badly(code):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def read_events(path, outcome):
    """Reads Catch2's cases. Returns the case that was running when the process died."""
    running = None
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        kind, _, rest = line.partition(" ")
        if kind == "start":
            running = rest
            continue
        seconds, _, case = rest.partition(" ")
        running = None
        outcome.slowest = max(outcome.slowest, (float(seconds), case))
        outcome.passed.append(case) if kind == "pass" else outcome.failures.append((case, "failed"))
    return running


def judge(outcome, events, code, timed_out):
    catch = events.exists()
    running = read_events(events, outcome)
    if not catch:
        for line in outcome.output.splitlines():
            if m := re.match(r"(not )?ok - (.*)", line):
                outcome.failures.append((m[2], "failed")) if m[1] else outcome.passed.append(m[2])
    for line in outcome.output.splitlines():
        if line.startswith("SKIPPED: "):
            case = next((c for c in outcome.passed if line.startswith(f"SKIPPED: {c}: ")), None)
            if case is not None:
                outcome.passed.remove(case)
            else:
                case = line[9:].partition(": ")[0]
            outcome.skipped.append((case, line[9 + len(case) + 2:]))
    if timed_out:
        outcome.failures.append((running or outcome.name, f"no answer within {timed_out:.0f} s"))
    elif running is not None:
        outcome.failures.append((running, f"crashed: {ended_badly(code)}"))
    elif code == 77 and not catch and not outcome.skipped:
        outcome.skipped.append((outcome.name, outcome.output.strip().splitlines()[-1] if outcome.output.strip() else "no reason given"))
    elif code not in (0, 77) and not outcome.failures:
        outcome.failures.append((outcome.name, ended_badly(code)))
    elif not (outcome.passed or outcome.failures or outcome.skipped):
        outcome.passed.append(outcome.name)


class Runner:
    def __init__(self, tests, deep, build):
        self.tests, self.deep, self.build = tests, deep, build
        self.lock, self.processes, self.finished = threading.Lock(), {}, []
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="loopegg-test-"))
        self.started = time.monotonic()

    def run_one(self, test):
        outcome = Outcome(test["name"])
        home = self.scratch / re.sub(r"\W", "_", test["name"])
        (home / "tmp").mkdir(parents=True)
        events = home / "events"
        # OMP_WAIT_POLICY: tests run side by side, and threads that spin at barriers would starve each other.
        environment = dict(os.environ, **test["env"], OMP_WAIT_POLICY="PASSIVE", LOOPEGG_TEST_EVENTS=str(events), TMPDIR=str(home / "tmp"), XDG_CACHE_HOME=str(home / "cache"),
                           LOOPEGG=str(self.build / "src/cli/loopegg"), LOOPEGG_SOURCE=str(ROOT), LOOPEGG_BUILD=str(self.build))
        if self.deep:
            environment["LOOPEGG_DEEP"] = "1"
        limit = (test["timeout"] or 600) * (30 if self.deep else 1)
        begin, timed_out = time.monotonic(), None
        with open(home / "output", "w+", errors="replace") as output:
            process = subprocess.Popen(test["cmd"], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
                                       cwd=test["workdir"] or self.build, start_new_session=True)
            with self.lock:
                self.processes[process] = (test["name"], events)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                timed_out = limit
            self.kill(process)   # and whatever it left behind
            process.wait()
            output.seek(0)
            outcome.output = output.read()
        outcome.seconds = time.monotonic() - begin
        judge(outcome, events, process.returncode, timed_out)
        with self.lock:
            del self.processes[process]
            self.finished.append(outcome)
        self.tell(outcome)

    @staticmethod
    def kill(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def tell(self, o):
        text = f"{o.name}: {len(o.passed)} passed"
        text += f", {len(o.failures)} failed" if o.failures else ""
        text += f", {len(o.skipped)} skipped" if o.skipped else ""
        clear = "\r\033[K" if sys.stderr.isatty() else ""
        print(f"{clear}{text} in {o.seconds:.1f} s ({len(self.finished)} of {len(self.tests)})", file=sys.stderr, flush=True)

    def watch(self, done):
        """Keeps a line on a terminal up to date: what runs, and for how long."""
        while not done.wait(0.3):
            with self.lock:
                running = ", ".join(f"{n} {e.read_text(errors='replace').count(chr(10)) // 2 if e.exists() else 0}" for n, e in self.processes.values())
            sys.stderr.write(f"\r{len(self.finished)} of {len(self.tests)} done, {time.monotonic() - self.started:.0f} s; running (cases done): {running}\033[K"[:250])
            sys.stderr.flush()

    def run(self):
        done = threading.Event()
        if sys.stderr.isatty():
            threading.Thread(target=self.watch, args=(done,), daemon=True).start()
        try:
            alone = [t for t in self.tests if not t["is_parallel"]]
            together = sorted((t for t in self.tests if t["is_parallel"]), key=lambda t: -(t["timeout"] or 0))
            queue = iter(together)

            def work():
                while True:
                    with self.lock:
                        test = next(queue, None)
                    if test is None:
                        return
                    self.run_one(test)

            workers = [threading.Thread(target=work, daemon=True) for _ in range(os.cpu_count() or 1)]
            for w in workers:
                w.start()
            for w in workers:
                while w.is_alive():
                    w.join(0.2)
            for test in alone:
                self.run_one(test)
        finally:
            done.set()
            for process in list(self.processes):
                self.kill(process)
            shutil.rmtree(self.scratch, ignore_errors=True)
        return self.finished


def chosen(tests, rooms):
    if not rooms:
        return tests
    names = [t["name"] for t in tests]
    for room in rooms:
        if room not in names:
            near = difflib.get_close_matches(room, names, 1)
            sys.exit(f"there are no tests named '{room}'" + (f"; did you mean '{near[0]}'?" if near else "") + f"\n  there are: {' '.join(sorted(names))}")
    return [t for t in tests if t["name"] in rooms]


def targets(tests, build):
    """What Ninja must build for these tests, by Meson's own account."""
    files = {t["id"]: t["filename"] for t in json.loads((build / "meson-info/intro-targets.json").read_text())}
    return sorted({os.path.relpath(f, build) for t in tests for d in t["depends"] for f in files.get(d, [])})


EXTRAS, DEEP = "setup/prepare test-extras", "./test --deep"


def show_skipped(outcomes):
    """A line for each reason and room, and what to type where a package or more time would cure it."""
    lines, lacking, deep = {}, 0, 0
    for o in outcomes:
        for case, why in o.skipped:
            lacking, deep = lacking + (EXTRAS in why), deep + (DEEP in why)
            if DEEP not in why:
                lines.setdefault((o.name, why), []).append(case)
    for (room, why), cases in lines.items():
        print(f"SKIPPED {room}: {cases[0]}" + (f" and {len(cases) - 1} more" if len(cases) > 1 else "") + f": {why}")
    if deep:
        print(f"SKIPPED {deep} that only '{DEEP}' runs")
    if lacking:
        print(f"'{EXTRAS}' installs what {lacking} of the skipped tests lack")


def show(outcomes):
    show_skipped(outcomes)
    for o in filter(lambda o: o.failures, outcomes):
        lines = o.output.splitlines()
        print(f"\n---- {o.name}" + (f" (the last {SHOWN_LINES} of {len(lines)} lines)" if len(lines) > SHOWN_LINES else ""))
        print("\n".join(lines[-SHOWN_LINES:]))
    print()
    for o in outcomes:
        for case, reason in o.failures:
            print(f"FAILED {o.name}: {case}: {reason}")


def main():
    p = argparse.ArgumentParser(prog="./test", description="Builds loopegg and runs its tests.")
    p.add_argument("rooms", metavar="SUITE", nargs="*", help="only these suites")
    p.add_argument("--deep", action="store_true", help="the full counts (LOOPEGG_DEEP=1): hours instead of minutes")
    p.add_argument("--debug", action="store_true", help="the debug build, in build-debug, instead of the release build")
    p.add_argument("--list", action="store_true", help="list the suites and exit")
    args = p.parse_args()
    kind = "debug" if args.debug else "release"
    build = ROOT / ("build-debug" if args.debug else "build")
    prepare = [str(ROOT / "setup/prepare"), kind]
    # One suite alone needs only its own executable built, and Meson's list of tests says which that is.
    narrow = bool(args.rooms or args.list)
    if code := subprocess.run(prepare + ["build.ninja" if narrow else "all"]).returncode:
        sys.exit(code)
    tests = chosen(json.loads((build / "meson-info/intro-tests.json").read_text()), args.rooms)
    if args.list:
        print("\n".join(sorted(t["name"] for t in tests)))
        return 0
    if narrow and (code := subprocess.run(prepare + ["program"] + targets(tests, build)).returncode):
        sys.exit(code)
    try:
        outcomes = sorted(Runner(tests, args.deep, build).run(), key=lambda o: o.name)
    except KeyboardInterrupt:
        sys.exit("stopped")
    show(outcomes)
    passed, failed, skipped = (sum(len(getattr(o, k)) for o in outcomes) for k in ("passed", "failures", "skipped"))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
