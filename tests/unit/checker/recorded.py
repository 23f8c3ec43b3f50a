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
from models import MODELS   # noqa: E402

ANEW = set()    # what was written anew
JSON_FILES = ("original.json", "model.json", "result.json", "certificate.json", "network.json")
# What a checker reads of result.json.
RESULT = {"model": None, "returned": None, "original": ("macs", "parameters"), "optimized": ("macs", "parameters"), "guard": ("name", "measures", "loss")}


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
                             "kernels": [{"nest": kernel["nest"]} for kernel in network["kernels"]]}
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
    """A network.json whose kernels run the sites of the model in their untransformed loops; the model may be none."""
    graphs, nests = sys.modules["graphs"], sys.modules["nests"]
    try:
        network = graphs.Network.read(model)
        sites = {node.name: str(nests.whole_nest(network.statement(node))) for node in network.nodes.values() if node.op in graphs.SITES}
    except Exception:   # of any kind: the checker says which
        sites = {}
    return {"steps": [{"site": name, "kernel": i} for i, name in enumerate(sites)], "kernels": [{"nest": nest} for nest in sites.values()]}


def write_run(folder, files, hashes=True):
    """A folder of a run with these JSON files. The others are of no consequence; `hashes`: the certificate states those that the files have."""
    certificate = files["certificate.json"]
    files = {"network.json": untransformed(files["model.json"]), **files}
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
