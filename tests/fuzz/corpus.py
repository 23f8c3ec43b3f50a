"""Writes the seeds of tests/fuzz/corpus.json as files, DIR/READER/NAME: corpus.py DIR

A seed is a text, a list of lines, {"hex": bytes}, {"file": the path of a file of the tree}, or {"exported": an ONNX file in tests/data/onnx/exported.safetensors}.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def content(seed):
    if isinstance(seed, str):
        return seed.encode()
    if isinstance(seed, list):
        return "\n".join(seed).encode()
    if "hex" in seed:
        return bytes.fromhex(seed["hex"])
    return exported(seed["exported"]) if "exported" in seed else (ROOT / seed["file"]).read_bytes()


def exported(name):
    data = (ROOT / "tests/data/onnx/exported.safetensors").read_bytes()
    header = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:8 + header])[f"{name}.onnx"]["data_offsets"]
    return data[8 + header + begin:8 + header + end]


def unpack(folder):
    for reader, seeds in json.loads((HERE / "corpus.json").read_text()).items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        for name, seed in seeds.items():
            (folder / reader / name).write_bytes(content(seed))


if __name__ == "__main__":
    unpack(pathlib.Path(sys.argv[1]))
