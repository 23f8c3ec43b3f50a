"""The words around the commands: help, mistakes, completion, the manual. Every row runs the program as a person would.

    words.py LOOPEGG           those cases
    words.py LOOPEGG SOURCE    the pages of SOURCE about commands agree with the help; LOOPEGG_REGENERATE=1 rewrites them
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

LOOPEGG = os.environ.get("LOOPEGG") or sys.argv[1]


def run(*words):
    return subprocess.run([LOOPEGG, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def commands():
    return listed(run("--help-all").stdout)


def listed(help_text):
    """The commands that a help lists, under whichever heading."""
    headings = [block for block in help_text.split("\n\n") if block.splitlines()[0].endswith(":") and not block.startswith("Options:")]
    return [line.split()[0] for block in headings for line in block.splitlines() if line.startswith("  ") and line[2] != " "]


def alone_it_prints_its_help():
    r = run()
    assert r.returncode == 0 and "optimize" in listed(r.stdout) and r.stderr == "", r


def the_first_help_lists_what_most_people_need():
    first, all_of_them = listed(run("--help").stdout), commands()
    assert len(first) <= 16 and set(first) < set(all_of_them), first
    assert "--help-all" in run("--help").stdout


def the_first_help_of_optimize_fits_a_screen():
    short, whole = run("optimize", "--help").stdout, run("optimize", "--help-all").stdout
    assert len(short.splitlines()) <= 40 and "--max-loss" in short and "--channels-multiple-of" not in short, short
    assert "--channels-multiple-of" in whole and all(line in whole for line in short.splitlines() if line.startswith("  --")), whole


def help_and_its_option_say_the_same():
    for c in commands():
        r, o = run("help", c), run(c, "--help")
        assert r.returncode == o.returncode == 0 and "Example:\n  " in r.stdout, (c, r)
        assert r.stdout.split("Usage")[0] == o.stdout.split("Usage")[0], c


def a_mistyped_command_is_answered_with_the_one_meant():
    r = run("tem")
    assert r.returncode == 2 and r.stdout == "", r
    assert r.stderr == "error: 'loopegg' has no command 'tem'\n  did you mean 'term'?\n", r.stderr


def a_mistyped_option_is_answered_with_the_one_meant():
    r = run("term", "x", "--jso")
    assert r.returncode == 2 and r.stderr == "error: 'loopegg term' has no option '--jso'\n  did you mean '--json'?\n", r


def a_missing_argument_is_named():
    r = run("term")
    assert r.returncode == 2 and "FILE is required" in r.stderr and "see 'loopegg term --help'" in r.stderr, r


def more_threads_than_processors_are_refused():
    here = len(os.sched_getaffinity(0))
    r = run("optimize", "zoo:bert-tiny", "--threads", str(here + 1))
    assert r.returncode == 2 and f"--threads {here + 1}: this process may use" in r.stderr and "ssh" in r.stderr, r
    r = run("optimize", "zoo:bert-tiny", "--threads", "1", "--target", "i7")
    assert r.returncode == 2 and "'i7' do not run on this machine" in r.stderr, r


def mistakes_are_json_when_json_was_asked_for():
    for words in (["tem", "--json"], ["term", "--json", "--wrong"], ["term", "--json"], ["term", "no-such-file", "--json"]):
        r = run(*words)
        answer = json.loads(r.stdout)
        assert r.returncode in (1, 2) and answer["ok"] is False and answer["errors"][0]["message"], (words, r)


def a_command_s_name_may_be_an_argument():
    r = run("help", "term")
    assert r.returncode == 0 and "FILE" in r.stdout, r


def every_command_answers_a_wrong_option_alike():
    for c in commands():
        r = run(c, "--no-such-option")
        assert r.returncode == 2 and f"'loopegg {c}' has no option '--no-such-option'" in r.stderr and r.stdout == "", (c, r)


def completed(*words):
    """The completions that bash offers for the last word."""
    quoted = " ".join(f"'{w}'" for w in ("loopegg", *words))
    script = run("completion", "bash").stdout + f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _loopegg; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    r = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == "", r
    return r.stdout.split()


def bash_completes_commands_and_options():
    assert completed("ter") == ["term"]
    assert completed("term", "--js") == ["--json"]
    assert set(commands()) == set(completed(""))
    assert completed("term", "x") == []


def scripts_for_other_shells_parse():
    for shell in ("zsh", "fish"):
        script = run("completion", shell).stdout
        assert all(c in script for c in commands()), shell
        if shutil.which(shell):
            r = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
            assert r.returncode == 0, r.stderr


def the_manual_names_every_command():
    page = run("manual").stdout
    assert page.startswith(".TH LOOPEGG 1")
    for c in commands():
        assert f".SS {c}\n" in page, c


CASES = [alone_it_prints_its_help, the_first_help_lists_what_most_people_need, the_first_help_of_optimize_fits_a_screen,
         help_and_its_option_say_the_same, a_mistyped_command_is_answered_with_the_one_meant,
         a_mistyped_option_is_answered_with_the_one_meant, a_missing_argument_is_named, mistakes_are_json_when_json_was_asked_for,
         more_threads_than_processors_are_refused, a_command_s_name_may_be_an_argument, every_command_answers_a_wrong_option_alike, bash_completes_commands_and_options,
         scripts_for_other_shells_parse, the_manual_names_every_command]
def the_reference_of_commands_is_what_the_help_says():
    done = subprocess.run([pathlib.Path(sys.argv[2]) / "setup/write-cli-reference", os.path.abspath(sys.argv[1]), *([] if os.environ.get("LOOPEGG_REGENERATE", "") not in ("", "0") else ["--check"])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


run_cases([the_reference_of_commands_is_what_the_help_says] if len(sys.argv) > 2 else CASES)
