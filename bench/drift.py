"""Holds our lowering against TVM's own Python build of the same modules: the texts must be equal.

    build/bench/bench_drift FOLDER && PYTHONPATH=.deps/site python3 bench/drift.py FOLDER      (needs numpy)
"""
import json
import pathlib
import re
import sys

import tvm
import tvm_ffi
from tvm.ir import load_json

try:
    tvm_ffi.remove_global_func("tvm_callback_cuda_compile")  # text is compared, not machine code
except Exception:
    pass


def plain(text):
    """The text without mere names: without addresses in metadata and everything before a CUDA kernel's declaration."""
    text = re.sub(r'!"0x[0-9a-f]+', '!"PTR', text)
    return text[text.index('extern "C"'):].strip() if 'extern "C"' in text else text


folder = pathlib.Path(sys.argv[1])
equal, different = 0, []
for source in sorted(folder.glob("*.json")):
    options = json.loads(source.with_suffix(".target").read_text())
    host = tvm.target.Target({"kind": "llvm"}) if options["kind"] == "cuda" else None
    target = tvm.target.Target(options, host=host) if host else tvm.target.Target(options)
    with tvm.transform.PassContext(config={"tirx.disable_assert": True, "tirx.disable_storage_rewrite": options["kind"] != "cuda"}):
        built = tvm.tirx.build(load_json(source.read_text()), target=target, pipeline="s_tir")
    if options["kind"] == "cuda":
        theirs, ours = built.imports[0].inspect_source("cuda"), source.with_suffix(".cu").read_text()
    else:
        other = source.with_suffix(".python.ll")
        built.write_to_file(str(other), "ll")
        theirs, ours = other.read_text(), source.with_suffix(".ll").read_text()
    if plain(theirs) == plain(ours):
        equal += 1
    else:
        different.append(source.stem)
print(f"{equal} of {equal + len(different)} texts equal", *different)
sys.exit(1 if different else 0)
