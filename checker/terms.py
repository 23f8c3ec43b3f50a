"""Terms, read from s-expressions. Equal terms are one object, so that they are compared and looked up at no cost."""
import re

from faults import Refused

DEEPEST = 2000      # parentheses, as the engine's reader allows
TOKEN = re.compile(r'(?:[ \t\r\n]|;[^\n]*)*(?:([()])|("(?:[^"\\\n]|\\.)*")|([^\s();"]+))')
BLANK = re.compile(r"(?:[ \t\r\n]|;[^\n]*)*\Z")
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


class Term:
    """An operator over terms; made by `term` alone."""
    __slots__ = ("op", "parts")

    def is_(self, op, count):
        return self.op == op and len(self.parts) == count

    def whole(self):
        """The whole number that a leaf spells, or None."""
        return int(self.op) if not self.parts and WHOLE.fullmatch(self.op) else None

    def __str__(self):
        return "(" + " ".join([self.op, *map(str, self.parts)]) + ")" if self.parts else self.op


KNOWN = {}


def term(op, *parts):
    key = (op, parts)
    if key not in KNOWN:
        made = KNOWN[key] = Term()
        made.op, made.parts = op, parts
    return KNOWN[key]


def number(value):
    return term(str(value))


def read_forms(text):
    """Nested lists of words. A quoted string keeps its first quote, so that it is no word."""
    open_, at = [[]], 0
    while not BLANK.match(text, at):
        token = TOKEN.match(text, at)
        if not token:
            raise Refused(f"'{text[at:at + 30]}' is no s-expression")
        at = token.end()
        if token[1] == "(":
            open_.append([])
            if len(open_) > DEEPEST:
                raise Refused(f"an s-expression is deeper than {DEEPEST} parentheses")
        elif token[1] == ")":
            if len(open_) == 1:
                raise Refused("a ')' closes nothing")
            done = open_.pop()
            open_[-1].append(done)
        else:
            open_[-1].append(token[3] or token[2][:-1])
    if len(open_) > 1:
        raise Refused("a '(' is never closed")
    return open_[0]


def to_term(form):
    if isinstance(form, str):
        return term(form)
    if not form or not isinstance(form[0], str):
        raise Refused("a term begins with its operator")
    return term(form[0], *map(to_term, form[1:]))


def read_term(text):
    forms = read_forms(text)
    if len(forms) != 1:
        raise Refused(f"one term is expected, and '{text[:40]}' has {len(forms)}")
    return to_term(forms[0])


def part_at(whole, path):
    for i in path:
        if not 0 <= i < len(whole.parts):
            raise Refused("there is no such place in the network")
        whole = whole.parts[i]
    return whole


def with_part(whole, path, part):
    if not path:
        return part
    parts = list(whole.parts)
    parts[path[0]] = with_part(parts[path[0]], path[1:], part)
    return term(whole.op, *parts)
