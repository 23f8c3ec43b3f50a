"""What the checker promises of whole certificates. Each case gets the program, as in parts.py."""
import contextlib
import copy
import io
import json
import os
import runpy
import sys

from parts import answer, module, part, refuses, run_of, term
from recorded import CHECKER, RULES, sha256


# --- whole certificates --------------------------------------------------------------------------------------------------

def as_original(files):
    """The original is returned: no steps, no loss."""
    files["model.json"] = copy.deepcopy(files["original.json"]) | {"weights": "weights.safetensors"}
    c, result = files["certificate.json"], files["result.json"]
    files.pop("network.json")   # its sites run untransformed
    c.update(final=c["original"], steps=[], rules={})
    c["claims"]["returned"], c["claims"]["measures"], result["guard"]["measures"] = c["claims"]["original"], [], []
    c["files"] = {name.replace("optimized/", "original/"): digest for name, digest in c["files"].items()}
    result.update(returned="original", optimized=result["original"])
    for loss in (c["claims"]["loss"], result["guard"]["loss"]):
        loss.update(points=0, low=0, high=0)


KEYS = ("measure", "comparison", "threshold", "value")


def asked(*conditions, rule="(capacity)", by="sizes"):
    """The network, and each step that is judged, met these conditions as well. Each rule asks for `rule`."""
    def change(files):
        c, guard = files["certificate.json"], files["result.json"]["guard"]
        c["claims"]["loss"]["by"] = by
        c["claims"]["measures"] += map(list, conditions)
        guard["measures"] = [dict(zip(KEYS, row)) for row in c["claims"]["measures"]]
        for row in c["rules"].values():
            row["text"] = row["text"].replace("(capacity)", rule)
            row["sha256"] = sha256(row["text"].encode())
        for step in c["steps"]:
            if step.get("judged"):
                step["judged"] += map(list, conditions)
    return change


@part
def what_no_output_of_the_original_needs_is_in_no_term(program):
    def idle(files):
        files["original.json"]["nodes"].append({"name": "idle", "op": "relu", "inputs": ["x"]})
    assert answer(program, "plain", idle) == (0, "accepted")


@part
def certificates_without_steps_and_by_other_guards(program):
    assert answer(program, "plain", as_original) == (0, "accepted")
    fisher, macs, params = ("fisher", ">=", 0.9, 1.1), ("macs", "<=", 1, 0.1), ("params", ">=", 0.9, 0.95)
    for change, code, saying in ((asked(by="trainings"), 2, "trainings"), (asked(fisher), 2, "fisher cannot be computed"),
                                 (asked(("fisher", ">=", 0.9, 0.8)), 1, "loses more"), (asked(macs), 1, "evidence differs"), (asked(params), 1, "evidence differs"),
                                 (asked(("fisher", "=", 1, 1)), 1, "not as"), (asked(rule="(fisher >= 0.9)"), 1, "was asked something else")):
        got, line = answer(program, "plain", change, rules=[])
        assert got == code and saying in line, (saying, got, line)


