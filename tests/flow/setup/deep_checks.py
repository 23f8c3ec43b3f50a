"""What ./test --deep asks of the code besides its tests: our own rooms under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, and clang-tidy over every source.

TVM and LibTorch come as built libraries without instrumentation, so the rooms that load them are left out; what is shared between threads (stores, claims, e-graphs, progress) is in.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Skipped, run_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("LOOPEGG_BUILD") or sys.argv[1])
ROOMS = {"base": "tests/test_base", "egraph": "tests/test_egraph", "graph": "tests/test_graph", "batch": "tests/test_batch", "fuzz": "tests/fuzz/test_fuzz"}
TIDY = next((t for t in ("clang-tidy-19", "clang-tidy-18", "clang-tidy-17", "clang-tidy-16", "clang-tidy-15") if shutil.which(t)), None)


def deep_only():
    if os.environ.get("LOOPEGG_DEEP") != "1":
        raise Skipped("it takes an hour: only with --deep")


def under(sanitizer):
    deep_only()
    folder = ROOT / f"build-{sanitizer.replace(',', '-')}"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(folder), str(ROOT), "--buildtype=debugoptimized", f"-Db_sanitize={sanitizer}", "-Db_lundef=false", "-Db_pch=false"], check=True, capture_output=True)
    names = {t for t in subprocess.run(["ninja", "-C", str(folder), "-t", "targets", "all"], capture_output=True, text=True).stdout.splitlines()}
    rooms = {r: e for r, e in ROOMS.items() if any(line.startswith(e + ":") for line in names)}
    assert len(rooms) >= 4, rooms
    subprocess.run(["ninja", "-C", str(folder), *rooms.values()], check=True, capture_output=True)
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1", TSAN_OPTIONS="halt_on_error=1")
    environment.pop("LOOPEGG_DEEP")
    for room, executable in rooms.items():
        r = subprocess.run([str(folder / executable)], capture_output=True, text=True, errors="replace", env=environment, cwd=folder)
        assert r.returncode == 0, (room, (r.stdout + r.stderr)[-3000:])
    return ": " + ", ".join(rooms)


def our_rooms_are_clean_under_address_and_undefined_sanitizers():
    return under("address,undefined")


def our_rooms_are_clean_under_the_thread_sanitizer():
    return under("thread")


def clang_tidy_finds_nothing():
    deep_only()
    if not TIDY:
        raise Skipped("clang-tidy 15 or later is not installed (14 lacks source_location)")
    sources = [str(f) for room in ("src", "rules", "extract", "backends", "fisher") for f in sorted((ROOT / room).rglob("*.cpp")) if "runtime" not in f.parts]
    found = []
    for at in range(0, len(sources), 8):
        r = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", *sources[at:at + 8]], capture_output=True, text=True)
        found += [line for line in r.stdout.splitlines() if re.search(r": (warning|error): ", line)]
    assert not found, "\n".join(found[:40])
    return f": {len(sources)} sources"


run_cases([our_rooms_are_clean_under_address_and_undefined_sanitizers, our_rooms_are_clean_under_the_thread_sanitizer, clang_tidy_finds_nothing])
