#!/usr/bin/env python3
"""Compares measures and guards with trained networks: how well does each detect the networks that lose more than a point?

    python3 judge.py LOOPEGG SCORES.json [--data CIFAR_FOLDER] [--seeds 6] [--batch 16] [--at-a-time 16]

The trained networks are those of results.jsonl: the labels `fast` and `gentle` have plans, as train_variants.py wrote them, and `chosen` has whole models in
networks.jsonl. Each is scored with `LOOPEGG score` once: SCORES.json keeps the answers, and a later run resumes where it ended. Then tables are printed: every
network, and areas under the curve over all networks, over uniform ones and over mixtures. 0.5 is chance, and 1 detects all of them.
"""
import argparse
import functools
import json
import math
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURES = ("fisher", "fisher-layer", "naswot", "params", "macs")


def area(values, lost):
    safe = [v for v, l in zip(values, lost) if not l]
    bad = [v for v, l in zip(values, lost) if l]
    if not safe or not bad:
        return math.nan
    return sum((s > b) + 0.5 * (s == b) for s in safe for b in bad) / (len(safe) * len(bad))


def ranks(values):
    return [sum(w < v for w in values) + 0.5 * sum(w == v for w in values) for v in values]


def is_original(name):
    return name.startswith("original")


def rows(file, labels):
    return [r for r in map(json.loads, open(os.path.join(HERE, file))) if r["labels"] == labels]


def trained(labels):
    """{network: [accuracies]} and {network: plan} of one set of labels."""
    accuracies, plans = {}, {}
    for r in rows("results.jsonl", labels):
        accuracies.setdefault(r["name"], []).append(r["accuracy"])
        plans[r["name"]] = r.get("plan")
    return accuracies, plans


def losses(labels):
    """{network: points lost}: the mean over seeds, compared with that of the original which was trained for this network, or of the common original."""
    accuracies, _ = trained(labels)
    mean = lambda n: sum(accuracies[n]) / len(accuracies[n])
    original_for = {letter: o for o in accuracies if " for " in o for letter in o.split()[2:]}
    return {n: mean(original_for.get(n.split("-")[0], "original")) - mean(n) for n in accuracies if not is_original(n)}


@functools.cache
def models():
    """{name: model} of the networks that runs chose."""
    return {row["name"]: row["model"] for row in rows("networks.jsonl", "chosen")}


def score(options, networks):
    """What the program says about some networks: {name: plan, or None for a model of networks.jsonl}."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.loopegg, "score", "zoo:resnet34-cifar10", "--json", "--no-store", "--when", "(fisher-band >= 0.52)", "--when", "(fisher >= 1)", *(a for m in MEASURES for a in ("--measure", m)),
                   "--seeds", str(options.seeds), "--batch", str(options.batch), *(("--data", options.data) if options.data else ())]
        for name, plan in networks.items():
            path = os.path.join(folder, name + ".json")
            json.dump(models()[name] if plan is None else plan, open(path, "w"))
            command += ["--variant" if plan is None else "--plan", path]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {os.path.basename(v["plan"])[:-5]: {"measures": v["measures"], "guards": v["guards"]} for v in answer["variants"]}


def all_scores(options):
    networks = {n: p for labels in ("fast", "gentle", "chosen") for n, p in trained(labels)[1].items() if not is_original(n)}
    known = json.load(open(options.scores)) if os.path.exists(options.scores) else {}
    left = [n for n in networks if n not in known]
    for i in range(0, len(left), options.at_a_time):
        known |= score(options, {n: networks[n] for n in left[i:i + options.at_a_time]})
        json.dump(known, open(options.scores + ".part", "w"), indent=1)
        os.replace(options.scores + ".part", options.scores)
    return known


def margin(guard):
    """How far the measure is on the right side of its threshold."""
    measure = guard["measures"][0]
    return (measure["value"] - measure["threshold"]) * (1 if measure["comparison"] == ">=" else -1)


def detectors(scores):
    """{detector: {network: value}}, larger values for networks that should be safe."""
    out = {}
    for name, s in scores.items():
        ratio = {m: s["measures"][m]["ratio"] for m in MEASURES}
        parts = s["guards"]["fisher-band"]["evidence"]["parts"]
        values = {f"{m} (more is better)": ratio[m] for m in ("fisher", "naswot", "params", "macs") if ratio[m] is not None}
        values |= {f"{m} (two-sided)": -abs(math.log(ratio[m])) for m in ("fisher", "fisher-layer")}
        values |= {"codes tell images apart": -parts["codes"], "work left, stage by stage": -parts["stages"], "work left, site by site": -parts["sites"]}
        values |= {f"guard {g}": margin(s["guards"][g]) for g in s["guards"]}
        for d, v in values.items():
            out.setdefault(d, {})[name] = v
    names = list(scores)
    for pair in (("fisher (two-sided)", "macs (more is better)"), ("fisher (two-sided)", "codes tell images apart", "work left, stage by stage")):
        sums = [sum(r) for r in zip(*(ranks([out[d][n] for n in names]) for d in pair))]
        out["rank sum: " + " + ".join(d.split(" (")[0] for d in pair)] = dict(zip(names, sums))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loopegg"), parser.add_argument("scores"), parser.add_argument("--data", default="")
    parser.add_argument("--seeds", type=int, default=6), parser.add_argument("--batch", type=int, default=16), parser.add_argument("--at-a-time", type=int, default=16)
    scores = all_scores(parser.parse_args())
    fast, gentle, chosen = losses("fast"), losses("gentle"), losses("chosen")
    word = {True: "admits", False: "refuses"}
    print("| network | points lost, peak 0.4 | peak 0.15 | 15 epochs | MACs kept | Fisher ratio | fisher-band keeps | fisher-band | fisher |\n|---|---|---|---|---|---|---|---|---|")
    for name in sorted(scores, key=lambda n: -scores[n]["guards"]["fisher-band"]["measures"][0]["value"]):
        s = scores[name]
        lost = [f"{l[name]:.2f}" if name in l else "" for l in (fast, gentle, chosen)]
        print(f"| {name} | {' | '.join(lost)} | {s['measures']['macs']['ratio']:.2f} | {s['measures']['fisher']['ratio']:.2f} | {s['guards']['fisher-band']['measures'][0]['value']:.2f} | "
              f"{word[s['guards']['fisher-band']['allowed']]} | {word[s['guards']['fisher']['allowed']]} |")
    groups = {"all": fast, "uniform": {n: l for n, l in fast.items() if not n.startswith("mix")}, "mixtures": {n: l for n, l in fast.items() if n.startswith("mix")}, "peak 0.15": gentle}
    print("\n| detector of a loss above one point | " + " | ".join(f"{k} ({len(g)}, {sum(l > 1 for l in g.values())} lose)" for k, g in groups.items()) + " |\n|---|" + "---|" * len(groups))
    for name, values in detectors(scores).items():
        cells = [area([values[n] for n in g], [l > 1 for l in g.values()]) for g in groups.values()]
        print(f"| {name} | " + " | ".join("-" if math.isnan(c) else f"{c:.2f}" for c in cells) + " |")


if __name__ == "__main__":
    main()
