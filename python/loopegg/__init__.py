"""Makes neural networks faster by rewriting them.

    import loopegg
    run = loopegg.optimize("model.onnx", max_loss=0.5)     # or a torch.nn.Module with example_inputs=, or zoo:NAME
    run.speedup, run.expected_loss, run.sequences
    fast = run.network()                                   # a callable on NumPy arrays and tensors
    fast(x)
    student = run.module()                                 # a torch.nn.Module that trains like any other
    fast = run.compile(student)                            # the compiled network with the trained weights
    fast.save("net"); loopegg.load("net")                  # elsewhere, without torch

    graph = loopegg.EGraph(loopegg.Rules("(rule mul-one (* ?a 1) => ?a)"))   # the engine, for terms of your own

docs/how-to/python.md shows all of it.
"""
from typing import TYPE_CHECKING, Any

from ._errors import InternalFault, LoopeggError, UsageError
from ._version import __version__

if TYPE_CHECKING:
    from ._engine import EGraph, Extracted, Proof, Rules, Saturation
    from ._network import Network, load
    from ._run import Run, open_run, optimize

_WHERE = {"Network": "_network", "load": "_network", "Run": "_run", "open_run": "_run", "optimize": "_run",
          **dict.fromkeys(("EGraph", "Extracted", "Proof", "Rules", "Saturation"), "_engine")}
__all__ = ["EGraph", "Extracted", "InternalFault", "LoopeggError", "Network", "Proof", "Rules", "Run", "Saturation", "UsageError", "__version__", "load",
           "open_run", "optimize"]


def __getattr__(name: str) -> Any:
    """Imports NumPy and the rest of the package on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module 'loopegg' has no attribute '{name}'")
    import importlib
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
