"""Chooses one option for each part of a network: the least expected loss within a time, or the least time within a loss, both as sums. This integer program is
solved by dynamic programming: a partial choice is dropped where another is no worse in both sums. Losses that differ by less than STEP count as equal, so an
answer may lose that much more for each part than the best one."""

STEP = 0.001   # points


def front(parts, most=10.0):
    """parts: lists of (ms, points, name). Gives the choices that no other beats in both sums, fastest first, each as (ms, points, names)."""
    found = [(0.0, 0.0, ())]
    for options in parts:
        grown = sorted(((ms + m, points + p, names + (name,)) for ms, points, names in found for m, p, name in options if points + p <= most), key=lambda c: c[:2])
        found = []
        for choice in grown:
            if not found or choice[1] < found[-1][1] - STEP:
                found.append(choice)
    return found


def fastest(parts, points):
    """Of the choices that may lose so many points, the fastest."""
    return next(iter(front(parts, points)), None)


def safest(parts, ms):
    """Of the choices that take no longer, the one that is expected to lose least."""
    return next((choice for choice in reversed(front(parts)) if choice[0] <= ms), None)
