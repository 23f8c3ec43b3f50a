"""Figure 7: FBNet: one option of a fixed menu for each block, chosen by an integer program over a table of measured latencies."""
import json

import layers
import losses
import svg
from session import Refused, provenance

MODEL, NETWORK = "zoo:resnet34-cifar10", "ResNet-34 (CIFAR-10)"
SPEEDUPS = [1.5, 2, 3]   # over the sum of the original's blocks

# The integer program: one option for each part of a network, with the least expected loss within a time, or the least time within a loss, both as sums. It is
# solved by dynamic programming: a partial choice is dropped where another is no worse in both sums. Losses that differ by less than STEP count as equal, so an
# answer may lose that much more for each part than the best one.
STEP = 0.001   # points


def front(parts, most=10.0):
    """parts: lists of (ms, points, name). The choices that no other beats in both sums, fastest first, each as (ms, points, names)."""
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


def menu(width):
    """What a block of two convolutions may become, after FBNet's candidates: its hidden width, groups, or nothing."""
    return {"hidden / 2": [("conv1", [f"narrow-width w={width // 2}"])],
            "hidden / 4": [("conv1", [f"narrow-width w={width // 4}"])],
            "groups 2": [("conv1", ["group-axes a=co b=ci g=2"]), ("conv2", ["group-axes a=co b=ci g=2"])],
            "skip": [("conv1", ["drop-branch"])]}


def blocks(session):
    """Kinds of blocks: the first of a stage, and those after it, with the names of all that are alike."""
    found = {}
    for site in session.ask("show", MODEL)["sites"]:
        if site["name"].endswith(".conv1"):
            name = site["name"].removesuffix(".conv1")
            stage, index = name.split(".")
            found.setdefault((stage, index == "0" and stage != "layer1", site["shape"][1]), []).append(name)
    return [(names, width) for (_, _, width), names in found.items()]


def plan(block, option):
    return {"steps": [{"site": f"{block}.{conv}", "apply": [losses.application(r) for r in rules]} for conv, rules in option]}


def measure(session):
    table = session.rows("fig7")
    kinds = blocks(session)
    losses.ask(session, MODEL, [plan(names[0], option) for names, width in kinds for option in menu(width).values()])
    for names, width in kinds:
        for name, option in menu(width).items():
            try_option(session, table, names, name, option)
    found = choices(session, table.all())
    losses.ask(session, MODEL, [whole for _, whole, _ in found.values()])
    for speedup, (chosen, whole, blocks_ms) in found.items():
        key = f"network {speedup:g}x"
        if not table.has(key):
            session.say(f"fig7: {key}")
            add_network(session, table, key, MODEL, whole, sum_points=chosen[1], sum_ms=chosen[0], blocks_ms=blocks_ms, speedup_asked=speedup)


def try_option(session, table, names, name, option):
    key = f"{names[0]} {name}"
    if table.has(key):
        return
    session.say(f"fig7: {key}")
    file = session.out / "fig7.try.json"
    file.write_text(json.dumps(plan(names[0], option)))
    common = dict(blocks=names, option=name)
    try:
        answer = session.ask("try", MODEL, "--plan", file, *layers.settings(session))
    except Refused as e:
        return table.add(key, refused=str(e), **common)
    original = sum(l["original_latency"]["median_ms"] * len(l["sites"]) for l in answer["layers"])
    variant = sum(l["latency"]["median_ms"] * len(l["sites"]) if l["latency"] else 0.0 for l in answer["layers"])
    table.add(key, refused=None, original=original, variant=variant, n=min(l["original_latency"]["n"] for l in answer["layers"]), target=answer["target"], **common)