@part
def the_loops_of_each_site_are_those_of_its_statement(program):
    def kernels(change):
        """`change` gets the nests of the first site, and gives those that stand in their place."""
        def edit(files):
            network = files["network.json"]
            site = next(step["site"] for step in network["steps"] if step["site"] == "a")
            nests = change([network["kernels"][step["kernel"]]["nest"] for step in network["steps"] if step["site"] == site])
            network["steps"] = [step for step in network["steps"] if step["site"] != site] + [{"site": site, "kernel": -1}]
            network["steps"] += [{"site": site, "kernel": len(network["kernels"]) + i} for i in range(len(nests))]
            network["kernels"] += [{"nest": nest} for nest in nests]
        return answer(program, "plain", edit)
    loops = "(at co:8 (at ci:3 (at oh:8 (at ow:8 (at kh:3 (at kw:3 done))))))"
    own = "(conv2d 1 1 8 3 8 8 3 3 1 1 1 1 1 1)"
    assert kernels(lambda nests: nests) == (0, "accepted")
    assert kernels(lambda nests: ["(nest (blockwise 1 8 8 x) done)"])[0] == 2
    assert kernels(lambda nests: [f"(nest (epilogue relu (epilogue bias (layout O co 4 {own}))) {loops})"]) == (0, "accepted")
    assert "the bound of 'a' is" in kernels(lambda nests: [f"(nest (epilogue add (epilogue bias {own})) {loops})"])[1]
    for nests, saying in (([], "do not run"), ([f"(nest {own} {loops})"] * 2, "do not run"), ([f"(nest {own.replace(' 8 3 8', ' 4 3 8')} {loops})"], "do not run"),
                          ([f"(nest {own} {loops.replace('(at kw:3 done)', 'done')})"], "do not visit each instance once"),
                          ([f"(nest {own} {loops.replace('(at ci', '(par ci')})"], "at once")):
        code, line = kernels(lambda _, nests=nests: nests)
        assert code == 1 and saying in line, (nests, line)


F23 = ["[1,1,1,0|0,1,-1,1]", "[-1,0,0|1/2,1/2,1/2|1/2,-1/2,1/2|0,0,1]", "[-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1]"]
TRANSFORMED = ["(nest (bilinear_input {2} {2} 2 2 1 3 8 8 1 1) (at c:3 (at th:4 (at tw:4 (at u:4 (at v:4 (at kh:4 (at kw:4 done))))))))",
               "(nest (conv2d 1 16 8 3 1 16 1 1 1 1 0 0 1 1) (at g:16 (at co:8 (at ci:3 (at ow:16 done)))))",
               "(nest (epilogue relu (epilogue bias (bilinear_output {0} {0} 1 8 8 8))) (at c:8 (at th:4 (at tw:4 (at i:2 (at j:2 (at kh:4 (at kw:4 done))))))))"]


@part
def a_site_may_run_as_the_nests_of_a_bilinear_algorithm(program):
    own, errors = "(conv2d 1 1 8 3 8 8 3 3 1 1 1 1 1 1)", module("rounding")

    def transformed(change=lambda nests, matrices: None, measured=1e-6):
        """The first site by F(2,3) both ways, after `change`, with the bound that follows from its kernels if they are those of the algorithm."""
        def edit(files):
            network, nests, matrices = files["network.json"], list(TRANSFORMED), list(F23)
            change(nests, matrices)
            nests, leaf = [nest.format(*matrices) for nest in nests], "correlation" + "".join(matrices)
            network["schedules"]["a"] = f"(prepare (bilinear {leaf} {leaf}) (row {' '.join(nests)}))"
            network["steps"] = [step for step in network["steps"] if step["site"] != "a"] + [{"site": "a", "kernel": len(network["kernels"]) + i} for i in range(len(nests))]
            network["kernels"] += [{"nest": nest} for nest in nests]
            try:
                bound = errors.error_bound(term(own), list(map(term, nests)), (errors.Algorithm(term(leaf)),) * 2)
            except Exception:   # the checker says which
                bound = {}
            for place in (files["certificate.json"]["claims"], files["result.json"]):
                place["errors"]["a"] = {**bound, "measured": measured}
        return answer(program, "plain", edit)
    assert transformed() == (0, "accepted") and transformed(measured=None) == (0, "accepted")

    def nest(i, old, new):
        return lambda nests, matrices: nests.__setitem__(i, nests[i].replace(old, new))

    def matrix(i, old, new):
        return lambda nests, matrices: matrices.__setitem__(i, matrices[i].replace(old, new))
    for change, saying in ((matrix(0, "0,1,-1,1", "0,1,-1,2"), "compute no filter"), (matrix(1, "1/2,-1/2", "1/2,1/2"), "compute no filter"),
                           (matrix(2, "|0,-1,0,1", ""), "not as docs"), (nest(0, " 3 8 8 1 1", " 3 8 8 0 0"), "not those of its algorithm"),
                           (nest(0, "{2} {2}", "{2} [1,0,0,0|0,1,0,0|0,0,1,0|0,0,0,1]"), "not those of its algorithm"), (nest(1, "16 8 3", "16 8 4"), "not those of its algorithm"),
                           (nest(2, "{0} {0} 1 8", "{0} {0} 1 4"), "not those of its algorithm"), (nest(0, "(at u:4 ", "(par u:4 "), None), (nest(0, "(at kh:4 ", "(par kh:4 "), "at once"),
                           (nest(2, "(at i:2 ", "(at j:2 "), "do not visit"), (nest(1, "(at ow:16 done)", "done"), "do not visit"), (lambda nests, m: nests.pop(), "not those of its algorithm")):
        code, line = transformed(change)
        assert (code, line) == (0, "accepted") if saying is None else code == 1 and saying in line, (saying, line)
    assert "err more than" in transformed(measured=1e-3)[1] and "err more than" in transformed(measured=-1)[1]
    assert "no filter of these taps" in transformed_site("b", program)[1]


