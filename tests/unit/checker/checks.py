"""The checker of certificates: it accepts what the engine wrote, and no edit of it; each of its branches goes both ways."""
import copy
import dis
import json
import pathlib
import random
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recorded import CHECKER, MODELS, RULES, program, recorded, write_run   # first: it makes the folders importable

from cases import run_cases
from mutants import edit_hashes, mutants
from parts import PARTS
import certificates   # noqa: F401 -- adds its cases to PARTS

# Which branches of some modules were taken: each conditional jump of their code has to go both ways.
ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "SEND")


def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def jumps_of(code):
    """{offset of a conditional jump: (line, offset of what follows it)}"""
    instructions, jumps, begin = list(dis.get_instructions(code)), {}, None
    for i, instruction in enumerate(instructions[:-1]):
        begin = instruction.offset if begin is None else begin
        if instruction.opname == "EXTENDED_ARG":    # a part of the next one, and traced in its place
            continue
        if instruction.opcode in (*dis.hasjrel, *dis.hasjabs) and instruction.opname not in ALWAYS:
            jumps[begin] = (instruction.positions.lineno, instructions[i + 1].offset)
        begin = None
    return jumps


class Branches:
    """Traces while it is entered. `files`: paths of the modules."""

    def __init__(self, files):
        self.jumps, self.taken, self.last = {}, set(), {}
        for file in files:
            with open(file) as f:
                for code in codes_of(compile(f.read(), file, "exec")):
                    self.jumps[self.key(code)] = jumps_of(code)

    @staticmethod
    def key(code):
        return code.co_filename, code.co_qualname, code.co_firstlineno, code.co_code

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.enter)
        return self

    def __exit__(self, *ignored):
        sys.settrace(self.before)

    def enter(self, frame, event, argument):
        jumps = self.jumps.get(self.key(frame.f_code))
        if jumps is None:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        key, last = self.key(frame.f_code), [None]

        def step(frame, event, argument):
            if event == "opcode":
                if last[0] in jumps:
                    self.taken.add((key, last[0], frame.f_lasti == jumps[last[0]][1]))
                last[0] = frame.f_lasti
            elif event == "exception":
                last[0] = None
            return step
        return step

    def missing(self):
        """Lines of jumps that went one way only, or never: 'file:line'."""
        lines = set()
        for key, jumps in self.jumps.items():
            for offset, (line, _) in jumps.items():
                for way in (True, False):
                    if (key, offset, way) not in self.taken:
                        lines.add((key[0].rsplit("/", 1)[-1], line))
        return [f"{file}:{line}" for file, line in sorted(lines)]

    def count(self):
        return sum(map(len, self.jumps.values()))


PROGRAM = program()


def checked(files, rules=RULES, hashes=True):
    with tempfile.TemporaryDirectory() as folder:
        return PROGRAM.check(write_run(pathlib.Path(folder), files, hashes), rules)


def every_recorded_certificate_is_accepted():
    for name in MODELS:
        code, lines = checked(recorded(name))
        assert code == 0 and lines[-1] == "accepted", (name, lines)
        code, lines = checked(recorded(name), rules=[])
        assert code == 0 and lines[-1] == "accepted", (name, lines)


def hash_mutants(files, seed):
    """The folder is whole, and the hashes of the certificate are edited."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = write_run(pathlib.Path(name), files)
        whole = json.loads((folder / "certificate.json").read_text())
        for _ in range(12):
            certificate = copy.deepcopy(whole)
            what = edit_hashes(draw, {"certificate.json": certificate})
            (folder / "certificate.json").write_text(json.dumps(certificate))
            yield what, PROGRAM.check(folder, RULES)


def no_edit_is_accepted():
    accepted, codes = [], {1: 0, 2: 0}
    for seed, name in enumerate(MODELS):
        files = recorded(name)
        answers = [(what, checked(mutant)) for what, mutant in mutants(files, seed)] + list(hash_mutants(files, seed))
        for what, (code, lines) in answers:
            accepted += [(name, what)] if code == 0 else []
            codes[code] = codes.get(code, 0) + 1
            assert lines[-1].startswith(("refused: ", "not checked: ", "accepted")), lines
    assert not accepted, accepted
    assert sum(codes.values()) >= 200, codes
    return f": {codes[1]} edits are refused, and {codes[2]} use what is not covered"


def every_branch_goes_both_ways():
    files = sorted(str(f) for f in CHECKER.glob("*.py"))
    with Branches(files) as branches:
        fresh = program()
        for name in ("residual", "dense", "attention", "plain", "mobile"):
            with tempfile.TemporaryDirectory() as folder:
                fresh.check(write_run(pathlib.Path(folder), recorded(name)), RULES)
        for _, part in PARTS:
            part(fresh)
    missing = branches.missing()
    assert not missing, f"{len(missing)} lines have a jump that went one way: {' '.join(missing)}"
    return f": {branches.count()} jumps"


def the_checker_is_small_and_shares_nothing():
    lines = sum(len(f.read_text().splitlines()) for f in CHECKER.glob("*.py"))
    assert lines <= 1000, lines
    own = {f.stem for f in CHECKER.glob("*.py")}
    known = own | {"argparse", "collections", "fractions", "hashlib", "json", "math", "operator", "functools", "pathlib", "re", "sys"}
    for file in CHECKER.glob("*.py"):
        for line in file.read_text().splitlines():
            words = line.split()
            assert words[:1] not in (["import"], ["from"]) or words[1] in known, (file.name, line)
    return f": {lines} lines"


CASES = [every_recorded_certificate_is_accepted, no_edit_is_accepted, every_branch_goes_both_ways, the_checker_is_small_and_shares_nothing]
CASES += [(name, lambda part=part: part(PROGRAM)) for name, part in PARTS]
run_cases(CASES)
