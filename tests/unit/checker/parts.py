"""What the checker promises of terms, rules and networks, one by one. Each case gets the program, whose modules are loaded; so its branches can be watched."""
import contextlib
import copy
import pathlib
import sys
import tempfile

from recorded import RULES, recorded, write_run

PARTS = []


def part(case):
    PARTS.append((case.__name__.replace("_", " "), case))
    return case


def module(name):
    return sys.modules[name]


def refuses(action, *arguments, saying="", kind="Refused"):
    """The action raises a refusal whose words have these in them."""
    try:
        done = action(*arguments)
    except getattr(module("terms"), kind) as e:
        assert saying in str(e), (saying, str(e))
        return
    raise AssertionError(f"{arguments} gives {done}")


def term(text):
    return module("terms").read_term(text)


@contextlib.contextmanager
def run_of(name, change=None, hashes=True):
    """The folder of a recorded run after `change(files)`."""
    files = copy.deepcopy(recorded(name))
    if change:
        change(files)
    with tempfile.TemporaryDirectory() as folder:
        yield write_run(pathlib.Path(folder), files, hashes)


def answer(program, name, change, rules=RULES):
    with run_of(name, change) as folder:
        code, lines = program.check(folder, rules)
    return code, lines[-1]


# --- terms ---------------------------------------------------------------------------------------------------------------

@part
def terms_read_back_as_they_were_written(program):
    for text in ("same", "(row same (each relu @a))", "(write -3 same)"):
        assert str(term(text)) == text and term(text) is term(" " + text + " ; comment\n")
    t = module("terms")
    assert t.read_forms("") == [] and t.read_forms('(include "x.rules") ; end') == [["include", '"x.rules']]
    for text, saying in (("(", "never closed"), (")", "closes nothing"), ('"', "no s-expression"), ("((a) b)", "begins with its operator"), ("()", "begins with"),
                         ("a b", "one term"), ("(" * 2001, "deeper")):
        refuses(t.read_term, text, saying=saying)
    assert [term(n).whole() for n in ("0", "-12", "007", "1x", "(a b)")] == [0, -12, None, None, None]


@part
def places_lead_to_parts(program):
    t = module("terms")
    whole = term("(row same (each relu @a))")
    assert str(t.part_at(whole, [1, 0])) == "relu" and t.part_at(whole, []) is whole
    assert str(t.with_part(whole, [1, 1], term("@b"))) == "(row same (each relu @b))" and t.with_part(whole, [], term("same")) is term("same")
    for path in ([2], [-1], [0, 0]):
        refuses(t.part_at, whole, path, saying="no such place")


# --- nests and sizes -----------------------------------------------------------------------------------------------------

CONV = "(conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)"
DEPTHWISE = "(conv2d 1 8 1 1 6 6 3 3 1 1 1 1 1 1)"
GROUPED = "(conv2d 1 2 4 4 6 6 3 3 1 1 1 1 1 1)"


@part
def nests_are_resized_by_whole_groups(program):
    n = module("nests")

    def nest(text):
        return n.whole_nest(term(text))
    assert str(nest("(epilogue bias (linear 2 8 4))")) == "(nest (epilogue bias (linear 2 8 4)) (at co:8 (at ci:4 (at n:2 done))))"
    assert n.with_outputs(nest("(epilogue bias (linear 2 8 4))"), 3) is nest("(epilogue bias (linear 2 3 4))")
    assert n.with_outputs(nest(GROUPED), 6) is nest(GROUPED.replace("4 4", "3 4")) and n.with_outputs(nest(GROUPED), 5) is None
    assert [n.with_outputs(nest(CONV), w) for w in (0, 9)] == [None, None] and n.with_outputs(nest(DEPTHWISE), 4) is None
    assert n.with_fewer_inputs(nest(GROUPED), 2) is nest(GROUPED.replace("4 4", "4 3")) and n.with_fewer_inputs(nest(GROUPED), 1) is None
    assert n.with_fewer_inputs(nest(DEPTHWISE), 3) is nest(DEPTHWISE.replace("8 1 1", "5 1 1"))
    assert [n.with_fewer_inputs(nest(CONV), m) for m in (-1, 4)] == [None, None] and n.with_fewer_inputs(nest("(matmul 1 2 3 4)"), 0) is None
    assert n.channels(term("(matmul 1 2 3 4)")) == (0, 0) and n.extents(term("(matmul 1 2 3 4)")) == {"b": 1, "i": 2, "j": 3, "k": 4}
    assert not n.is_depthwise(term(GROUPED)) and not n.is_depthwise(term("(conv2d 1 2 1 4 6 6 3 3 1 1 1 1 1 1)"))
    refuses(n.statement_in, term(f"(nest {CONV} done)"), kind="NotCovered", saying="not whole")
    refuses(n.statement_in, term("(restore zero x)"), kind="NotCovered")
    assert n.sizes_of(term("(epilogue relu (epilogue bias (linear 1 2 3)))")) == ("linear", {"N": 1, "CO": 2, "CI": 3})
    refuses(n.sizes_of, term("(linear 1 2)"), kind="NotCovered")
    refuses(n.sizes_of, term("(map relu 4)"), kind="NotCovered")
    for wrong in ("(linear 1 0 4)", "(linear 1 a 4)", CONV.replace("1 1 1 1 1 1)", "1 1 -1 1 1 1)")):
        refuses(n.sizes_of, term(wrong), saying="sizes that are none")