def transformed_site(site, program):
    """Another site, whose kernels and matrices are those of the first."""
    def edit(files):
        network, leaf = files["network.json"], "correlation[1][1][1]"
        network["schedules"][site] = f"(prepare (bilinear {leaf} {leaf}) done)"
        network["steps"] += [dict(step) for step in network["steps"] if step["site"] == site]
    return answer(program, "plain", edit)


@part
def what_kernels_err_is_bounded(program):
    errors = module("rounding")

    def of(statement, loops="(at ci:64 done)"):
        return errors.error_bound(module("nests").plain(term(statement)), [term(f"(nest {statement} {loops})")], ())
    plain = of("(linear 1 1 64)")
    assert (plain["terms"], plain["roundings"], plain["growth"], plain["operands"]) == (64, 64, 1, "float32") and abs(plain["bound"] / (64 * 2.0 ** -24) - 1) < 1e-5
    assert of("(epilogue relu (epilogue add (epilogue bias (layout I ci 4 (linear 1 1 64)))))")["roundings"] == 66
    assert of("(linear 1 1 64)", "(bind tensor.bf16 ci:64 done)")["bound"] > 2.0 ** -7 > of("(linear 1 1 64)", "(bind threadIdx.x ci:64 done)")["bound"]
    assert of("(linear 1 1 64)", "(bind tensor.fp16 ci:64 done)")["bound"] == of("(linear 1 1 64)", "(bind tensor.tf32 ci:64 done)")["bound"]
    assert of("(linear 1 1 64)", "(bind tensor.int8 ci:64 done)")["roundings"] == 4
    refuses(of, "(linear 1 1 64)", "(bind tensor.fp4 ci:64 done)", saying="nothing is known")

    def claims(change):
        def edit(files):
            change(files["certificate.json"]["claims"]["errors"], files["result.json"]["errors"])
        return answer(program, "plain", edit)

    def both(change):
        return claims(lambda *all_: [change(errors) for errors in all_])
    for key, value, saying in (("bound", 1e-9, "the bound of 'a' is"), ("operands", "bf16", "the bound of 'a' is"), ("roundings", 3, "the bound of 'a' is"),
                               ("measured", 1.0, "err more than"), ("more", 1, "stand where")):
        code, line = both(lambda errors, key=key, value=value: errors["a"].update({key: value}))
        assert code == 1 and saying in line, (key, line)
    assert "of other sites" in both(lambda errors: errors.pop("a"))[1] and "result.json says" in claims(lambda c, result: result.pop("a"))[1]


@part
def rules_that_name_their_measures(program):
    """A rule asks of its steps what it says itself, and (capacity) stands for the conditions of the network, each once."""
    def of_rules(files):
        c = files["certificate.json"]
        points = c["claims"]["measures"][0][2]
        asked(rule=f"(capacity) (expected-loss <= {points}) (expected-loss <= 90)")(files)
        for step in c["steps"]:
            if step.get("judged"):
                step["judged"] += [["expected-loss", "<=", 90, step["judged"][0][3]]]
    assert answer(program, "plain", of_rules, rules=[]) == (0, "accepted")


