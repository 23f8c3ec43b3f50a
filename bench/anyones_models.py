"""Models that nobody here wrote: exports them as their users do, and asks whether loopegg reads them, computes what ONNX Runtime computes,
and how much of them it computes with its own operators.

    python bench/anyones_models.py export DIR [--sets torchvision timm segmentation transformers] [--sizes 224 64] [--exporters dynamo script] [--only NAME...]
    python bench/anyones_models.py check DIR [--loopegg build/src/cli/loopegg] [--compile] [--go-on] [--table FILE.md]

Weights are drawn at random, so nothing is downloaded. Batch statistics and parameters that would begin as one number (heads of zeros, layer scales of
1e-6) are drawn too, so that a wrong branch shows. Every exported model is in a folder of its own, as PyTorch writes it, with an input x.npy and the
output y.npy of ONNX Runtime. timm's models get 64 pixels where they take any image, and their own size elsewhere. Needs torch, torchvision, timm, onnx,
onnxscript, onnxruntime, and transformers for its set.

'check' writes what it found into DIR/checked.json after each model. With --go-on, models that are there are not checked again. 'check' ends with 1 when a
model was not read, was not run, was wrong, or has a convolution or product that loopegg does not compute with its own operators.
"""
import argparse
import gc
import importlib
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

TORCHVISION = """alexnet vgg11 resnet18 resnet50 squeezenet1_0 densenet121 inception_v3 googlenet shufflenet_v2_x1_0 mobilenet_v2 mobilenet_v3_small
    mobilenet_v3_large resnext50_32x4d wide_resnet50_2 mnasnet1_0 efficientnet_b0 efficientnet_v2_s regnet_y_400mf convnext_tiny vit_b_16 swin_t""".split()
TIMM = """bat_resnext26ts beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_tiny coatnet_0_rw_224 convit_tiny convmixer_768_32 convnextv2_atto crossvit_tiny_240
    cspresnet50 darknet53 davit_tiny deit_tiny_patch16_224 densenet121 dla34 dm_nfnet_f0 dpn68 eca_resnet33ts edgenext_xx_small efficientformer_l1 efficientnet_lite0
    efficientvit_b0 efficientvit_m0 ese_vovnet19b_dw eva02_tiny_patch14_224 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnet33ts gernet_s ghostnet_100 halonet26t
    hardcorenas_a hgnet_tiny hrnet_w18_small inception_next_tiny lambda_resnet26t lcnet_050 levit_128s mixer_s32_224 mixnet_s mobilenetv4_conv_small mobileone_s0
    mobilevit_xxs mvitv2_tiny nest_tiny nf_regnet_b0 pit_ti_224 poolformer_s12 pvt_v2_b0 regnetx_002 repvgg_a0 res2net50_26w_4s resmlp_12_224 resnest14d rexnet_100
    selecsls42b semnasnet_075 sequencer2d_s skresnet18 spnasnet_100 starnet_s1 swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 tf_efficientnet_lite0 tinynet_e
    tnt_s_patch16_224 tresnet_m twins_svt_small vgg11_bn visformer_tiny vit_tiny_patch16_224 volo_d1_224 xception41 xcit_nano_12_p16_224""".split()
# Their windows, grids or strides fit to their own size alone, though timm does not say so.
TIMM_OWN_SIZE = """botnet26t_256 coatnet_0_rw_224 convit_tiny efficientformer_l1 halonet26t lambda_resnet26t levit_128s mixer_s32_224 mvitv2_tiny pit_ti_224 resmlp_12_224
    nest_tiny sequencer2d_s twins_svt_small visformer_tiny volo_d1_224 crossvit_tiny_240 coat_tiny cait_xxs24_224 efficientvit_m0 mobilevit_xxs tnt_s_patch16_224""".split()
SEGMENTATION = "fcn_resnet50 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large".split()
SITES = {"Conv", "ConvTranspose", "ConvInteger", "MatMul", "Gemm", "Einsum", "Attention"}
TRANSFORMERS = "bert gpt2 distilbert".split()


def drawn(model):
    """Draws statistics and parameters that change the output."""
    import torch
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        first = parameter.flatten()[0].item()
        if (parameter == first).all():   # ones stay near one, and what was nothing or next to it becomes something
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(first + 0.1 * noise if abs(first) > 0.1 else 0.2 + 0.05 * noise if abs(first) > 0 else (0.02 if parameter.ndim > 1 else 0.1) * noise)
    for module in model.modules():
        if getattr(module, "running_mean", None) is not None:
            module.running_mean.copy_(torch.randn(module.running_mean.shape, generator=generator) * 0.05)
            module.running_var.copy_(torch.rand(module.running_var.shape, generator=generator) * 0.5 + 0.75)
    return model.eval()


