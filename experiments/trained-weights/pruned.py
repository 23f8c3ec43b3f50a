"""What Torch-Pruning leaves of a trained original within a latency: it removes whole channels with all that depend on them, and keeps the weights of the others.

`importance` names how it compares channels over the whole network: "taylor" (GroupTaylorImportance, weights times gradients on training images, computed again
before every second step) or "magnitude" (GroupMagnitudeImportance). Widths are multiples of 8, as ours are.
"""
import torch
import torch.nn.functional as F

import networks as N
import train

STEPS, IMAGES, BATCH = 100, 1024, 256
LEAST_LEFT = 0.125      # of each width
# What a site adds to the milliseconds of a network on i7, by "kernel stride places": for each product of an input and an output channel, and for each channel
# that is read or written. Fitted to 40 networks of resnet34-cifar10 that `loopegg measure --target i7` estimated: 0.8% off where one is left out, at most 2.8%.
MS = {
    "1 2 16": (1.535e-05, 4.559e-05),
    "1 2 4": (3.182e-09, 2.849e-06),
    "1 2 8": (0, 1.14e-05),
    "3 1 16": (9.14e-06, 4.559e-05),
    "3 1 32": (3.131e-05, 0.0001823),
    "3 1 4": (1.451e-06, 2.849e-06),
    "3 1 8": (2.51e-06, 1.14e-05),
    "3 2 16": (6.814e-06, 4.559e-05),
    "3 2 4": (1.273e-06, 2.849e-06),
    "3 2 8": (1.79e-06, 1.14e-05),
}


def latency(graph):
    channels, side, ms = N.Channels(graph), N.sides(graph), 0.0
    for n in graph["nodes"]:
        if n["op"] == "conv2d":
            a, ins = n["attrs"], channels.total(channels.of[n["inputs"][0]])
            product, channel = MS[f"{a['kernel'][0]} {a.get('stride', [1])[0]} {side[n['name']]}"]
            ms += product * ins * a["out_channels"] + channel * (ins + a["out_channels"])
    return ms


def collect_gradients(model, images, labels):
    model.zero_grad()
    for i in range(0, len(images), BATCH):
        F.cross_entropy(model(images[i:i + BATCH]), labels[i:i + BATCH], reduction="sum").backward()


def network(base, trained, job, images, labels, device):
    """(network, plan): the first of its steps that takes no longer than job["ms"]."""
    import torch_pruning
    import torch_pruning_plan as P
    model = P.Plain(base, trained).to(device).eval()
    images, labels = train.normalised(images[:IMAGES], torch.float32).contiguous(), labels[:IMAGES]
    head = model.made[P.Plain.key(base["outputs"][0])]
    by = {"taylor": torch_pruning.importance.GroupTaylorImportance, "magnitude": torch_pruning.importance.GroupMagnitudeImportance}[job["importance"]]()
    pruner = torch_pruning.pruner.MetaPruner(model, images[:1], importance=by, global_pruning=True, pruning_ratio=0.9, max_pruning_ratio=1 - LEAST_LEFT,
                                             iterative_steps=STEPS, ignored_layers=[head], round_to=8)
    for step in range(STEPS):
        if job["importance"] == "taylor" and step % 2 == 0:
            collect_gradients(model, images, labels)
        pruner.step()
        plan = P.plan_of(base, model)
        graph = N.apply_plan(base, plan)
        if latency(graph) <= job["ms"]:
            break
    left = train.Network(graph)
    with torch.no_grad():
        for name, layer in train.layers_by_name(left).items():
            own = model.made[P.Plain.key(name)]
            if isinstance(layer, train.Conv):
                layer.weights[0].copy_(own.weight)
            else:
                layer.load_state_dict(own.state_dict())
    return left, plan
