"""Boards over ssh as a person uses them: added, measured on, unplugged, full, strangers, hostile; with sshds that the test starts."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from boards_of_ours import Board, Cable, Keys, Skipped
from cases import run_cases

LOOPEGG, DRIVER, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
DEEP = bool(os.environ.get("LOOPEGG_DEEP"))
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
MADE = {}


def made(name, make):
    """What `make` gives, made once. Where it cannot be had here, every test that wants it is skipped."""
    if name not in MADE:
        try:
            MADE[name] = make()
        except Skipped as why:
            MADE[name] = why
    if isinstance(MADE[name], Skipped):
        raise MADE[name]
    return MADE[name]


def keys():
    return made("keys", Keys)


def board(name):
    return made(name, lambda: Board(keys(), name))


def environment(name, **more):
    """Targets, store and cache of one case. All cases share the cache, so that the worker is built once."""
    ours = dict(LOOPEGG_SSH_CONFIG=str(keys().config), LOOPEGG_TARGETS=str(FOLDER / "targets"), LOOPEGG_STORE=str(FOLDER / f"{name}.sqlite"),
                LOOPEGG_EVIDENCE=str(FOLDER / "evidence.sqlite"), XDG_CACHE_HOME=str(FOLDER / "cache"), LOOPEGG_PROGRAM=LOOPEGG, LOOPEGG_FAULTS="1")
    return {**os.environ, **ours, **more}


def run(case, *words, code=0, **more):
    r = subprocess.run([LOOPEGG, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(case, **more), timeout=400)
    assert r.returncode == code, (r.returncode, r.stdout[-1500:], r.stderr[-1500:])
    return json.loads(r.stdout) if "--json" in words and code == 0 else r


def add(name, *boards):
    return run(name, "targets", "add", name, *(w for b in boards for w in ("--ssh", b.address)), "--json")


def start(case, target, count, seconds, *faults):
    return subprocess.Popen([DRIVER, target, str(count), str(seconds), *faults], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env=environment(case))


def finish(process):
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, (process.returncode, out[-500:], err[-1500:])
    return json.loads(out), err


def measure(case, target, count, *faults, seconds=20):
    return finish(start(case, target, count, seconds, *faults))


def a_board_is_added_and_shown():
    one = board("one")
    added = add("one", one)
    assert [b["address"] for b in added["boards"]] == [one.address] and added["boards"][0]["up"], added
    target = json.load(open(FOLDER / "targets/one.json"))
    assert target["reach"] == "ssh" and target["boards"] == [one.address] and target["tvm"]["mtriple"].startswith(os.uname().machine), target
    shown = next(t for t in run("one", "targets", "--json")["targets"] if t["name"] == "one")
    assert shown["boards"][0]["up"] is True and shown["boards"][0]["measured"] == 0, shown
    assert one.address in run("one", "targets").stdout
    copies = list((one.home / "cache/loopegg").iterdir())
    assert len(copies) == 1 and os.access(copies[0], os.X_OK), copies
    before = copies[0].stat().st_mtime_ns
    assert run("one", "targets", "check", "one", "--json")["boards"][0]["up"]
    assert copies[0].stat().st_mtime_ns == before, "a worker that is there is not copied again"
    file = subprocess.run(["ldd", copies[0]], capture_output=True, text=True)
    assert "not a dynamic executable" in file.stdout + file.stderr or "statically linked" in file.stdout, file


def candidates_are_checked_and_timed_there():
    got, _ = measure("timed", "one", 6)
    for a in got["answers"]:
        assert a["timed"] and a["n"] == 5 and a["machine"].startswith(f"board {board('one').address}"), a
    again, _ = measure("timed", "one", 6)
    assert again["compiled"] == 0, again
    shown = next(t for t in run("timed", "targets", "--json")["targets"] if t["name"] == "one")
    assert shown["boards"][0]["measured"] == 6 and shown["boards"][0]["lost"] == 0, shown


def a_network_is_measured_and_optimized_on_a_board():
    m = run("network", "measure", SOURCE / "examples/tiny-residual.json", "--target", "one", "--json")
    assert m["measured"] and m["median_ms"] > 0 and m["n"] >= 1 and m["machine"].startswith("board "), m
    out = FOLDER / "optimized"
    r = run("network", "optimize", SOURCE / "examples/tiny-residual.json", "--target", "one", "--trials", "1", "--out", out, "--json")
    assert (out / "result.json").exists(), r
    assert not board("one").workers() or time.sleep(1) or not board("one").workers(), "workers end with whoever asked them"


def what_a_candidate_does_there_costs_itself_alone():
    got, said = measure("faults", "one", 6, "1=crash", "2=hang", "3=wrong", "4=divide", seconds=3)
    answers = got["answers"]
    assert answers[0]["timed"] and answers[5]["timed"], answers
    assert "killed by signal 6" in answers[1]["why"] and not answers[1]["own"], answers[1]
    assert "past its limit of 3 s" in answers[2]["why"] and not answers[2]["own"], answers[2]
    assert "wrong output" in answers[3]["why"] and answers[3]["own"], answers[3]
    assert "signal 8" in answers[4]["why"], answers[4]
    again, _ = measure("faults", "one", 6)   # no faults any more: what was a candidate's own is remembered, the rest is tried again
    assert [a["timed"] for a in again["answers"]] == [True, True, True, False, True, True], again


def a_board_that_reboots_or_talks_nonsense_comes_back():
    got, said = measure("reboots", "one", 5, "1=reboot", "3=garbage")
    assert [a["timed"] for a in got["answers"]] == [True, False, True, False, True], got
    for place in (1, 3):
        assert "3 times a board went away" in got["answers"][place]["why"] and not got["answers"][place]["own"], got
    assert "is back" in said, said
    again, _ = measure("reboots", "one", 5)   # the board may have been lost last of all, since candidates become ready in any order
    assert all(a["timed"] for a in again["answers"]), again
    shown = next(t for t in run("reboots", "targets", "--json")["targets"] if t["name"] == "one")
    assert shown["boards"][0]["up"] and shown["boards"][0]["lost"] == 6, shown


def a_board_whose_power_goes_loses_no_candidate():
    two = board("two")
    add("pair", board("one"), two)
    process = start("power", "pair", 16, 20, "all=sleep 500")
    while not two.workers() and process.poll() is None:   # on a busy machine it takes its time
        time.sleep(0.1)
    time.sleep(1)
    two.power_off()
    time.sleep(3)
    two.start()
    got, said = finish(process)
    assert all(a["timed"] for a in got["answers"]), got
    assert two.address in said, said
    return f" ({sum(two.address in a['machine'] for a in got['answers'])} of 16 on the board that went)"


def resume(pid):
    with contextlib.suppress(ProcessLookupError):   # the driver may have given this worker up, and ended it
        os.kill(pid, signal.SIGCONT)


def stop_in_the_middle(b, process):
    """Stops the worker of a board and the candidate that the worker has started, and returns both. The first candidate is the driver's trial of the board, and
    is left alone."""
    first = None
    while process.poll() is None:
        for worker in b.workers():
            try:
                candidates = [int(c) for c in open(f"/proc/{worker}/task/{worker}/children").read().split()]
                first = first or next(iter(candidates), None)
                if not candidates or candidates[0] == first:
                    continue
                os.kill(worker, signal.SIGSTOP)
                os.kill(candidates[0], signal.SIGSTOP)
            except OSError:
                continue
            if open(f"/proc/{candidates[0]}/stat").read().rpartition(")")[2].split()[0] == "T":
                return worker, candidates[0]
            resume(worker)   # the candidate had ended before it was stopped
        time.sleep(0.02)
    raise AssertionError("no candidate was seen on the board")


def a_board_that_stands_still_loses_no_candidate():
    """A board that swaps, throttles or gives its processor to other programs stands still for a while: a candidate is late there by no fault of its own."""
    limit = 4
    process = start("still", "one", 6, limit, "all=sleep 500")
    stopped = stop_in_the_middle(board("one"), process)
    time.sleep(limit + 1)
    for pid in stopped:
        resume(pid)
    got, said = finish(process)
    assert all(a["timed"] for a in got["answers"]), (got, said)


def boards_that_are_all_away_end_the_run():
    three = board("three")
    add("alone", three)
    three.power_off()
    r = run("away", "measure", SOURCE / "examples/tiny-residual.json", "--target", "alone", code=1)
    assert three.address in r.stderr and "onnection refused" in r.stderr, r.stderr
    r = run("away", "optimize", SOURCE / "examples/tiny-residual.json", "--target", "alone", "--out", FOLDER / "never", code=1)
    assert not (FOLDER / "never/result.json").exists()
    r = run("away", "targets", "check", "alone", code=1)
    assert "onnection refused" in r.stdout, r.stdout
    shown = run("away", "targets").stdout
    assert "away for" in shown, shown
    three.start()
    assert run("away", "targets", "check", "alone", "--json")["boards"][0]["up"]


def a_full_disk_is_said_and_passes():
    four = board("four")
    four.full.write_text("")
    r = run("full", "targets", "add", "full", "--ssh", four.address, code=1)
    assert "has no space for the worker" in r.stderr and not (FOLDER / "targets/full.json").exists(), r.stderr
    four.full.unlink()
    add("full", four)
    four.full.write_text("")   # a worker that lies there needs no room
    got, _ = measure("full", "full", 2)
    assert all(a["timed"] for a in got["answers"]), got
    four.full.unlink()
    copy = next((four.home / "cache/loopegg").iterdir())
    copy.write_bytes(b"\0" * copy.stat().st_size)   # what a power cut may leave
    got, _ = measure("cut", "full", 2)
    assert all(a["timed"] for a in got["answers"]), got


def strangers_are_refused():
    one = board("one")
    unknown = keys().write_config("config-unknown", "client", "nobody-known")
    r = run("strange", "targets", "add", "strange", "--ssh", one.address, code=1, LOOPEGG_SSH_CONFIG=str(unknown))
    assert "does not know the key of board" in r.stderr and "compare the fingerprint" in r.stderr, r.stderr
    other = keys().write_config("config-other", "stranger", "known")
    r = run("strange", "targets", "add", "strange", "--ssh", one.address, code=1, LOOPEGG_SSH_CONFIG=str(other))
    assert "does not let us in" in r.stderr and "ssh-copy-id" in r.stderr, r.stderr
    (keys().folder / "changed").write_text((keys().folder / "known").read_text().replace((keys().folder / "host.pub").read_text().split()[1], (keys().folder / "stranger.pub").read_text().split()[1]))
    r = run("strange", "targets", "add", "strange", "--ssh", one.address, code=1, LOOPEGG_SSH_CONFIG=str(keys().write_config("config-changed", "client", "changed")))
    assert "is another than the one that ssh knows" in r.stderr, r.stderr
    assert not (FOLDER / "targets/strange.json").exists()
    assert not (keys().folder / "nobody-known").exists(), "no key is accepted silently"


def addresses_hold_no_secret_and_no_option():
    for bad in ("pi:s3cret-w0rd@board", "-oProxyCommand=touch x", "pi@-oProxyCommand", "pi@board:0", "pi@board:99999", "pi@bo ard", "pi@board;id", "@board", ""):
        r = run("bad", "targets", "add", "bad", "--ssh", bad, code=2)
        assert "[USER@]HOST[:PORT]" in r.stderr and "s3cret-w0rd" not in r.stderr, r.stderr
    (FOLDER / "targets").mkdir(exist_ok=True)
    (FOLDER / "targets/worse.json").write_text('{"name": "worse", "reach": "ssh", "boards": ["pi@board", "-x"], "tvm": {"kind": "llvm"}}')
    r = run("bad", "measure", SOURCE / "examples/tiny-residual.json", "--target", "worse", code=1)
    assert "worse.json:1:58" in r.stderr and "[USER@]HOST[:PORT]" in r.stderr, r.stderr
    (FOLDER / "targets/worse.json").unlink()


def no_secret_is_in_a_process_list_a_log_or_a_store():
    secret = (keys().folder / "client").read_text().splitlines()[1]
    process = start("secret", "one", 4, 20, "all=sleep 500")
    seen = set()
    while process.poll() is None:
        for entry in os.listdir("/proc"):
            try:
                line = open(f"/proc/{entry}/cmdline", "rb").read() if entry.isdigit() else b""
            except OSError:
                continue
            if b"ssh" in line and str(board("one").port).encode() in line:
                seen.add(line)
        time.sleep(0.05)
    out, err = process.communicate()
    assert seen and not any(secret.encode() in line for line in seen), seen
    assert any(b"BatchMode=yes" in line and b"StrictHostKeyChecking=yes" in line for line in seen), seen
    assert secret not in out + err and secret.encode() not in (FOLDER / "secret.sqlite").read_bytes()


def a_foreign_board_needs_a_cross_compiler_that_is_named():
    foreign, like = ("x86_64", "i7") if os.uname().machine == "aarch64" else ("aarch64", "a57")
    r = run("foreign", "targets", "add", "foreign", "--ssh", board("one").address, "--like", like, code=1, PATH="/nowhere:" + str(FOLDER))
    assert f"apt install g++-{foreign.replace('_', '-')}-linux-gnu" in r.stderr, r.stderr
    assert not (FOLDER / "targets/foreign.json").exists()


def four_cables():
    ours = [Cable(n) for n in range(1, 5)]
    add("cabled", *(Board(keys(), f"cabled{n}", c.address, c.inside) for n, c in enumerate(ours)))
    target = json.load(open(FOLDER / "targets/cabled.json"))
    target["name"], target["boards"] = "single", target["boards"][:1]
    (FOLDER / "targets/single.json").write_text(json.dumps(target))
    return ours


def cables():
    """Four boards, each with a cable of its own, as the target 'cabled'. The first board alone is the target 'single'."""
    return made("cables", four_cables)


def four_boards_measure_more_than_one():
    """Measuring, not compiling, must be the limit. So the deep count sleeps so long that even on a busy machine no board waits for a compiler."""
    cables()
    sleep, each = (8000, 6) if DEEP else (1000, 8)
    rates = {}
    for target, boards in (("single", 1), ("cabled", 4)):
        got, _ = measure(f"rate-{target}", target, boards * each + 1, f"all=sleep {sleep}")   # one of them was timed before the clock began
        assert all(a["timed"] for a in got["answers"]), got
        rates[target] = boards * each / got["seconds"] * 60
    return f" (4 boards measure {rates['cabled']:.1f} candidates a minute, one {rates['single']:.1f}: {rates['cabled'] / rates['single']:.2f} times)"


def a_cable_that_is_pulled_loses_no_candidate():
    pause, limit, count = (30, 20, 600) if DEEP else (16, 7, 60)   # a cable is out for most of a candidate's time or for longer
    ours = cables()
    process = start("pulled", "cabled", count, limit, "all=sleep 1000")
    pulled = 0
    while process.poll() is None:
        cable = ours[pulled % 4]
        time.sleep(pause / 2)
        cable.pull()
        time.sleep(pause / 2)
        cable.plug()
        pulled += 1
    got, said = finish(process)
    lost = [a for a in got["answers"] if not a["timed"]]
    assert not lost, (lost, said[-1500:])
    return f" ({pulled} cables pulled, none of {count} lost)"


run_cases([a_board_is_added_and_shown, candidates_are_checked_and_timed_there, what_a_candidate_does_there_costs_itself_alone,
           a_board_that_reboots_or_talks_nonsense_comes_back, a_board_whose_power_goes_loses_no_candidate, a_board_that_stands_still_loses_no_candidate, boards_that_are_all_away_end_the_run, a_full_disk_is_said_and_passes,
           strangers_are_refused, addresses_hold_no_secret_and_no_option, no_secret_is_in_a_process_list_a_log_or_a_store, a_foreign_board_needs_a_cross_compiler_that_is_named,
           four_boards_measure_more_than_one, a_cable_that_is_pulled_loses_no_candidate, a_network_is_measured_and_optimized_on_a_board])
