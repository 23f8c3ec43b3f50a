"""Making a network faster, and what came of it: loopegg.optimize and the folder that it writes."""
from __future__ import annotations

import contextlib
import html
import json
import os
import pathlib
import runpy
import shutil
import tempfile
from typing import Any, Callable, Iterator, Optional, Union

import numpy

from ._errors import LoopeggError, UsageError
from ._network import Network
from ._program import Words, ask

Path = Union[str, "os.PathLike[str]"]
DATA_IMAGES = 4096   # of a loader that are written for the guard


class Run:
    """The folder of a run of `loopegg optimize`. `result` is the content of result.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = pathlib.Path(folder).resolve()
        path = self.folder / "result.json"
        try:
            self.result: dict[str, Any] = json.loads(path.read_text())
        except OSError as e:
            raise LoopeggError(f"cannot read the result of the run: {e.strerror}", str(path), hint="expected a folder that 'loopegg optimize' wrote") from None
        except ValueError as e:
            raise LoopeggError(f"this is not JSON: {getattr(e, 'msg', e)}", str(path), getattr(e, "lineno", None), getattr(e, "colno", None)) from None

    @property
    def speedup(self) -> float:
        """How many times as fast as the tuned original the returned network is."""
        return float(self.result["speedup"])

    @property
    def expected_loss(self) -> Optional[float]:
        """Points of accuracy that the returned network is expected to lose after training; None if the guard predicts no accuracy."""
        loss = self.result["guard"].get("loss")
        return None if loss is None else float(loss["points"])

    @property
    def sequences(self) -> dict[str, str]:
        """The sites that compute something else than before, with the sequence of rules that changed each of them."""
        return {site["name"]: site["sequence"] for site in self.result["sites"] if site["sequence"] != "dense"}

    def report(self) -> pathlib.Path:
        """The path of the page about this run, for a browser."""
        return self.folder / "report.html"

    def network(self, threads: int = 0) -> Network:
        """The returned network, compiled."""
        return Network(self.folder, threads)

    def _code(self) -> dict[str, Any]:
        try:
            import torch   # noqa: F401
        except ImportError:
            raise LoopeggError("the module of a network needs PyTorch", hint="pip install torch") from None
        return runpy.run_path(str(self.folder / "network.py"))

    def module(self) -> Any:
        """The returned network as a torch.nn.Module with its weights, in evaluation mode: call .train() before you train it."""
        return self._code()["load"]()

    def compile(self, trained: Any, threads: int = 0) -> Network:
        """Puts trained weights into the returned network, in every form of it in the folder, and returns it compiled. `trained`: what module() returned, after
        training, or the path of a .safetensors file. The kernels stay as they were measured."""
        if isinstance(trained, (str, os.PathLike)):
            ask(["adopt", self.folder, trained])
        elif callable(getattr(trained, "state_dict", None)):
            with tempfile.TemporaryDirectory() as scratch:
                file = pathlib.Path(scratch, "trained.safetensors")
                self._code()["save"](trained, file)
                ask(["adopt", self.folder, file])
        else:
            raise UsageError(f"compile takes the module of this run or the path of a .safetensors file, not {type(trained).__name__}")
        self.result = Run(self.folder).result
        return self.network(threads)

    def _rows(self) -> list[tuple[str, str]]:
        r, loss = self.result, self.expected_loss
        return [("network", f"{r['model']} on {r['target']}, batch {r['batch']}"), ("speedup", f"{self.speedup:.2f}x ({r['speedup_low']:.2f} to {r['speedup_high']:.2f})"),
                ("latency", f"{r['optimized']['median_ms']:.3g} ms; the original takes {r['original']['median_ms']:.3g} ms"),
                ("expected loss after training", "not predicted" if loss is None else f"{loss:.2f} points"), ("sites changed", f"{len(self.sequences)} of {len(r['sites'])}"),
                ("why", r["why"])]

    def __repr__(self) -> str:
        return f"<loopegg.Run {self.result['model']}: {self.speedup:.2f}x, {self.folder}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(value)}</td></tr>" for name, value in self._rows())
        return f"<table>{rows}</table><a href='{html.escape(self.report().as_uri(), quote=True)}'>report</a>"


def open_run(folder: Path) -> Run:
    """A run of `loopegg optimize` that is there already."""
    return Run(folder)


def optimize(model: Any, example_inputs: Any = None, *, data: Any = None, out: Path = "out", progress: Optional[Callable[[str], None]] = None, **options: Any) -> Run:
    """Makes a network faster, writes everything to the folder `out`, and returns the run.

    model: the path of an .onnx file or a model.json, zoo:NAME, a torch.export.ExportedProgram, or a torch.nn.Module, which needs `example_inputs` (a tensor, or a
        tuple of tensors).
    data: a folder of images, or batches of images and labels, such as a DataLoader. The first 4,096 images of batches are written to the folder OUT-data.
    progress: called with each line of progress; without it, progress is shown on a terminal and in a notebook.
    options: those of the command line, with underscores: max_loss=0.5, min_speedup=3, keep=["conv1"], strict_fp=True.
    """
    words = _words(options)
    if data is not None:
        words += [f"--data={os.fspath(data) if isinstance(data, (str, os.PathLike)) else _written(data, pathlib.Path(f'{os.fspath(out)}-data'))}"]
    with _model_file(model, example_inputs) as file:
        ask(["optimize", file, "--out", out, *words], progress)
    return Run(out)


def _words(options: dict[str, Any]) -> list[Any]:
    words: list[Any] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words += [flag] if value else []
        elif isinstance(value, (list, tuple)):
            words += [word for one in value for word in _word(flag, name, one)]
        elif value is not None:
            words += _word(flag, name, value)
    return words


def _word(flag: str, name: str, value: Any) -> Words:
    if not isinstance(value, (str, os.PathLike, int, float)):
        raise UsageError(f"the option {name} is {type(value).__name__}; expected text, a number, a path, or a list of these")
    return [f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def _written(batches: Any, folder: pathlib.Path) -> pathlib.Path:
    """Batches of images and labels as files that --data reads."""
    try:
        all_batches = iter(batches)
    except TypeError:
        raise UsageError(f"data is {type(batches).__name__}; expected a folder, or batches of images and labels") from None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    written = 0
    for number, batch in enumerate(all_batches):
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise UsageError(f"batch {number} of data is no pair of images and labels")
        images, labels = (numpy.asarray(part) for part in batch)
        if images.ndim < 2 or labels.shape != images.shape[:1]:
            raise UsageError(f"batch {number} of data has images of shape {images.shape} and labels of shape {labels.shape}; expected one label for each image")
        numpy.save(folder / f"images{number:05}.npy", images.astype(numpy.float32))
        numpy.save(folder / f"labels{number:05}.npy", labels.astype(numpy.int64))
        written += len(images)
        if written >= DATA_IMAGES:
            break
    if not written:
        raise UsageError("data has no batch")
    return folder.resolve()


@contextlib.contextmanager
def _model_file(model: Any, example_inputs: Any) -> Iterator[Path]:
    if isinstance(model, (str, os.PathLike)):
        if example_inputs is not None:
            raise UsageError("example_inputs go with a torch.nn.Module; the shapes of a file are in the file, or in shape=\"NAME=1x3x224x224\"")
        yield model
        return
    exported = hasattr(model, "graph_module") and hasattr(model, "module_call_graph")   # a torch.export.ExportedProgram
    if not exported and not callable(getattr(model, "named_parameters", None)):
        raise UsageError(f"the model is {type(model).__name__}; expected the path of a file, zoo:NAME, a torch.nn.Module, or a torch.export.ExportedProgram")
    if not exported and example_inputs is None:
        raise UsageError("a torch.nn.Module needs example_inputs: a tensor, or a tuple of tensors, of the shapes that it will run on")
    if exported and example_inputs is not None:
        raise UsageError("example_inputs go with a torch.nn.Module; an exported program has its own")
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch, f"{type(model).__name__}.onnx")
        _export(model, example_inputs if exported or isinstance(example_inputs, tuple) else (example_inputs,), file)
        yield file


def _export(model: Any, inputs: Optional[tuple[Any, ...]], file: pathlib.Path) -> None:
    """Writes a module or an exported program as ONNX by torch.export, with batch norms as they are, and leaves the mode of a module as it was."""
    try:
        import onnx, onnxscript, torch   # noqa: E401, F401
    except ImportError as e:
        raise LoopeggError(f"reading a network of PyTorch needs the package {e.name}", hint="pip install torch onnx onnxscript") from None
    training = getattr(model, "training", False)
    try:
        program = model if inputs is None else model.eval()
        exported = torch.onnx.export(program, inputs or (), dynamo=True, optimize=False, verbose=False)
        # What torch's own optimize=True does, without folding batch norms into convolutions.
        onnxscript.optimizer.fold_constants(exported.model)
        onnxscript.optimizer.remove_unused_nodes(exported.model)
        exported.model.graph.name = type(model).__name__
        exported.save(str(file), external_data=False)
    except Exception as e:
        raise LoopeggError(f"PyTorch cannot export the network: {e}") from e
    finally:
        if inputs is not None:
            model.train(training)
