"""Dropout, and the bits that it draws: a counter, not a stream.

The bits of an element depend on its place alone, so that they are the same in every tier, for any
split of a kernel, and on any device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.attrs import BOOL, F64, I64_ARRAY
from ...ir.dtypes import BOOL as TRUTH
from ...ir.dtypes import I64, U32, U64
from ...ir.op import Attrs, Fusion, Values, attr, operand, result
from ...ir.types import TensorType, Type
from ..sizes import check_shape, runtime_sizes
from .composite import ARRAYS, Composite, like, widened
from .expanded_values import Part
from .operand_checks import check_float, check_sizes_from, split_sizes

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85  # by which the key grows from round to round
_ROUNDS = 10
_LOW = 0xFFFFFFFF
_BLOCK = 1 << 13  # elements
_KEPT_BITS = 24  # of 32, those that a float of 32 bits holds


class RandomBits(Composite, name="random_bits"):
    """32 random bits for each element: word 0 of Philox4x32-10.

    Of the element at place ``i`` in C order the counter is (low and high word of ``i``, low and
    high word of ``offset``), and the key is the two words of ``seed``. Both are Python's integers, or tensors of i64
    without axes.
    """

    exact = True
    fusion = Fusion.POINTWISE
    numbers = ("seed", "offset", "sizes")
    seed = operand()
    offset = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        seed, offset, *dynamic = xs
        sizes = iter(dynamic)
        shape = [next(sizes) if d < 0 else d for d in attrs["shape"]]
        words = philox(cls._places(b, shape), _words(b, offset), _words(b, seed))
        return b.op("cast", words[0], dtype=U32)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        """`expand`, block by block, so that the words of a block stay in a cache."""
        seed, offset, *sizes = args
        shape = runtime_sizes(attrs["shape"], sizes)
        bits = np.empty(math.prod(shape), np.uint32)
        words, key = _words(ARRAYS, offset), _words(ARRAYS, seed)
        for start in range(0, bits.size, _BLOCK):
            part = bits[start : start + _BLOCK]
            part[...] = philox(np.arange(start, start + part.size, dtype=np.uint64), words, key)[0]
        return bits.reshape(shape) if shape else bits[0]

    @staticmethod
    def _places(b: Any, shape: Sequence[Any]) -> Any:
        """The place of each element in C order, as u64."""
        place = b.op("full", 0, shape=(1,) * len(shape), dtype=U64)
        for axis, size in enumerate(shape):
            static, dynamic = split_sizes([size])
            along = b.op("iota", *dynamic, shape=static, dtype=U64)
            others = tuple(k for k in range(len(shape)) if k != axis)
            if others:
                along = b.op("expand_dims", along, axes=others)
            if axis:
                place = place * b.op("cast", b.op("to_tensor", size, dtype=I64), dtype=U64)
            place = place + along
        return place

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from check_shape(attrs["shape"], len(types) - 2)


def philox(place: Any, offset: tuple[Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """The four words of Philox4x32-10 for each ``place``; arguments and words are u64, of words the low half."""
    (low, high), (step_low, step_high) = _MULTIPLIERS, _STEPS
    (c0, c1), (c2, c3), (k0, k1) = (place & _LOW, place >> 32), offset, key
    for turn in range(_ROUNDS):
        if turn:
            k0, k1 = (k0 + step_low) & _LOW, (k1 + step_high) & _LOW
        p0, p1 = c0 * low, c2 * high
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _LOW, (p0 >> 32) ^ c3 ^ k1, p0 & _LOW
    return c0, c1, c2, c3


def _words(b: Any, number: Any) -> tuple[Any, Any]:
    """The low and the high word of an integer, a number or a tensor without axes, as u64."""
    is_tensor = isinstance(number, (np.ndarray, np.generic)) or (
        isinstance(number, Part) and isinstance(number.type, TensorType)
    )
    bits = b.op("cast", number if is_tensor else b.op("to_tensor", number, dtype=I64), dtype=U64)
    return bits & _LOW, bits >> 32


class NativeDropout(Composite, name="native_dropout"):
    """``x / (1 - p)`` where a random number is at least ``p``, else 0; and where that is.

    The numbers are the first 24 of `random_bits` over 2**24. ``x`` itself without ``train``.
    """

    fusion = Fusion.POINTWISE
    numbers = ("seed", "offset")
    x = operand()
    seed = operand()
    offset = operand()
    out = result()
    mask = result()
    p = attr(F64)
    train = attr(BOOL, default=True)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        x, seed, offset = xs
        check_float(cls.name, x)
        p = attrs["p"]
        static, dynamic = split_sizes(x.shape)
        if not attrs["train"] or p >= 1:
            kept = not attrs["train"]
            mask = b.op("full", kept, *dynamic, shape=static, dtype=TRUTH)
            return b.op("copy", x) if kept else b.op("select", mask, x, x.dtype.type(0)), mask
        bits = b.op("random_bits", seed, offset, *dynamic, shape=static)
        # Compared as integers, which is exact.
        mask = (bits >> (32 - _KEPT_BITS)) >= math.ceil(p * 2**_KEPT_BITS)
        scaled = like(b, widened(b, x) / (1 - p), x)
        return b.op("select", mask, scaled, x.dtype.type(0)), mask

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if not 0 <= attrs["p"] <= 1:
            yield f"p = {attrs['p']} is no probability"

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        scale = 1.0 if not attrs["train"] else 0.0 if attrs["p"] >= 1 else 1 / (1 - attrs["p"])
        return (b.op("native_dropout_backward", gs[0], ys[1], scale=scale), None, None)


class NativeDropoutBackward(Composite, name="native_dropout_backward"):
    """``grad * scale`` where ``mask`` is true, else 0."""

    fusion = Fusion.POINTWISE
    grad = operand()
    mask = operand()
    out = result()
    scale = attr(F64)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        grad, mask = xs
        check_float(cls.name, grad)
        if mask.dtype != bool:
            raise DTypeError(f"{cls.name}: the mask is of {mask.dtype}, not of bool")
        check_sizes_from(cls.name, "mask", mask, grad.shape)
        scaled = like(b, widened(b, grad) * attrs["scale"], grad)
        return b.op("select", mask, scaled, grad.dtype.type(0))
