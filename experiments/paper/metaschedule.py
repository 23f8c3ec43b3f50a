"""Tunes an ONNX network by TVM's own tuner (MetaSchedule) for so many seconds and times it before and after: metaschedule.py MODEL.onnx FOLDER SECONDS
[LONGER].

The last line of standard output is JSON: {"first": {"ms", "iqr", "n", "trials"}, "tuned": the same, "longer": the same after LONGER seconds in all}. The tuner runs
in a process of its own, which is ended when time is up; its database holds what it found.
"""
import ctypes
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys
import time

import numpy
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule

PR_SET_PDEATHSIG = 1


def host():
    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": len(os.sched_getaffinity(0))})


def lowered(model):
    """The network as tensor programs, with its weights as constants."""
    module = from_onnx(onnx.load(model), keep_params_in_input=False)
    with host():
        passes = [relax.transform.FoldBatchnormToConv2D(), relax.transform.DecomposeOpsForInference(), relax.transform.FoldConstant(), relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
                  relax.transform.FoldConstant(), relax.transform.FuseOps(), relax.transform.FuseTIR()]
        return tvm.ir.transform.Sequential(passes)(module)


def tune(module, folder):
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)   # a tuner whose parent is killed would continue for hours
    builder = meta_schedule.builder.LocalBuilder(max_workers=len(os.sched_getaffinity(0)), timeout_sec=90)   # its workers begin by importing TVM
    meta_schedule.relax_integration.tune_relax(module, {}, host(), str(folder), max_trials_global=10**6, num_trials_per_iter=8, builder=builder,
                                               cost_model="mlp", seed=1)


def tuned_within(module, folder, seconds):
    process = multiprocessing.get_context("fork").Process(target=tune, args=(module, folder))
    process.start()
    process.join(seconds)
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)   # its own group: the tuner and its workers
        process.join()
    elif process.exitcode != 0:
        sys.exit(f"metaschedule.py: TVM's tuner ended with {process.exitcode} before its time was up")


def scheduled(module, folder):
    """The programs with the best schedules of the database; without one, each gets the first schedule that the rules of the tuner draw."""
    with host(), tvm.transform.PassContext(opt_level=3):
        if folder is not None:
            database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
            with database:
                module = relax.transform.MetaScheduleApplyDatabase(str(folder))(module)
        return module


def shapes_of(model):
    """Of its inputs."""
    return [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(model, load_external_data=False).graph.input]


def milliseconds(module, shapes, rounds=40, seconds=10):
    executable = tvm.compile(module, target=host())
    machine = relax.VirtualMachine(executable, tvm.cpu())
    inputs = [tvm.runtime.tensor(numpy.ones(shape, "float32"), tvm.cpu()) for shape in shapes]
    machine["main"](*inputs)
    began, times = time.monotonic(), []
    while len(times) < 5 or len(times) < rounds and time.monotonic() - began < seconds:   # untuned programs take seconds
        times.append(1000 * machine.time_evaluator("main", tvm.cpu(), number=1)(*inputs).mean)
    quartiles = statistics.quantiles(times, n=4)
    return {"ms": statistics.median(times), "iqr": quartiles[2] - quartiles[0], "n": len(times)}


def trials_in(folder):
    records = folder / "database_tuning_record.json"
    return len(records.read_text().splitlines()) if records.exists() else 0


def main(model, folder, *seconds):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    module, shapes = lowered(model), shapes_of(model)
    first = answer = milliseconds(scheduled(module, None), shapes)
    answers, spent = {"first": {**first, "trials": 0}}, 0.0
    for name, until in zip(("tuned", "longer"), map(float, seconds)):
        tuned_within(module, folder, until - spent)
        spent = until
        if trials_in(folder):
            answer = milliseconds(scheduled(module, folder), shapes)
        answers[name] = {**answer, "trials": trials_in(folder)}
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
