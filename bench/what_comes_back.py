"""Tries `optimize` on other people's models: does it end well with a small budget, and is model.onnx a file to deploy in place of the original?

    python bench/what_comes_back.py MODELS OUT [--only NAME...] [--loopegg build/src/cli/loopegg] [--again] [--options --trials 2 --tune-seconds 20]

MODELS is the folder that 'bench/anyones_models.py export' wrote. For each model this script runs `loopegg optimize`. It compares the outputs of network.so and
of model.onnx in ONNX Runtime on x.npy (within 1e-4 of the largest value). It compares the processor times of model.onnx and of the original in ONNX Runtime,
with one thread each, in turns. A ratio is that of the fastest runs of one turn each. The table has the median of all turns and their quartiles. --again keeps
the runs that OUT holds, writes their networks as ONNX again, and times these. Ends with 1 when a run failed, an output differs, or a ratio is above --most (1.1).
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy

from interleaved import RUNS_PER_TURN, interleave

DEFAULT = [f"torchvision-{name}-dynamo-64" for name in "resnet18 mobilenet_v2 mobilenet_v3_small squeezenet1_0 shufflenet_v2_x1_0 mnasnet1_0 efficientnet_b0 googlenet".split()]
DEFAULT += [f"timm-{name}-dynamo" for name in """lcnet_050 regnetx_002 repvgg_a0 skresnet18 ghostnet_100 ese_vovnet19b_dw mixnet_s convnextv2_atto edgenext_xx_small pvt_v2_b0
    poolformer_s12 mobileone_s0 mobilevit_xxs resmlp_12_224 deit_tiny_patch16_224 densenet121""".split()]
MOVERS = "Concat Expand Gather GatherND Pad Reshape Resize Slice Split Tile Transpose Where".split()   # what only moves values


class Runtime:
    """A session of ONNX Runtime with one thread, because several threads would compete with other programs on a shared machine."""

    def __init__(self, path, x):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feed = {self.session.get_inputs()[0].name: numpy.load(x)}

    def run(self):
        return self.session.run(None, self.feed)


def ratios(before, after):
    """One ratio for each round, so that a change of the machine's speed meets both times."""
    runs = RUNS_PER_TURN - 1
    return sorted(min(after[i:i + runs]) / min(before[i:i + runs]) for i in range(0, len(before), runs))


def what_it_holds(path):
    """How many nodes of each operator a model has. The counts show where Gathers, Slices and Transposes of computed values come from."""
    import onnx
    return collections.Counter(node.op_type for node in onnx.load(path, load_external_data=False).graph.node)


def last_line(ran):
    return (ran.stderr.strip().splitlines() or ["no words"])[-1][:160]


def one(args, folder, out):
    original, x, written = folder / "model.onnx", folder / "x.npy", out / "model.onnx"
    answer = {}
    if args.again and (out / "result.json").exists():
        written = args.out / f"{folder.name}.onnx"
        ran = subprocess.run([args.loopegg, "export", out / "model.json", "-o", written], capture_output=True, text=True)
        if ran.returncode != 0:
            return {"why": f"export: {last_line(ran)}"}
    else:
        began = time.time()
        try:
            ran = subprocess.run([args.loopegg, "optimize", original, "--out", out, *args.options, "--quiet"], capture_output=True, text=True, timeout=args.limit)
        except subprocess.TimeoutExpired:
            return {"why": f"optimize: longer than {args.limit} s"}
        if ran.returncode != 0:
            return {"why": f"optimize ended with {ran.returncode}: {last_line(ran)}"}
        answer["seconds"] = time.time() - began
    result = json.loads((out / "result.json").read_text())
    answer["returned"], answer["speedup"] = result["returned"], result.get("speedup")
    y = args.out / f"{folder.name}.npy"
    ran = subprocess.run([args.loopegg, "run", out, "--input", x, "--output", y], capture_output=True, text=True)
    if ran.returncode != 0:
        return answer | {"why": "run: " + last_line(ran)}
    theirs = Runtime(written, x).run()[0]
    results = [y] if y.exists() else sorted(args.out.glob(f"{folder.name}.*.npy"))
    ours = next((v for v in map(numpy.load, results) if v.shape == theirs.shape), None)
    for file in results:
        file.unlink()
    if ours is None:
        return answer | {"why": "another shape"}
    answer["difference"] = float(numpy.abs(ours - theirs).max() / max(1e-6, numpy.abs(theirs).max()))
    before, after = interleave([(Runtime, (original, x)), (Runtime, (written, x))], args.rounds, time.process_time)
    held, holds = what_it_holds(original), what_it_holds(written)
    more = ", ".join(f"{holds[op] - held[op]:+} {op}" for op in sorted(holds) if op in MOVERS and holds[op] > held[op])
    return answer | {"before_ms": min(before), "after_ms": min(after), "ratios": ratios(before, after), "more": more}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=DEFAULT, help="names of folders of MODELS, in this order")
    parser.add_argument("--most", type=float, default=1.1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=int, default=900, help="seconds for one optimize")
    parser.add_argument("--again", action="store_true", help="keep the runs that OUT holds")
    parser.add_argument("--loopegg", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/src/cli/loopegg"))
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=["--trials", "2", "--tune-seconds", "20"], help="for optimize; the last word here")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    good = 0
    print("| model | returned | loopegg's own speed-up | model.onnx and network.so differ by | ONNX Runtime: original | model.onnx | ratio (quartiles) | what else it holds |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in [args.models / name for name in args.only]:
        a = one(args, folder, args.out / folder.name) if (folder / "done").exists() else {"why": "not exported"}
        if "why" in a:
            print(f"| {folder.name} | {a['why']} | | | | | | |", flush=True)
            continue
        low, ratio, high = statistics.quantiles(a["ratios"], n=4)
        good += a["difference"] < 1e-4 and ratio <= args.most
        print(f"| {folder.name} | {a['returned']} | {a['speedup'] or 0:.2f} | {a['difference']:.1e} | {a['before_ms']:.2f} ms | {a['after_ms']:.2f} ms | "
              f"{ratio:.2f} ({low:.2f} to {high:.2f}) | {a['more']} |", flush=True)
    print(f"{good} of {len(args.only)} ended well, agree, and take at most {args.most} of the original's time in ONNX Runtime ({args.rounds} turns of {RUNS_PER_TURN - 1} runs)")
    sys.exit(0 if good == len(args.only) else 1)


if __name__ == "__main__":
    main()
