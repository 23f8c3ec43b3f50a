"""Roundings that a user allows: each site has its own precision, the most sensitive sites keep float32, and what roundings lose is taken from --max-loss."""
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import expect_certified, run_cases

LOOPEGG = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = tempfile.TemporaryDirectory()
HOME = pathlib.Path(FOLDER.name)
# A machine that is estimated alone: its units multiply so fast that every site that can uses one. Its code is plain arithmetic that rounds as they do.
UNITS = [{"instruction": "plain", "operands": kind, "rows": 16, "columns": 16, "depth": 16 * packed, "packed": packed, "tiles": 8, "cycles": 2, "latency": 4, "load": 1}
         for kind, packed in (("bf16", 2), ("int8", 4))]
i7 = json.loads((ROOT / "backends/targets/i7.json").read_text())
(HOME / "targets").mkdir()
(HOME / "targets/paper.json").write_text(json.dumps({**i7, "name": "paper", "machine": {**i7["machine"], "units": UNITS}}))
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", LOOPEGG_EVIDENCE=FOLDER.name + "/evidence.sqlite", LOOPEGG_TARGETS=FOLDER.name + "/targets")


def run(*words, code=0):
    done = subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, timeout=300, cwd=FOLDER.name)
    assert done.returncode == code, (words, done.returncode, done.stdout[-800:], done.stderr[-1500:])
    return done.stdout if code == 0 else done.stderr


def npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("f", values).tobytes())


def images(folder, pixel, n=96):
    """Images of 16 channels whose brightness is their class."""
    (HOME / folder).mkdir()
    npy(HOME / folder / "images.npy", (n, 16, 16, 16), [pixel(i, p) for i in range(n) for p in range(16 * 256)])
    npy(HOME / folder / "labels.npy", (n,), [i % 2 for i in range(n)])
    return HOME / folder


def model():
    """Wide enough for units, with weights of its own: those that a first run drew."""
    file = HOME / "drawn/model.json"
    if not file.exists():
        wide = json.loads((ROOT / "examples/tiny-residual.json").read_text())
        wide["inputs"][0]["shape"] = [1, 16, 16, 16]
        for node in wide["nodes"]:
            if node["op"] == "conv2d":
                node["attrs"]["out_channels"] = 32
        (HOME / "wide.json").write_text(json.dumps(wide))
        run("optimize", "wide.json", "--target", "paper", "--rules", "exact", "--trials", 2, "--out", "drawn", "-q")
        images("data", lambda i, p: (-1 if i % 2 else 1) * (0.5 + (p * 7 + i) % 13 / 13))
    return file


def optimize(out, *more, rules="exact", code=0):
    said = run("optimize", model(), "--target", "paper", "--rules", rules, "--trials", 2, "--tune-seconds", 10, "--out", out, "--json", *more, code=code)
    return json.loads(said) if code == 0 else said


def check(out, r):
    """What every run with roundings says of itself."""
    rounding = r["optimized"]["rounding"]
    precisions = {s["name"]: s["precision"]["precision"] for s in r["sites"]}
    rounded = {name for name, site in rounding["of_site"].items() if site["precision"] != "float32"}
    assert rounding["sites"] == len(rounded) and rounding["kept_in_float32"] == len(rounding["of_site"]) - len(rounded), rounding
    for s in r["sites"]:
        assert ("tensor." in s["nest_after"]) == (s["name"] in rounded) == (precisions[s["name"]] != "float32"), s
        assert s["precision"] == rounding["of_site"].get(s["name"], {"precision": "float32"}), s
    page = (HOME / out / "report.html").read_text()
    assert "It multiplies float32 numbers" in page or len(rounded) == len(precisions), page.count("It multiplies")
    assert rounding["why"][:40] in page
    lines = [json.loads(line) for line in (HOME / out / "evidence.jsonl").read_text().splitlines()]
    assert any(line.get("oracle") == "rounding" and line["evidence"] == rounding for line in lines), lines[-1]
    said = run("explain", out, "--check")
    assert "what was compiled computes the network" in said and "NOT VALID" not in said, said
    return rounding


def every_site_has_its_precision_and_what_it_moves():
    r = optimize("bf16", "--allow", "bf16")
    rounding = check("bf16", r)
    assert rounding["sites"] >= 2 and rounding["kept_in_float32"] == 0 and rounding["roundings"] == ["bf16"], rounding
    assert all(site["largest"] > 0 and site["tried"] == "bf16" for site in rounding["of_site"].values()), rounding
    assert 0 < rounding["mean"] <= rounding["largest"] <= rounding["limit"] == 0.01 and rounding["outputs"] == 32 and "points" not in rounding, rounding
    expect_certified(HOME / "bf16", 0)


