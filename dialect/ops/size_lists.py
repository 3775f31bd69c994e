"""Ops on sizes and other values that are no tensors, as the fuser of device groups states them (R3.28 to R3.43).

Sizes are values of type ``!profuse.ints``. Each formula is written once, as `SizeFormula.formula`: on ints it
is what the op computes, on symbols and unknown sizes what is known of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..guards.relaxed import sizes_match
from ..ir.attrs import BOOL, I64, I64_ARRAY, STR, VALUE
from ..ir.op import Attrs, Failure, Fusion, Op, Rounding, attr, bare, operand, result
from ..ir.symbolic import Sym
from ..ir.types import BOOL_SCALAR, INTS, ListedType, ScalarType, Shape, TensorType, Type, type_of
from .broadcast import broadcast_shapes, shape_of
from .manipulation.shape import expanded
from .manipulation.split import Chunk
from .reductions.reduce import reduced_axes
from .sizes import drop, normalize_axes, normalize_axis


class OfValues(Op, rounding=Rounding.MOVES):
    """Family of ops on values that are no tensors."""

    exact = True
    fusion = Fusion.QUERY
    failure = Failure.NEVER
    no_gradient = True

    @classmethod
    def wrong_operands(cls, types: Sequence[Type], expected: Type) -> Iterator[str]:
        """Complaints about operands of other types than ``expected``, whatever their values are."""
        for index, type_ in enumerate(types):
            if str(type_) != str(expected):
                yield f"operand {index} must be of type {expected}, not {type_}"


class SizesOf(OfValues, name="sizes"):
    """All sizes of a tensor, or those of a number: none."""

    x = operand()
    out = result()

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (ListedType("ints", shape_of(types[0])),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return tuple(map(int, np.shape(args[0])))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], (TensorType, ScalarType)):
            yield f"operand 0 must be a tensor or a number, not {types[0]}"


class SizeFormula(OfValues):
    """Family of ops whose results are sizes that follow from the operands, which are sizes, too."""

    failure = Failure.SIZES

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        """The sizes that each result is; None where that is not known. Raises ShapeError or AxisError."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        unknown = (INTS,) * len(cls.results)
        shapes = [t.value if isinstance(t, ListedType) else None for t in types]
        if any(shape is None for shape in shapes):
            return unknown
        try:
            return tuple(ListedType("ints", shape) for shape in cls.formula(cls.full_attrs(attrs), *shapes))  # type: ignore[arg-type]
        except ShapeError as error:
            if any(isinstance(size, Sym) for size in error.sizes):
                return unknown  # whether symbols are equal is for the run to tell
            raise

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if any(sizes is None for sizes in args):
            raise ShapeError(f"{cls.name} takes sizes, not None")
        return bare(cls.formula(cls.full_attrs(attrs), *args))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, INTS)


class BroadcastSizes(SizeFormula, name="broadcast_sizes"):
    """The sizes that all operands broadcast to; () for none. Raises ShapeError."""

    shapes = operand(variadic=True)
    out = result()

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        return (broadcast_shapes(*sizes),)


class ChunkSizes(SizeFormula, name="chunk_sizes"):
    """The sizes of all pieces of a `Chunk` but the last, and those of the last: 7 in 3 = 3, 3, 1 (R3.32)."""

    sizes = operand()
    regular = result()
    last = result()
    axis = attr(I64, default=0)
    chunks = attr(I64)

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        (shape,) = sizes
        axis = normalize_axis(attrs["axis"], len(shape))
        size = shape[axis]
        pieces = [None] if size is None else [piece for _, piece in Chunk.cut(size, attrs)]
        return tuple((*shape[:axis], piece, *shape[axis + 1 :]) for piece in (pieces[0], pieces[-1]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if attrs["chunks"] < 1:
            yield f"number of chunks must be larger than 0, not {attrs['chunks']}"


class ReductionSizes(SizeFormula, name="reduction_sizes"):
    """The sizes of what is reduced over ``axes`` (absent = all), see `Reduction`."""

    sizes = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)
    keepdims = attr(BOOL, default=False)

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        (shape,) = sizes
        return (drop(shape, reduced_axes(attrs["axes"], len(shape)), attrs["keepdims"]),)


class UnsqueezeSizes(SizeFormula, name="unsqueeze_sizes"):
    """Sizes with new ones of 1: ``axes`` name their places in the result, a negative one from its end (R3.32)."""

    sizes = operand()
    out = result()
    axes = attr(I64_ARRAY)

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        (shape,) = sizes
        return (expanded(shape, attrs["axes"]),)


class SqueezeSizes(SizeFormula, name="squeeze_sizes"):
    """Sizes without those that are 1, of ``axes`` (absent = all); other sizes stay (R3.32).

    How many stay is known only where all sizes that may go are.
    """

    sizes = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)

    @classmethod
    def formula(cls, attrs: Attrs, *sizes: Shape) -> tuple[Shape | None, ...]:
        (shape,) = sizes
        axes = normalize_axes(attrs["axes"], len(shape), "duplicate value in 'axis'")
        if not all(isinstance(shape[axis], int) for axis in axes):
            return (None,)
        return (drop(shape, [axis for axis in axes if shape[axis] == 1], keepdims=False),)


# --- checks (R3.38) ----------------------------------------------------------------------------


class OfTruths(OfValues):
    """Family of ops whose result is one i1."""

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (BOOL_SCALAR,)


class BoolXor(OfTruths, name="bool_xor"):
    """True if exactly one of two Python bools is."""

    a = operand()
    b = operand()
    out = result()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[0] is not args[1]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, BOOL_SCALAR)


class AllTrue(OfTruths, name="all_true"):
    """True if all operands are, of which there may be none."""

    conditions = operand(variadic=True)
    out = result()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return all(args)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, BOOL_SCALAR)


class ValueEq(OfTruths, name="value_eq"):
    """Compare a run-time value with the one that was profiled."""

    v = operand()
    passed = result()
    value = attr(VALUE)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        (value,), wanted = args, attrs["value"]
        return type(value) is type(wanted) and value == wanted

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        value = attrs["value"]
        if isinstance(value, (float, complex, np.ndarray)):
            yield "compares bools, integers, lists of them, and strings"
        else:
            yield from cls.wrong_operands(types, type_of(value))


class SizeEq(OfTruths, name="size_eq"):
    """Compare the target sizes of a sum with those that were profiled; either may be None (R3.43).

    ``reference`` is empty where None was profiled. ``summed`` are the sizes of the array that is summed,
    where it has to fit ``sizes`` as well (A6).
    """

    sizes = operand()
    summed = operand(variadic=True)
    passed = result()
    reference = attr(I64_ARRAY)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return sizes_match(args[0], attrs["reference"], *args[1:])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, INTS)
        if len(types) > 2:
            yield f"takes the sizes of one array that is summed, not of {len(types) - 1}"
        for size in attrs["reference"]:
            if size < 0:
                yield f"reference has a negative size: {size}"


class ViewGuard(OfTruths, name="view_guard"):
    """True if sizes, viewed as others, fit the ``constraint`` that profiled ones gave (R3.41)."""

    self_sizes = operand()
    view_sizes = operand()
    passed = result()
    constraint = attr(STR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        from ..guards.view_constraints import view_fits

        return view_fits(attrs["constraint"], *args)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.wrong_operands(types, INTS)
