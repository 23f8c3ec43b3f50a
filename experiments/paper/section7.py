#!/usr/bin/env python3
"""Section 7 of the ASPLOS 2021 paper: how long 1,000 configurations take, and how many of them Fisher Potential rejects.

    experiments/paper/section7.py LOOPEGG OUT [--networks N] [--seeds N] [--data FOLDER] [MODEL...]

Draws N configurations of each network by random sequences of rules/paper.rules, and asks the condition of that file about each. OUT gets every verdict with its
evidence (MODEL.jsonl), and table.md, the table that is printed.
"""
import argparse
import collections
import json
import pathlib
import resource
import statistics
import subprocess
import time

HEAD = ("| network | configurations | rejected | seconds | processor-seconds | passes | MACs kept, admitted | MACs kept, rejected | Fisher ratio, median |\n"
        "|---|---|---|---|---|---|---|---|---|")


def processor_seconds():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def mean_share(lines, whole, allowed):
    shares = [line["macs"] / whole for line in lines if line["allowed"] is allowed]
    return f"{statistics.mean(shares):.2f}" if shares else "none"


def count(options, model):
    name = model.removeprefix("zoo:")
    verdicts = options.out / f"{pathlib.Path(name).stem}.jsonl"
    command = [options.loopegg, "sample", model, "--rules", "paper", "--networks", str(options.networks), "--seeds", str(options.seeds), "--no-store", "--json", "--out", str(verdicts),
               *(("--data", options.data) if options.data else ())]
    began, used = time.monotonic(), processor_seconds()
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    seconds, used = time.monotonic() - began, processor_seconds() - used
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    rejected = sum(not line["allowed"] for line in lines)
    assert len(lines) == answer["networks"] == options.networks and rejected == answer["rejected"], "every verdict is kept and counted"
    values = [row["value"] for line in lines for row in line["evidence"]["measures"] if "value" in row]
    whole = json.loads(subprocess.run([options.loopegg, "show", model, "--json"], check=True, stdout=subprocess.PIPE).stdout)["macs"]
    print(f"{name}: rules that were drawn most:",
          ", ".join(f"{rule} {n}" for rule, n in collections.Counter(r for line in lines for s in line["sites"].values() for r in s["rules"]).most_common(6)))
    return (f"| {name} | {len(lines):,} | {rejected:,} ({100 * rejected / len(lines):.1f}%) | {seconds:.0f} | {used:.0f} | {answer['passes']:,} | "
            f"{mean_share(lines, whole, True)} | {mean_share(lines, whole, False)} | {statistics.median(values):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loopegg"), parser.add_argument("out", type=pathlib.Path), parser.add_argument("models", nargs="*")
    parser.add_argument("--networks", type=int, default=1000), parser.add_argument("--data", default="")
    parser.add_argument("--seeds", type=int, default=1, help="draws of weights and images at most; the paper scores one minibatch")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [count(options, model) for model in options.models or ("zoo:resnet34-cifar10", "zoo:resnext29_2x64d")]
    table = "\n".join([HEAD, *rows]) + "\n"
    (options.out / "table.md").write_text(table)
    print(table, end="")


if __name__ == "__main__":
    main()
