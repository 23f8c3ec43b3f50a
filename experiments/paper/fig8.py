"""Figure 8: five ImageNet networks: size, work, and measured latency, before and after."""
import svg
from session import Refused, provenance

NETWORKS = ["resnet18", "resnet34", "densenet161", "densenet169", "densenet201"]
SECONDS = {True: 30, False: 240}   # of trying schedules, by --quick


def measure(session):
    table = session.rows("fig8")
    for name in NETWORKS:
        for kind, rules in (("exact", ["--rules", "exact"]), ("discover", [])):
            key = f"{name} {kind}"
            if table.has(key):
                continue
            session.say(key)
            try:
                r = session.ask("optimize", f"zoo:{name}", "--tune-seconds", SECONDS[session.quick], "--out", session.out / "runs" / f"fig8-{name}-{kind}", *rules)
            except Refused as e:
                table.add(key, network=name, kind=kind, refused=str(e))
                continue
            table.add(key, network=name, kind=kind, refused=None, target=r["target"], original=r["original"], optimized=r["optimized"], returned=r["returned"],
                      loss=r["guard"].get("loss") if kind == "discover" else None, seconds=r["seconds"]["total"])


def good(rows):
    return [r for r in rows if not r["refused"]]


def draw(session, rows):
    note = f"Measured, interleaved. n = {good(rows)[0]['original']['n'] if good(rows) else 0} samples of each network. " + provenance(rows)
    plot = svg.Plot("Five ImageNet networks: parameters against latency", "latency, ms (logarithmic)", "million parameters", note)
    points = []
    for r in good(rows):
        series = "original, tuned" if r["kind"] == "exact" else "returned by optimize"
        points.append((series, r["optimized"]["median_ms"], r["optimized"]["parameters"] / 1e6, r["network"]))
    if not points:
        return plot.svg()
    return svg.scatter(plot, points, svg.around([p[1] for p in points], log=True), svg.around([p[2] for p in points]), radius=6)


def page(session, rows):
    table = []
    for r in rows:
        if r["refused"]:
            table.append(f"| {r['network']} | {r['kind']} | not measured: {r['refused'].splitlines()[0][:80]} | | | | |")
            continue
        b, a = r["original"], r["optimized"]
        lost = f"{r['loss']['points']:.2f}" if r.get("loss") else ""
        table.append(f"| {r['network']} | {r['kind']} | {a['parameters'] / 1e6:.1f} M | {a['macs'] / 1e9:.2f} G | {a['median_ms']:.1f} ({a['iqr_ms']:.1f}) | {b['median_ms'] / a['median_ms']:.2f} | {lost} |")
    return f"""# Figure 8: ImageNet networks

**What does not hold.** The accuracy of these networks is not measured here: no machine of this project trains on ImageNet. The page has sizes, work and
latency, and the loss that the guard expects, which was fitted to networks on CIFAR-10 and was never checked on ImageNet.

    ./loopegg paper fig8{' --quick' if session.quick else ''}

{provenance(rows, target="host, measured", n=f"{good(rows)[0]['original']['n'] if good(rows) else 0} samples of each network, interleaved with its original", spread="interquartile ranges in brackets")}

![Parameters against latency](fig8.svg)

- **What the paper reports.** Size against top-5 accuracy on ImageNet of five networks before and after: smaller networks at nearly the same accuracy.
- **What we see.** `exact` changes schedules alone, so its rows are the originals as fast as we can run them. `discover` is what a default run returns.
- **Why they differ.** The axis of the paper is accuracy after training, which is missing here.

| network | rules | parameters | MACs | ms | times as fast as the original, interleaved | points the guard expects to lose |
|---|---|---|---|---|---|---|
{chr(10).join(table)}
"""