def the_most_sensitive_sites_keep_float32_beyond_the_limit():
    all_of = json.loads((HOME / "bf16/result.json").read_text())["optimized"]["rounding"]
    limit = 0.97 * max(site["largest"] for site in all_of["of_site"].values())
    rounding = check("some", optimize("some", "--allow", "bf16", "--max-rounding-error", limit))
    assert rounding["sites"] > 0 and rounding["kept_in_float32"] > 0 and 0 < rounding["largest"] <= limit, rounding
    wide, rounded = ([site["largest"] for site in rounding["of_site"].values() if (site["precision"] == "float32") is kept] for kept in (True, False))
    assert min(wide) >= max(rounded), rounding
    rounding = check("none", optimize("none", "--allow", "bf16", "--max-rounding-error", 0))
    assert rounding["sites"] == 0 and rounding["largest"] == 0 and "with all rounded" in rounding["why"], rounding


def without_allow_every_site_is_float32():
    r = optimize("float32")
    assert "rounding" not in r["optimized"] and all("precision" not in s and "tensor." not in s["nest_after"] for s in r["sites"]), r["optimized"]


def int8_is_measured_on_data_and_refused_without_it():
    model()
    error = optimize("refused", "--allow", "int8", code=1)
    assert "the scales of int8 numbers are measured on data" in error and "--data FOLDER" in error and not (HOME / "refused").exists(), error
    r = optimize("int8", "--allow", "int8", "--data", HOME / "data", "--max-rounding-error", 0.5, "--max-loss", 100)
    rounding = check("int8", r)
    assert rounding["sites"] >= 2 and all(site["tried"] == "int8" for site in rounding["of_site"].values()) and rounding["data"].startswith("npy"), rounding
    scales = json.loads((HOME / "int8/network.json").read_text())["int8"]
    assert set(rounding["of_site"]) <= set(scales) and all(scale > 0 and zero in (0, 128) for scale, zero in scales.values()), scales
    assert b".int8" not in (HOME / "int8/weights.safetensors").read_bytes(), "scales are no weights of the network"


def other_weights_get_scales_of_their_own():
    trained = HOME / "int8/weights.safetensors"
    error = run("adopt", "int8", trained, "-q", code=1)
    assert "the scales of int8 numbers are measured on data" in error, error
    run("adopt", "int8", trained, "--data", HOME / "data", "-q")
    assert "NOT VALID" not in run("explain", "int8", "--check")


def data_without_a_range_is_refused():
    error = optimize("flat", "--allow", "int8", "--data", images("flat_data", lambda i, p: 0.25), code=1)
    assert "is 0.25 throughout the data that int8 scales are measured on" in error, error
    error = optimize("single", "--allow", "int8", "--data", images("single_data", lambda i, p: p / 512, n=1), code=1)
    assert "has 1 images, and 2 are needed" in error, error


def roundings_and_neural_rules_share_the_points_that_may_be_lost():
    r = optimize("points", "--allow", "bf16", "--data", HOME / "data", "--max-loss", 0.5)
    points = check("points", r)["points"]
    assert points["of"] == points["allowed"] == 0.5 and points["lost"] <= 0.5 and points["within"] > 0, points
    r = optimize("shared", "--allow", "bf16", "--data", HOME / "data", "--max-loss", 6, rules="discover")
    if "rounding" not in r["optimized"]:
        return
    points = check("shared", r)["points"]
    assert points["of"] == 6 and abs(points["allowed"] + max(0, r["guard"]["loss"]["points"]) - 6) < 1e-6 and points["lost"] <= points["allowed"], (points, r["guard"])


def compile_chooses_in_the_same_way():
    said = json.loads(run("compile", model(), "--target", "paper", "--allow", "bf16", "--out", "compiled", "--json"))["rounding"]
    assert said["sites"] >= 2 and said["kept_in_float32"] == 0, said
    limit = 0.97 * max(site["largest"] for site in said["of_site"].values())
    some = json.loads(run("compile", model(), "--target", "paper", "--allow", "bf16", "--max-rounding-error", limit, "--out", "compiled", "--json"))["rounding"]
    assert some["sites"] > 0 and some["kept_in_float32"] > 0 and some["largest"] <= limit, some


run_cases([every_site_has_its_precision_and_what_it_moves, the_most_sensitive_sites_keep_float32_beyond_the_limit, without_allow_every_site_is_float32,
           int8_is_measured_on_data_and_refused_without_it, other_weights_get_scales_of_their_own, data_without_a_range_is_refused,
           roundings_and_neural_rules_share_the_points_that_may_be_lost, compile_chooses_in_the_same_way], "precision: ")
