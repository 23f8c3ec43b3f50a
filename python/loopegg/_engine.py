"""The e-graph engine for terms and rules of your own: Rules, EGraph, and what a saturation reports. docs/how-to/python.md shows it."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import pathlib
import signal
import tempfile
import threading
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from ._errors import LoopeggError, error_of
from ._program import HERE, ask

Term = Union[str, int, Sequence[Any]]   # "(* x 2)", or ("*", "x", 2)
AFTER_ITERATION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.c_long)


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    installed = sorted((HERE / "_program").glob("lib*/**/libloopegg_engine.so"))
    path = installed[0] if installed else HERE.parent.parent / "build/src/library/libloopegg_engine.so"
    try:
        library = ctypes.CDLL(os.environ.get("LOOPEGG_ENGINE") or str(path))
    except OSError as e:
        raise LoopeggError(f"cannot load the engine: {e}", str(path), hint="install the wheel, or build it in a clone: ninja -C build engine") from None
    for name in ("engine_home", "rules_read", "egraph_create", "egraph_ask", "egraph_saturate"):
        getattr(library, f"loopegg_{name}").restype = ctypes.c_char_p
    library.loopegg_rules_free.restype = library.loopegg_egraph_free.restype = None
    if installed:
        _answer(library.loopegg_engine_home(os.fsencode(HERE / "_program/share/loopegg")))
    return library


def _answer(text: bytes) -> Any:
    said = json.loads(text)
    if "errors" in said:
        raise error_of(said["exit"], said["errors"][0])
    return said["answer"]


@contextlib.contextmanager
def _interrupt_noted(raised: list[BaseException]) -> Iterator[None]:
    """Notes Ctrl-C, which no exception can carry through a call of C, as what was raised. Only Python's main thread gets it, and only Python's own handler is replaced."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, lambda number, frame: raised.append(KeyboardInterrupt()))
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _text(term: Term) -> str:
    return "(" + " ".join(map(_text, term)) + ")" if isinstance(term, (tuple, list)) else str(term)


