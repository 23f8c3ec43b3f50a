"""Tunes an ONNX network by TVM's own tuner (MetaSchedule) for so many seconds and times it before and after: metaschedule.py MODEL.onnx FOLDER SECONDS.

The last line of standard output is JSON: {"first": {"ms", "iqr", "n"}, "tuned": the same, "trials"}. The tuner runs in a process of its own, which is ended when
time is up; its database holds what it found.
"""
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys

import numpy
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule


def host():
    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": os.cpu_count()})


def lowered(model):
    """The network as tensor programs, with its weights as constants."""
    module = from_onnx(onnx.load(model), keep_params_in_input=False)
    with host():
        passes = [relax.transform.DecomposeOpsForInference(), relax.transform.FoldConstant(), relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
                  relax.transform.FoldConstant(), relax.transform.FuseOps(), relax.transform.FuseTIR()]
        return tvm.ir.transform.Sequential(passes)(module)


def tune(module, folder):
    os.setsid()
    meta_schedule.relax_integration.tune_relax(module, {}, host(), str(folder), max_trials_global=10**6, num_trials_per_iter=32, cost_model="mlp", seed=1)


def tuned_within(module, folder, seconds):
    process = multiprocessing.get_context("fork").Process(target=tune, args=(module, folder))
    process.start()
    process.join(seconds)
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)   # its own group: the tuner and its workers
        process.join()


def scheduled(module, folder):
    """The programs with the best schedules of the database; without one, each gets the first schedule that the rules of the tuner draw."""
    with host(), tvm.transform.PassContext(opt_level=3):
        if folder is not None:
            database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
            with database:
                module = relax.transform.MetaScheduleApplyDatabase(str(folder))(module)
        return module


def milliseconds(module, rounds=40):
    executable = tvm.compile(module, target=host())
    machine = relax.VirtualMachine(executable, tvm.cpu())
    parameters = module["main"].params
    inputs = [tvm.runtime.tensor(numpy.ones([int(d) for d in p.struct_info.shape], "float32"), tvm.cpu()) for p in parameters]
    for _ in range(3):
        machine["main"](*inputs)
    times = [1000 * machine.time_evaluator("main", tvm.cpu(), number=1)(*inputs).mean for _ in range(rounds)]
    quartiles = statistics.quantiles(times, n=4)
    return {"ms": statistics.median(times), "iqr": quartiles[2] - quartiles[0], "n": len(times)}


def trials_in(folder):
    records = folder / "database_tuning_record.json"
    return len(records.read_text().splitlines()) if records.exists() else 0


def main(model, folder, seconds):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    module = lowered(model)
    first = milliseconds(scheduled(module, None))
    tuned_within(module, folder, float(seconds))
    tuned = milliseconds(scheduled(module, folder)) if trials_in(folder) else first
    print(json.dumps({"first": first, "tuned": tuned, "trials": trials_in(folder)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
