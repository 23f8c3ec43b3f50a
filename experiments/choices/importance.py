"""How much a trained network needs each channel, each branch and each connection: by Fisher Potential, and by magnitude.

With values A of a channel and gradients g of the loss, over N images, and weights w of trained networks:
  fisher of a channel     1/(2N) sum_n (sum_ij A g)^2, summed over the sites that write it: the Fisher Potential of fisher/measures.hpp
  gate of a channel       1/(2N) sum_n (sum over its writers and ij of A g)^2: what switching the channel off in all places costs, to second order
  magnitude of a channel  the norm of the weights that write it times the scale of the norm that follows, as a share of each writer's mean
  fisher, gate, magnitude of a branch: of the channels that its last site writes, summed; for the gate the sum over channels is inside the square
  fisher of a connection  1/2 E (sum over the kernel of w g)^2, with gradients of small batches, whose squares estimate those of single images
  magnitude of a connection  the squares of its weights, times the square of the scale that follows, as a share of the site's
"""
import torch
import torch.nn.functional as F

import networks as N
import train

BATCH = 64


class Sums:
    def __init__(self, space, device):
        self.space, self.images = space, 0
        width = {r: space.width[r] for r in space.width}
        self.fisher = {r: torch.zeros(w, device=device) for r, w in width.items()}
        self.gate = {r: torch.zeros(w, device=device) for r, w in width.items()}
        self.branch_fisher = {b: torch.zeros((), device=device) for b in space.branches}
        self.branch_gate = {b: torch.zeros((), device=device) for b in space.branches}
        self.links = {}

    def add(self, network, layers):
        """After a backward pass of the summed loss of a batch."""
        space, by_site = self.space, {}
        for s in space.convs:
            value = network.seen[space.written(s)]
            by_site[s] = (value.detach().float() * value.grad.float()).sum((2, 3))      # by image and channel
        for root in space.width:
            own = [by_site[s] for s in space.writers(root)]
            self.fisher[root] += sum((v ** 2).sum(0) for v in own) / 2
            self.gate[root] += (sum(own) ** 2).sum(0) / 2
        for b in space.branches:
            self.branch_fisher[b] += (by_site[b] ** 2).sum() / 2
            self.branch_gate[b] += (by_site[b].sum(1) ** 2).sum() / 2
        for s in space.convs:
            w = layers[s].weights[0]
            # The gradient of the sum of B independent losses squares to B times the mean square of one.
            self.links[s] = self.links.get(s, 0) + (w.detach() * w.grad).sum((2, 3)) ** 2 / 2
        self.images += len(next(iter(by_site.values())))


def importance(space, network, images, labels):
    """{"channels": {root: {measure: tensor}}, "branches": {site: {measure: number}}, "links": {site: {measure: matrix}}} on these images, normalised."""
    layers, device = train.layers_by_name(network), images.device
    network.eval()
    network.watched = {space.written(s) for s in space.convs}
    sums = Sums(space, device)
    for i in range(0, len(images), BATCH):
        network.zero_grad(set_to_none=True)
        answers = network(images[i:i + BATCH])
        for v in network.seen.values():
            v.retain_grad()
        F.cross_entropy(answers, labels[i:i + BATCH], reduction="sum").backward()
        sums.add(network, layers)
    network.watched, network.seen = (), {}
    network.zero_grad(set_to_none=True)
    return normalised(space, layers, sums)


@torch.no_grad()
def normalised(space, layers, sums):
    graph, n = space.graph, sums.images
    single = {s: train.channel_weights(graph, layers, [s]) for s in space.convs}
    channels = {r: {"fisher": (sums.fisher[r] / n).cpu(), "gate": (sums.gate[r] / n).cpu(), "magnitude": sum(single[s] for s in space.writers(r)).cpu()}
                for r in space.width}
    branches = {b: {"fisher": float(sums.branch_fisher[b]) / n, "gate": float(sums.branch_gate[b]) / n, "magnitude": written_size(graph, layers, b)}
                for b in space.branches}
    links = {}
    for s in space.convs:
        squares = (layers[s].weights[0] ** 2).sum((2, 3)) * scale_after(graph, layers, s)[:, None] ** 2
        links[s] = {"fisher": (sums.links[s] / n).cpu(), "magnitude": (squares / squares.sum()).cpu()}
    return {"channels": channels, "branches": branches, "links": links}


def scale_after(graph, layers, site):
    for after in N.consumers(graph, site):
        if after["op"] == "batch_norm":
            norm = layers[after["name"]]
            return norm.weight.detach().abs() / (norm.running_var + norm.eps).sqrt()
    return torch.ones(len(layers[site].weights[0]), device=layers[site].weights[0].device)


def written_size(graph, layers, site):
    """The norm of the weights that write a branch's channels, as the norm after them leaves them."""
    return float(((layers[site].weights[0] ** 2).sum((1, 2, 3)) * scale_after(graph, layers, site) ** 2).sum().sqrt())
