"""The nests of sites: the loops of a statement, and the same site with other numbers of channels."""
from faults import NotCovered, Refused
from terms import number, term

# The sizes of each statement, and its loops in order. What a size stands for in the loops is said by `extents`.
SIZES = {"conv2d": "N G CO CI IH IW KH KW SH SW PH PW DH DW".split(), "linear": "N CO CI".split(), "matmul": "B M N K".split()}
LOOPS = {"conv2d": "n g co ci oh ow kh kw".split(), "linear": "n co ci".split(), "matmul": "b i j k".split()}
RESIZED = {"co": "CO", "ci": "CI", "g": "G"}


def plain(statement):
    """The statement inside its epilogues."""
    while statement.is_("epilogue", 2):
        statement = statement.parts[1]
    if statement.op not in SIZES or len(statement.parts) != len(SIZES[statement.op]):
        raise NotCovered(f"'{statement}' is no statement of a site that is covered")
    return statement


def sizes_of(statement):
    inner = plain(statement)
    sizes = dict(zip(SIZES[inner.op], (p.whole() for p in inner.parts)))
    if None in sizes.values() or any(v < (0 if k in ("PH", "PW") else 1) for k, v in sizes.items()):
        raise Refused(f"'{inner}' has sizes that are none")
    return inner.op, sizes


def extents(statement):
    """The extent of each loop, by its name, in order."""
    op, s = sizes_of(statement)
    if op == "conv2d":
        for image, kernel, stride, padding, dilation in ("IH KH SH PH DH".split(), "IW KW SW PW DW".split()):
            s["O" + image[1]] = (s[image] + 2 * s[padding] - s[dilation] * (s[kernel] - 1) - 1) // s[stride] + 1
        return {a: s[a.upper()] for a in LOOPS[op]}
    return dict(zip(LOOPS[op], s.values() if op == "matmul" else (s["N"], s["CO"], s["CI"])))


def whole_nest(statement):
    """The naive nest over the whole domain, with the loops over channels first."""
    all_ = extents(statement)
    order = [a for a in ("co", "ci") if a in all_] + [a for a in all_ if a not in ("co", "ci")]
    loops = term("done")
    for axis in reversed(order):
        if all_[axis] > 1:
            loops = term("at", term(f"{axis}:{all_[axis]}"), loops)
    return term("nest", statement, loops)


def statement_in(nest):
    if not nest.is_("nest", 2) or whole_nest(nest.parts[0]) is not nest:
        raise NotCovered("the nest of a site is not whole: steps over nests of single sites are not covered")
    return nest.parts[0]


def is_depthwise(statement):
    e = extents(statement)
    return e.get("g", 1) > 1 and e.get("co") == 1 and e.get("ci") == 1


def channels(statement):
    """How many channels a site reads and writes; (0, 0) for a product of two values, which has none of its own."""
    e = extents(statement)
    return (e["ci"] * e.get("g", 1), e["co"] * e.get("g", 1)) if "co" in e else (0, 0)


def resized(statement, axis, size):
    if statement.is_("epilogue", 2):
        return term("epilogue", statement.parts[0], resized(statement.parts[1], axis, size))
    names = SIZES[statement.op]
    return term(statement.op, *(number(size) if n == RESIZED[axis] else p for n, p in zip(names, statement.parts)))


def with_outputs(nest, wanted):
    """The nest of the same site with so many output channels, or None."""
    statement = statement_in(nest)
    groups = extents(statement).get("g", 1)
    if not 1 <= wanted <= channels(statement)[1] or is_depthwise(statement) or wanted % groups:
        return None
    return whole_nest(resized(statement, "co", wanted // groups))


def with_fewer_inputs(nest, missing):
    """The nest of the same site with so many input channels less, or None. A depthwise site writes what it reads."""
    statement = statement_in(nest)
    left, groups = channels(statement)[0] - missing, extents(statement).get("g", 1)
    if missing < 0 or left <= 0:
        return None
    if is_depthwise(statement):
        return whole_nest(resized(statement, "g", left))
    return None if left % groups else whole_nest(resized(statement, "ci", left // groups))
