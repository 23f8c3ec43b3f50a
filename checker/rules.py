"""Rules: their texts, how they match, and the conditions and values that they compute."""
import math

import sizes
from faults import NotCovered, Refused
from nests import with_fewer_inputs, with_outputs
from terms import Term, WHOLE, number, read_forms, term

ARROWS = {"=>": False, "<=>": False, "~>": True}     # neural?


def spelled(form):
    """A form as the engine prints it."""
    return form if isinstance(form, str) else "(" + " ".join(map(spelled, form)) + ")"


class Rule:
    """A rule over one term: name, left, right, neural, choices (variable, list) and guards."""

    def __init__(self, form):
        arrows = [i for i, word in enumerate(form) if isinstance(word, str) and word in ARROWS]
        keys = [i for i, word in enumerate(form) if isinstance(word, str) and word.startswith(":")] + [len(form)]
        if len(arrows) != 1 or form[0] != "rule" or not isinstance(form[1], str):
            raise Refused(f"'{spelled(form)[:60]}' is no rule")
        self.name, self.neural, self.text = form[1], ARROWS[form[arrows[0]]], spelled(form)
        if arrows[0] != 3 or keys[0] != 5:
            raise NotCovered(f"the rule {self.name} is over several patterns")
        self.left, self.right, self.choices, self.guards = form[2], form[4], [], []
        for start, end in zip(keys, keys[1:]):
            if form[start] == ":for" and end == start + 3:
                self.choices.append((form[start + 1], form[start + 2]))
            elif form[start] == ":when":
                self.guards += form[start + 1:end]
            else:
                raise Refused(f"the rule {self.name} has a condition that is none: '{form[start]}'")


def rules_in(forms):
    """All rules of the forms of a rule file, those of rulesets too."""
    for form in forms:
        if isinstance(form, list) and form[:1] == ["rule"]:
            yield Rule(form)
        elif isinstance(form, list) and form[:1] == ["ruleset"]:
            yield from rules_in(form[2:])


def rule_of(text):
    forms = read_forms(text)
    if len(forms) != 1 or not isinstance(forms[0], list) or len(forms[0]) < 5:
        raise Refused(f"'{text[:60]}' is no rule")
    return Rule(forms[0])


def is_variable(form):
    return isinstance(form, str) and form.startswith("?")


def match(pattern, t, bound):
    """Adds to `bound` what the variables of the pattern stand for. Whether the term is an instance of the pattern."""
    if is_variable(pattern):
        return bound.setdefault(pattern, t) is t
    if isinstance(pattern, str):
        return term(pattern) is t
    return pattern[0] == t.op and len(pattern) == len(t.parts) + 1 and all(match(p, q, bound) for p, q in zip(pattern[1:], t.parts))


def some(a, b, value):
    return None if a is None or b is None else value(a, b)


