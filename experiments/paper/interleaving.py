"""Does interleaving pay? Neural and exact rules interleaved, against neural rules first, and against a fixed menu: equal budgets, five draws, two networks."""
import random
import statistics

import fig7
import layers
import losses
import svg
from session import provenance

MODELS = ["zoo:resnet34-cifar10", "zoo:resnext29_2x64d"]
SEEDS = [1, 2, 3, 4, 5]
MENU = {"groups 2": ["group-axes a=co b=ci g=2"], "groups 4": ["group-axes a=co b=ci g=4"]}
NEURAL = {**MENU, "groups 8": ["group-axes a=co b=ci g=8"], "groups 16": ["group-axes a=co b=ci g=16"],
          "half of the inputs": ["bottleneck-axis a=ci k=2"], "a quarter of the inputs": ["bottleneck-axis a=ci k=4"]}
SEQUENCES = ["S1", "S2", "S3"]
ARMS = ["fixed menu", "neural first, by work", "neural, by measured time", "interleaved, by measured time"]
TRIALS, TRY_SECONDS = 4, 2
BUDGET = {True: 16, False: 30}       # variants of layers that an arm may time in one draw, by --quick
TUNING = {True: 10, False: 40}       # seconds for the network that is chosen


def variants_of(site, arm):
    """What an arm may make of a layer."""
    if arm == ARMS[0]:
        return MENU
    sequences = {n: r for n, r in layers.sequences(site).items() if n in SEQUENCES}
    return {**NEURAL, **sequences} if arm == ARMS[3] else NEURAL


def drawn(kinds, arm, seed, budget):
    """The variants that an arm times: as many as its budget allows, at random."""
    every = [(site["name"], name) for site, _ in kinds for name in variants_of(site, arm)]
    return sorted(random.Random(seed).sample(every, min(budget, len(every))))


def measure(session):
    table = session.rows("interleaving")
    for model in MODELS:
        kinds = [(s, n) for s, n in layers.distinct_convolutions(session, model) if s["macs"] and s["input"][1] % 16 == 0]
        everything = {s["name"]: variants_of(s, ARMS[3]) for s, _ in kinds}
        losses.ask(session, model, [losses.plan_of(site, rules) for site, variants in everything.items() for rules in variants.values()])
        for seed in SEEDS:
            for arm in ARMS if seed == SEEDS[0] else [a for a in ARMS if a != ARMS[1]]:   # what times no layer draws none
                one_draw(session, table, model, kinds, everything, seed, arm)
    for model in MODELS:
        losses.ask(session, model, [r["plan"] for r in table.all() if r.get("plan") and r["model"] == model])


def one_draw(session, table, model, kinds, everything, seed, arm):
    key = f"{model} {arm} draw {seed}"
    if table.has(key):
        return
    budget = BUDGET[session.quick]
    timed = [] if arm == ARMS[1] else drawn(kinds, arm, seed, budget)
    for site, name in timed:
        layers.try_layer(session, table, f"{model} {site} {name}", model, site, name, everything[site][name], trials=(TRIALS, TRY_SECONDS))
    parts = by_work(session, model, kinds) if arm == ARMS[1] else by_time(session, table, model, kinds, timed, everything)
    chosen = fig7.fastest(parts, losses.LIMIT)
    steps = [s for names, rules in chosen[2] if rules for s in losses.plan_of(names, rules)["steps"]]
    session.say(key)
    unspent = TRY_SECONDS * (budget - len(timed))   # what an arm does not spend on layers, it spends on its network
    fig7.add_network(session, table, key, model, {"steps": steps}, seconds=TUNING[session.quick] + unspent, arm=arm, seed=seed, sum_points=chosen[1],
                     timed=len(timed), changed=len(steps), used=sorted({" + ".join(rules) for _, rules in chosen[2] if rules}))


def alike(session, model, kinds):
    """The names of all layers of each kind."""
    found = {}
    for site in session.ask("show", model)["sites"]:
        found.setdefault((site["op"], tuple(site["input"]), tuple(site["shape"]), site["parameters"]), []).append(site["name"])
    return {s["name"]: found["conv2d", tuple(s["input"]), tuple(s["shape"]), s["parameters"]] for s, _ in kinds}


