#!/usr/bin/env python3
"""Writes sample run folders for tests: the files of docs/reference/formats.md filled with seeded numbers. Nothing here was measured.

    make_samples.py OUT                 resnet34-host, resnet34-nano (estimated), tiny-original, densenet-host, mobilenet-host
Every result.json says "sample": true, and the report shows that in its first line.
"""
import json
import pathlib
import random
import sys

STEPS = {  # sequence name -> (steps with parameters, share of the MACs kept); a step over the network has a fourth of the value "network"
    "dense": ([], 1.0),
    "narrower": ([("narrow-stream", "neural", {"?w": "48"}, "network")], 0.5625),
    "dropped": ([("drop-branch", "neural", {}, "network")], 0.0),
    "group": ([("group-axes", "neural", {"?a": "co", "?b": "ci", "?g": "4"}, None)], 0.25),
    "S1": ([("split-loop", "exact", {"?a": "oh", "?k": "16"}, None), ("swap-loops", "exact", {"?a": "(quo oh 16)", "?b": "ci"}, None),
            ("group-axes", "neural", {"?a": "(quo oh 16)", "?b": "ci", "?g": "2"}, None), ("swap-loops", "exact", {"?a": "ci", "?b": "co"}, None),
            ("fuse-loops", "exact", {"?a": "(quo oh 16)", "?b": "(rem oh 16)"}, None)], 0.5),
    "S2": ([("cut-domain", "exact", {"?a": "co", "?k": "16"}, None), ("group-axes", "neural", {"?a": "co", "?b": "ci", "?g": "2"}, 1),
            ("swap-loops", "exact", {"?a": "co", "?b": "ci"}, None)], 0.6),
    "S3": ([("cut-domain", "exact", {"?a": "co", "?k": "(/ (extent co) 2)"}, None), ("group-axes", "neural", {"?a": "co", "?b": "ci", "?g": "2"}, 0),
            ("swap-loops", "exact", {"?a": "co", "?b": "ci"}, None), ("group-axes", "neural", {"?a": "co", "?b": "ci", "?g": "4"}, 1)], 0.375),
    "bottleneck": ([("bottleneck-axis", "neural", {"?a": "ci", "?k": "2"}, None)], 0.5),
    "unnamed": (
        [("split-loop", "exact", {"?a": "oh", "?k": "2"}, None), ("bottleneck-axis", "neural", {"?a": "(rem oh 2)", "?k": "2", "restore": "repeat"}, None),
         ("bottleneck-axis", "neural", {"?a": "(rem ow 2)", "?k": "2", "restore": "repeat"}, None)], 0.25),
}


def resnet34():
    yield "conv1", "conv2d", 3, 64, 32, 3
    width = 64
    for layer, (blocks, out) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
        size = 32 >> (layer - 1)
        for b in range(blocks):
            yield f"layer{layer}.{b}.conv1", "conv2d", width, out, size, 3
            yield f"layer{layer}.{b}.conv2", "conv2d", out, out, size, 3
            if b == 0 and width != out:
                yield f"layer{layer}.{b}.downsample.0", "conv2d", width, out, size, 1
            width = out
    yield "fc", "linear", 512, 10, 1, 1


def densenet():
    width = 96
    yield "conv0", "conv2d", 3, width, 32, 3
    for block, layers in enumerate([6, 12], 1):
        for i in range(layers):
            yield f"denseblock{block}.denselayer{i + 1}.conv1", "conv2d", width, 192, 32 >> (block - 1), 1
            yield f"denseblock{block}.denselayer{i + 1}.conv2", "conv2d", 192, 48, 32 >> (block - 1), 3
            width += 48


def mobilenet():
    yield "features.0.0", "conv2d", 3, 32, 32, 3
    for i, (a, b, s) in enumerate([(32, 16, 32), (16, 24, 16), (24, 32, 8), (32, 64, 4), (64, 96, 4), (96, 160, 2)], 1):
        yield f"features.{i}.conv.0", "conv2d", a, a * 6, s, 1
        yield f"features.{i}.conv.3", "conv2d", a * 6, b, s, 1