class Rules:
    """Rules, read and checked: `Rules("(rule mul-one (* ?a 1) => ?a)")`, or `Rules.read("my.rules")`. `names` and `phases` list what they contain."""

    def __init__(self, text: str, *, unproved: bool = False) -> None:
        self._read("<rules>", text, unproved)

    @classmethod
    def read(cls, file: Union[str, "os.PathLike[str]"], *, unproved: bool = False) -> "Rules":
        """The rules of a file."""
        rules = cls.__new__(cls)
        rules._read(os.fspath(file), None, unproved)
        return rules

    def _read(self, name: str, text: Optional[str], unproved: bool) -> None:
        self._handle = ctypes.c_void_p()
        about = _answer(_library().loopegg_rules_read(os.fsencode(name), None if text is None else text.encode(), int(unproved), ctypes.byref(self._handle)))
        self.texts: dict[str, str] = {rule["name"]: rule["text"] for rule in about["rules"]}
        self.phases: list[str] = about["phases"]

    @property
    def names(self) -> list[str]:
        return list(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"<loopegg.Rules: {', '.join(self.names[:8])}{', ...' if len(self) > 8 else ''}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library().loopegg_rules_free(self._handle)


@dataclass(frozen=True)
class Saturation:
    """How a run of the rules ended: `stop` is saturated, iterations, nodes, seconds, bytes or cancelled; `applications` counts those that changed the e-graph."""

    stop: str
    iterations: int
    seconds: float
    applications: dict[str, int]


@dataclass(frozen=True)
class Extracted:
    """A term that an e-graph says is equal, and its cost."""

    term: str
    cost: float

    def __str__(self) -> str:
        return self.term


@dataclass(frozen=True)
class Proof:
    """Why two terms are equal: `str(proof)` has a line for each step, `steps` has them as data (rule, place, substitution)."""

    text: str
    steps: list[dict[str, Any]]

    def __str__(self) -> str:
        return self.text


class EGraph:
    """Terms, and what `rules` say is equal among them. A term is text, `"(* x 2)"`, or a tuple, `("*", "x", 2)`.

    One thread at a time may call an e-graph. Python's lock is released while it works, and Ctrl-C ends a saturation after its iteration.
    """

    def __init__(self, rules: Rules, *, proofs: bool = True) -> None:
        """proofs: keep the reason of every equality, so that `explain` can answer."""
        self.rules = rules
        self._handle = ctypes.c_void_p()
        _answer(_library().loopegg_egraph_create(rules._handle, int(proofs), ctypes.byref(self._handle)))

    def _ask(self, what: str, **given: Any) -> Any:
        return _answer(_library().loopegg_egraph_ask(self._handle, json.dumps({"do": what, **given}).encode()))

    def add(self, term: Term) -> int:
        """Adds a term, and returns the number of its class."""
        return int(self._ask("add", term=_text(term)))

    def merge(self, a: Term, b: Term, why: str = "asserted") -> bool:
        """States that two terms are equal. Returns whether that was news; `why` appears in proofs."""
        return bool(self._ask("merge", terms=[_text(a), _text(b)], why=why))

    def equal(self, a: Term, b: Term) -> bool:
        """Whether two terms of the e-graph are known to be equal."""
        return bool(self._ask("equal", terms=[_text(a), _text(b)]))

    def saturate(self, *, iterations: Optional[int] = None, nodes: Optional[int] = None, seconds: Optional[float] = None, scheduler: Optional[str] = None,
                 phase: Optional[str] = None, progress: Optional[Callable[[int, int], None]] = None) -> Saturation:
        """Applies the rules until nothing changes or a limit is met (30 iterations and 10 million nodes unless you say otherwise).

        scheduler: "simple", or "backoff", which lets busy rules rest. phase: the sets of rules and the limits of this phase alone.
        progress: called after each iteration with the numbers of nodes and classes.
        """
        raised: list[BaseException] = []

        def after(node_count: int, class_count: int) -> int:
            try:
                if progress and not raised:
                    progress(node_count, class_count)
            except BaseException as e:
                raised.append(e)
            return int(not raised)

        limits = {"iterations": iterations, "nodes": nodes, "seconds": seconds, "scheduler": scheduler, "phase": phase}
        options = json.dumps({name: value for name, value in limits.items() if value is not None}).encode()
        with _interrupt_noted(raised):
            report = _library().loopegg_egraph_saturate(self._handle, options, AFTER_ITERATION(after))
        if raised:
            raise raised[0]
        return Saturation(**_answer(report))

    def extract(self, term: Term, costs: Optional[Mapping[str, float]] = None, *, method: str = "tree", timeout: float = 10) -> Extracted:
        """The cheapest term that is equal to `term`. `costs` are those of operators; others cost 1.

        method: "tree" counts shared parts each time. "greedy-dag" and "ilp" count them once: the latter finds the least cost if `timeout` seconds suffice.
        """
        if method == "tree":
            return Extracted(**self._ask("extract", term=_text(term), costs=dict(costs or {})))
        graph = self._ask("serialize", term=_text(term))
        for node in graph["nodes"].values():
            node["cost"] = (costs or {}).get(node["op"], 1)
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch, "egraph.json")
            file.write_text(json.dumps(graph))
            found = ask(["extract", file, "--method", method, "--seconds", timeout])
        return Extracted(_chosen(graph, found["choice"]), found["cost"])

    def explain(self, a: Term, b: Term) -> Proof:
        """The proof that two terms are equal."""
        proof = self._ask("explain", terms=[_text(a), _text(b)])
        return Proof(proof["text"], proof["proof"]["steps"])

    @property
    def node_count(self) -> int:
        return int(self._ask("size")["nodes"])

    @property
    def class_count(self) -> int:
        return int(self._ask("size")["classes"])

    def __repr__(self) -> str:
        size = self._ask("size")
        return f"<loopegg.EGraph: {size['nodes']} nodes, {size['classes']} classes>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library().loopegg_egraph_free(self._handle)


def _chosen(graph: dict[str, Any], choice: dict[str, str]) -> str:
    """The term of the first root, written out. Children are settled before their parents, without recursion."""
    nodes, done = graph["nodes"], {}
    waiting = [graph["root_eclasses"][0]]
    while waiting:
        eclass = waiting[-1]
        node = nodes[choice[eclass]]
        children = [nodes[child]["eclass"] for child in node["children"]]
        missing = [child for child in children if child not in done]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        done[eclass] = "(" + " ".join([node["op"], *(done[child] for child in children)]) + ")" if children else node["op"]
    return done[graph["root_eclasses"][0]]
