"""The Python module as a user calls it: optimize a network, call what was compiled, bring trained weights back, and read what went wrong."""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest.mock

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
PEERS = pathlib.Path(os.environ.get("LOOPEGG_PEERS", ROOT / ".deps/peers")) / "bin/python3"
sys.path[:0] = [str(HERE.parent.parent), str(ROOT / "python")]
from cases import Lacking, run_cases   # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
    if PEERS.exists() and sys.executable != str(PEERS):
        os.execv(PEERS, [str(PEERS), "-I", *sys.argv])
import loopegg   # noqa: E402

os.environ["LOOPEGG_PROGRAM"], os.environ["LOOPEGG_ENGINE"] = map(os.path.abspath, sys.argv[1:3])
FOLDER = tempfile.TemporaryDirectory()
HOME = pathlib.Path(FOLDER.name)
os.environ.update(LOOPEGG_STORE=f"{HOME}/latency.sqlite", LOOPEGG_EVIDENCE=f"{HOME}/evidence.sqlite")
TINY = ROOT / "examples/tiny-residual.json"
SHORT = {"trials": 2}
runs = {}


def returned():
    """A run that all cases share."""
    if numpy is None:
        raise Lacking("there is no NumPy")
    if "tiny" not in runs:
        runs["tiny"] = loopegg.optimize(TINY, out=HOME / "out", max_loss=20, **SHORT)
    return runs["tiny"]


def pytorch():
    returned()
    try:
        import torch
    except ImportError:
        raise Lacking("there is no PyTorch") from None
    return torch


def exporter(*more):
    for package in ("onnxscript", *more):
        if importlib.util.find_spec(package) is None:
            raise Lacking(f"there is no {package}")


def image(seed=1):
    return numpy.random.default_rng(seed).standard_normal((1, 3, 16, 16), dtype=numpy.float32)


def interpreted(model, x):
    """What the program's own interpreter says about an input."""
    numpy.save(HOME / "x.npy", x)
    subprocess.run([os.environ["LOOPEGG_PROGRAM"], "run", model, "--input", HOME / "x.npy", "--output", HOME / "y.npy", "-q"], check=True, capture_output=True, timeout=120)
    return numpy.load(HOME / "y.npy")


def close(a, b):
    return a.shape == b.shape and bool(numpy.all(numpy.abs(a - b) <= 1e-3 * numpy.abs(b).max()))


def raised(kind, call):
    """The exception of this very kind that a call raises."""
    try:
        call()
    except loopegg.LoopeggError as e:
        assert type(e) is kind, (type(e), e)
        return e
    raise AssertionError(f"nothing was raised; expected {kind.__name__}")


def a_run_has_the_figures_of_its_folder():
    run = returned()
    result = json.loads((run.folder / "result.json").read_text())
    assert run.speedup == result["speedup"] and run.expected_loss == result["guard"]["loss"]["points"] and result["returned"] == "optimized"
    assert run.sequences and set(run.sequences) <= {site["name"] for site in result["sites"]} and run.report().is_file()
    assert f"{run.speedup:.2f}x" in run._repr_html_() and loopegg.open_run(run.folder).result == run.result


def the_compiled_network_gives_what_the_interpreter_gives():
    network, x = returned().network(), image()
    assert network.inputs == {"x": (1, 3, 16, 16)} and list(network.outputs.values()) == [(1, 10)]
    wanted = interpreted(returned().folder / "model.json", x)
    assert close(network(x), wanted) and close(network(x=x), wanted) and close(network(x.astype(numpy.float64)), wanted)
    assert close(network(numpy.asfortranarray(x)), wanted) and not close(network(image(2)), wanted)


def threads_share_a_network():
    network, images = returned().network(threads=1), [image(seed) for seed in range(8)]
    wanted, wrong = [network(x) for x in images], []

    def call(k):
        for _ in range(50):
            if not close(network(images[k]), wanted[k]):
                wrong.append(k)

    callers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong, wrong


def a_saved_network_is_loaded_elsewhere_without_torch():
    network, x = returned().network(), image()
    network.save(HOME / "net")
    numpy.save(HOME / "net.npy", x)
    script = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import loopegg, numpy; "
              f"numpy.save({str(HOME / 'answer.npy')!r}, loopegg.load({str(HOME / 'net')!r})(numpy.load({str(HOME / 'net.npy')!r}))); assert 'torch' not in sys.modules")
    subprocess.run([sys.executable, "-I", "-c", script], check=True, timeout=120, env={"PATH": "/usr/bin:/bin"})
    assert numpy.array_equal(numpy.load(HOME / "answer.npy"), network(x))