def tiny():
    yield "features.0", "conv2d", 8, 8, 4, 3
    yield "classifier", "linear", 8, 2, 1, 1


def latency(rng, ms, target, measured):
    return {"median_ms": round(ms, 5), "iqr_ms": round(ms * rng.uniform(0.01, 0.05), 5) if measured else 0.0, "n": rng.randint(15, 40) if measured else 0,
            "target": target, "measured": measured, "disturbed": measured and rng.random() < 0.04}


def pseudo(co, ci, size, k, g=1):
    if size == 1:
        return f"for co in 0..{co}:\n  for ci in 0..{ci}:\n    O[co] += W[co, ci] * I[ci]\n"
    lines = ["for n in 0..1:"]
    loops = [f"for co in 0..{co}:", f"for ci in 0..{ci}:"] if g == 1 else [f"for g in 0..{g}:", f"for co in 0..{co // g}:", f"for ci in 0..{ci // g}:"]
    for depth, line in enumerate(loops + [f"for oh in 0..{size}:", f"for ow in 0..{size}:", f"for kh in 0..{k}:", f"for kw in 0..{k}:"], 1):
        lines.append("  " * depth + line)
    a, b = ("co", "ci") if g == 1 else (f"{co // g}*g + co", f"{ci // g}*g + ci")
    lines.append("  " * (len(loops) + 5) + f"O[n, {a}, oh, ow] += W[{a}, {b}, kh, kw] * I[n, {b}, oh+kh-1, ow+kw-1]")
    return "\n".join(lines) + "\n"


def term(co, ci, size, k):
    return f"(nest (conv2d 1 1 {co} {ci} {size} {size} {k} {k} 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"


