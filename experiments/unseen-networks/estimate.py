#!/usr/bin/env python3
"""Estimates how long each network of labels.jsonl takes on i7, with the first schedules: estimate.py LOOPEGG. What estimates.json holds already is kept."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "accuracy"))
import networks as N  # noqa: E402

ESTIMATES = os.path.join(HERE, "estimates.json")


def milliseconds(program, graph):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.json")
        with open(file, "w") as f:
            json.dump(graph, f)
        return json.loads(subprocess.run([program, "measure", file, "--target", "i7", "--json", "-q"], check=True, capture_output=True).stdout)["median_ms"]


def main():
    known = json.load(open(ESTIMATES)) if os.path.exists(ESTIMATES) else {}
    for job in map(json.loads, open(os.path.join(HERE, "labels.jsonl"))):
        own = known.setdefault(job["base"], {})
        if job["name"] not in own:
            own[job["name"]] = milliseconds(sys.argv[1], N.apply_plan(N.BASES[job["base"]], job["plan"]))
            with open(ESTIMATES, "w") as f:
                json.dump(known, f, indent=1)


if __name__ == "__main__":
    main()
