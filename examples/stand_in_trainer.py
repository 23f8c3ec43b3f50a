"""A trainer that takes no time, to try 'loopegg optimize --train' before real training runs: python3 stand_in_trainer.py FOLDER

It pretends that a network reaches 92% less a loss for each channel that its convolutions are narrower than 16, and a larger loss for each branch that is gone.
A real trainer reads the same FOLDER: network.py is the network as a PyTorch module, and weights.safetensors is there where the model came with weights.
"""
import json
import os
import pathlib
import sys


def accuracy_of(model):
    widths = [node["attrs"]["out_channels"] for node in model["nodes"] if node["op"] == "conv2d"]
    branches = sum(node["op"] == "add" for node in model["nodes"])
    return 92 - sum(0.1 * max(0, 16 - width) for width in widths) - 3 * (branches == 0)


folder = pathlib.Path(sys.argv[1])
print(f"training {folder.parent.name} with seed {os.environ.get('LOOPEGG_SEED', '1')}")
print(json.dumps({"accuracy": accuracy_of(json.loads((folder / "model.json").read_text()))}))
