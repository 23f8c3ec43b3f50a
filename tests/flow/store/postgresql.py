"""The store and the queue on a real PostgreSQL server: the same answers as on SQLite, each result once whatever dies, and no password anywhere."""
import collections
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from servers import Postgres, Skipped
from cases import run_cases

LOOPEGG, DRIVER, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
MODEL, FAKE = str(SOURCE / "examples/tiny-residual.json"), str(SOURCE / "tests/flow/fake_job.sh")
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
DEEP = os.environ.get("LOOPEGG_DEEP", "") not in ("", "0")
SERVER = None


def server():
    global SERVER
    if isinstance(SERVER, Skipped):
        raise SERVER
    if SERVER is None:
        try:
            SERVER = Postgres()
        except Skipped as e:
            SERVER = e
            raise
    return SERVER


def environment(store=None, **more):
    env = {k: v for k, v in server().environment.items() if k not in ("LOOPEGG_STORE", "LOOPEGG_EVIDENCE")}
    return dict(env, **({"LOOPEGG_STORE": store} if store else {}), **more)


def run(*words, store=None, **more):
    return subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(store, **more), timeout=300)


def done(*words, **more):
    r = run(*words, **more)
    assert r.returncode == 0, (words, r.stdout[-500:], r.stderr[-1500:])
    return r


def optimize(out, *words, **more):
    return json.loads(done("optimize", MODEL, "--max-loss", "6", "--tune-seconds", "10", "--trials", "2", "--out", FOLDER / out, "--json", *words, **more).stdout)