def layer(name, statement):
    return f"(layer @{name} {module('nests').whole_nest(term(statement))})"



LOOPS = "(at co:8 (at ci:6 (at oh:12 (at ow:12 done))))"
RIGHT = [LOOPS, "(par (quo co:8 4) (stage I (at ci:6 (at oh:12 (at ow:12 (vec (rem co:8 4) done))))))",
         "(bind blockIdx.x (pair co:8 oh:12) (bind tensor.bf16 ci:6 (at ow:12 done)))", "(partial vec (rem ci:6 2) (at (quo ci:6 2) (at oh:12 (at ow:12 (at co:8 done)))))",
         "(at (quo co:8 4) (at (rem (quo co:8 2) 2) (at (rem co:8 2) (at ci:6 (at oh:12 (at ow:12 done))))))",       # mixed radices
         "(at (quo co:8 4) (at (quo (rem co:8 4) 2) (at (rem (rem co:8 4) 2) (at ci:6 (at oh:12 (at ow:12 done))))))",
         "(at (quo oh:12 6) (at (quo (rem oh:12 6) 4) (at (rem (rem oh:12 6) 4) (at co:8 (at ci:6 (at ow:12 done))))))",      # a factor that does not divide
         "(at (quo ow:12 5) (at (rem ow:12 5) (at co:8 (at ci:6 (at oh:12 done)))))",
         "(at co:8 (at ci:6 (at oh:12 (cat (at (span ow:12 0 8) done) (at (quo (span ow:12 8 12) 2) (unroll (rem (span ow:12 8 12) 2) done))))))",
         "(at (quo (pair co:8 oh:12) 32) (at (rem (pair co:8 oh:12) 32) (at ci:6 (at ow:12 done))))",
         "(cat (at (span (pair co:8 oh:12) 0 50) (at ci:6 (at ow:12 done))) (at (span (pair co:8 oh:12) 50 96) (at ow:12 (at ci:6 done))))",
         "(cat (at (span (rem (quo co:8 2) 2) 0 1) (at (rem co:8 2) (at (quo co:8 4) (at ci:6 (at oh:12 (at ow:12 done))))))"
         " (at (span (rem (quo co:8 2) 2) 1 2) (at (rem co:8 2) (at (quo co:8 4) (at ci:6 (at oh:12 (at ow:12 done)))))))"]
WRONG = [("once", ["(at co:8 (at ci:6 (at oh:12 done)))", LOOPS.replace("co:8", "co:9"), LOOPS.replace("ow:12 done", "ow:12 (at ow:12 done)"), "done",
                   LOOPS.replace("(at co:8", "(at (rem co:8 4)"), LOOPS.replace("(at co:8", "(at (quo co:8 4)"), LOOPS.replace("co:8", "(quo co:8 2)", 1).replace(
                       "done", "(at (rem co:8 4) done)"), LOOPS.replace("(at co:8", "(at (diag 2 co:8 ci:6) (at (rem co:8 4)"
                                                                        ).replace("(at ci:6", "(at (rem ci:6 3)") + ")",
                   LOOPS.replace("co:8", "(span (span co:8 0 4) 0 4)").replace("done", "(at (span co:8 0 8) done)")]),
         ("at once", [LOOPS.replace("at ci", how + " ci") for how in ("par", "vec", "bind threadIdx.x")] + [LOOPS.replace("(at co:8 (at ci:6", "(par (pair co:8 ci:6) (at oh:1")]),
         ("is no sum", [LOOPS.replace("at co", "partial par co")]), ("is no schedule", [LOOPS.replace("(at co:8", "(at"), LOOPS.replace("done", "co:8"), LOOPS.replace("at co", "for co")]),
         ("fit together", [f"(cat {LOOPS} {LOOPS})", LOOPS.replace("co:8", "(span co:8 0 7)"), LOOPS.replace("co:8", "(span co:8 1 8)"),
                           "(at co:8 (at ci:6 (at oh:12 (cat (at (span ow:12 0 8) done) (at (span ow:12 7 12) done)))))",
                           "(at co:8 (at ci:6 (at oh:12 (cat (at (span ow:12 0 8) done) (at ow:12 done)))))"])]


