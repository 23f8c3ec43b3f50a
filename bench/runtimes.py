"""Other CPU runtimes, each behind one form: made of an ONNX file, run with ones as input, in float32 unless its name says otherwise.

OpenVINO and ncnn use float16 or bfloat16 by themselves where the processor has it. Both are configured not to, and MNN for high precision.
The constructor of a runtime that cannot read a model raises an exception.
"""
import os
import subprocess
import tempfile


def ones(shape):
    import numpy
    return numpy.ones(shape, numpy.float32)


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, file, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.feed = {i.name: ones(i.shape) for i in self.session.get_inputs()}

    def run(self):
        return self.session.run(None, self.feed)[0]

    @staticmethod
    def version():
        import onnxruntime
        return onnxruntime.__version__


class OpenVino:
    name = "OpenVINO"
    precision = {"INFERENCE_PRECISION_HINT": "f32"}

    def __init__(self, file, threads):
        import openvino
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, **self.precision}
        model = openvino.Core().compile_model(file, "CPU", settings)
        self.request = model.create_infer_request()
        self.feed = [ones([int(d) for d in i.shape]) for i in model.inputs]

    def run(self):
        return list(self.request.infer(self.feed, share_inputs=True, share_outputs=True).values())[0]

    @staticmethod
    def version():
        import openvino
        return openvino.__version__.split("-")[0]


class OpenVinoAsInstalled(OpenVino):
    """In the precision that it chooses: bfloat16 or float16 where the processor has instructions for it."""
    name = "OpenVINO as installed"
    precision = {}


class Mnn:
    name = "MNN"

    def __init__(self, file, threads):
        import MNN
        import onnx
        self.scratch = tempfile.TemporaryDirectory()
        made = os.path.join(self.scratch.name, "model.mnn")
        convert = os.path.join(os.path.dirname(os.sys.executable), "mnnconvert")
        subprocess.run([convert, "-f", "ONNX", "--modelFile", file, "--MNNModel", made, "--bizCode", "bench"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        graph = onnx.load(file).graph
        names = [i.name for i in graph.input if i.name not in {w.name for w in graph.initializer}]
        shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input}
        runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "numThread": threads, "precision": "high"},))
        self.net = MNN.nn.load_module_from_file(made, names, [o.name for o in graph.output], runtime_manager=runtime)
        self.inputs = []
        for name in names:
            value = MNN.expr.placeholder(shapes[name], MNN.expr.NCHW)
            value.write(ones(shapes[name]))
            self.inputs.append(value)

    def run(self):
        return self.net.forward(self.inputs)[0].read()

    @staticmethod
    def version():
        import MNN
        return MNN.version()


class Ncnn:
    name = "ncnn"

    def __init__(self, file, threads):
        import ncnn
        import onnx
        import pnnx
        self.scratch = tempfile.TemporaryDirectory()
        here = os.path.join(self.scratch.name, "model.onnx")
        model = onnx.load(file)
        onnx.save(model, here)
        graph = model.graph
        weights = {w.name for w in graph.initializer}
        shapes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input if i.name not in weights]
        words = "inputshape=" + ",".join("[" + ",".join(map(str, s)) + "]f32" for s in shapes)
        subprocess.run([pnnx.EXEC_PATH, here, words, "fp16=0"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.scratch.name)
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = threads
        for word in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage", "use_int8_inference", "use_vulkan_compute"):
            setattr(options, word, False)
        stem = here[:-len(".onnx")].replace(".", "_")
        stem = stem if os.path.exists(stem + ".ncnn.param") else here[:-len(".onnx")]
        if self.net.load_param(stem + ".ncnn.param") or self.net.load_model(stem + ".ncnn.bin"):
            raise RuntimeError("ncnn cannot load what pnnx made")
        self.feed = [(f"in{i}", ncnn.Mat(ones(s[1:]))) for i, s in enumerate(shapes)]   # a batch of one is not said

    def run(self):
        with self.net.create_extractor() as one:
            for name, value in self.feed:
                one.input(name, value)
            code, out = one.extract("out0")
            if code:
                raise RuntimeError(f"ncnn could not run it: {code}")
            return out

    @staticmethod
    def version():
        import ncnn
        return ncnn.__version__


class PyTorch:
    """The module that `loopegg export` writes, traced and frozen, so that convolutions have their batch norms folded in. The module is next to the ONNX file."""
    name = "PyTorch"

    def __init__(self, module, threads):
        import importlib.util
        import onnx
        import torch
        torch.set_num_threads(threads)
        spec = importlib.util.spec_from_file_location("exported", module)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        graph = onnx.load(os.path.splitext(module)[0] + ".onnx").graph
        weights = {w.name for w in graph.initializer}
        self.feed = [torch.ones([d.dim_value for d in i.type.tensor_type.shape.dim]) for i in graph.input if i.name not in weights]
        with torch.inference_mode():
            self.net = torch.jit.optimize_for_inference(torch.jit.trace(made.Network().eval(), tuple(self.feed)))

    def run(self):
        import torch
        with torch.inference_mode():
            return self.net(*self.feed)

    @staticmethod
    def version():
        import torch
        return torch.__version__


RUNTIMES = [OnnxRuntime, OpenVino, Mnn, Ncnn]