def transformer(name):
    import torch
    import transformers
    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500, use_cache=False))
    else:
        small = dict(vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128) if name == "bert" else dict(vocab_size=500, dim=64, n_layers=2, n_heads=4, hidden_dim=128)
        model = (transformers.BertModel(transformers.BertConfig(**small)) if name == "bert" else transformers.DistilBertModel(transformers.DistilBertConfig(**small)))

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, input_ids):
            return self.inner(input_ids)[0]

    return Plain().eval(), torch.arange(16).reshape(1, 16) % 500


def build(kind, name, size):
    import torch
    if kind == "transformers":
        return transformer(name)
    if kind == "timm":
        import timm
        model = timm.create_model(name, pretrained=False)
        cfg = model.default_cfg
        size = cfg["input_size"][-1] if cfg.get("fixed_input_size") or name in TIMM_OWN_SIZE else max(64, (cfg.get("min_input_size") or [0, 0, 0])[-1])
        return drawn(model), torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    import torchvision
    options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    if kind == "segmentation":
        model, size = torchvision.models.get_model(name, weights=None, weights_backbone=None), 128
        inner = drawn(model)

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return self.inner(x)["out"]

        return Out().eval(), torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    if name == "vit_b_16":
        options["image_size"] = size
    size = max(size, 75) if name == "inception_v3" else size
    return drawn(torchvision.models.get_model(name, weights=None, **options)), torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))


def runtime_session(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def export_one(kind, name, exporter, size, folder):
    import torch
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)   # an operator of its own that the older exporter does not know
    with torch.no_grad():
        model, x = build(kind, name, size)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "model.onnx"
        torch.onnx.export(model, (x,), str(path), **({"dynamo": False} if exporter == "script" else {}))
    session = runtime_session(path)
    y = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    numpy.save(folder / "x.npy", x.numpy().astype(numpy.float32))
    numpy.save(folder / "y.npy", numpy.ascontiguousarray(y, dtype=numpy.float32))
    (folder / "done").write_text("")


def export_quietly(log, *what):
    gc.disable()   # what one export leaves is gone with its process, and looking for it costs more than the export
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
    export_one(*what)


def export(args):
    jobs = []
    for size in args.sizes:
        for exporter in args.exporters:
            jobs += [("torchvision", n, exporter, size) for n in TORCHVISION if "torchvision" in args.sets]
    jobs += [("timm", n, "dynamo", 0) for n in TIMM if "timm" in args.sets]
    jobs += [("segmentation", n, "dynamo", 0) for n in SEGMENTATION if "segmentation" in args.sets]
    jobs += [("transformers", n, "dynamo", 0) for n in TRANSFORMERS if "transformers" in args.sets]
    if args.only:
        jobs = sorted((job for job in jobs if job[1] in args.only), key=lambda job: args.only.index(job[1]))
    for module in ["torch", "torch.onnx", "onnx", "onnxscript", "onnxruntime"] + [m for m in ("torchvision", "timm", "transformers") if m in args.sets]:
        importlib.import_module(module)   # once: importing takes longer than many an export
    args.folder.mkdir(parents=True, exist_ok=True)
    log = args.folder / "export.log"
    for kind, name, exporter, size in jobs:
        folder = args.folder / f"{kind}-{name}-{exporter}{f'-{size}' if size else ''}"
        if (folder / "done").exists():
            continue
        began = time.time()
        # A process each: an exporter that falls or eats memory costs one model.
        child = multiprocessing.get_context("fork").Process(target=export_quietly, args=(log, kind, name, exporter, size, folder))
        child.start()
        child.join(600)
        if child.is_alive():
            child.kill()
            child.join()
        last = (log.read_text(errors="replace").strip().splitlines() or [""])[-1]
        print(f"{folder.name}: {'exported' if child.exitcode == 0 else 'not exported: ' + last[:160]} ({time.time() - began:.0f} s)", flush=True)


def loopegg(args, *words):
    return subprocess.run([args.loopegg, *map(str, words)], capture_output=True, text=True)


