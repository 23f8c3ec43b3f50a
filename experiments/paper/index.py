"""The page that lists the figures of a folder, with the first finding of each."""
import re


def finding(page):
    """What of the paper does not hold, by the page itself."""
    found = re.search(r"\*\*What does not hold\.\*\* (.*?)(?:\n\n|\Z)", page, re.S)
    return " ".join(found[1].split()) if found else ""


def dates(session, figures):
    return sorted({row["date"] for name in figures for row in session.rows(name).all()})


def page(session, figures):
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

Each page has its machine, target, date, n, spread and commit, and its lines of data are in the same folder.

| figure | what it shows | what does not hold |
|---|---|---|
{chr(10).join(lines)}
"""