@part
def loops_visit_each_instance_once(program):
    check, extents = module("schedules").check_loops, module("nests").extents
    statement = extents(term("(conv2d 1 1 8 6 12 12 1 1 1 1 0 0 1 1)"))
    for loops in RIGHT:
        check(statement, term(loops), "the loops")
    for saying, all_ in WRONG:
        for loops in all_:
            refuses(check, statement, term(loops), "the loops", saying=saying)
    halves = "(cat (at (span co:8 0 4) {0}) (at (span co:8 4 8) {0}))".format("(at ci:6 (cat (at (span oh:12 0 6) (at ow:12 done)) (at (span oh:12 6 12) (at ow:12 done))))")
    refuses(check, statement, term(halves), "the loops", saying="several axes", kind="NotCovered")
    check(extents(term("(conv2d 1 1 1 1 1 1 1 1 1 1 0 0 1 1)")), term("done"), "the loops")
    check(extents(term("(matmul 2 3 4 5)")), term("(par b:2 (at (rem k:5 2) (at (quo k:5 2) (at i:3 (vec j:4 done)))))"), "the loops")


@part
def facts_of_networks_are_those_of_the_page(program):
    s = module("sizes")
    facts = s.Facts({term("@a"): 8, term("@d"): 8})

    def of(text):
        return facts.of(term(text))
    conv, depthwise, product = layer("a", CONV), layer("d", DEPTHWISE), layer("m", "(matmul 1 2 3 4)")
    assert of(conv) == s.Sizes(4, ((8, 0),), True, True, narrowable=True) and of(conv).fresh() and not of(conv).channelwise()
    assert of(depthwise) == s.Sizes(8, ((0, 1),), False, True) and of(depthwise).channelwise()
    assert of(product) == s.Sizes(None, (), True, True) and of(product).written() is None and of(product).absent(1) is None
    assert of(layer("a", CONV.replace("8 4", "6 4"))).trimmed and of(layer("other", CONV)).trimmed is False
    assert of(f"(row {conv} (spread 4 @flat))").out == ((32, 0),) and of(f"(row (spread 4 @flat) {conv})").into == 1
    assert of(f"(row same {conv})").into == 4 and of(f"(row (opaque @o) {conv})").into is None
    assert of(f"(stream {conv} (each relu @r))").narrowable is False and of(f"(row {conv} (each relu @r))").narrowable
    add, concat = f"(join (add @j) same {conv})", f"(join (concat @j) same {conv})"
    assert of(add).out == ((0, 1), (8, 0)) and of(add).adds_input and of(add).absent(2) == 0 and of(add).written(9) == 9
    assert of(concat).out == ((8, 1),) and not of(concat).adds_input and of(concat).absent(2) == 2 and of(concat).written() == 12
    assert of("(join (add @j) same (join (concat @k) same same))").out == ((0, 2),)
    assert of("(join (add @j) same (spread 2 @f))").absent(1) == 2 and of("(row (opaque @o) same)").out == ()
    assert of(f"(row (join (add @j) same (none {conv})) (each relu @r))").computes is False and of(f"(none {conv})").written() == 0
    assert of(f"(join (add @j) (each relu @r) (join (concat @k) same {depthwise}))").absent(1) == 2
    assert s.Sizes(out=((8, 0), (0, 1))).absent(1) is None and s.Sizes().written() is None and s.Sizes(out=((0, 1),)).written() is None
    assert not s.Sizes(out=((1, 1),)).channelwise() and not s.Sizes(out=((0, 0),)).channelwise() and not s.Sizes().channelwise()
    assert s.Sizes(out=((8, 0),)).written() == 8
    assert of(f"(join (concat @k) {add} same)").adds_input and of(f"(join (concat @k) same {add})").adds_input
    assert of(f"(within 3 {conv})") == of(conv)._replace(into=3, out=((3, 0),), trimmed=True) and of(f"(write 8 {conv})").trimmed is False
    assert of("(write 3 same)").trimmed and of(f"(lack 1 {conv})").into == 3 and of("(lack 1 same)").into is None and of(f"(read 2 {conv})").into == 2
    kept = of(conv.replace("@a", "(kept @a)"))
    assert kept.kept and of(f"(row {conv.replace('@a', '(kept @a)')} same)").kept
    for wrong, saying in (("(each relu)", "no network"), ("(frob same)", "no network"), ("(write a same)", "number"), ("(read -1 same)", "number"),
                          (f"(lack 5 {conv})", "absent"), (f"(join (add @j) {conv} {depthwise})", "of one value")):
        refuses(of, wrong, saying=saying)


