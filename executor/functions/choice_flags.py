"""A graph that tells which array each result of a branch or a loop is, by flags beside these.

A flag says that a value is what one way leads to (`result_choices`): a truth, and the numbers by which views are
taken on that way. Branches give flags, and loops carry them, as they do with the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialect.errors import TraceError
from ...dialect.ir.op import Attrs, Op
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import BOOL_SCALAR, ScalarType
from ...dialect.ops.control_flow.control import For, If
from ...dialect.ops.create import Constant
from ..interpret.evaluate import bound_evaluate
from .result_choices import Choices, Way

Flag = list[int]  # the truth, and the numbers of all links


class Flags:
    """The flags of what some branches and loops of a program give.

    Args:
        program: the program.
        choices: what its values may be.
        ways: by these values, the ways to tell apart.

    Attributes:
        program: the program with flags.
        of: the flag of each value for each way.
    """

    def __init__(self, program: Program, choices: Choices, ways: Mapping[int, Sequence[Way]]) -> None:
        self._choices = choices
        self._made = {value: instr for instr in program.body.walk() for value in instr.results}
        self._ends: dict[int, list[int]] = {}  # of what blocks give and take, the values that it is one of
        for instr in program.body.walk():
            for value, end in _ends(instr) if instr.blocks else ():
                self._ends.setdefault(value, []).append(end)
        self._wanted: dict[int, dict[Way, None]] = {}
        for value, some in ways.items():
            for way in some:
                self._want(value, way)
        self.of: dict[tuple[int, Way], Flag] = {}
        body = program.body
        self.program = Program(program.name, Block(body.args), dict(program.types), program.count)
        self.program.body = Block(body.args, self._run(body.instrs), body.outputs)

    def _want(self, value: int, way: Way) -> None:
        """Note a flag that is needed, with those from which it follows."""
        todo = [(value, way)]
        while todo:
            value, way = todo.pop()
            wanted = self._wanted.setdefault(value, {})
            possible = self._choices.results.get(value) or self._choices.inside[value]
            if way in wanted or way not in possible.ways:
                continue
            wanted[way] = None
            for end in self._ends[value]:
                origin = self._origin(end, way)
                if origin is not None and origin[0] not in self._choices.outer:
                    todo.append(origin[:2])

    def _origin(self, value: int, way: Way) -> tuple[int, Way, Flag] | None:
        """The value and way from which it follows whether a value is what a way leads to; None = it is not.

        With them the numbers of the links between.
        """
        choices, numbers = self._choices, []
        while value not in choices.outer and value not in self._ends:
            if (link := choices.links.get(value)) is not None:
                if way.link is not link or way.viewed is None:
                    return None
                value, numbers = link.operands[way.operand], [*inner_numbers(choices, way), *numbers]
                way = way.viewed
                continue
            instr = self._made[value]
            if not instr.op.writes:
                return None
            (shared,) = instr.op.shared_operands(instr.results.index(value), len(instr.operands))
            value = instr.operands[shared]
        if value in choices.outer and way is not choices.itself(value):
            return None
        return value, way, numbers

    def _flag(self, value: int, way: Way, instrs: list[Instr]) -> Flag:
        """The flag of a value; constants are added to the instructions."""
        origin = self._origin(value, way)
        if origin is not None and origin[0] in self._choices.outer:
            return [self._constant(True, instrs), *origin[2]]
        if origin is not None and (flag := self.of.get(origin[:2])) is not None:
            return [*flag, *origin[2]]
        kinds = [False, *(self._type(v).dtype.numpy.type(0).item() for v in all_numbers(self._choices, way))]
        return [self._constant(kind, instrs) for kind in kinds]

    def _type(self, number: int) -> ScalarType:
        type_ = self.program.type_of(number)
        if not isinstance(type_, ScalarType):
            raise TraceError(
                "a number that an array holds decides of which part of an array a result is a view",
                hint="return a copy of it: y.copy()",
            )
        return ScalarType(type_.dtype)

    def _constant(self, number: Any, instrs: list[Instr]) -> int:
        (type_,) = Constant.infer((), {"value": number})
        value = self.program.new_value(type_)
        instrs.append(Instr(Constant, (), (value,), {"value": number}))
        return value

    def _new(self, values: Sequence[int]) -> list[int]:
        """New values, which are the flags of some values from now on."""
        every: list[int] = []
        for value, way in ((value, way) for value in values for way in self._wanted.get(value, ())):
            types = [BOOL_SCALAR, *map(self._type, all_numbers(self._choices, way))]
            flag = self.of[value, way] = [self.program.new_value(type_) for type_ in types]
            every += flag
        return every

    def _flags(self, values: Sequence[int], ends: Sequence[int], instrs: list[Instr]) -> list[int]:
        """The flags of what is to become values, for the ways that are needed of each."""
        pairs = zip(values, ends, strict=True)
        return [v for value, end in pairs for way in self._wanted.get(value, ()) for v in self._flag(end, way, instrs)]

    def _run(self, instrs: Sequence[Instr]) -> list[Instr]:
        """Instructions that give the flags besides what they give."""
        result: list[Instr] = []
        for instr in instrs:
            result.append(self._with_flags(instr, result) if instr.blocks else instr)
        return result

    def _with_flags(self, instr: Instr, before: list[Instr]) -> Instr:
        """An instruction with blocks that gives flags; ``before``: those in front of it."""
        if not any(self._wanted.get(v) for v in instr.results):
            return instr
        operands, blocks = list(instr.operands), []
        if instr.op is If:
            for block in instr.blocks:
                instrs = self._run(block.instrs)
                flags = self._flags(instr.results, block.outputs, instrs)
                blocks.append(Block(block.args, instrs, (*block.outputs, *flags)))
        else:
            is_for = instr.op is For
            first, last = instr.blocks[0], instr.blocks[-1]
            carried = first.args[1:] if is_for else first.args
            operands += self._flags(carried, operands[3 if is_for else 0 :], before)
            args = (*first.args, *self._new(carried))
            instrs = self._run(first.instrs)
            if is_for:
                flags = self._flags(carried, first.outputs, instrs)
                blocks = [Block(args, instrs, (*first.outputs, *flags))]
            else:
                flags = self._flags(last.args, first.outputs[1:], instrs)
                blocks = [Block(args, instrs, (*first.outputs, *flags))]
                args = (*last.args, *self._new(last.args))
                instrs = self._run(last.instrs)
                flags = self._flags(carried, last.outputs, instrs)
                blocks.append(Block(args, instrs, (*last.outputs, *flags)))
            for value, taken in zip(instr.results, carried if is_for else last.args, strict=True):
                self._wanted[value] = self._wanted.get(taken, {})
        results = (*instr.results, *self._new(instr.results))
        return Instr(instr.op, tuple(operands), results, instr.attrs, tuple(blocks), instr.loc)


class Chosen(Op):
    """The array that a branch or a loop gives: the first of several whose flag is true, else one of its own."""

    @classmethod
    def full_attrs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given)  # no graph has them

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        for truth, root, links in attrs["ways"]:
            if args[truth]:
                array = args[root]
                for link, operands in links:
                    array = link(*[array if k is None else args[k] for k in operands])
                return array
        return args[0]


def chosen_array(own: int, value: int, flags: Mapping[Way, Flag], choices: Choices) -> Instr:
    """What takes a value: an array of its own, or what the way leads to whose flag is true."""
    operands, ways = [own], []
    for way, (truth, *numbers) in flags.items():
        start, links = len(operands), []
        operands += [truth, way.root, *numbers]
        inner = iter(range(start + 2, len(operands)))
        for link, operand in way.links:
            places: list[int | None] = []
            for k, v in enumerate(link.operands):
                if k == operand:
                    places.append(None)
                elif v not in choices.outer:
                    places.append(next(inner))
                else:
                    places.append(len(operands))
                    operands.append(v)
            links.append((bound_evaluate(link), places))
        ways.append((start, start + 1, links))
    return Instr(Chosen, tuple(operands), (value,), {"ways": ways})


def inner_numbers(choices: Choices, way: Way) -> list[int]:
    """The operands of the last link of a way that blocks compute."""
    operands = way.link.operands if way.link is not None else ()
    return [v for k, v in enumerate(operands) if k != way.operand and v not in choices.outer]


def all_numbers(choices: Choices, way: Way) -> list[int]:
    """The same of all links."""
    return [*all_numbers(choices, way.viewed), *inner_numbers(choices, way)] if way.viewed is not None else []


def _ends(instr: Instr) -> list[tuple[int, int]]:
    """Pairs of a value that blocks give or take, and one that it may be."""
    first, last = instr.blocks[0], instr.blocks[-1]
    if instr.op is If:
        return [*zip(instr.results, first.outputs, strict=True), *zip(instr.results, last.outputs, strict=True)]
    if instr.op is For:
        carried, taken = first.args[1:], instr.operands[3:]
        gives = carried
    else:
        carried, taken, gives = first.args, instr.operands, last.args
    pairs = [*zip(carried, taken, strict=True), *zip(carried, last.outputs, strict=True)]
    if instr.op is not For:
        pairs += zip(last.args, first.outputs[1:], strict=True)
    return [*pairs, *zip(instr.results, gives, strict=True)]
