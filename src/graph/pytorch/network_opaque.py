# Nodes that PyTorch has no one word for: ONNX operators, run by ONNX's own reference (pip install onnx). No gradient passes through them.


def run_onnx(text, output, inputs):
    import numpy
    import onnx
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
    node = json.loads(text)
    number = lambda v: float(v) if isinstance(v, str) else v

    def tensor(about, name=""):
        kind = helper.tensor_dtype_to_np_dtype(about["type"])
        return numpy_helper.from_array(numpy.array([number(v) for v in about["values"]], dtype=kind).reshape(about["dims"]), name)

    attributes = {}
    for name, value in node["attrs"].items():
        if isinstance(value, dict):
            (kind, held), = value.items()
            value = tensor(held) if kind == "tensor" else number(held) if kind == "float" else [v if kind == "texts" else number(v) for v in held]
        attributes[name] = value
    names, given, constants = [], {}, []
    for i, about in enumerate(node["inputs"]):
        names.append("" if about is None else f"x{i}")
        if about is None:
            continue
        if "from" in about:
            given[f"x{i}"] = inputs[about["from"]].detach().cpu().numpy().astype(helper.tensor_dtype_to_np_dtype(about["type"]))
        else:
            constants.append(tensor(about, f"x{i}"))
    results = [f"y{i}" for i in range(node["outputs"])]
    made = helper.make_node(node["op"], names, results, **attributes)
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given.items()]
    graph = helper.make_graph([made], "node", kinds, [helper.make_value_info(results[output], onnx.TypeProto())], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node["opset"])])
    return torch.from_numpy(numpy.ascontiguousarray(ReferenceEvaluator(model).run([results[output]], given)[0], dtype=numpy.float32)).to(inputs[0].device)