# --- rules ---------------------------------------------------------------------------------------------------------------

def apply(text, to, step=1, **given):
    r = module("rules")
    rule = r.Rule(*module("terms").read_forms(text))
    facts = module("sizes").Facts({})
    return str(r.Application(rule, facts, {"?" + k: term(v) for k, v in given.items()}, step).apply(term(to)))


@part
def rules_match_choose_compute_and_ask(program):
    assert apply("(rule r (row ?x ?x) => ?x)", "(row same same)") == "same"
    refuses(apply, "(rule r (row ?x ?x) => ?x)", "(row same (each relu @a))", saying="does not match")
    for wrong in ("(row same)", "(stream same same)", "same"):
        refuses(apply, "(rule r (row ?x same) => ?x)", wrong, saying="does not match")
    refuses(apply, "(rule r (row ?x same) => ?x)", "(row same (each relu @a))", saying="does not match")
    choice = "(rule r (lack ?m ?x) ~> (lack (+ ?m ?k) ?x) :for ?k (2 4) :when (< ?k ?m))"
    assert apply(choice, "(lack 3 same)", k="2") == "(lack 5 same)"
    for given, saying in ((dict(k="4"), "does not hold"), (dict(k="3"), "none of"), ({}, "none of"), (dict(k="2", j="2"), "no choice of")):
        refuses(lambda: apply(choice, "(lack 3 same)", **given), saying=saying)
    assert apply("(rule r (lack ?m ?x) => (lack ?k ?x) :for ?k (7))", "(lack 3 same)") == "(lack 7 same)"
    for function, value in (("(- 7 2)", 5), ("(* 2 3 4)", 24), ("(min 4 2 3)", 2), ("(max 4 2)", 4), ("(gcd 12 18)", 6), ("(/ 12 4)", 3), ("(floor-div 7 2)", 3),
                            ("(% 7 4)", 3), ("(+ ?m 1)", 4), ("(channels ?x)", 8), ("(channels-in ?x)", 4), ("(+ 1 (absent 2 ?x))", 1)):
        assert apply(f"(rule r (lack ?m ?x) => (lack {function} ?x))", f"(lack 3 {layer('a', CONV)})").startswith(f"(lack {value} "), function
    for function in ("(gcd 0 4)", "(gcd 4 0)", "(/ 7 2)", "(/ 7 0)", "(floor-div 1 0)", "(% 1 0)", "(+ ?x 1)", "(channels ?x)", "(absent ?x ?x)", "(with-outputs ?x ?x)"):
        refuses(apply, f"(rule r (lack ?m ?x) => (lack {function} ?x))", "(lack 3 same)", saying="has no value")
    assert apply("(rule r (layer ?l ?n) => (layer ?l (with-outputs ?n 6)))", layer("a", CONV)) == layer("a", CONV.replace("8 4", "6 4"))
    refuses(apply, "(rule r (layer ?l ?n) => (layer ?l (with-fewer-inputs ?n 4)))", layer("a", CONV), saying="has no value")
    refuses(apply, "(rule r (lack ?m ?x) => (lack (+ 1 (extent ?x)) ?x))", "(lack 1 same)", kind="NotCovered", saying="function")


