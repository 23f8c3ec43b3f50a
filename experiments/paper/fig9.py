"""Figure 9: operators between two: from G=2 to G=4, the output channels cut in two parts with 2 and 4 groups."""
import layers
import losses
import svg
from session import provenance

MODEL, NETWORK = "zoo:resnet34-cifar10", "ResNet-34 (CIFAR-10)"


def steps(session):
    """Which share of the output channels has 4 groups."""
    return [0, 0.25, 0.5, 0.75, 1] if session.quick else [i / 8 for i in range(9)]


def rules_at(share, channels):
    if share in (0, 1):
        return [f"group-axes a=co b=ci g={4 if share else 2}"]
    return [f"cut-domain a=co k={round((1 - share) * channels)}", "group-first-part a=co b=ci g=2", "group-second-part a=co b=ci g=4"]


def measure(session):
    table = session.rows("fig9")
    losses.ask(session, MODEL, [plan(session, share) for share in steps(session)])
    for share in steps(session):
        for site, count in sites(session):
            layers.try_layer(session, table, f"{site['name']} {share:g}", MODEL, site["name"], f"{share:g}", rules_at(share, site["shape"][1]), share=share, count=count,
                             shape=site["shape"])


def sites(session):
    """A site of each stage with as many input as output channels, so that every cut leaves whole blocks, and how many sites are like it."""
    return [(s, n) for s, n in layers.distinct_convolutions(session, MODEL) if s["shape"][1] == s["input"][1] and n > 1]


def plan(session, share):
    """The same in all such layers at once, which is a network that can be trained."""
    return {"steps": [step for site, _ in sites(session)
                      for step in losses.plan_of(f"{site['name'].split('.')[0]}.*.conv2", rules_at(share, site["shape"][1]))["steps"]]}


def summed(rows):
    """By share: the time of all these layers together, in milliseconds, and of the originals."""
    found = {}
    for r in layers.timed(rows):
        one = found.setdefault(r["share"], {"ms": 0.0, "original": 0.0, "iqr": 0.0, "macs": 0, "layers": 0, "n": []})
        one["ms"] += r["count"] * r["variant"]["median_ms"]
        one["original"] += r["count"] * r["original"]["median_ms"]
        one["iqr"] += r["count"] * r["variant"]["iqr_ms"]
        one["macs"] += r["count"] * r["macs"]
        one["layers"] += 1
        one["n"].append(r["variant"]["n"])
    whole = max((v["layers"] for v in found.values()), default=0)
    return {s: v for s, v in sorted(found.items()) if v["layers"] == whole}


def draw(session, rows):
    good, sums = layers.timed(rows), summed(rows)
    note = f"Target: {good[0]['target'] if good else 'none'}, measured. n = {min(min(v['n']) for v in sums.values()) if sums else 0} samples a layer. " + provenance(rows)
    plot = svg.Plot(f"From G=2 to G=4 in {NETWORK}", "share of the output channels with 4 groups instead of 2", "ms of the changed layers together", note)
    points = [("variants", s, v["ms"], f"{s:g}: {v['ms']:.3f} ms (sum of quartile ranges {v['iqr']:.3f})") for s, v in sums.items()]
    points += [("the same layers, dense", s, v["original"], f"{v['original']:.3f} ms") for s, v in sums.items()]
    if not points:
        return plot.svg()
    return svg.lines(plot, points, svg.Axis(0, 1), svg.Axis(0, 1.1 * max(p[2] for p in points)))


def page(session, rows):
    sums, good = summed(rows), layers.timed(rows)
    ends = [sums[s]["ms"] for s in (0, 1) if s in sums]
    between = {s: v for s, v in sums.items() if 0 < s < 1}
    outside = [s for s, v in between.items() if ends and v["ms"] > max(ends)]
    table = [f"| {s:g} | {v['macs'] / 1e6:.0f} M | {v['ms']:.3f} ({v['iqr']:.3f}) | {v['original'] / v['ms']:.2f} | {expected(session, s)} |" for s, v in sums.items()]
    return f"""# Figure 9: between two operators

**What does not hold.** {len(outside)} of {len(between)} operators between G=2 and G=4 take longer than both ends. Whether the points between are more accurate is not answered here: nothing was trained for this page.

    ./loopegg paper fig9{' --quick' if session.quick else ''}

{provenance(rows, target=good[0]['target'] + ', measured' if good else 'none', n=f"{len(good)} layers and variants", spread="the quartile ranges of the layers, summed")}

![Latency from G=2 to G=4](fig9.svg)

- **What the paper reports.** Operators between two that NAS offers (G=2 and G=4), reached by splitting a layer's domain, on the plane of accuracy and latency.
- **What we see.** The time of the changed layers, each tuned alone and timed interleaved with the dense layer, summed over the network.
  The last column has what the guard expects of the network with all of them changed.
- **Why they differ.** A layer that is cut in two parts runs as one nest, each part with its own tiles
  (`nest_after` of `loopegg try`), so the points between the ends measure our code generator as well as the operators. No accuracy was trained, which would take three training
  runs of each point.

| share with 4 groups | MACs of the layers | ms (quartile ranges) | times as fast as dense | the guard expects to lose, points |
|---|---|---|---|---|
{chr(10).join(table)}
"""


def expected(session, share):
    found = losses.of(session, MODEL, plan(session, share))
    return f"{found['points']:.2f} ({found['low']:.2f} to {found['high']:.2f})" if found else "not judged"
