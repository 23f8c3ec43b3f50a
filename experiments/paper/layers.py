"""The paper's sequences on single layers: what is tried with 'loopegg try', by Figures 5, 6 and 9."""
from session import Refused

TRIALS, SECONDS = {True: 6, False: 18}, {True: 10, False: 60}   # by --quick


def settings(session, trials=None):
    """What is expected to be lost depends on sizes alone, and losses.py asks about it."""
    trials, seconds = trials or (TRIALS[session.quick], SECONDS[session.quick])
    return ["--trials", trials, "--tune-seconds", seconds, "--unjudged"]


def distinct_convolutions(session, model):
    """One site of each shape, with how many sites have the shape."""
    found = {}
    for site in session.ask("show", model)["sites"]:
        if site["op"] == "conv2d":
            found.setdefault((tuple(site["input"]), tuple(site["shape"]), site["parameters"]), []).append(site)
    return [(sites[0], len(sites)) for sites in found.values()]


def sequences(site):
    """The grouping of NAS and the paper's sequences (docs/reference/nest-rules.md) as rules, for this layer's sizes."""
    channels, rows = site["shape"][1], site["shape"][2]
    cut = f"cut-domain a=co k={channels // 2}"
    return {"NAS G=2": ["group-axes a=co b=ci g=2"],
            "S1": [f"group-axes a=(quo oh {rows // 2}) b=ci g=2"],
            "S2": [cut, "group-second-part a=co b=ci g=2"],
            "S3": [cut, "group-first-part a=co b=ci g=2", "group-second-part a=co b=ci g=4"]}


def try_layer(session, table, key, model, site, name, rules, trials=None, **more):
    """A line of what 'loopegg try' says of these rules at a site, or of why it refuses them."""
    if table.has(key):
        return
    session.say(key)
    words = [w for rule in rules for w in ("--apply", rule)]
    try:
        answer = session.ask("try", model, "--site", site, *words, *settings(session, trials))
    except Refused as e:
        table.add(key, model=model, site=site, sequence=name, rules=rules, refused=str(e), **more)
        return
    layer = answer["layers"][0]
    table.add(key, model=model, site=site, sequence=name, rules=rules, refused=None, target=answer["target"], original=layer["original_latency"],
              variant=layer["latency"], speedup=layer["speedup"], macs=layer["macs"], original_macs=layer["original_macs"], called=layer["sequence"], tried=layer.get("tried"), **more)


def interval(row):
    """The speed-up with the quartiles of both times taken against each other."""
    before, after = row["original"], row["variant"]
    low = (before["median_ms"] - before["iqr_ms"] / 2) / (after["median_ms"] + after["iqr_ms"] / 2)
    high = (before["median_ms"] + before["iqr_ms"] / 2) / max(1e-9, after["median_ms"] - after["iqr_ms"] / 2)
    return low, high


def timed(rows):
    return [r for r in rows if not r["refused"] and r.get("speedup")]


def geometric_mean(values):
    product = 1.0
    for v in values:
        product *= v
    return product ** (1 / len(values))
