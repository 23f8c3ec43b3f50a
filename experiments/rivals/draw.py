#!/usr/bin/env python3
"""Draws tradeoff.svg, accuracy against latency, from the tables of README.md and searches.md in this folder. Latencies are relative to the original in loopegg,
timed in the same run, because the tables come from different runs.

    python3 experiments/rivals/draw.py            writes the picture
    python3 experiments/rivals/draw.py --check    ends with 1 if the picture does not match the tables
"""
import math
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 24, 24, 56
X_TICKS, Y_TICKS = (0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5), (90.0, 90.5, 91.0, 91.5, 92.0)
LOW_X, HIGH_X, LOW_Y, HIGH_Y = 0.15, 1.65, 89.9, 92.4
NAMES = {"original": "original", "default4": "default run", "t2-rules-8": "run at 3x", "width3": "3/8 of widths", "width5-depth67": "5/8 of widths, 2/3 of blocks",
         "width6-depth50": "6/8 of widths, 1/2 of blocks", "random": "random search", "blockswap": "BlockSwap"}
COLOURS = {"original": "#555555", "search": "#0b6e4f", "uniform": "#c8553d", "other": "#3d6fc8"}


def rows(page):
    """{network: (latency in loopegg, latency in ONNX Runtime, accuracy)} of the networks that were timed with other runtimes in one run."""
    table = page[page.index("| ONNX Runtime, ms |"):].split("\n\n")[0]
    found = {}
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].split(",")[0].strip("* ")
        if not cells[4]:
            continue
        accuracy = re.search(rf"(?m)^\| \**{re.escape(name)}\b[^\n]*?\**(\d\d\.\d\d)%\** \(6 seeds\)", page)
        found[name] = (float(cells[3].split()[0]), float(cells[4].split()[0]), float(accuracy[1]))
    whole = found["original"][0]
    return {name: (ours / whole, other / whole, accuracy) for name, (ours, other, accuracy) in found.items()}


def other_searches(page):
    """The same of the networks that other searches found, which were timed in loopegg alone; the second run, in which times vary less."""
    section = page[page.index("## Random search and BlockSwap"):page.index("## Torch-Pruning")]
    cells = {c[0]: c for c in ([cell.strip("* ") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| "))}
    ms = {name: float(cells[name][3].split()[0]) for name in ("original", "random", "blockswap")}
    return {name: (ms[name] / ms["original"], None, float(cells[name][4].strip("%"))) for name in ("random", "blockswap")}


def x(latency):
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(latency / LOW_X) / math.log(HIGH_X / LOW_X)


def y(accuracy):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (accuracy - LOW_Y) / (HIGH_Y - LOW_Y)


def axes():
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    for latency in X_TICKS:
        yield f'<line x1="{x(latency):.1f}" y1="{TOP}" x2="{x(latency):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>'
        yield f'<text x="{x(latency):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{latency}</text>'
    for percent in Y_TICKS:
        yield f'<line x1="{LEFT}" y1="{y(percent):.1f}" x2="{WIDTH - RIGHT}" y2="{y(percent):.1f}" stroke="#e4e4e4"/>'
        yield f'<text x="{LEFT - 8}" y="{y(percent) + 4:.1f}" text-anchor="end">{percent}%</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 14}" text-anchor="middle">latency, relative to the original in loopegg (logarithmic)</text>'
    yield f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)" text-anchor="middle">accuracy on CIFAR-10</text>'


def points(networks):
    for name, (ours, other, accuracy) in networks.items():
        kind = "original" if name == "original" else "uniform" if name.startswith("width") else "search" if other else "other"
        colour = COLOURS[kind]
        if other:
            yield f'<line x1="{x(ours):.1f}" y1="{y(accuracy):.1f}" x2="{x(other):.1f}" y2="{y(accuracy):.1f}" stroke="{colour}" stroke-dasharray="2 3"/>'
        yield f'<circle cx="{x(ours):.1f}" cy="{y(accuracy):.1f}" r="6" fill="{colour}"/>'
        if other:
            yield f'<circle cx="{x(other):.1f}" cy="{y(accuracy):.1f}" r="5" fill="#ffffff" stroke="{colour}" stroke-width="2"/>'
        end = kind in ("original", "search")   # labels on both sides, so that they do not overlap
        yield (f'<text x="{x(ours if end or not other else other) + (-10 if end else 10):.1f}" y="{y(accuracy) + 4:.1f}" fill="{colour}"'
               f'{" text-anchor=" + chr(34) + "end" + chr(34) if end else ""}>{NAMES[name]}</text>')


def legend():
    entries = [("search", "loopegg's search", True), ("uniform", "uniform scaling", True), ("other", "other searches", True),
               ("original", "hollow: the same network in ONNX Runtime", False)]
    for row, (kind, words, filled) in enumerate(entries):
        top = HEIGHT - BOTTOM - 76 + 20 * row
        yield f'<circle cx="{WIDTH - 320}" cy="{top}" r="5" fill="{COLOURS[kind] if filled else "#ffffff"}" stroke="{COLOURS[kind]}" stroke-width="2"/>'
        yield f'<text x="{WIDTH - 308}" y="{top + 4}">{words}</text>'


def picture():
    networks = rows((FOLDER / "README.md").read_text()) | other_searches((FOLDER / "searches.md").read_text())
    parts = [*axes(), *points(networks), *legend()]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" fill="#333333">\n'
    return head + "<title>Accuracy against latency of resnet34-cifar10 and smaller networks</title>\n" + "\n".join(parts) + "\n</svg>\n"


def main(arguments):
    file = FOLDER / "tradeoff.svg"
    if "--check" in arguments:
        return 0 if file.is_file() and file.read_text() == picture() else f"{file}: 'experiments/rivals/draw.py' draws it again from the tables"
    file.write_text(picture())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
