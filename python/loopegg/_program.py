"""The program `loopegg`: where it is, and running its commands."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Any, Callable, Optional, Sequence, Union

from ._errors import LoopeggError, error_of

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi", "torch": "torch", "highspy": "highspy"}   # whose libraries the program opens
Words = Sequence[Union[str, "os.PathLike[str]", int, float]]


def program() -> str:
    """LOOPEGG_PROGRAM, or what this package brought, or the build of the clone that contains this file."""
    named = os.environ.get("LOOPEGG_PROGRAM")
    for path in (named, HERE / "_program/bin/loopegg", HERE.parent.parent / "build/src/cli/loopegg"):
        if path and os.access(path, os.X_OK):
            return str(path)
    raise LoopeggError("the program 'loopegg' is not here: this package was installed without it", hint="install the wheel, or name the program in LOOPEGG_PROGRAM")


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _folders() -> list[str]:
    """The folders that Python finds the packages in, which need not be the one that contains loopegg."""
    found: list[str] = []
    missing = [wheel for package, wheel in PACKAGES.items() if not _is_there(package)]
    if missing:
        raise LoopeggError(f"packages that loopegg needs are not installed: {', '.join(missing)}", hint="pip install them; 'pip check' shows in which versions")
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            folder = str(pathlib.Path(place).resolve().parent)
            if folder not in found:
                found.append(folder)
    return found


def environment() -> dict[str, str]:
    """What the program needs to find the packages if they are not next to it."""
    env = dict(os.environ)
    if not (HERE / "_program").exists():
        return env   # a clone: the build knows where its packages are
    folders = [folder for folder in _folders() if folder != str(HERE.parent)]
    if folders and "LOOPEGG_SITE" not in env:
        env["LOOPEGG_SITE"] = ":".join([*folders, str(HERE.parent)])
        libraries = [f"{folder}/{library}" for folder in folders for library in ("tvm_ffi/lib", "highspy", "torch/lib") if os.path.isdir(f"{folder}/{library}")]
        env["LD_LIBRARY_PATH"] = ":".join([*libraries, *filter(None, [env.get("LD_LIBRARY_PATH")])])
    return env


def _raise(code: int, answer: str, said: str) -> None:
    try:
        first = json.loads(answer)["errors"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        first = {"message": said.strip() or f"loopegg ended with {code}"}
    raise error_of(code, first)


def ask(words: Words, progress: Optional[Callable[[str], None]] = None, timeout: Optional[float] = None) -> Any:
    """Runs a command with --json, and gives its answer. Python's lock is free meanwhile. Ctrl-C ends the command as it does on a terminal (what was measured is
    kept), and raises KeyboardInterrupt. `progress` gets each line that the command shows; without it, a terminal or the cell of a notebook shows them."""
    shown: Any = subprocess.PIPE
    master = slave = -1
    progress = progress or _notebook_line()
    if progress:
        master, slave = os.openpty()   # a terminal of its own, so that the command shows its bar
        shown = slave
    elif sys.stderr is not None and _is_terminal():
        shown = None
    process = subprocess.Popen([program(), *map(str, words), "--json"], stdout=subprocess.PIPE, stderr=shown, stdin=subprocess.DEVNULL, env=environment(),
                               start_new_session=True)   # so that a Ctrl-C reaches it once, from here
    said: list[str] = []
    follower = None
    try:
        if progress:
            os.close(slave)
            follower = threading.Thread(target=_follow, args=(master, progress, said), daemon=True)
            follower.start()
        answer, error = process.communicate(timeout=timeout)
        said.append((error or b"").decode(errors="replace"))
    except BaseException:
        _end(process)
        raise
    finally:
        if follower:
            follower.join()   # it ends with the command, who has the other side of its terminal
            os.close(master)
    if process.returncode != 0:
        _raise(process.returncode, answer.decode(errors="replace"), "\n".join(said))
    return json.loads(answer)


def _is_terminal() -> bool:
    try:
        return os.isatty(sys.stderr.fileno())
    except (OSError, ValueError):   # a notebook's stream
        return False


def _notebook_line() -> Optional[Callable[[str], None]]:
    """Shows a line below the cell of a notebook in place of the one before; None where this is no notebook."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython.display import display   # type: ignore[import-not-found]
    handle = display({"text/plain": "loopegg"}, raw=True, display_id=True)
    return None if handle is None else lambda line: handle.update({"text/plain": line}, raw=True)


def _follow(terminal: int, progress: Callable[[str], None], said: list[str]) -> None:
    """Hands on what is shown on a terminal until nobody writes there any more."""
    rest = ""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:   # the last writer is gone
            return
        if not read:
            return
        *lines, rest = (rest + read.decode(errors="replace")).replace("\x1b[K", "").replace("\r", "\n").split("\n")
        for line in filter(None, map(str.strip, [*lines, rest])):
            progress(line)
        said[:] = [*said, *lines][-200:]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a command as Ctrl-C does, and waits for it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=60)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
