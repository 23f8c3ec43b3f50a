"""Figure 3: Fisher Potential at initialisation against the final error of NAS-Bench-201 cells."""
import json
import subprocess

import svg
from session import DATA, ROOT, Failed, provenance

CELLS = DATA / "nb201/nb201_sample.csv"
MEASURES = ["fisher", "fisher-layer", "grad-norm", "snip", "synflow", "naswot", "params", "macs", "ensemble"]
BENCH = ROOT / "build/bench/bench_nb201"


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    rank, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in order[i:j + 1]:
            rank[k] = (i + j) / 2
        i = j + 1
    return rank


def correlation(a, b):
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    top = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    return top / (sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b)) ** 0.5


def spearman(a, b):
    return correlation(ranks(a), ranks(b))


def measure(session):
    if not CELLS.exists():
        raise Failed(f"'{CELLS}' is missing: LOOPEGG_DATA names the folder that has nb201/ and cifar10/")
    if not BENCH.exists():
        subprocess.run([ROOT / "setup/prepare", "release", "bench/bench_nb201"], check=True)
    table, scores = session.rows("fig3"), session.out / "fig3.scores.jsonl"
    wanted = 400 if session.quick else 1000
    cells = [line.rsplit(",", 2) for line in CELLS.read_text().splitlines()[1:wanted + 1]]
    accuracy = {c[0]: float(c[1]) for c in cells}
    while any(not table.has(a) for a in accuracy):
        session.say(f"fig3: {sum(map(table.has, accuracy))} of {len(accuracy)} cells")
        command = [BENCH, CELLS, "--cells", str(wanted), "--batch", "64", "--data", DATA / "cifar10", "--out", scores, "--seconds", "60", "--threads", "2"]
        done = subprocess.run(command, capture_output=True, text=True)
        fresh = 0
        for line in scores.read_text().splitlines() if scores.exists() else []:
            row = json.loads(line)
            if row["arch"] in accuracy and not table.has(row["arch"]):
                table.add(row["arch"], accuracy=accuracy[row["arch"]], scores=row["scores"])
                fresh += 1
        if fresh == 0:
            raise Failed(f"bench_nb201 scored no cell: {done.stderr.strip()[-300:]}")


def by_measure(rows):
    accuracy = [r["accuracy"] for r in rows]
    return {m: spearman([r["scores"][m] for r in rows], accuracy) for m in MEASURES if m in rows[0]["scores"]}


def spread(rows, name, draws=200):
    """The middle 90% of rank correlations when cells are drawn with replacement."""
    import random
    random.seed(1)
    found = []
    for _ in range(draws):
        drawn = random.choices(rows, k=len(rows))
        found.append(spearman([r["scores"][name] for r in drawn], [r["accuracy"] for r in drawn]))
    found.sort()
    return found[draws // 20], found[-draws // 20 - 1]


def as_filter(rows, name):
    """When the better half by a measure passes: the share of these in the better half by accuracy, and how many of the best tenth pass."""
    n = len(rows)
    passed = sorted(rows, key=lambda r: r["scores"][name])[n // 2:]
    accuracy = sorted(r["accuracy"] for r in rows)
    best = [r for r in rows if r["accuracy"] >= accuracy[n * 9 // 10]]
    return (sum(r["accuracy"] >= accuracy[n // 2] for r in passed) / len(passed), sum(r in passed for r in best) / len(best))


def draw(session, rows):
    plot = svg.Plot(f"Fisher Potential at initialisation against final error, {len(rows)} cells of NAS-Bench-201", "Fisher Potential of the cell before training (logarithmic)",
                    "error on CIFAR-10 after 200 epochs, %", f"n = {len(rows)} cells. Scores measured, accuracies published. " + provenance(rows))
    positive = [r["scores"]["fisher"] for r in rows if r["scores"]["fisher"] > 0]
    low = sorted(positive)[len(positive) // 200]
    points = [("cell", max(r["scores"]["fisher"], low), 100 - r["accuracy"], f"{r['key']}: {100 - r['accuracy']:.1f}%") for r in rows]
    return svg.scatter(plot, points, svg.around([p[1] for p in points], log=True), svg.around([p[2] for p in points]), radius=3)


def page(session, rows):
    rho = by_measure(rows)
    low, high = spread(rows, "fisher")
    table = [f"| {m} | {rho[m]:.3f} | {as_filter(rows, m)[0]:.3f} | {as_filter(rows, m)[1]:.3f} |" for m in sorted(rho, key=rho.get, reverse=True)]
    precision, recall = as_filter(rows, "fisher")
    better = [m for m in rho if rho[m] > rho["fisher"]]
    return f"""# Figure 3: Fisher Potential against final error

**What does not hold.** As a measure of what a network can learn, Fisher Potential at initialisation has a rank correlation of {rho['fisher']:.3f} with the
accuracy ({low:.2f} to {high:.2f}, the middle 90% of 200 resamples). The number of parameters alone has {rho['params']:.3f}. Of {len(rho)} measures,
{len(better)} rank better. As a filter that lets half of the cells pass, Fisher Potential loses {100 * (1 - recall):.0f}% of the best tenth.

    ./loopegg paper fig3{' --quick' if session.quick else ''}

{provenance(rows, n=f"{len(rows)} cells, one seed each", spread="by resampling cells")}

![Fisher Potential against final error](fig3.svg)

- **What the paper reports.** A scatter plot of Fisher Potential at initialisation against final CIFAR-10 error over cells of NAS-Bench-201. Cells with a low
  potential have a high error, so that the measure can reject poor cells without training; good cells that it rejects, too, are accepted as a loss.
- **What we see.** Of the cells that pass, {100 * precision:.0f}% belong to the better half (chance: 50%).
- **Why they differ.** The paper shows a scatter plot; this page adds rank correlations, and baselines that know only the size. The weights of `ensemble` were
  fitted to cells among the first 400, so its row says nothing about unseen cells when only these are drawn.

| measure | rank correlation with accuracy | better half: precision as a filter | best tenth: share that passes |
|---|---|---|---|
{chr(10).join(table)}
"""
