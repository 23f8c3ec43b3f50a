"""A compiled network as a callable: NumPy arrays (or tensors) in, arrays (or tensors) out."""
from __future__ import annotations

import ctypes
import json
import math
import os
import pathlib
import shutil
import tempfile
import threading
from typing import Any, Union

import numpy

from ._errors import LoopeggError, UsageError

ABI = 2   # LOOPEGG_ABI of network.h
FILES = ("network.so", "network.json", "network.h", "weights.bin")
FLOATS = ctypes.POINTER(ctypes.c_float)


class _Context:
    """What one thread needs to run a network: memory for values, and helper threads."""

    def __init__(self, network: "Network", threads: int) -> None:
        self._network = network   # the library stays as long as its contexts
        self.address = ctypes.c_void_p(network._entry("create")(network._weights, threads))
        if not self.address:
            raise LoopeggError("cannot make a context of the network" + network._why(), str(network.folder))

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._network._entry("destroy")(self.address)


class Network:
    """A compiled network. Any number of threads may call it: each has a context of its own, and all share the weights.

    `inputs` and `outputs` are dictionaries from names to shapes, in order.
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"], threads: int = 0) -> None:
        """threads: how many threads one call may use; 0: as many as this process may use."""
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
            raise UsageError(f"threads is {threads!r}; expected a whole number, 0 for all processors")
        self.folder = pathlib.Path(folder).resolve()
        about = _read_about(self.folder)
        self.inputs: dict[str, tuple[int, ...]] = {i["name"]: tuple(i["shape"]) for i in about["inputs"]}
        self.outputs: dict[str, tuple[int, ...]] = {o["name"]: tuple(o["shape"]) for o in about["outputs"]}
        self._prefix, self._threads, self._mine = about["prefix"], threads, threading.local()
        try:
            self._library = _open_library(self.folder / "network.so")
        except OSError as e:
            raise LoopeggError(f"cannot load the library: {e}", str(self.folder / "network.so"), hint="a compiled network runs on the architecture of its target alone") from None
        self._entry("open").restype = self._entry("create").restype = ctypes.c_void_p
        self._weights = ctypes.c_void_p(self._entry("open")(os.fsencode(self.folder / "weights.bin")))
        if not self._weights:
            raise LoopeggError("cannot open the weights: the file is missing, or is not of this network" + self._why(), str(self.folder / "weights.bin"))

    def _entry(self, name: str) -> Any:
        return getattr(self._library, self._prefix + name)

    def _why(self) -> str:
        """What the library of a GPU says about the last failure of this thread."""
        if not hasattr(self._library, self._prefix + "error"):
            return ""
        self._entry("error").restype = ctypes.c_char_p
        return f" ({(self._entry('error')() or b'').decode(errors='replace')})"

    def _expected(self) -> str:
        return ", ".join(f"{name} {shape}" for name, shape in self.inputs.items())

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the network on float32 arrays, tensors, or whatever else speaks DLPack, by position or by the names of inputs. Returns one array, or a tuple where the
        network has several outputs; tensors of PyTorch where an input is one. Inputs that are float32, contiguous and aligned to 64 bytes are not copied, and
        outputs never are."""
        given = self._by_name(arrays, named)
        values = [_as_input(name, given[name], shape) for name, shape in self.inputs.items()]
        results = [_usable_array(shape) for shape in self.outputs.values()]
        if not hasattr(self._mine, "context"):
            self._mine.context = _Context(self, self._threads)
        # ctypes releases the interpreter's lock while the network runs.
        if self._entry("run")(self._mine.context.address, _addresses(values), _addresses(results)):
            raise LoopeggError("the network failed" + self._why(), str(self.folder))
        if any(_is_tensor(value) for value in given.values()):
            import torch
            results = [torch.from_numpy(result) for result in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _by_name(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        unknown = [name for name in named if name not in self.inputs]
        if unknown or len(arrays) + len(named) != len(self.inputs):
            wrong = f"no input is named '{unknown[0]}'" if unknown else f"{len(arrays) + len(named)} inputs were given"
            raise UsageError(f"{wrong}; the network takes {self._expected()}")
        return dict(zip((name for name in self.inputs if name not in named), arrays)) | named

    def save(self, folder: Union[str, "os.PathLike[str]"]) -> pathlib.Path:
        """Copies what `loopegg.load` and programs in C and C++ need into a folder, and returns its path."""
        to = pathlib.Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        if to.resolve() != self.folder:
            for name in FILES:
                new = to / (name + ".new")
                shutil.copy2(self.folder / name, new)
                new.replace(to / name)   # another process may have the old one loaded
        return to

    def __repr__(self) -> str:
        outputs = ", ".join(f"{name} {shape}" for name, shape in self.outputs.items())
        return f"<loopegg.Network {self._expected()} -> {outputs}>"

    def __del__(self) -> None:
        if getattr(self, "_weights", None):
            self._entry("close")(self._weights)   # freed with the last context


def load(folder: Union[str, "os.PathLike[str]"], threads: int = 0) -> Network:
    """The network that `loopegg optimize`, `loopegg compile` or `Network.save` left in a folder. Needs NumPy alone."""
    return Network(folder, threads)


def _read_about(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "network.json"
    try:
        about = json.loads(path.read_text())
    except OSError as e:
        raise LoopeggError(f"cannot read the description of the network: {e.strerror}", str(path),
                           hint="expected a folder that 'loopegg optimize' or 'loopegg compile' wrote") from None
    except ValueError as e:
        line, column = getattr(e, "lineno", None), getattr(e, "colno", None)
        raise LoopeggError(f"this is not JSON: {getattr(e, 'msg', e)}", str(path), line, column) from None
    if not isinstance(about, dict) or not {"abi", "prefix", "inputs", "outputs"} <= about.keys():
        raise LoopeggError("this does not describe a compiled network: expected the keys abi, prefix, inputs and outputs", str(path))
    if about["abi"] != ABI:
        raise LoopeggError(f"the network has ABI {about['abi']}, this package runs ABI {ABI}", str(path), hint="compile it again with this version of loopegg")
    return about


def _open_library(path: pathlib.Path) -> ctypes.CDLL:
    """Opens a library under a name of its own, because dlopen answers a name that it knows with what it loaded then, though the file may have been replaced."""
    with tempfile.TemporaryDirectory() as scratch:
        link = pathlib.Path(scratch, "network.so")
        link.symlink_to(path)
        return ctypes.CDLL(str(link))


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _as_input(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    if _is_tensor(value):
        value = value.detach().cpu()
    try:
        array = numpy.ascontiguousarray(_shared(value), dtype=numpy.float32)
    except (TypeError, ValueError) as e:
        raise UsageError(f"the input {name} is no array of numbers: {e}") from None
    if numpy.shape(value) != shape:
        raise UsageError(f"the input {name} has the shape {tuple(numpy.shape(value))}; expected {shape}")
    return array


def _shared(value: Any) -> Any:
    """The same memory as an array of NumPy, where DLPack can share it."""
    if isinstance(value, numpy.ndarray) or not hasattr(value, "__dlpack__"):
        return value
    try:
        return numpy.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):   # of another device, or of a type that NumPy lacks
        return value


def _usable_array(shape: tuple[int, ...]) -> Any:
    """An array that kernels write to directly: it begins at a multiple of 64 bytes, and its last page has 64 bytes more, because kernels use whole vectors."""
    count = math.prod(shape)
    memory = numpy.empty(4 * count + 192, numpy.uint8)
    begin = -memory.ctypes.data % 64
    if (memory.ctypes.data + begin + 4 * count - 1) % 4096 > 4095 - 64:
        begin += 64
    return memory[begin:begin + 4 * count].view(numpy.float32).reshape(shape)


def _addresses(arrays: list[Any]) -> Any:
    return (FLOATS * len(arrays))(*[array.ctypes.data_as(FLOATS) for array in arrays])
