#!/usr/bin/env python3
"""embed_text.py OUT.cpp HEADER FILE...: writes a C++ file with each text as a std::string_view named after the file (report.css -> report_css), as HEADER declares them."""
import pathlib
import sys

out, header, *files = sys.argv[1:]
code = f'#include "{header}"\n\nnamespace loopegg {{\n'
for name in map(pathlib.Path, files):
    # Raw strings have a length limit in the standard's eyes only; GCC and Clang take any.
    code += f'\nextern const std::string_view {name.name.replace(".", "_")} = R"~~~~({name.read_text(encoding="utf-8")})~~~~";\n'
pathlib.Path(out).write_text(code + "\n}  // namespace loopegg\n", encoding="utf-8")
