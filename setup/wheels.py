"""Brings the wheels of requirements.txt into one folder: pip downloads and checks them, this file unpacks what is used.

A wheel counts as unpacked when its RECORD is there. That file is written last, so an unpacking that broke off is simply done again.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

# What no part of loopegg ever loads; leaving it out saves 0.9 GB. The wheels are CUDA builds, of which only the CPU side is used.
NEVER_LOADED = """
torch/lib/*_cuda*  torch/lib/libtorch.so  torch/lib/libtorch_python*  torch/lib/libtorch_nvshmem*  torch/lib/libtorch_global_deps*
torch/lib/libcaffe2_nvrtc*  torch/lib/libshm*  torch/bin/*  torch/test/*  torch/*.py  torch/*.pyi  torchgen/*  functorch/*
nvidia/*/include/*  nvidia/cu13/lib/*.a  nvidia/cu13/lib/libnvperf*  nvidia/cu13/lib/libcheckpoint*  nvidia/cu13/lib/libpcsampling*
nvidia/cuda_nvrtc/lib/*.alt.*  nvidia/cuda_nvrtc/lib/*.a
vega/*.py  vega/tests/*  vega/static/*.map  vega/static/lab*  vega/static/vega.js  vega/static/extension*  vega-*.data/*
""".split()
NO_NETWORK = re.compile("NewConnectionError|Temporary failure in name resolution|Network is unreachable|ProxyError|timed out|"
                        "ConnectionError|Connection refused|Connection reset|SSLError|No matching distribution")


class Stop(Exception):
    pass


def say(text):
    print("loopegg:", text, file=sys.stderr, flush=True)


class Meter:
    """One line that is overwritten on a terminal; elsewhere a line every ten seconds."""

    def __init__(self):
        self.shown = time.monotonic() if not sys.stderr.isatty() else 0.0

    def show(self, text):
        if sys.stderr.isatty():
            sys.stderr.write(f"\rloopegg: {text}\033[K")
            sys.stderr.flush()
        elif time.monotonic() - self.shown >= 10:
            self.shown = time.monotonic()
            say(text)

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def pins(requirements):
    """(name, version, the requirement with its hashes) of each entry."""
    text = re.sub(r"(?m)^#.*$", "", requirements.read_text()).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        name, version = line.split()[0].split("==")
        yield name, version, line


def record(site, name, version):
    return site / f"{name.replace('-', '_')}-{version}.dist-info" / "RECORD"


def download(requirement, label, machine, folder):
    """pip asks for Python 3.11's wheels by name, so that the Python that runs here does not matter."""
    scratch = pathlib.Path(tempfile.mkdtemp(dir=folder.parents[1], prefix="download-"))
    (scratch / "pin.txt").write_text(requirement + "\n")
    platforms = [f"manylinux_2_{n}_{machine}" for n in (28, 27, 26, 25, 24, 17, 12)] + [f"manylinux{y}_{machine}" for y in (2014, 2010)]
    command = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--require-hashes",
               "--only-binary=:all:", "--implementation=cp", "--python-version=3.11", "--abi=cp311", "--abi=abi3", "--abi=none",
               "--retries=3", "--disable-pip-version-check", "--progress-bar=off", "-r", str(scratch / "pin.txt"), "-d", str(folder)]
    command += [f"--platform={p}" for p in platforms]
    environment = dict(os.environ, TMPDIR=str(scratch), PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_NO_INPUT="1")
    meter = Meter()
    with open(scratch / "pip.log", "w+") as log:
        pip = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, stdin=subprocess.DEVNULL)
        try:
            while pip.poll() is None:
                time.sleep(0.2)
                meter.show(f"{label}: {size_of(scratch) / 1e6:.0f} MB downloaded")
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
            meter.end()
        log.seek(0)
        log_text = log.read()
    shutil.rmtree(scratch, ignore_errors=True)
    if pip.returncode != 0:
        if "HASHES" in log_text or "hash" in log_text and "do not match" in log_text.lower():
            raise Stop(f"{label}: the downloaded file is not the one that setup/requirements.txt names (its hash differs); nothing was installed from it")
        if "No space left" in log_text:
            raise Stop(f"{label}: the disk is full")
        if NO_NETWORK.search(log_text):
            raise Stop(f"{label}: the package index cannot be reached (is there a network?); run this again and it resumes from here")
        raise Stop(f"{label}: pip could not download it: {log_text.strip().splitlines()[-1] if log_text.strip() else 'no reason given'}")


def size_of(folder):
    total = 0
    for where, _, files in os.walk(folder):
        for f in files:
            try:
                total += os.stat(os.path.join(where, f)).st_size
            except OSError:
                pass
    return total


def unpack(wheel, site, label):
    meter = Meter()
    with zipfile.ZipFile(wheel) as z:
        wanted = [i for i in z.infolist() if not any(fnmatch.fnmatch(i.filename, p) for p in NEVER_LOADED)]
        wanted.sort(key=lambda i: i.filename.endswith(".dist-info/RECORD"))   # last: it says that all the rest is there
        total, done = sum(i.file_size for i in wanted) or 1, 0
        for i in wanted:
            path = pathlib.Path(z.extract(i, site))
            if i.external_attr >> 16 & 0o111 and path.is_file():
                path.chmod(0o755)
            done += i.file_size
            meter.show(f"{label}: unpacking, {100 * done // total}%")
    meter.end()


def remove_other_versions(site, name, version):
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        if old.name != record(site, name, version).parent.name and (old / "RECORD").is_file():
            for line in (old / "RECORD").read_text().splitlines():
                path = site / line.rsplit(",", 2)[0].strip('"')
                if site in path.resolve().parents:
                    path.unlink(missing_ok=True)
            shutil.rmtree(old, ignore_errors=True)


def main(requirements, site, machine):
    requirements, site = pathlib.Path(requirements), pathlib.Path(site).resolve()
    site.mkdir(parents=True, exist_ok=True)
    for left_over in site.parent.glob("download-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    all_pins = list(pins(requirements))
    todo = [p for p in all_pins if not record(site, p[0], p[1]).is_file()]
    if todo and shutil.disk_usage(site).free < 2.5e9:
        raise Stop(f"too little disk: set-up needs 2.5 GB where {site} is, and {shutil.disk_usage(site).free / 1e9:.1f} GB are free")
    for n, (name, version, requirement) in enumerate(todo, 1):
        label = f"wheel {n} of {len(todo)}, {name} {version}"
        say(f"{label}: downloading")
        folder = site.parent / "wheels" / f"{name}-{version}"   # kept until unpacked: pip takes a whole file that is there already
        folder.mkdir(parents=True, exist_ok=True)
        download(requirement, label, machine, folder)
        remove_other_versions(site, name, version)
        unpack(next(folder.glob("*.whl")), site, label)
        shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except Stop as e:
        say(e)
        sys.exit(1)
    except OSError as e:
        say(f"set-up cannot write its files: {e.strerror or e} ({e.filename or sys.argv[2]})")
        sys.exit(1)
    except KeyboardInterrupt:
        say("stopped; run this again and it resumes from here")
        sys.exit(130)
