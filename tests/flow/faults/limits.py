"""What is forged, has no end, or is scarce: forged networks, pipes and devices where files belong, few processes, odd words. Each ends soon, with a reason, and leaves nothing behind."""
import json
import os
import pathlib
import pwd
import resource
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tiny_onnx
from place import LOOPEGG, TINY, Place, Skipped, crashed, run_cases

P = Place()
FORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void stay(void) {
    char name[4096];
    snprintf(name, sizeof name, "%s/forked", getenv("TMPDIR"));
    pid_t child = fork();
    if (child == 0) { setsid(); for (;;) sleep(1); }
    FILE* f = fopen(name, "w");
    if (f) fprintf(f, "%d", (int)child), fclose(f);
    close(3);   /* where answers go */
    for (;;) ;
}
"""
ANSWERS = r"""
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) static void answer(void) {
    char folder[4096], path[8192];
    snprintf(folder, sizeof folder, "%s", getenv("TMPDIR"));
    DIR* all = opendir(folder);
    for (struct dirent* e; all && (e = readdir(all));) {
        if (strncmp(e->d_name, "loopegg-", 8)) continue;
        snprintf(path, sizeof path, "%s/%s/1.npy", folder, e->d_name);
        DEED;
    }
    const char* said = "{\"id\":0,\"ok\":true}\n";
    for (int i = 0; i < 2; ++i) if (write(3, said, strlen(said)) < 0) _exit(1);
    for (;;) sleep(1);
}
"""


def forged(name, source):
    """A folder as 'compile' writes it, whose library is another one that the manifest does not name. Answers the folder and one for its temporary files."""
    if not (P.path / "compiled").exists():
        P.done("compile", P.model, "--out", "compiled")
    folder, temporary = P.path / name, P.path / f"{name}-tmp"
    shutil.copytree(P.path / "compiled", folder)
    temporary.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", P.write(f"{name}.c", source), "-o", folder / "network.so"], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["network.so"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return name, temporary


def environment_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return b""


def left_behind():
    here = str(P.path).encode()
    return [p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid()) and here in environment_of(p)]


def a_forged_network_starts_no_process_and_does_not_stay():
    name, temporary = forged("stays", FORKS)
    r = P.refused("run", name, saying="answers no more", limit=40, env={"TMPDIR": str(temporary)})
    assert (temporary / "forked").read_text() == "-1", "it started a process"
    assert "cannot be run" in r.stderr, r.stderr
    assert not left_behind(), left_behind()


def what_a_forged_network_leaves_as_its_output_is_not_read_without_end():
    for kind, deed in {"pipe": "unlink(path), mkfifo(path, 0600)", "long": "FILE* f = fopen(path, \"w\"); if (f) fclose(f); if (truncate(path, 1L << 33)) _exit(2)"}.items():
        name, temporary = forged(f"answers-{kind}", ANSWERS.replace("DEED", deed))
        P.refused("run", name, saying={"pipe": "it is a pipe", "long": "larger than"}[kind], limit=40, env={"TMPDIR": str(temporary)})
    assert not left_behind(), left_behind()


def what_a_worker_started_ends_with_it():
    script = P.write("worker.sh", "#!/bin/sh\nsleep 600 &\necho started >>\"$STARTED\"\nexit 3\n")
    os.chmod(script, 0o755)
    P.refused("optimize", P.model, "--rules", "exact", "--trials", "1", "--out", "killed", saying="nothing can be measured", limit=60, env={"LOOPEGG_PROGRAM": script, "STARTED": str(P.path / "started")})
    assert (P.path / "started").exists(), "no worker was started"
    assert not left_behind(), left_behind()


def special_files_are_refused_and_not_waited_for():
    """A pipe that nobody writes to, and a device without end, wherever a file may be named."""
    few = ("--measure", "params", "--seeds", "1", "--batch", "2", "--no-store")
    P.write("weighed/model.json", dict(TINY, weights="weights.safetensors"))
    P.write("x.terms", "(f x)\n")
    P.write("x.rules", "(rule r (f ?x) => (g ?x))\n")
    P.write("data/labels.npy", "")
    P.write("run/result.json", "{}")
    P.write("sealed/network.json", "{}")
    asked = [("special", ("show", "special")), ("special.json", ("show", "special.json")), ("special.onnx", ("import", "special.onnx", "-o", "y.json")), ("weighed/weights.safetensors", ("run", "weighed/model.json")),
             ("data/images.npy", ("score", P.model, *few, "--data", "data")), ("run/result.json", ("report", "run")), ("run/result.json", ("explain", "run")), ("sealed/manifest.json", ("run", "sealed")),
             ("x.npy", ("run", P.model, "--input", "x.npy")), ("special.rules", ("rules", "list", "special.rules")), ("special.terms", ("term", "special.terms")),
             ("special.terms", ("saturate", "special.terms", "--rules", "x.rules")), ("e.json", ("extract", "e.json", "--method", "greedy-dag")), ("p.json", ("apply", P.model, "p.json", "-o", "y.json")),
             ("jobs.json", ("batch", "jobs.json", "--out", "batch", "--dry-run")), ("t.jsonl", ("score", P.model, "--trainings", "t.jsonl", *few)), ("s.sqlite", ("store", "check", "s.sqlite")),
             ("s.sqlite", ("measure", P.model, "--store", "s.sqlite")), ("targets/special.json", ("targets", "check", "special")), ("b/index.json", ("bundle", "import", "b", "--store", "other.sqlite"))]
    bad = []
    for place, words in asked:
        file = P.path / place
        for kind in ("pipe", "device"):
            file.parent.mkdir(exist_ok=True)
            file.unlink(missing_ok=True)
            os.mkfifo(file) if kind == "pipe" else file.symlink_to("/dev/zero")
            try:
                r = P.run(*words, limit=10, before=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)))
                if r.returncode != 1 or f"it is a {kind}" not in r.stdout + r.stderr:
                    bad.append((kind, words, r.returncode, r.stderr[-300:]))
            except subprocess.TimeoutExpired:
                bad.append((kind, words, "no answer"))
            file.unlink()
    assert not bad, "\n".join(map(str, bad))
    return f": {2 * len(asked)} commands"


def no_line_of_another_file_is_shown():
    secret = P.write("secret", "password hunter2\n")
    (P.path / "link.rules").symlink_to(secret)
    for name in ("secret", str(P.path / "secret"), "link.rules"):
        r = P.refused("rules", "list", P.write("asks.rules", f'(include "{name}")\n'), saying="ends in '.rules'")
        assert "hunter2" not in r.stdout + r.stderr, r.stderr


def numbers_that_no_option_can_hold_are_refused():
    P.write("x.terms", "(f x)\n"), P.write("x.rules", "(rule r (f ?x) => (g ?x))\n")
    for option, value in (("--nodes", "99999999999999999999"), ("--nodes", "18446744073709551616"), ("--iterations", "99999999999999999999"), ("--nodes", "12x")):
        P.refused("saturate", "x.terms", "--rules", "x.rules", option, value, codes=(2,), saying=value)
    P.refused("show", P.model, "--batch", "-9223372036854775809", codes=(2,))


def a_size_that_is_none_is_not_an_open_one():
    for size in (-2, -2**63):
        P.refused("show", P.write("negative.onnx", tiny_onnx.model([tiny_onnx.node("Relu", ["x"], ["y"])], [size, 3])), saying=f"dimension 0 of the input 'x' is {size}")
    for size in (-1, 0):
        P.done("show", P.write("open.onnx", tiny_onnx.model([tiny_onnx.node("Relu", ["x"], ["y"])], [size, 3])))


def a_number_is_an_input_as_any_other():
    scalar = P.write("scalar.onnx", tiny_onnx.model([tiny_onnx.node("Relu", ["x"], ["y"])], []))
    P.done("run", scalar)
    P.done("compile", scalar, "--out", "scalar")
    P.done("run", "scalar")
    P.done("measure", "scalar", "--rounds", "1")


def a_password_in_an_address_is_not_shown():
    for address in ("postgresql://me:hunter2/x@db/loopegg", "postgresql://me:12/hunter2@db/loopegg", "postgresql://me:1?hunter2@db/loopegg", "host=db password=hunter2 dbname=loopegg", "password = hunter2 host=db"):
        for words, env in ((("store", "check", address), {}), (("measure", P.model, "--store", address), {}), (("store", "check"), {"LOOPEGG_STORE": address}), (("measure", P.model), {"LOOPEGG_STORE": address})):
            r = P.refused(*words, env=env)
            assert "hunter2" not in r.stdout + r.stderr, (words, r.stdout, r.stderr)
    assert not [f for f in os.listdir(P.path) if "hunter2" in f], "it was taken for a file"


def a_home_that_is_empty_is_not_the_folder_of_the_command():
    place = Place()
    work = place.path / "work"
    work.mkdir()
    for name in ("LOOPEGG_STORE", "LOOPEGG_EVIDENCE", "LOOPEGG_TARGETS"):
        del place.environment[name]
    for home, cache in (("", ""), ("", None), ("relative", None)):
        environment = {k: v for k, v in dict(place.environment, HOME=home, XDG_CACHE_HOME=cache).items() if v is not None}
        subprocess.run([LOOPEGG, "store", "check"], cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        subprocess.run([LOOPEGG, "targets"], cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        assert not list(work.iterdir()), list(work.iterdir())


def runs_that_are_killed_leave_no_folders_for_the_next():
    place = Place()
    temporary = place.path / "tmp"
    temporary.mkdir()
    for i in range(4):
        process = subprocess.Popen([LOOPEGG, "optimize", place.model, "--rules", "exact", "--trials", "2", "--out", f"out{i}", "--quiet"], cwd=place.path, stdin=subprocess.DEVNULL,
                                   env=dict(place.environment, TMPDIR=str(temporary)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if list(temporary.iterdir()):
                break
            time.sleep(0.02)
        time.sleep(0.3 * i)
        process.kill()
        process.wait()
    for _ in range(50):   # workers notice it
        if not [p for p in os.listdir("/proc") if p.isdigit() and str(temporary).encode() in environment_of(p)]:
            break
        time.sleep(0.2)
    place.done("compile", place.model, "--out", "compiled", env={"TMPDIR": str(temporary)})
    place.done("run", "compiled", env={"TMPDIR": str(temporary)})
    assert not list(temporary.iterdir()), list(temporary.iterdir())


def few_processes_are_a_reason_not_a_crash():
    if os.getuid() != 0:
        raise Skipped("only root can become a user without processes")
    place = Place()
    nobody = pwd.getpwnam("nobody")
    os.chmod(place.path, 0o777)

    def few(most):
        def become():
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            os.setgroups([]), os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)
        return become
    reach = place.run("show", place.model, before=few(1000))
    if reach.returncode:
        raise Skipped("another user cannot run the program here")
    for most in (1, 4, 6):
        r = place.optimize(f"out{most}", before=few(most), env={"TMPDIR": str(place.path)})
        assert not crashed(r) and (r.returncode == 0 or r.stderr.strip()), (most, r.returncode, r.stderr[-800:])
        store = place.path / "latency.sqlite"
        if store.exists():
            with sqlite3.connect(store) as db:
                assert db.execute("SELECT count(*) FROM latency WHERE state='claimed'").fetchone()[0] == 0, most


run_cases([a_forged_network_starts_no_process_and_does_not_stay, what_a_forged_network_leaves_as_its_output_is_not_read_without_end,
           what_a_worker_started_ends_with_it, special_files_are_refused_and_not_waited_for, no_line_of_another_file_is_shown,
           numbers_that_no_option_can_hold_are_refused, a_size_that_is_none_is_not_an_open_one, a_number_is_an_input_as_any_other, a_password_in_an_address_is_not_shown, a_home_that_is_empty_is_not_the_folder_of_the_command,
           runs_that_are_killed_leave_no_folders_for_the_next, few_processes_are_a_reason_not_a_crash])
