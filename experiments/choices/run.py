#!/usr/bin/env python3
"""Trains originals, asks criteria which parts of them may go, and fine-tunes what is left: one JSON line for each training.

    python3 run.py --data CIFAR --out choices.jsonl --until SECONDS_SINCE_1970 [--workers 8] [--weights FOLDER]

Several processes train at once. An original is trained by 28 epochs without a teacher. Then its scores (importance.py), its answers to the batches to
come and all choices (slices.py) are computed once, and its students start (cells.py has their order). A student begins with slices of the trained
weights and is fine-tuned for 4 epochs (some for 10) with 0.3 of the cross entropy and 0.7 of the divergence from the original's answers at temperature 2.
Students of one seed see the same batches in the same order, so that differences between them come from what was chosen.
No training is started that would end after --until. A choice that equals an earlier one of its cell is not trained again: its line says `same_as`.
"""
import argparse
import json
import os
import queue
import sys
import time
import traceback

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "accuracy"), os.path.join(HERE, "..", "..", "fisher", "truth")]
import cells as C  # noqa: E402
import importance  # noqa: E402
import pack_cifar  # noqa: E402
import slices  # noqa: E402
import train  # noqa: E402

ORIGINAL = dict(epochs=28, batch=512, peak=0.4)
STUDENT = dict(batch=512, peak=0.2, taught=0.7, temperature=2.0)
ORIGINALS_SEED = 100        # of the batches that originals see; students see those of seeds 0 and 1
KEEP_WEIGHTS = {"resnet34-cifar10": 3, "wide-resnet22-4-cifar10": 1, "bottleneck29-cifar10": 1}       # files for each


# ---- data --------------------------------------------------------------------------------------------------------------------

class Data:
    """CIFAR-10 on the device, and one epoch of it at a time: augmented, in the order in which it is shown."""
    def __init__(self, options, device):
        (images, self.labels), (tests, self.answers) = train.load(options.data, device, options.limit)
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.device, self.n = device, len(images)
        self.probe = images[:4096 if device == "cuda" else 256]
        self.probe_labels = self.labels[:len(self.probe)]
        self.tests = train.normalised(tests, dtype)
        self.plain = train.normalised(self.probe, dtype)
        self.padded = F.pad(train.normalised(images, dtype), (4, 4, 4, 4), mode="reflect").contiguous()
        self.x = torch.zeros(self.n, 32, 32, 3, device=device, dtype=dtype)       # channels last
        self.y = torch.zeros(self.n, dtype=torch.int64, device=device)
        self.t = torch.zeros(self.n, 10, device=device)

    def show(self, seed, epoch):
        g, d = torch.Generator(self.device).manual_seed(1000 * seed + epoch), self.device
        order, rows, planes = torch.randperm(self.n, generator=g, device=d), torch.arange(32, device=d), torch.arange(3, device=d)
        top = torch.randint(0, 9, (self.n, 1), generator=g, device=d) + rows
        flip = torch.rand(self.n, 1, generator=g, device=d) < 0.5
        left = torch.randint(0, 9, (self.n, 1), generator=g, device=d) + torch.where(flip, 31 - rows, rows)
        for i in range(0, self.n, 5000):
            own = slice(i, i + 5000)
            self.x[own] = self.padded[order[own].view(-1, 1, 1, 1), planes, top[own].view(-1, 32, 1, 1), left[own].view(-1, 1, 32, 1)]
        self.y.copy_(self.labels[order])


class Fit(train.Trainer):
    """Training on what Data shows; where `taught` is given, also on an original's answers to it, by epoch."""
    def __init__(self, model, data, recipe, taught=None):
        super().__init__(model, None, data.y, recipe, data.device)
        self.data, self.taught = data, taught

    def forward_backward(self):
        index = self.at * self.recipe["batch"] + self.offsets
        answers = self.model(self.data.x[index].permute(0, 3, 1, 2))
        self.loss = F.cross_entropy(answers, self.data.y[index], label_smoothing=0.1)
        if self.taught is not None:
            share, t = self.recipe["taught"], self.recipe["temperature"]
            apart = F.kl_div(F.log_softmax(answers / t, 1), F.softmax(self.data.t[index] / t, 1), reduction="batchmean") * t * t
            self.loss = (1 - share) * self.loss + share * apart
        self.loss.backward()

    def fit(self, seed, no_graph):
        self.model.train()
        for epoch in range(self.recipe["epochs"]):
            self.data.show(seed, epoch)
            if self.taught is not None:
                self.data.t.copy_(self.taught[seed, epoch])
            if epoch == 0 and self.device == "cuda" and not no_graph:
                self.capture()
            self.at.zero_()
            self.loss_sum.zero_()
            for _ in range(self.per_epoch):
                self.eager() if self.graph is None else self.graph.replay()
            self.losses.append(self.loss_sum / self.per_epoch)
        return [round(float(v), 4) for v in self.losses]


