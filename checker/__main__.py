"""Checks the certificate of a folder that 'loopegg optimize' wrote, without loopegg.

    python3 checker OUT [--rules FILE]...

Exit code 0: accepted. 1: refused. 2: not checked, because the format does not cover it or the words are wrong.
"""
import pathlib
import sys

from certificate import Check
from faults import NotCovered, Refused
from rules import rules_in
from terms import read_forms

USAGE = "usage: python3 checker OUT [--rules FILE]..."


def trusted_rules(path, seen):
    """The text of each rule of a rule file and of the files that it includes, by its name."""
    path = path.resolve()
    if path in seen:
        return {}
    seen.add(path)
    forms = read_forms(path.read_text())
    texts = {rule.name: rule.text for rule in rules_in(forms, of_one_term=True)}
    for form in forms:
        if isinstance(form, list) and form[:1] == ["include"]:
            texts.update(trusted_rules(path.parent / form[1][1:], seen))
    return texts


def check(folder, rule_files):
    """(exit code, lines to print)"""
    check = None
    try:
        trusted = {}
        for file in rule_files:
            trusted.update(trusted_rules(pathlib.Path(file), set()))
        check = Check(pathlib.Path(folder), trusted if rule_files else None)
        check.run()
    except Refused as e:
        return 1, [f"refused: {e}"]
    except NotCovered as e:
        return 2, [f"not checked: {e}"]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError) as e:
        return 1, [f"refused: it is not as docs/reference/certificate.md says ({type(e).__name__}: {e})"]
    held = [f"holds: {what}" for what in check.held]
    return (2, held + [f"not checked: {what}" for what in check.open]) if check.open else (0, held + ["accepted"])


def main(words):
    folders, rule_files = [], []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--rules" and words:
            rule_files.append(words.pop(0))
        elif word.startswith("-"):
            folders = []
            break
        else:
            folders.append(word)
    if len(folders) != 1:
        print(USAGE, file=sys.stderr)
        return 2
    sys.setrecursionlimit(20000)
    code, lines = check(folders[0], rule_files)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
