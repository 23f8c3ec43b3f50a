"""Which branches of some modules were taken: each conditional jump of their code has to go both ways."""
import dis
import sys
import types

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
