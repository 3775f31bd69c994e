"""Sizes around groups in emitted code: the ops on sizes, worked out on the sizes of arrays (R3.29, R3.33)."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from ...dialect.errors import ProfuseError
from ...dialect.ir.dtypes import DTYPES
from ...dialect.ir.program import Instr
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ir.types import TensorType, Type
from ...dialect.ops.inferred_sizes import InferredSizes, ReshapeSizes
from ...dialect.ops.queries import DTypeConstant
from ...dialect.ops.size_items import DimOf, SizeItem
from ...dialect.ops.size_lists import ChunkSizes, SizeFormula
from .host_calls import reads_host
from .leaf_values import ArrayValue, MadeValue, Test, Value
from .number_values import KnownNumber, SizeNumber

Sizes = tuple[Dim, ...]
_ATTEMPTS = 16  # pairs of sizes that are compared for one op


class DerivedSizes:
    """The results of the ops on sizes of a plan, where the tests of a leaf hold.

    Attributes:
        ones: sizes of arrays that guards let pass only where they are 1.
    """

    def __init__(self) -> None:
        self.ones: set[Dim] = set()

    def note_guard(self, types: Sequence[Type], values: Sequence[Value]) -> None:
        """Note which sizes of the operands of a guard on these types are 1."""
        for type_, value in zip(types, values, strict=True):
            if isinstance(type_, TensorType) and isinstance(value, (ArrayValue, MadeValue)):
                pairs = zip(value.sizes, type_.shape or (), strict=False)
                self.ones.update(size for size, expected in pairs if expected == 1)

    def takes(
        self,
        instr: Instr,
        operands: Sequence[int],
        values: MutableMapping[int, Value],
        sizes: MutableMapping[int, Sizes],
    ) -> list[Test] | None:
        """Work out an op; None for any other, and for what only Python can tell.

        Args:
            values: numbers that the op gives go here.
            sizes: all sizes of an array, by the value that stands for them, and those that the op gives.

        Returns the tests that hold where the outcome does.
        """
        if instr.op is DTypeConstant:
            values[instr.results[0]] = KnownNumber(DTYPES.index(instr.attrs["dtype"]))
            return []
        if not issubclass(instr.op, (SizeFormula, SizeItem)) or not all(o in sizes for o in operands):
            return None
        shapes = [tuple(1 if size in self.ones else size for size in sizes[o]) for o in operands]
        if issubclass(instr.op, SizeFormula):
            return self._formula(instr, instr.op, shapes, sizes)
        return self._item(instr, shapes[0], values, sizes)

    def _formula(
        self, instr: Instr, op: type[SizeFormula], shapes: list[Sizes], sizes: MutableMapping[int, Sizes]
    ) -> list[Test] | None:
        """Sizes that fit each other only if two of them are equal are tested to be so."""
        attrs = op.full_attrs(instr.attrs)
        tests: list[Test] = []
        for _ in range(_ATTEMPTS):
            try:
                results = op.formula(attrs, *shapes)
                if any(shape is None or None in shape for shape in results):
                    return None
                if issubclass(op, InferredSizes):
                    op.prove(attrs, *shapes)
            except ProfuseError as error:
                pair = error.sizes
                if len(pair) != 2 or not any(isinstance(size, Sym) for size in pair):
                    return None  # Python raises the error
                one, other = pair if isinstance(pair[0], Sym) else pair[::-1]
                tests.append(Test(("same", one, other), 1))
                before, shapes = shapes, [tuple(other if size == one else size for size in shape) for shape in shapes]
                if shapes != before:
                    continue
                if op is not ReshapeSizes:  # of which this is the only condition
                    return None
            sizes.update(zip(instr.results, results, strict=True))  # type: ignore[arg-type]
            if op is ChunkSizes:
                rest = results[1][attrs["axis"]]  # type: ignore[index]
                tests += [] if isinstance(rest, int) else [Test(("positive", rest), 1)]
            return tests
        return None

    def _item(
        self, instr: Instr, shape: Sizes, values: MutableMapping[int, Value], sizes: MutableMapping[int, Sizes]
    ) -> list[Test] | None:
        assert issubclass(instr.op, SizeItem)
        try:
            number = instr.op.item(instr.attrs, shape)
        except ProfuseError:
            return None  # Python raises the error
        if number is None or reads_host(number):
            return None
        values[instr.results[0]] = KnownNumber(number) if isinstance(number, int) else SizeNumber(number)
        if instr.op is DimOf:
            sizes[instr.results[0]] = (number,)
        return []
