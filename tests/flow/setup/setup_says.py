"""What set-up says when something is missing, with the machine's own commands replaced by small pretenders."""
import contextlib
import hashlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("wheels", ROOT / "setup/wheels.py")
wheels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheels)


class Machine:
    """A checkout of its own, and commands that answer as told."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "bin").mkdir()
        shutil.copytree(ROOT / "setup", self.folder / "tree/setup", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "loopegg", self.folder / "tree/loopegg")

    def pretend(self, command, script):
        path = self.folder / "bin" / command
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)

    def loopegg(self, **environment):
        return self.run(["loopegg", "--version"], environment)

    def test_extras(self):
        return self.run(["setup/prepare", "test-extras"], {})

    def run(self, words, environment):
        return subprocess.run([self.folder / "tree" / words[0], *words[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              env={"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder), **environment})


def wheel(folder, name, version, files):
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as z:
        for f, text in files.items():
            z.writestr(f, text)
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "".join(f"{f},,\n" for f in files))
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@contextlib.contextmanager
def local_index(folder):
    """Makes pip find wheels in this folder alone."""
    saved = dict(os.environ)
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def install(folder, *requirements):
    (folder / "pins.txt").write_text("# pins\n" + "\n".join(requirements) + "\n")
    wheels.main(folder / "pins.txt", folder / "deps/site", os.uname().machine)


def expect(text, *parts):
    for p in parts:
        assert p in text, f"expected {p!r} in:\n{text}"


def another_architecture_is_refused_in_a_sentence(folder):
    m = Machine(folder)
    m.pretend("uname", "echo riscv64")
    r = m.loopegg()
    assert r.returncode == 1 and r.stdout == "" and r.stderr.count("\n") == 1, r
    expect(r.stderr, "this machine is riscv64", "x86_64 and aarch64")


def without_root_the_missing_packages_and_one_command_are_named(folder):
    m = Machine(folder)
    m.pretend("dpkg-query", 'case "$*" in *libisl-dev*|*meson*) exit 1;; *) echo installed;; esac')
    m.pretend("id", "echo 1000")
    m.pretend("sudo", "exit 1")
    r = m.loopegg()
    assert r.returncode == 1, r
    expect(r.stderr, "only root can install them:\n  meson libisl-dev\n", "  sudo apt-get install meson libisl-dev\n")


def a_dead_mirror_is_named(folder):
    m = Machine(folder)
    m.pretend("dpkg-query", 'case "$*" in *libisl-dev*) exit 1;; *) echo installed;; esac')
    m.pretend("id", "echo 0")
    m.pretend("apt-get", 'echo "E: Could not resolve deb.debian.org"; exit 100')
    r = m.loopegg()
    assert r.returncode == 1, r
    expect(r.stderr, "cannot reach the Debian mirror, so libisl-dev could not be installed")


def what_only_tests_use_is_installed_by_their_own_command_alone(folder):
    m = Machine(folder)
    m.pretend("dpkg-query", 'case "$*" in *clang-tidy*) exit 1;; *) echo installed;; esac')
    m.pretend("id", "echo 0")
    m.pretend("apt-get", 'echo "E: Could not resolve deb.debian.org"; exit 100')
    (m.folder / "tree/.deps").mkdir()
    ready = subprocess.run("cat setup/requirements.txt setup/debian.txt setup/debian.sh setup/wheels.py | cksum", shell=True, cwd=m.folder / "tree", capture_output=True, text=True).stdout.strip()
    (m.folder / "tree/.deps/ready").write_text(ready)
    m.pretend("meson", "exit 1")
    assert "clang-tidy" not in m.loopegg().stderr
    expect(m.test_extras().stderr, "installing Debian packages: clang-tidy-19", "so clang-tidy-19 could not be installed", "run this again")


def an_installation_that_was_cut_off_is_finished_first(folder):
    m = Machine(folder)
    done, mended = m.folder / "done", m.folder / "mended"
    m.pretend("dpkg-query", f'case "$*" in *libisl-dev*) [ -e {done} ] && echo installed;; *) echo installed;; esac')
    m.pretend("dpkg", f'case "$*" in *"--configure -a"*) touch {mended};; esac')
    m.pretend("id", "echo 0")
    m.pretend("apt-get", f"""case "$*" in
  *" install "*libisl-dev*) [ -e {mended} ] || {{ echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."; exit 100; }}; touch {done};;
esac""")
    r = m.loopegg(HTTPS_PROXY="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    expect(r.stderr, "finishing an installation that was cut off", "the package index cannot be reached")   # so the packages were settled
    assert done.exists(), r


def no_network_is_said_and_the_next_try_goes_on(folder):
    m = Machine(folder)
    m.pretend("dpkg-query", "echo installed")
    wheels_here = m.folder / "tree/.deps/site"
    for name, version, _ in list(wheels.pins(ROOT / "setup/requirements.txt"))[:-1]:
        wheels.record(wheels_here, name, version).parent.mkdir(parents=True)
        wheels.record(wheels_here, name, version).write_text("")
    r = m.loopegg(HTTPS_PROXY="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    assert r.returncode == 1, r
    expect(r.stderr, "wheel 1 of 1", "the package index cannot be reached")


def too_little_disk_is_said(folder):
    real, wheels.shutil.disk_usage = shutil.disk_usage, lambda path: shutil._ntuple_diskusage(10**12, 10**12 - 10**9, 10**9)
    try:
        install(folder, "demo==1.0 --hash=sha256:00")
        raise AssertionError("nothing was said")
    except wheels.Stop as e:
        expect(str(e), "too little disk", "2.5 GB", "1.0 GB are free")
    finally:
        wheels.shutil.disk_usage = real


def a_wheel_is_unpacked_without_what_is_never_loaded_and_its_record_last(folder):
    with local_index(folder):
        install(folder, wheel(folder, "torch", "1.0", {"torch/lib/libtorch_cpu.so": "a", "torch/lib/libtorch_cuda.so": "b"}))
    site = folder / "deps/site"
    assert (site / "torch/lib/libtorch_cpu.so").read_text() == "a"
    assert not (site / "torch/lib/libtorch_cuda.so").exists()
    assert (site / "torch-1.0.dist-info/RECORD").is_file()


def a_half_unpacked_wheel_is_unpacked_again(folder):
    pin = wheel(folder, "demo", "1.0", {"demo/a.txt": "whole"})
    (folder / "deps/site/demo").mkdir(parents=True)
    (folder / "deps/site/demo/a.txt").write_text("wh")
    with local_index(folder):
        install(folder, pin)
    assert (folder / "deps/site/demo/a.txt").read_text() == "whole"


def another_version_replaces_the_files_of_the_old_one(folder):
    old, new = wheel(folder, "demo", "1.0", {"demo/a.txt": "1", "demo/gone.txt": "1"}), wheel(folder, "demo", "2.0", {"demo/a.txt": "2"})
    with local_index(folder):
        install(folder, old)
        install(folder, new)
    site = folder / "deps/site"
    assert (site / "demo/a.txt").read_text() == "2" and not (site / "demo/gone.txt").exists() and not (site / "demo-1.0.dist-info").exists()


def a_file_with_another_hash_is_refused(folder):
    wheel(folder, "demo", "1.0", {"demo/a.txt": "1"})
    with local_index(folder):
        try:
            install(folder, "demo==1.0 --hash=sha256:" + "0" * 64)
            raise AssertionError("nothing was said")
        except wheels.Stop as e:
            expect(str(e), "its hash differs")
    assert not (folder / "deps/site/demo").exists()


def a_second_process_waits_for_the_first(folder):
    m = Machine(folder)
    m.pretend("uname", "echo riscv64")
    (m.folder / "tree/.deps").mkdir()
    holder = subprocess.Popen(["flock", m.folder / "tree/.deps/lock", "sleep", "1"])
    while subprocess.run(["flock", "-n", m.folder / "tree/.deps/lock", "true"]).returncode == 0 and holder.poll() is None:
        pass
    r = m.loopegg()
    holder.wait()
    expect(r.stderr, "waiting for another loopegg")


def in_a_folder(case):
    with tempfile.TemporaryDirectory() as scratch:
        case(pathlib.Path(scratch))


CASES = [another_architecture_is_refused_in_a_sentence, without_root_the_missing_packages_and_one_command_are_named, a_dead_mirror_is_named,
         what_only_tests_use_is_installed_by_their_own_command_alone, an_installation_that_was_cut_off_is_finished_first, no_network_is_said_and_the_next_try_goes_on, too_little_disk_is_said, a_wheel_is_unpacked_without_what_is_never_loaded_and_its_record_last,
         a_half_unpacked_wheel_is_unpacked_again, another_version_replaces_the_files_of_the_old_one, a_file_with_another_hash_is_refused,
         a_second_process_waits_for_the_first]
run_cases(CASES, call=in_a_folder)
