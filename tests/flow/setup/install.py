"""'meson install' gives a program that works from its new place, with its rules, targets, manual and completions."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

build = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[3]
# Programs on the engine, and what each prints among other lines.
EXAMPLES = {
    "egraph_use": "(/ (* x 2) 2) is x",
    "own_extractor": "(+ (shift x 8) (* x 3)) costs 15",
}


def run(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120, **more)


with tempfile.TemporaryDirectory() as scratch:
    r = run("meson", "install", "-C", build, "--no-rebuild", "--destdir", scratch, env={**os.environ, "PATH": "/usr/bin:/bin"})
    assert r.returncode == 0, r.stdout + r.stderr
    prefix = next(pathlib.Path(scratch).glob("**/bin/loopegg")).parent.parent
    loopegg = prefix / "bin/loopegg"
    bare = {"PATH": "/usr/bin:/bin", "HOME": scratch}
    print("ok - installs")

    missing = [line for f in (loopegg, *prefix.glob("lib/**/*.so")) for line in run("ldd", f, env=bare).stdout.splitlines() if "not found" in line]
    assert not missing, missing
    print("ok - finds every library from its new place")

    r = run(loopegg, "zoo", "resnet34-cifar10", "-o", f"{scratch}/m.json", env=bare)
    assert r.returncode == 0, r.stderr
    r = run(loopegg, "show", f"{scratch}/m.json", "--json", env=bare)
    assert json.loads(r.stdout)["parameters"] == 21282122, r
    print("ok - runs")

    for file in ("share/loopegg/backends/targets/host.json", "share/loopegg/backends/runtime/loopegg_team.c", "share/loopegg/rules/math.rules",
                 "share/man/man1/loopegg.1", "share/bash-completion/completions/loopegg.bash"):
        assert (prefix / file).is_file(), file
    assert not list(prefix.glob("share/loopegg/rules/*.cpp"))   # the rules room keeps sources beside its rule files
    print("ok - brings its rules, targets, manual and completions")

    r = run(loopegg, "targets", "--json", env=bare)
    assert r.returncode == 0 and "a57" in r.stdout, r
    print("ok - reads its own targets")

    # As a program outside the tree is built: with the flags of pkg-config alone.
    here = {**bare, "PKG_CONFIG_PATH": str(next(prefix.glob("lib/**/pkgconfig")))}
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "--static", "loopegg", env=here)
    assert flags.returncode == 0, flags.stderr
    for name, expected in EXAMPLES.items():
        built = run("c++", "-std=c++20", ROOT / f"examples/{name}.cpp", "-o", f"{scratch}/{name}", *flags.stdout.split(), env=here)
        assert built.returncode == 0, built.stderr
        r = run(f"{scratch}/{name}", env=bare)
        assert r.returncode == 0 and expected in r.stdout, r
    print("ok - programs outside the tree are built on the engine")