def check_one(args, folder):
    """What happened: whether the model was read, the largest difference relative to the largest value, and which operators are not native."""
    ran = loopegg(args, "show", folder / "model.onnx", "--json")
    if ran.returncode != 0:
        return {"read": False, "why": (ran.stderr.strip().splitlines() or ["no words"])[0]}
    about = json.loads(ran.stdout)
    answer = {"read": True, "nodes": about["nodes"], "opaque": about["opaque"], "by": "compiled" if args.compile else "interpreted"}
    what = folder / "model.onnx"
    if args.compile:
        what = args.scratch / "compiled"
        ran = loopegg(args, "compile", folder / "model.onnx", "--out", what)
        if ran.returncode != 0:
            return answer | {"why": "not compiled: " + (ran.stderr.strip().splitlines() or ["no words"])[-1]}
    ran = loopegg(args, "run", what, "--input", folder / "x.npy", "--output", args.scratch / "y.npy")
    if ran.returncode != 0:
        return answer | {"why": "not run: " + (ran.stderr.strip().splitlines() or ["no words"])[0]}
    results = [args.scratch / "y.npy"] if (args.scratch / "y.npy").exists() else sorted(args.scratch.glob("y.*.npy"))
    wanted = numpy.load(folder / "y.npy")
    got = next((v for v in map(numpy.load, results) if v.shape == wanted.shape), None)
    for file in results:
        file.unlink()
    if got is None:
        return answer | {"why": "another shape"}
    return answer | {"difference": float(numpy.abs(got - wanted).max() / max(1e-6, numpy.abs(wanted).max()))}


def is_right(answer):
    return answer.get("difference", 1) < 1e-4


def is_wrong(answer):
    return "difference" in answer and not is_right(answer)


def has_our_sites(answer):
    return answer["read"] and not set(answer["opaque"]) & SITES


def write_table(path, rows):
    lines = ["| model | read | largest difference | nodes | opaque nodes |", "|---|---|---|---|---|"]
    for name, a in rows.items():
        opaque = ", ".join(f"{n} {op}" for op, n in (a.get("opaque") or {}).items())
        lines.append(f"| {name} | {'yes' if a['read'] else 'no'} | {format(a['difference'], '.1e') if 'difference' in a else a.get('why', '')} | {a.get('nodes', '')} | {opaque} |")
    path.write_text("\n".join(lines) + "\n")


def check(args):
    book = args.folder / "checked.json"
    known = json.loads(book.read_text()) if book.exists() else {}
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        args.scratch = pathlib.Path(scratch)
        for folder in sorted(f for f in args.folder.iterdir() if (f / "done").exists() and (not args.only or any(word in f.name for word in args.only))):
            began = time.time()
            answer = known.get(folder.name) if args.go_on else None
            if not answer:
                answer = known[folder.name] = check_one(args, folder) | {"seconds": round(time.time() - began)}
                book.with_suffix(".new").write_text(json.dumps(known, indent=1))
                book.with_suffix(".new").replace(book)
            rows[folder.name] = answer
            print(f"{folder.name}: {'right' if is_right(answer) else 'WRONG' if is_wrong(answer) else 'refused'} {answer.get('difference', answer.get('why'))} "
                  f"{answer.get('opaque') or ''} ({answer['seconds']} s)", flush=True)
    for kind in sorted({name.split("-")[0] for name in rows}):
        mine = [a for name, a in rows.items() if name.startswith(kind)]
        print(f"{kind}: {sum(a['read'] for a in mine)} of {len(mine)} read, {sum(map(is_right, mine))} right, {sum(map(is_wrong, mine))} wrong, "
              f"{sum(a['read'] and not a['opaque'] for a in mine)} with our own operators alone, {sum(map(has_our_sites, mine))} with all convolutions and products our own")
    if args.table:
        write_table(args.table, rows)
    sys.exit(0 if rows and all(is_right(a) and has_our_sites(a) for a in rows.values()) else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    e = commands.add_parser("export")
    e.add_argument("folder", type=pathlib.Path)
    e.add_argument("--sets", nargs="+", default=["torchvision", "timm", "segmentation", "transformers"])
    e.add_argument("--sizes", nargs="+", type=int, default=[224, 64])
    e.add_argument("--exporters", nargs="+", default=["dynamo", "script"])
    e.add_argument("--only", nargs="+", help="these names alone, in this order")
    c = commands.add_parser("check")
    c.add_argument("folder", type=pathlib.Path)
    c.add_argument("--loopegg", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/src/cli/loopegg"))
    c.add_argument("--compile", action="store_true", help="run the compiled network; otherwise the interpreter")
    c.add_argument("--go-on", action="store_true", help="leave out the models that DIR/checked.json lists")
    c.add_argument("--only", nargs="+", help="models with one of these in their names")
    c.add_argument("--table", type=pathlib.Path)
    args = parser.parse_args()
    (export if args.command == "export" else check)(args)


if __name__ == "__main__":
    main()
