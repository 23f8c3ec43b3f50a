#!/usr/bin/env python3
"""Stands in for 'loopegg optimize' in tests of 'batch': writes a result.json that follows from its arguments alone, slowly, and notes that it did.

A model called 'broken' fails with words, and a model called 'crash' dies by a signal. TALLY (environment) is a file that gets one line for each finished run.
"""
import json
import os
import pathlib
import signal
import sys
import time

arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
model, seed, out = sys.argv[2], int(arguments["--seed"]), pathlib.Path(arguments["--out"])
time.sleep(float(os.environ.get("FAKE_SECONDS", "0.05")))
if "broken" in model:
    print("progress: 3 of 7", file=sys.stderr)
    print(f"error: cannot read '{model}': it is broken\n  hint: mend it", file=sys.stderr)
    sys.exit(1)
if "crash" in model:
    os.kill(os.getpid(), signal.SIGSEGV)
before = 4.0 + len(model)
latency = {"iqr_ms": 0.1, "n": 9, "target": arguments["--target"], "measured": True, "disturbed": False}
result = {"loopegg": 1, "sample": True, "model": model, "target": arguments["--target"], "seed": seed, "original": {"median_ms": before, **latency, "parameters": 10, "macs": 100},
          "optimized": {"median_ms": before / (1 + seed), **latency, "parameters": 5, "macs": 50}, "speedup": 1.0 + seed, "returned": "optimized", "guard": {"name": "none", "allowed": True, "ratio": 0.9},
          "sites": [], "seconds": {"total": 1.5}}
partial = out / "result.json.partial"
partial.write_text(json.dumps(result))
time.sleep(float(os.environ.get("FAKE_SECONDS", "0.05")))
partial.rename(out / "result.json")
if "TALLY" in os.environ:
    with open(os.environ["TALLY"], "a") as tally:
        tally.write(f"{out.name}\n")
