#!/usr/bin/env python3
"""Times cuDNN on the convolutions of a bundle, and PyTorch on whole networks, on the machine where the bundle ran.

    gpu_peers.py convolutions BUNDLE OUT.json [PRECISION]...        every distinct convolution that the bundle's index.json names
    gpu_peers.py network NAME BATCH OUT.json [--compile|--autotune] [PRECISION]...
                                                                    NAME: resnet34-cifar10, or a model of torchvision

PRECISION is strict (float32 with TF32 switched off), tf32 or fp16: strict and tf32 unless some are given. Everything runs in CUDA graphs. The
faster of both memory layouts counts. Needs PyTorch with CUDA; networks need torchvision.
"""
import json
import re
import statistics
import sys
import time

import torch


def samples(replay, per_replay=1, repeats=21):
    """Milliseconds of one call: a row of replays between two events, as the runner of bundles times its graphs."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def row(n):
        begin.record()
        for _ in range(n):
            replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / n / per_replay

    row(3)
    n = max(1, min(1000, int(2.0 / max(1e-4, row(3) * per_replay))))
    return sorted(row(n) for _ in range(repeats))


def summary(times):
    count = len(times)
    return {"median_ms": statistics.median(times), "iqr_ms": times[3 * count // 4] - times[count // 4], "n": count}


def captured(call, times=1):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):   # cuDNN tries its algorithms here
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        for _ in range(times):
            call()
    return graph


PRECISIONS = ("strict", "tf32", "fp16")


def set_precision(name):
    """The type of all values under this precision."""
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return torch.float16 if name == "fp16" else torch.float32


LAYOUTS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


def fastest(make_call, times):
    """The times of the faster of both memory layouts. `make_call` gives the function to call for a layout."""
    best = None
    for name, layout in LAYOUTS.items():
        found = summary(samples(captured(make_call(layout), times).replay, times)) | {"layout": name}
        if best is None or found["median_ms"] < best["median_ms"]:
            best = found
    return best


def convolution(shape, precisions):
    n, g, co, ci, ih, iw, kh, kw, sh, sw, ph, pw, dh, dw = shape
    x = torch.randn(n, g * ci, ih, iw, device="cuda")
    w = torch.randn(g * co, ci, kh, kw, device="cuda")

    def make(layout, dtype):
        xs, ws = x.to(dtype, memory_format=layout), w.to(dtype, memory_format=layout)
        return lambda: torch.nn.functional.conv2d(xs, ws, None, (sh, sw), (ph, pw), (dh, dw), g)

    result = {}
    for name in precisions:
        dtype = set_precision(name)
        result[name] = fastest(lambda layout: make(layout, dtype), 16)   # 16 in a graph: what the launching of a graph costs is not cuDNN's
    return result


def convolutions(bundle, out, precisions):
    with open(bundle + "/index.json") as index:
        programs = json.load(index)["programs"]
    shapes = sorted({tuple(map(int, m.split())) for p in programs for m in re.findall(r"\(conv2d ([0-9 ]+)\)", p["what"])})
    results = []
    for shape in shapes:
        results.append({"conv2d": list(shape), **convolution(shape, precisions)})
        print(shape, *(f"{k} {results[-1][k]['median_ms'] * 1000:.1f} us ({results[-1][k]['layout']})" for k in precisions), flush=True)
    write(out, {"convolutions": results})


def model_of(name):
    import torchvision
    if name == "resnet34-cifar10":
        net = torchvision.models.resnet34(num_classes=10)
        net.conv1, net.maxpool = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.Identity()
        return net, (3, 32, 32)
    return getattr(torchvision.models, name)(), (3, 224, 224)


def network(name, batch, out, compiles, precisions):
    net, shape = model_of(name)
    net = net.cuda().eval()
    try:   # batch norms go into the convolutions before them, as they do here
        from torch.fx.experimental.optimization import fuse
        net = fuse(net)
    except Exception as e:   # an older or newer PyTorch may have moved it
        print("batch norms stay:", e)
    x = torch.randn(batch, *shape, device="cuda")
    results = {"network": name, "batch": batch}

    def cast(layout, dtype):
        import copy
        return copy.deepcopy(net).to(dtype=dtype, memory_format=layout), x.to(dtype, memory_format=layout)

    def make(layout, dtype):
        own, xs = cast(layout, dtype)
        return lambda: own(xs)

    for key in precisions:
        dtype = set_precision(key)
        results[key] = fastest(lambda layout: make(layout, dtype), 1)
        print(name, "batch", batch, key, results[key], flush=True)
    if compiles:
        for kind in precisions:
            key, dtype = "compiled_" + kind, set_precision(kind)
            torch._dynamo.reset()
            start = time.time()
            try:
                plain, xs = cast(torch.channels_last, dtype)
                own = torch.compile(plain, mode="max-autotune-no-cudagraphs" if compiles == "autotune" else "default")
                results[key] = summary(samples(captured(lambda: own(xs)).replay))
            except Exception as e:
                results[key] = {"failed": str(e)[:300]}
            results[key]["compile_seconds"] = time.time() - start
            print(name, "batch", batch, key, results[key], flush=True)
    write(out, results)


def write(out, results):
    results |= {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
    with open(out, "w") as file:
        json.dump(results, file, indent=1)


def main(words):
    torch.backends.cudnn.benchmark = True
    given = [w for w in words if w in PRECISIONS] or ["strict", "tf32"]
    compiles = next((w[2:] for w in words if w in ("--compile", "--autotune")), None)
    words = [w for w in words if w not in PRECISIONS and not w.startswith("--")]
    if len(words) == 3 and words[0] == "convolutions":
        return convolutions(words[1], words[2], given)
    if len(words) == 4 and words[0] == "network" and words[2].isdigit():
        return network(words[1], int(words[2]), words[3], compiles, given)
    sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
