"""NaN and infinities through every operator that can meet them, as ONNX Runtime has them, by the interpreter and compiled; or refused by name.

tests/data/nonfinite/expected.json is what ONNX Runtime computes for the cases below; LOOPEGG_REGENERATE=1 writes it anew where LOOPEGG_PEERS (or .deps/peers)
has onnxruntime, and wherever that is, the page is compared with it again. The few cases that differ stand in DIFFERENT, with their reason.
"""
import itertools
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import Place, Skipped, run_cases

SOURCE = pathlib.Path(__file__).resolve().parents[3]
EXPECTED = SOURCE / "tests/data/nonfinite/expected.json"
PYTHON = pathlib.Path(os.environ.get("LOOPEGG_PEERS", SOURCE / ".deps/peers")) / "bin/python3"
NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 7.0, -7.0, 1e38, -1e38, 1e-40]


# ONNX files by hand: a field is a number and bytes or a whole number.
def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if value and isinstance(value[0], float):
        return field(1, name) + b"".join(field(7, v) for v in value) + field(20, 6)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def tensor(name, values, shape, whole=False):
    raw = struct.pack(f"<{len(values)}{'q' if whole else 'f'}", *values)
    return b"".join(field(1, d) for d in shape) + field(2, 7 if whole else 1) + field(8, name) + field(9, raw)


def value_info(name, shape=None, type=1):
    dims = field(2, b"".join(field(1, field(1, d)) for d in shape)) if shape is not None else b""
    return field(1, name) + field(2, field(1, field(1, type) + dims))


class Case:
    """One node over named inputs. `weights`: constants, as (values, shape) of floats or whole numbers; `as_float`: its result is no float and is made one;
    `unread`: results after the first."""

    def __init__(self, name, op, group, inputs, weights=(), as_float=False, unread=0, **attributes):
        self.name, self.op, self.group, self.inputs, self.weights, self.as_float, self.unread, self.attributes = name, op, group, inputs, weights, as_float, unread, attributes

    def parts(self):
        """Nodes and constants, as bytes, and the name of the result."""
        result, constants = f"{self.name}_out", []
        names = list(self.inputs)
        for i, (values, shape) in enumerate(self.weights):
            constants.append(tensor(f"{self.name}_w{i}", values, shape, bool(values) and all(isinstance(v, int) for v in values)))
            names.append(f"{self.name}_w{i}")
        outputs = [f"{self.name}_raw" if self.as_float else result] + [f"{self.name}_unread{i}" for i in range(self.unread)]
        nodes = [b"".join(field(1, n) for n in names) + b"".join(field(2, o) for o in outputs) + field(3, self.name) + field(4, self.op) + b"".join(field(5, attribute(k, v)) for k, v in self.attributes.items())]
        if self.as_float:
            nodes.append(field(1, f"{self.name}_raw") + field(2, result) + field(3, self.name + "_float") + field(4, "Cast") + field(5, attribute("to", 1)))
        return nodes, constants, result


def model(cases):
    group = GROUPS[cases[0].group]
    used = [n for n in group if any(n in c.inputs for c in cases)]
    nodes, constants, results = [], [], []
    for case in cases:
        n, c, result = case.parts()
        nodes, constants, results = nodes + n, constants + c, results + [result]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "nonfinite") + b"".join(field(5, c) for c in constants)
    graph += b"".join(field(11, value_info(n, group[n][1])) for n in used) + b"".join(field(12, value_info(r)) for r in results)
    return field(1, 8) + field(8, field(2, 20)) + field(7, graph), used, results


def all_pairs():
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    return [a for a, _ in pairs], [b for _, b in pairs]


