"""What comes back of others' models: does `optimize` with a small budget end well, and is model.onnx a file to deploy in place of the original?

    python bench/what_comes_back.py MODELS OUT [--only NAME...] [--loopegg ./loopegg] [--options --budget 6 --trials 2 --tune-seconds 20] [--again]

MODELS is what 'bench/anyones_models.py export' wrote. For each model: `loopegg optimize`; the outputs of network.so and of model.onnx in ONNX Runtime on
x.npy, compared (1e-4 of the largest value); the time of model.onnx in ONNX Runtime beside the original's there, in turns. --again times what stands in
OUT already. Ends with 1 when a run failed, an output differs, or a ratio is above --most (1.1). Times mean something on a calm machine alone.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy

from turns import in_turns

DEFAULT = """torchvision-resnet18 torchvision-mobilenet_v2 torchvision-mobilenet_v3_small torchvision-efficientnet_b0 torchvision-densenet121 torchvision-squeezenet1_0
    torchvision-shufflenet_v2_x1_0 torchvision-regnet_y_400mf torchvision-mnasnet1_0 torchvision-googlenet timm-convnextv2_atto timm-deit_tiny_patch16_224
    timm-edgenext_xx_small timm-efficientnet_lite0 timm-ese_vovnet19b_dw timm-fbnetc_100 timm-ghostnet_100 timm-lcnet_050 timm-mixnet_s timm-mobileone_s0
    timm-mobilevit_xxs timm-poolformer_s12 timm-pvt_v2_b0 timm-regnetx_002 timm-repvgg_a0 timm-resmlp_12_224 timm-skresnet18""".split()


class Runtime:
    """A session of ONNX Runtime with one thread: its own threads would meet others' on a shared machine."""

    def __init__(self, path, x):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feed = {self.session.get_inputs()[0].name: numpy.load(x)}

    def run(self):
        return self.session.run(None, self.feed)


def fastest_tenth(times):
    times = sorted(times)
    return sum(times[:max(1, len(times) // 10)]) / max(1, len(times) // 10)


def last_line(ran):
    return (ran.stderr.strip().splitlines() or ["no words"])[-1][:160]


def one(args, folder, out):
    original, x = folder / "model.onnx", folder / "x.npy"
    answer = {}
    if not args.again or not (out / "result.json").exists():
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
    ran = subprocess.run([args.loopegg, "run", out, "--input", x, "--output", out / "y.npy"], capture_output=True, text=True)
    if ran.returncode != 0:
        return answer | {"why": "run: " + last_line(ran)}
    theirs = Runtime(out / "model.onnx", x).run()[0]
    results = [out / "y.npy"] if (out / "y.npy").exists() else sorted(out.glob("y.*.npy"))
    ours = next((v for v in map(numpy.load, results) if v.shape == theirs.shape), None)
    for file in results:
        file.unlink()
    if ours is None:
        return answer | {"why": "another shape"}
    answer["difference"] = float(numpy.abs(ours - theirs).max() / max(1e-6, numpy.abs(theirs).max()))
    before, after = in_turns([(Runtime, (original, x)), (Runtime, (out / "model.onnx", x))], args.rounds)
    return answer | {"before_ms": fastest_tenth(before), "after_ms": fastest_tenth(after)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=DEFAULT, help="beginnings of names")
    parser.add_argument("--most", type=float, default=1.1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=int, default=900, help="seconds for one optimize")
    parser.add_argument("--again", action="store_true", help="keep the runs that OUT holds")
    parser.add_argument("--loopegg", default=str(pathlib.Path(__file__).resolve().parent.parent / "loopegg"))
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=["--budget", "6", "--trials", "2", "--tune-seconds", "20"], help="for optimize; the last word here")
    args = parser.parse_args()
    folders = [f for f in sorted(args.models.iterdir()) if (f / "done").exists() and any(f.name.startswith(name) for name in args.only)]
    good = 0
    print("| model | returned | loopegg's own speed-up | model.onnx and network.so differ by | ONNX Runtime: original | model.onnx | ratio |\n|---|---|---|---|---|---|---|")
    for folder in folders:
        a = one(args, folder, args.out / folder.name)
        if "why" in a:
            print(f"| {folder.name} | {a['why']} | | | | | |", flush=True)
            continue
        ratio = a["after_ms"] / a["before_ms"]
        good += a["difference"] < 1e-4 and ratio <= args.most
        print(f"| {folder.name} | {a['returned']} | {a['speedup'] or 0:.2f} | {a['difference']:.1e} | {a['before_ms']:.2f} ms | {a['after_ms']:.2f} ms | {ratio:.2f} |", flush=True)
    print(f"{good} of {len(folders)} ended well, agree, and take at most {args.most} of the original's time in ONNX Runtime")
    sys.exit(0 if good == len(folders) and folders else 1)


if __name__ == "__main__":
    main()