def trained_weights_come_back():
    torch, run = pytorch(), loopegg.optimize(TINY, out=HOME / "trained", max_loss=20, **SHORT)
    before, student, x = run.network(), run.module(), torch.from_numpy(image())
    with torch.no_grad():
        assert close(before(x).numpy(), student(x).numpy())
        for values in student.parameters():
            values.mul_(1.25)
        wanted = student(x).numpy()
    old = before(x).numpy()
    after = run.compile(student)
    assert close(after(x).numpy(), wanted) and not close(after(x).numpy(), old) and numpy.array_equal(before(x).numpy(), old)
    assert "adopted" in run.result and close(run.network()(x).numpy(), wanted)


def a_module_of_pytorch_is_read_with_its_batch_norms():
    torch = pytorch()
    exporter()
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(16),
                          nn.Flatten(), nn.Linear(16, 10)).train()
    x = torch.from_numpy(image())
    run = loopegg.optimize(model, x, out=HOME / "module", rules="exact", **SHORT)
    assert model.training
    with torch.no_grad():
        wanted = model.eval()(x).numpy()
        assert close(run.network()(x).numpy(), wanted) and close(run.module()(x).numpy(), wanted)
    assert any(isinstance(m, nn.BatchNorm2d) for m in run.module().modules())


def fence(page, starts_with):
    """The code of a page that begins with a line."""
    return next(code for code in re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / page).read_text()) if starts_with in code)


def readme_takes_a_module_to_a_trained_one_and_back():
    torch = pytorch()
    exporter("torchvision")
    nn = torch.nn
    tiny = nn.Sequential(nn.Conv2d(3, 16, 7, stride=4, padding=3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(4), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    loader = [(torch.randn(4, 3, 224, 224), torch.randint(0, 10, (4,))) for _ in range(2)]
    code = fence("README.md", "import loopegg, torch, torchvision").replace("max_loss=0.5", f"max_loss=20, data=loader, out={str(HOME / 'readme')!r}, trials=2")

    def train(student, batches):
        optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
        for images, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(student(images), labels).backward()
            optimizer.step()

    names = {"loader": loader, "train": train}
    with unittest.mock.patch("torchvision.models.resnet18", lambda weights: tiny), contextlib.chdir(HOME):
        exec(code, names)
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        wanted = names["student"].eval()(x)
    names["fast"].save(HOME / "readme-net")
    assert close(names["fast"](x).numpy(), wanted.numpy()) and close(loopegg.load(HOME / "readme-net")(x.numpy()), wanted.numpy())
    written = [numpy.load(file) for file in sorted((HOME / "readme-data").glob("images*.npy"))]
    assert len(written) == 2 and all(numpy.array_equal(of, images.numpy()) for of, (images, _) in zip(written, loader))


def an_exported_program_is_read():
    torch = pytorch()
    exporter()
    model, x = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10)).eval(), torch.from_numpy(image())
    run = loopegg.optimize(torch.export.export(model, (x,)), out=HOME / "exported", rules="exact", **SHORT)
    with torch.no_grad():
        assert close(run.network()(x).numpy(), model(x).numpy())


def data_that_is_no_batch_is_refused():
    returned()
    for wrong, said in [(3, "expected a folder"), ([image()], "no pair"), ([(image(), numpy.zeros(2))], "one label for each image"), ([], "no batch")]:
        assert said in str(raised(loopegg.UsageError, lambda: loopegg.optimize(TINY, out=HOME / "no-data", data=wrong))), wrong


def memory_is_shared_by_dlpack():
    from loopegg._network import _as_input, _usable_array
    network, shape = returned().network(), (1, 3, 16, 16)

    class Lent:
        """What another framework lends: DLPack's interface alone."""
        def __init__(self, array):
            self.array, self.shape = array, array.shape
        def __dlpack__(self, **more):
            return self.array.__dlpack__(**more)
        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = image()
    assert _as_input("x", Lent(x), shape).ctypes.data == x.ctypes.data and numpy.array_equal(network(Lent(x)), network(x))
    results = [_usable_array((1, n)) for n in range(1, 3000, 7)]
    for result in results:
        last = result.ctypes.data + result.nbytes - 1
        assert result.ctypes.data % 64 == 0 and last % 4096 <= 4095 - 64 and result.ctypes.data + result.nbytes <= result.base.ctypes.data + result.base.nbytes + 64
    tensor = pytorch().from_numpy(x)
    assert _as_input("x", tensor, shape).ctypes.data == tensor.data_ptr()