def make(out, model, arch, sites, target, seed, measured=True, names=None, gain=True):
    rng = random.Random(f"{model}-{target}-{seed}")
    names = names or ["dense", "dense", "narrower", "dropped", "group", "S1", "S2", "S3", "bottleneck", "unnamed"]
    rows, sequences, network, evidence = [], [], [], []
    before_ms = after_ms = before_macs = after_macs = before_params = after_params = 0
    for i, (name, op, ci, co, size, k) in enumerate(sites):
        macs, params = co * ci * size * size * k * k, co * ci * k * k
        sequence = rng.choice(names) if op == "conv2d" and ci > 3 and i > 1 and gain else "dense"
        steps, kept = STEPS[sequence]
        old = latency(rng, macs / 1.6e8 * rng.uniform(0.8, 1.3) + 0.004, target, measured)
        new = latency(rng, old["median_ms"] * (0.15 + 0.85 * kept), target, measured) if steps else dict(old)
        if sequence == "dropped":
            new = {"median_ms": 0.0, "iqr_ms": 0.0, "n": 0, "target": "", "measured": True, "disturbed": False}
        ratio = rng.gauss(0.98, 0.05) if steps else 1.0
        low, high = ratio - rng.uniform(0.01, 0.05), ratio + rng.uniform(0.01, 0.05)
        key = f"{rng.getrandbits(128):032x}"
        g = 4 if sequence in ("group", "S3") else 1
        effect = "dense" if not steps else f"(domain {sequence.replace(' ', '-')} {co} {ci})"
        rows.append({"name": name, "op": op, "shape": [1, co, size, size] if op == "conv2d" else [1, co], "statement": f"({op} 1 1 {co} {ci} {size} {size} {k} {k})",
                     "variant": effect, "sequence": sequence, "steps": [f"{r} " + " ".join(f"{a}={b}" for a, b in w.items()) for r, _, w, _ in steps],
                     "original_latency": old, "latency": new, "macs": int(macs * kept), "original_macs": macs, "parameters": int(params * kept),
                     "nest_before": term(co, ci, size, k), "nest_after": term(co, ci, size, k) if not steps else term(co, ci, size, k).replace("(at co (at ci", f"(at (diag {g} co ci) (at (rem co {co // 4}) (at (rem ci {max(1, ci // 4)})") + ")",
                     "pseudo_before": pseudo(co, ci, size, k), "pseudo_after": pseudo(co, ci, size, k, g if co % 4 == 0 else 1)})
        network += [{"rule": r, "neural": True, "at": [0, i], "with": w, "sites": [name],
                     "guards": [{"guard": "(capacity)", "allowed": True, "why": "by its sizes it is expected to lose 0.05 points, and 1.00 are allowed",
                                 "evidence": {"by": "sizes", "kept": ratio, "capacity": 0.5, "loss": {"points": 0.05}}}]} for r, _, w, part in steps if part == "network"]
        network += [{"rule": "write-layer", "neural": False, "at": [0, i]}] if sequence == "narrower" else []
        if sequence != "dropped":
            sequences.append({"name": name, "sequence": sequence, "key": " ".join(r for r, _, _, part in steps if part != "network"), "effect": effect,
                              "steps": [{"rule": r, "kind": kind, "with": w, **({"part": part} if part is not None else {}), "before": term(co, ci, size, k),
                                         "after": term(co, ci, size, k), **({"evidence": key} if kind == "neural" else {})} for r, kind, w, part in steps if part != "network"]})
        before_ms, after_ms = before_ms + old["median_ms"], after_ms + new["median_ms"]
        before_macs, after_macs = before_macs + macs, after_macs + int(macs * kept)
        before_params, after_params = before_params + params, after_params + int(params * kept)
        for j in range(0 if op != "conv2d" or not gain else 6):
            r = ratio if j == 0 and steps else abs(rng.gauss(0.9, 0.22))
            spread = (low, high) if j == 0 and steps else (r - rng.uniform(0.01, 0.06), r + rng.uniform(0.01, 0.06))
            allowed = spread[0] >= 0.8 and spread[1] <= 1.25
            why = "preserved within [0.8, 1.25]" if allowed else f"score {r:.2f} of the original, interval leaves [0.8, 1.25]"
            evidence.append({"key": key if j == 0 else f"{rng.getrandbits(128):032x}", "oracle": "fisher-band", "version": 1, "network": model, "site": name, "domain": f"(domain {j})",
                             "data": "cifar10", "batch": 32, "seeds": [1, 2, 3, 4], "scores": {"fisher": {"original": [1.0, 1.02, 0.99, 1.01], "variant": [round(r + d, 4) for d in (0, .02, -.01, .01)]}},
                             "ratio": r, "low": spread[0], "high": spread[1], "threshold": [0.8, 1.25], "allowed": bool(allowed or (j == 0 and steps)), "why": why, "seconds": round(rng.uniform(0.05, 0.4), 3)})
    original, optimized = latency(rng, before_ms, target, measured), latency(rng, after_ms, target, measured)
    original["disturbed"] = optimized["disturbed"] = False
    speedup = original["median_ms"] / optimized["median_ms"]
    pareto, networks = [], []
    for i in range(14 if gain else 1):
        share = 1 - i / 13 if gain else 0
        pareto.append({"latency_ms": before_ms + (after_ms * 0.85 - before_ms) * share, "measured": False, "loss": {"points": 2 * share ** 2}, "capacity": 2 ** -(2 * share ** 2),
                       "allowed": share <= 0.7, "parameters": int(before_params + (after_params - before_params) * share), "macs": int(before_macs + (after_macs - before_macs) * share)})
    for i in range(3 if gain else 0):
        ms, points = optimized["median_ms"] * (1, 1.1, 0.95)[i], (0.9, 0.7, 1.2)[i]
        networks.append({"finalist": f"front-{i + 1}", "origin": "front", "latency": {**optimized, "median_ms": ms}, "latency_ms": ms, "measured": measured, "predicted_ms": ms * 0.97,
                         "baseline_ms": original["median_ms"], "chosen": i == 0, "allowed": points <= 1, "loss": {"points": points, "low": points - 0.3, "high": points + 0.3},
                         "macs": after_macs, "parameters": after_params, "plan": {"steps": []}})
    if gain:
        pareto.append({"latency_ms": optimized["median_ms"], "measured": measured, "loss": {"points": 0.9, "low": 0.6, "high": 1.2}, "capacity": 2 ** -0.9, "allowed": True,
                       "parameters": after_params, "macs": after_macs, "chosen": True})
    changed = sum(bool(s["steps"]) for s in rows)
    guard = {"name": "fisher-band", "allowed": True, "ratio": 0.968 if gain else 1.0, "low": 0.931 if gain else 1.0, "high": 1.012 if gain else 1.0, "threshold": [0.8, 1.25], "seeds": 4,
             "needed": 0.52, "loss": {"points": 0.05 if gain else 0.0, "low": 0.0, "high": 0.1 if gain else 0.0}, "why": "the whole network's score is preserved on both sides" if gain else "nothing was changed"}
    result = {"loopegg": 1, "sample": True, "model": model, "class": arch, "target": target, "batch": 1, "seed": seed, "rules": "discover",
              "machine": {"cpu": "a sample machine", "cores": 2, "arch": "x86_64", "memory_gib": 23.5}, "date": "2026-11-15T06:30:00Z", "version": "0.2.0",
              "original": {**original, "parameters": before_params, "macs": before_macs}, "optimized": {**(optimized if gain else original), "parameters": after_params, "macs": after_macs},
              "speedup": speedup if gain else 1.0, "speedup_low": speedup * 0.96 if gain else 1.0, "speedup_high": speedup * 1.04 if gain else 1.0, "returned": "optimized" if gain else "original",
              "why": f"{changed} of {len(rows)} sites changed; the whole was timed in interleaved runs against the original compiled with the same effort" if gain
              else "no variant that the guard allows was faster than the original",
              "guard": guard, "sites": rows, "pareto": pareto, "front_gap": 0.02, "networks": networks, "configurations": 31 if gain else 12, "rejected": 4 if gain else 12,
              "rules_fired": {"drop-branch": 15, "narrow-stream": 28, "narrow-width": 112, "write-layer": 412, "lack-layer": 388, "drop-growth": 0},
              "growth": {"stop": "saturated", "nodes": 3120, "classes": 1405, "edges": 155, "seconds": 0.2}, "kernels": {"tried": 812, "failed": 3},
              "metrics": {"throughput_per_s": 1000 / optimized["median_ms"], "p50_ms": optimized["median_ms"], "p99_ms": optimized["median_ms"] * 1.09, "peak_memory_mb": 812, "energy_j": None, "temperature_c": None},
              "seconds": {"read": 0.1, "networks": 240.1, "tune": 60.2, "confirm": 30.0, "write": 1.0, "total": 331.4}}
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "sequences.json").write_text(json.dumps({"sites": sequences, **({"network": {"original": "(row ...)", "chosen": "(row ...)", "steps": network}} if network else {})}, indent=1) + "\n")
    (out / "evidence.jsonl").write_text("".join(json.dumps(e) + "\n" for e in evidence))


def main():
    out = pathlib.Path(sys.argv[1])
    make(out / "resnet34-host", "resnet34-cifar10", "residual", resnet34(), "host", 1)
    make(out / "resnet34-nano", "resnet34-cifar10", "residual", resnet34(), "nano", 1, measured=False)
    make(out / "densenet-host", "densenet-cifar10", "dense", densenet(), "host", 2, names=["dense", "group", "S3", "bottleneck", "narrower"])
    make(out / "mobilenet-host", "mobilenet_v2-cifar10", "mobile", mobilenet(), "host", 3, names=["dense", "dense", "narrower", "dropped"])
    make(out / "tiny-original", "tiny", "plain", tiny(), "host", 1, gain=False)


if __name__ == "__main__":
    main()