def by_time(session, table, model, kinds, timed, everything):
    """For each layer the options that were timed: the original's time and the variant's share of it."""
    parts = []
    for kind, names in alike(session, model, kinds).items():
        rows = [table.known.get(f"{model} {kind} {name}") for site, name in timed if site == kind]
        rows = [r for r in rows if r and not r["refused"] and r["speedup"]]
        if not rows:
            continue
        original = statistics.median(r["original"]["median_ms"] for r in rows)
        for layer in names:
            options = [(original, 0.0, (layer, None))]
            for r in rows:
                loss = losses.of(session, model, losses.plan_of(kind, r["rules"]))
                if loss:
                    options.append((original / r["speedup"], max(0.0, loss["points"]), (layer, r["rules"])))
            parts.append(options)
    return parts


def by_work(session, model, kinds):
    """The same by multiplications alone: what is known before any schedule is."""
    parts = []
    whole = session.ask("show", model)["macs"]
    macs = {s["name"]: s["macs"] for s, _ in kinds}
    for kind, names in alike(session, model, kinds).items():
        for layer in names:
            options = [(macs[kind], 0.0, (layer, None))]
            for rules in NEURAL.values():
                loss = losses.of(session, model, losses.plan_of(kind, rules))
                if loss:
                    options.append((macs[kind] - (whole - loss["macs"]), max(0.0, loss["points"]), (layer, rules)))
            parts.append(options)
    return parts


SPACES = {"every variant": lambda rules: True,
          "without bottlenecks": lambda rules: not any("bottleneck" in r for r in rules),
          "without groups": lambda rules: not any("group" in r for r in rules),
          "without S1 to S3": lambda rules: not any("cut-domain" in r or "quo" in r for r in rules)}


def worth(session, rows, model):
    """(space, limit of points, share of the original's time, points): the fastest choice from all variants that any draw timed, as sums over the layers."""
    tried = [r for r in layers.timed(rows) if r["model"] == model and losses.of(session, model, losses.plan_of(r["site"], r["rules"]))]
    if not tried:
        return []
    kinds = [(s, n) for s, n in layers.distinct_convolutions(session, model) if any(r["site"] == s["name"] for r in tried)]
    counts = {kind: len(names) for kind, names in alike(session, model, kinds).items()}
    original = {kind: statistics.median(r["original"]["median_ms"] for r in tried if r["site"] == kind) for kind in counts}
    whole, found = sum(original[k] * n for k, n in counts.items()), []
    for space, inside in SPACES.items():
        parts = [[(original[kind], 0.0, None)] + [(original[kind] / r["speedup"], max(0.0, losses.points(session, r)), None) for r in tried
                                                 if r["site"] == kind and inside(r["rules"])] for kind, n in counts.items() for _ in range(n)]
        ms, points, _ = fig7.fastest(parts, losses.LIMIT)
        found.append((space, losses.LIMIT, ms / whole, points))
        if space == "every variant":   # no guard: the fastest variant of each layer, whatever it loses
            fastest = [min(options, key=lambda o: o[0]) for options in parts]
            found.append(("every variant, no guard", None, sum(o[0] for o in fastest) / whole, sum(o[1] for o in fastest)))
    return found


def networks(session, rows):
    return [(r, losses.of(session, r["model"], r["plan"])) for r in rows if r.get("plan")]


def draw(session, rows):
    done = networks(session, rows)
    note = f"Measured, tuned by the exact rules. n = {len(done)} networks of {len(SEEDS)} draws. " + provenance(rows)
    plot = svg.Plot("Interleaved rules, neural rules first, and a fixed menu", "ms of the chosen network, tuned (logarithmic)", "points that the guard expects to lose", note)
    points = [(f"{r['model'].split(':')[1].split('-')[0].split('_')[0]}, {r['arm']}", r["ms"], loss["points"], f"{r['key']}: {r['ms']:.2f} ms, {loss['points']:.2f} points")
              for r, loss in done if loss]
    if not points:
        return plot.svg()
    return svg.scatter(plot, points, svg.around([p[1] for p in points], log=True), svg.around([p[2] for p in points]), radius=6)


def spread(values):
    values = sorted(values)
    return f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})"