def a_notebook_shows_progress_below_its_cell():
    returned()
    shown = []
    handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
    display = types.SimpleNamespace(display=lambda data, raw, display_id: handle)
    with unittest.mock.patch.dict(sys.modules, {"ipykernel": types.ModuleType("ipykernel"), "IPython": types.ModuleType("IPython"), "IPython.display": display}):
        loopegg.optimize(TINY, out=HOME / "notebook", rules="exact", **SHORT)
    assert shown and all(isinstance(line, str) for line in shown), shown


def the_engine_s_page_runs():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(fence("docs/how-to/python.md", "loopegg.Rules("), {})
    lines = said.getvalue().splitlines()
    assert lines[:2] == ["saturated", "x"] and any("cancel-div" in line for line in lines[2:]), lines


def the_engine_extracts_by_cost_and_by_integer_program():
    rules = loopegg.Rules.read(ROOT / "rules/math.rules")
    graph = loopegg.EGraph(rules)
    graph.add(("+", ("*", 2, "x"), ("*", 2, "y")))
    report = graph.saturate(iterations=4, progress=lambda nodes, classes: None)
    assert report.stop == "saturated" and report.applications["factor"] > 0 and graph.equal("(* 2 (+ x y))", "(+ (* 2 x) (* 2 y))")
    dear = graph.extract("(+ (* 2 x) (* 2 y))", {"*": 10})
    assert dear.term.count("*") == 1 and dear.cost == 14 and str(dear) == dear.term
    assert graph.extract("(+ (* 2 x) (* 2 y))", {"*": 10}, method="ilp").cost == 14
    assert "distribute" in str(graph.explain("(+ (* 2 x) (* 2 y))", "(* 2 (+ x y))")) or "factor" in str(graph.explain("(+ (* 2 x) (* 2 y))", "(* 2 (+ x y))"))
    assert graph.merge("x", "z", "we said so") and not graph.merge("x", "z") and graph.equal("x", "z") and "we said so" in str(graph.explain("x", "z"))


def the_engine_s_errors_have_a_place():
    e = raised(loopegg.LoopeggError, lambda: loopegg.Rules("(rule a (* ?a 1) => ?a)\n(rule b (* ?a 1) => ?c)"))
    assert (e.file, e.line) == ("<rules>", 2) and e.column and "?c" in e.message, vars(e)
    graph = loopegg.EGraph(loopegg.Rules("(rule a (* ?a 1) => ?a)"), proofs=False)
    assert raised(loopegg.LoopeggError, lambda: graph.add("(* x")).line == 1
    assert "not in the e-graph" in str(raised(loopegg.LoopeggError, lambda: graph.extract("y")))
    assert "no phase" in str(raised(loopegg.LoopeggError, lambda: graph.saturate(phase="tune")))
    assert "backoff" in str(raised(loopegg.LoopeggError, lambda: graph.saturate(scheduler="quick")))
    assert "inside" in str(raised(loopegg.UsageError, lambda: (graph.add("(* x 1)"), graph.saturate(progress=lambda n, c: graph.add("z")))))


def an_interrupt_ends_a_saturation():
    script = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import loopegg\n"
              f"graph = loopegg.EGraph(loopegg.Rules.read({str(ROOT / 'rules/math.rules')!r}), proofs=False)\n"
              "graph.add('(i (* (sin x) (* x (+ x (cos x)))) x)')\ntry:\n"
              "    graph.saturate(iterations=1000, progress=lambda n, c: print('line', flush=True))\n"
              "except KeyboardInterrupt:\n    print('interrupted', graph.node_count > 0, flush=True)\n")
    user = subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert user.stdout.readline() == "line\n"
    user.send_signal(signal.SIGINT)
    said, _ = user.communicate(timeout=300)
    assert said.endswith("interrupted True\n") and user.returncode == 0, (said, user.returncode)


