"""What every figure works with: the program, the folder of results, and the machine that results are from."""
import fnmatch
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("LOOPEGG_DATA") or ROOT / "../shared/data")
PEERS = ROOT / ".deps/peers/bin/python3"


class Failed(Exception):
    """A figure cannot be measured here, and why."""


class Refused(Failed):
    """The program says why it does not do this."""


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.split(":")[1].strip()
    return platform.machine()


def commit():
    """Of the source that measures; empty where there is no repository."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else os.environ.get("LOOPEGG_COMMIT", "")


def read_rows(file):
    """{figure: {key: line}} of a file of measurements."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(line)
            found.setdefault(row["figure"], {})[row["key"]] = row
        except (ValueError, KeyError):   # a line that a kill cut off
            continue
    return found


class Rows:
    """The lines of one figure: append-only, one for each key."""

    def __init__(self, file, figure, known, facts, only):
        self.file, self.figure, self.known, self.facts, self.only = file, figure, known, facts, only

    def all(self):
        return list(self.known.values())

    def has(self, key):
        """Whether the line exists, or is not requested."""
        return key in self.known or not any(fnmatch.fnmatchcase(key, glob) for glob in self.only)

    def add(self, key, **values):
        row = {"figure": self.figure, "key": key, **values, **self.facts, "load": round(os.getloadavg()[0], 2), "date": time.strftime("%Y-%m-%d", time.gmtime())}
        cut_off = self.file.exists() and not self.file.read_bytes().endswith(b"\n") and self.file.stat().st_size > 0
        with open(self.file, "a") as f:
            f.write(("\n" if cut_off else "") + json.dumps(row) + "\n")
        self.known[key] = row


class Session:
    def __init__(self, options, figures):
        self.out, self.quick, self.judged = options.out, options.quick, not options.unjudged
        self.program = os.environ.get("LOOPEGG") or str(ROOT / "build/src/cli/loopegg")
        self.facts = {"machine": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} cores of {cpu_name()}", "commit": commit(), "quick": self.quick}
        self.out.mkdir(parents=True, exist_ok=True)
        self.file = self.out / "measurements.jsonl"
        self.known = read_rows(self.file)
        if measured := [f for f in figures if f in self.known and not options.resume]:
            raise Failed(f"'{self.out}' holds results of {', '.join(measured)}: --resume keeps them and measures what is missing, another --out starts anew")
        self.only, self.tables = options.only or ["*"], {}

    def rows(self, figure):
        if figure not in self.tables:
            only = ["*"] if figure == "losses" else self.only
            self.tables[figure] = Rows(self.file, figure, self.known.get(figure, {}), self.facts, only)
        return self.tables[figure]

    def say(self, line):
        print(line, file=sys.stderr, flush=True)

    def ask(self, *words):
        """What a command of the program answers with --json."""
        command = [self.program, *map(str, words), "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise Failed(f"'{' '.join(command)}' ended with {done.returncode}: {done.stderr.strip()[-300:]}") from None
        if done.returncode != 0:
            raise Refused("; ".join(e["message"] for e in answer.get("errors", [{"message": done.stderr.strip()}])))
        return answer


def provenance(rows, **more):
    """Who measured what a plot shows, where and when, in one line."""
    def each(key):
        return ", ".join(sorted({str(r[key]) for r in rows if r.get(key)})) or "unknown"
    loads = [r["load"] for r in rows]
    facts = {"machine": each("machine"), "date": each("date"), "commit": each("commit"), "load average while measuring": f"{min(loads)} to {max(loads)}", **more}
    return ". ".join(f"{k.capitalize()}: {v}" for k, v in facts.items()) + "."
