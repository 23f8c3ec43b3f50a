"""The cases of a test script: each is run, and one line says how it ended ('ok - NAME', 'not ok - NAME' or 'SKIPPED: NAME: WHY'), as setup/run_tests.py reads them."""
import sys


class Skipped(Exception):
    """What a case raises when the machine lacks something it needs; the message says what."""


def sentence(case):
    """A function's name as words: a_command_s_name is "a command's name"."""
    return case.__name__.replace("_s_", "'s ").replace("_", " ")


def run_cases(cases, prefix="", call=lambda case: case()):
    """Runs them all, whatever fails, and ends the script. `cases`: functions, or (name, function); what a case returns is added to its name."""
    failed = 0
    for case in cases:
        name, function = case if isinstance(case, tuple) else (prefix + sentence(case), case)
        try:
            said = call(function)
            print(f"ok - {name}{said or ''}", flush=True)
        except Skipped as e:
            print(f"SKIPPED: {name}: {e}", flush=True)
        except Exception as e:
            failed += 1
            print(f"  {type(e).__name__}: {e}\nnot ok - {name}", flush=True)
    sys.exit(1 if failed else 0)
