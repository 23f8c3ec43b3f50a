"""What ./test --deep asks of the code besides its tests: our own rooms under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, and clang-tidy over every source.

TVM and LibTorch come as built libraries without instrumentation, so the rooms that load them are left out; what is shared between threads (stores, claims,
e-graphs, progress, the threads of compiled networks) is in. LOOPEGG_ROOMS="base egraph" takes these rooms alone, LOOPEGG_TIDY="src/base src/egraph" these folders.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, OnlyDeep, run_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("LOOPEGG_BUILD") or sys.argv[1])
ROOMS = {"base": "tests/test_base", "egraph": "tests/test_egraph", "graph": "tests/test_graph", "batch": "tests/test_batch", "extract": "tests/unit/extract/test_extract", "nest": "tests/unit/nest/test_nest",
         "rules": "tests/unit/rules/test_rules", "report": "tests/test_report", "fuzz": "tests/fuzz/test_fuzz", "runtime": "tests/test_runtime"}
TIDY = next((t for t in ("clang-tidy-19", "clang-tidy-18", "clang-tidy-17", "clang-tidy-16", "clang-tidy-15") if shutil.which(t)), None)
FOLDERS = os.environ.get("LOOPEGG_TIDY", "src rules extract backends fisher").split()


def deep_only():
    if os.environ.get("LOOPEGG_DEEP") != "1":
        raise OnlyDeep("it takes an hour")


def jobs():
    """As many jobs as there are cores, or fewer where memory is short, because compiling an instrumented file takes up to 2.5 GB."""
    free = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
    return str(max(1, min(os.cpu_count() or 1, free // 2_500_000)))


def built(sanitizer, targets):
    folder = ROOT / f"build-{sanitizer.replace(',', '-')}"
    if not (folder / "build.ninja").exists():
        r = subprocess.run(["meson", "setup", str(folder), str(ROOT), "--buildtype=debugoptimized", f"-Db_sanitize={sanitizer}", "-Db_lundef=false", "-Db_pch=false"], capture_output=True, text=True)
        assert r.returncode == 0, (r.stdout + r.stderr)[-3000:]
    r = subprocess.run(["ninja", "-C", str(folder), "-j", jobs(), *targets], capture_output=True, text=True)
    assert r.returncode == 0, r.stdout[-3000:]
    return folder


def executables():
    known = {line.split(":")[0] for line in subprocess.run(["ninja", "-C", str(BUILD), "-t", "targets", "all"], capture_output=True, text=True).stdout.splitlines()}
    missing = [e for e in ROOMS.values() if e not in known]
    assert not missing, f"Ninja knows no {missing}"
    wanted = os.environ.get("LOOPEGG_ROOMS", "").split() or list(ROOMS)
    return {room: ROOMS[room] for room in wanted}


def under(sanitizer):
    deep_only()
    rooms = executables()
    folder = built(sanitizer, rooms.values())
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
                       TSAN_OPTIONS=f"halt_on_error=1:die_after_fork=0:suppressions={ROOT}/setup/thread-sanitizer.txt")
    environment.pop("LOOPEGG_DEEP")
    bad = []
    for room, executable in rooms.items():
        r = subprocess.run([str(folder / executable)], capture_output=True, text=True, errors="replace", env=environment, cwd=folder)
        print(f"  {room} under {sanitizer}: {'clean' if r.returncode == 0 else r.returncode}", flush=True)
        if r.returncode:
            bad.append(f"{room}: {(r.stdout + r.stderr)[-3000:]}")
    assert not bad, "\n".join(bad)
    return ": " + ", ".join(rooms)


def our_rooms_are_clean_under_address_and_undefined_sanitizers():
    return under("address,undefined")


def our_rooms_are_clean_under_the_thread_sanitizer():
    return under("thread")


def clang_tidy_finds_nothing():
    deep_only()
    if not TIDY:
        raise Lacking("there is no clang-tidy 15 or later here")
    sources = [str(f) for room in FOLDERS for f in sorted((ROOT / room).rglob("*.cpp")) if "runtime" not in f.parts]
    found = []
    for at in range(0, len(sources), 8):
        r = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", *sources[at:at + 8]], capture_output=True, text=True)
        found += [line for line in r.stdout.splitlines() if re.search(r": (warning|error): ", line)]
        print(f"  clang-tidy: {min(at + 8, len(sources))} of {len(sources)} sources, {len(found)} found", flush=True)
    assert not found, "\n".join(sorted(set(found))[:60])
    return f": {len(sources)} sources"


run_cases([our_rooms_are_clean_under_address_and_undefined_sanitizers, our_rooms_are_clean_under_the_thread_sanitizer, clang_tidy_finds_nothing])
