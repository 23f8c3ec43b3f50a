"""What the parts of the checker promise, one by one; each is given the program, so that its branches can be watched."""
PARTS = []


def part(case):
    PARTS.append((case.__name__.replace("_", " "), case))
    return case