@part
def conditions_hold_or_not(program):
    conv = layer("a", CONV)
    for condition, to, holds in (("(= 2 ?m)", "2", True), ("(!= 2 ?m)", "2", False), ("(<= 2 ?m)", "2", True), ("(> ?m 2)", "2", False), ("(>= ?m 2)", "2", True),
                                 ("(divides ?m 4)", "2", True), ("(divides ?m 4)", "3", False), ("(divides 0 ?m)", "2", False), ("(= ?m ?x)", "2", False),
                                 ("(number ?m)", "2", True), ("(number ?x)", "2", False)):
        action = (f"(rule r (lack ?m ?x) => ?x :when {condition})", f"(lack {to} {conv})")
        assert apply(*action) == conv if holds else refuses(apply, *action, saying="does not hold") is None, condition
    for condition, x, holds in (("fresh", conv, True), ("channelwise", conv, False), ("whole", conv, True), ("narrowable", conv, True), ("separate", conv, True),
                                ("computes", "same", False), ("free", conv.replace("@a", "(kept @a)"), False)):
        action = (f"(rule r (none ?x) ~> ?x :when ({condition} ?x) (capacity))", f"(none {x})")
        assert apply(*action) == x if holds else refuses(apply, *action, saying="does not hold") is None, condition
    changeable = "(rule r (layer ?l ?n) => (layer ?l ?n) :when (changeable ?l))"
    assert apply(changeable, conv) == conv
    refuses(apply, changeable, conv.replace("@a", "(kept @a)"), saying="does not hold")
    refuses(apply, "(rule r (none ?x) => ?x :when (unsplit ?x))", "(none same)", kind="NotCovered", saying="condition")


@part
def widths_are_offered_in_shares(program):
    rule, x = "(rule r ?x ~> (write ?w ?x) :for ?w (shares 1 8 ?x) :when (capacity))", layer("a", CONV)
    assert apply(rule, x, w="5") == f"(write 5 {x})"
    wide = layer("a", CONV.replace("8 4", "16 4"))
    assert apply(rule, wide, w="12") == f"(write 12 {wide})"
    for to, width, step in ((x, "8", 1), (x, "0", 1), (wide, "10", 1), (wide, "4", 8), ("same", "1", 1)):
        refuses(lambda: apply(rule, to, step, w=width), saying="none of")
    assert apply(rule.replace("1 8", "4 1000"), x, w="1") == f"(write 1 {x})"
    for list_ in ("(shares 4 8 ?x)", "(shares ?x 3 ?x)", "(shares 1 ?x ?x)", "(shares 9 8 ?x)", "(shares -8 -4 ?x)"):
        refuses(lambda: apply(rule.replace("(shares 1 8 ?x)", list_), x, w="1"), saying="none of")
    for list_ in ("(range 1 5)", "(2 ?x)", "((+ 1 1) 2)", "(shares 1 1025 ?x)"):
        refuses(lambda: apply(rule.replace("(shares 1 8 ?x)", list_), x, w="2"), kind="NotCovered", saying="list")


@part
def what_is_no_rule_is_refused(program):
    r, forms = module("rules"), module("terms").read_forms
    for text, kind in (("(rule r a => b :for ?k)", "Refused"), ("(rule r a => b :why x)", "Refused"), ("(rule r a => b :when)", "Refused"), ("(rule r a b)", "Refused"), ("word", "Refused"),
                       ("(ruleset r a => b)", "Refused"), ("(rule (r) a => b)", "Refused"), ("(rule r a b => c)", "NotCovered"), ("(rule r a (=>) b)", "NotCovered"),
                       ("(rule r a => b c)", "NotCovered"), ("(rule r a := b)", "NotCovered")):
        refuses(lambda: r.Rule(*forms(text)), kind=kind)


