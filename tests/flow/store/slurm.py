"""A batch on a Slurm cluster of one node that the test starts: an array over the queue is cancelled and submitted again, and no job is lost or done twice."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from servers import Postgres, Skipped, Slurm
from cases import run_cases

LOOPEGG, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
FAKE = str(SOURCE / "tests/flow/fake_job.sh")
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
SERVERS = []


def servers():
    if not SERVERS:
        try:
            SERVERS.extend((Postgres(), Slurm()))
        except Skipped as e:
            SERVERS.append(e)
    if isinstance(SERVERS[-1], Skipped):
        raise SERVERS[-1]
    return SERVERS


def run(*words, **more):
    postgres, slurm = servers()
    env = {**slurm.environment, "PGPASSFILE": str(postgres.passfile), "FAKE_SECONDS": "1", **more}
    return subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=120)


def batch(name, count, url, *words):
    jobs = FOLDER / f"{name}.json"
    jobs.write_text(json.dumps({"models": ["one"], "seeds": list(range(count))}))
    r = run("batch", jobs, "--out", FOLDER / name, "--store", url, "--program", FAKE, "--json", *words)
    assert r.returncode == 0, (r.returncode, r.stdout, r.stderr)
    return json.loads(r.stdout)


def counted(name):
    """A database whose server counts how often a job gets an end."""
    postgres, _ = servers()
    url = postgres.fresh(name)
    checked = run("store", "check", url)
    assert checked.returncode == 0, (checked.returncode, checked.stdout, checked.stderr)
    postgres.sql("CREATE TABLE ends(id text); CREATE FUNCTION ended() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.ends VALUES (NEW.id); RETURN NEW; END'; "
                 "CREATE TRIGGER ended AFTER UPDATE ON loopegg.jobs FOR EACH ROW WHEN (NEW.state IN ('done', 'failed')) EXECUTE FUNCTION ended()", name)
    return url


def wait_until_idle():
    _, slurm = servers()
    until = time.monotonic() + 240
    while slurm.call("squeue", "-h").stdout.strip():
        assert time.monotonic() < until, slurm.call("squeue").stdout
        time.sleep(0.5)


def logs(name):
    return "".join(f.read_text() for f in (FOLDER / name / "slurm").glob("*.log"))


def once_each(name, count):
    ends = collections.Counter(servers()[0].sql("SELECT id FROM ends", name).split())
    assert len(ends) == count and set(ends.values()) == {1}, (len(ends), collections.Counter(ends.values()), logs(name)[-1000:])


def an_array_does_the_jobs_of_the_queue():
    url = counted("calm")
    submitted = batch("calm", 20, url, "--slurm", "--tasks", "4", "--sbatch=--time=10")
    assert submitted["open"] == 20 and submitted["array"].isdigit(), submitted
    wait_until_idle()
    status = batch("calm", 20, url, "--status")
    assert (status["done"], status["failed"], status["waiting"]) == (20, 0, 0), (status, logs("calm")[-1000:])
    once_each("calm", 20)
    assert json.load(open(FOLDER / "calm/result.json"))["done"] == 20
    assert batch("calm", 20, url, "--slurm") == {"array": "", "open": 0}


def half_cancelled_and_submitted_again():
    _, slurm = servers()
    url = counted("cancelled")
    array = batch("cancelled", 20, url, "--slurm", "--tasks", "20")["array"]
    until = time.monotonic() + 60
    while batch("cancelled", 20, url, "--status")["running"] < 2:
        assert time.monotonic() < until, slurm.call("squeue").stdout + logs("cancelled")
    assert sum(batch("cancelled", 20, url, "--status")["slurm"].values()) > 0
    assert slurm.call("scancel", f"{array}_[0-9]").returncode == 0
    slurm.call("scontrol", "requeue", f"{array}_10")   # a task that has ended by now cannot be; the rest holds all the same
    time.sleep(2)
    slurm.call("scancel", array)
    wait_until_idle()
    status = batch("cancelled", 20, url, "--status")
    assert status["failed"] == 0 and status["waiting"] > 0 and status["done"] + status["waiting"] == 20, status
    batch("cancelled", 20, url, "--slurm", "--tasks", "4")
    wait_until_idle()
    assert batch("cancelled", 20, url, "--status")["done"] == 20, logs("cancelled")[-1000:]
    once_each("cancelled", 20)
    return f" ({status['done']} of 20 were done before the second submission)"


def what_is_missing_is_said():
    jobs = FOLDER / "alone.json"
    jobs.write_text(json.dumps({"models": ["one"]}))
    r = run("batch", jobs, "--out", FOLDER / "alone", "--slurm", LOOPEGG_STORE=str(FOLDER / "file.sqlite"))
    assert r.returncode == 1 and "a store that all nodes reach" in r.stderr, r.stderr
    url = servers()[0].fresh("alone")
    r = run("batch", jobs, "--out", FOLDER / "alone", "--slurm", "--store", url, PATH="/nowhere")
    assert r.returncode == 1 and "there is no sbatch" in r.stderr, r.stderr
    r = run("batch", jobs, "--out", FOLDER / "alone", "--slurm", "--store", url, "--sbatch=--partition=none")
    assert r.returncode == 1 and "partition" in r.stderr, r.stderr
    assert servers()[0].password not in (FOLDER / "alone/slurm/array.sh").read_text()


def no_password_is_in_a_script_a_log_or_a_list():
    """The address in LOOPEGG_STORE holds a password. sbatch hands the password to the tasks with the rest of the environment, and shows it to nobody."""
    postgres, slurm = servers()
    postgres.fresh("secret")
    store = dict(LOOPEGG_STORE=postgres.url("secret", postgres.password))
    jobs = FOLDER / "secret.json"
    jobs.write_text(json.dumps({"models": ["one", "broken"], "seeds": [1, 2, 3]}))
    words = ("batch", jobs, "--out", FOLDER / "secret", "--program", FAKE)
    said = run(*words, "--slurm", "--tasks", "2", PGPASSFILE="/dev/null", **store)
    assert said.returncode == 0, said.stderr
    lists = said.stdout + said.stderr
    while slurm.call("squeue", "-h").stdout.strip():
        for list_of in (("ps", "-eo", "args"), ("scontrol", "show", "job", "-dd"), ("squeue", "-o", "%all")):
            lists += slurm.call(*list_of).stdout
        time.sleep(0.2)
    status = run(*words, "--status", PGPASSFILE="/dev/null", **store)
    assert status.returncode == 0 and "fake_job" in lists and "array.sh" in lists, (status.stderr, lists[-500:])
    page = run("dashboard", FOLDER / "secret", PGPASSFILE="/dev/null", **store)
    assert page.returncode == 0, page.stderr
    assert postgres.password not in lists + status.stdout + status.stderr + page.stdout + page.stderr
    files = [f for f in (FOLDER / "secret").rglob("*") if f.is_file()]
    assert {"array.sh", "dashboard.html"} <= {f.name for f in files}, files
    for file in files:
        assert postgres.password.encode() not in file.read_bytes(), file
    assert postgres.sql("SELECT count(*) FROM loopegg.jobs WHERE state='done'", "secret") == "3", logs("secret")[-1000:]


run_cases([an_array_does_the_jobs_of_the_queue, half_cancelled_and_submitted_again, what_is_missing_is_said, no_password_is_in_a_script_a_log_or_a_list])
