"""Writes exported.safetensors: small ONNX files of PyTorch's two exporters (NAME.onnx, as bytes), an input of each (NAME.x) and PyTorch's output (NAME.y).

    python make.py            the committed file (torch, onnx, onnxscript and safetensors installed)
    python make.py --zoo DIR  torchvision's real networks, too large to keep; LOOPEGG_TORCHVISION=DIR then tests them
"""
import argparse
import math
import pathlib
import tempfile

import numpy
import onnx
import torch
from safetensors.numpy import save_file
from torch import nn
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent


class BasicBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.downsample = nn.Sequential(nn.Conv2d(3, 8, 1, 2, bias=False), nn.BatchNorm2d(8))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        y = F.relu(y + self.downsample(x))
        return self.fc(torch.flatten(self.pool(y), 1))


class Inverted(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 16, 1), nn.BatchNorm2d(16), nn.ReLU6(), nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16),
                                  nn.ReLU6(), nn.Dropout(0.2), nn.Conv2d(16, 4, 1), nn.BatchNorm2d(4))

    def forward(self, x):
        return (x + self.conv(x)).mean([2, 3])


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3, padding=1)
        self.stem = nn.MaxPool2d(3, 2, 1)

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([x, self.conv(F.silu(self.norm(x)))], 1)
        x = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) + F.avg_pool2d(x, 3, 1, 1)
        return F.adaptive_avg_pool2d(x, 1).view(x.size(0), -1)


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.query, self.key, self.value, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.ln_1, self.ln_2 = nn.LayerNorm(16, eps=1e-6), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.position = nn.Parameter(torch.randn(1, 7, 16) * 0.1)

    def heads(self, x):
        return x.view(x.size(0), x.size(1), 2, 8).transpose(1, 2)

    def forward(self, x):
        x = x + self.position
        y = self.ln_1(x)
        q, k, v = self.heads(self.query(y)), self.heads(self.key(y)), self.heads(self.value(y))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(8), -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(x.size(0), x.size(1), 16))
        return x + self.mlp(self.ln_2(x))


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_proj, self.ln, self.head = nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12), nn.Linear(12, 3, bias=False)

    def forward(self, x):
        y = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        return self.head(self.ln(y))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True), nn.GRU(16, 8, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        y, g = self.gru(y)
        return torch.cat([y[:, -1], g[0], h[-1], c[0]], 1)


def strip(path):
    """Removes what identifies the machine that made the file."""
    model = onnx.load(path)
    for thing in [model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info, *model.graph.initializer]:
        del thing.metadata_props[:]
        thing.ClearField("doc_string")
    onnx.save(model, path)


def export(model, shape, name, opset, dynamo):
    """The file of an exporter, an input, and the model's output."""
    model.eval()
    with torch.no_grad():
        for module in model.modules():   # statistics that matter
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(), module.running_var.uniform_(0.5, 2)
        x = torch.randn(shape)
        y = model(x)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.onnx"
        torch.onnx.export(model, (x,), str(path), opset_version=opset, dynamo=dynamo, **({"external_data": False} if dynamo else {}))
        strip(path)
        file = numpy.frombuffer(path.read_bytes(), numpy.uint8)
    print(name, len(file), "bytes")
    return {f"{name}.onnx": file, f"{name}.x": x.numpy(), f"{name}.y": y.numpy()}


def small():
    torch.manual_seed(1)
    cases = {"basic_block": (BasicBlock(), (1, 3, 16, 16)), "inverted": (Inverted(), (1, 4, 6, 6)), "dense": (Dense(), (1, 6, 9, 9)),
             "attention": (Attention(False), (1, 7, 16)), "sdpa": (Attention(True), (1, 7, 16)), "patches": (Patches(), (1, 3, 16, 16)),
             "recurrent": (Recurrent(), (2, 5, 6))}
    runs = {}
    for name, (model, shape) in cases.items():
        runs |= export(model, shape, f"{name}_script_14", 14, False)
        runs |= export(model, shape, f"{name}_dynamo_20", 20, True)
    runs |= quantized(runs, "basic_block", quantize_activations="uint8", per_channel=True)
    runs |= quantized(runs, "patches", quantize_activations="int8", per_channel=False)
    save_file(runs, HERE / "exported.safetensors")


def quantized(runs, name, quantize_activations, per_channel):
    """One of the files as ONNX Runtime quantizes it, an input, and what ONNX Runtime computes node by node."""
    import onnxruntime
    from onnxruntime import quantization
    random = numpy.random.default_rng(1)
    inputs = [random.standard_normal((1, 3, 16, 16), dtype=numpy.float32) for _ in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        source, path = pathlib.Path(folder) / "source.onnx", pathlib.Path(folder) / "quantized.onnx"
        source.write_bytes(runs[f"{name}_script_14.onnx"].tobytes())

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.rest = iter([{onnx.load(source).graph.input[0].name: x} for x in inputs])

            def get_next(self):
                return next(self.rest, None)

        kind = quantization.QuantType.QUInt8 if quantize_activations == "uint8" else quantization.QuantType.QInt8
        quantization.quantize_static(source, path, Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=per_channel, activation_type=kind,
                                     weight_type=quantization.QuantType.QInt8)
        strip(path)
        file = numpy.frombuffer(path.read_bytes(), numpy.uint8)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # otherwise sums of products are whole numbers
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        y = session.run(None, {session.get_inputs()[0].name: inputs[0]})[0]
    return {f"{name}_quantized.onnx": file, f"{name}_quantized.x": inputs[0], f"{name}_quantized.y": y}


def zoo(folder, names):
    import torchvision
    folder.mkdir(parents=True, exist_ok=True)
    runs = {}
    for name in names:
        torch.manual_seed(1)
        model = getattr(torchvision.models, name)()
        runs |= export(model, (1, 3, 64, 64), f"{name}_script", 17, False)
        runs |= export(model, (1, 3, 64, 64), f"{name}_dynamo", 18, True)
    save_file(runs, folder / "exported.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--zoo", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=["resnet18", "resnet34", "densenet161", "densenet169", "densenet201", "mobilenet_v2"])
    arguments = parser.parse_args()
    zoo(arguments.zoo, arguments.names) if arguments.zoo else small()
