"""Rules: their texts, how they match, and the conditions and values that they compute."""
import math
from functools import reduce
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from nests import with_fewer_inputs, with_outputs
from sizes import Sizes
from terms import NotCovered, Term, WHOLE, read_forms, require

ARROWS = {"=>": False, "<=>": False, "~>": True}     # neural?
# Functions and conditions over whole numbers.
NUMBERS = {"+": add, "*": mul, "-": sub, "min": min, "max": max,
           "gcd": lambda a, b: math.gcd(a, b) if a > 0 and b > 0 else None, "/": lambda a, b: a // b if b and a % b == 0 else None,
           "floor-div": lambda a, b: a // b if b else None, "%": lambda a, b: a % b if b else None}
COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge, "divides": lambda a, b: a != 0 and b % a == 0}
OF_NETWORKS = {"fresh": Sizes.fresh, "channelwise": Sizes.channelwise, "whole": lambda s: not s.trimmed, "narrowable": lambda s: s.narrowable,
               "separate": lambda s: not s.adds_input, "computes": lambda s: s.computes, "free": lambda s: not s.kept}
COUNTS, RESIZING = {"channels": Sizes.written, "channels-in": lambda s: s.into}, {"with-outputs": with_outputs, "with-fewer-inputs": with_fewer_inputs}
FUNCTIONS = {*NUMBERS, *COUNTS, *RESIZING, "absent"}

def spelled(form):
    return form if isinstance(form, str) else "(" + " ".join(map(spelled, form)) + ")"

class Rule:
    """A rule over one term: name, left, right, neural, choices (variable, list) and guards."""
    def __init__(self, form):
        require(isinstance(form, list) and len(form) > 4 and form[0] == "rule" and isinstance(form[1], str), f"'{spelled(form)[:60]}' is no rule")
        keys = [i for i, word in enumerate(form) if isinstance(word, str) and word.startswith(":")] + [len(form)]
        if not isinstance(form[3], str) or form[3] not in ARROWS or keys[0] != 5:
            raise NotCovered(f"the rule {form[1]} is over several patterns")
        self.name, self.left, self.neural, self.right, self.text, self.choices, self.guards = *form[1:3], ARROWS[form[3]], form[4], spelled(form), [], []
        for start, end in zip(keys, keys[1:]):
            if form[start] == ":for" and end == start + 3:
                self.choices.append((form[start + 1], form[start + 2]))
            else:
                require(form[start] == ":when" and end > start + 1, f"the rule {self.name} has a condition that is none: '{form[start]}'")
                self.guards += form[start + 1:end]

def texts_in(path, seen):
    """The text of each rule of a rule file and of the files that it includes, by its name."""
    if path in seen:
        return {}
    seen.add(path)
    texts, forms = {}, read_forms(path.read_text())
    while forms:
        head, *rest = forms.pop()
        if head == "include":
            texts.update(texts_in((path.parent / rest[0][1:]).resolve(), seen))
        elif head == "ruleset":
            forms += [form for form in rest if isinstance(form, list)]
        elif head == "rule":
            texts[rest[0]] = spelled([head, *rest])
    return texts

def match(pattern, t, bound):
    """Whether the term is an instance of the pattern. What the variables represent is added to `bound`."""
    if isinstance(pattern, str):
        return (bound.setdefault(pattern, t) if pattern[0] == "?" else Term(pattern)) is t
    return pattern[0] == t.op and len(pattern) == len(t.parts) + 1 and all(match(p, q, bound) for p, q in zip(pattern[1:], t.parts))

class Application:
    """One application of a rule to a term. `given`: values of `:for` variables; `step`: what offered widths are multiples of."""
    def __init__(self, rule, facts, given, step):
        self.rule, self.facts, self.given, self.step, self.bound = rule, facts, given, step, {}
    def apply(self, t):
        name = self.rule.name
        require(match(self.rule.left, t, self.bound), f"{name} does not match there")
        require(set(self.given) <= {variable for variable, _ in self.rule.choices}, f"{name} has no choice of {', '.join(self.given)}")
        for variable, list_ in self.rule.choices:
            offered = self.offered(list_)
            value = self.bound[variable] = self.given.get(variable, offered[0] if len(offered) == 1 else None)
            require(value in offered, f"{name}: {value} is none of {spelled(list_)}")
        made = self.instance(self.rule.right)
        for guard in self.rule.guards:
            require(self.holds(*guard), f"{name}: {spelled(guard)} does not hold")
        return made
    def offered(self, list_):
        if list_[0] == "shares" and (self.whole(list_[2]) or 0) <= 1024:
            least, parts, count = self.whole(list_[1]) or 0, self.whole(list_[2]) or 0, self.sizes(list_[3]).written() or 0
            least, parts, block = *((-(-least * count // parts), count) if parts > count else (least, parts)), max(self.step, 4 if count >= 16 else 1)
            return [Term(str(w)) for w in sorted({count * k // parts // block * block for k in range(least if least > 0 else parts, parts)}) if w]
        if not all(isinstance(word, str) and WHOLE.fullmatch(word) for word in list_):
            raise NotCovered(f"the list {spelled(list_)} is not covered")
        return list(map(Term, list_))
    def instance(self, form):
        if isinstance(form, str):
            return self.bound.get(form, Term(form))
        if form[0] not in FUNCTIONS:
            return Term(form[0], *map(self.instance, form[1:]))
        value = self.value(form)
        require(value is not None, f"{self.rule.name}: {spelled(form)} has no value")
        return value if isinstance(value, Term) else Term(str(value))
    def value(self, form):
        """A term for a variable, a number or a term for a call; None where there is no value."""
        if isinstance(form, str):
            return self.bound.get(form, int(form) if WHOLE.fullmatch(form) else None)
        name, first, *rest = form
        if name not in FUNCTIONS:
            raise NotCovered(f"the function {spelled(form)} is not covered")
        if name in NUMBERS:
            return reduce(lambda a, b: None if None in (a, b) else NUMBERS[name](a, b), map(self.whole, (first, *rest)))
        if name in COUNTS:
            return COUNTS[name](self.sizes(first))
        count, function = (self.whole(first), self.sizes(rest[0]).absent) if name == "absent" else (
            self.whole(rest[0]), lambda n: RESIZING[name](self.value(first), n))
        return None if count is None else function(count)
    def whole(self, form):
        value = self.value(form)
        return value.whole() if isinstance(value, Term) else value
    def sizes(self, form):
        return self.facts.of(self.value(form))
    def holds(self, name, *arguments):
        if name == "capacity" or arguments[0] in ("<=", ">="):
            return True         # the evidence of measures is checked next to the steps
        if name in COMPARED:
            a, b = map(self.whole, arguments)
            return None not in (a, b) and COMPARED[name](a, b)
        if name in OF_NETWORKS:
            return OF_NETWORKS[name](self.sizes(*arguments))
        if name in ("changeable", "number"):
            return self.whole(*arguments) is not None if name == "number" else not self.value(*arguments).is_("kept", 1)
        raise NotCovered(f"the condition ({name} ...) is not covered")