@part
def trusted_rules_come_with_what_their_files_include(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.rules").write_text('(language nest) (include "b.rules") (include "b.rules") (rule one a => b) (phase p :rules s)')
        (folder / "b.rules").write_text("(ruleset s :tags cpu (rule two (a ?x)   => b) ; why\n (rule three a ~> b :when (capacity)))")
        texts = module("rules").texts_in((folder / "a.rules").resolve(), set())
        (folder / "none.rules").write_text("; nothing")
        assert module("rules").texts_in((folder / "none.rules").resolve(), set()) == {}
    assert texts == {"one": "(rule one a => b)", "two": "(rule two (a ?x) => b)", "three": "(rule three a ~> b :when (capacity))"}


# --- networks ------------------------------------------------------------------------------------------------------------

def network(shape, *nodes, outputs=None):
    read = {"name": "n", "inputs": [{"name": "x", "shape": shape}], "nodes": list(nodes), "outputs": outputs or [nodes[-1]["name"]]}
    return module("graphs").Network.read(read)


def node(op, *inputs, name="y", **attrs):
    return {"name": name, "op": op, "inputs": list(inputs or ["x"]), "attrs": attrs}


@part
def shapes_and_figures_follow_from_attributes(program):
    image = [1, 4, 8, 8]
    for made, shape in ((node("conv2d", out_channels=6, kernel=3), (1, 6, 6, 6)), (node("conv2d", out_channels=6, kernel=[3, 1], stride=2, padding=[1, 0]), (1, 6, 4, 4)),
                        (node("conv2d", out_channels=6, kernel=3, dilation=2, groups=2), (1, 6, 4, 4)), (node("max_pool", kernel=2), (1, 4, 4, 4)),
                        (node("avg_pool", kernel=3, stride=2, padding=1, padding_end=0), (1, 4, 4, 4)), (node("global_avg_pool"), (1, 4, 1, 1)), (node("flatten"), (1, 256)),
                        (node("flatten", axis=-2), (1, 4, 64)), (node("reshape", shape=[0, 2, -1]), (1, 2, 128)), (node("reshape", shape=[1, 256]), (1, 256)), (node("reshape", shape=[0, 0, 64]), (1, 4, 64)),
                        (node("transpose", order=[0, 2, 3, 1]), (1, 8, 8, 4)), (node("slice", starts=[0, 1, 0, 0], ends=[1, 3, 99, 8], steps=[1, 1, 2, 3]), (1, 2, 4, 3)),
                        (node("pad", before=[0, 0, 1, 1], after=[0, 0, 0, 2]), (1, 4, 9, 11)), (node("reduce_mean", axes=[2, 3]), (1, 4, 1, 1)),
                        (node("reduce_max", axes=[1], keepdims=False), (1, 8, 8)), (node("concat", "x", "x"), (1, 8, 8, 8)), (node("add", "x", "x"), (1, 4, 8, 8)),
                        (node("relu"), (1, 4, 8, 8)), (node("matmul", "x", "x"), (1, 4, 8, 8)), (node("linear", out_features=3), (1, 4, 8, 3))):
        assert network(image, made).shapes["y"] == shape, made
    assert network(image, node("conv2d", out_channels=6, kernel=3, groups=2)).figures() == {"macs": 6 * 36 * 2 * 9, "parameters": 6 * (2 * 9 + 1)}
    assert network([2, 3, 8], node("linear", out_features=5, bias=False)).figures() == {"macs": 2 * 3 * 8 * 5, "parameters": 40}
    assert network([2, 3, 8], node("layer_norm")).figures()["parameters"] == 16 and network(image, node("batch_norm")).figures()["parameters"] == 8
    assert network([2, 8, 8], node("matmul", "x", "x")).figures() == {"macs": 1024, "parameters": 0}
    bias = network([4, 1, 8], node("parameter", shape=[8], name="p") | {"inputs": []}, node("mul", "x", "p"))
    assert bias.figures() == {"macs": 0, "parameters": 8} and bias.shapes["y"] == (4, 1, 8)


@part
def networks_that_are_none_are_refused(program):
    image = [1, 4, 8, 8]
    for nodes, saying in (([node("relu", "z")], "not there"), ([node("relu", name="x")], "one name"), ([node("relu", alpha=1)], "attributes"),
                          ([node("conv2d", kernel=3)], "out_channels"), ([node("conv2d", out_channels=6, kernel=9)], "shape"), ([node("linear", out_features="a")], "shape"),
                          ([node("relu", name="a"), node("concat", "x", "b", name="y"), node("flatten", name="b")], "later"),
                          ([node("flatten", name="b"), node("concat", "x", "b")], "other shapes")):
        refuses(network, image, *nodes, saying=saying)
    refuses(lambda: network(image, node("relu"), outputs=["z"]), saying="output")
    refuses(network, image, node("reshape", shape=[1, 512]), saying="the shape that it is given")
    refuses(lambda: module("graphs").Network.read({"name": "n", "inputs": [], "nodes": [], "outputs": []}), saying="output")
    for groups in (3, 4):
        n = network([1, 6 if groups == 3 else 8, 8, 8], node("conv2d", out_channels=6 if groups == 4 else 4, kernel=3, groups=groups))
        refuses(n.figures, saying="groups")
    for made in (node("onnx", node="x"), node("relu") | {"domain": {}}, node("reshape", shape=[10, 20]), node("pad", before=[0] * 4, after=[0] * 4) | {"op": "frob"}):
        refuses(network, image, made, kind="NotCovered")
    refuses(network, image, node("global_avg_pool", name="p"), node("slice", "x", name="s", starts=[0] * 4, ends=[1, 4, 8, 3], steps=[1] * 4), node("add", "x", "s"), kind="NotCovered")


def mean(text, of):
    s, m = module("sizes"), module("meaning")
    first = term(text)
    return m.Meaning(of, s.Facts({})).network(first)


@part
def terms_mean_networks(program):
    conv = dict(out_channels=4, kernel=3, padding=1, bias=False)
    whole = network([1, 4, 6, 6], node("conv2d", name="a", **conv), node("relu", "a", name="r1"), node("relu", "r1", name="r2"), node("conv2d", "r2", name="b", **conv),
                    node("parameter", name="p", shape=[4, 1, 1]) | {"inputs": []}, node("mul", "p", "b", name="scaled"), node("add", "r2", "scaled", name="s"),
                    node("flatten", "s", name="f"), node("linear", "f", name="y", out_features=3))
    square = CONV.replace("8 4", "4 4")
    a, b = layer("a", square), layer("b", square)
    fc = layer("y", "(epilogue bias (linear 1 3 144))")
    block = f"(join (add @s) same (row {b} (each mul @scaled)))"
    relus = "(row (each relu @r1) (each relu @r2))"
    text = f"(row {a} (row {relus} (row {block} (row (spread 36 @f) {fc}))))"
    made = mean(text, whole)
    assert list(made.nodes) == ["a", "r1", "b", "p", "scaled", "s", "f", "y"] and made.nodes["b"].inputs == ["r1"] and made.nodes["scaled"].inputs == ["p", "b"]
    assert not made.same(whole)     # the rectifier of a rectified value is left out
    dropped = mean(text.replace(f"(row {b} (each mul @scaled))", f"(none (row {b} (each mul @scaled)))"), whole)
    assert list(dropped.nodes) == ["a", "r1", "f", "y"] and dropped.nodes["f"].inputs == ["r1"]
    narrow = text.replace(a, f"(write 2 {a})").replace(block, f"(write 2 (read 2 {block}))").replace(fc, f"(read 72 {fc})")
    refuses(mean, narrow, whole, kind="NotCovered", saying="parameters")
    for wrong, saying in ((text.replace("@f)", "@g)"), "no operator"), (text.replace("(each relu @r1)", "(each relu @b)"), "no operator"), (text.replace("@a", "a"), "name of a node"), (text.replace("@scaled", "(@ scaled)"), "name of a node"),
                          (text.replace("(spread 36 @f)", "(row (spread 36 @f) (spread 1 @f))"), "computed twice"), (text.replace(a, layer("s", square)), "is no conv2d"),
                          (text.replace(a, layer("c", square)), "is no conv2d"), (text.replace(a, layer("a", square.replace("4 4", "4 3"))), "in its term"),
                          (text.replace("(add @s)", "(add @q)"), "is no add"), (text.replace("(add @s)", "(concat @s)"), "is no concat"),
                          (text.replace(block, f"(none {block})"), "so many channels"), (text.replace("(add @s)", "(mul @s)"), "cannot be determined"),
                          (f"(row {a} (join (add @s) same (row {b} (none same))))", "sites of the network"), (f"(row {a} (write 2 (join (concat @s) same same)))", "cannot be determined"),
                          (f"(row {a} (join (add @s) (none same) (none same)))", "nothing is left"), (f"(row {a} (join (add @s) (write 2 same) (write 3 same)))", "adds values"),
                          (f"(row {a} (row (read 9 {b}) same))", "come in"), (f"(row {a} (read 5 (lack 1 {b})))", "are said to"),
                          (f"(row {a} (write 2 {b.replace('@b', '(kept @b)')}))", "so many channels"), (f"(row {a} (write 0 {b}))", "so many channels"),
                          (f"(row {a} (frob))", "no network")):
        refuses(mean, wrong, whole, saying=saying)


@part
def values_of_unknown_width_are_walked(program):
    whole = network([2, 4, 8], node("transpose", name="t", order=[0, 2, 1]), node("matmul", "x", "t", name="m"), node("relu6", "m", name="r"), node("relu", "r", name="q"),
                    node("add", "q", "r", name="s"), node("concat", "s", "r", name="c"), node("flatten", "c", name="y"))
    product = layer("m", "(matmul 2 4 4 8)")
    join = "(join (concat @c) (join (add @s) (each relu @q) same) same)"
    made = mean(f"(row (tangle (between @x @m) {product} same) (row (each relu6 @r) (row {join} (spread 4 @y))))", whole)
    assert made.same(whole) and list(made.nodes) == ["t", "m", "r", "q", "s", "c", "y"]
    joined = network([1, 2, 4, 4], node("relu", name="r"), node("concat", "x", "r", name="c"), node("sqrt", name="z"), node("concat", "c", "z", name="d"),
                     node("relu", "d", name="s"), node("relu", "s"))
    assert mean("(row (join (concat @d) (join (concat @c) same (each relu @r)) (each sqrt @z)) (row (each relu @s) (each relu @y)))", joined).same(joined)
    assert mean("(each concat @y)", network([1, 2], node("concat", "x", "x"))).nodes["y"].inputs == ["x"]
    gate = network([2, 4], node("relu", name="a"), node("sqrt", "a", name="b"), node("mul", "b", "x", name="c"), node("add", "c", "b", name="y"))
    assert mean("(row (each relu @a) (row (each sqrt @b) (tangle (between @b @y) same same)))", gate).same(gate)
    both = module("graphs").Network.read({"name": "n", "inputs": [{"name": i, "shape": [1, 2, 2]} for i in ("x", "z")], "outputs": ["m", "r"],
                                          "nodes": [node("matmul", "x", "z", name="m"), node("relu", "m", name="r")]})
    assert mean(f"(tangle (between @ @) {layer('m', '(matmul 1 2 2 2)')} same)", both).same(both)
    alone = network([1, 2, 2], node("matmul", "x", "x", name="y"))
    refuses(mean, layer("y", "(matmul 1 2 2 2)"), alone, saying="is no matmul of the original in a row")


# --- the loss ------------------------------------------------------------------------------------------------------------

@part
def the_loss_is_that_of_the_formula(program):
    l = module("loss")

    def measured(out, kernel=3, stride=1, depth=2, name="c", side=16):
        nodes, last = [], "x"
        for i in range(depth):
            nodes.append(node("conv2d", last, name=f"{name}{i}", out_channels=out, kernel=kernel, padding=kernel // 2, stride=stride))
            last = f"{name}{i}"
        return l.Measured(network([1, 8, side, side], *nodes))
    whole = measured(64)
    assert l.expected_loss(whole, whole) == {"points": 0, "low": 0, "high": 0}
    losses = [l.expected_loss(whole, measured(w))["points"] for w in (48, 32, 16, 1)]
    assert losses == sorted(losses) and losses[0] > 0, losses
    assert l.expected_loss(whole, measured(64, depth=1))["points"] > 0.1 and l.expected_loss(whole, measured(64, kernel=1))["points"] > 1
    assert l.expected_loss(whole, measured(64, kernel=1, stride=2))["points"] > l.expected_loss(whole, measured(64, kernel=1))["points"]
    answer = l.expected_loss(whole, measured(32))
    assert abs(answer["high"] - answer["points"] - 2 * (0.41 * answer["points"] + 0.41)) < 1e-12     # nobody trained networks of 16 pixels for the fit
    small, labelled = ([l.Measured(network([1, 3, 32, 32], node("conv2d", name="c", out_channels=w, kernel=5, padding=2), node("global_avg_pool", "c", name="p"),
                                           node("flatten", "p", name="f"), node("linear", "f", name="last", out_features=10))) for w in (out, out // 2)]
                       for out in (256, 2048))
    for (original, variant), factor in ((small, 2), (labelled, 1)):     # 20 and 157 million multiply-accumulates
        answer = l.expected_loss(original, variant)
        assert abs(answer["high"] - answer["points"] - factor * (0.41 * answer["points"] + 0.41)) < 1e-12

    def two(first, second):
        return l.Measured(network([1, 8, 16, 16], *(node("conv2d", i, name=n, out_channels=o, kernel=3, padding=1)
                                                    for i, n, o in (("x", "a", 64), ("a", "b", first), ("b", "c", second), ("c", "d", 64)))))
    equal, unequal = two(32, 32), two(16, 51)       # as much work but for a fiftieth
    assert abs(unequal.macs / equal.macs - 1) < 0.02
    assert l.expected_loss(two(64, 64), unequal)["points"] > l.expected_loss(two(64, 64), equal)["points"]
    back = network([1, 8, 4, 4], node("conv2d", name="a", out_channels=4, kernel=3, padding=1), node("conv2d", "a", name="a.restore", out_channels=8, kernel=1),
                   node("max_pool", "a.restore", name="p", kernel=2), node("add", "p", "p"))
    assert [s.sites for s in l.Measured(back).stages.values()] == [1]
    tokens = network([2, 3, 8], node("linear", out_features=4))
    assert l.Measured(tokens).side == 0 and list(l.Measured(tokens).stages) == [6]
