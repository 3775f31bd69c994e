"""Numbers that are an int in Python in some cases, and a float or complex in others.

    best = 0                               up = d if d > 0 else 0
    for v in x:
        if v > best:
            best = v

In Python, ``best`` is an int until the branch runs; in a graph it is a float of the same value from
the start. That is right as long as only its value matters, which `check` tells of all that is done
with it. Behind the loop, it has to have another value than that with which it began: otherwise the
call is Python's. Where rounds may make other ints of it (``total += d if d > 0 else 0``), and it is
a result, that has to be no whole number (`decided`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.dtypes import BOOL, F64, I64
from ....ir.program import Block, Instr
from ....ir.types import ScalarType, TensorType, Type
from ....ops.control_flow.control import For, If, While
from ....ops.control_flow.effect_ops import Require
from ....ops.create import Constant
from ....ops.elementwise.binary import Add, Div, Mul, Sub
from ....ops.elementwise.families import Compare, Elementwise
from ....ops.elementwise.select import Cast
from ....ops.elementwise.unary import Abs, Neg, Positive
from ....ops.indexing.inplace import Writing
from ....ops.indexing.scatter import Conform
from ....ops.queries import Item, ToTensor, Truth
from ..tracing.operators import op, wrap
from ..tracing.traced_control import required

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder
    from .trial import Trial

_LARGEST = 2**31  # ints up to here, and sums and products of two, are exact as floats
_KEEP = (Add, Sub, Mul, Neg, Abs, Positive, Cast, ToTensor, Item, Require)  # int in, int out
_BY_VALUE = (Compare, Div, Truth)  # these take an int for the float of its value


def wider(value: Any, hints: Sequence[Type]) -> Any:
    """``value`` as the other branch has it; None unless it is a small int that can give way.

    ``hints``: what the branches have.
    """
    if type(value) is not int or abs(value) > _LARGEST:
        return None
    for hint in hints:
        dtype = getattr(hint, "dtype", None)
        if dtype is None or not (dtype.is_float or dtype.is_complex):
            continue
        if isinstance(hint, ScalarType):
            return complex(value) if dtype.is_complex else float(value)
        if isinstance(hint, TensorType) and hint.shape == () and dtype.numpy.itemsize >= 4:
            return dtype.numpy.type(value)
    return None


def note(open_: Sequence[Trial], name: str, hints: Sequence[Type]) -> bool:
    """Have the loop in which a variable begins as an int begin with a wider number."""
    for trial in open_:
        number = wider(trial.start.get(name), hints)
        if number is not None and trial.is_loop:
            numbers = trial.source.decisions.wider.setdefault(trial.key, {})
            if name in numbers:
                return False
            numbers[name] = number
            return True
    return False


def begin(trial: Trial) -> dict[str, int]:
    """Give variables their wider numbers; returns the ints that they hold in Python."""
    ints = {}
    for name, number in trial.source.decisions.wider.get(trial.key, {}).items():
        value = trial.start.get(name)
        if type(value) is int and value == number:
            ints[name] = value
            trial.start[name] = number
    return ints


def constant(rec: Recorder, value: int, other: Type) -> Any:
    """The value of a branch in the place of an int it names, where the other one has a float."""
    definition = rec.defs.get(value)
    if definition is None or not issubclass(definition.op, Constant):
        return None
    return wider(definition.attrs["value"], [other])


def check_all(rec: Recorder, ints: set[int]) -> str | None:
    """The forbidden use that a graph makes of numbers that may be ints; None if there is none.

    ``ints`` gets those that follow.
    """
    return _IntWalk(rec, ints).through([rec.program.body])


def decided(rec: Recorder, value: int) -> int:
    """A result that may be an int in Python, and is a float: it is no whole number, or Python's."""
    x = wrap(rec, value)
    is_complex = getattr(rec.hints[value], "dtype", F64).is_complex
    holds = op("ne", op("imag", x) if is_complex else op("remainder", x, 1.0), 0.0)
    number: int = required(x, holds, "a result may be an int").value
    return number


def widened(before: Sequence[Type], carried: Sequence[Type]) -> set[int]:
    """The values of a loop, counted from the end, that are ints before it and that rounds make floats."""
    pairs = enumerate(zip(reversed(before), reversed(carried), strict=True), 1)
    return {k for k, (a, b) in pairs if _is_int(a) and not _is_int(b)}


def _is_int(hint: Type) -> bool:
    return isinstance(hint, ScalarType) and hint.dtype in (BOOL, I64)


def undecided(rec: Recorder, blocks: Sequence[Block], places: Collection[int]) -> tuple[str | None, set[int]]:
    """The carried values, of those that begin as ints, that rounds may make other ints.

    The first result is what a round does with them and must not, None if nothing.
    """
    ints = set() if rec.source is None else rec.source.ints
    if not places:
        return None, set()
    walk = _IntWalk(rec, {*ints, *(block.args[-place] for block in blocks for place in places)})
    walk.made |= ints
    why = walk.through(blocks)
    if why is not None:
        # Without such numbers in the rounds, the types of all that they compute are Python's.
        may_be_ints = any(r in ints for block in blocks for i in block.walk() for r in i.results)
        return (why if may_be_ints else None), set()
    return None, {place for place in places if blocks[-1].outputs[-place] in walk.made}


def check_weak(rec: Recorder, weak: set[int]) -> str | None:
    """The forbidden use of NumPy scalars that may be numbers of Python's in a graph; None if there is none.

    A number of Python's takes the dtype of the array it meets, a scalar may decide it.
    """
    return _WeakWalk(rec, weak).through([rec.program.body])


