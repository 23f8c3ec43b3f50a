"""Figure 6: eleven layers of ResNet-34, each with the grouping of NAS and with the paper's sequences S1 to S3."""
import layers
import losses
import svg
from session import provenance

MODEL, NETWORK = "zoo:resnet34-cifar10", "ResNet-34 (CIFAR-10)"
NAMES = ["NAS G=2", "S1", "S2", "S3"]


def measure(session):
    table = session.rows("fig6")
    sites = layers.distinct_convolutions(session, MODEL)
    losses.ask(session, MODEL, [losses.plan_of(site["name"], rules) for site, _ in sites for rules in layers.sequences(site).values()])
    for site, count in sites:
        for name, rules in layers.sequences(site).items():
            layers.try_layer(session, table, f"{site['name']} {name}", MODEL, site["name"], name, rules, shape=site["shape"], input=site["input"], count=count)


def n_of(rows):
    counts = [r["variant"]["n"] for r in rows]
    return f"{'' if min(counts) == max(counts) else f'{min(counts)} to '}{max(counts)} samples of each layer and variant, interleaved with the original"


def draw(session, rows):
    good = layers.timed(rows)
    note = f"Target: {good[0]['target'] if good else 'none'}, measured. n = {n_of(good) if good else 0}; bars: median, lines: quartiles. " + provenance(rows)
    plot = svg.Plot(f"Layers of {NETWORK}: the time of the tuned original over the time of the tuned variant", "layer", "times as fast", note)
    values = {}
    for r in good:
        low, high = layers.interval(r)
        values[r["site"], r["sequence"]] = (r["speedup"], low, high, f"{r['site']}, {r['sequence']}: {r['speedup']:.2f}x, {r['macs'] / r['original_macs']:.2f} of the work")
    groups = list(dict.fromkeys(r["site"] for r in rows))
    top = max([v[2] for v in values.values()] + [1]) * 1.05
    return svg.bars(plot, groups, NAMES, values, svg.Axis(0, top), base=1)


def cell(session, rows, site, name):
    row = next((r for r in rows if r["site"] == site and r["sequence"] == name), None)
    if row is None:
        return "not measured"
    if row["refused"]:
        return "does not match"
    low, high = layers.interval(row)
    points = losses.points(session, row)
    return f"{row['speedup']:.2f} ({low:.2f} to {high:.2f})" + (f", {points:.2f}" if points is not None else "")


def page(session, rows):
    good = layers.timed(rows)
    mean = {n: layers.geometric_mean([r["speedup"] for r in good if r["sequence"] == n]) for n in NAMES if any(r["sequence"] == n for r in good)}
    sites = list(dict.fromkeys(r["site"] for r in rows))
    wins = {n: 0 for n in NAMES}
    for site in sites:
        of_site = [r for r in good if r["site"] == site and r["speedup"] > 1]
        if of_site:
            wins[max(of_site, key=lambda r: r["speedup"])["sequence"]] += 1
    slower = [r for r in good if r["speedup"] < 1]
    short = [r for r in good if r["macs"] and r["speedup"] < 0.9 * r["original_macs"] / r["macs"]]
    table = [f"| {s} | {'x'.join(map(str, next(r['shape'] for r in rows if r['site'] == s)))} | " + " | ".join(cell(session, rows, s, n) for n in NAMES) + " |" for s in sites]
    refused = [r for r in rows if r["refused"]]
    best = max(mean, key=mean.get) if mean else "none"
    return f"""# Figure 6: layers of ResNet-34

**What does not hold.** {len(short)} of {len(good)} variants gain less than nine tenths of what their
multiplications would say, and {len(slower)} are slower than the original, when both are tuned alike. By the geometric mean over layers, {best} gains most
({', '.join(f'{n} {v:.2f}x' for n, v in mean.items())}).

    ./loopegg paper fig6{' --quick' if session.quick else ''}

{provenance(rows, target=good[0]['target'] + ', measured' if good else 'none', n=n_of(good) if good else 0, spread="quartiles of both times against each other, in brackets")}

![Speed-up of each layer](fig6.svg)

- **What the paper reports.** For eleven layers of ResNet-34 on the i7, the speed-up over TVM of NAS with grouping (G=2) and of the sequences S1, S2 and S3.
  Grouping alone gains little, and on most layers some sequence gains more than it.
- **What we see.** The fastest variant of a layer is {', '.join(f'{n} in {k} layers' for n, k in wins.items() if k)}. {len(refused)} of {len(rows)} variants do not match: the stem
  has three input channels, which no block of two divides, and a kernel of one output row cannot be split.
- **Why they differ.** Both sides are tuned with equal effort, and the dense original has schedules that the paper's TVM did not have, such as Winograd's forms. A layer that is
  cut in two parts (S2, S3) runs as one nest, each part with its own tiles (`nest_after` of `loopegg try`), so these columns measure our code generator as well as the sequences.

Each cell: times as fast (quartiles), and the points of accuracy that the guard `expected-loss` expects to lose when this layer alone is changed.

| layer | output | {' | '.join(NAMES)} |
|---|---|{'---|' * len(NAMES)}
{chr(10).join(table)}
"""
