"""Cutting an axis into consecutive pieces: split, chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import BOOL, I64, I64_ARRAY
from ...ir.op import EVERY, Attrs, Emit, Values, View, attr, bare, operand, result
from ...ir.size_algebra import sym_min
from ...ir.symbolic import Dim, Sym
from ...ir.types import TensorType, Type
from ..indexing.slicing import ABSENT, sliced
from ..sizes import check_axis, complete_shape, normalize_axis, prove_equal, tensor_type
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder


class _Pieces(Structural):
    """Family: cut an axis into consecutive pieces, one result each."""

    aliases = {EVERY: 0}
    x = operand()
    pieces = result(variadic=True)
    axis = attr(I64, default=0)

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        axis = normalize_axis(attrs["axis"], np.ndim(xs[0]))
        parts = [np.zeros_like(y) if g is None else g for y, g in zip(ys, gs, strict=True)]
        if cls.in_order(attrs):
            return (np.concatenate(parts, axis),)
        total = np.zeros_like(xs[0])
        for part, (first, size) in zip(parts, cls.cut(np.shape(xs[0])[axis], attrs), strict=True):
            bounds = {"starts": (first,), "stops": (first + size,), "axes": (axis,)}
            total = total + b.op("slice_scatter", np.zeros_like(xs[0]), part, **bounds)
        return (total,)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        if not view.others:
            return view.new  # the only piece is all of it
        pieces = list(view.others)
        pieces[view.result] = view.new
        return emit("concatenate", pieces, {"axis": attrs.get("axis", 0)})[0]

    @classmethod
    def count(cls, attrs: Attrs) -> int:
        """The number of pieces."""
        raise NotImplementedError

    @classmethod
    def in_order(cls, attrs: Attrs) -> bool:
        """True if the pieces, one after the other, are the whole axis."""
        return True

    @classmethod
    def cut(cls, size: Dim, attrs: Attrs) -> list[tuple[Dim, Dim]]:
        """(first index, size) per piece of an axis; raises ShapeError."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x, count = tensor_type(types[0]), cls.count(attrs)
        if x.shape is None:
            return (TensorType(x.dtype),) * count
        axis = normalize_axis(attrs.get("axis", 0), len(x.shape))
        size = x.shape[axis]
        cuts = [None] * count if size is None else [s for _, s in cls.cut(size, attrs)]
        return tuple(
            TensorType(x.dtype, tuple(piece if k == axis else d for k, d in enumerate(x.shape))) for piece in cuts
        )

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = args[0]
        axis = normalize_axis(attrs.get("axis", 0), np.ndim(x))
        before = (slice(None),) * axis
        cuts = cls.cut(x.shape[axis], attrs)
        return bare(tuple(x[(*before, slice(first, first + size))] for first, size in cuts))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axis(attrs.get("axis", 0), types[0])
        if cls.count(attrs) < 1:
            yield "number sections must be larger than 0."

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> tuple[TensorValue, ...]:
        x = args[0]
        axis = normalize_axis(attrs.get("axis", 0), x.type.rank)
        out = []
        cuts = cls.cut(complete_shape(x.type)[axis], attrs)
        for type_, (first, _) in zip(types, cuts, strict=True):
            starts = tuple(first if k == axis else 0 for k in range(x.type.rank))
            assert isinstance(type_, TensorType)
            out.append(b.slice(x, starts, (1,) * x.type.rank, type_))
        return tuple(out)


class Split(_Pieces, name="split"):
    """`numpy.split` at ``indices``, or into ``sections`` equal pieces.

    ``even`` = false gives `numpy.array_split`: the first pieces take one more where the size does
    not divide. Otherwise that raises ShapeError.
    """

    sections = attr(I64, default=None)
    indices = attr(I64_ARRAY, default=None)
    even = attr(BOOL, default=True)

    @classmethod
    def in_order(cls, attrs: Attrs) -> bool:
        cuts = attrs["indices"] or ()
        return all(0 <= a <= b for a, b in zip((0, *cuts), cuts, strict=False))

    @classmethod
    def count(cls, attrs: Attrs) -> int:
        indices = attrs.get("indices")
        return attrs["sections"] if indices is None else len(indices) + 1

    @classmethod
    def cut(cls, size: Dim, attrs: Attrs) -> list[tuple[Dim, Dim]]:
        indices, count = attrs.get("indices"), cls.count(attrs)
        if indices is not None:
            edges = zip((0, *indices), (*indices, ABSENT), strict=True)
            return [sliced(size, first, last, 1) for first, last in edges]  # type: ignore[misc]
        if count < 1:
            raise ShapeError("number sections must be larger than 0.")
        if attrs.get("even", True):
            if isinstance(size, int) and size % count:
                raise ShapeError("array split does not result in an equal division")
            return [(k * (size // count), size // count) for k in range(count)]
        return [
            (k * (size // count) + sym_min(k, size % count), (size + (count - 1 - k)) // count) for k in range(count)
        ]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if (attrs.get("sections") is None) == (attrs.get("indices") is None):
            yield "exactly one of sections and indices must be given"
            return
        yield from super().verify(types, attrs)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        size = shape[normalize_axis(attrs.get("axis", 0), len(shape))]
        if attrs.get("indices") is None and attrs.get("even", True):
            whole = (size // attrs["sections"]) * attrs["sections"]
            prove_equal(whole, size, "split makes equal pieces")


class Chunk(_Pieces, name="chunk"):
    """``chunks`` pieces of the size rounded up, the last takes the rest: 7 in 3 = 3, 3, 1.

    Raises ShapeError where that leaves a piece without elements.
    """

    chunks = attr(I64)

    @classmethod
    def count(cls, attrs: Attrs) -> int:
        return attrs["chunks"]

    @classmethod
    def cut(cls, size: Dim, attrs: Attrs) -> list[tuple[Dim, Dim]]:
        count = attrs["chunks"]
        if count < 1:
            raise ShapeError(f"number of chunks must be larger than 0, not {count}")
        piece = (size + (count - 1)) // count
        rest = size - piece * (count - 1)
        if isinstance(rest, int) and rest <= 0:
            raise ShapeError(f"size {size} gives fewer than {count} chunks of {piece}")
        return [(k * piece, piece) for k in range(count - 1)] + [((count - 1) * piece, rest)]

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        size = shape[normalize_axis(attrs.get("axis", 0), len(shape))]
        if isinstance(size, Sym):
            whole = (size // attrs["chunks"]) * attrs["chunks"]
            prove_equal(whole, size, "chunk leaves no piece empty")