def parts(session, rows):
    """For each block its options: what they save, and what the guard expects them to lose when they are taken alone."""
    found = {}
    for row in rows:
        if row.get("option") and not row["refused"]:
            width = next(w for names, w in blocks(session) if names == row["blocks"])
            loss = losses.of(session, MODEL, plan(row["blocks"][0], menu(width)[row["option"]]))
            if loss:
                for block in row["blocks"]:
                    found.setdefault(block, []).append((row["variant"], max(0.0, loss["points"]), (block, row["option"], width), row["original"]))
    answer = []
    for block, options in found.items():
        original = sorted(o[3] for o in options)[len(options) // 2]
        answer.append([(original, 0.0, (block, "as it is", 0))] + [(min(o[0] / o[3], 1) * original, o[1], o[2]) for o in options])
    return answer


def choices(session, rows):
    """{speed-up of the blocks: (the choice, its plan, the time of the original's blocks)}"""
    of_blocks, found = parts(session, rows), {}
    blocks_ms = sum(options[0][0] for options in of_blocks)
    for speedup in SPEEDUPS:
        if of_blocks and (chosen := safest(of_blocks, blocks_ms / speedup)):
            steps = [s for block, name, width in chosen[2] if name != "as it is" for s in plan(block, menu(width)[name])["steps"]]
            found[speedup] = chosen, {"steps": steps}, blocks_ms
    return found


def add_network(session, table, key, model, whole, seconds=None, **more):
    """The line of a network that a plan makes: tuned by the exact rules, and timed."""
    file = session.out / "plans" / f"{key.replace(' ', '-').replace(':', '-')}.plan.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(whole))
    smaller = file.with_suffix(".model.json")
    try:
        session.ask("apply", model, file, "-o", smaller)
        r = session.ask("optimize", smaller, "--rules", "exact", "--tune-seconds", seconds or {True: 20, False: 60}[session.quick],
                        "--out", session.out / "runs" / key.replace(" ", "-").replace(":", "-"))
    except Refused as e:
        return table.add(key, refused=str(e), model=model, plan=None, **more)
    latency = r["optimized"]
    table.add(key, refused=None, model=model, plan=whole, ms=latency["median_ms"], iqr=latency["iqr_ms"], n=latency["n"], macs=latency["macs"], target=r["target"], **more)


def networks(session, rows):
    return [(r, losses.of(session, MODEL, r["plan"])) for r in rows if r.get("plan")]


def fastest_network(session, network):
    """The plan of the fastest network that this table has and that is expected to lose little, for Figure 4."""
    known = [(r, loss) for r, loss in networks(session, session.rows("fig7").all()) if f"zoo:{network}" == r["model"]]
    allowed = [r for r, loss in known if loss and loss["points"] <= losses.LIMIT] or [r for r, _ in known][:1]
    return min(allowed, key=lambda r: r["ms"])["plan"] if allowed else None


def draw(session, rows):
    plot = svg.Plot(f"A fixed menu for each block of {NETWORK}, chosen by an integer program", "ms of the blocks, by the measured table", "points that the guard expects to lose",
                    f"Measured table; expected losses. n = {len([r for r in rows if r.get('option')])} options. " + provenance(rows))
    of_blocks = parts(session, rows)
    points = [("sum over the blocks", ms, p, f"{ms:.2f} ms: {p:.2f} points") for ms, p, _ in front(of_blocks) if p <= 6] if of_blocks else []
    for chosen, whole, _ in choices(session, rows).values():
        if loss := losses.of(session, MODEL, whole):
            points.append(("the whole network, by the guard", chosen[0], loss["points"], f"{chosen[0]:.2f} ms of blocks: {loss['points']:.2f} points"))
    if not points:
        return plot.svg()
    return svg.scatter(plot, points, svg.around([p[1] for p in points]), svg.around([p[2] for p in points]))


def page(session, rows):
    options = [r for r in rows if r.get("option")]
    slower = [r for r in options if not r["refused"] and r["variant"] > r["original"]]
    table, off = [], []
    for speedup, (chosen, whole, blocks_ms) in choices(session, rows).items():
        row = next((r for r in rows if r["key"] == f"network {speedup:g}x" and r.get("plan")), None)
        loss = losses.of(session, MODEL, whole)
        off += [loss["points"] - chosen[1]] if loss else []
        timed = f"{row['ms']:.2f} ({row['iqr']:.2f}, n {row['n']})" if row else "not timed"
        expected = f"{loss['points']:.2f} ({loss['low']:.2f} to {loss['high']:.2f})" if loss else "not judged"
        macs = f"{loss['macs'] / 1e6:.0f} M" if loss else ""
        table.append(f"| {speedup:g}x | {chosen[0]:.2f} of {blocks_ms:.2f} | {timed} | {macs} | {chosen[1]:.2f} | {expected} | {counted([name for _, name, _ in chosen[2]])} |")
    return f"""# Figure 7: FBNet's choice of blocks

**What does not hold.** A table of blocks does not add up: the losses of the chosen networks differ from the sums over their blocks by up to
{max(map(abs, off), default=0):.2f} points, and {len(slower)} of {len(options)} options are slower than the block that they replace. The differentiable choice that FBNet publishes needs a
training run of a supernet, which is not done here; the integer program finds the best choice that any search over this table could find.

    ./loopegg paper fig7{' --quick' if session.quick else ''}

{provenance(rows, target="host, measured; losses expected", n=f"{len(options)} options of blocks, {len([r for r in rows if r.get('plan')])} networks timed whole", spread="interquartile ranges in brackets; nine of ten networks for losses")}

![A fixed menu for each block](fig7.svg)

- **What the paper reports.** A comparison with FBNet, a differentiable architecture search. We could verify no figure of it.
- **What we see.** Each block is timed with each option of the menu, tuned alike and interleaved with the block as it is. The integer program takes the options with
  the least sum of expected losses within a time. What is chosen is then judged as a whole network, and timed where the table says so.
- **Why they differ.** FBNet trains its choice; the guard `expected-loss` replaces that training here.

| speed-up of the blocks | ms of the blocks, by the table | ms of the network (iqr, n) | MACs | points, summed over blocks | points, of the whole network | options |
|---|---|---|---|---|---|---|
{chr(10).join(table)}
"""


def counted(names):
    return ", ".join(f"{names.count(n)} {n}" for n in dict.fromkeys(names))
