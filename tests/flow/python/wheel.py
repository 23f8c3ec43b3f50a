"""The wheel that setup/build-wheel builds, installed by pip into an empty virtual environment: what it brings, what it needs, and that it works from there.

The packages that pip would resolve come from .deps/peers and .deps/site, so that the test needs no network.
"""
import email
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))
from cases import Lacking, run_cases   # noqa: E402

BUILD, SITE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROOT = HERE.parents[3]
PEERS = pathlib.Path(os.environ.get("LOOPEGG_PEERS", ROOT / ".deps/peers"))
FOLDER = tempfile.TemporaryDirectory()
HOME = pathlib.Path(FOLDER.name)
BARE = {"PATH": "/usr/bin:/bin", "HOME": str(HOME)}
built = {}


def run(*words, code=0, env=BARE):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=400, cwd=HOME)
    assert done.returncode == code, (words, done.returncode, done.stdout[-1000:], done.stderr[-1500:])
    return done.stdout if code == 0 else done.stderr


def wheel():
    if "wheel" not in built:
        run(ROOT / "setup/build-wheel", "--build", BUILD, "--out", HOME / "dist")
        built["wheel"] = next((HOME / "dist").glob("loopegg-*.whl"))
    return built["wheel"]


def venv():
    """An environment that has nothing but the wheel, and the folders of the packages that it needs."""
    if "venv" not in built:
        python = PEERS / "bin/python3"
        if not python.exists():
            raise Lacking("there is no folder of peers")
        run(python, "-m", "venv", HOME / "venv")
        run(HOME / "venv/bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel())
        packages = next((HOME / "venv/lib").glob("python3*/site-packages"))
        (packages / "others.pth").write_text(f"{next((PEERS / 'lib').glob('python3*/site-packages'))}\n{SITE}\n")
        built["venv"] = packages
    return built["venv"]


def it_is_small_and_names_what_it_needs():
    assert wheel().stat().st_size <= 60e6, wheel().stat().st_size
    with zipfile.ZipFile(wheel()) as z:
        names = z.namelist()
        about = email.message_from_string(z.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode())
    pinned = dict(re.findall(r"(?m)^([\w-]+)==(\S+)", (ROOT / "setup/requirements.txt").read_text()))
    for package in ("torch", "apache-tvm", "apache-tvm-ffi", "highspy"):
        assert f"{package}=={pinned[package]}" in about.get_all("Requires-Dist"), about.items()
    assert about["Version"] in wheel().name and not [n for n in names if re.search(r"/lib(torch|tvm|cud|c10|highs|stdc)", n)]
    for file in ("bin/loopegg", "share/loopegg/rules/math.rules", "share/loopegg/backends/targets/host.json", "share/man/man1/loopegg.1"):
        assert f"loopegg/_program/{file}" in names, file
    assert [n for n in names if n.endswith(".dist-info/LICENSE")] and "loopegg/py.typed" in names


def its_libraries_are_found_and_no_folder_of_the_build_is_in_their_paths():
    for elf in [venv() / "loopegg/_program/bin/loopegg", *(venv() / "loopegg/_program").glob("lib/**/loopegg/*")]:
        if elf.is_file() and elf.read_bytes()[:4] == b"\x7fELF" and elf.suffix != ".o":
            paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", elf))
            assert len(paths) == 1 and all(f.startswith("$ORIGIN/") for f in paths[0].split(":")), (elf, paths)


def the_command_optimizes_from_there():
    venv()
    assert "tiny-residual" in run(HOME / "venv/bin/loopegg", "show", ROOT / "examples/tiny-residual.json")
    run(HOME / "venv/bin/loopegg", "optimize", ROOT / "examples/tiny-residual.json", "--trials", 2, "--max-loss", 20, "--out", HOME / "out", "-q")
    assert (HOME / "out/network.so").exists() and (HOME / "out/report.html").exists()
    run(HOME / "venv/bin/loopegg", "explain", HOME / "out", "--check")
    run(HOME / "venv/bin/loopegg", "import", HOME / "out/model.onnx", "-o", HOME / "again.json")


def the_module_works_from_there():
    venv()
    script = ("import sys, loopegg\n"
              f"assert '-' + loopegg.__version__ + '-' in {wheel().name!r} and not {{'numpy', 'torch'}} & sys.modules.keys()\n"
              "import numpy\n"
              f"run = loopegg.optimize({str(ROOT / 'examples/tiny-residual.json')!r}, out='python', trials=2, rules='exact')\n"
              "print(run.network()(numpy.ones((1, 3, 16, 16))).shape)\n")
    assert run(HOME / "venv/bin/python", "-c", script) == "(1, 10)\n"


def a_missing_package_is_named():
    venv()
    empty = HOME / "empty"
    run(PEERS / "bin/python3", "-m", "venv", empty)
    run(empty / "bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel())
    said = run(empty / "bin/loopegg", "--version", code=1)
    assert "pip install" in said and "apache-tvm-ffi" in said, said


run_cases([it_is_small_and_names_what_it_needs, its_libraries_are_found_and_no_folder_of_the_build_is_in_their_paths, the_command_optimizes_from_there,
           the_module_works_from_there, a_missing_package_is_named], "wheel: ")
