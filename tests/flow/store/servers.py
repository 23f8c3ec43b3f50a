"""Real servers from Debian's packages, started by a test in a folder of its own and stopped at its end."""
import atexit
import glob
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, Skipped


class Postgres:
    """One server on a unix socket. It never runs as root, so as root it is given to an unprivileged user. A `durable` server
    flushes what is committed to the disk, which tests need not wait for."""
    password = "s3cret-w0rd"
    listening = "-c listen_addresses=''"

    def __init__(self, durable=False, superuser="team"):
        self.durable, self.superuser = durable, superuser
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        if not found:
            raise Lacking("there is no PostgreSQL server here")
        self.programs = pathlib.Path(found[-1]).parent
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lpg", dir="/tmp"))   # a socket's path may have 107 letters
        self.user = next((u for u in ("postgres", "nobody") if os.getuid() == 0 and u in {p.pw_name for p in pwd.getpwall()}), None)
        if self.user:
            shutil.chown(self.folder, self.user)
            os.chmod(self.folder, 0o755)
        word = self.folder / "word"
        word.write_text(self.password)
        os.chmod(word, 0o644)
        made = self.call("initdb", "-D", self.folder / "data", "-U", superuser, "-A", "scram-sha-256", f"--pwfile={word}", "-E", "UTF8", "--locale=C")
        if made.returncode:
            raise Skipped(f"PostgreSQL cannot make a data folder here: {made.stderr.strip()[-200:]}")
        self.passfile = self.folder / "pgpass"
        self.passfile.write_text(f"*:*:*:team:{self.password}\n")
        os.chmod(self.passfile, 0o600)
        atexit.register(self.end)
        self.prepare()
        self.start()
        # libpq reads the password from a file, as a person would keep it.
        self.environment = dict(os.environ, PGPASSFILE=str(self.passfile))
        if superuser == "team":
            self.sql("CREATE DATABASE loopegg", database="postgres")

    def call(self, program, *words):
        command = [str(self.programs / program), *map(str, words)]
        if self.user:
            command = ["setpriv", "--reuid", self.user, "--regid", str(pwd.getpwnam(self.user).pw_gid), "--clear-groups", *command]
        return subprocess.run(command, capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)

    def prepare(self):
        """Sets what must be in the data folder before the server starts."""

    def start(self):
        started = self.call("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", f"-k {self.folder} {self.listening} -c fsync={'on' if self.durable else 'off'} -c max_connections=60", "start")
        assert started.returncode == 0, started.stdout + started.stderr

    def stop(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def end(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="loopegg", password=""):
        host = str(self.folder).replace("/", "%2F")
        return f"postgresql://team{':' + password if password else ''}@{host}/{database}"

    def sql(self, statement, database="loopegg"):
        r = subprocess.run(["psql", "-h", str(self.folder), "-U", self.superuser, "-d", database, "-At", "-v", "ON_ERROR_STOP=1", "-c", statement], capture_output=True, text=True,
                           env=dict(os.environ, PGPASSFILE=str(self.passfile)))
        assert r.returncode == 0, r.stderr
        return r.stdout.strip()

    def fresh(self, name):
        self.sql(f"CREATE DATABASE {name}", database="postgres")
        return self.url(name)


class Slurm:
    """A cluster of one node with four places: munged, slurmctld and slurmd. It wants root, as slurmd does."""

    def __init__(self):
        missing = [p for p in ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue") if not shutil.which(p, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
        if missing:
            raise Lacking(f"there is no {missing[0]} here")
        if os.getuid() != 0:
            raise Skipped("slurmd starts jobs for other users, so it wants root")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lslurm", dir="/tmp"))
        os.chmod(self.folder, 0o755)
        self.running = []
        atexit.register(self.end)
        host = socket.gethostname().split(".")[0]
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        os.chmod(key, 0o400)
        ports = [free_port(), free_port()]
        (self.folder / "slurm.conf").write_text("\n".join([
            "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}", f"SlurmdPort={ports[1]}", "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/munge",
            f"AuthInfo=socket={self.folder}/munge.socket", "CryptoType=crypto/munge", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none", "MpiDefault=none",
            "ReturnToService=2", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "SchedulerType=sched/backfill", "SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0",
            "KillWait=5", "MinJobAge=300", "JobRequeue=1", f"StateSaveLocation={self.folder}/state", f"SlurmdSpoolDir={self.folder}/spool", f"SlurmctldPidFile={self.folder}/ctld.pid", f"SlurmdPidFile={self.folder}/d.pid",
            f"SlurmctldLogFile={self.folder}/ctld.log", f"SlurmdLogFile={self.folder}/d.log", "SlurmdParameters=config_overrides", f"NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN",
            f"PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP"]) + "\n")
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"), PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        self.begin("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                   f"--seed-file={self.folder}/munge.seed")
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged makes no socket")
        self.begin("slurmctld", "-D", "-c")
        self.begin("slurmd", "-D", "-c", "-N", host)
        self.wait_for(lambda: "idle" in self.call("sinfo", "-h", "-o", "%T").stdout, "the node does not come up")

    def begin(self, *words):
        with open(self.folder / f"{words[0]}.out", "w") as out:
            self.running.append(subprocess.Popen(words, env=self.environment, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))

    def call(self, *words):
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL)

    def wait_for(self, condition, otherwise, seconds=60):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until or any(p.poll() is not None for p in self.running):
                words = "".join(f.read_text(errors="replace")[-300:] for f in self.folder.glob("*.out"))
                self.end()
                raise Skipped(f"Slurm does not run here: {otherwise}: {' '.join(words.split())[-400:]}")
            time.sleep(0.2)

    def end(self):
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self.running = []
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
