"""Figure 4: three networks, tuned by TVM's own tuner, by loopegg's exact rules, and made smaller by searches and by uniform scaling."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

import fig7
import losses
import svg
from session import PEERS, ROOT, Failed, Refused, provenance

HERE = ROOT / "experiments/paper"
SECONDS = {True: 30, False: 300}   # for TVM's tuner and for ours alike, by --quick
LONGER = 8                         # TVM's tuner is timed again after so many times these seconds
# Networks that were trained before (experiments/accuracy), by their names there.
NETWORKS = {"resnet34-cifar10": {"BlockSwap": "rival-blockswap", "uniform scaling": "width5-depth67", "loopegg 0.1": "t2-rules-8", "loopegg, extracted": "at-least-half-1"},
            "resnext29_2x64d": {"uniform scaling": "width5-depth67", "loopegg 0.1": "m3-rules-6"}, "densenet161-cifar10": {}}
EXACT = "loopegg, exact rules"
ELSEWHERE = ["i7", "gtx1080ti", "nano", "a57"]   # the paper's devices: compiled and estimated
SERIES = ["TVM, first schedules", "TVM, tuned by MetaSchedule", "TVM, tuned for longer", "loopegg, exact rules", "BlockSwap", "FBNet's menu", "uniform scaling", "loopegg 0.1", "loopegg, extracted", "loopegg, default run"]


def measure(session):
    table = session.rows("fig4")
    for network, names in NETWORKS.items() if not session.quick else list(NETWORKS.items())[:2]:
        tuned_by_tvm(session, table, network)
        ours(session, table, network, "loopegg, exact rules", f"zoo:{network}", "--rules", "exact")
        smaller = made(session, network, names)
        for name, model in smaller.items():
            ours(session, table, network, name, model, "--rules", "exact")
        if session.judged:   # its guard runs networks
            ours(session, table, network, "loopegg, default run", f"zoo:{network}")
        for target in ELSEWHERE:
            estimated(session, table, network, smaller, target)


def made(session, network, names):
    """The smaller networks as files."""
    known = trained_plans()
    plans = {series: known[network, name] for series, name in names.items()}
    if fbnet := fig7.fastest_network(session, network):
        plans["FBNet's menu"] = fbnet
    files = {}
    for series, plan in plans.items():
        stem = session.out / "plans" / f"fig4-{network}-{series.split()[0].lower().strip(chr(39))}"
        stem.parent.mkdir(exist_ok=True)
        stem.with_suffix(".plan.json").write_text(json.dumps(plan))
        session.ask("apply", f"zoo:{network}", stem.with_suffix(".plan.json"), "-o", stem.with_suffix(".json"))
        files[series] = stem.with_suffix(".json")
    return files


def trained_plans():
    sys.path.insert(0, str(ROOT / "experiments/accuracy"))
    import plan
    return plan.plans()


def trained(network, name):
    """What seeds of a trained network reached by the 16-epoch recipe, less what the original reached with the same seeds."""
    lines = [json.loads(line) for line in open(ROOT / "experiments/accuracy/labels.jsonl")]
    of = {(r["name"], r["seed"]): r["accuracy"] for r in lines if r["base"] == network and r["recipe"] == "short"}
    return [of[name, seed] - of["original", seed] for n, seed in of if n == name and ("original", seed) in of]


def ours(session, table, network, name, model, *rules):
    """A run of 'optimize': where rules are exact, its answer is the same network, tuned."""
    key = f"{network} host {name}"
    if table.has(key):
        return
    session.say(key)
    out = session.out / "runs" / key.replace(" ", "-").replace(",", "")
    try:
        r = session.ask("optimize", model, "--tune-seconds", SECONDS[session.quick], "--out", out, *rules)
    except Refused as e:
        return table.add(key, network=network, target="host", series=name, refused=str(e))
    latency = r["optimized"]
    table.add(key, network=network, target="host", series=name, refused=None, ms=latency["median_ms"], iqr=latency["iqr_ms"], n=latency["n"],
              measured=latency["measured"], macs=latency["macs"], seconds=SECONDS[session.quick], loss=r["guard"].get("loss") if not rules else None)


def tuned_by_tvm(session, table, network):
    keys = [f"{network} host {s}" for s in SERIES[:3]]
    if all(map(table.has, keys)):
        return
    python = os.environ.get("LOOPEGG_PEERS") or PEERS   # a Python with TVM
    if not pathlib.Path(python).exists():
        return session.say("fig4: TVM's tuner needs 'setup/prepare test-extras'")
    session.say(keys[1])
    model, work, seconds = session.out / f"fig4-{network}.onnx", session.out / f"fig4-{network}.metaschedule", SECONDS[session.quick]
    session.ask("export", f"zoo:{network}", "--out", model)
    done = subprocess.run([python, HERE / "metaschedule.py", model, work, str(seconds), str(LONGER * seconds)], capture_output=True, text=True)
    if done.returncode != 0:
        return session.say(f"fig4: TVM's tuner ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    for key, series, kind, spent in zip(keys, SERIES, ("first", "tuned", "longer"), (0, seconds, LONGER * seconds)):
        table.add(key, network=network, target="host", series=series, refused=None, measured=True, seconds=spent, **answer[kind])


def estimated(session, table, network, smaller, target):
    for name, model in {"loopegg, exact rules": f"zoo:{network}", **smaller}.items():
        key = f"{network} {target} {name}"
        if table.has(key):
            continue
        try:
            r = session.ask("measure", model, "--target", target)
        except Refused as e:
            table.add(key, network=network, target=target, series=name, refused=str(e))
            continue
        table.add(key, network=network, target=target, series=name, refused=None, ms=r["median_ms"], iqr=r["iqr_ms"], n=r["n"], measured=r["measured"])


def good(rows):
    return [r for r in rows if not r["refused"]]


def baseline(rows, network, target):
    """The fastest form of the original, whoever tuned it."""
    originals = SERIES[:SERIES.index(EXACT) + 1]
    return min((r["ms"] for r in good(rows) if (r["network"], r["target"]) == (network, target) and r["series"] in originals), default=None)


def draw(session, rows):
    groups, values = [], {}
    for r in good(rows):
        base = baseline(rows, r["network"], r["target"])
        if base is None:
            continue
        group = f"{r['network'].split('-')[0].split('_')[0]} {r['target']}{'' if r['measured'] else ' (est.)'}"
        groups += [group] if group not in groups else []
        low, high = (base / (r["ms"] + r["iqr"] / 2), base / max(1e-9, r["ms"] - r["iqr"] / 2)) if r["measured"] else (None, None)
        values[group, r["series"]] = (base / r["ms"], low, high, f"{r['network']} on {r['target']}, {r['series']}: {r['ms']:.2f} ms")
    counts = [r["n"] for r in good(rows) if r["measured"]]
    note = f"host: measured, n = {min(counts, default=0)} to {max(counts, default=0)}; (est.): estimated from data sheets. " + provenance(rows)
    plot = svg.Plot("Times as fast as the fastest original, whoever tuned it", "network and target", "times as fast", note)
    used = [s for s in SERIES if any(k[1] == s for k in values)]
    if not values:
        return plot.svg()
    return svg.bars(plot, groups, used, values, svg.Axis(0, 1.08 * max(v[2] or v[0] for v in values.values())), base=1)


def lost(session, r):
    """Points that six-seed training runs of experiments/accuracy lost; where there are none, what the guard expects."""
    if r["series"] in SERIES[:SERIES.index(EXACT) + 1]:
        return "0"
    name = NETWORKS[r["network"]].get(r["series"])
    found = trained(r["network"], name) if name else []
    if found:
        return f"{-statistics.mean(found):.2f}, trained, n {len(found)}"
    return f"{r['loss']['points']:.2f}, expected" if r.get("loss") else fbnet_loss(session, r)


def fbnet_loss(session, r):
    plan = fig7.fastest_network(session, r["network"]) if r["series"] == "FBNet's menu" else None
    found = losses.of(session, f"zoo:{r['network']}", plan) if plan else None
    return f"{found['points']:.2f}, expected" if found else "not judged"


def row_text(session, rows, r):
    if r["refused"]:
        return f"| {r['network']} | {r['target']} | {r['series']} | not measured: {r['refused'].splitlines()[0][:80]} | | | |"
    base = baseline(rows, r["network"], r["target"])
    spread = f" ({r['iqr']:.2f}, n {r['n']})" if r["measured"] else ", estimated"
    tuned = f"{r['seconds']}" + (f", {r['trials']} trials" if r.get("trials") is not None else "") if "seconds" in r else ""
    return f"| {r['network']} | {r['target']} | {r['series']} | {r['ms']:.2f}{spread} | {base / r['ms']:.3g} | {tuned} | {lost(session, r)} |"


def verdict(rows):
    """What the tuned rows of this machine say, network by network."""
    words = []
    for network in NETWORKS:
        of = {r["series"]: r for r in good(rows) if (r["network"], r["target"]) == (network, "host")}
        smaller = [r for series, r in of.items() if series in SERIES[SERIES.index(EXACT) + 1:]]
        if EXACT not in of or not smaller:
            continue
        exact, best = of[EXACT]["ms"], min(smaller, key=lambda r: r["ms"])
        if "TVM, tuned by MetaSchedule" in of:
            tvm, longer = of["TVM, tuned by MetaSchedule"], of["TVM, tuned for longer"]
            words.append(f"on {network}, TVM's own tuner reaches {tvm['ms']:.1f} ms in {tvm['seconds']} seconds and {longer['ms']:.1f} ms in {longer['seconds']}, and our exact rules "
                         f"{exact:.2f} ms in {of[EXACT]['seconds']}, without a change of the network. Over that original, the fastest smaller network ({best['series']}, {best['ms']:.2f} ms) gains {exact / best['ms']:.2f}x")
        else:
            words.append(f"on {network}, the fastest smaller network ({best['series']}) gains {exact / best['ms']:.2f}x over the original tuned alike, and loses {lost(None, best).split(',')[0]} points")
    joined = "; ".join(words)
    return joined[0].upper() + joined[1:] if words else "No network has all rows"


def by_tvm(rows):
    if not any(r["series"] == "TVM, tuned by MetaSchedule" for r in good(rows)):
        return "TVM's own tuner has no row: it ended before it had timed a program, and its first schedules are loops without vectors, which are no baseline."
    return f"TVM's rows are MetaSchedule of the pinned wheel with its learned cost model, for the same seconds as each of our tunings and for {LONGER} times as long."


def page(session, rows):
    measured = [r for r in good(rows) if r["measured"]]
    return f"""# Figure 4: whole networks over tuned TVM

