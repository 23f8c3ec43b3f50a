# Restricted layers. A domain is a list of parts; a part is (ranges, diagonals): lo <= digit < hi, and two digits that are equal.
# A digit (axis, stride, radix) of an iterator's value i is i // stride % radix.


def holds(part, values):
    """The part's conditions where every axis is an int or a tensor of values; answers a bool or a tensor of bools."""
    ranges, diagonals = part
    digit = lambda d: values[d[0]] // d[1] % d[2]
    answer = torch.tensor(True)
    for d, lo, hi in ranges:
        answer = answer & torch.as_tensor((digit(d) >= lo) & (digit(d) < hi))
    for a, b in diagonals:
        answer = answer & torch.as_tensor(digit(a) == digit(b))
    return answer


def digits_of(parts, axes):
    found = [d for ranges, _ in parts for d, _, _ in ranges] + [d for _, diagonals in parts for pair in diagonals for d in pair]
    return sorted({d for d in found if d[0] in axes})


def masks(parts, positions, weights):
    """Splits a domain over output positions and weights: pairs of a mask over the positions (None: everywhere) and one over the weights.

    positions, weights: {axis: extent}, in the order of the masks' dimensions."""
    grid = lambda extents: dict(zip(extents, torch.meshgrid(*[torch.arange(e) for e in extents.values()], indexing="ij"))) if extents else {}
    place, weight, named = grid(positions), grid(weights), digits_of(parts, positions)
    shape = tuple(weights.values())
    found = {}
    for values in itertools.product(*[range(d[2]) for d in named]):
        where = torch.ones(tuple(positions.values()), dtype=torch.bool)
        fixed = {}
        for d, v in zip(named, values):
            where &= place[d[0]] // d[1] % d[2] == v
            fixed[d] = v
        if not where.any():
            continue
        kept = torch.zeros(shape, dtype=torch.bool)
        for ranges, diagonals in parts:
            ok = all(lo <= fixed[d] < hi for d, lo, hi in ranges if d in fixed)
            free = ([r for r in ranges if r[0] not in fixed], [])
            for a, b in diagonals:
                if a in fixed and b in fixed:
                    ok = ok and fixed[a] == fixed[b]
                elif a in fixed or b in fixed:
                    known, open_ = (a, b) if a in fixed else (b, a)
                    free[0].append((open_, fixed[known], fixed[known] + 1))
                else:
                    free[1].append((a, b))
            if ok:
                kept |= holds(free, weight).expand(shape)
        if kept.any():
            key = ctypes.string_at(kept.data_ptr(), kept.numel())
            found[key] = (found[key][0] | where, kept) if key in found else (where, kept)
    return [(None if where.all() else where, kept) for where, kept in found.values()]


def any_batch(where):
    """A mask that is the same for every image serves any batch size."""
    return where[:1] if torch.equal(where, where[:1].expand_as(where)) else where


@functools.lru_cache(maxsize=None)
def on_device(index, device):
    """Made once, so that a step of training can be captured as a CUDA graph."""
    return torch.tensor(index, device=device)


def restore(y, sources):
    """Outputs that no instance computes come back: per dimension the index each value is taken from, -1 for zero; or all of them, flat."""
    if sources is None:
        return y
    if isinstance(sources, dict):
        for dim, index in sources.items():
            index = on_device(tuple(index), y.device)
            shape = [1] * y.dim()
            shape[dim] = -1
            y = y.index_select(dim, index.clamp(min=0)) * (index >= 0).to(y.dtype).reshape(shape)
        return y
    index = torch.cat([torch.arange(count, device=y.device) * step + begin for begin, count, step in sources])
    return (y.flatten()[index.clamp(min=0)] * (index >= 0).to(y.dtype)).reshape(y.shape)


class RestrictedConv2d(nn.Conv2d):
    def __init__(self, *args, parts, out, sources=None, **named):
        super().__init__(*args, **named)
        n, oh, ow = out
        g = self.groups
        found = masks(parts, {"n": n, "oh": oh, "ow": ow}, {"g": g, "co": self.out_channels // g, "ci": self.in_channels // g, "kh": self.kernel_size[0], "kw": self.kernel_size[1]})
        self.places = [None if where is None else any_batch(where.reshape(n, 1, oh, ow)) for where, _ in found]
        for i, (_, kept) in enumerate(found):
            self.register_buffer(f"kept{i}", kept.reshape(self.weight.shape), persistent=False)
        self.sources = sources

    def forward(self, x):
        y = 0
        for i, where in enumerate(self.places):
            part = F.conv2d(x, self.weight * getattr(self, f"kept{i}"), None, self.stride, self.padding, self.dilation, self.groups)
            y = y + (part if where is None else part * where.to(part))
        if self.bias is not None:
            y = y + self.bias.reshape(1, -1, 1, 1)
        return restore(y, self.sources)


class RestrictedLinear(nn.Linear):
    def __init__(self, *args, parts, rows, sources=None, **named):
        super().__init__(*args, **named)
        found = masks(parts, {"n": rows}, {"co": self.out_features, "ci": self.in_features})
        self.places = [None if where is None else any_batch(where.reshape(rows, 1)) for where, _ in found]
        for i, (_, kept) in enumerate(found):
            self.register_buffer(f"kept{i}", kept, persistent=False)
        self.sources = sources

    def forward(self, x):
        flat, y = x.reshape(-1, self.in_features), 0
        for i, where in enumerate(self.places):
            part = F.linear(flat, self.weight * getattr(self, f"kept{i}"))
            y = y + (part if where is None else part * where.to(part))
        if self.bias is not None:
            y = y + self.bias
        return restore(y, self.sources).reshape(*x.shape[:-1], self.out_features)


class RestrictedMatmul(nn.Module):
    def __init__(self, parts, extents, sources=None):
        super().__init__()
        ((_, kept),) = masks(parts, {}, extents)
        self.register_buffer("kept", kept, persistent=False)
        self.sources = sources

    def forward(self, a, b):
        x, y = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
        out = torch.einsum("bik,bkj,bijk->bij", x, y, self.kept.to(x))
        return restore(out, self.sources).reshape(*a.shape[:-1], b.shape[-1])


