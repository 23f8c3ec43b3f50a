"""Faults that were found once in how the program lives with its machine: hangs, crashes where something is scarce, and folders that were left half written. None
of them may come back."""
import json
import os
import pathlib
import resource
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import LOOPEGG, TINY, Place, crashed, run_cases

P = Place()
RULES = pathlib.Path(__file__).resolve().parents[3] / "rules" / "exact.rules"


def an_error_of_the_machine_is_nobody_s_lasting_failure():
    """A worker that cannot be started is no candidate's fault. The run says why and stops, and the next run finds a clean store."""
    place = Place()
    r = place.optimize("out", env={"LOOPEGG_PROGRAM": "/bin/false"})
    assert r.returncode == 1 and "nothing can be measured" in r.stderr, (r.returncode, r.stderr[-800:])
    rows = sqlite3.connect(place.path / "latency.sqlite").execute("SELECT state, why FROM latency").fetchall()
    assert not [x for x in rows if x[0] == "failed"], rows
    assert place.optimize("out").returncode == 0


def a_claim_of_the_dead_is_not_waited_for():
    place = Place()
    assert place.optimize("out").returncode == 0
    with sqlite3.connect(place.path / "latency.sqlite") as db:
        me = f"0000-boot pid:[4026531836] {os.getpid()} 1 {socket.gethostname()} 0"
        for owner in (str(os.getpid()), me, "", "x"):
            key = db.execute("SELECT key FROM latency WHERE state='measured' AND nest LIKE '(%' ORDER BY random()").fetchone()[0]
            db.execute("UPDATE latency SET state='claimed', owner=?, machine=?, at=strftime('%s','now') - 60 WHERE key=?", (owner, socket.gethostname(), key))
    r = place.optimize("out")
    assert r.returncode == 0 and "waiting for" not in r.stderr, (r.returncode, r.stderr[-800:])


def a_claim_that_says_nothing_is_waited_for_a_while_and_said():
    place = Place()
    assert place.optimize("out").returncode == 0
    with sqlite3.connect(place.path / "latency.sqlite") as db:
        # One of the first that a run asks for: a later one may not be asked for in so short a time.
        key = db.execute("SELECT key FROM latency WHERE state='measured' AND nest LIKE '(%' AND timing<>'inside its network' ORDER BY at LIMIT 1").fetchone()[0]
        db.execute("UPDATE latency SET state='claimed', owner='other-boot pid:[1] 7 7 elsewhere 0', at=strftime('%s','now') + 100000 WHERE key=?", (key,))
    r = place.optimize("out", "--tune-seconds", "3", limit=120)
    assert r.returncode == 0 and "waiting for process 7 on elsewhere" in r.stderr, r.stderr[-1500:]


class Server:
    """A server that answers with whatever the test says."""

    def __init__(self, talk):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(8)
        self.port = self.socket.getsockname()[1]
        self.talk = talk
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        self.kept = []
        while True:
            peer, _ = self.socket.accept()
            self.kept.append(peer)
            threading.Thread(target=self.one, args=(peer,), daemon=True).start()

    def one(self, peer):
        try:
            self.talk(peer)
        except OSError:
            pass


def a_peer_that_never_answers_or_announces_anything_is_named():
    def silent(peer):
        time.sleep(600)

    def greedy(peer):
        peer.recv(4)
        peer.sendall(struct.pack("<i", 0xff271) + struct.pack("<i", 2**31 - 1))
        time.sleep(600)

    for name, talk in {"silent": silent, "greedy": greedy}.items():
        server = Server(talk)
        P.done("targets", "add", name, "--rpc", f"127.0.0.1:{server.port}")
        began = time.monotonic()
        r = P.refused("optimize", P.model, "--rules", "exact", "--target", name, "--out", "board", limit=120)
        assert f"'{name}'" in r.stderr and f"127.0.0.1:{server.port}" in r.stderr, r.stderr
        assert time.monotonic() - began < 60, "it waited too long"
        (P.path / f"targets/{name}.json").unlink()
    P.done("targets", "add", "dead", "--rpc", "127.0.0.1:1")
    P.refused("optimize", P.model, "--rules", "exact", "--target", "dead", "--out", "board", saying="'dead'")
    (P.path / "targets/dead.json").unlink()


def few_files_are_a_reason_not_a_crash():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
    r = P.optimize("few", before=few)
    assert not crashed(r) and (r.returncode == 0 or r.stderr.strip()), (r.returncode, r.stderr[-800:])


def files_that_may_not_grow_are_a_reason_not_a_crash():
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    for words in (("compile", P.model, "--out", "small"), ("optimize", P.model, "--rules", "exact", "--trials", "1", "--out", "small")):
        r = P.refused(*words, before=small, codes=(1,))
        assert "internal fault" not in r.stderr, r.stderr
    assert not (P.path / "small").exists(), list((P.path / "small").iterdir())


