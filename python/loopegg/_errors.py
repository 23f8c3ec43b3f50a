"""The exceptions of the package, with the place in the file that was at fault."""
from __future__ import annotations

from typing import Any, Optional


class LoopeggError(Exception):
    """loopegg could not do it. `file`, `line` and `column` (from 1) say where, if a file was at fault, and `hint` what to do."""

    def __init__(self, message: str, file: Optional[str] = None, line: Optional[int] = None, column: Optional[int] = None, hint: Optional[str] = None) -> None:
        self.message, self.file, self.line, self.column, self.hint = message, file, line, column, hint
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__((f"{place}: " if place else "") + message + (f"\n  {hint}" if hint else ""))


class UsageError(LoopeggError, ValueError):
    """loopegg was called with arguments that it does not accept."""


class InternalFault(LoopeggError):
    """A fault of loopegg itself."""


def error_of(code: int, said: "dict[str, Any]") -> LoopeggError:
    """The exception for what the program or the engine said, and the exit code that goes with it."""
    kind = UsageError if code == 2 else InternalFault if code == 70 else LoopeggError
    return kind(said["message"], said.get("file"), said.get("line"), said.get("column"), said.get("hint"))
