"""A page shows a program of examples/ and the output of that program. Both must be as the page says.

    example_on_page.py PAGE SOURCE.cpp PROGRAM
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

PAGE, SOURCE, PROGRAM = (pathlib.Path(a).resolve() for a in sys.argv[1:4])


def close_together(text):
    return re.sub(r"\s+", "", text)


def the_page_s_code_is_in_the_program():
    shown = re.search(r"(?ms)^```cpp\n(.*?)^```", PAGE.read_text())[1]
    assert close_together(shown) in close_together(SOURCE.read_text()), f"{PAGE} shows other code than {SOURCE}"


def the_program_prints_what_the_page_says():
    printed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    expected = "".join("    " + line + "\n" for line in printed.splitlines())
    assert expected in PAGE.read_text(), f"{PROGRAM.name} prints\n{printed}and {PAGE} says otherwise"


run_cases([the_page_s_code_is_in_the_program, the_program_prints_what_the_page_says])