def wrong_inputs_are_refused_by_name():
    network, x = returned().network(), image()
    assert "(1, 3, 16, 17); expected (1, 3, 16, 16)" in str(raised(loopegg.UsageError, lambda: network(numpy.ones((1, 3, 16, 17)))))
    assert "the network takes x" in str(raised(loopegg.UsageError, lambda: network()))
    assert "'y'" in str(raised(loopegg.UsageError, lambda: network(y=x)))
    assert "no array of numbers" in str(raised(loopegg.UsageError, lambda: network("an image")))
    assert "threads" in str(raised(loopegg.UsageError, lambda: returned().network(threads=-1)))


def broken_folders_are_refused_by_file():
    returned().network().save(HOME / "broken")
    about, file = HOME / "broken/network.json", str(HOME / "broken/network.json")
    text = about.read_text()
    for damaged, said in [("{\n \"abi\": }", "not JSON"), ("{}", "expected the keys"), (text.replace('"abi": 2', '"abi": 1'), "ABI 1")]:
        about.write_text(damaged)
        e = raised(loopegg.LoopeggError, lambda: loopegg.load(HOME / "broken"))
        assert said in str(e) and e.file == file and (e.line, e.column) == ((2, 9) if said == "not JSON" else (None, None)), e
    about.write_text(text)
    weights = HOME / "broken/weights.bin"
    weights.write_bytes(weights.read_bytes()[:-8])
    assert raised(loopegg.LoopeggError, lambda: loopegg.load(HOME / "broken")).file == str(weights)
    (HOME / "broken/network.so").write_bytes(b"no library")
    assert "network.so" in raised(loopegg.LoopeggError, lambda: loopegg.load(HOME / "broken")).file
    assert "loopegg optimize" in raised(loopegg.LoopeggError, lambda: loopegg.open_run(HOME / "nowhere")).hint


def errors_of_the_program_are_exceptions_with_a_place():
    (HOME / "bad.rules").write_text("(rule one\n  (frobnicate ?x) => ?y)\n")
    e = raised(loopegg.LoopeggError, lambda: loopegg.optimize(TINY, out=HOME / "bad", rules=HOME / "bad.rules", **SHORT))
    assert e.file.endswith("bad.rules") and e.line and e.column, vars(e)
    assert "nowhere.onnx" in str(raised(loopegg.LoopeggError, lambda: loopegg.optimize(HOME / "nowhere.onnx")))
    assert "--bogus" in str(raised(loopegg.UsageError, lambda: loopegg.optimize(TINY, bogus=3)))
    assert "max_loss is dict" in str(raised(loopegg.UsageError, lambda: loopegg.optimize(TINY, max_loss={})))
    assert "int" in str(raised(loopegg.UsageError, lambda: loopegg.optimize(3)))


def progress_is_reported_line_by_line():
    returned()
    lines = []
    loopegg.optimize(TINY, out=HOME / "progress", rules="exact", progress=lines.append, **SHORT)
    assert lines and all(line.strip() and "\r" not in line and "\x1b" not in line for line in lines), lines


def an_interrupt_ends_the_program():
    returned()
    script = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import loopegg\ntry:\n"
              f"    loopegg.optimize('zoo:resnet34-cifar10', out={str(HOME / 'long')!r}, progress=lambda line: print('line', flush=True))\n"
              "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n")
    user = subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))   # a test in the background is started with it ignored
    assert user.stdout.readline() == "line\n"
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(user.pid)], capture_output=True, text=True).stdout.split()
    user.send_signal(signal.SIGINT)
    said, _ = user.communicate(timeout=120)
    assert said.endswith("interrupted\n") and user.returncode == 0, (said, user.returncode)
    assert children and not any(pathlib.Path("/proc", child).exists() for child in children), children


run_cases([a_run_has_the_figures_of_its_folder, the_compiled_network_gives_what_the_interpreter_gives, threads_share_a_network,
           a_saved_network_is_loaded_elsewhere_without_torch, trained_weights_come_back, a_module_of_pytorch_is_read_with_its_batch_norms,
           readme_takes_a_module_to_a_trained_one_and_back, an_exported_program_is_read, data_that_is_no_batch_is_refused, memory_is_shared_by_dlpack,
           a_notebook_shows_progress_below_its_cell, the_engine_s_page_runs, the_engine_extracts_by_cost_and_by_integer_program, the_engine_s_errors_have_a_place,
           an_interrupt_ends_a_saturation, wrong_inputs_are_refused_by_name, broken_folders_are_refused_by_file, errors_of_the_program_are_exceptions_with_a_place,
           progress_is_reported_line_by_line, an_interrupt_ends_the_program], "python: ")
