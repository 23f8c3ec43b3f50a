"""Two users share a store, and one of them is killed every 20 s: no lock error reaches a person, and no measured time is lost. LOOPEGG_SOAK=SECONDS says for how long."""
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import DEEP, LOOPEGG, TINY, Place, run_cases

SECONDS = float(os.environ.get("LOOPEGG_SOAK", "0")) or (1800 if DEEP else 30)
KILL_EVERY = 20 if SECONDS >= 100 else 5


def measured(store):
    with sqlite3.connect(store, timeout=60) as db:
        return {k: v for k, *v in db.execute("SELECT key, median_ms, n FROM latency WHERE state='measured' AND nest LIKE '(%'")}


def two_users_share_a_store():
    place = Place()
    began, rounds, kills, known, words = time.monotonic(), 0, 0, {}, []

    def start(user, round_number):
        model = dict(TINY, name=f"net{round_number}")
        model["nodes"] = [dict(n, attrs=dict(n["attrs"], out_channels=8 + round_number % 40)) if n["name"] == "conv1" else n for n in TINY["nodes"]]
        file = place.write(f"{user}.json", model)
        log = open(place.path / f"{user}.log", "w")
        return subprocess.Popen([LOOPEGG, "optimize", file, "--rules", "exact", "--trials", "4", "--out", f"{place.path}/{user}", "--quiet"], env=place.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said(user):
        text = (place.path / f"{user}.log").read_text()
        assert "locked" not in text and "store '" not in text and "internal fault" not in text, text
        words.append(text)

    one, two = start("one", 0), start("two", 0)
    killed = time.monotonic()
    while time.monotonic() - began < SECONDS:
        time.sleep(0.2)
        if one.poll() is not None:
            assert one.returncode == 0, (place.path / "one.log").read_text()
            said("one")
            rounds += 1
            one = start("one", rounds)
        if two.poll() is not None or time.monotonic() - killed > KILL_EVERY:
            if two.poll() is None:
                two.send_signal(signal.SIGKILL)
                two.wait()
                kills += 1
                now = measured(place.path / "latency.sqlite")
                assert all(now.get(k) == v for k, v in known.items()), "something that was measured is lost"
                known, killed = now, time.monotonic()
            said("two")
            two = start("two", rounds)
    assert one.wait(300) == 0, (place.path / "one.log").read_text()
    assert two.wait(300) == 0, (place.path / "two.log").read_text()
    now = measured(place.path / "latency.sqlite")
    assert all(now.get(k) == v for k, v in known.items())
    place.done("store", "check", place.path / "latency.sqlite")
    return f": {SECONDS:.0f} s, {rounds} runs ended, {kills} were killed, {len(now)} schedules measured"


run_cases([two_users_share_a_store])