def widths_offered(channels, step):
    """One to seven eighths of the channels, in whole multiples of the step; from 16 channels on, of four at least."""
    block = max(step, 4 if channels >= 16 else 1)
    return sorted({w for w in (channels * k // 8 // block * block for k in range(1, 8)) if 0 < w < channels})


# Functions of whole numbers. The first five take any number of arguments from two on.
FOLDED = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max, "gcd": lambda a, b: math.gcd(a, b) if a > 0 and b > 0 else None}
BINARY = {"-": lambda a, b: a - b, "/": lambda a, b: a // b if b and a % b == 0 else None,
          "floor-div": lambda a, b: a // b if b else None, "%": lambda a, b: a % b if b else None}
COMPARED = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b, "divides": lambda a, b: a != 0 and b % a == 0}
OF_NETS = {"fresh": sizes.fresh, "channelwise": sizes.channelwise, "whole": lambda s: not s.trimmed, "narrowable": lambda s: s.narrowable,
           "separate": lambda s: not s.adds_input, "computes": lambda s: s.computes, "free": lambda s: not s.kept}
RESIZING = {"with-outputs": with_outputs, "with-fewer-inputs": with_fewer_inputs}
COUNTS = {"channels": sizes.written, "channels-in": lambda s: s.into}
FUNCTIONS = {*FOLDED, *BINARY, *RESIZING, *COUNTS, "absent"}


class Application:
    """One application of a rule to a term. `given`: values of `:for` variables; `step`: what offered widths are multiples of."""

    def __init__(self, rule, facts, given, step):
        self.rule, self.facts, self.given, self.step, self.bound = rule, facts, given, step, {}

    def apply(self, t):
        if not match(self.rule.left, t, self.bound):
            raise Refused(f"{self.rule.name} does not match there")
        for variable, list_ in self.rule.choices:
            self.choose(variable, list_)
        if set(self.given) - {variable for variable, _ in self.rule.choices}:
            raise Refused(f"{self.rule.name} leaves nothing to choose for {', '.join(self.given)}")
        made = self.instance(self.rule.right)
        for guard in self.rule.guards:
            if not self.holds(guard):
                raise Refused(f"{self.rule.name}: {spelled(guard)} does not hold")
        return made

    def choose(self, variable, list_):
        offered = self.offered(list_)
        value = self.given.get(variable, offered[0] if len(offered) == 1 else None)
        if value not in offered:
            raise Refused(f"{self.rule.name}: {value} is none of {spelled(list_)}")
        self.bound[variable] = value

    def offered(self, list_):
        if not isinstance(list_, list) or not list_ or any(isinstance(word, str) and word.startswith('"') for word in list_):
            raise Refused(f"{self.rule.name} chooses from what is no list")
        if list_[0] == "eighths" and len(list_) == 2:
            count = sizes.written(self.facts.of(self.value(list_[1])))
            return [number(w) for w in widths_offered(count, self.step)] if count is not None else []
        if any(isinstance(word, list) or is_variable(word) for word in list_):
            raise NotCovered(f"the list {spelled(list_)} is not covered")
        return [term(word) for word in list_]

    def instance(self, form):
        if isinstance(form, str):
            return self.bound[form] if form in self.bound else term(form)
        if form[0] not in FUNCTIONS:
            return term(form[0], *(self.instance(part) for part in form[1:]))
        value = self.value(form)
        if value is None:
            raise Refused(f"{self.rule.name}: {spelled(form)} has no value")
        return value if isinstance(value, Term) else number(value)

    def value(self, form):
        """A term for a variable, a number or a term for a call; None where there is no value."""
        if isinstance(form, str):
            return self.bound.get(form, None) if is_variable(form) else int(form) if WHOLE.fullmatch(form) else None
        name, arguments = form[0], form[1:]
        if name in FOLDED or name in BINARY:
            result = self.whole(arguments[0])
            for argument in arguments[1:]:
                result = some(result, self.whole(argument), FOLDED.get(name) or BINARY[name])
            return result
        if name in COUNTS:
            return COUNTS[name](self.facts.of(self.value(arguments[0])))
        if name == "absent":
            return some(self.whole(arguments[0]), self.facts.of(self.value(arguments[1])), lambda missing, s: sizes.absent(s, missing))
        if name in RESIZING:
            return some(self.value(arguments[0]), self.whole(arguments[1]), RESIZING[name])
        raise NotCovered(f"the function {spelled(form)} is not covered")

    def whole(self, form):
        value = self.value(form)
        return value.whole() if isinstance(value, Term) else value

    def holds(self, guard):
        name, arguments = guard[0], guard[1:]
        if name == "capacity":
            return True         # the guard's evidence is checked beside the steps
        if name in COMPARED:
            return bool(some(self.whole(arguments[0]), self.whole(arguments[1]), COMPARED[name]))
        if name in OF_NETS:
            return OF_NETS[name](self.facts.of(self.value(arguments[0])))
        if name == "changeable":
            return not self.value(arguments[0]).is_("kept", 1)
        if name == "number":
            return self.whole(arguments[0]) is not None
        raise NotCovered(f"the condition {spelled(guard)} is not covered")
