"""A captured backward run without its lists: a graph on arrays and numbers, as executors take it.

Private functions of nodes are put in the place of their calls. Code of users finds hooks, packed
data and leaves by number (`ops.backward.Frame`), so that no value of the graph is anything but an
array or a number. An accumulation that no code of users follows becomes a result of the graph:
whoever runs it adds the results to the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..errors import IRError
from ..ir.program import Block, Instr, Module, Program
from ..ir.types import TENSOR, ListType, TensorType, Type
from ..ops.backward import AccumulateGrad, CallBackward, CallGradient, CallHook, FinalCallbacks, ListGet
from .renumber import renumbered

INPUTS, SIZES, SCALARS, HOOKS, PACKED = range(5)
_CALLS = (CallHook, CallBackward)
_ALSO = {"unpack_hook": (PACKED,), "post_acc_grad_hook": (INPUTS,)}  # the last operand is that


def slot_lists(instr: Instr) -> tuple[int, ...]:
    """The lists in which the ``slots`` of a call of users' code are numbers."""
    if instr.op is AccumulateGrad:
        return (INPUTS,)
    return HOOKS, *_ALSO.get(instr.attrs.get("hook_type", ""), ())


@dataclass(frozen=True)
class Lowered:
    """A graph without lists.

    Attributes:
        program: the graph; its name is the same for all, as stored code is found by its text.
        inputs: for each input, which list it comes from, and its number there.
        leaves: for each result behind those of the captured graph, the number among ``inputs`` of
            the leaf that it is added to.
        frame: whether ops find hooks, packed data or leaves in a frame.
    """

    program: Program
    inputs: tuple[tuple[int, int], ...]
    leaves: tuple[int, ...]
    frame: bool


def lowered(module: Module) -> Lowered:
    """The graph of a captured run without lists; ``module`` stays as it is."""
    return _Lowering(module).run()


class _Lowering:
    def __init__(self, module: Module) -> None:
        self.module, self.source = module, module.main
        self.program = Program("backward")
        self.places: dict[int, tuple[int, int]] = {}  # element of a list -> list, number
        self.values: dict[int, int] = {}  # of the source -> of the program
        self.inputs: dict[int, tuple[int, int]] = {}
        self.instrs: list[Instr] = []
        self.frame = False

    def run(self) -> Lowered:
        """Lower the whole graph."""
        source = self.source
        if any(not isinstance(source.type_of(v), ListType) for v in source.inputs):
            raise IRError(f"@{source.name} is no captured backward run, which takes five lists")
        at_the_end = self._at_the_end()
        sums: list[tuple[int, int]] = []
        for instr in source.body.instrs:
            if instr.op is ListGet and instr.operands[0] in source.inputs:
                which = source.inputs.index(instr.operands[0])
                self.places[instr.results[0]] = which, instr.attrs["index"]
            elif instr.op is CallGradient:
                self._inline(instr)
            elif instr.op is AccumulateGrad:
                leaf = self._slot(instr.operands[0], INPUTS)
                g = self._value(instr.operands[1])
                if id(instr) in at_the_end:
                    sums.append((leaf, g))
                else:
                    self._append(AccumulateGrad, (g,), (), instr, slots=(leaf,))
            elif instr.op in _CALLS:
                self._call(instr)
            elif instr.op is not FinalCallbacks:
                self.instrs.append(self._copied(instr, source, self.values))
        outputs = [self._value(v) for v in source.outputs] + [g for _, g in sums]
        self.program.body = Block(tuple(self.inputs), self.instrs, tuple(outputs))
        return Lowered(self.program, tuple(self.inputs.values()), tuple(leaf for leaf, _ in sums), self.frame)

    def _at_the_end(self) -> set[int]:
        """The accumulations that no code of users follows."""
        accumulations: set[int] = set()
        for instr in reversed(self.source.body.instrs):
            if instr.op in _CALLS:
                break
            if instr.op is AccumulateGrad:
                accumulations.add(id(instr))
        return accumulations

    def _value(self, value: int) -> int:
        """The value that stands for one of the source; elements of lists become inputs."""
        if value not in self.values:
            place = self.places[value]
            if place[0] in (HOOKS, PACKED):
                raise IRError("an element of hooks or packed_data is read by an op of arrays")
            type_ = self.source.type_of(value)
            copy = self.program.new_value(TENSOR if isinstance(type_, TensorType) else type_)
            self.values[value] = copy
            self.inputs[copy] = place
        return self.values[value]

    def _slot(self, value: int, wanted: int) -> int:
        which, index = self.places.get(value, (-1, 0))
        if which != wanted:
            raise IRError("code of users is called that is no element of the list of such")
        return index

    def _call(self, instr: Instr) -> None:
        """A call of code of users, which is found by its number from now on."""
        hook, *args = instr.operands
        slots = [self._slot(hook, HOOKS)]
        slots += [self._slot(args.pop(), which) for which in slot_lists(instr)[1:]]
        operands = tuple(map(self._value, args))
        results = tuple(self._fresh(v) for v in instr.results)
        self._append(instr.op, operands, results, instr, slots=tuple(slots))

    def _append(
        self, op: type, operands: Sequence[int], results: Sequence[int], source: Instr, slots: tuple[int, ...]
    ) -> None:
        attrs = {**source.attrs, "slots": slots}
        attrs.pop("origin", None)
        self.frame = True
        self.instrs.append(Instr(op, tuple(operands), tuple(results), attrs, (), source.loc))

    def _fresh(self, value: int) -> int:
        self.values[value] = self.program.new_value(_bare(self.source, value))
        return self.values[value]

    def _inline(self, call: Instr) -> None:
        """Put a private function in the place of its call."""
        callee = self.module.functions[call.attrs["callee"]]
        values = dict(zip(callee.inputs, map(self._value, call.operands), strict=True))
        for instr in callee.body.instrs:
            copied = self._copied(instr, callee, values)
            copied.loc = call.loc or copied.loc
            self.instrs.append(copied)
        outputs = [values[v] for v in callee.outputs]
        self.values.update(zip(call.results, outputs, strict=True))

    def _copied(self, instr: Instr, source: Program, values: dict[int, int]) -> Instr:
        """An op with values of the program; those that are not known yet come from lists."""

        def known(value: int) -> int:
            return values[value] if value in values else self._value(value)

        def fresh(value: int) -> int:
            values[value] = self.program.new_value(_bare(source, value))
            return values[value]

        return renumbered(instr, known, fresh, without="origin")


def _bare(program: Program, value: int) -> Type:
    type_ = program.type_of(value)
    return TENSOR if isinstance(type_, TensorType) else type_