@part
def steps_that_depend_on_others_and_runs_of_exact_steps(program):
    """A branch is dropped only after its widths; between two neural steps an exact one is taken back."""
    def twice(files):
        c = files["certificate.json"]
        first = c["steps"][0]
        for rule, text, neural in (("wrap", "(rule wrap ?x => (row same ?x))", False), ("unwrap", "(rule unwrap (row same ?x) => ?x)", False)):
            c["rules"][rule] = {"text": text, "sha256": sha256(text.encode())}
        wrap, unwrap = ({"rule": r, "neural": False, "at": []} for r in ("wrap", "unwrap"))
        c["steps"][:1] = [wrap, unwrap, first]
    code, line = answer(program, "plain", twice, rules=[])
    assert (code, line) == (0, "accepted"), line

    def depends(files):
        """A neural rule that only applies to what another one has narrowed."""
        c = files["certificate.json"]
        for rule, text in (("wrap", "(rule wrap ?x ~> (row same ?x) :when (capacity))"), ("unwrap", "(rule unwrap (row same ?x) ~> ?x :when (capacity))")):
            c["rules"][rule] = {"text": text, "sha256": sha256(text.encode())}
        c["steps"][:0] = [{"rule": "wrap", "neural": True, "at": [], "judged": [[*c["claims"]["measures"][0][:3], 0]]}, {"rule": "unwrap", "neural": True, "at": [], "judged": None}]
    code, line = answer(program, "plain", depends, rules=[])
    assert (code, line) == (0, "accepted"), line

    def exact_that_is_none(files):
        c = files["certificate.json"]
        step = next(s for s in c["steps"] if s["neural"])
        text = c["rules"][step["rule"]]["text"].replace("~>", "=>").replace(" (capacity)", "")
        c["rules"][step["rule"]] = {"text": text, "sha256": sha256(text.encode())}
        for s in c["steps"]:
            if s["rule"] == step["rule"]:
                s["neural"] = False
                s.pop("judged", None)
    code, line = answer(program, "plain", exact_that_is_none, rules=[])
    assert code == 1 and "exact steps changed the network" in line, line


@part
def each_claim_is_compared(program):
    def at_first(files):
        files["certificate.json"]["steps"][0]["at"] = [1]

    def other_loss(files):
        files["result.json"]["guard"]["loss"]["points"] += 1

    def other_measures(files):
        files["result.json"]["guard"]["measures"][0]["threshold"] += 1

    def no_measures(files):
        files["certificate.json"]["claims"]["measures"], files["result.json"]["guard"]["measures"] = [], []

    def other_words(files):
        next(s for s in files["certificate.json"]["steps"] if s["neural"])["judged"] = None

    def other_points(files):
        next(s for s in files["certificate.json"]["steps"] if s["neural"])["judged"][0][3] += 0.01

    def named(file):
        def change(files):
            files[file]["model" if file in ("certificate.json", "result.json") else "name"] = "other"
        return change
    def other_version(files):
        files["certificate.json"]["loopegg_certificate"] = 1
    for change, saying in ((at_first, "step 1: "), (other_version, "of version 2"), (other_loss, "says something else of the loss"), (other_measures, "other measures"), (no_measures, "other measures"), (other_words, "asked something else"), (other_points, "evidence differs"),
                           *((named(file), "another model") for file in ("certificate.json", "original.json", "model.json", "result.json"))):
        code, line = answer(program, "plain", change)
        assert code == 1 and saying in line, (saying, line)
    with run_of("plain") as folder:
        (folder / "certificate.json").write_text("[]")
        assert program.check(folder, [])[0] == 1
    with run_of("plain") as folder:
        c = json.loads((folder / "certificate.json").read_text())
        (folder / "plan.json").unlink()
        assert program.check(folder, [])[0] == 1
        del c["files"]["plan.json"]
        (folder / "certificate.json").write_text(json.dumps(c))
        assert program.check(folder, [])[0] == 0
    with run_of("plain") as folder:
        (folder / "weights.bin").unlink()
        (folder / "weights.bin").symlink_to(folder / "model.json")
        assert "is no file, or a link" in program.check(folder, [])[1][-1]
    for name in ("certificate.json", "weights.bin"):    # a pipe that nobody writes to
        with run_of("plain") as folder:
            (folder / name).unlink()
            os.mkfifo(folder / name)
            code, lines = program.check(folder, [])
            assert code == 1 and "no file" in lines[-1], lines


