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
from .result_choices import Choices, Way, values_of

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
        # Of what blocks give and take: what it, and what is beside it, is.
        self._ends: dict[int, list[dict[int, int]]] = {}
        self._order = {value: k for k, value in enumerate(values_of(program.body))}
        for instr in program.body.walk():
            for values, ends in _ends(instr) if instr.blocks else ():
                group = dict(zip(values, ends, strict=True))
                for value in values:
                    self._ends.setdefault(value, []).append(group)
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
            if way in wanted:
                continue
            wanted[way] = None
            for group in self._ends[value]:
                origin = self._origin(group[value], way, group)
                if origin is not None and origin[0] in self._ends and not self._is_itself(*origin[:2]):
                    todo.append(origin[:2])

    def _is_itself(self, value: int, way: Way) -> bool:
        """True if a way leads to the value as it is."""
        return way is self._choices.itself(value)

    def _origin(self, value: int, way: Way, group: Mapping[int, int]) -> tuple[int, Way, Flag] | None:
        """The value and way from which it follows whether a value is what a way leads to; None = it is not.

        With them the numbers of the links between. ``group``: what values beside that which the value becomes are.
        """
        choices = self._choices
        numbers: Flag = []
        if way.link is None and (way.root in group or way.root not in choices.outer):
            return self._meeting(value, group.get(way.root, way.root))
        while value not in choices.outer and value not in self._ends:
            if (link := choices.links.get(value)) is not None:
                if way.link is not link or way.viewed is None:
                    return None
                value, numbers = link.operands[way.operand], [*inner_numbers(choices, way), *numbers]
                way = way.viewed
                continue
            written = self._written(value)
            if written == value:
                return None
            value = written
        if value in choices.outer and not self._is_itself(value, way):
            return None
        return value, way, numbers

    def _meeting(self, a: int, b: int) -> tuple[int, Way, Flag] | None:
        """The value and way from which it follows whether two values are one array; None = they are not."""
        choices = self._choices
        a, b = self._written(a), self._written(b)
        if a != b and not choices.links.keys().isdisjoint((a, b)) and choices.may_share(a, b):
            raise TraceError(
                "contents decide of which array that a branch or a loop makes a result is a part",
                hint="return a copy of it: y.copy()",
            )
        first, last = sorted((a, b), key=self._order.__getitem__)
        way = choices.itself(first)
        if self._is_itself(last, way):
            return last, way, []
        if last in choices.outer or last not in self._ends:
            return None  # a new array, behind the other
        return last, way, []

    def _written(self, value: int) -> int:
        """The array that a value is which stands for it after a write."""
        while value not in self._choices.outer and (instr := self._made.get(value)) is not None and instr.op.writes:
            shared = instr.op.shared_operands(instr.results.index(value), len(instr.operands))
            if len(shared) != 1:
                break
            value = instr.operands[shared[0]]
        return value

    def _flag(self, value: int, way: Way, group: Mapping[int, int], instrs: list[Instr]) -> Flag:
        """The flag of a value; constants are added to the instructions."""
        origin = self._origin(value, way, group)
        if origin is not None and self._is_itself(*origin[:2]):
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
        for value, way in [(v, way) for v in values for way in self._wanted.get(v, ())]:
            types = [BOOL_SCALAR, *map(self._type, all_numbers(self._choices, way))]
            flag = self.of[value, way] = [self.program.new_value(type_) for type_ in types]
            every += flag
        return every

    def _flags(self, values: Sequence[int], ends: Sequence[int], instrs: list[Instr]) -> list[int]:
        """The flags of what is to become values, for the ways that are needed of each."""
        group = dict(zip(values, ends, strict=True))
        wanted = [(value, way) for value in values for way in self._wanted.get(value, ())]
        return [v for value, way in wanted for v in self._flag(group[value], way, group, instrs)]

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
            gives = carried if is_for else last.args
            beside = {
                self._choices.itself(v): self._choices.itself(r) for v, r in zip(gives, instr.results, strict=True)
            }
            for value, taken in zip(instr.results, gives, strict=True):
                self._wanted[value] = {beside.get(way, way): None for way in self._wanted.get(taken, ())}
        results = (*instr.results, *self._new(instr.results))
        return Instr(instr.op, tuple(operands), results, instr.attrs, tuple(blocks), instr.loc)


class ChosenArray(Op):
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
    return Instr(ChosenArray, tuple(operands), (value,), {"ways": ways})


def inner_numbers(choices: Choices, way: Way) -> list[int]:
    """The operands of the last link of a way that blocks compute."""
    operands = way.link.operands if way.link is not None else ()
    return [v for k, v in enumerate(operands) if k != way.operand and v not in choices.outer]


def all_numbers(choices: Choices, way: Way) -> list[int]:
    """The same of all links."""
    return [*all_numbers(choices, way.viewed), *inner_numbers(choices, way)] if way.viewed is not None else []


def _ends(instr: Instr) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Values that blocks give or take, each time with the values that these are."""
    first, last = instr.blocks[0], instr.blocks[-1]
    if instr.op is If:
        return [(instr.results, first.outputs), (instr.results, last.outputs)]
    if instr.op is For:
        carried = first.args[1:]
        return [(carried, instr.operands[3:]), (carried, last.outputs), (instr.results, carried)]
    return [
        (first.args, instr.operands),
        (first.args, last.outputs),
        (last.args, first.outputs[1:]),
        (instr.results, last.args),
    ]
