"""Figure 5: how often the sequences S1 to S3 occur: tried on every convolution of networks, judged, timed, on the front of their layer, and chosen."""
import layers
import losses
import svg
from session import provenance

NAMES = ["NAS G=2", "S1", "S2", "S3"]
STAGES = ["match", "allowed", "faster", "on the front", "fastest"]
QUICK, MODELS = ["zoo:resnext29_2x64d"], ["zoo:resnext29_2x64d", "zoo:densenet161-cifar10"]   # next to the network of Figure 6


def measure(session):
    table = session.rows("fig5")
    for model in QUICK if session.quick else MODELS:
        sites = layers.distinct_convolutions(session, model)
        losses.ask(session, model, [losses.plan_of(site["name"], rules) for site, _ in sites for rules in layers.sequences(site).values()])
        for site, count in sites:
            for name, rules in layers.sequences(site).items():
                layers.try_layer(session, table, f"{model} {site['name']} {name}", model, site["name"], name, rules, count=count, shape=site["shape"])


def with_figure_6(session, rows):
    """What Figure 6 tried counts here, too."""
    return session.rows("fig6").all() + rows


def both(session, row):
    """Time and expected loss; without a verdict, time alone decides."""
    return row["variant"]["median_ms"], losses.points(session, row) or 0.0


def on_front(session, row, others):
    """No other variant of the layer is both faster and expected to lose less."""
    ms, points = both(session, row)
    return not any(m <= ms and p <= points and (m, p) != (ms, points) for m, p in (both(session, o) for o in others))


def counts(session, rows):
    """{(model, sequence): {stage: layers}}; a shape counts as often as the network has it."""
    found = {}
    for row in rows:
        one = found.setdefault((row["model"], row["sequence"]), {"tried": 0, **{s: 0 for s in STAGES}})
        one["tried"] += row["count"]
        if row["refused"]:
            continue
        others = [r for r in layers.timed(rows) if (r["model"], r["site"]) == (row["model"], row["site"])]
        points = losses.points(session, row)
        allowed = points is None or points <= losses.LIMIT
        faster = bool(row["speedup"]) and row["speedup"] > 1
        reached = {"match": True, "allowed": allowed, "faster": allowed and faster, "on the front": allowed and faster and on_front(session, row, others),
                   "fastest": allowed and faster and row["speedup"] == max((r["speedup"] for r in others), default=0)}
        for stage, yes in reached.items():
            one[stage] += row["count"] if yes else 0
    return found


def draw(session, rows):
    rows = with_figure_6(session, rows)
    found = counts(session, rows)
    models = list(dict.fromkeys(m for m, _ in found))
    note = f"Measured. n = {len(layers.timed(rows))} layers and variants. " + provenance(rows)
    plot = svg.Plot("How often each sequence matches, is allowed, gains time, and is best", "network and sequence", "convolutions", note)
    groups = [f"{m.split(':')[1].split('-')[0].split('_')[0]} {n}" for m in models for n in NAMES if (m, n) in found]
    values = {(f"{m.split(':')[1].split('-')[0].split('_')[0]} {n}", s): (c[s], None, None, f"{m} {n}: {s} in {c[s]} of {c['tried']}") for (m, n), c in found.items() for s in STAGES}
    return svg.bars(plot, groups, STAGES, values, svg.Axis(0, max((v[0] for v in values.values()), default=1) * 1.08))


def page(session, rows):
    rows = with_figure_6(session, rows)
    found = counts(session, rows)
    table = [f"| {m} | {n} | {c['tried']} | " + " | ".join(str(c[s]) for s in STAGES) + " |" for (m, n), c in found.items()]
    total = {n: {s: sum(c[s] for (m, k), c in found.items() if k == n) for s in STAGES} for n in NAMES}
    ours = sum(total[n]["fastest"] for n in ("S1", "S2", "S3"))
    return f"""# Figure 5: how often the sequences occur

**What does not hold.** A default run of `optimize` cannot choose S1 to S3, because the phase `networks` of the default rules leaves out the rules that they are
made of ([search](../../../docs/explanation/search.md)). Tried on each convolution by themselves, S1 to S3 are the fastest
variant of {ours} convolutions, and grouping by two alone of {total['NAS G=2']['fastest']}.

    ./loopegg paper fig6 fig5{' --quick' if session.quick else ''}

{provenance(rows, target="host, measured", n=f"{len(layers.timed(rows))} layers and variants", spread="on the page of Figure 6")}

![How often sequences occur](fig5.svg)

- **What the paper reports.** How often its search applied S1, S2 and S3 to the layers of its three networks: all three occur in each, with frequencies that
  depend on the network.
- **What we see.** The table counts convolutions: where the sequence matches, where the guard allows the network with this one change, where the tuned layer is
  faster than the tuned original, where no other variant of the layer is both faster and expected to lose less, and where it is the fastest.
- **Why they differ.** Here sequences compete with each other on every layer. S2 and S3 run as one nest of two parts, each with its own tiles.

| network | sequence | convolutions | {' | '.join(STAGES)} |
|---|---|---|{'---|' * len(STAGES)}
{chr(10).join(table)}
"""
