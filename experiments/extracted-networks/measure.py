#!/usr/bin/env python3
"""Estimates how long each network of this page takes on i7, with the first schedules (`loopegg measure --target i7`).

    python3 measure.py LOOPEGG

What times.json holds already is kept.
"""
import json
import os
import subprocess
import sys
import tempfile

import table
from collect import N

TIMES = os.path.join(table.HERE, "times.json")


def measured(program, base, plan):
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.json")
        with open(model, "w") as f:
            json.dump(N.apply_plan(N.BASES[base], plan), f)
        answer = subprocess.run([program, "measure", model, "--target", "i7", "--json", "-q"], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)["median_ms"]


def main():
    program, page, times = sys.argv[1], table.Page(), {}
    if os.path.exists(TIMES):
        with open(TIMES) as f:
            times = json.load(f)
    for base in table.GENETIC:
        for name, _, own in [("original", "", None)] + page.all_networks(base):
            if name in times.setdefault(base, {}):
                continue
            plan = own["plan"] if own else next(iter(page.found[base, name].values()))["plan"]
            times[base][name] = measured(program, base, plan)
            print(base, name, times[base][name], flush=True)
            with open(TIMES, "w") as f:
                json.dump(times, f, indent=1)


if __name__ == "__main__":
    main()
