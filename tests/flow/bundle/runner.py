"""A bundle's runner, built with a driver of main memory: a program that is wrong, crashes, is late or breaks the device does not affect the others."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
from cases import build_driver, build_runner, run_cases   # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
RUNNER = build_runner(FOLDER.name)
ENVIRONMENT = {**os.environ, "LOOPEGG_CUDA_DRIVER": build_driver(FOLDER.name)}
HEAD = "loopegg-bundle 3 test sm_0 0123"


def run(folder, environment=None):
    return subprocess.run([RUNNER, "bundle.txt", "results.txt"], cwd=folder, capture_output=True, text=True, timeout=60, env={**ENVIRONMENT, **(environment or {})})


def results_in(folder):
    """What the runner says of each program; None where it says nothing."""
    file = pathlib.Path(folder, "results.txt")
    if not file.exists():
        return None
    head, *lines = file.read_text().splitlines()
    assert head == "loopegg-results 1 0123", head
    return dict(line.split(" ", 1) for line in lines)


def write_programs(folder, programs, cut=""):
    lines = [HEAD]
    for i, (does, wanted) in enumerate(programs):
        pathlib.Path(folder, f"k{i}").write_bytes(does.encode() + b"\0")
        pathlib.Path(folder, f"w{i}").write_bytes(struct.pack("f", wanted))
        lines += [f"program p{i}", "memory 1", f"kernel 0 k{i} f 1 1 1 1 1 1", f"check 0 1 f32 1 w{i} 1e-6", "launch 0 1 0", "end"]
    pathlib.Path(folder, "bundle.txt").write_text("\n".join(lines) + "\n" + cut)


def answers(programs, environment=None, cut=""):
    """How the runner ends and, by program, what it says. `programs`: what the kernel of each does, and what its one float should then be; `cut`: what the bundle ends with."""
    with tempfile.TemporaryDirectory() as folder:
        write_programs(folder, programs, cut)
        return run(folder, environment), results_in(folder)


def expect(said, wanted):
    assert list(said) == list(wanted), said
    for key, start in wanted.items():
        assert said[key].startswith(start), (key, said[key])


def right_programs_are_timed():
    done, said = answers([("add", 1), ("add", 1)])
    expect(said, {"p0": "ok 0.", "p1": "ok 0."})
    assert done.returncode == 0 and "2 of 2 programs right" in done.stdout, done


def a_program_that_fails_costs_itself_alone():
    done, said = answers([("add", 1), ("illegal", 1), ("add", 1), ("crash", 1), ("add", 1), ("late", 1), ("add", 2), ("add", 1)])
    expect(said, {"p0": "ok", "p1": "failed running: CUDA_ERROR_ILLEGAL_ADDRESS", "p2": "ok", "p3": "failed it crashed by signal 11", "p4": "ok",
                  "p5": "failed it takes more than", "p6": "wrong element 0 is 1", "p7": "ok"})
    assert done.returncode == 1 and "4 of 8 programs right" in done.stdout, done


def the_last_program_may_fail_too():
    _, said = answers([("add", 1), ("illegal", 1)])
    expect(said, {"p0": "ok", "p1": "failed"})


def weights_are_gathered_in_the_order_of_their_visits():
    # A 2 x 3 matrix column by column, with one row more than there is: what lies outside is 0. The kernel adds one to the first element.
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "k").write_bytes(b"add\0")
        pathlib.Path(folder, "logical").write_bytes(bytes([1, 2, 3, 4, 5, 6]))
        pathlib.Path(folder, "wanted").write_bytes(struct.pack("9f", 2, 4, 0, 2, 5, 0, 3, 6, 0))
        pathlib.Path(folder, "bundle.txt").write_text("\n".join([
            HEAD, "program p", "memory 9", "kernel 0 k f 1 1 1 1 1 1", "logical 0 6 i8 1 logical 0",
            "gather float32 0 2 2 2 3 3 3 0 0 1 0 1 0", "check 0 9 f32 1 wanted 0", "launch 0 1 0", "end"]) + "\n")
        done = run(folder)
        assert done.returncode == 0, (done, results_in(folder))


def gathered_weights_are_packed_in_pairs():
    # 1, 2, 3 and 65520, which is beyond the largest fp16 number. The kernel adds one to the first word, as a float.
    for kind, words in (("fp16", (0x40003c00, 0x7c004200)), ("bf16", (0x40003f80, 0x47804040))):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "k").write_bytes(b"add\0")
            pathlib.Path(folder, "logical").write_bytes(struct.pack("4f", 1, 2, 3, 65520))
            first, second = struct.unpack("2f", struct.pack("2I", *words))
            pathlib.Path(folder, "wanted").write_bytes(struct.pack("2f", first + 1, second))
            pathlib.Path(folder, "bundle.txt").write_text("\n".join([
                HEAD, "program p", "memory 2", "kernel 0 k f 1 1 1 1 1 1", "logical 0 4 f32 1 logical 0",
                f"gather {kind} 0 1 1 4 4 0 1", "check 0 2 f32 1 wanted 0", "launch 0 1 0", "end"]) + "\n")
            done = run(folder)
            assert done.returncode == 0 and results_in(folder)["p"].startswith("ok"), (kind, done, results_in(folder))


def weights_that_are_drawn_are_the_same_everywhere():
    # 256 steps from -1: the generator is SplitMix64. The kernel adds one to the first element.
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "k").write_bytes(b"add\0")
        pathlib.Path(folder, "wanted").write_bytes(struct.pack("3f", *[b / 128 - 1 + (i == 0) for i, b in enumerate(drawn_bytes(1, 3))]))
        pathlib.Path(folder, "bundle.txt").write_text("\n".join([
            HEAD, "program p", "memory 3", "kernel 0 k f 1 1 1 1 1 1", "drawn 3 1 -1 0.0078125", "place 0", "check 0 3 f32 1 wanted 0", "launch 0 1 0", "end"]) + "\n")
        done = run(folder)
        assert done.returncode == 0, (done, results_in(folder))


def drawn_bytes(seed, count):
    """The highest byte of each number of SplitMix64, by its own definition."""
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        x = seed
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        yield x >> 56


def a_run_that_was_cut_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        write_programs(folder, [("add", 1), ("crash", 1), ("add", 1)])
        kept = "loopegg-results 1 0123\np0 ok 7 0 21\n"
        pathlib.Path(folder, "results.txt").write_text(kept + "p1 fai")    # killed while it wrote
        run(folder)
        said = results_in(folder)
        expect(said, {"p0": "ok 7 0 21", "p1": "failed it crashed", "p2": "ok"})
        pathlib.Path(folder, "results.txt").write_text("loopegg-results 1 4567\np0 ok 7 0 21\n")   # of another bundle
        run(folder)
        assert results_in(folder)["p0"] != "ok 7 0 21", results_in(folder)


def without_a_driver_it_says_so():
    done, said = answers([("add", 1)], {"LOOPEGG_CUDA_DRIVER": "/nowhere/libcuda.so"})
    assert done.returncode == 1 and "driver of the GPU cannot be loaded" in done.stderr and said is None, (done, said)


def a_bundle_that_was_cut_short_says_so():
    done, said = answers([("add", 1)], cut="program half\nmemory 1\n")
    expect(said, {"p0": "ok", "half": "failed the bundle ends inside it"})
    assert done.returncode == 1, done


def without_a_device_nothing_is_run():
    done, said = answers([("add", 1), ("add", 1)], {"NO_DEVICE": "1"})
    assert done.returncode == 1 and "starting the driver" in done.stderr and not said, (done, said)


run_cases([right_programs_are_timed, a_program_that_fails_costs_itself_alone, the_last_program_may_fail_too, weights_are_gathered_in_the_order_of_their_visits, gathered_weights_are_packed_in_pairs, weights_that_are_drawn_are_the_same_everywhere, a_run_that_was_cut_goes_on, without_a_driver_it_says_so, a_bundle_that_was_cut_short_says_so, without_a_device_nothing_is_run], "bundle runner: ")
