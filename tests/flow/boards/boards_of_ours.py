"""Boards for tests: real sshds (Debian's openssh-server) with keys of their own, on loopback or each in a network namespace whose cable can be pulled."""
import atexit
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, Skipped

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Keys:
    """The keys of both sides, what ssh knows of the boards, and the configuration that LOOPEGG_SSH_CONFIG names."""

    def __init__(self):
        if not SSHD or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
            raise Lacking("there is no sshd here")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lboards", dir="/tmp"))
        atexit.register(shutil.rmtree, self.folder, True)
        for name in ("host", "client", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.folder / name], check=True)
        shutil.copy(self.folder / "client.pub", self.folder / "authorized")
        (self.folder / "known").write_text("")
        self.config = self.write_config("config", "client", "known")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)   # sshd's own wish, as root

    def write_config(self, name, key, known):
        file = self.folder / name
        file.write_text(f"Host *\n IdentityFile {self.folder / key}\n IdentitiesOnly yes\n UserKnownHostsFile {self.folder / known}\n GlobalKnownHostsFile /dev/null\n")
        return file

    def know(self, host, port):
        public = (self.folder / "host.pub").read_text().split()
        with open(self.folder / "known", "a") as known:
            known.write(f"[{host}]:{port} {public[0]} {public[1]}\n")


class Board:
    """One sshd. `inside`: the words before its command, and the address at which it is reached."""

    def __init__(self, keys, name, host="127.0.0.1", inside=()):
        self.keys, self.name, self.host, self.inside = keys, name, host, list(inside)
        self.home = keys.folder / name
        self.home.mkdir()
        self.full = self.home / "full"   # while it is there, no file of this board may grow
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        wrapper = self.home / "enter.sh"
        wrapper.write_text(f'#!/bin/sh\n[ ! -e {self.full} ] || ulimit -f 100\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
        wrapper.chmod(0o755)
        (self.home / "sshd_config").write_text("\n".join([
            f"Port {self.port}", f"ListenAddress {host}", f"HostKey {keys.folder / 'host'}", f"AuthorizedKeysFile {keys.folder / 'authorized'}", "StrictModes no", "UsePAM no",
            "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none", "PrintMotd no", f"SetEnv XDG_CACHE_HOME={self.home}/cache", f"ForceCommand {wrapper}",
            "PermitRootLogin yes", "LogLevel ERROR"]) + "\n")
        keys.know(host, self.port)
        self.process = None
        atexit.register(self.stop)
        self.start()

    @property
    def address(self):
        return f"{getpass.getuser()}@{self.host}:{self.port}"

    def start(self):
        with open(self.home / "log", "a") as log:
            self.process = subprocess.Popen([*self.inside, SSHD, "-D", "-e", "-f", str(self.home / "sshd_config")], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Skipped(f"sshd does not start here: {(self.home / 'log').read_text().strip()[-200:]}")
            try:
                socket.create_connection((self.host, self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise Skipped("sshd does not listen")

    def workers(self):
        """The worker processes of this board alone, which were started from its folder."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.readlink(f"/proc/{entry}/exe").startswith(f"{self.home}/"):
                    found.append(int(entry))
            except OSError:
                pass
        return found

    def power_off(self):
        self.stop()
        for pid in self.workers():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None


class Cable:
    """A network namespace with one cable to it."""

    def __init__(self, number):
        self.name, self.here, self.there = f"lbd{os.getpid() % 10000}x{number}", f"lbh{os.getpid() % 10000}x{number}", f"lbt{os.getpid() % 10000}x{number}"
        self.address = f"10.213.{number}.2"
        if os.getuid() != 0 or not shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise Skipped("network namespaces want root") if os.geteuid() else Lacking("there is no 'ip' here")
        atexit.register(self.remove)
        for words in (f"netns add {self.name}", f"link add {self.here} type veth peer name {self.there}", f"link set {self.there} netns {self.name}", f"addr add 10.213.{number}.1/30 dev {self.here}",
                      f"link set {self.here} up", f"netns exec {self.name} ip addr add {self.address}/30 dev {self.there}", f"netns exec {self.name} ip link set {self.there} up",
                      f"netns exec {self.name} ip link set lo up"):
            made = subprocess.run(["ip", *words.split()], capture_output=True, text=True)
            if made.returncode:
                raise Skipped(f"no network namespace can be made here: {made.stderr.strip()}")
        self.inside = ["ip", "netns", "exec", self.name]

    def pull(self):
        subprocess.run(["ip", "link", "set", self.here, "down"], check=True)

    def plug(self):
        subprocess.run(["ip", "link", "set", self.here, "up"], check=True)

    def remove(self):
        subprocess.run(["ip", "link", "del", self.here], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)