@part
def a_step_that_is_not_covered_by_itself_is_not_checked(program):
    meaning, calls = program.Check.run.__globals__["Meaning"], []
    network_ = meaning.network

    def not_covered(self, net):
        calls.append(net)
        if len(calls) > 4:
            raise program.NotCovered("by itself")
        return network_(self, net)
    meaning.network = not_covered
    try:
        code, line = answer(program, "plain", None)
    finally:
        meaning.network = network_
    assert code == 2 and "by itself" in line, (code, line, len(calls))


@part
def restricted_nests_in_steps_are_not_covered(program):
    def unknown(files):
        c = files["certificate.json"]
        rule = c["steps"][-1]["rule"]
        text = c["rules"][rule]["text"]
        text = text[:-1] + (" (unsplit ?n))" if ":when" in text else " :when (unsplit ?n))")
        c["rules"][rule] = {"text": text, "sha256": sha256(text.encode())}
    code, line = answer(program, "plain", unknown, rules=[])
    assert code == 2 and "unsplit" in line, line
    code, line = answer(program, "plain", lambda files: files["certificate.json"].update(nests=["fc1"]))
    assert code == 2 and "nests of fc1" in line, line


@part
def the_command_says_what_it_found(program):
    def typed(*words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program.main(list(words))
        return code, out.getvalue(), err.getvalue()
    with run_of("plain") as folder:
        assert typed(str(folder))[::2] == (0, "") and typed(str(folder), "--rules", str(RULES[0]))[0] == 0
        for words in ((), ("--rules",), (str(folder), "--rules"), (str(folder), "--rule", "x")):
            assert typed(*words)[0] == 2 and typed(*words)[2].startswith("usage: "), words
        assert typed(str(folder / "nowhere"))[0] == 1
        before, argv = sys.getrecursionlimit(), sys.argv
        sys.argv = ["checker", str(folder)]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(CHECKER / "__main__.py"), run_name="__main__")
        except SystemExit as e:
            assert e.code == 0
        finally:
            sys.argv = argv
            sys.setrecursionlimit(before)

    def interrupted(*ignored):
        raise KeyboardInterrupt
    check, program.Check = program.Check, interrupted
    try:
        program.check(".", [])
        raise AssertionError("an interruption is no answer")
    except KeyboardInterrupt:
        program.Check = check


@part
def deep_and_odd_certificates_are_refused(program):
    """The last one, because the end of the stack ends a trace of branches."""
    for change in (lambda c: c.update(original="(row same " * 1990 + "same" + ")" * 1990), lambda c: c.update(final="(row same " * 3000 + "same" + ")" * 3000),
                   lambda c: c["steps"][0].update(at=[1] * 5000), lambda c: c.update(steps=[[]]), lambda c: c["claims"]["loss"].update(points=float("nan")),
                   lambda c: c.update(channels_multiple=0), lambda c: c["claims"]["returned"].update(macs=True), lambda c: c.update(steps=[None]), lambda c: c.update(files=[])):
        code, line = answer(program, "plain", lambda files: change(files["certificate.json"]))
        assert code == 1, line
    with run_of("plain") as folder:
        (folder / "certificate.json").write_text("[" * 100000)
        assert program.check(folder, [])[0] == 1
