"""Checks the certificate of a folder that 'loopegg optimize' wrote, without loopegg (docs/reference/certificate.md). Exit code 0: accepted.
1: refused. 2: not checked, because the format does not cover it or the words are wrong."""
import pathlib
import sys

sys.dont_write_bytecode = True
from certificate import Check   # noqa: E402
from rules import texts_in      # noqa: E402
from terms import NotCovered, Refused   # noqa: E402

USAGE = "usage: python3 checker OUT [--rules FILE]...    OUT: the folder of a run; FILE: a rule file that is trusted, with what it includes"
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError)

def check(folder, rule_files):
    """(exit code, lines to print)"""
    held = []
    try:
        trusted = {name: text for file in rule_files for name, text in texts_in(pathlib.Path(file).resolve(), set()).items()}
        Check(pathlib.Path(folder), trusted if rule_files else None, held).run()
    except (Refused, NotCovered) as e:
        return e.code, held + [f"{e.word}: {e}"]
    except MALFORMED as e:
        return 1, held + [f"refused: it is not as docs/reference/certificate.md says ({type(e).__name__}: {e})"]
    return 0, held + ["accepted"]

def main(words):
    if not words or words[0].startswith("-") or len(words) % 2 == 0 or set(words[1::2]) - {"--rules"}:
        print(USAGE, file=sys.stderr)
        return 2
    sys.setrecursionlimit(20000)
    code, lines = check(words[0], words[2::2])
    print(*lines, sep="\n")
    return code

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
