"""ONNX's own tests of single operators: whatever loopegg reads, it must compute right.

    python bench/onnx_node_tests.py [--loopegg build/src/cli/loopegg] [--only NAME] [--refused]

Takes the tests of the onnx package whose inputs are float32, int64, int32 or bool tensors. Ends with 1 when a result was wrong. Needs onnx and numpy.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx.backend.test.case.node import collect_testcases

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"float32", "int64", "int32", "bool"}


def run(loopegg, case, scratch):
    model = case.model
    if any(not v.type.HasField("tensor_type") for v in list(model.graph.input) + list(model.graph.output)):
        return "other", "inputs or outputs that are no tensors"
    inputs, wanted = ([x if isinstance(x, (numpy.ndarray, numpy.generic)) else None for x in part] for part in case.data_sets[0])
    if any(x is None or str(x.dtype) not in KINDS for x in inputs) or any(x is None for x in wanted) or len(inputs) != len(model.graph.input):
        return "other", "inputs of other types"
    onnx.save(model, scratch / "model.onnx")
    words = [loopegg, "run", str(scratch / "model.onnx"), "--output", str(scratch / "y.npy")]
    for value, x in zip(model.graph.input, inputs):
        file = scratch / f"x{len(words)}.npy"
        numpy.save(file, numpy.ascontiguousarray(x).reshape(numpy.shape(x)))
        words += ["--input", str(file)]
        if any(not d.HasField("dim_value") for d in value.type.tensor_type.shape.dim) and x.ndim:
            words += ["--shape", f"{value.name}={'x'.join(map(str, x.shape))}"]
    for old in scratch.glob("y*.npy"):
        old.unlink()
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "wrong", "longer than a minute"
    if ran.returncode in (1, 2):
        return "refused", (ran.stderr.strip().splitlines() or ["no words"])[0]
    if ran.returncode != 0:
        return "wrong", f"ended with {ran.returncode}: {ran.stderr[-200:]}"
    names = [v.name for v in model.graph.output]
    for name, w in zip(names, wanted):
        file = scratch / ("y.npy" if len(names) == 1 else f"y.{name.replace('/', '_')}.npy")
        got, w = numpy.load(file), w.astype(numpy.float64)
        if got.shape != w.shape:
            return "wrong", f"the shape {got.shape}, not {w.shape}"
        if not numpy.allclose(got, w, rtol=1e-3, atol=1e-5, equal_nan=True):
            return "wrong", f"by {numpy.nanmax(numpy.abs(got - w)):.3g}"
    return "right", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopegg", default=str(ROOT / "build/src/cli/loopegg"))
    parser.add_argument("--only", default="")
    parser.add_argument("--refused", action="store_true", help="print what was refused, and why")
    args = parser.parse_args()
    counts, why = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for case in collect_testcases(None):
            if args.only not in case.name or not case.data_sets:
                continue
            word, reason = run(args.loopegg, case, pathlib.Path(scratch))
            counts[word] += 1
            if word == "wrong":
                print(f"WRONG {case.name}: {reason}", flush=True)
            if word == "refused":
                why[reason.split("': ")[-1][:90] if "not supported" not in reason else reason.split("': ", 1)[-1][:90]] += 1
                if args.refused:
                    print(f"refused {case.name}: {reason}", flush=True)
    for reason, count in why.most_common(25):
        print(f"{count:5} {reason}")
    print(dict(counts))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
