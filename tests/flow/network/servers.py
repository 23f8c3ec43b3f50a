"""A compiled network as a library for servers: many threads under ThreadSanitizer, and the servers of examples/ under many callers."""
import array
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Lacking, run_cases

LOOPEGG, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(os.environ, LOOPEGG_STORE=FOLDER.name + "/latency.sqlite", XDG_CACHE_HOME=FOLDER.name)
CALLERS = 8


def run(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, cwd=FOLDER.name, **{"env": ENVIRONMENT, **more})
    assert done.returncode == 0, f"{words}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
    return done.stdout


def compiled(name):
    folder = pathlib.Path(FOLDER.name, name)
    if not folder.exists():
        run(LOOPEGG, "compile", SOURCE / f"examples/{name}.json", "--out", folder, "--quiet")
    return folder, json.loads((folder / "network.json").read_text())


def many_threads_and_two_networks_are_clean_under_thread_sanitizer():
    sanitize = ["-fsanitize=thread", "-g", "-O1"]
    words = ["c++", "-std=c++17", *sanitize, HERE / "many_threads.cpp"]
    for which, name in (("ONE", "tiny-residual"), ("TWO", "tiny-plain")):
        folder, about = compiled(name)
        library = folder / "checked.so"
        run("cc", "-std=gnu11", "-shared", "-fPIC", *sanitize, f"-Wl,--version-script={folder / 'network.map'}", folder / "network.c", *folder.glob("loopegg_*.c"),
            *folder.glob("*.o"), "-o", library, "-lm", "-lpthread")
        words += [f"-D{which}={about['prefix']}", f'-D{which}_HEADER="{folder / "network.h"}"', library]
    run(*words, "-o", "many_threads", "-lpthread")
    fixed = ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []   # it maps memory at places that the system may have given away
    said = run(*fixed, "./many_threads", "tiny-residual/weights.bin", "tiny-plain/weights.bin", env={**ENVIRONMENT, "TSAN_OPTIONS": "halt_on_error=1 exitcode=66"})
    assert "0 wrong answers" in said, said


def a_network_is_made_without_a_compiler():
    folder = pathlib.Path(FOLDER.name, "bare")
    run(LOOPEGG, "compile", SOURCE / "examples/tiny-residual.json", "--out", folder, "--quiet", env={**ENVIRONMENT, "PATH": "/nonexistent"})
    with_compiler, _ = compiled("tiny-residual")
    assert (folder / "network.so").read_bytes() == (with_compiler / "network.so").read_bytes()
    node = {"op": "CumSum", "opset": 18, "attrs": {}, "outputs": 1, "inputs": [{"from": 0, "type": 1}, {"type": 7, "dims": [], "values": [1]}]}
    model = {"loopegg": 1, "name": "sums", "inputs": [{"name": "x", "shape": [3, 4]}], "outputs": ["sum"],
             "nodes": [{"name": "sum", "op": "onnx", "inputs": ["x"], "attrs": {"node": json.dumps(node)}}]}
    pathlib.Path(FOLDER.name, "sums.json").write_text(json.dumps(model))
    for words in (["compile", "sums.json", "--out", "sums"], ["optimize", "sums.json", "--out", "sums"]):   # the code of this operator is C++
        refused = subprocess.run([LOOPEGG, *words, "--quiet"], capture_output=True, text=True, cwd=FOLDER.name, env={**ENVIRONMENT, "PATH": "/nonexistent"}, timeout=60)
        assert refused.returncode == 1 and "CumSum" in refused.stderr and "apt install g++" in refused.stderr, refused


def asked_by_many(start):
    """Starts a server, and asks it from many threads at once; each input has one answer, whoever asks."""
    folder, about = compiled("tiny-residual")
    size = 1
    for extent in about["inputs"][0]["shape"]:
        size *= extent
    inputs = [array.array("f", [((i * 37 + seed * 11) % 101) / 50 - 1 for i in range(size)]).tobytes() for seed in range(CALLERS)]
    server = subprocess.Popen(list(map(str, start(folder))), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=FOLDER.name, env=ENVIRONMENT)
    try:
        first = server.stdout.readline()
        assert first.startswith("listening on 127.0.0.1:"), first + (server.stderr.read() if server.poll() is not None else "")
        port = int(first.rsplit(":", 1)[1])

        def ask(seed):
            connection, answers = http.client.HTTPConnection("127.0.0.1", port, timeout=120), set()
            for _ in range(20):
                connection.request("POST", "/", inputs[seed])
                answer = connection.getresponse()
                assert answer.status == 200, answer.read()
                answers.add(answer.read())
            connection.close()
            assert len(answers) == 1, "one input had several answers"
            return answers.pop()

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            outputs = list(callers.map(ask, range(CALLERS)))
        refused = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        refused.request("POST", "/", b"abcd")
        assert refused.getresponse().status == 400
        refused.close()
    finally:
        server.kill()
        server.communicate()
    assert len(set(outputs)) == CALLERS, "different inputs had one answer"
    return outputs


def the_server_in_cpp_answers_many_callers():
    folder, _ = compiled("tiny-residual")
    run("c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{folder}", SOURCE / "examples/server.cpp", folder / "network.so", f"-Wl,-rpath,{folder}", "-o", "server")
    for threads in (1, 2):
        OUTPUTS.append(asked_by_many(lambda folder: ["./server", folder / "weights.bin", 0, CALLERS, threads]))
    assert OUTPUTS[0] == OUTPUTS[1]


def the_server_in_python_answers_many_callers():
    for python in (sys.executable, pathlib.Path(os.environ.get("LOOPEGG_PEERS", SOURCE / ".deps/peers")) / "bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            outputs = asked_by_many(lambda folder: [python, SOURCE / "examples/server.py", folder, 0])
            assert not OUTPUTS or outputs == OUTPUTS[0]
            return
    raise Lacking("no Python with NumPy")


OUTPUTS = []
run_cases([a_network_is_made_without_a_compiler, many_threads_and_two_networks_are_clean_under_thread_sanitizer, the_server_in_cpp_answers_many_callers, the_server_in_python_answers_many_callers], "network as a library: ")
