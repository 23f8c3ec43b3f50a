#!/usr/bin/env python3
"""Does what fisher-band keeps of a network multiply? Scores each step of a plan by itself, and the plan as a whole.

    python3 compose.py LOOPEGG NAME... [--data CIFAR_FOLDER] [--seeds 4] [--batch 16]

NAME is one of variants.py (mix-mild-1, say). Printed: what the gentlest and the harshest step keeps alone, the product of all, and the whole.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile

import variants as V


def kept(options, plans):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.loopegg, "score", "zoo:resnet34-cifar10", "--json", "--no-store", "--measure", "fisher", "--when", "(fisher-band >= 0.52)", "--seeds", str(options.seeds), "--batch", str(options.batch)]
        if options.data:
            command += ["--data", options.data]
        for i, plan in enumerate(plans):
            path = os.path.join(folder, f"{i}.json")
            json.dump(plan, open(path, "w"))
            command += ["--plan", path]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return [v["guards"]["fisher-band"]["measures"][0]["value"] for v in answer["variants"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loopegg"), parser.add_argument("names", nargs="+")
    parser.add_argument("--data", default=""), parser.add_argument("--seeds", type=int, default=4), parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    plans = {name: plan for name, plan, _ in V.variants()}
    print("| network | steps | harshest step | gentlest step | product | whole | log of whole / log of product |\n|---|---|---|---|---|---|---|")
    for name in options.names:
        steps = plans[name]["steps"]
        whole, *single = kept(options, [plans[name]] + [{"steps": [s]} for s in steps])
        product = math.prod(single)
        print(f"| {name} | {len(steps)} | {min(single):.3f} | {max(single):.3f} | {product:.3f} | {whole:.3f} | {math.log(whole) / math.log(product):.2f} |", flush=True)


if __name__ == "__main__":
    main()
