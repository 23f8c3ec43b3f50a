#!/usr/bin/env python3
"""Trains originals, and fine-tunes restricted networks that begin with slices of their weights: one JSON line for each training run.

    python3 fine_tune.py --data CIFAR --networks networks.jsonl --out students.jsonl --until SECONDS_SINCE_1970 --seeds 0,1,2 [--workers 6]

networks.jsonl has one network on each line: {"name", "base", "plan", "criterion", "set"}. `criterion` says which channels stay (slices.py of choices). A
network without a plan has `importance` and `ms`: Torch-Pruning chooses it from the trained original (pruned.py).
For each seed and base network, an original is trained from fresh weights by ORIGINAL. Its answers to the batches to come are computed once. All students
of a seed see the same batches in the same order, and are fine-tuned by STUDENT, which is the recipe `distil` of ../accuracy/train.py.
The networks of one set are trained for one seed after another, so that a run that is cut off leaves pairs.
"""
import argparse
import json
import os
import queue
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "choices"), os.path.join(HERE, "..", "accuracy"), os.path.join(HERE, "..", "..", "fisher", "truth")]
import cells as C  # noqa: E402
import importance  # noqa: E402
import networks as N  # noqa: E402
import pack_cifar  # noqa: E402
import pruned  # noqa: E402
import run as R  # noqa: E402
import slices  # noqa: E402
import train  # noqa: E402

ORIGINAL = dict(epochs=45, batch=512, peak=0.4, cutout=12)
STUDENT = dict(epochs=30, batch=512, peak=0.2, cutout=12, taught=0.7, temperature=2.0)


