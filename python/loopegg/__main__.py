"""The command line: python -m loopegg COMMAND ..., and what the script `loopegg` of the package runs."""
import os
import sys

from ._errors import LoopeggError
from ._program import environment, program


def main() -> None:
    try:
        path, env = program(), environment()
    except LoopeggError as e:
        sys.exit(f"loopegg: {e}")
    os.execve(path, [path, *sys.argv[1:]], env)


if __name__ == "__main__":
    main()