def check(
    rec: Recorder, blocks: Sequence[Block], places: Sequence[int], names: Sequence[str], refuse: Callable[[str], Any]
) -> None:
    """Refuse a loop that does something else with such variables than with floats.

    ``blocks``: of the loop, whose carried values are the last arguments and outputs; ``places``:
    which of these are such variables, ``names``, counted from the end.
    """
    ints = {block.args[-place] for block in blocks for place in places}
    why = _IntWalk(rec, ints).through(blocks)
    if why is not None:
        refuse(f"{names[0]} is an int before it is a float, and {why}")
    for block in blocks:
        allowed = {len(block.outputs) - place for place in places}
        for k, value in enumerate(block.outputs):
            if value in ints and k not in allowed:
                refuse(f"{names[0]} is an int before it is a float, and other variables become it")


class _IntWalk:
    """Finds what may be ints in Python, and is floats here."""

    def __init__(self, rec: Recorder, ints: set[int]) -> None:
        self._rec, self._ints = rec, ints
        self.made: set[int] = set()  # of these, the ones that are not just handed on

    def through(self, blocks: Sequence[Block]) -> str | None:
        """The forbidden use that the code of blocks makes of such values; None if there is none."""
        before = -1
        while before != len(self._ints):  # rounds of inner loops hand values on
            before = len(self._ints)
            for block in blocks:
                why = self.block(block)
                if why is not None:
                    return why
        return None

    def block(self, block: Block) -> str | None:
        for instr in block.instrs:
            why = self._instr(instr)
            if why is not None:
                return why
        return None

    def _instr(self, instr: Instr) -> str | None:
        ints = self._ints
        if instr.blocks:
            return self._control(instr)
        numbers = [value for value in instr.operands if value in ints]
        if not numbers:
            return None
        others = [value for value in instr.operands if value not in ints]
        # A complex number makes what is computed with it complex, which an int does not.
        is_wide = any(map(self._is_complex, numbers)) and not any(map(self._is_complex, others))
        if issubclass(instr.op, _BY_VALUE) and not (is_wide and instr.op is Div):
            return None
        if getattr(instr.op, "of_numbers", False):
            return None
        if issubclass(instr.op, Writing):
            target = self._root(instr.operands[0])
            if self._rec.source is not None and target in self._rec.source.lists:
                return "a list gets it"
            is_stored = target not in ints and self._is_float(target) and not is_wide
            return None if is_stored else "is stored among ints"
        if not is_wide and issubclass(instr.op, Elementwise) and any(map(self._is_float, others)):
            return None
        if instr.op in _KEEP and all(self._is_number(value) for value in others):
            ints.update(instr.results)
            self.made.update(instr.results)
            return None
        return f"{instr.op.name} computes with it"

    def _control(self, instr: Instr) -> str | None:
        ints = self._ints
        if instr.op is not If:
            assert instr.op in (For, While)
            carried = len(instr.results)
            for k in range(1, carried + 1):
                if instr.operands[-k] in ints:
                    ints.update(block.args[-k] for block in instr.blocks)
        for block in instr.blocks:
            why = self.block(block)
            if why is not None:
                return why
        for block in instr.blocks:
            for k, result in enumerate(reversed(instr.results), 1):
                if len(block.outputs) >= k and block.outputs[-k] in ints:
                    args = () if instr.op is If else [b.args[-k] for b in instr.blocks]
                    ints.update((result, *args))
                    if block.outputs[-k] in self.made:
                        self.made.update((result, *args))
        return None

    def _root(self, value: int) -> int:
        definition = self._rec.defs.get(value)
        while definition is not None and definition.op.aliases and not definition.blocks:
            value = definition.operands[0]
            definition = self._rec.defs.get(value)
        return value

    def _is_float(self, value: int) -> bool:
        dtype = getattr(self._rec.hints[value], "dtype", None)
        return dtype is not None and (dtype.is_float or dtype.is_complex)

    def _is_complex(self, value: int) -> bool:
        dtype = getattr(self._rec.hints[value], "dtype", None)
        return dtype is not None and bool(dtype.is_complex)

    def _is_number(self, value: int) -> bool:
        return isinstance(self._rec.hints[value], ScalarType)


class _WeakWalk(_IntWalk):
    """Finds what may be numbers of Python's, and is NumPy scalars here."""

    def _instr(self, instr: Instr) -> str | None:
        if instr.blocks:
            return self._control(instr)
        numbers = [value for value in instr.operands if value in self._ints]
        if not numbers or issubclass(instr.op, (Cast, Conform, Writing)):
            return None
        others = [self._rec.hints[value] for value in instr.operands if value not in self._ints]
        arrays = [hint for hint in others if isinstance(hint, TensorType)]
        if not arrays:
            self._ints.update(instr.results)
        for value in numbers:
            if any(_decides(self._rec.hints[value], hint) for hint in arrays):
                return f"{instr.op.name} computes with it, of which it may decide the dtype"
        return None


def _decides(scalar: Type, other: TensorType) -> bool:
    """True if a NumPy scalar gives an array another dtype than a float of Python's would."""
    mine = getattr(scalar, "dtype", None)
    if mine is None or other.dtype is None:
        return True
    theirs = other.dtype.numpy
    number = 1j if mine.is_complex else 1.0
    return np.result_type(mine.numpy, theirs) != np.result_type(theirs, number)


def changed(value: Any, start: int, name: str) -> Any:
    """A variable behind the loop, which is no longer the int with which it began."""
    reason = f"{name} may still be the int with which it began"
    return required(value, op("ne", value, start), reason)
