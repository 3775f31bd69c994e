"""Parts of a tensor: slice, pick (integer index), split, chunk.

Bounds follow Python's ``slice``: negative ones count from the end, all are clamped to the axis.
In attributes `ABSENT` stands for a bound left out; other literals must lie closer to zero.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attrs import BOOL, DYNAMIC, I64, I64_ARRAY
from ..base import attr, operand, result
from ..errors import BoundsError, LoweringError, ShapeError
from ..symbolic import Dim, Sym, sym_max, sym_min
from ..types import MaybeDim, Shape, TensorType, Type
from .sizes import (
    check_axes,
    check_sizes,
    clamped,
    complete_shape,
    drop,
    is_positive,
    known_scalar,
    known_sizes,
    normalize_axes,
    normalize_axis,
    prove_equal,
    runtime_sizes,
    tensor_type,
)
from .structural import Structural

if TYPE_CHECKING:
    from ...lowering.builder import Builder, Tensor
    from ...lowering.scalar import Scalar

ABSENT = DYNAMIC + 1  # as a start or stop: the bound is left out


def encode_bound(bound: int | None) -> int:
    """A literal start or stop as the attribute spells it."""
    return ABSENT if bound is None else max(min(bound, 2**62), -(2**62))


def sliced(
    size: MaybeDim, start: MaybeDim, stop: MaybeDim, step: MaybeDim
) -> tuple[MaybeDim, MaybeDim]:
    """First index and number of indices of ``start:stop:step`` on an axis; None = not known.

    Symbolic sizes are taken to be non-negative. The first index is meaningful only where the
    number of indices is positive. Raises ShapeError for step 0.
    """
    if step == 0:
        raise ShapeError("slice step cannot be zero")
    if not isinstance(step, int) or size is None:
        whole = (start, stop, step) in ((ABSENT, ABSENT, 1), (0, ABSENT, 1))
        return (0, size) if whole else (None, None)
    bounds = [b if not isinstance(b, int) or b != ABSENT else None for b in (start, stop)]
    if isinstance(size, int) and start is not None and stop is not None:
        if not any(isinstance(b, Sym) for b in bounds):
            found = range(*slice(*bounds, step).indices(size))
            return found.start, len(found)
    if any(b is None for b in (start, stop)) or not all(map(_sign_known, bounds)):
        return None, None
    first, span = (_forward if step > 0 else _backward)(size, *bounds)
    stride = abs(step)
    return first, span if stride == 1 else (span + (stride - 1)) // stride


def _forward(size: Dim, start: Dim | None, stop: Dim | None) -> tuple[Dim, Dim]:
    """First index and extent of a slice with positive step.

    Spelled so that the same part of an axis gets the same normal form: ``x[1:]`` and ``x[:-1]``
    both have ``max(n - 1, 0)`` elements.
    """
    start = 0 if start is None else start
    if not _negative(start):
        if stop is None:
            return start, _positive(size - start)
        if _negative(stop):
            return start, _positive(size + stop - start)
        return start, _positive(sym_min(stop, size) - start)
    first = _positive(size + start)
    if stop is None:
        return first, sym_min(-start, size)
    if _negative(stop):
        return first, _positive(sym_min(-start, size) + stop)
    return first, _positive(sym_min(stop, size) - first)


def _backward(size: Dim, start: Dim | None, stop: Dim | None) -> tuple[Dim, Dim]:
    """First index and extent of a slice with negative step."""

    def clamp(bound: Dim) -> Dim:
        return sym_max(size + bound, -1) if _negative(bound) else sym_min(bound, size - 1)

    first = size - 1 if start is None else clamp(start)
    last = -1 if stop is None else clamp(stop)
    return first, _positive(first - last)


def _negative(bound: Dim) -> bool:
    return isinstance(bound, int) and bound < 0


def _positive(size: Dim) -> Dim:
    return size if _nonnegative(size) else sym_max(size, 0)


def _sign_known(bound: Dim | None) -> bool:
    return bound is None or isinstance(bound, int) or _nonnegative(bound)


def _nonnegative(size: Dim) -> bool:
    """True if the expression cannot be negative when its symbols are not."""
    if isinstance(size, int):
        return size >= 0
    return all(
        coefficient > 0 and all(map(_nonnegative_atom, monomial))
        for monomial, coefficient in size.terms
    )


def _nonnegative_atom(atom: Any) -> bool:
    if isinstance(atom, str):
        return True
    parts = [_nonnegative(part) for part in atom[1:]]
    if atom[0] == "%":
        return parts[1]
    return any(parts) if atom[0] == "max" else all(parts)


class Slice(Structural, name="slice"):
    """Basic slicing ``x[start:stop:step, …]`` of the given axes (default: the leading ones).

    DYNAMIC entries of ``starts``, then ``stops``, then ``steps`` stand for the operands
    ``bounds`` (i64 scalars), in this order. Raises ShapeError for step 0.
    """

    x = operand()
    bounds = operand(variadic=True)
    out = result()
    starts = attr(I64_ARRAY)
    stops = attr(I64_ARRAY)
    steps = attr(I64_ARRAY, default=None)
    axes = attr(I64_ARRAY, default=None)

    @classmethod
    def triples(cls, attrs: Mapping[str, Any]) -> tuple[int, ...]:
        """All starts, then all stops, then all steps."""
        steps = attrs.get("steps")
        return (*attrs["starts"], *attrs["stops"], *(steps or (1,) * len(attrs["starts"])))

    @classmethod
    def sliced_axes(cls, rank: int, attrs: Mapping[str, Any]) -> tuple[int, ...]:
        """Axes counted from the front; raises ShapeError, BoundsError."""
        if attrs.get("axes") is not None:
            return normalize_axes(attrs["axes"], rank)
        if len(attrs["starts"]) > rank:
            raise BoundsError(
                f"too many indices for array: array is {rank}-dimensional, "
                f"but {len(attrs['starts'])} were indexed"
            )
        return tuple(range(len(attrs["starts"])))

    @classmethod
    def parts(
        cls, types: Sequence[Type], attrs: Mapping[str, Any]
    ) -> list[tuple[int, MaybeDim, MaybeDim, MaybeDim]]:
        """(axis, first index, number of indices, step) per sliced axis; the rank is known."""
        shape = tensor_type(types[0]).shape or ()
        values = known_sizes(cls.triples(attrs), types[1:])
        count = len(attrs["starts"])
        axes = cls.sliced_axes(len(shape), attrs)
        out = []
        for axis, start, stop, step in zip(
            axes, values[:count], values[count : 2 * count], values[2 * count :], strict=True
        ):
            out.append((axis, *sliced(shape[axis], start, stop, step), step))
        return out

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        sizes = list(shape)
        for axis, _, size, _ in cls.parts(types, attrs):
            sizes[axis] = size
        return tuple(sizes)

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        x = args[0]
        values = runtime_sizes(cls.triples(attrs), args[1:])
        count = len(attrs["starts"])
        key = [slice(None)] * np.ndim(x)
        for k, axis in enumerate(cls.sliced_axes(np.ndim(x), attrs)):
            start, stop = (None if v == ABSENT else v for v in values[k : 2 * count : count])
            key[axis] = slice(start, stop, values[2 * count + k])
        return np.asarray(x)[tuple(key)]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Iterator[str]:
        steps, axes, count = attrs.get("steps"), attrs.get("axes"), len(attrs["starts"])
        for word, values in (("stops", attrs["stops"]), ("steps", steps), ("axes", axes)):
            if values is not None and len(values) != count:
                yield f"{count} starts but {len(values)} {word}"
        if steps is not None and 0 in steps:
            yield "a step is 0"
        yield from check_sizes(cls.triples(attrs), len(types) - 1)
        yield from check_axes(axes, types[0])

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, bounds = args[0], [known_scalar(v) for v in args[1:]]
        starts: list[Dim] = [0] * x.type.rank
        steps = [1] * x.type.rank
        for axis, first, _, step in cls.parts((x.type, *bounds), attrs):
            # The size of the result is known, hence so are the bounds it follows from.
            assert first is not None and isinstance(step, int)
            starts[axis], steps[axis] = first, step
        return b.slice(x, starts, steps, types[0])


class Pick(Structural, name="pick"):
    """``x[…, index, …]``: one integer index on one axis, which the result does not have.

    ``index`` DYNAMIC stands for the operand ``position`` (an i64 scalar). Tier 0 raises
    BoundsError for an index out of range; a kernel, which only meets a run-time index, clamps it
    to the axis instead.
    """

    x = operand()
    position = operand(variadic=True)
    out = result()
    axis = attr(I64, default=0)
    index = attr(I64)

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        if not shape:
            raise BoundsError(
                "too many indices for array: array is 0-dimensional, but 1 were indexed"
            )
        axis = normalize_axis(attrs["axis"], len(shape))
        (index,) = known_sizes((attrs["index"],), types[1:])
        size = shape[axis]
        if isinstance(index, int) and isinstance(size, int) and not -size <= index < size:
            raise BoundsError(
                f"index {index} is out of bounds for axis {axis} with size {size}"
            )
        return drop(shape, (axis,), keepdims=False)

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        index = attrs["index"] if len(args) == 1 else operator.index(args[1])
        axis = attrs["axis"]
        if axis == 0:
            return args[0][index]
        return args[0][(*(slice(None),) * normalize_axis(axis, np.ndim(args[0])), index)]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Iterator[str]:
        yield from check_sizes((attrs["index"],), len(types) - 1)
        yield from check_axes((attrs["axis"],), types[0])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> None:
        shape = complete_shape(tensor_type(types[0]))
        size = shape[normalize_axis(attrs["axis"], len(shape))]
        if not is_positive(size):
            raise LoweringError(f"size {size} may be 0")
        (index,) = known_sizes((attrs["index"],), types[1:])
        if isinstance(size, Sym) and isinstance(index, int) and index not in (0, -1):
            raise LoweringError(f"index {index} is not known to be within size {size}")

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, index = args[0], attrs["index"]
        axis = normalize_axis(attrs["axis"], x.type.rank)
        size = complete_shape(x.type)[axis]
        starts: list[Any] = [0] * x.type.rank
        if index == DYNAMIC:
            starts[axis] = clamped(b, b.scalar(args[1]), size)
        else:
            starts[axis] = index if index >= 0 else size + index
        shape = tuple(1 if k == axis else d for k, d in enumerate(x.type.shape))
        row = b.slice(x, starts, (1,) * x.type.rank, TensorType(x.dtype, shape))
        return b.squeeze(row, (axis,))


class _Pieces(Structural):
    """Family: cut an axis into consecutive pieces, one result each."""

    x = operand()
    pieces = result(variadic=True)
    axis = attr(I64, default=0)

    @classmethod
    def count(cls, attrs: Mapping[str, Any]) -> int:
        """How many pieces."""
        raise NotImplementedError

    @classmethod
    def cut(cls, size: Dim, attrs: Mapping[str, Any]) -> list[tuple[Dim, Dim]]:
        """(first index, size) per piece of an axis; raises ShapeError."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
        x, count = tensor_type(types[0]), cls.count(attrs)
        if x.shape is None:
            return (TensorType(x.dtype),) * count
        axis = normalize_axis(attrs.get("axis", 0), len(x.shape))
        size = x.shape[axis]
        cuts = [None] * count if size is None else [s for _, s in cls.cut(size, attrs)]
        return tuple(
            TensorType(x.dtype, tuple(piece if k == axis else d for k, d in enumerate(x.shape)))
            for piece in cuts
        )

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        x = args[0]
        axis = normalize_axis(attrs.get("axis", 0), np.ndim(x))
        before = (slice(None),) * axis
        cuts = cls.cut(x.shape[axis], attrs)
        return tuple(x[(*before, slice(first, first + size))] for first, size in cuts)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Iterator[str]:
        yield from check_axes((attrs.get("axis", 0),), types[0])
        if cls.count(attrs) < 1:
            yield "number sections must be larger than 0."

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> tuple[Tensor, ...]:
        x = args[0]
        axis = normalize_axis(attrs.get("axis", 0), x.type.rank)
        out = []
        cuts = cls.cut(complete_shape(x.type)[axis], attrs)
        for type_, (first, _) in zip(types, cuts, strict=True):
            starts = tuple(first if k == axis else 0 for k in range(x.type.rank))
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
    def count(cls, attrs: Mapping[str, Any]) -> int:
        indices = attrs.get("indices")
        return attrs["sections"] if indices is None else len(indices) + 1

    @classmethod
    def cut(cls, size: Dim, attrs: Mapping[str, Any]) -> list[tuple[Dim, Dim]]:
        indices, count = attrs.get("indices"), cls.count(attrs)
        if indices is not None:
            edges = zip((0, *indices), (*indices, ABSENT), strict=True)
            cuts = [sliced(size, first, last, 1) for first, last in edges]
            return cuts  # type: ignore[return-value]
        if count < 1:
            raise ShapeError("number sections must be larger than 0.")
        if attrs.get("even", True):
            if isinstance(size, int) and size % count:
                raise ShapeError("array split does not result in an equal division")
            return [(k * (size // count), size // count) for k in range(count)]
        return [
            (k * (size // count) + sym_min(k, size % count), (size + (count - 1 - k)) // count)
            for k in range(count)
        ]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Iterator[str]:
        if (attrs.get("sections") is None) == (attrs.get("indices") is None):
            yield "exactly one of sections and indices must be given"
            return
        yield from super().verify(types, attrs)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> None:
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
    def count(cls, attrs: Mapping[str, Any]) -> int:
        return attrs["chunks"]

    @classmethod
    def cut(cls, size: Dim, attrs: Mapping[str, Any]) -> list[tuple[Dim, Dim]]:
        count = attrs["chunks"]
        if count < 1:
            raise ShapeError(f"number of chunks must be larger than 0, not {count}")
        piece = (size + (count - 1)) // count
        rest = size - piece * (count - 1)
        if isinstance(rest, int) and rest <= 0:
            raise ShapeError(f"size {size} gives fewer than {count} chunks of {piece}")
        return [(k * piece, piece) for k in range(count - 1)] + [((count - 1) * piece, rest)]

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> None:
        shape = complete_shape(tensor_type(types[0]))
        size = shape[normalize_axis(attrs.get("axis", 0), len(shape))]
        if isinstance(size, Sym):
            whole = (size // attrs["chunks"]) * attrs["chunks"]
            prove_equal(whole, size, "chunk leaves no piece empty")
