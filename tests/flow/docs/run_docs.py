"""Runs every command of README.md and of every page of docs as a reader would, top to bottom, a folder of its own for each page.

    run_docs.py LOOPEGG_PROGRAM SOURCE_FOLDER [PAGE...]

A fence of `sh` is run. `sh deep` is run with LOOPEGG_DEEP=1 alone, because it takes minutes. `sh elsewhere=TEST` is what another test
of ./test runs (set-up, installing, servers), and `sh by-hand` is what no test runs, because it downloads gigabytes.
A fence of `console` is run as well, and what follows a `$ COMMAND` must be what it prints; a line `...` stands for any lines. With LOOPEGG_REGENERATE=1 the
printed lines of fences without `...` are written anew.
Commands that stand in running text, with names for files that the reader has, must be commands of the program, with options that it has.
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

PROGRAM, SOURCE, *ONLY = os.path.abspath(sys.argv[1]), *sys.argv[2:]
SOURCE = pathlib.Path(SOURCE).resolve()
DEEP = os.environ.get("LOOPEGG_DEEP", "") not in ("", "0")
TESTS = pathlib.Path(os.environ.get("LOOPEGG_BUILD", "/none")) / "meson-info/intro-tests.json"
TEST_NAMES = {t["name"] for t in json.loads(TESTS.read_text())} if TESTS.exists() else set()
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```", re.M | re.S)


def environment(folder):
    shim = folder / "bin" / "loopegg"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{PROGRAM}" "$@"\n')
    shim.chmod(0o755)
    (folder / "loopegg").symlink_to(shim)
    for name in ("examples", "rules", "docs", "backends", "checker"):
        (folder / name).symlink_to(SOURCE / name)
    return dict(os.environ, PATH=f"{shim.parent}:{os.environ['PATH']}", LOOPEGG_STORE=f"{folder}/latency.sqlite", LOOPEGG_EVIDENCE=f"{folder}/evidence.sqlite",
                LOOPEGG_TARGETS=f"{folder}/targets")


def run_page(page):
    """Runs the page's fences. Returns how many fences ran and how many were left to a deep run."""
    ran = left = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = environment(folder)
        for language, words, text in FENCE.findall(page.read_text()):
            if language not in ("sh", "console") or "elsewhere=" in words or "by-hand" in words.split():
                continue
            if "deep" in words.split() and not DEEP:
                left += 1
                continue
            if language == "console":
                compare_console(page, text, folder, env)
                ran += 1
                continue
            script = "set -e\n" + text
            done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=3600 if DEEP else 400)
            if done.returncode != 0:
                raise AssertionError(f"this ended with {done.returncode}:\n{text}{done.stdout[-1500:]}{done.stderr[-1500:]}")
            ran += 1
    return ran, left


def same_lines(expected, printed):
    """Whether the lines are those that were printed, where `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def compare_console(page, text, folder, env):
    """Runs each `$ COMMAND` of a fence and compares what it prints with the lines below it."""
    written = ""
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, *expected = part.rstrip("\n").split("\n")
        while expected and expected[0].startswith("  ") and (command.endswith("\\") or "<<" in command or command.count("'") % 2):
            command += "\n" + expected.pop(0)[2:]      # what goes on is indented by two blanks
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=400)
        if done.returncode != 0:
            raise AssertionError(f"this ended with {done.returncode}: {command}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
        printed = [line.rstrip() for line in done.stdout.strip("\n").split("\n") if done.stdout.strip()]
        if not same_lines(expected, printed) and not os.environ.get("LOOPEGG_REGENERATE"):
            raise AssertionError(f"'{command}' prints\n" + "\n".join(printed) + "\nand the page says\n" + "\n".join(expected))
        written += "$ " + command.replace("\n", "\n  ") + "\n" + "".join(line + "\n" for line in (expected if same_lines(expected, printed) else printed))
    if os.environ.get("LOOPEGG_REGENERATE"):
        page.write_text(page.read_text().replace(text, written))


HELP = {}


def help_of(command):
    if command not in HELP:
        done = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True)
        HELP[command] = done.stdout if done.returncode == 0 else None
    return HELP[command]


def check_words(page):
    """Commands in running text are commands of the program, and outside fences of `sh` no line is a command."""
    text = FENCE.sub("", page.read_text())
    for line in text.splitlines():
        if re.match(r"^ {4}(\$ )?(\./)?(loopegg|test|meson|bench/\w+) ", line):
            raise AssertionError(f"a command outside a fence of sh is not run by anything: {line.strip()}")
    for name in re.findall(r"(?m)^```sh elsewhere=(\S+)", page.read_text()):
        if TEST_NAMES and name not in TEST_NAMES:
            raise AssertionError(f"'elsewhere={name}' names no test: expected one of {' '.join(sorted(TEST_NAMES))}")
    for code in re.findall(r"`([^`\n]+)`", text):
        found = re.match(r"(?:\./)?loopegg ([a-z]+)(.*)", code)
        if not found:
            continue
        command, rest = found.groups()
        about = help_of(command)
        if about is None:
            raise AssertionError(f"'loopegg {command}' is no command: {code}")
        for option in re.findall(r"(?<![\w-])(--[a-z-]+)", rest):
            if option not in about and not re.search(r"loopegg \w+ (add|import|list|check)", code):
                raise AssertionError(f"'loopegg {command}' has no option {option}: {code}")


def pages_commands(page):
    check_words(page)
    ran, left = run_page(page)
    return f": {ran} blocks ran" + (f", {left} are for --deep" if left else "")


pages = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]
pages = [page for page in pages if "cli" not in page.parts]   # generated from the program
named = {str(page.relative_to(SOURCE)): page for page in pages}
run_cases([(f"the commands of {name}", functools.partial(pages_commands, page)) for name, page in named.items() if not ONLY or name in ONLY])
