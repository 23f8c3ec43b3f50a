#!/usr/bin/env python3
"""check_network.py FOLDER: loads FOLDER/network.py in PyTorch, runs FOLDER/io.safetensors' inputs, and prints the largest relative difference.

Also takes one training step and reads the saved weights back. Exit code 77: no PyTorch here.
"""
import importlib.util
import pathlib
import sys

try:
    import torch
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("network", folder / "network.py")
network = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(network)
torch.set_num_threads(1)

tensors = network.read_safetensors(folder / "io.safetensors")
inputs = [tensors[f"input.{i}"] for i in range(sum(n.startswith("input.") for n in tensors))]
expected = [tensors[f"output.{i}"] for i in range(sum(n.startswith("output.") for n in tensors))]
model = network.load()
with torch.no_grad():
    outputs = model(*inputs)
outputs = outputs if isinstance(outputs, tuple) else (outputs,)
worst = 0.0
for got, want in zip(outputs, expected, strict=True):
    assert got.shape == want.shape, (got.shape, want.shape)
    worst = max(worst, ((got - want).abs().max() / want.abs().max().clamp(min=1e-6)).item())

before = {name: values.clone() for name, values in model.state_dict().items()}
parameters = list(model.parameters())
if parameters:   # a product of two inputs has none
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    result = model(*inputs)
    sum(o.square().mean() for o in (result if isinstance(result, tuple) else (result,))).backward()
    optimizer.step()
for name, module in model.named_modules():
    kept = [values for key, values in module.named_buffers(recurse=False) if key.startswith("kept")]
    if kept and hasattr(module, "weight"):
        away = ~torch.stack(kept).any(0)
        assert torch.equal(module.weight.detach()[away], before[name + ".weight"][away]), f"{name}: a weight outside the domain was trained"
network.save(model, folder / "again.safetensors")
again = network.read_safetensors(folder / "again.safetensors")
for name, values in model.state_dict().items():
    assert name.endswith("num_batches_tracked") or torch.equal(again[network.name_of(name)], values), name
print(f"{worst:.3e}")
