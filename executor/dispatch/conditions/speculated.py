"""The tests that values of a call are those that a group is made for (R3.38, R3.39)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....dialect.ir.program import Block, Instr, Program
from ....dialect.ir.symbolic import Dim, Integer, symbol
from ....dialect.ops.create import Constant
from ....dialect.ops.size_lists import BoolXor, ValueEq
from ...memory.offsets import Refused
from ..leaf_values import Test, Value
from ..number_values import NumberValue, SizeNumber
from ..refs import Held


class SpeculatedValues:
    """The comparisons of a plan with values of the call, as tests.

    Attributes:
        tests: truth value of the plan -> the tests that hold where it is true.
    """

    def __init__(self, program: Program) -> None:
        self.tests: dict[int, list[Test]] = {}
        self._compared = _read_by_comparisons(program.body)
        self._constants: dict[int, bool] = {}
        self._equals: dict[int, tuple[NumberValue, bool]] = {}  # truth value -> the argument that has to be this

    def takes(
        self, instr: Instr, operands: Sequence[int], values: Mapping[int, Value], sizes: Mapping[int, Sequence[Dim]]
    ) -> bool:
        """Note an instruction that compares values; False for any other, and for what Python has to compare.

        ``sizes``: all sizes of an array, by the value that stands for them. Raises Refused for a comparison
        that never holds.
        """
        if instr.op is Constant and type(instr.attrs["value"]) is bool and instr.results[0] in self._compared:
            self._constants[instr.results[0]] = instr.attrs["value"]
            return True
        if instr.op is BoolXor:
            return self._xor(instr.results[0], operands, values)
        if instr.op is not ValueEq:
            return False
        tests = _equal(values.get(operands[0]), sizes.get(operands[0]), instr.attrs["value"])
        if tests is None:
            return False
        self.tests[instr.results[0]] = tests
        return True

    def _xor(self, result: int, operands: Sequence[int], values: Mapping[int, Value]) -> bool:
        """A truth value that is another one, or its opposite."""
        numbers = [o for o in operands if o not in self._constants]
        if len(numbers) != 1:
            return False
        (flips,) = (self._constants[o] for o in operands if o in self._constants)
        value = values.get(numbers[0])
        if numbers[0] in self._equals:
            argument, wanted = self._equals[numbers[0]]
        elif isinstance(value, NumberValue) and value.kind is bool:
            argument, wanted = value, True
        else:
            return False
        self._equals[result] = argument, wanted is not flips
        self.tests[result] = [Test(("static", argument.position, Held(wanted is not flips)), 1)]
        return True


def _read_by_comparisons(block: Block) -> set[int]:
    """The values that nothing but comparisons of truth values reads."""
    compared: set[int] = set()
    others = set(block.outputs)
    for instr in block.walk():
        (compared if instr.op is BoolXor else others).update(instr.operands)
        others.update(value for inner in instr.blocks for value in inner.outputs)
    return compared - others


def _equal(value: Value | None, sizes: Sequence[Dim] | None, wanted: Any) -> list[Test] | None:
    """The tests that a number, or sizes, are these; None if Python has to compare them."""
    if isinstance(value, NumberValue) and value.kind is type(wanted) is bool:
        return [Test(("static", value.position, Held(wanted)), 1)]
    if isinstance(value, NumberValue) and value.kind is type(wanted) is int:
        return [Test(("fits", value.position), 1), Test(("size", symbol(Integer(value.position))), wanted)]
    if isinstance(value, SizeNumber) and type(wanted) is int:
        return [Test(("size", value.size), wanted)]
    if sizes is None or type(wanted) is not tuple:
        return None
    if len(sizes) != len(wanted):
        raise Refused(f"a check of {len(sizes)} sizes against {wanted} never holds")
    return [Test(("size", size), number) for size, number in zip(sizes, wanted, strict=True)]
