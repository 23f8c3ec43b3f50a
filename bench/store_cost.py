#!/usr/bin/env python3
"""What stores cost a run: the time that 'optimize' waits for its stores, compared with the time of the whole run, on SQLite and on PostgreSQL.

    bench/store_cost.py [--program build/src/cli/loopegg] [MODEL [OPTION OF OPTIMIZE]...]

Each run has a fresh store of its own. The PostgreSQL server is Debian's, started here for this purpose, and flushes to the disk as a real one does. The
seconds in stores are summed over threads, so their share is the most that stores can have cost. A second run of each kind finds everything in its store.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/flow/store"))
from servers import Postgres, Skipped


def run(program, words, store, folder, environment):
    command = [program, "optimize", *words, "--store", str(store), "--out", str(folder), "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def main():
    words = sys.argv[1:]
    program = SOURCE / "build/src/cli/loopegg"
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if words[:1] == ["--program"]:
        program, words = pathlib.Path(words[1]), words[2:]
    words = words or [str(SOURCE / "examples/resnet34-cifar10.json")]
    plain = {k: v for k, v in os.environ.items() if k not in ("LOOPEGG_STORE", "LOOPEGG_EVIDENCE")}
    with tempfile.TemporaryDirectory() as scratch:
        stores = [("SQLite", pathlib.Path(scratch) / "store.sqlite", plain)]
        try:
            server = Postgres(durable=True)
            stores.append(("PostgreSQL", server.fresh("cost"), {k: v for k, v in server.environment.items() if k in plain or k == "PGPASSFILE"}))
        except Skipped as why:
            print(f"PostgreSQL is left out: {why}", file=sys.stderr)
        print("| store | run | calls | s in stores | s of the run | share |\n|---|---|---|---|---|---|")
        for name, store, environment in stores:
            for which in ("first", "second"):
                r = run(program, words, store, pathlib.Path(scratch) / f"{name}-{which}", environment)
                cost, total = r["store"], r["seconds"]["total"]
                print(f"| {name} | {which} | {cost['calls']:,} | {cost['seconds']:.3f} | {total:.1f} | {100 * cost['seconds'] / total:.2f}% |", flush=True)


if __name__ == "__main__":
    main()
