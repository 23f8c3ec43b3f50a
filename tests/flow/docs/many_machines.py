"""Types every command of docs/how-to/many-machines.md as it stands there, top to bottom, in one shell: a team with a server, a cluster and two boards.

    many_machines.py LOOPEGG_PROGRAM SOURCE_FOLDER

The servers are real ones that the test starts in a network namespace of its own: PostgreSQL with TLS on the port of the page, Slurm, and two sshds. The machine
cannot have three of the page's names: '/shared' is a folder of the test, 'pi' is the user who runs it, and THE-PASSWORD is a password. Everything else is typed
as the page has it, in a home folder of its own.
"""
import getpass
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
for room in ("", "store", "boards"):
    sys.path.insert(0, str(TESTS / room))
from cases import Skipped, run_cases

ALONE = "LOOPEGG_TEST_ALONE"     # set in the network namespace
if os.environ.get(ALONE) is None and os.getuid() == 0 and shutil.which("unshare"):
    os.execvpe("unshare", ["unshare", "--net", sys.executable, "-I", *sys.argv], {**os.environ, ALONE: "1"})

from boards_of_ours import Board, Keys
from servers import Postgres, Slurm

LOOPEGG, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PAGE = SOURCE / "docs/how-to/many-machines.md"
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
HOME = FOLDER / "home"
SHARED = FOLDER / "shared"
JOBS = {"models": [str(SOURCE / "examples/tiny-residual.json")], "targets": ["i7"], "options": {"trials": 1}}


class TeamServer(Postgres):
    """A server for host names and TLS, as a team has one. The person who runs it is 'postgres' on its socket. Nobody else has a user or a database yet."""
    listening = "-c listen_addresses=127.0.0.1 -p 5432"

    def prepare(self):
        certificates = self.folder / "tls"
        certificates.mkdir()
        for words in (["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=the team", "-keyout", "ca.key", "-out", "ca.crt"],
                      ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=dbhost", "-addext", "subjectAltName=DNS:dbhost", "-keyout", "server.key", "-out", "server.csr"],
                      ["x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-copy_extensions", "copy", "-out", "server.crt"]):
            subprocess.run(["openssl", *words], cwd=certificates, check=True, capture_output=True)
        os.chmod(certificates / "server.key", 0o600)
        if self.user:
            for file in [certificates, *certificates.iterdir()]:
                shutil.chown(file, self.user)
        self.authority = certificates / "ca.crt"
        with open(self.folder / "data/postgresql.conf", "a") as settings:
            settings.write(f"ssl = on\nssl_cert_file = '{certificates}/server.crt'\nssl_key_file = '{certificates}/server.key'\n")
        (self.folder / "data/pg_hba.conf").write_text("local all postgres trust\nhostssl loopegg team 127.0.0.1/32 scram-sha-256\n")


def fences():
    """(words after the language, text) of the page's fences of sh, with the names that this machine cannot have replaced."""
    text = PAGE.read_text().replace("/shared", str(SHARED)).replace("pi@", f"{getpass.getuser()}@")
    return re.findall(r"(?ms)^```sh([^\n]*)\n(.*?)^```", text)


def bash(script, environment, **more):
    return subprocess.run(["bash", "-c", "set -e\n" + script], cwd=FOLDER, env=environment, capture_output=True, text=True, start_new_session=True, timeout=900, **more)


def typed(script, environment, **more):
    done = bash(script, environment, **more)
    assert done.returncode == 0, f"this ended with {done.returncode}:\n{script}\n{done.stdout[-2000:]}{done.stderr[-2500:]}"
    return done.stdout


