"""The reference of commands is what the program's help says. LOOPEGG_REGENERATE=1 writes it anew."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
REGENERATE = os.environ.get("LOOPEGG_REGENERATE", "") not in ("", "0")


def the_reference_of_commands_is_what_the_help_says():
    done = subprocess.run([SOURCE / "setup/write-cli-reference", PROGRAM, *([] if REGENERATE else ["--check"])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


run_cases([the_reference_of_commands_is_what_the_help_says])
