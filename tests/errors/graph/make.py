"""Writes broken models into a folder: make.py FOLDER. What reading each of them says is in messages.txt.

Each case is one file; the few that need two (a model and its weights) share a stem. Plain Python: ONNX bytes are put together by hand here,
because no library writes broken ones.
"""
import json
import pathlib
import struct
import sys

OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)
GOOD = """{"loopegg": 1,
 "name": "small",
 "inputs": [{"name": "x", "shape": [1, 8, 6, 6]}],
 "nodes": [
  {"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 8, "kernel": [3, 3], "padding": [1, 1], "bias": false}},
  {"name": "bn", "op": "batch_norm", "inputs": ["conv"]},
  {"name": "sum", "op": "add", "inputs": ["bn", "x"]},
  {"name": "pool", "op": "global_avg_pool", "inputs": ["sum"]},
  {"name": "flat", "op": "flatten", "inputs": ["pool"]},
  {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"out_features": 10}}],
 "outputs": ["fc"]}
"""


def write(name, content):
    (OUT / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def edited(name, old, new, text=GOOD):
    assert old in text, name
    write(name, text.replace(old, new, 1))


# Syntax
write("empty.json", "")
write("blank.json", " \n\n")
write("truncated.json", GOOD[:300])
write("not-json.json", "this is a network")
edited("trailing-comma.json", '"inputs": ["conv"]},', '"inputs": ["conv"],},')
edited("missing-comma.json", '"op": "batch_norm",', '"op": "batch_norm"')
edited("missing-colon.json", '"op": "batch_norm"', '"op" "batch_norm"')
edited("bare-key.json", '"outputs"', 'outputs')
edited("single-quotes.json", '"bn", "op"', "'bn', \"op\"")
edited("comment.json", ' "outputs"', ' // the end\n "outputs"')
edited("open-string.json", '"small",', '"small,')
edited("bad-escape.json", '"small"', '"sm\\all"')
edited("lone-surrogate.json", '"small"', '"\\ud83e"')
edited("control-character.json", '"small"', '"sm\x01all"')
edited("leading-zero.json", '"out_features": 10', '"out_features": 010')
edited("not-a-number.json", '"out_features": 10', '"out_features": NaN')
edited("misspelt-false.json", "false", "flase")
edited("key-twice.json", '"op": "add",', '"op": "add", "op": "mul",')
write("deep-arrays.json", "[" * 5000)
write("deep-objects.json", '{"a":' * 5000)
write("two-values.json", GOOD + "{}")
write("bad-utf8.json", GOOD.encode().replace(b"small", b"sm\xffll"))
write("overlong-utf8.json", GOOD.encode().replace(b"small", b"sm\xc0\xafll"))
write("null-byte.json", GOOD.encode().replace(b'"bn"', b'"b\0"', 1))
write("binary.json", bytes(range(256)))

# The model as a whole
write("array.json", "[]")
edited("no-version.json", '"loopegg": 1,\n ', "")
edited("future-version.json", '"loopegg": 1', '"loopegg": 2')
edited("misspelt-key.json", '"nodes"', '"node"')
edited("extra-key.json", ' "outputs"', ' "layers": [],\n "outputs"')
edited("nodes-object.json", '"nodes": [', '"nodes": {"all": [', GOOD.replace("}}],", "}}]},"))
edited("name-number.json", '"small"', "5")
edited("no-outputs.json", '["fc"]', "[]")
edited("unknown-output.json", '["fc"]', '["fcc"]')
edited("no-inputs.json", '[{"name": "x", "shape": [1, 8, 6, 6]}]', "[]")
edited("input-twice.json", '[{"name": "x", "shape": [1, 8, 6, 6]}]', '[{"name": "x", "shape": [1, 8, 6, 6]}, {"name": "x", "shape": [1]}]')
edited("input-dtype.json", '[1, 8, 6, 6]}', '[1, 8, 6, 6], "dtype": "float16"}')
edited("input-zero.json", "[1, 8, 6, 6]", "[1, 8, 0, 6]")
edited("input-negative.json", "[1, 8, 6, 6]", "[-1, 8, 6, 6]")
edited("input-fraction.json", "[1, 8, 6, 6]", "[1, 8, 6.5, 6]")
edited("input-text.json", "[1, 8, 6, 6]", '[1, "8", 6, 6]')
edited("input-overflow.json", "[1, 8, 6, 6]", "[4611686018427387904, 8, 6, 6]")
edited("input-beyond-64-bits.json", "[1, 8, 6, 6]", "[1, 8, 99999999999999999999999, 6]")
edited("input-nine-dimensions.json", "[1, 8, 6, 6]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]")
edited("inputs-text.json", '[{"name": "x", "shape": [1, 8, 6, 6]}]', '"x"')
edited("weights-elsewhere.json", ' "outputs"', ' "weights": "../../secret.safetensors",\n "outputs"')
edited("weights-missing.json", ' "outputs"', ' "weights": "no-such.safetensors",\n "outputs"')
edited("weights-directory.json", ' "outputs"', ' "weights": "folder",\n "outputs"')

# Nodes
edited("unknown-operator.json", "conv2d", "convv2d")
edited("far-operator.json", "conv2d", "attention")
edited("no-operator.json", '"op": "add", ', "")
edited("no-node-inputs.json", ', "inputs": ["pool"]', "")
edited("node-extra-key.json", '"inputs": ["pool"]', '"inputs": ["pool"], "attr": {}')
edited("name-twice.json", '"name": "flat"', '"name": "pool"')
edited("name-of-input.json", '"name": "flat"', '"name": "x"')
edited("name-empty.json", '"name": "flat"', '"name": ""')
edited("unknown-input.json", '["sum"]', '["sun"]')
edited("too-many-inputs.json", '["sum"]', '["sum", "bn"]')
edited("too-few-inputs.json", '["bn", "x"]', '["bn"]')
edited("cycle-of-one.json", '["conv"]', '["bn"]')
edited("cycle-of-two.json", '["conv"]', '["sum"]')
edited("cycle-of-four.json", '["x"], "attrs"', '["flat"], "attrs"')
edited("unknown-attribute.json", '"padding"', '"paddings"')
edited("attribute-text.json", '"out_channels": 8', '"out_channels": "8"')
edited("attribute-fraction.json", '"out_channels": 8', '"out_channels": 8.5')
edited("attribute-null.json", '"out_channels": 8', '"out_channels": null')
edited("attribute-object.json", '"out_channels": 8', '"out_channels": {}')
edited("attribute-beyond-64-bits.json", '"out_channels": 8', '"out_channels": 123456789012345678901234567890')
edited("attributes-array.json", '{"out_features": 10}', '[10]')
edited("bias-number.json", '"bias": false', '"bias": 0')
edited("kernel-length.json", '"kernel": [3, 3]', '"kernel": [3, 3, 3]')
edited("stride-zero.json", '"kernel": [3, 3]', '"kernel": [3, 3], "stride": [0, 1]')
edited("padding-negative.json", '"padding": [1, 1]', '"padding": [-1, 1]')
edited("groups-inputs.json", '"bias": false', '"bias": false, "groups": 3')
edited("groups-outputs.json", '"out_channels": 8', '"groups": 4, "out_channels": 6')
edited("kernel-too-large.json", '"kernel": [3, 3]', '"kernel": [9, 3]')
edited("no-out-channels.json", '"out_channels": 8, ', "")
edited("out-channels-zero.json", '"out_channels": 8', '"out_channels": 0')
edited("out-channels-huge.json", '"out_channels": 8', '"out_channels": 2147483648', GOOD.replace("6, 6]", "600, 600]"))
edited("weight-huge.json", '"out_features": 10', '"out_features": 2147483647', GOOD.replace("[1, 8, 6, 6]", "[1, 1048576, 6, 6]").replace('"out_channels": 8', '"out_channels": 1048576, "groups": 1048576'))
edited("padding-huge.json", '"padding": [1, 1]', '"padding": [9999999999, 1]')
edited("conv-of-matrix.json", "[1, 8, 6, 6]", "[8, 6]")
edited("add-shapes.json", '"out_channels": 8', '"out_channels": 4')
edited("norm-of-vector.json", '["conv"]', '["v"]', GOOD.replace('6]}],', '6]}, {"name": "v", "shape": [5]}],'))


def one(name, shapes, node):
    inputs = [{"name": f"x{i}", "shape": s} for i, s in enumerate(shapes)]
    node = {"name": "y", "inputs": [i["name"] for i in inputs], **node}
    write(name, json.dumps({"loopegg": 1, "name": "one", "inputs": inputs, "nodes": [node], "outputs": ["y"]}, indent=1))


one("matmul-inner.json", [[2, 3, 4], [2, 5, 6]], {"op": "matmul"})
one("matmul-batch.json", [[2, 3, 4], [3, 4, 6]], {"op": "matmul"})
one("matmul-rank.json", [[3, 4], [2, 4, 6]], {"op": "matmul"})
one("concat-shapes.json", [[1, 2, 3], [1, 2, 4]], {"op": "concat"})
one("concat-axis.json", [[1, 2]], {"op": "concat", "attrs": {"axis": 2}})
one("reshape-count.json", [[2, 3]], {"op": "reshape", "attrs": {"shape": [4, 2]}})
one("reshape-two-open.json", [[2, 3]], {"op": "reshape", "attrs": {"shape": [-1, -1]}})
one("reshape-keep-nothing.json", [[6]], {"op": "reshape", "attrs": {"shape": [6, 0]}})
one("reshape-overflow.json", [[6]], {"op": "reshape", "attrs": {"shape": [2147483647] * 4}})
one("transpose-order.json", [[2, 3]], {"op": "transpose", "attrs": {"order": [0, 0]}})
one("softmax-axis.json", [[2, 3]], {"op": "softmax", "attrs": {"axis": -3}})
one("flatten-axis.json", [[2, 3]], {"op": "flatten", "attrs": {"axis": 5}})
one("flatten-of-vector.json", [[6]], {"op": "flatten"})
one("pool-padding.json", [[1, 1, 8, 8]], {"op": "max_pool", "attrs": {"kernel": 2, "padding": 2}})
one("mul-shapes.json", [[2, 3], [4]], {"op": "mul"})

# Domains
CONV = {"op": "conv2d", "attrs": {"out_channels": 8, "kernel": 3, "padding": 1}}


def domain(name, parts, restore=None, node=CONV):
    one(name, [[1, 8, 6, 6]], {**node, "domain": {"parts": parts, **({"restore": restore} if restore else {})}})


domain("domain-syntax.json", [["co = ci"]])
domain("domain-axis.json", [["cx%4 == ci%4"]])
domain("domain-radix.json", [["co%4 == ci%2"]])
domain("domain-stride.json", [["co/99%2 == ci%2"]])
domain("domain-zero-radix.json", [["co%0 == ci%0"]])
domain("domain-range.json", [["5 <= co%4 < 6"]], "repeat")
domain("domain-huge-axis.json", [["0 <= co%2 < 1"]], "repeat", {"op": "conv2d", "attrs": {"out_channels": (1 << 20) + 2, "kernel": 3, "padding": 1}})
domain("domain-empty-part.json", [["0 <= ci%2 < 1", "1 <= ci%2 < 2"]])
domain("domain-overlap.json", [["0 <= ci%8 < 5"], ["4 <= ci%8 < 8"]])
domain("domain-no-restore.json", [["0 <= co%8 < 4"]])
domain("domain-restore.json", [["0 <= co%8 < 4"]], "pointwise")
domain("domain-of-relu.json", [["0 <= co%8 < 4"]], "zero", {"op": "relu"})
domain("domain-nothing-to-restore.json", [], "zero")

# Weights: a model of one linear node and the file it names
LINEAR = {"loopegg": 1, "name": "one", "inputs": [{"name": "x", "shape": [1, 2]}],
          "nodes": [{"name": "fc", "op": "linear", "inputs": ["x"], "attrs": {"out_features": 3}}], "outputs": ["fc"]}
TENSORS = {"fc.weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}, "fc.bias": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]}}


def weights(stem, header, data=bytes(36), length=None):
    write(f"{stem}.json", json.dumps({**LINEAR, "weights": f"{stem}.safetensors"}))
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    write(f"{stem}.safetensors", struct.pack("<Q", len(text) if length is None else length) + text + data)


def changed(**entries):
    return {**TENSORS, "fc.bias": {**TENSORS["fc.bias"], **entries}}


weights("tensors-truncated", TENSORS, bytes(20))
weights("tensors-trailing", TENSORS, bytes(40))
weights("tensors-header-long", TENSORS, length=1 << 62)
weights("tensors-header-cut", TENSORS, b"", length=500)
weights("tensors-not-json", b"{broken}")
weights("tensors-deep", b'{"a":' * 1000)
weights("tensors-array", b"[1]")
weights("tensors-beyond", changed(data_offsets=[24, 9000]))
weights("tensors-backwards", changed(data_offsets=[36, 24]))
weights("tensors-negative-offset", changed(data_offsets=[-12, 0]))
weights("tensors-overlap", changed(data_offsets=[12, 24]))
weights("tensors-gap", changed(data_offsets=[28, 40]), bytes(40))
weights("tensors-size", changed(shape=[4]))
weights("tensors-negative", changed(shape=[-3]))
weights("tensors-overflow", changed(shape=[1 << 40, 1 << 40]))
weights("tensors-dtype", changed(dtype="F31"))
weights("tensors-one-offset", changed(data_offsets=[24]))
weights("tensors-missing", {"fc.weight": TENSORS["fc.weight"], "fc.bais": TENSORS["fc.bias"]})
weights("tensors-shape", {**TENSORS, "fc.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}})
write("tensors-tiny.json", json.dumps({**LINEAR, "weights": "tensors-tiny.safetensors"}))
write("tensors-tiny.safetensors", b"abc")


# ONNX, field by field
def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*pairs):
    return b"".join(field(n, v) for n, v in pairs)


def value_info(name, shape, kind=1):
    dims = b"".join(field(1, message((2, d) if isinstance(d, str) else (1, d))) for d in shape)
    return message((1, name), (2, message((1, message((1, kind), (2, dims))))))


def ints(name, values):
    return message((1, name), *((8, v) for v in values), (20, 7))


def node(op, inputs, outputs, *attributes, domain=""):
    return message(*((1, i) for i in inputs), *((2, o) for o in outputs), (3, f"the_{op}"), (4, op), *((5, a) for a in attributes), (7, domain))


def tensor(name, dims, raw, kind=1):
    return message(*((1, d) for d in dims), (2, kind), (8, name), (9, raw))


def onnx(nodes, inputs=None, tensors=(), opset=17, output="y"):
    graph = message(*((1, n) for n in nodes), (2, "g"), *((5, t) for t in tensors), *((11, i) for i in (inputs or [value_info("x", [1, 4, 5, 5])])), (12, value_info(output, [1])))
    return message((1, 8), (7, graph), (8, message((2, opset))))


CONV_WEIGHT = tensor("w", [4, 4, 3, 3], bytes(4 * 144))
write("empty.onnx", b"")
(OUT / "directory.onnx").mkdir(exist_ok=True)
(OUT / "folder").mkdir(exist_ok=True)
write("text.onnx", "this is a network")
write("no-graph.onnx", message((1, 8)))
write("truncated.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[CONV_WEIGHT])[:400])
write("length.onnx", b"\x3a\xff\xff\xff\xff\x0f")
nested = b""
for _ in range(300):
    nested = message((5, message((1, "g"), (6, message((1, nested))))))
write("nested.onnx", message((1, 8), (7, message((1, nested)))))
write("unknown-operator.onnx", onnx([node("Bernoulli", ["x"], ["y"])]))
write("own-domain.onnx", onnx([node("Fancy", ["x"], ["y"], domain="com.example")]))
write("unknown-value.onnx", onnx([node("Relu", ["z"], ["y"])]))
write("cycle.onnx", onnx([node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["x", "b"], ["y"])]))
write("no-output-made.onnx", onnx([node("Relu", ["x"], ["z"])]))
write("no-node-inputs.onnx", onnx([node("Conv", [], ["y"])]))
write("no-node-outputs.onnx", onnx([node("Relu", ["x"], [])]))
write("tensor-size.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[tensor("w", [4, 4, 3, 3], bytes(100))]))
write("tensor-negative.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[tensor("w", [4, -4, 3, 3], bytes(100))]))
write("tensor-overflow.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[tensor("w", [1 << 40, 1 << 40], bytes(100))]))
write("external-data.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[message((1, 4), (2, 1), (8, "w"), (13, message((1, "location"), (2, "/etc/passwd"))), (14, 1))]))
write("weight-of-text.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[message((1, 4), (2, 8), (8, "w"), (6, "a"))]))
write("conv-1d.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[tensor("w", [4, 4, 3], bytes(192))]))
write("conv-channels.onnx", onnx([node("Conv", ["x", "w"], ["y"])], tensors=[tensor("w", [4, 5, 3, 3], bytes(720))]))
write("strides-negative.onnx", onnx([node("Conv", ["x", "w"], ["y"], ints("strides", [-1, 1]))], tensors=[CONV_WEIGHT]))
write("open-dimension.onnx", onnx([node("Relu", ["x"], ["y"])], [value_info("x", ["batch", "length"])]))
write("no-shape.onnx", onnx([node("Relu", ["x"], ["y"])], [message((1, "x"))]))
write("old-opset.onnx", onnx([node("Relu", ["x"], ["y"])], opset=3))
write("add-shapes.onnx", onnx([node("Add", ["x", "w"], ["y"])], tensors=[tensor("w", [7], bytes(28))]))
write("reshape-count.onnx", onnx([node("Reshape", ["x", "s"], ["y"])], tensors=[tensor("s", [2], struct.pack("<qq", 7, 9), 7)]))
write("squeeze-axis.onnx", onnx([node("Squeeze", ["x", "s"], ["y"])], tensors=[tensor("s", [1], struct.pack("<q", 99), 7)]))

# Inputs of networks
write("text.npy", "1 2 3")
write("truncated.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(127) + b"\n" + bytes(10))
write("fortran.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }".ljust(127) + b"\n" + bytes(4))
write("complex.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }".ljust(127) + b"\n" + bytes(8))
write("shape-overflow.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }".ljust(127) + b"\n")
