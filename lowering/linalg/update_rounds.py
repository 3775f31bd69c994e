"""Updates at places that arrays name, inside of loops: rounds over the places, which replace elements.

The generic of `place_updates` goes through all elements of the array; its places become the order of a nest
where a schedule is made of it, which loops on tensors have none of. Here the array stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from ...dialect.ir.symbolic import Dim
from ...dialect.ir.types import TensorType
from ...dialect.ops.indexing.additions import IndexPut
from .element import emit, sliced, storage_type
from .generic import TensorValue, mlir_type
from .scalar import Scalar
from .stored_element import load, store

if TYPE_CHECKING:
    from .tensor_builder import Builder

Combine = Callable[[Scalar, Scalar], Scalar]


def update_in_rounds(
    b: Builder, combine: Combine, x: TensorValue, value: TensorValue, places: Mapping[int, TensorValue], start: int
) -> TensorValue:
    """``x`` updated as by `place_updates.update_at`, by a loop for each axis of the places.

    The places are in range, as there.
    """
    rounds = _Rounds(b, combine, x, value, places, start)
    return TensorValue(rounds.emit([], x.value), x.type)


class _Rounds:
    """The loops of one update; see `update_in_rounds` for the arguments."""

    def __init__(
        self,
        b: Builder,
        combine: Combine,
        x: TensorValue,
        value: TensorValue,
        places: Mapping[int, TensorValue],
        start: int,
    ) -> None:
        self._b, self._combine, self._x, self._value, self._places, self._start = b, combine, x, value, places, start
        count = value.rank - (x.rank - len(places))
        self._sizes = value.shape[start : start + count]
        self._rest = [axis for axis in range(x.rank) if axis not in places]
        # These are computed before the loops, in whose rounds they are used.
        self._ends = [b.index(size) for size in self._sizes]
        self._zero, self._one = b.index(0), b.index(1)
        self._tensors = {axis: place.value for axis, place in places.items()}, value.value

    def emit(self, at: list[ir.Value], array: ir.Value) -> ir.Value:
        """The array behind the rounds of the loops that are left, in a round of those around.

        Args:
            at: the indices of the loops around.
            array: what it is before.
        """
        depth = len(at)
        if depth == len(self._sizes):
            return self._updated(at, array)
        if self._sizes[depth] == 1:
            return self.emit([*at, self._zero], array)
        loop = ir.Operation.create(
            "scf.for", results=[array.type], operands=[self._zero, self._ends[depth], self._one, array], regions=1
        )
        block = loop.regions[0].blocks.append(ir.IndexType.get(), array.type)
        with ir.InsertionPoint(block):
            index, carried = block.arguments
            ir.Operation.create("scf.yield", operands=[self.emit([*at, index], carried)])
        return loop.results[0]

    def _updated(self, at: Sequence[ir.Value], array: ir.Value) -> ir.Value:
        """The array behind one round."""
        places, values = self._tensors
        where = {axis: self._place(axis, at, tensor) for axis, tensor in places.items()}
        if not self._rest:
            return self._element(at, where, array, values)
        dtype, rank = self._x.dtype, self._x.rank
        starts: list[Any] = [where.get(axis, 0) for axis in range(rank)]
        sizes = [1 if axis in where else self._size(size) for axis, size in enumerate(self._x.shape)]
        part = TensorType(dtype, tuple(self._x.shape[axis] for axis in self._rest))
        new = TensorValue(self._row(at, values, part), part)
        if self._combine is not IndexPut.combine:
            old = sliced("tensor.extract_slice", mlir_type(part), [array], starts, sizes, [1] * rank)
            new = self._b.pointwise(self._combine, [TensorValue(old, part), new], part)
        return sliced("tensor.insert_slice", array.type, [new.value, array], starts, sizes, [1] * rank)

    def _element(
        self, at: Sequence[ir.Value], where: Mapping[int, ir.Value], array: ir.Value, values: ir.Value
    ) -> ir.Value:
        dtype = self._x.dtype
        kind, indices = storage_type(dtype), [where[axis] for axis in range(self._x.rank)]
        new = load(emit("tensor.extract", kind, values, *self._within(at, self._value.shape)), dtype)
        old = load(emit("tensor.extract", kind, array, *indices), dtype)
        return emit("tensor.insert", array.type, store(self._combine(old, new)), array, *indices)

    def _place(self, axis: int, at: Sequence[ir.Value], tensor: ir.Value) -> ir.Value:
        place = self._places[axis]
        number = emit("tensor.extract", storage_type(place.dtype), tensor, *self._within(at, place.shape))
        return emit("arith.index_cast", ir.IndexType.get(), number)

    def _within(self, at: Sequence[ir.Value], shape: Sequence[Dim]) -> list[ir.Value]:
        """The indices of the loops, of an array that broadcasts to their sizes."""
        return [
            self._zero if size == 1 else index for size, index in zip(shape, at[len(at) - len(shape) :], strict=True)
        ]

    def _row(self, at: Sequence[ir.Value], values: ir.Value, part: TensorType) -> ir.Value:
        """What the values have for one place."""
        before, behind = self._start, self._start + len(at)
        shape = self._value.shape
        starts: list[Any] = [0] * len(shape)
        starts[before:behind] = self._within(at, shape[before:behind])
        sizes = [1 if before <= axis < behind else self._size(size) for axis, size in enumerate(shape)]
        return sliced("tensor.extract_slice", mlir_type(part), [values], starts, sizes, [1] * len(shape))

    def _size(self, size: Dim) -> Any:
        return size if isinstance(size, int) else self._b.index(size)
