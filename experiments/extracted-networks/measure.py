#!/usr/bin/env python3
"""Estimates how long each network of this page takes on i7, with the first schedules, and asks the guard what it expects of each.

    python3 measure.py LOOPEGG

What estimates.json holds already is kept.
"""
import json
import os
import subprocess
import sys
import tempfile

import table
from collect import N


def asked(*command):
    return json.loads(subprocess.run([*command, "--json", "-q"], check=True, capture_output=True, text=True).stdout)


def estimate(program, base, plan):
    with tempfile.TemporaryDirectory() as folder:
        original, model = os.path.join(folder, "original.json"), os.path.join(folder, "model.json")
        for file, graph in (original, N.BASES[base]), (model, N.apply_plan(N.BASES[base], plan)):
            with open(file, "w") as f:
                json.dump(graph, f)
        ms = asked(program, "measure", model, "--target", "i7")["median_ms"]
        score = asked(program, "score", original, "--variant", model, "--measure", "fisher", "--seeds", "1", "--batch", "2", "--no-store")
    return {"ms": ms, "expected": score["variants"][0]["guards"]["expected-loss"]["evidence"]["loss"]}


def main():
    program, page = sys.argv[1], table.Page()
    for base in table.GENETIC:
        for name, _, own in [("original", "", None)] + page.all_networks(base):
            if name in page.estimates.setdefault(base, {}):
                continue
            plan = own["plan"] if own else next(iter(page.found[base, name].values()))["plan"]
            page.estimates[base][name] = estimate(program, base, plan)
            print(base, name, page.estimates[base][name], flush=True)
            with open(table.ESTIMATES, "w") as f:
                json.dump(page.estimates, f, indent=1)


if __name__ == "__main__":
    main()
