"""What leaves read: the values of a graph, as far as emitted code knows them, and the tests that they are such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from ...dialect.ir.symbolic import Dim, Dimension, symbol
from .layout import ALIGNED, C_CONTIGUOUS, dtype_word
from .number_values import Number, NumberValue
from .refs import DescribedRef, Inside, InState, OnTape, Ref, ScalarRef, Stride


@dataclass(frozen=True)
class Test:
    """One condition: the field that emitted code reads must equal ``value`` (an int or a type).

    Fields whose answer is 1 or 0 are marked with "?".

    Fields of arguments:

    * ``("keywords", names)``? : exactly these keywords are passed, in this order.
    * ``("static", position, Held)``? : the argument is that object, or an equal string.
    * ``("opened", position, type, keys, owns)``? : the container has this type and these keys. Tests of
      its items rely on this one, because it stores the pointers to the items, and takes references if it ``owns`` them.
    * ``("one", position, position)``? : the same object is at both.
    * ``("owned", positions)``: takes references to items of containers; always 1.
    * ``("fits", position)``? : the int is small enough for 64-bit arithmetic.
    * ``("bits", position)``: the bits of the float.

    Fields of what a graph has read from outside of the call (see `conditions.state_reads`):

    * ``("read", InState, Held)``? : that object is there.
    * ``("taken", InState)``? : something is there; the call owns it from then on.
    * ``("held_size", Held)``: the length of the list.
    * ``("held_keys", Held, keys)``? : the dict has these keys, in this order.

    Fields of gradients:

    * ``("mode",)``: asks for gradient mode, on which ``noting`` relies; always 1.
    * ``("untaped", position)``? : reads what an `Array` holds, and whether it requires gradients,
      on which all other tests of the argument rely.
    * ``("noted", position)``? : the argument requires gradients.
    * ``("noting", positions)``? : one of the arguments does, and gradient mode is on.
    * ``("taped", positions)``? : one of the arguments is an `Array`.

    Fields of arrays:

    * ``("type", ref)``, ``("dtype", ref)``, ``("nd", ref)`` (the rank), ``("flags", ref, mask)``,
      ``("stride", ref, axis)`` (in bytes).
    * ``("step", ref, axis, bytes)``? : the axis has that stride, or size 1.
    * ``("multiple", ref, axis, bytes)``? : the stride is a multiple of that, or the size is 1.
    * ``("view", ref)``? : the array's base is another array.
    * ``("apart", ref, size, ref, rank, bytes)``? : the memory of the first array, which is
      contiguous and has ``size`` bytes, does not overlap that of the second array, which has this
      rank and item size.
    * ``("in_order", ref, rank)``? : the axes lie in memory in their order.
    * Of other libraries: ``("described", ref)``? , on which all other tests of the array rely,
      ``("device", ref)``, ``("dense", ref, rank)``? (C order without gaps) and
      ``("aligned", ref, bytes)``? (and there is memory); ``("modes", exchange)``? : nothing is computed beside them.

    * ``("known", number)``: that number.

    Fields of sizes: ``("size", size)``, ``("positive", size)``?, ``("same", size, size)``? and
    ``("less", size, size)``?.

    Fields of relaxed guards: ``("profiled", size, was_one)``? (the size is 1 exactly if
    ``was_one``), and ``("ordered", ref, bytes, contiguous, order, dense)``? with the item size, the
    field that tells contiguity, the axes by decreasing stride, and the axes without gaps.
    """

    field: tuple
    value: Any


@dataclass(frozen=True)
class ArrayValue:
    """An array argument or a captured array.

    Attributes:
        ref: the array.
        dtype: its dtype.
        sizes: the size of each axis.
        device: the device in whose memory it lies.
        tracked: it may require gradients: what guards ask of that is tested at run time.
    """

    ref: Ref
    dtype: np.dtype
    sizes: tuple[Dim, ...]
    device: str = HOST
    tracked: bool = False

    @property
    def contiguous(self) -> tuple:
        """The field that is nonzero if the elements lie in C order without gaps."""
        if isinstance(self.ref, DescribedRef):
            return "dense", self.ref, len(self.sizes)
        if isinstance(self.ref, ScalarRef):
            return "known", 1
        return "flags", self.ref, C_CONTIGUOUS

    def is_contiguous(self) -> Test:
        """The test that the elements lie in C order without gaps."""
        is_flag = self.contiguous[0] == "flags"
        return Test(self.contiguous, C_CONTIGUOUS if is_flag else 1)

    def stride(self, axis: int) -> Dim:
        """The stride of an axis, in elements."""
        return symbol(Stride(self.ref, axis, self.dtype.itemsize))


@dataclass(frozen=True)
class MadeValue:
    """An output of a kernel; always C-contiguous."""

    dtype: np.dtype
    sizes: tuple[Dim, ...]
    device: str = HOST

    def stride(self, axis: int) -> Dim:
        """The stride of an axis, in elements."""
        return math.prod(self.sizes[axis + 1 :])


@dataclass(frozen=True)
class HostValue:
    """A result of a function of a library, of a type that no guard has checked yet."""


Value = Union[ArrayValue, Number, MadeValue, HostValue]


def array_of(ref: Ref, dtype: np.dtype, rank: int, device: str = HOST) -> ArrayValue:
    """An array of this rank, whose sizes are read at run time."""
    return ArrayValue(ref, dtype, tuple(symbol(Dimension(ref, axis)) for axis in range(rank)), device)


def tests_of(inputs: Sequence[Value]) -> list[Test]:
    """The tests that objects have the type, rank, dtype and alignment of these values."""
    tests = []
    for value in inputs:
        if isinstance(value, NumberValue):
            tests.append(Test(("type", value.position), value.kind))
        elif isinstance(value, ArrayValue) and isinstance(value.ref, DescribedRef):
            tests += _described_tests(value, value.ref)
        elif isinstance(value, ArrayValue) and isinstance(value.ref, ScalarRef):
            kind = complex if value.ref.is_python else value.dtype.type
            tests.append(Test(("type", value.ref), kind))
        elif isinstance(value, ArrayValue):
            if isinstance(value.ref, (int, Inside, OnTape, InState)):
                tests.append(Test(("type", value.ref), np.ndarray))
            tests += [
                Test(("nd", value.ref), len(value.sizes)),
                Test(("dtype", value.ref), dtype_word(value.dtype)),
                Test(("flags", value.ref, ALIGNED), ALIGNED),
            ]
    return tests


def _described_tests(value: ArrayValue, ref: DescribedRef) -> list[Test]:
    from ..exchange.c_functions import type_word
    from ..exchange.dlpack import device_word

    tests = [
        Test(("type", ref), ref.exchange.kind),
        Test(("described", ref), 1),
        Test(("nd", ref), len(value.sizes)),
        Test(("dtype", ref), type_word(value.dtype)),
        Test(("device", ref), device_word(value.device)),
    ]
    if ref.exchange.modes or ref.exchange.counts:
        tests.insert(0, Test(("modes", ref.exchange), 1))
    if value.device == HOST:
        tests.append(Test(("aligned", ref, value.dtype.alignment), 1))
    return tests