class Data(R.Data):
    """One epoch at a time, with a square cut out of each image."""
    def show(self, seed, epoch):
        super().show(seed, epoch)
        g, d, c = torch.Generator(self.device).manual_seed(1000 * seed + epoch + 500), self.device, STUDENT["cutout"]
        rows = torch.arange(32, device=d)
        y0, x0 = (torch.randint(-c // 2, 32 - c // 2, (self.n, 1), generator=g, device=d) for _ in range(2))
        down, across = ((rows >= at) & (rows < at + c) for at in (y0, x0))
        for i in range(0, self.n, 5000):
            own = slice(i, i + 5000)
            self.x[own].masked_fill_((down[own].view(-1, 32, 1, 1) & across[own].view(-1, 1, 32, 1)), 0)


def with_epochs(recipe, epochs, batch):
    return {**recipe, **({"epochs": epochs} if epochs else {}), **({"batch": batch} if batch else {})}


def place(options, job):
    return os.path.join(options.scratch, f"{job['base']}-{job['seed']}.pt")


def count(plan, base):
    parameters, macs = N.sizes(N.apply_plan(C.BASES[base], plan))
    return {"params": parameters, "macs": macs}


def tested(model, data):
    of = R.judged(R.answers_to(model, data.tests), data.answers)
    return {"accuracy": of["accuracy"], "test_loss": of["loss"]}


def train_original(job, data, options):
    """Trains it by its own random batches, scores it, and keeps its weights and its answers to what its students will see."""
    began, base, graph = time.time(), job["base"], C.BASES[job["base"]]
    torch.manual_seed(job["seed"] * 1000 + 17)
    model = train.Network(graph).to(data.device, memory_format=torch.channels_last)
    recipe = with_epochs(ORIGINAL, options.original_epochs, options.batch)
    trainer = train.Trainer(model.train(), data.padded, data.labels, recipe, data.device)
    if data.device == "cuda" and not options.no_graph:
        trainer.capture()
    for epoch in range(recipe["epochs"]):
        trainer.epoch(options.steps)
        if epoch % 10 == 9:
            print(f"{time.time() - options.began:.0f} s: {base} seed {job['seed']}: epoch {epoch + 1}, loss {float(trainer.losses[-1]):.3f}", flush=True)
    line = {"name": "original", "base": base, "seed": job["seed"], "plan": {"steps": []}, "recipe": f"full-{recipe['epochs']}", **count({"steps": []}, base),
            **tested(model, data), "losses": [round(float(v), 4) for v in trainer.losses], "seconds": round(time.time() - began, 2)}
    print(f"{time.time() - options.began:.0f} s: {base} seed {job['seed']}: {line['accuracy']}%", flush=True)
    space = C.Space(graph)
    scores = importance.importance(space, model, train.normalised(data.probe, torch.float32), data.probe_labels)
    taught = []
    for epoch in range(with_epochs(STUDENT, options.epochs, None)["epochs"]):
        data.show(job["seed"], epoch)
        taught.append(R.answers_to(model, data.x.permute(0, 3, 1, 2)).half())
    torch.save({"state": model.state_dict(), "scores": scores, "taught": torch.stack(taught).cpu()}, place(options, job))
    return {**line, "prepared": round(time.time() - began, 2)}


def kept_channels(space, scores, plan, criterion, seed):
    """For each stream of the original, the channels that stay at the widths of the plan."""
    now = N.Channels(N.apply_plan(space.graph, plan))
    width = {}
    for s in space.convs:
        if s in now.of:
            width[space.channels.stream(s)] = now.width[now.stream(s)]
    _, kept = slices.choose(space, scores, {"width": width}, criterion, seed)
    return kept


def sliced(job, of, data, options):
    """(network, plan) with the weights that stay."""
    space = C.Space(C.BASES[job["base"]])
    trained = train.Network(space.graph)
    trained.load_state_dict(of["state"])
    if "plan" not in job:
        return pruned.network(space.graph, trained, job, data.probe, data.probe_labels, data.device)
    graph = N.apply_plan(space.graph, job["plan"])
    network = train.Network(graph)
    slices.carry(space, trained, graph, network, kept_channels(space, of["scores"], job["plan"], job["criterion"], job["seed"]))
    return network, job["plan"]


class Fit(R.Fit):
    def fit(self, seed, options):
        self.model.train()
        for epoch in range(self.recipe["epochs"]):
            self.data.show(seed, epoch)
            self.data.t.copy_(self.taught[epoch])
            if epoch == 0 and self.device == "cuda" and not options.no_graph:
                self.capture()
            self.at.zero_()
            self.loss_sum.zero_()
            for _ in range(options.steps or self.per_epoch):
                self.eager() if self.graph is None else self.graph.replay()
            self.losses.append(self.loss_sum / (options.steps or self.per_epoch))
        return [round(float(v), 4) for v in self.losses]


def train_student(job, prepared, data, options):
    began = time.time()
    torch.manual_seed(job["seed"] * 1000 + 17)
    network, plan = sliced(job, prepared, data, options)
    model = network.to(data.device, memory_format=torch.channels_last)
    recipe = with_epochs(STUDENT, options.epochs, options.batch)
    line = {"name": job["name"], "base": job["base"], "plan": plan, "seed": job["seed"], "recipe": f"distil-{job.get('criterion') or job['importance']}",
            **count(plan, job["base"]), "epochs": recipe["epochs"]}
    R.settle_norms(model, data.plain)
    line["carried_accuracy"] = tested(model, data)["accuracy"]
    line["losses"] = Fit(model, data, recipe, prepared["taught"].to(data.device)).fit(job["seed"], options)
    return {**line, **tested(model, data), "seconds": round(time.time() - began, 2)}


# ---- processes ---------------------------------------------------------------------------------------------------------------

def work(rank, options, tell, ask):
    prepared = {}       # of one original at a time

    def train_one(job, data, options):
        if job["name"] == "original":
            return train_original(job, data, options)
        of = place(options, job)
        if of not in prepared:
            prepared.clear()
            prepared[of] = torch.load(of, map_location="cpu", weights_only=False)
        return train_student(job, prepared[of], data, options)

    R.serve((rank, tell, ask), options, Data, train_one)


def work_of(job):
    """How long a student takes compared with others. Work alone does not decide it, because layers of few channels wait for memory."""
    return job.get("macs", 4e8) + 4.5e8


class Schedule:
    """Originals first. Then students in their order, as long as the GPU, which the running ones share, is expected to finish all of them in time."""
    def __init__(self, options, networks):
        self.options = options
        sets = sorted({n["set"] for n in networks})
        self.jobs = [{**n, "seed": s} for part in sets for s in options.seeds for n in networks if n["set"] == part]
        self.originals = list(dict.fromkeys((j["base"], j["seed"]) for j in self.jobs))
        self.ready, self.running = set(), {}
        self.work, self.seconds = 0.0, 0.0      # of the students that are done

    def next(self, rank):
        if self.originals:
            base, seed = self.originals.pop(0)
            return {"name": "original", "base": base, "seed": seed}
        for i, j in enumerate(self.jobs):
            if (j["base"], j["seed"]) in self.ready and self.ends_in_time(j):
                self.running[rank] = j, time.time()
                return self.jobs.pop(i)
        return None

    def ends_in_time(self, job):
        if not self.seconds:
            return True
        each = self.work / self.seconds         # while as many run as can
        rest = sum(max(0.05 * work_of(j), work_of(j) - each * (time.time() - began)) for j, began in self.running.values())
        return time.time() + 1.05 * (rest + work_of(job)) / (each * self.options.workers) < self.options.until

    def done(self, rank, job, seconds):
        self.running.pop(rank, None)
        if job["name"] == "original":
            self.ready.add((job["base"], job["seed"]))
        else:
            self.work, self.seconds = self.work + work_of(job), self.seconds + seconds


def run(options, networks):
    context = torch.multiprocessing.get_context("spawn")
    packed, source = None, options.data
    if not os.path.exists(os.path.join(source, pack_cifar.FILES[0])):
        packed, options.data = source, os.path.join(options.scratch, "cifar")
    crowd, schedule = R.Crowd(options, context, work), Schedule(options, networks)
    for rank in range(options.workers):
        crowd.start(rank)
    if packed:
        pack_cifar.unpack(packed, options.data)
    print(f"{time.time() - options.began:.0f} s: unpacked; {len(schedule.jobs)} students", flush=True)
    open(os.path.join(options.scratch, "unpacked"), "w").close()
    with open(options.out, "a") as out:
        while time.time() < options.until + 8:
            try:
                rank, what, job, result = crowd.tell.get(timeout=2)
            except queue.Empty:
                what = None
            if what == "up":
                crowd.up.add(rank)
                continue
            if what in ("done", "failed", "loaded"):
                crowd.busy.pop(rank, None)
                crowd.idle.add(rank)
            if what == "done":
                schedule.done(rank, job, result["seconds"])
                out.write(json.dumps(result) + "\n")
                out.flush()
                print(f"{time.time() - options.began:.0f} s: {job['base']} {job['name']} seed {job['seed']}: {result.get('carried_accuracy', '')} "
                      f"{result['accuracy']}% in {result['seconds']} s", flush=True)
            if what == "failed":
                schedule.running.pop(rank, None)
                print(f"{time.time() - options.began:.0f} s: {job['base']} {job['name']} seed {job['seed']} failed: {result[:300]}", flush=True)
            for gone, was_up in crowd.dead() if what is None else ():
                job = crowd.busy.pop(gone, None)
                print(f"{time.time() - options.began:.0f} s: process {gone} ended with {job and (job['base'], job['name'], job['seed'])}", flush=True)
                if not was_up:      # the device did not answer through MPS: without it
                    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/nonexistent"
                    crowd.start(gone + 100)
            for rank in sorted(crowd.idle):
                if job := schedule.next(rank):
                    crowd.give(rank, job)
            if crowd.idle and not crowd.busy and what != "loaded" and not schedule.originals:
                break
    print(f"{time.time() - options.began:.0f} s: {len(schedule.jobs)} students not started, {len(crowd.busy)} not finished", flush=True)
    return crowd


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--networks", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--until", type=float, required=True)
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scratch", default="/tmp/trained-weights")
    parser.add_argument("--epochs", type=int, help="of students, for a trial")
    parser.add_argument("--original-epochs", type=int)
    parser.add_argument("--limit", type=int, help="images a set, for a trial")
    parser.add_argument("--batch", type=int, help="images a batch, for a trial")
    parser.add_argument("--steps", type=int, help="steps an epoch, for a trial")
    parser.add_argument("--no-graph", action="store_true", help="launch every kernel by itself")
    options = parser.parse_args()
    options.began = time.time()
    os.makedirs(options.scratch, exist_ok=True)
    for name in os.listdir(options.scratch):        # of an earlier run
        if name == "unpacked" or name.endswith(".pt"):
            os.remove(os.path.join(options.scratch, name))
    with open(options.networks) as f:
        networks = [json.loads(line) for line in f]
    crowd = run(options, networks)
    for process, _, _ in crowd.members.values():
        process.terminate()
    sys.stdout.flush()
    os._exit(0)         # whatever still waits in queues


if __name__ == "__main__":
    main()