**What does not hold.** {verdict(rows)}. The paper's four devices are not here: only this machine is measured, and
{', '.join(ELSEWHERE)} are estimates from data sheets.

    ./loopegg paper fig4{' --quick' if session.quick else ''}

{provenance(measured or rows, target="host (measured)" + ", others (estimated)", n="in the table", spread="interquartile ranges in brackets")}

![Times as fast as the fastest original](fig4.svg)

- **What the paper reports.** By its abstract, inference in less than a third of the time in the majority of cases. Its figure compares TVM, BlockSwap and its own
  search on ResNet-34, ResNeXt-29 and DenseNet-161 and four devices.
- **What we see.** {by_tvm(rows)} BlockSwap, uniform scaling and the networks of loopegg were chosen and trained before ([accuracy](../../accuracy/README.md)), and are tuned by the exact rules
  here. `loopegg 0.1` is from the search of that version, and `loopegg, extracted` from the e-graph.{' The row of FBNet is from Figure 7.' if any(r['series'].startswith('FBNet') for r in rows) else ''}
- **Why they differ.** All networks and the original are tuned alike, so that a smaller network gains only what its lesser work is worth.

| network | target | row | ms (iqr, n) | times as fast as the fastest original | seconds of tuning | points lost |
|---|---|---|---|---|---|---|
{chr(10).join(row_text(session, rows, r) for r in rows)}
"""