def person(server, slurm, keys):
    """The environment of a member of the team: a home, ssh's configuration, and names that lead to the servers."""
    (HOME / ".ssh").mkdir(parents=True)
    for kind in ("", ".pub"):
        shutil.copy(keys.folder / f"client{kind}", HOME / f".ssh/id_ed25519{kind}")
    (HOME / ".postgresql").mkdir()
    shutil.copy(server.authority, HOME / ".postgresql/root.crt")
    line = re.search(r"(?m)^    (dbhost:.*)$", PAGE.read_text())[1]
    (HOME / ".pgpass").write_text(line.replace("THE-PASSWORD", server.password) + "\n")
    os.chmod(HOME / ".pgpass", 0o600)
    programs = FOLDER / "bin"
    programs.mkdir()
    # ssh takes the home of the user from the system, not from HOME, so its configuration is named here.
    for name, command in {"loopegg": f'"{LOOPEGG}"', "ssh": f'{shutil.which("ssh")} -F {keys.config}'}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        os.chmod(programs / name, 0o755)
    (FOLDER / "examples").symlink_to(SOURCE / "examples")
    kept = {k: v for k, v in slurm.environment.items() if k not in ("LOOPEGG_STORE", "LOOPEGG_EVIDENCE", "XDG_CACHE_HOME")}
    return dict(kept, HOME=str(HOME), PATH=f"{programs}:{slurm.environment['PATH']}", PGHOSTADDR="127.0.0.1", LOOPEGG_SSH_CONFIG=str(keys.config), LOOPEGG_PROGRAM=LOOPEGG)


def boards(keys):
    """Two sshds of this machine under the names of the page."""
    aliases = ""
    for name in ("board1", "board2"):
        board = Board(keys, name)
        aliases += f"Host {name}\n HostName {board.host}\n Port {board.port}\n"
    keys.config.write_text(aliases + keys.config.read_text())


def seeds(count):
    (FOLDER / "jobs.json").write_text(json.dumps({**JOBS, "seeds": list(range(1, count + 1))}))


def every_step_of_the_page():
    if os.environ.get(ALONE) is None:
        raise Skipped("a network namespace, which the servers get, wants root")
    # Besides loopback there is one more address: without any, the system's resolver finds no family of addresses, and Slurm no socket.
    for words in ("link set lo up", "link add here type veth peer name there", "addr add 10.214.0.1/30 dev here", "link set here up", "link set there up"):
        if subprocess.run(["ip", *words.split()], capture_output=True).returncode:
            raise Skipped("no network namespace can be used here")
    keys, server, slurm = Keys(), TeamServer(superuser="postgres"), Slurm()
    boards(keys)
    env = person(server, slurm, keys)
    SHARED.mkdir()
    # What this person learnt before there was a server: latencies and evidence in the cache folder.
    typed("loopegg measure examples/tiny-residual.json -q && loopegg score examples/tiny-residual.json --seeds 1 --batch 2 -q", env)
    admin, *steps = fences()
    assert "createuser" in admin[1], admin
    there = {k: v for k, v in env.items() if k != "PGHOSTADDR"}
    typed(admin[1], dict(there, PGHOST=str(server.folder), PGUSER="postgres"), input=f"{server.password}\n{server.password}\n")
    seeds(1)
    script = ""
    for words, text in steps:
        if "--slurm" in text:   # there is work again, and the array is waited for before the next step
            jobs = json.dumps({**JOBS, "seeds": [1, 2, 3]})
            text = f"cat > jobs.json <<'END'\n{jobs}\nEND\n{text}while [ -n \"$(squeue -h)\" ]; do sleep 1; done\nloopegg batch jobs.json --out {SHARED}/runs --status --json > status.json\n"
        script += f"echo '== {words.strip()}'\n{text}"
    said = typed(script, env)
    assert server.password not in said
    assert json.loads((FOLDER / "status.json").read_text())["done"] == 3, (FOLDER / "status.json").read_text()
    assert int(server.sql("SELECT count(*) FROM loopegg.latency WHERE state='measured'")) > 1, "nothing was copied to the server"
    assert (FOLDER / "mine.sqlite").exists() and "3 of 3 jobs" in (SHARED / "runs/dashboard.html").read_text()
    assert json.loads((FOLDER / "out/result.json").read_text())["target"] == "pi4"
    return f": {len(steps) + 1} blocks ran"


run_cases([("the commands of docs/how-to/many-machines.md", every_step_of_the_page)])
