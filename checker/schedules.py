"""Whether the loops of a kernel visit each instance of its statement once, and at once only instances that write different outputs."""
from terms import NotCovered, Term, require

SUMMED, LOOPS = {"ci", "kh", "kw", "k"}, {"at": 2, "par": 2, "vec": 2, "unroll": 2, "stage": 2, "bind": 3, "partial": 3}

def iterators(axis):
    """The names of the iterators that an axis is made of."""
    parts = axis.parts if axis.op == "pair" else axis.parts[:1]
    return {name for part in parts for name in iterators(part)} if parts else {axis.op.partition(":")[0]}

def extent_of(axis):
    if not axis.parts:
        return int(axis.op.partition(":")[2])
    first, k = extent_of(axis.parts[0]), axis.parts[-1].whole() or 0
    return first * extent_of(axis.parts[1]) if axis.op == "pair" else min(k, first) if axis.op == "rem" else -(-first // k)

def ways(schedule):
    """The loops of each part of a schedule, outermost first: (how they run, axis)."""
    if schedule.op in ("done", "cat"):
        return [way for part in schedule.parts for way in ways(part)] if schedule.parts else [[]]
    require(len(schedule.parts) == LOOPS.get(schedule.op), f"'{str(schedule)[:60]}' is no schedule")
    *where, axis, rest = schedule.parts
    how = "at" if where and where[0].op.startswith("tensor.") else schedule.op
    return ways(rest) if how == "stage" else [[(how, axis), *loops] for loops in ways(rest)]

def digit(axis):
    """(base, step, count): an axis as floor(base / step), modulo count unless that is None."""
    if axis.op not in ("quo", "rem"):
        return axis, 1, None
    (base, step, count), k = digit(axis.parts[0]), axis.parts[1].whole()
    if count is not None and count % k:     # these are digits of a digit
        base, step, count = axis.parts[0], 1, None
    return (base, step, k) if axis.op == "rem" else (base, step * k, None if count is None else count // k)

def joined(axes, spans):
    """What the digits among some axes make up. `spans` gets the parts of axes that are run: {axis: (from, to)}."""
    bases, made = {}, []
    for axis in axes:
        base, step, count = digit(axis)
        bases[base] = sorted([*bases.get(base, []), (step, count, axis)], key=lambda d: d[0])
    for base, digits in bases.items():
        whole = [1] + [step * (count or 0) for step, count, _ in digits] == [step for step, *_ in digits] + [0]
        if whole and base.op == "span" and base.parts[0] not in spans:
            spans[base.parts[0]] = tuple(p.whole() for p in base.parts[1:])
        made += {"pair": base.parts, "span": base.parts[:1]}.get(base.op, [base]) if whole else [axis for *_, axis in digits]
    return made if sorted(map(str, made)) == sorted(map(str, axes)) else joined(made, spans)

def check_loops(extents, schedule, loops_of):
    """Each instance is visited once, and no two that add into one output are visited at once."""
    parts, size = [], sorted(f"{name}:{extent}" for name, extent in extents.items() if extent > 1)
    for loops in ways(schedule):
        for how, axis in loops:
            summed = iterators(axis) & SUMMED
            require(how not in ("par", "vec", "bind") or not summed, f"{loops_of} run iterations of {axis} at once that add into one output")
            require(how != "partial" or summed == iterators(axis), f"{loops_of} take {axis} in parts, which is no sum")
        parts.append({})
        require(sorted(map(str, joined([axis for _, axis in loops], parts[-1]))) == size, f"{loops_of} do not visit each instance once")
    cut, *more = {axis for spans in parts for axis in spans} or {Term("all:1")}
    if more:
        raise NotCovered(f"{loops_of} are cut along several axes")
    ends, end = sorted(spans.get(cut, (0, extent_of(cut))) for spans in parts), extent_of(cut)
    require([0] + [to for _, to in ends] == [begin for begin, _ in ends] + [end], f"{loops_of} have parts that do not fit together")
