#!/usr/bin/env -S /usr/bin/python3 -I
"""The figures of the ASPLOS 2021 paper (README.md), each measured, drawn as SVG, and described on a page of its own. './loopegg paper' calls this script.

    ./loopegg paper [FIGURE ...] [--quick] [--out FOLDER] [--resume]

FOLDER/measurements.jsonl has one line for each measurement of each figure, appended as soon as it is known, so that a command that was killed resumes from
there. Plots and pages are made from these lines alone: a figure whose lines are complete is only drawn again.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import fig3
import fig4
import fig5
import fig6
import fig7
import fig8
import fig9
import interleaving
from session import ROOT, Failed, Session

FIGURES = {"fig3": fig3, "fig4": fig4, "fig5": fig5, "fig6": fig6, "fig7": fig7, "fig8": fig8, "fig9": fig9, "interleaving": interleaving}
ORDER = ["fig3", "fig6", "fig5", "fig9", "fig7", "interleaving", "fig8", "fig4"]   # Figure 5 counts what Figure 6 tried, and Figure 4 has networks of Figure 7


def write(session, name):
    """The plot and the page of a figure, from its lines."""
    figure = FIGURES[name]
    rows = session.rows(name).all()
    if not rows:
        return False
    (session.out / f"{name}.svg").write_text(figure.draw(session, rows))
    write_page(session.out / f"{name}.md", figure.page(session, rows))
    return True


def write_page(file, text):
    file.write_text(text)
    subprocess.run([ROOT / "setup/wrap-prose", file], check=True)


def finding(page):
    """What of the paper does not hold, by the page itself."""
    found = re.search(r"\*\*What does not hold\.\*\* (.*?)(?:\n\n|\Z)", page, re.S)
    return " ".join(found[1].split()) if found else ""


def dates(session, figures):
    return sorted({row["date"] for name in figures for row in session.rows(name).all()})


def index_page(session, figures):
    lines = []
    for name, figure in figures.items():
        file = session.out / f"{name}.md"
        if not file.exists():
            lines.append(f"| {name} | {figure.__doc__.splitlines()[0]} | not measured |")
            continue
        lines.append(f"| [{name}]({name}.md) | {figure.__doc__.splitlines()[0]} | {finding(file.read_text())} |")
    return f"""# The paper's figures, measured

Date: {', '.join(dates(session, figures))}.

    ./loopegg paper{' --quick' if session.quick else ''}

Each page has its machine, target, date, n, spread and commit. `measurements.jsonl` has the data of all of them.

| figure | what it shows | what does not hold |
|---|---|---|
{chr(10).join(lines)}
"""


def main():
    parser = argparse.ArgumentParser(prog="loopegg paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="one of " + ", ".join(FIGURES))
    parser.add_argument("--quick", action="store_true", help="fewer trials and samples")
    parser.add_argument("--out", default="paper", type=pathlib.Path)
    parser.add_argument("--resume", action="store_true", help="keep what the folder holds")
    parser.add_argument("--unjudged", action="store_true", help="do not ask the guard, where LibTorch is missing")
    parser.add_argument("--only", action="append", metavar="GLOB", help="only lines of data with such a key, for example 'layer2.*' (repeatable)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if unknown := [f for f in options.figures if f not in FIGURES]:
        parser.error(f"'{unknown[0]}' is not a figure: expected {', '.join(FIGURES)}")
    wanted = [f for f in ORDER if not options.figures or f in options.figures]
    try:
        session = Session(options, wanted)
        failed = {}
        for name in wanted:
            try:
                FIGURES[name].measure(session)
            except Failed as e:   # the other figures do not need this one
                failed[name] = str(e)
                session.say(f"{name}: {e}")
            if write(session, name):
                session.say(f"{session.out / name}.md")
        write_page(session.out / "README.md", index_page(session, FIGURES))
    except Failed as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        sys.exit(f"stopped: 'loopegg paper --resume --out {options.out}' continues from here")
    if options.json:
        print(json.dumps({"out": str(options.out), "figures": wanted, "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