def summary(session, rows):
    """{(model, arm): [(row, loss)]}"""
    found = {}
    for r, loss in networks(session, rows):
        found.setdefault((r["model"], r["arm"]), []).append((r, loss))
    return found


def verdict(found, worths):
    words = []
    for model in MODELS:
        of = {w[0]: w[2] for w in worths.get(model, ())}
        if of:
            words.append(f"on {model.split(':')[1]}, the fastest choice from the table takes {of['every variant']:.3f} of the original's time with S1 to S3 and "
                         f"{of['without S1 to S3']:.3f} without them")
        medians = [f"'{arm}' {statistics.median(r['ms'] for r, _ in found[model, arm]):.2f} ms at {statistics.median(loss['points'] for _, loss in found[model, arm]):.2f} points"
                   for arm in ARMS if all(loss for _, loss in found.get((model, arm), [(0, None)]))]
        if medians:
            words.append(f"the networks that were timed whole are, by medians of draws, {', '.join(medians)}")
    return "; ".join(words) or "no network has all rows"


def draws(lines):
    if not lines:
        return "The networks that the draws choose have not been timed, only the variants of layers that they choose from."
    head = "| network | arm | draws | ms | MACs, M | points expected of the whole network | draws that use S1 to S3 |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *lines])


def page(session, rows):
    found = summary(session, rows)
    table = []
    for (model, arm), all_ in sorted(found.items(), key=lambda f: (MODELS.index(f[0][0]), ARMS.index(f[0][1]))):
        points = [loss["points"] for _, loss in all_ if loss]
        sequences = sum(any("cut-domain" in rules or "quo" in rules for rules in r["used"]) for r, _ in all_)
        table.append(f"| {model.split(':')[1]} | {arm} | {len(all_)} | {spread([r['ms'] for r, _ in all_])} | {spread([r['macs'] / 1e6 for r, _ in all_])} | "
                     f"{spread(points) if points else 'not judged'} | {sequences} of {len(all_)} |")
    worths = {model: worth(session, rows, model) for model in MODELS}
    lines = [f"| {model.split(':')[1]} | {space} | {'none' if limit is None else f'{limit:g}'} | {share:.3f} | {points:.2f} |"
             for model, found_there in worths.items() for space, limit, share, points in found_there]
    words = verdict(found, worths)
    slow = [r for r in layers.timed(rows) if r["sequence"] in SEQUENCES and r["speedup"] < 1] if rows else []
    tried = [r for r in layers.timed([r for r in rows if 'sequence' in r]) if r["sequence"] in SEQUENCES]
    return f"""# Does interleaving pay?

**What does not hold.** Interleaving gains nothing that could be measured here: {words}. {len(slow)} of the {len(tried)} variants by S1 to S3 are slower than the layer as it is.

    ./loopegg paper interleaving{' --quick' if session.quick else ''}

{provenance(rows, target="host, measured", n=f"up to {len(SEEDS)} draws of each row, in the table", spread="smallest and largest of the draws, in brackets")}

![Interleaved, neural first, and a fixed menu](interleaving.svg)

- **What the paper claims.** Neural transformations that are interleaved with program transformations reach operators that neither reaches alone, and faster networks.
- **What we see.** In each draw, an arm may time {BUDGET[session.quick]} variants of layers, drawn from its own space, each tuned by {TRIALS} schedules. An integer program takes
  the fastest choice whose summed losses are at most {losses.LIMIT:g} point, and the network is tuned by the exact rules for {TUNING[session.quick]} seconds. `neural first, by work` times no
  layer: it chooses by multiplications, and its network is tuned for the whole budget.
- **Why they differ.** A layer whose domain is cut in two parts (S2, S3) runs as one nest, each part with its own tiles, so these times depend on
  our code generator too. The summed losses are at most {losses.LIMIT:g} point, but whole networks are expected to lose more than the sum, and not equally more, so times
  compare only together with the points. The guard `expected-loss` sees sizes alone; nothing was trained for this page.

{draws(table)}

## What each kind of rule is worth

The fastest choice among all variants that some draw timed, by the same integer program, with some of them left out. These are sums over layers of measured times
and of losses expected one by one, not networks that were timed.

| network | variants | points allowed | share of the original's time | points, summed |
|---|---|---|---|---|
{chr(10).join(lines)}
"""
