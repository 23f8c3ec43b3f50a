"""Writes the seeds of tests/fuzz/corpus.json as files, DIR/READER/NAME: corpus.py DIR

A seed is a text, a list of lines, {"hex": bytes}, or {"file": the path of a file of the tree}.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def content(seed):
    if isinstance(seed, str):
        return seed.encode()
    if isinstance(seed, list):
        return "\n".join(seed).encode()
    return bytes.fromhex(seed["hex"]) if "hex" in seed else (HERE.parent.parent / seed["file"]).read_bytes()


def unpack(folder):
    for reader, seeds in json.loads((HERE / "corpus.json").read_text()).items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        for name, seed in seeds.items():
            (folder / reader / name).write_bytes(content(seed))


if __name__ == "__main__":
    unpack(pathlib.Path(sys.argv[1]))
