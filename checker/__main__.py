"""Checks the certificate of a folder that 'loopegg optimize' wrote, without loopegg (docs/reference/certificate.md).

Exit code 0: accepted. 1: refused. 2: not checked, because the format does not cover it or the words are wrong.
"""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True

from certificate import Check   # noqa: E402
from rules import texts_in      # noqa: E402
from terms import NotCovered, Refused   # noqa: E402

MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError)


def check(folder, rule_files):
    """(exit code, lines to print)"""
    try:
        trusted = {name: text for file in rule_files for name, text in texts_in(pathlib.Path(file).resolve(), set()).items()}
        done = Check(pathlib.Path(folder), trusted if rule_files else None)
        done.run()
    except Refused as e:
        return 1, [f"refused: {e}"]
    except NotCovered as e:
        return 2, [f"not checked: {e}"]
    except MALFORMED as e:
        return 1, [f"refused: it is not as docs/reference/certificate.md says ({type(e).__name__}: {e})"]
    return 2 if done.open else 0, [f"holds: {what}" for what in done.held] + ([f"not checked: {what}" for what in done.open] or ["accepted"])


def main(words):
    parser = argparse.ArgumentParser(prog="python3 checker", description=__doc__.split("\n")[0])
    parser.add_argument("folder", metavar="OUT", help="the folder of a run")
    parser.add_argument("--rules", metavar="FILE", action="append", default=[], help="a rule file that is trusted, with what it includes")
    options = parser.parse_args(words)
    sys.setrecursionlimit(20000)
    code, lines = check(options.folder, options.rules)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
