"""Certificates of small networks as the engine wrote them, in tests/data/certificates.json: for each network, the files from which a folder of a run is made.

LOOPEGG_REGENERATE=1 runs the engine and writes them anew.
"""
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = ROOT / "tests/data/certificates.json"
CHECKER = ROOT / "checker"
RULES = [ROOT / "rules/discover.rules"]
sys.path[:0] = [str(CHECKER), str(HERE), str(ROOT / "tests/flow")]

# Small networks of each kind that certificates are about, as model.json has them.
def conv(name, source, out, kernel=3, **more):
    return {"name": name, "op": "conv2d", "inputs": [source], "attrs": {"out_channels": out, "kernel": [kernel] * 2, "padding": [kernel // 2] * 2, "bias": False, **more}}


def node(name, op, *inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})}


def model(name, shape, *nodes):
    return {"loopegg": 1, "name": name, "inputs": [{"name": "x", "shape": shape, "dtype": "float32"}], "nodes": list(nodes), "outputs": [nodes[-1]["name"]]}


def head(source, classes=10):
    return node("pool", "global_avg_pool", source), node("flat", "flatten", "pool"), node("fc", "linear", "flat", out_features=classes)


def residual():
    """Two stages of two blocks, with a projection."""
    nodes, last = [conv("stem", "x", 16), node("stem.relu", "relu", "stem")], "stem.relu"
    for i, (width, stride) in enumerate([(16, 1), (16, 1), (32, 2), (32, 1)]):
        b, short = f"block{i}", last
        nodes += [conv(f"{b}.conv1", last, width, stride=[stride] * 2), node(f"{b}.bn1", "batch_norm", f"{b}.conv1"), node(f"{b}.relu1", "relu", f"{b}.bn1"),
                  conv(f"{b}.conv2", f"{b}.relu1", width), node(f"{b}.bn2", "batch_norm", f"{b}.conv2")]
        if stride == 2:
            nodes.append(conv(f"{b}.project", last, width, 1, stride=[2, 2]))
            short = f"{b}.project"
        nodes += [node(f"{b}.add", "add", f"{b}.bn2", short), node(f"{b}.relu2", "relu", f"{b}.add")]
        last = f"{b}.relu2"
    return model("small-residual", [1, 3, 16, 16], *nodes, *head(last))


def dense():
    """A dense block: each layer joins all layers before it."""
    nodes, values = [conv("stem", "x", 16)], ["stem"]
    for i in range(3):
        source = values[0]
        if i:
            source = f"cat{i}"
            nodes.append(node(source, "concat", *values, axis=1))
        nodes += [node(f"bn{i}", "batch_norm", source), node(f"relu{i}", "relu", f"bn{i}"), conv(f"grow{i}", f"relu{i}", 16)]
        values.append(f"grow{i}")
    nodes += [node("cat", "concat", *values, axis=1), node("last.bn", "batch_norm", "cat"), conv("last", "last.bn", 32, 1), node("down", "avg_pool", "last", kernel=[2, 2])]
    return model("small-dense", [1, 3, 12, 12], *nodes, *head("down"))


def mobile():
    """Inverted bottlenecks: wide depthwise layers between narrow ones."""
    nodes, last = [conv("stem", "x", 16, stride=[2, 2]), node("stem.relu", "relu6", "stem")], "stem.relu"
    for i in range(2):
        b = f"block{i}"
        nodes += [conv(f"{b}.expand", last, 64, 1), node(f"{b}.relu1", "relu6", f"{b}.expand"), conv(f"{b}.depth", f"{b}.relu1", 64, groups=64),
                  node(f"{b}.relu2", "relu6", f"{b}.depth"), conv(f"{b}.project", f"{b}.relu2", 16, 1), node(f"{b}.add", "add", last, f"{b}.project")]
        last = f"{b}.add"
    return model("small-mobile", [1, 3, 16, 16], *nodes, *head(last))


def plain():
    """Convolutions, a pool and two linear layers over all places."""
    return model("small-plain", [1, 3, 8, 8], conv("a", "x", 16, bias=True), node("relu_a", "relu", "a"), node("down", "max_pool", "relu_a", kernel=[2, 2]),
                 conv("b", "down", 32), node("relu_b", "relu", "b"), node("flat", "flatten", "relu_b"), node("fc1", "linear", "flat", out_features=64),
                 node("relu_c", "relu", "fc1"), node("fc2", "linear", "relu_c", out_features=10))


def attention():
    """One block of a transformer on eight tokens: its heads are a tangle, and the layer between is a row."""
    def heads(which):
        return [node(f"{which}", "linear", "norm1", out_features=32), node(f"{which}.heads", "reshape", which, shape=[0, 0, 2, 16]),
                node(f"{which}.turned", "transpose", f"{which}.heads", order=[0, 2, 3, 1] if which == "k" else [0, 2, 1, 3])]
    nodes = [node("embed", "linear", "x", out_features=32), node("places", "parameter", shape=[1, 8, 32]), node("sum0", "add", "embed", "places"),
             node("norm1", "layer_norm", "sum0"), *heads("q"), *heads("k"), *heads("v"), node("scores", "matmul", "q.turned", "k.turned"),
             node("scaled", "scale", "scores", value=0.25), node("soft", "softmax", "scaled"), node("mixed", "matmul", "soft", "v.turned"),
             node("back", "transpose", "mixed", order=[0, 2, 1, 3]), node("flat", "reshape", "back", shape=[0, 0, 32]),
             node("out", "linear", "flat", out_features=32), node("sum1", "add", "sum0", "out"), node("norm2", "layer_norm", "sum1"),
             node("wide", "linear", "norm2", out_features=64), node("gelu", "gelu", "wide"), node("narrow", "linear", "gelu", out_features=32),
             node("sum2", "add", "sum1", "narrow"), node("mean", "reduce_mean", "sum2", axes=[1], keepdims=False), node("fc", "linear", "mean", out_features=10)]
    return model("small-attention", [1, 8, 24], *nodes)


MODELS = {made.__name__: made for made in (residual, dense, mobile, plain, attention)}


ANEW = set()    # what was written anew
JSON_FILES = ("original.json", "model.json", "result.json", "certificate.json", "network.json")
# What a checker reads of result.json.
RESULT = {"model": None, "returned": None, "original": ("macs", "parameters"), "optimized": ("macs", "parameters"), "guard": ("name", "measures", "loss"), "errors": None}


def program():
    """checker/__main__.py as a module, with all its modules loaded anew."""
    for file in CHECKER.glob("*.py"):
        sys.modules.pop(file.stem, None) if file.stem != "__main__" else None
    spec = importlib.util.spec_from_file_location("checker_program", CHECKER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def run_engine(name, folder):
    model, out = folder / f"{name}.json", folder / name
    model.write_text(json.dumps(MODELS[name]()))
    environment = dict(os.environ, LOOPEGG_STORE=str(folder / "l.sqlite"), LOOPEGG_EVIDENCE=str(folder / "e.sqlite"))
    subprocess.run([os.environ["LOOPEGG"], "optimize", str(model), "--target", "i7", "--max-loss", "3", "--trials", "1", "--tune-seconds", "5", "--finalists", "1",
                    "--out", str(out), "--quiet"], check=True, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return out


def record(name):
    with tempfile.TemporaryDirectory() as folder:
        out = run_engine(name, pathlib.Path(folder))
        files = {file: json.loads((out / file).read_text()) for file in JSON_FILES}
    result = files["result.json"]
    network = files["network.json"]     # of which the checker reads which loops each site runs
    files["network.json"] = {"steps": [{key: step[key] for key in ("site", "kernel")} for step in network["steps"]],
                             "kernels": [{"nest": kernel["nest"]} for kernel in network["kernels"]], "schedules": network["schedules"]}
    files["result.json"] = {key: {k: result[key][k] for k in keys} if keys else result[key] for key, keys in RESULT.items()}
    runs = json.loads(DATA.read_text()) | {name: files}
    lines = {run: ",\n".join(f" {json.dumps(file)}: {json.dumps(j)}" for file, j in files.items()) for run, files in runs.items()}
    DATA.write_text("{\n" + ",\n".join(f"{json.dumps(run)}: {{\n{text}}}" for run, text in lines.items()) + "\n}\n")


def recorded(name):
    """The JSON files of a run, by their names."""
    if os.environ.get("LOOPEGG_REGENERATE") and name not in ANEW:
        ANEW.add(name)
        record(name)
    return json.loads(DATA.read_text())[name]


def untransformed(model):
    """A network.json whose kernels run the sites of the model in their untransformed loops, and how these err; the model may be none."""
    graphs, nests, rounding = (sys.modules[name] for name in ("graphs", "nests", "rounding"))
    try:
        network = graphs.Network.read(model)
        sites = {node.name: nests.whole_nest(network.statement(node)) for node in network.nodes.values() if node.op in graphs.SITES}
    except Exception:   # of any kind: the checker says which
        sites = {}
    errors = {name: {**rounding.error_bound(nests.plain(nest.parts[0]), [nest], ()), "measured": None} for name, nest in sites.items()}
    return {"steps": [{"site": name, "kernel": i} for i, name in enumerate(sites)], "kernels": [{"nest": str(nest)} for nest in sites.values()],
            "schedules": {}}, errors


def write_run(folder, files, hashes=True):
    """A folder of a run with these JSON files. The others are of no consequence; `hashes`: the certificate states those that the files have."""
    certificate = files["certificate.json"]
    if "network.json" not in files:
        network, errors = untransformed(files["model.json"])
        files = {**files, "network.json": network, "result.json": {**files["result.json"], "errors": errors}}
        certificate["claims"]["errors"] = errors
    for name in files:
        if name != "certificate.json":
            (folder / name).write_text(json.dumps(files[name]))
    names = certificate.get("files")
    for name in names if isinstance(names, dict) else ():
        if name not in files:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        if hashes:
            certificate["files"][name] = sha256((folder / name).read_bytes())
    (folder / "certificate.json").write_text(json.dumps(certificate))
    return folder