def images():
    """One special value at each place of each 4x4 image, and images of one special value alone."""
    values = []
    for special in (NAN, INF, -INF):
        for place in range(16):
            values += [special if i == place else float(i + 1) - 8 for i in range(16)]
        values += [special] * 16
    return values, [len(values) // 16, 1, 4, 4]


X, Y = all_pairs()
ROWS = [row for row in itertools.product((NAN, INF, -INF, 1.0, -2.0), repeat=3)]
IMAGES, IMAGES_SHAPE = images()
GROUPS = {"elements": {"x": (X, [1, len(X)]), "y": (Y, [1, len(Y)])}, "rows": {"x": ([v for row in ROWS for v in row], [len(ROWS), 3])}, "images": {"x": (IMAGES, IMAGES_SHAPE)}}
ONE, ROW, IMAGE = ("x",), ("x",), ("x",)
CASES = [
    *(Case(op.lower(), op, "elements", ONE) for op in ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Sqrt", "Abs", "Neg", "Reciprocal", "Floor", "Ceil", "Softsign", "HardSwish", "Log", "Softplus", "Mish", "Round", "Sign",
                                                       "Sin", "Cos", "Tan", "Atan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Selu", "Identity")),
    Case("relu6", "Clip", "elements", ONE, [([0.0], []), ([6.0], [])]), Case("clip", "Clip", "elements", ONE, [([-2.0], []), ([1.5], [])]),
    Case("hard_sigmoid", "HardSigmoid", "elements", ONE, alpha=1 / 6, beta=0.5), Case("leaky_relu", "LeakyRelu", "elements", ONE, alpha=0.1), Case("elu", "Elu", "elements", ONE, alpha=1.5),
    Case("celu", "Celu", "elements", ONE, alpha=1.5), Case("thresholded_relu", "ThresholdedRelu", "elements", ONE, alpha=0.5), Case("gelu", "Gelu", "elements", ONE), Case("gelu_tanh", "Gelu", "elements", ONE, approximate="tanh"),
    Case("shrink", "Shrink", "elements", ONE, bias=0.5, lambd=1.0), Case("is_nan", "IsNaN", "elements", ONE, as_float=True), Case("is_inf", "IsInf", "elements", ONE, as_float=True),
    *(Case(op.lower(), op, "elements", ("x", "y")) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Pow", "Sum", "Mean")),
    *(Case(op.lower(), op, "elements", ("x", "y"), as_float=True) for op in ("Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual")),
    *(Case(f"{op.lower()}_1", op, "rows", ROW, axis=1) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    *(Case(op.lower(), op, "rows", ROW, [([1], [1])], keepdims=1) for op in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")),
    *(Case(op.lower(), op, "rows", ROW, as_float=True, axis=1, keepdims=1) for op in ("ArgMax", "ArgMin")), Case("topk", "TopK", "rows", ROW, [([2], [1])], unread=1, axis=1), Case("cumsum", "CumSum", "rows", ROW, [([1], [])]),
    Case("layer_norm", "LayerNormalization", "rows", ROW, [([1.0, 2.0, 0.5], [3]), ([0.0, 1.0, -1.0], [3])], axis=1), Case("matmul", "MatMul", "rows", ROW, [([1.0, 2.0, -1.0, 0.5, 3.0, 1.0], [3, 2])]),
    Case("gemm", "Gemm", "rows", ROW, [([1.0, 2.0, -1.0, 0.5, 3.0, 1.0], [3, 2]), ([1.0, -1.0], [2])]),
    Case("max_pool", "MaxPool", "images", IMAGE, kernel_shape=[2, 2], strides=[2, 2]), Case("max_pool_overlapping", "MaxPool", "images", IMAGE, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
    Case("average_pool", "AveragePool", "images", IMAGE, kernel_shape=[2, 2], strides=[2, 2]), Case("average_pool_padded", "AveragePool", "images", IMAGE, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1),
    Case("global_average_pool", "GlobalAveragePool", "images", IMAGE), Case("global_max_pool", "GlobalMaxPool", "images", IMAGE), Case("lp_pool", "LpPool", "images", IMAGE, kernel_shape=[2, 2], strides=[2, 2], p=2),
    Case("conv", "Conv", "images", IMAGE, [([0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 1.5, 1.0, -1.0], [1, 1, 3, 3])], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    Case("conv_strided", "Conv", "images", IMAGE, [([0.5, -1.0, 2.0, 1.0], [1, 1, 2, 2]), ([0.5], [1])], kernel_shape=[2, 2], strides=[2, 2]),
    Case("batch_norm", "BatchNormalization", "images", IMAGE, [([2.0], [1]), ([0.5], [1]), ([1.0], [1]), ([4.0], [1])]), Case("instance_norm", "InstanceNormalization", "images", IMAGE, [([2.0], [1]), ([0.5], [1])]),
    Case("lrn", "LRN", "images", IMAGE, size=1), Case("resize", "Resize", "images", IMAGE, [([], [0]), ([1.0, 1.0, 2.0, 2.0], [4])], mode="nearest"),
]


def windows(size, stride, pad):
    """The largest value of each window, or None where the window holds a NaN. Padding adds no value."""
    out = []
    for at in range(0, len(IMAGES), 16):
        image = IMAGES[at:at + 16]
        for i in range(-pad, 4 + pad - size + 1, stride):
            for j in range(-pad, 4 + pad - size + 1, stride):
                seen = [image[r * 4 + c] for r in range(i, i + size) for c in range(j, j + size) if 0 <= r < 4 and 0 <= c < 4]
                out.append(None if any(v != v for v in seen) else max(seen))
    return out


# ONNX Runtime's largest of several depends on where a NaN stands among them, and on the instructions of the machine; ours is PyTorch's (docs/reference/trust.md).
DIFFERENT = {"max_pool": windows(2, 2, 0), "max_pool_overlapping": windows(3, 1, 1), "global_max_pool": windows(4, 4, 0),
             "reducemax": [None if any(v != v for v in row) else max(row) for row in ROWS], "reducemin": [None if any(v != v for v in row) else min(row) for row in ROWS]}

PEER = """
import json, sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
answers = {}
for case in json.load(sys.stdin):
    try:
        session = onnxruntime.InferenceSession(bytes.fromhex(case["model"]), options, providers=["CPUExecutionProvider"])
        feed = {n: numpy.array(v, dtype=numpy.float32).reshape(s) for n, (v, s) in case["inputs"].items()}
        y = session.run([case["result"]], feed)[0]
        answers[case["name"]] = [None if v != v else float("%.8g" % v) for v in y.astype(numpy.float32).flatten().tolist()]
    except Exception as e:
        answers[case["name"]] = str(e)[:200]
print(json.dumps(answers))
"""


def by_onnx_runtime():
    asked = []
    for case in CASES:
        raw, used, results = model([case])
        asked.append({"name": case.name, "model": raw.hex(), "result": results[0], "inputs": {n: GROUPS[case.group][n] for n in used}})
    r = subprocess.run([PYTHON, "-c", PEER], input=json.dumps(asked), capture_output=True, text=True)
    assert r.returncode == 0, r.stderr[-2000:]
    return json.loads(r.stdout)


def has_peer():
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import onnxruntime"], capture_output=True).returncode == 0


def what_is_expected_is_what_onnx_runtime_computes():
    if not has_peer():
        raise Lacking("no onnxruntime in .deps/peers")
    answers = by_onnx_runtime()
    refused = {n: a for n, a in answers.items() if isinstance(a, str)}
    assert not refused, refused
    if os.environ.get("LOOPEGG_REGENERATE"):
        EXPECTED.write_text("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(a)}" for n, a in answers.items()) + "\n}\n")
    kept = json.loads(EXPECTED.read_text())
    assert kept.keys() == answers.keys(), set(kept) ^ set(answers)
    wrong = [n for n in kept if not all(alike(a, b) for a, b in zip(kept[n], answers[n], strict=True))]
    assert not wrong, wrong
    return f": {sum(map(len, kept.values()))} values of {len(kept)} cases"


def alike(got, wanted):
    if wanted is None or got is None:
        return (got is None or got != got) and (wanted is None or wanted != wanted)
    if math.isinf(wanted) or math.isinf(got):
        return got == wanted
    return abs(got - wanted) <= 2e-5 * max(1e-6, abs(wanted)) + 1e-6


def write_npy(file, values, shape):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    pathlib.Path(file).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}f", *values))


def read_npy(file):
    raw = pathlib.Path(file).read_bytes()
    length = struct.unpack("<H", raw[8:10])[0]
    return struct.unpack(f"<{(len(raw) - 10 - length) // 4}f", raw[10 + length:])


P = Place()


def run_cases_of(cases, name, how):
    """What one network of all these cases computes: {case: values}."""
    raw, used, results = model(cases)
    file = P.write(f"{name}.onnx", raw)
    words = []
    for n in used:
        write_npy(P.path / f"{name}.{n}.npy", *GROUPS[cases[0].group][n])
        words += ["--input", f"{n}={name}.{n}.npy"]
    if how == "compiled":
        P.done("compile", file, "--out", name)
        file = name
    P.done("run", file, *words, "--output", f"{name}.y.npy")
    alone = len(results) == 1
    return {c.name: read_npy(P.path / (f"{name}.y.npy" if alone else f"{name}.y.{r}.npy")) for c, r in zip(cases, results, strict=True)}


def read_and_refused():
    """The cases that can be read; the others are refused by the name of their operator."""
    good, refused = [], []
    for case in CASES:
        r = P.run("import", P.write("one.onnx", model([case])[0]), "-o", "one.json")
        if r.returncode == 0:
            good.append(case)
            continue
        assert r.returncode == 1 and case.op in r.stderr, (case.name, r.returncode, r.stderr[-400:])
        refused.append(case.name)
    return good, refused


def compare(how):
    expected = json.loads(EXPECTED.read_text())
    good, refused = read_and_refused()
    wrong, values = [], 0
    for group in GROUPS:
        cases = [c for c in good if c.group == group]
        for name, got in run_cases_of(cases, f"{group}-{how}", how).items():
            wanted = DIFFERENT.get(name, expected[name])
            values += len(wanted)
            inputs = [GROUPS[group][n][0] for n in next(c for c in cases if c.name == name).inputs]
            bad = [(i, g, w) for i, (g, w) in enumerate(zip(got, wanted, strict=True)) if not alike(g, w)]
            if bad:
                where = [(tuple(v[i] for v in inputs) if len(got) == len(inputs[0]) else i, g, w) for i, g, w in bad[:6]]
                wrong.append(f"{name}: {len(bad)} of {len(got)} (input, ours, ONNX Runtime's): {where}")
    assert not wrong, "\n" + "\n".join(wrong)
    return f": {values} values of {len(good)} operators" + (f"; refused by name: {', '.join(refused)}" if refused else "")


def the_interpreter_has_what_is_no_number_as_onnx_runtime_has_it():
    return compare("interpreted")


def compiled_networks_have_what_is_no_number_as_onnx_runtime_has_it():
    return compare("compiled")


run_cases([what_is_expected_is_what_onnx_runtime_computes, the_interpreter_has_what_is_no_number_as_onnx_runtime_has_it, compiled_networks_have_what_is_no_number_as_onnx_runtime_has_it])
