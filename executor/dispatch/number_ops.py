"""Python numbers that emitted code computes between a call's arguments and its kernels.

``-b * omega`` with a float ``b`` begins with an operation on a Python number, which no kernel
contains: Python's numbers have operations of their own. Those that cannot fail are a machine
instruction. Where Python's result could be another one (an int of many digits, a divisor of 0),
emitted code leaves the whole call to Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ...dialect.ir.op import Op
from ...dialect.ir.program import Instr
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise import python_math
from ...dialect.ops.elementwise.binary import Add, Div, FloorDiv, Maximum, Minimum, Mul, Remainder, Sub
from ...dialect.ops.elementwise.powers import Pow
from ...dialect.ops.elementwise.unary import Abs, Neg
from .conditions.host_reads import combine
from .leaf_values import MadeValue, Value
from .llvm_writer import Writer
from .number_values import LIBRARY, NUMBERS, ComputedNumber, KnownNumber, Number, NumberValue, SizeNumber
from .refs import FromHost

_SMALL = 2**31  # products and sums of two such ints have 64 bits, and as floats they are exact
_INSTRUCTIONS: dict[type[Op], str] = {Add: "add", Sub: "sub", Mul: "mul", Div: "div", Neg: "neg", Pow: "pow"}
_OF_INTS: dict[type[Op], str] = {FloorDiv: "//", Remainder: "%", Maximum: "max", Minimum: "min"}
_CALLS: dict[type[Op], str] = {python_math.FUNCTIONS[getattr(math, name)]: name for name in LIBRARY if name != "fabs"}


def computed_number(
    instr: Instr, operands: tuple[int, ...], values: Mapping[int, Value]
) -> ComputedNumber | KnownNumber | None:
    """The number that an instruction computes of Python numbers; None if emitted code cannot do the same."""
    if instr.op is Constant and not instr.operands:
        number = instr.attrs["value"]
        if (type(number) is int and -(2**63) <= number < 2**63) or type(number) is float:
            return KnownNumber(number)
        return None
    name = _INSTRUCTIONS.get(instr.op) or _CALLS.get(instr.op)
    operand_values = [values.get(operand) for operand in operands]
    numbers = tuple([v for v in operand_values if isinstance(v, NUMBERS) and v.kind in (int, float)])
    if all(v.kind is int for v in numbers):
        name = name or _OF_INTS.get(instr.op)
    if name in ("//", "%") and not _is_positive(numbers[-1]):
        return None
    if instr.op is Abs and all(v.kind is float for v in numbers):
        name = "fabs"
    if name is None or len(numbers) != len(operand_values) or len(instr.results) != 1:
        return None
    if name == "pow" and not (numbers[0].kind is float and _is_plain_power(numbers[1])):
        return None
    if name == "div" or all(v.kind is int for v in numbers):  # where ints have to be small
        constants = [v.value for v in numbers if isinstance(v, KnownNumber) and v.kind is int]
        if any(not -_SMALL <= value < _SMALL for value in constants):
            return None
    is_float = name == "div" or name in LIBRARY or any(v.kind is float for v in numbers)
    return ComputedNumber(float if is_float else int, name, numbers)


def _is_plain_power(exponent: Number) -> bool:
    """True for exponents for which Python's power is that of C, whatever the base."""
    return isinstance(exponent, KnownNumber) and exponent.value in (2, 3, 4)


def _is_positive(number: Number) -> bool:
    return isinstance(number, KnownNumber) and number.value > 0


def is_returned(value: Value | None) -> bool:
    """True if emitted code can return a value: what kernels make, and numbers.

    A number in a container may be taken out of it, and be gone, before the call returns.
    """
    if isinstance(value, NumberValue):
        return value.kind in (int, float) and isinstance(value.position, (int, FromHost))
    return isinstance(value, (MadeValue, KnownNumber, SizeNumber, ComputedNumber))


class NumberWriter:
    """Writes the instructions that give numbers, each number once.

    Args:
        w: the writer.
        read: writes code that gives an argument's double or i64, or a size.
        leave_unless: writes code that leaves the call to Python where an ``i1`` is false.
    """

    def __init__(
        self, w: Writer, read: Callable[[NumberValue | SizeNumber], str], leave_unless: Callable[[str], None]
    ) -> None:
        self._w, self._read, self._leave_unless = w, read, leave_unless
        self._made: dict[Number, str] = {}

    def word(self, value: Number) -> str:
        """The 8 bytes of a number, as an ``i64``."""
        number = self._number(value)
        return self._w.op(f"bitcast double {number} to i64") if value.kind is float else number

    def _number(self, value: Number) -> str:
        if isinstance(value, KnownNumber):
            return value.text()
        if value not in self._made:
            self._made[value] = self._computed(value) if isinstance(value, ComputedNumber) else self._read(value)
        return self._made[value]

    def _computed(self, value: ComputedNumber) -> str:
        words = [self._number(operand) for operand in value.operands]
        if value.kind is int:
            for number in words:
                self._require_small(number)
            if value.op in _OF_INTS.values():
                return combine(self._w, value.op, *words)
            shown = ", ".join(words if len(words) == 2 else ("0", *words))
            return self._w.op(f"{'sub' if value.op == 'neg' else value.op} i64 {shown}")
        numbers = [
            self._as_float(number, operand, exact=value.op == "div")
            for number, operand in zip(words, value.operands, strict=True)
        ]
        if value.op == "div":
            zero = KnownNumber(0.0).text()
            self._leave_unless(self._w.op(f"fcmp une double {numbers[1]}, {zero}"))
        if value.op == "pow":
            return self._power(numbers[0], numbers[1])
        if value.op in LIBRARY:
            return self._called(value.op, numbers)
        return self._w.op(f"f{value.op} double {', '.join(numbers)}")

    def _called(self, name: str, numbers: list[str]) -> str:
        """A function of the C library; without a finite result, Python takes over."""
        result = self._w.call(name, "double", *(f"double {number}" for number in numbers))
        size = self._w.call("fabs", "double", f"double {result}")
        self._leave_unless(self._w.op(f"fcmp olt double {size}, {KnownNumber(math.inf).text()}"))
        return result

    def _power(self, base: str, exponent: str) -> str:
        result = self._w.call("pow", "double", f"double {base}", f"double {exponent}")
        for bound, compare in ((math.inf, "olt"), (-math.inf, "ogt")):  # Python raises for these
            test = f"fcmp {compare} double {result}, {KnownNumber(bound).text()}"
            self._leave_unless(self._w.op(test))
        return result

    def _as_float(self, number: str, value: Number, *, exact: bool) -> str:
        if value.kind is float:
            return number
        if isinstance(value, KnownNumber):
            return KnownNumber(float(value.value)).text()
        if exact:  # Python divides ints of any size without rounding them first
            self._require_small(number)
        return self._w.op(f"sitofp i64 {number} to double")

    def _require_small(self, number: str) -> None:
        moved = self._w.op(f"add i64 {number}, {_SMALL}")
        self._leave_unless(self._w.op(f"icmp ult i64 {moved}, {2 * _SMALL}"))
