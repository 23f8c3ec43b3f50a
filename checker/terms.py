"""Terms, read from s-expressions. Equal terms are one object, so that they are compared and looked up at no cost."""
import re

TOKEN = re.compile(r'(?:[ \t\r\n]|;[^\n]*)*(?:([()])|("(?:[^"\\\n]|\\.)*")|([^\s();"]+)|\Z)')
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")

class Refused(Exception):
    code, word = 1, "refused"   # the certificate claims what does not hold

class NotCovered(Exception):
    code, word = 2, "not checked"   # the certificate, or the network, uses what this version of the format does not cover: nothing is said about it

def require(holds, why):
    if not holds:
        raise Refused(why)

class Term:
    """An operator over terms."""
    __slots__ = ("op", "parts")
    known = {}
    def __new__(cls, op, *parts):
        if (op, parts) not in cls.known:
            made = cls.known[op, parts] = super().__new__(cls)
            made.op, made.parts = op, parts
        return cls.known[op, parts]
    def is_(self, op, count):
        return self.op == op and len(self.parts) == count
    def whole(self):
        """The whole number that a leaf spells, or None."""
        return int(self.op) if not self.parts and WHOLE.fullmatch(self.op) else None
    def __str__(self):
        return "(" + " ".join([self.op, *map(str, self.parts)]) + ")" if self.parts else self.op

def read_forms(text):
    """Nested lists of words. A quoted string keeps its first quote, so that it is no word."""
    open_, at = [[]], 0
    while at < len(text):
        token = TOKEN.match(text, at)
        require(token, f"'{text[at:at + 30]}' is no s-expression")
        at, bracket = token.end(), token[1]
        if bracket == "(":
            open_.append([])
            require(len(open_) <= 2000, "an s-expression is deeper than 2000 parentheses")
        elif bracket:
            require(len(open_) > 1, "a ')' closes nothing")
            done = open_.pop()
            open_[-1].append(done)
        elif token[2] or token[3]:
            open_[-1].append(token[3] or token[2][:-1])
    require(len(open_) == 1, "a '(' is never closed")
    return open_[0]

def to_term(form):
    if isinstance(form, str):
        return Term(form)
    require(form and isinstance(form[0], str), "a term begins with its operator")
    return Term(form[0], *map(to_term, form[1:]))

def read_term(text):
    forms = read_forms(text)
    require(len(forms) == 1, f"one term is expected, and '{text[:40]}' has {len(forms)}")
    return to_term(forms[0])

def part_at(whole, path):
    for i in path:
        require(0 <= i < len(whole.parts), "there is no such place in the network")
        whole = whole.parts[i]
    return whole

def with_part(whole, path, part):
    return Term(whole.op, *(with_part(p, path[1:], part) if i == path[0] else p for i, p in enumerate(whole.parts))) if path else part