def both_kinds_of_store_give_the_same_answer():
    """Estimated times are the same every time, so the whole answers are equal. Measured times are not, so of measured runs only the guard's verdicts are compared."""
    url = server().fresh("answers")
    on_file, on_server = (optimize(out, "--store", store, "--target", "i7") for out, store in (("file", FOLDER / "one.sqlite"), ("server", url)))
    for key in ("returned", "configurations", "rejected", "why", "speedup", "original", "optimized"):
        assert on_file[key] == on_server[key], (key, on_file[key], on_server[key])
    assert on_file["store"]["calls"] > 0 and on_server["store"]["calls"] > 0 and on_server["store"]["seconds"] > 0, (on_file["store"], on_server["store"])
    assert [(s["name"], s["sequence"]) for s in on_file["sites"]] == [(s["name"], s["sequence"]) for s in on_server["sites"]]
    assert json.load(open(FOLDER / "file/model.json"))["nodes"] == json.load(open(FOLDER / "server/model.json"))["nodes"]
    with sqlite3.connect(FOLDER / "one.sqlite") as db:
        for table in ("evidence", "rule_counts", "sequence_counts"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == int(server().sql(f"SELECT count(*) FROM loopegg.{table}", "answers")), table
    timed = [optimize(out, "--store", store) for out, store in (("timed-file", FOLDER / "one.sqlite"), ("timed-server", url))]
    assert timed[0]["rejected"] == timed[1]["rejected"] and timed[0]["configurations"] == timed[1]["configurations"], timed
    assert int(server().sql("SELECT count(*) FROM loopegg.latency WHERE state='measured'", "answers")) > 0
    assert server().sql("SELECT count(*) FROM loopegg.latency WHERE state='claimed'", "answers") == "0"


def a_store_is_copied_either_way():
    optimize("origin", "--store", FOLDER / "origin.sqlite")
    url = server().fresh("copied")
    done("store", "copy", FOLDER / "origin.sqlite", url)
    assert set(json.loads(done("store", "copy", FOLDER / "origin.sqlite", url, "--json").stdout)["rows"].values()) == {0}
    done("store", "copy", url, FOLDER / "back.sqlite")
    with sqlite3.connect(FOLDER / "origin.sqlite") as a, sqlite3.connect(FOLDER / "back.sqlite") as b:
        for table, columns in (("latency", "*"), ("evidence", "key, body, at"), ("rule_counts", "*"), ("sequence_counts", "*"), ("jobs", "*")):
            rows = [sorted(map(repr, db.execute(f"SELECT {columns} FROM {table}"))) for db in (a, b)]
            assert rows[0] == rows[1], (table, len(rows[0]), len(rows[1]))
    checked = json.loads(done("store", "check", url, "--json").stdout)["stores"][0]
    assert checked["rows"] > 0 and checked["kind"] == "latencies, evidence", checked
    server().sql("INSERT INTO loopegg.latency(key, target, nest, state, median_ms, n) VALUES('bad', 'host', '(x)', 'measured', -1, 3)", "copied")
    assert run("store", "check", url).returncode == 1
    done("store", "repair", url)
    done("store", "check", url)


def a_store_of_a_later_version_is_refused():
    url = server().fresh("later")
    done("store", "check", url)
    server().sql("UPDATE loopegg.version SET version=99", "later")
    r = run("store", "check", url)
    assert r.returncode == 1 and "later loopegg" in r.stderr and "use the later program" in r.stderr, r.stderr


def a_store_of_an_earlier_version_gets_what_it_lacks():
    url = server().fresh("earlier")
    done("store", "check", url)
    version = server().sql("SELECT version FROM loopegg.version", "earlier")
    server().sql("ALTER TABLE loopegg.jobs DROP COLUMN result; DROP TABLE loopegg.sequence_counts; UPDATE loopegg.version SET version=2", "earlier")
    done("store", "check", url)
    assert server().sql("SELECT version FROM loopegg.version", "earlier") == version
    assert server().sql("SELECT count(*) FROM information_schema.columns WHERE table_schema='loopegg' AND column_name IN ('result', 'sequence')", "earlier") == "2"
    with sqlite3.connect(FOLDER / "old.sqlite") as db:
        db.executescript("CREATE TABLE latency(key TEXT PRIMARY KEY, target TEXT NOT NULL, nest TEXT NOT NULL, state TEXT NOT NULL, median_ms REAL, iqr_ms REAL, n INTEGER, measured INTEGER, disturbed INTEGER, "
                         "why TEXT, owner TEXT, machine TEXT, at INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID; INSERT INTO latency(key,target,nest,state,median_ms,iqr_ms,n) VALUES('k','host','(x)','measured',1.5,0.1,9); PRAGMA user_version=1")
    done("store", "copy", FOLDER / "old.sqlite", url)
    assert server().sql("SELECT median_ms FROM loopegg.latency WHERE key='k'", "earlier") == "1.5"


def evidence_is_append_only():
    url = server().fresh("appended")
    done("store", "check", url)
    server().sql("INSERT INTO loopegg.evidence(key, body) VALUES('k', '{}')", "appended")
    for deed in ("DELETE FROM loopegg.evidence", "UPDATE loopegg.evidence SET body=''"):
        try:
            server().sql(deed, "appended")
            assert False, "it was changed"
        except AssertionError as e:
            assert "append-only" in str(e), e


def no_password_is_shown():
    secret = server().password
    url = server().url(password=secret)
    r = run("store", "check", url)
    assert r.returncode == 2 and secret not in r.stdout + r.stderr and ".pgpass" in r.stderr, r.stderr
    r = run("optimize", MODEL, "--out", FOLDER / "x", "--store", url)
    assert r.returncode == 2 and secret not in r.stdout + r.stderr, r.stderr
    # Wrong words for the same server, in every place an address can go wrong.
    host = str(server().folder).replace("/", "%2F")
    for bad in (url.replace(secret, secret + "-wrong"), url.replace("/loopegg", "/no-such-database"), f"postgresql://team:{secret}%zz@{host}/loopegg", f"postgresql://team:a@{secret}@{host}:{secret}/loopegg",
                f"mysql://team:{secret}@{host}/x", url.replace(host, "%2Fno-such-folder"), url + "?nonsense=" + secret):
        r = run("store", "check", store=bad, LOOPEGG_STORE_PATIENCE="0", PGPASSFILE="/dev/null")
        assert r.returncode in (1, 2) and secret not in r.stdout + r.stderr, (r.returncode, r.stderr)
    out = FOLDER / "told"
    jobs = FOLDER / "told.json"
    jobs.write_text(json.dumps({"models": ["a"], "seeds": [1, 2]}))
    process = subprocess.Popen([LOOPEGG, "batch", jobs, "--out", out, "--program", FAKE], env=environment(url, PGPASSFILE="/dev/null", FAKE_SECONDS="0.5"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lists = ""
    while process.poll() is None:
        lists += subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        time.sleep(0.1)
    said = process.stdout.read()
    assert process.returncode == 0 and "fake_job" in lists, said
    assert secret not in lists + said, "the password is in a list of processes or in a log"
    for file in out.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def table(out):
    return (FOLDER / out / "result.csv").read_text()


def shaken(name, count, restart):
    """Runs 8 processes on one queue. One of them is killed every second and started again, and the server is restarted in the middle."""
    jobs = FOLDER / f"{name}.json"
    jobs.write_text(json.dumps({"models": ["one", "broken", "three", "four"], "seeds": list(range(count // 4))}))
    calm = subprocess.run([DRIVER, jobs, FOLDER / f"{name}-calm", FAKE, "8"], env=environment())   # on SQLite
    assert calm.returncode == 0
    url = server().fresh(name)
    done("store", "check", url)
    # The server itself counts how often a job gets an end.
    server().sql("CREATE TABLE ends(id text); CREATE FUNCTION ended() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.ends VALUES (NEW.id); RETURN NEW; END'; CREATE TRIGGER ended AFTER UPDATE ON loopegg.jobs "
                 "FOR EACH ROW WHEN (NEW.state IN (''done'', ''failed'')) EXECUTE FUNCTION ended()".replace("''", "'"), name)
    start = lambda: subprocess.Popen([DRIVER, jobs, FOLDER / name, FAKE, "2"], env=environment(url, FAKE_SECONDS="0.1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    processes = [start() for _ in range(8)]
    draw, kills, began, restarted = random.Random(8), 0, time.monotonic(), False
    while any(p.poll() is None for p in processes):
        time.sleep(1)
        alive = [i for i, p in enumerate(processes) if p.poll() is None]
        if alive and kills < 2 * count:
            victim = draw.choice(alive)
            processes[victim].kill()
            processes[victim].wait()
            kills += 1
            processes[victim] = start()
        if restart and not restarted and int(server().sql("SELECT count(*) FROM ends", name)) > count // 3:
            server().stop()
            time.sleep(1)
            server().start()
            restarted = True
    assert kills > 0 and restarted == restart, (kills, restarted)
    assert subprocess.run([DRIVER, jobs, FOLDER / name, FAKE, "2"], env=environment(url)).returncode == 0
    ends = collections.Counter(server().sql("SELECT id FROM ends", name).split())
    assert len(ends) == count and set(ends.values()) == {1}, (len(ends), collections.Counter(ends.values()))
    assert table(name) == table(f"{name}-calm")
    return f" ({count} jobs, {kills} kills in {time.monotonic() - began:.0f} s)"


def each_result_is_written_once_whoever_is_killed():
    return shaken("shaken", 10000 if DEEP else 320, restart=DEEP)


def a_server_that_restarts_is_waited_for():
    return shaken("restarted", 2000 if DEEP else 240, restart=True)


def a_server_that_does_not_come_back_is_given_up():
    host = str(server().folder).replace("/", "%2F")
    r = run("store", "check", store=f"postgresql://team@{host}:6543/loopegg", LOOPEGG_STORE_PATIENCE="1")
    assert r.returncode == 1 and "6543" in r.stderr and "is the server running" in r.stderr, r.stderr


def two_batches_share_a_server_and_not_their_jobs():
    url = server().fresh("shared")
    jobs = FOLDER / "shared.json"
    jobs.write_text(json.dumps({"models": ["a", "b"]}))
    for out in ("first", "second"):
        r = done("batch", jobs, "--out", FOLDER / out, "--program", FAKE, "--store", url, "--json")
        assert json.loads(r.stdout)["done"] == 2 and len(list((FOLDER / out / "runs").iterdir())) == 2
    assert server().sql("SELECT count(*) FROM loopegg.jobs WHERE state='done'", "shared") == "4"


run_cases([both_kinds_of_store_give_the_same_answer, a_store_is_copied_either_way, a_store_of_a_later_version_is_refused, a_store_of_an_earlier_version_gets_what_it_lacks, evidence_is_append_only, no_password_is_shown,
           each_result_is_written_once_whoever_is_killed, a_server_that_restarts_is_waited_for, a_server_that_does_not_come_back_is_given_up, two_batches_share_a_server_and_not_their_jobs])