@torch.no_grad()
def answers_to(model, x, rows=2000):
    model.eval()
    return torch.cat([model(x[i:i + rows]) for i in range(0, len(x), rows)])


def judged(answers, labels, prefix=""):
    return {prefix + "accuracy": round(100 * float((answers.argmax(1) == labels).float().mean()), 3),
            prefix + "loss": round(float(F.cross_entropy(answers, labels)), 5)}


@torch.no_grad()
def settle_norms(model, x):
    """The statistics of all norms, taken again from plain images."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    model.train()
    for i in range(0, len(x), 512):
        model(x[i:i + 512])
    for m in norms:
        m.momentum = 0.1


# ---- jobs --------------------------------------------------------------------------------------------------------------------

def key(job):
    return "/".join(str(job[k]) for k in ("base", "cell", "criterion", "seed", "epochs"))


def chosen(**values):
    return {k: v for k, v in values.items() if v is not None}


def place(options, base):
    return os.path.join(options.scratch, base + ".pt")


def train_original(base, jobs, data, options):
    """Trains it, scores it, chooses for all its students, and keeps all that in a file for them."""
    began, graph = time.time(), C.BASES[base]
    torch.manual_seed(17)
    model = train.Network(graph).to(data.device, memory_format=torch.channels_last)
    recipe = ORIGINAL | chosen(epochs=options.original_epochs, batch=options.batch)
    losses = Fit(model, data, recipe).fit(ORIGINALS_SEED, options.no_graph)
    tests = answers_to(model, data.tests)
    line = {"base": base, "cell": "original", "recipe": recipe, **judged(tests, data.answers), **judged(answers_to(model, data.plain), data.probe_labels, "train_"),
            "losses": losses, "params": C.N.sizes(graph)[0], "macs": C.N.sizes(graph)[1], "seconds": round(time.time() - began, 2)}
    taught = {}
    for seed, epoch in sorted({(j["seed"], e) for j in jobs for e in range(j["epochs"])}):
        data.show(seed, epoch)
        taught[seed, epoch] = answers_to(model, data.x.permute(0, 3, 1, 2)).half()
    space = C.Space(graph)
    scores = importance.importance(space, model, train.normalised(data.probe, torch.float32), data.probe_labels)
    choices, first, same = {}, {}, {}
    for j in jobs:
        plan, kept = slices.choose(space, scores, j["size"], j["criterion"], j["cell"])
        choices[key(j)] = plan, kept
        text = json.dumps([j["cell"], j["seed"], j["epochs"], plan, {r: k.tolist() for r, k in kept.items()}])
        if first.setdefault(text, j["criterion"]) != j["criterion"]:
            same[key(j)] = first[text]
    torch.save({"state": model.state_dict(), "scores": scores, "taught": taught, "choices": choices, "tests": tests}, place(options, base))
    if options.weights and base in KEEP_WEIGHTS:
        keep_weights(model, os.path.join(options.weights, base), KEEP_WEIGHTS[base])
    line["channels"] = {r: {m: [float(f"{v:.4g}") for v in values.tolist()] for m, values in by.items()} for r, by in scores["channels"].items()}
    line["branches"], line["prepared"] = scores["branches"], round(time.time() - began, 2)
    return line, same


def keep_weights(model, path, parts):
    """The weights in half precision, in as many files; `cat` puts them together again."""
    whole = path + ".whole"
    torch.save({k: (v.half() if v.ndim == 4 else v).cpu() for k, v in model.state_dict().items()}, whole)
    text = open(whole, "rb").read()
    os.remove(whole)
    for i in range(parts):
        with open(f"{path}.pt.{i}", "wb") as f:
            f.write(text[len(text) * i // parts:len(text) * (i + 1) // parts])


def train_student(job, prepared, data, options):
    began, base = time.time(), job["base"]
    of, trained, space = prepared["of"], prepared["model"], prepared["space"]
    plan, kept = of["choices"][key(job)]
    graph = C.N.apply_plan(C.BASES[base], plan)
    torch.manual_seed(17)
    model = train.Network(graph).to(data.device, memory_format=torch.channels_last)
    slices.carry(space, trained, graph, model, kept)
    line = {**{k: v for k, v in job.items() if k != "size"}, "plan": plan, "params": C.N.sizes(graph)[0], "macs": C.N.sizes(graph)[1],
            "features": {k: float(f"{v:.5g}") for k, v in slices.features(space, of["scores"], plan, kept).items()},
            "kept": {r: mask(k, space.width[r]) for r, k in kept.items() if len(k) < space.width[r]},
            **judged(answers_to(model, data.plain), data.probe_labels, "cut_train_"), **judged(answers_to(model, data.tests), data.answers, "cut_")}
    settle_norms(model, data.plain)
    line |= judged(answers_to(model, data.plain), data.probe_labels, "settled_train_") | judged(answers_to(model, data.tests), data.answers, "settled_")
    recipe = STUDENT | chosen(epochs=job["epochs"], batch=options.batch, peak=options.peak)
    line["losses"] = Fit(model, data, recipe, of["taught"]).fit(job["seed"], options.no_graph)
    tests = answers_to(model, data.tests)
    apart = F.kl_div(F.log_softmax(tests, 1), F.softmax(of["tests"].to(tests.device), 1), reduction="batchmean")
    line |= judged(tests, data.answers) | {"apart": round(float(apart), 5)} | judged(answers_to(model, data.plain), data.probe_labels, "train_")
    return {**line, "seconds": round(time.time() - began, 2)}


def mask(kept, width):
    return f"{sum(1 << int(i) for i in kept):0{(width + 3) // 4}x}"


def prepare(base, data, options):
    of = torch.load(place(options, base), map_location="cpu", weights_only=False)
    model = train.Network(C.BASES[base]).to(data.device, memory_format=torch.channels_last)
    model.load_state_dict(of["state"])
    return {"of": of, "model": model, "space": C.Space(C.BASES[base])}


# ---- processes ---------------------------------------------------------------------------------------------------------------

def serve(member, options, load, train_one):
    """Asks for one job after another. Failures are reported; a device that has failed ends the process, because it would fail again. `member` is (rank, tell, ask),
    load(options, device) gives the data, and train_one(job, data, options) the line of a job."""
    rank, tell, ask = member
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.zeros(1, device=device)
    tell.put((rank, "up", None, None))
    while not os.path.exists(os.path.join(options.scratch, "unpacked")):
        time.sleep(0.1)
    data = load(options, device)
    tell.put((rank, "loaded", None, None))
    while (job := ask.get()) is not None:
        try:
            tell.put((rank, "done", job, train_one(job, data, options)))
        except Exception as e:
            traceback.print_exc()
            tell.put((rank, "failed", job, f"{type(e).__name__}: {e}"))
            if "CUDA error" in str(e):
                return
        if device == "cuda":
            torch.cuda.empty_cache()


def work(rank, options, tell, ask):
    prepared = {}

    def train_one(job, data, options):
        if job["cell"] == "original":
            return train_original(job["base"], job["students"], data, options)
        if job["base"] not in prepared:
            prepared[job["base"]] = prepare(job["base"], data, options)
        return train_student(job, prepared[job["base"]], data, options)

    serve((rank, tell, ask), options, Data, train_one)


class Crowd:
    """The processes and what each of them does."""
    def __init__(self, options, context, work):
        self.options, self.context, self.work, self.tell = options, context, work, context.Queue()
        self.members, self.busy, self.idle, self.up = {}, {}, set(), set()

    def start(self, rank):
        ask = self.context.Queue()
        process = self.context.Process(target=self.work, args=(rank, self.options, self.tell, ask), daemon=True)
        process.start()
        self.members[rank] = process, ask, time.time()

    def give(self, rank, job):
        self.idle.discard(rank)
        self.busy[rank] = job
        self.members[rank][1].put(job)

    def dead(self):
        """Those that ended by themselves, or did not reach the device in two minutes."""
        for rank, (process, _, began) in list(self.members.items()):
            hangs = rank not in self.up and time.time() - began > 120
            if hangs:
                process.terminate()
            if hangs or not process.is_alive():
                del self.members[rank]
                self.idle.discard(rank)
                yield rank, rank in self.up


class Schedule:
    def __init__(self, options, jobs):
        self.options, self.jobs, self.ready, self.running, self.failed = options, jobs, set(), set(), set()
        bases = list(dict.fromkeys(j["base"] for j in jobs))
        # The dearest original first: its students wait longest.
        self.originals = sorted(bases, key=lambda b: -C.N.sizes(C.BASES[b])[1])
        self.hurry = time.time() + 0.4 * (options.until - time.time())
        self.an_epoch = {}          # seconds, by base network: the most of the last training runs

    def next(self, busy):
        if self.originals:
            base = self.originals.pop(0)
            self.running.add(base)
            return {"base": base, "cell": "original", "students": [j for j in self.jobs if j["base"] == base]}
        # The last originals should not wait for students of the first ones.
        if self.running and time.time() < self.hurry and (len(self.running) > 1 or busy > 2):
            return None
        for i, j in enumerate(self.jobs):
            if j["base"] in self.ready and time.time() + self.an_epoch[j["base"]] * (j["epochs"] + 1) < self.options.until:
                return self.jobs.pop(i)
        return None

    def again(self, job):
        """An original whose training failed is trained once more, while there is time."""
        if job and job["cell"] == "original":
            self.running.discard(job["base"])
            if job["base"] not in self.failed and self.options.until - time.time() > 240:
                self.originals.append(job["base"])
            self.failed.add(job["base"])

    def note(self, job, line, same):
        base = job["base"]
        if job["cell"] == "original":
            self.running.discard(base)
            self.ready.add(base)
            self.an_epoch[base] = line["seconds"] / line["recipe"]["epochs"]
            alike = [j for j in self.jobs if key(j) in same]
            self.jobs = [j for j in self.jobs if key(j) not in same]
            return [line] + [{**{k: v for k, v in j.items() if k != "size"}, "same_as": same[key(j)]} for j in alike]
        spent = line["seconds"] / (line["epochs"] + 1)
        self.an_epoch[base] = max(spent, 0.9 * self.an_epoch[base])
        return [line]


def run(options, jobs):
    context = torch.multiprocessing.get_context("spawn")
    began, packed = time.time(), None
    if options.data != "synthetic" and not os.path.exists(os.path.join(options.data, pack_cifar.FILES[0])):
        packed, options.data = options.data, os.path.join(options.scratch, "cifar")
    crowd, schedule = Crowd(options, context, work), Schedule(options, jobs)
    for rank in range(options.workers):
        crowd.start(rank)
    if packed:      # while the processes start
        pack_cifar.unpack(packed, options.data)
    print(f"{time.time() - began:.0f} s: unpacked; {len(jobs)} students at most", flush=True)
    open(os.path.join(options.scratch, "unpacked"), "w").close()
    fresh, done, failures = options.workers, 0, 0
    with open(options.out, "a") as out:
        while time.time() < options.until + 5:
            try:
                rank, what, job, result = crowd.tell.get(timeout=2)
            except queue.Empty:
                rank, what = None, None
            if what == "up":
                crowd.up.add(rank)
                continue
            if what in ("done", "failed", "loaded"):
                crowd.busy.pop(rank, None)
                crowd.idle.add(rank)
            if what == "done":
                line, same = result if job["cell"] == "original" else (result, {})
                for one in schedule.note(job, line, same):
                    out.write(json.dumps(one) + "\n")
                out.flush()
                done += 1
                print(f"{time.time() - began:.0f} s: {line['base']} {line['cell']} {line.get('criterion', '')} {line.get('epochs', '')}: "
                      f"{line.get('cut_accuracy', '')} {line.get('settled_accuracy', '')} {line['accuracy']}% in {line['seconds']} s", flush=True)
            if what == "failed":
                failures += 1
                print(f"{time.time() - began:.0f} s: {job['base']} {job['cell']} {job.get('criterion', '')} failed: {result[:300]}", flush=True)
                schedule.again(job)
            for gone, was_up in crowd.dead() if what is None else ():
                job = crowd.busy.pop(gone, None)
                print(f"{time.time() - began:.0f} s: process {gone} ended with {job and (job['base'], job['cell'])}", flush=True)
                schedule.again(job)
                if not was_up:      # the device did not answer through MPS: without it
                    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/nonexistent"
                if failures < 20 and options.until - time.time() > 60:
                    crowd.start(fresh)
                    fresh += 1
            for rank in sorted(crowd.idle):
                if job := schedule.next(len(crowd.busy)):
                    crowd.give(rank, job)
                elif not schedule.running and not schedule.originals and not crowd.busy:
                    print(f"{time.time() - began:.0f} s: {done} trainings, {failures} failures, {len(schedule.jobs)} not started", flush=True)
                    return crowd
    print(f"{time.time() - began:.0f} s: stopped at the deadline after {done} trainings, {failures} failures", flush=True)
    return crowd


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--until", type=float, required=True)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scratch", default="/tmp/choices")
    parser.add_argument("--weights", metavar="FOLDER", help="keeps the originals' weights there")
    parser.add_argument("--bases", help="only these, with commas between")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--original-epochs", type=int)
    parser.add_argument("--peak", type=float, help="the students' largest rate")
    parser.add_argument("--limit", type=int, help="images a set, for a trial")
    parser.add_argument("--batch", type=int, help="images a batch, for a trial")
    parser.add_argument("--most", type=int, help="students at most, for a trial")
    parser.add_argument("--no-graph", action="store_true", help="launch every kernel by itself")
    options = parser.parse_args()
    os.makedirs(options.scratch, exist_ok=True)
    for name in os.listdir(options.scratch):        # of an earlier run
        if name == "unpacked" or name.endswith(".pt"):
            os.remove(os.path.join(options.scratch, name))
    jobs = C.students(options.epochs, options.bases and options.bases.split(","))[:options.most]
    crowd = run(options, jobs)
    for process, _, _ in crowd.members.values():
        process.terminate()
    sys.stdout.flush()
    os._exit(0)         # whatever still waits in queues


if __name__ == "__main__":
    main()