def an_answer_that_cannot_be_written_is_an_error():
    for words in (("show", P.model), ("show", P.model, "--json"), ("zoo",), ("rules", "list", RULES), ("manual",), ("completion", "bash"), ("--help",)):
        with open("/dev/full", "w") as full:
            r = subprocess.run([LOOPEGG, *words], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=P.environment, cwd=P.path)
        assert r.returncode == 1 and b"No space left" in r.stderr or b"cannot write" in r.stderr, (words, r)


def two_runs_into_one_folder_leave_one_of_them_whole():
    place = Place()
    wide = json.loads(json.dumps(TINY))
    wide["nodes"][0]["attrs"]["out_channels"] = 16
    models = [place.model, place.write("wide.json", wide)]
    runs = [subprocess.Popen([LOOPEGG, "optimize", m, "--rules", "exact", "--trials", "1", "--out", "out", "--quiet"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True) for m in models]
    for run in runs:
        said = run.communicate(timeout=300)[1]
        assert run.returncode == 0, said[-800:]
    place.done("explain", "out", "--check")
    with sqlite3.connect(place.path / "latency.sqlite") as db:
        assert db.execute("SELECT count(*) FROM latency WHERE state='failed'").fetchone()[0] == 0
    assert not [f for f in (place.path / "out").iterdir() if f.name.startswith(".loopegg")]


def limits_hold_where_rules_offer_many_values():
    P.write("many.rules", "(rule grow (f ?x) => (g ?a ?b ?c ?d) :for ?a (range 0 1000000) :for ?b (range 0 1000000) :for ?c (range 0 1000000) :for ?d (range 0 1000000))\n")
    P.write("many.terms", "(f x)\n")
    began = time.monotonic()

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    r = P.done("saturate", "many.terms", "--rules", "many.rules", "--seconds", "3", "--nodes", "10000", "--json", limit=60, before=little)
    assert json.loads(r.stdout)["stop"] == "nodes" and json.loads(r.stdout)["iterations"][-1]["nodes"] <= 10000, r.stdout[-500:]
    assert time.monotonic() - began < 25


def long_terms_are_not_written_out():
    nodes = {"n0": {"op": "x", "children": [], "eclass": "c0", "cost": 1}}
    for i in range(1, 60):
        nodes[f"n{i}"] = {"op": "+", "children": [f"n{i-1}", f"n{i-1}"], "eclass": f"c{i}", "cost": 1}
    P.write("doubling.json", {"nodes": nodes, "root_eclasses": ["c59"]})
    r = P.done("extract", "doubling.json", "--best", "3", "--json", limit=60)
    assert json.loads(r.stdout)["best"][0]["term"] is None, r.stdout[:300]
    nodes = {"n0": {"op": "x", "children": [], "eclass": "c0", "cost": 1}}
    for i in range(1, 200000):
        nodes[f"n{i}"] = {"op": "f", "children": [f"n{i-1}"], "eclass": f"c{i}", "cost": 1}
    P.write("deep.json", {"nodes": nodes, "root_eclasses": ["c199999"]})
    P.done("extract", "deep.json", "--best", "3", limit=120)


def a_long_chain_is_shown():
    nodes = [{"name": f"c{i}", "op": "conv2d", "inputs": [f"c{i-1}" if i else "x"], "attrs": {"out_channels": 1, "kernel": [1, 1], "bias": False}} for i in range(20000)]
    P.write("chain.json", {"loopegg": 1, "name": "chain", "inputs": [{"name": "x", "shape": [1, 1, 1, 1], "dtype": "float32"}], "nodes": nodes, "outputs": ["c19999"]})

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    P.done("show", "chain.json", "--json", limit=120, before=little)


def networks_are_tuned_and_compiled_without_a_compiler():
    empty = P.path / "empty-path"
    empty.mkdir(exist_ok=True)
    r = P.optimize("no-cc", env={"PATH": str(empty)})
    assert r.returncode == 0 and (P.path / "no-cc/network.so").exists(), r.stderr
    P.done("compile", P.model, "--out", "no-cc-compiled", env={"PATH": str(empty)})
    P.done("run", "no-cc-compiled", env={"PATH": str(empty)})


def what_the_machine_refuses_is_told_with_its_path():
    for words, env in ((("optimize", P.model, "--out", "/proc/nothing"), {}), (("optimize", P.model, "--out", "x"), {"TMPDIR": str(P.path / "no-such-folder")}),
                       (("optimize", P.model, "--out", "x"), {"LOOPEGG_STORE": "/proc/nothing/store.sqlite"}), (("compile", P.model, "--out", "/proc/x/y"), {}),
                       (("measure", P.model), {"LOOPEGG_STORE": P.model}), (("optimize", P.model, "--out", "x", "--data", "no-such-data"), {})):
        r = P.refused(*words, env=env)
        assert "internal fault" not in r.stderr and ("/" in r.stderr or "no-such" in r.stderr), (words, r.stderr)


def times_that_no_clock_gives_are_not_taken():
    for line in ("-1.5 0 3", "0 0 3", "1e308 0 3", "nan 0 3", "1 -1 3", "1 0 0"):
        folder = P.path / "bundle"
        folder.mkdir(exist_ok=True)
        P.write("bundle/index.json", {"target": "h200", "id": "b", "programs": [{"key": "0" * 32, "what": "(nest)"}]})
        P.write("bundle/results.txt", "loopegg-results 1 b\n" + "0" * 32 + " ok " + line + "\n")
        P.refused("bundle", "import", "bundle", saying="results.txt:2")
    assert P.optimize("again").returncode == 0
    store = P.path / "latency.sqlite"
    with sqlite3.connect(store) as db:
        for value in (-1.5, 0, 1e308):
            db.execute("UPDATE latency SET median_ms=? WHERE key=(SELECT key FROM latency WHERE state='measured' AND median_ms>0 AND median_ms<1e6 AND nest LIKE '(%' LIMIT 1)", (value,))
    r = P.run("store", "check", str(store))
    assert r.returncode == 1 and "impossible times" in r.stdout, r
    r = P.optimize("again")
    assert r.returncode == 0 and json.loads(r.stdout)["original"]["median_ms"] > 0, r.stderr[-500:]


def stores_are_looked_after():
    place = Place()
    assert place.optimize("out").returncode == 0
    store = str(place.path / "latency.sqlite")
    rows = json.loads(place.done("store", "check", "--json").stdout)["stores"][0]["rows"]
    assert rows > 0
    with sqlite3.connect(store) as db:
        db.execute("INSERT INTO latency(key,target,nest,state,why) VALUES('f','host','(x)','failed','no space')")
        db.execute("INSERT INTO latency(key,target,nest,state,owner) VALUES('c','host','(x)','claimed','gone')")
    assert "1 rows forgotten" in place.done("store", "forget", "--failures").stdout
    place.done("store", "repair", store)
    after = json.loads(place.done("store", "check", store, "--json").stdout)["stores"][0]
    assert after["rows"] == rows and after["claimed"] == 0, after
    place.refused("store", "forget")
    raw = bytearray(open(store, "rb").read())
    raw[4096 + 200:4096 + 900] = os.urandom(700)
    open(store, "wb").write(raw)
    for end in ("-wal", "-shm"):
        pathlib.Path(store + end).unlink(missing_ok=True)
    assert place.run("store", "check", store).returncode in (0, 1)
    place.done("store", "repair", store)
    assert json.loads(place.done("store", "check", store, "--json").stdout)["ok"]
    assert place.optimize("out").returncode == 0


def a_folder_is_the_old_or_the_new_one():
    """A run that fails late leaves every file as it was."""
    place = Place()
    assert place.optimize("out").returncode == 0
    before = {str(f): f.read_bytes() for f in (place.path / "out").rglob("*") if f.is_file()}
    mine = place.write("out/notes.txt", "mine")
    r = place.optimize("out", env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT": "optimize:100000:fail:x", "LOOPEGG_FAULT_LOG": str(place.path / "log")})
    assert r.returncode == 0
    places = [line.rsplit(" ", 1)[0] for line in (place.path / "log").read_text().splitlines()]
    last_write = max(i for i, line in enumerate(places) if line == "optimize write") + 1
    before = {str(f): f.read_bytes() for f in (place.path / "out").rglob("*") if f.is_file()}
    commit = next(i for i in range(len(places) - 1, 0, -1) if places[i] != "optimize write")
    for at in (commit + 1, commit + 4):
        r = place.optimize("out", env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT": f"optimize:{at}:fail:{place.path}/flag{at}"})
        after = {str(f): f.read_bytes() for f in (place.path / "out").rglob("*") if f.is_file()}
        if r.returncode:
            assert after == before, [f for f in set(after) | set(before) if after.get(f) != before.get(f)]
        before = after
    r = place.optimize("out", env={"LOOPEGG_FAULTS": "1", "LOOPEGG_FAULT": f"optimize:{last_write}:cut:{place.path}/cut"})
    place.done("explain", "out", "--check")
    assert open(mine).read() == "mine"
    assert not [f for f in (place.path / "out").iterdir() if f.name.startswith(".loopegg")], list((place.path / "out").iterdir())


run_cases([an_error_of_the_machine_is_nobody_s_lasting_failure, a_claim_of_the_dead_is_not_waited_for,
           a_claim_that_says_nothing_is_waited_for_a_while_and_said, a_peer_that_never_answers_or_announces_anything_is_named,
           few_files_are_a_reason_not_a_crash, files_that_may_not_grow_are_a_reason_not_a_crash, an_answer_that_cannot_be_written_is_an_error,
           two_runs_into_one_folder_leave_one_of_them_whole, limits_hold_where_rules_offer_many_values, long_terms_are_not_written_out,
           a_long_chain_is_shown, networks_are_tuned_and_compiled_without_a_compiler, what_the_machine_refuses_is_told_with_its_path,
           times_that_no_clock_gives_are_not_taken, stores_are_looked_after, a_folder_is_the_old_or_the_new_one])
