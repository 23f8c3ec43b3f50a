"""The test runner counts right: cases, crashes, time-outs, skips, scripts; a crash is never a silent pass."""
import contextlib
import functools
import importlib.util
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import run_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("run_tests", ROOT / "setup/run_tests.py")
run_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run_tests)

TELL = 'tell() { echo "$@" >>"$LOOPEGG_TEST_EVENTS"; }; '
# (what it shows, the script, time limit, passed, failed cases with a word of the reason, skipped cases)
CASES = [
    ("cases pass", TELL + "tell start a; tell pass 0.1 a; tell start b; tell pass 0.1 b", 9, ["a", "b"], {}, []),
    ("a case fails", TELL + "tell start a; tell fail 0.1 a; tell start b; tell pass 0.1 b; exit 1", 9, ["b"], {"a": "failed"}, []),
    ("the running case crashes", TELL + "tell start a; tell pass 0.1 a; tell start b c; kill -SEGV $$", 9, ["a"], {"b c": "SIGSEGV"}, []),
    ("a crash after the last case", TELL + "tell start a; tell pass 0.1 a; kill -ABRT $$", 9, ["a"], {"demo": "SIGABRT"}, []),
    ("a crash before the first case", "kill -ABRT $$", 9, [], {"demo": "SIGABRT"}, []),
    ("a case hangs", TELL + "tell start a; sleep 60", 0.3, [], {"a": "no answer"}, []),
    ("a case skips", TELL + "tell start a: b; echo 'SKIPPED: a: b: no GPU'; tell pass 0.1 a: b", 9, [], {}, ["a: b"]),
    ("a skip that names no case", TELL + "tell start a; echo 'SKIPPED: row 3: no GPU'; tell pass 0.1 a", 9, ["a"], {}, ["row 3"]),
    ("a script passes", "true", 9, ["demo"], {}, []),
    ("a script fails", "exit 3", 9, [], {"demo": "exit code 3"}, []),
    ("a script skips", "echo no peers here; exit 77", 9, [], {}, ["demo"]),
    ("a script's cases", "echo 'ok - x'; echo 'not ok - y'; exit 1", 9, ["x"], {"y": "failed"}, []),
    ("a script that lies", "echo 'ok - x'; exit 1", 9, ["x"], {"demo": "exit code 1"}, []),
]


def counts(script, limit, passed, failures, skipped):
    test = {"name": "demo", "cmd": ["/bin/sh", "-c", script], "env": {}, "workdir": "/", "timeout": limit, "is_parallel": True}
    with contextlib.redirect_stderr(io.StringIO()):
        [o] = run_tests.Runner([test], False, ROOT).run()
    right = o.passed == passed and [c for c, _ in o.skipped] == skipped and [c for c, _ in o.failures] == list(failures)
    right = right and all(word in dict(o.failures)[case] for case, word in failures.items())
    assert right, f"passed {o.passed}, failures {o.failures}, skipped {o.skipped}".replace("SKIPPED: ", "")


def what_is_skipped_is_named_with_what_cures_it():
    room = run_tests.Outcome("room")
    lacking = "no sshd here (setup/prepare test-extras installs it)"
    room.skipped = [("a", lacking), ("b", lacking), ("c", "no GPU"), ("d", "only ./test --deep runs it: it takes an hour")]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        run_tests.show_skipped([room])
    assert said.getvalue().splitlines() == [f"SKIPPED room: a and 1 more: {lacking}".replace("\n", ""), "SKIPPED room: c: no GPU", "SKIPPED 1 that only './test --deep' runs",
                                            "'setup/prepare test-extras' installs what 2 of the skipped tests lack"], "other words than these were said"


run_cases([(name, functools.partial(counts, *expected)) for name, *expected in CASES] + [what_is_skipped_is_named_with_what_cures_it])
