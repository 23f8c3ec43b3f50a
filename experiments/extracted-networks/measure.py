#!/usr/bin/env python3
"""Estimates how long each network of this page takes on i7, with the first schedules: `loopegg measure` of the network that its plan makes.

    python3 measure.py LOOPEGG RUNS

RUNS/bases has the base networks. What times.json holds already is kept.
"""
import json
import os
import subprocess
import sys
import tempfile

import table

TIMES = os.path.join(table.HERE, "times.json")


def measured(program, model, plan):
    with tempfile.TemporaryDirectory() as folder:
        made, file = os.path.join(folder, "model.json"), os.path.join(folder, "plan.json")
        with open(file, "w") as f:
            json.dump(plan, f)
        subprocess.run([program, "apply", model, file, "-o", made], check=True, capture_output=True)
        answer = subprocess.run([program, "measure", made, "--target", "i7", "--json", "-q"], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def main():
    program, runs = sys.argv[1:]
    page, times = table.Page(), {}
    if os.path.exists(TIMES):
        with open(TIMES) as f:
            times = json.load(f)
    for base in table.GENETIC:
        for name, _, own in [("original", "", None)] + page.all_networks(base):
            if name in times.setdefault(base, {}):
                continue
            plan = own["plan"] if own else next(iter(page.found[base, name].values()))["plan"]
            times[base][name] = measured(program, os.path.join(runs, "bases", base + ".json"), plan)
            print(base, name, times[base][name], flush=True)
            with open(TIMES, "w") as f:
                json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
