"""The tests of one guard, which render the checks of `dialect.guards.checks` for emitted code.

The tests may rely on `leaf_values.tests_of`: the values are arrays of known dtype and rank, aligned
and in native byte order. test_dispatch_guards.py compares the tests of random guards with the
definition, `dialect.guards.mismatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Union

from ....dialect.dataclass import dataclass
from ....dialect.guards.checks import ALL_FREE, TENSOR_WORDS, Check, Kind, checks_of, table
from ....dialect.guards.free_sizes import FreeSizes, axis_of
from ....dialect.ir.size_algebra import fits_64_bits
from ....dialect.ir.symbolic import Dim, Monomial, Sym, leaves_of, terms_of
from ....dialect.ir.types import TensorType, Type, contiguous_strides
from ...memory.offsets import Refused, size_of
from ..leaf_values import ArrayValue, MadeValue, Test, Value
from ..refs import position_of


def guard_tests(
    types: Sequence[Type],
    values: Sequence[Value],
    *,
    relaxed: bool = False,
    flags: bool = False,
    free: FreeSizes = ALL_FREE,
) -> list[Test]:
    """The tests that hold if and only if these values fit these types.

    Args:
        types: the guard's type of each value.
        values: the guarded values.
        relaxed: True = compare as `cuda_guard` does (R3.42).
        flags: True = compare as `rg_check` does (R1.39).
        free: what a relaxed guard asks of sizes (A6).

    Raises Refused for a guard that compares more than sizes and strides.
    """
    bound: dict[str, Dim] = {}
    operands = []
    for type_, value in zip(types, values, strict=True):
        if not isinstance(value, (ArrayValue, MadeValue)):
            raise Refused("a guard checks what is no array")
        if not isinstance(type_, TensorType) or not (flags or type_.is_complete):
            raise Refused(f"a guard on {type_} leaves sizes open")
        operands.append(_GuardedValue(type_, value, bound))
    tests: list[Test] = []
    for check in checks_of(types, relaxed=relaxed, flags=flags, free=free):
        operand = operands[check.operand]
        outcome = _TESTS[check.kind](check, operand)
        if outcome is False:
            raise Refused(f"a guard on {operand.type_} never holds for these arguments")
        tests += () if outcome is True else outcome
    return tests


@dataclass(frozen=True)
class _GuardedValue:
    """A guarded value.

    Attributes:
        type_: the guard's type of the value.
        value: the value.
        bound: symbol -> the size that it stands for; shared by all operands of the guard.
    """

    type_: TensorType
    value: ArrayValue | MadeValue
    bound: dict[str, Dim]

    def size(self, check: Check) -> Dim:
        return self.value.sizes[check.axis]


_Found = Union[bool, list[Test]]  # True, False = the same for all calls; else the tests to run


def _requires_grad(check: Check, o: _GuardedValue) -> _Found:
    if isinstance(o.value, ArrayValue) and o.value.tracked:
        return [Test(("noted", position_of(o.value.ref)), int(check.wanted))]
    # Other host arrays have no such flag. A device array whose flag is set fails the test
    # ``described`` (`Exchange.false`), so Python serves the call.
    if check.wanted:
        none = "which no value of emitted code requires"
        raise Refused(f"a guard on {o.type_} asks for gradients, {none}")
    return True


def _symbol(check: Check, o: _GuardedValue) -> _Found:
    name, times = check.wanted
    size = o.bound.setdefault(name, o.size(check) // times) * times
    return size == o.size(check) or [Test(("same", o.size(check), size), 1)]


def _stride(check: Check, o: _GuardedValue) -> _Found:
    shape, axis, value = o.type_.shape or (), check.axis, o.value
    if isinstance(value, MadeValue):
        if check.wanted is None:
            return True  # of a relaxed guard: any stride of whole elements
        if not o.type_.is_static or contiguous_strides(shape)[axis] != check.wanted:  # type: ignore[arg-type]
            raise Refused(f"a guard on {o.type_} checks the strides of a kernel's output")
        return True
    if 0 in shape or shape[axis] == 1:
        return True  # no element's address depends on this stride
    itemsize = value.dtype.itemsize
    if check.wanted is None:
        return [Test(("multiple", value.ref, axis, itemsize), 1)]
    if isinstance(shape[axis], int):
        return [Test(("stride", value.ref, axis), check.wanted * itemsize)]
    return [Test(("step", value.ref, axis, check.wanted * itemsize), 1)]


def _order(check: Check, o: _GuardedValue) -> _Found:
    value, layout = o.value, check.wanted
    if not layout.order or 0 in (o.type_.shape or ()):
        return True
    if isinstance(value, MadeValue):
        if list(layout.order) != sorted(layout.order):
            raise Refused(f"a guard on {o.type_} asks for another order than that of a kernel's output")
        return True
    axes = tuple(layout.order), tuple(sorted(layout.dense))
    return [Test(("ordered", value.ref, value.dtype.itemsize, value.contiguous, *axes), 1)]


def _products(size: Dim) -> Iterator[Monomial]:
    """The products in an expression, those of which it takes the larger or the smaller one among them."""
    for factors, _ in terms_of(size):
        if len(factors) == 1 and isinstance(factors[0], tuple) and factors[0][0] in ("max", "min"):
            yield from _products(factors[0][1])
            yield from _products(factors[0][2])
        else:
            yield factors


_LIMITS = (2**31, 2**24, 2**20)  # that emitted code wants factors to be below, so that their products have 64 bits


def _fit(check: Check, o: _GuardedValue) -> _Found:
    tests: list[Test] = []
    for side in check.wanted:
        # The sizes of one array have a product of 64 bits, if none of them is 0; those of two need not.
        mixed = [p for p in map(leaves_of, _products(side)) if len({axis_of(name)[0] for name in p}) > 1]
        limit = next((limit for limit in _LIMITS if fits_64_bits(side, limit)), 0)
        if mixed and not limit:
            raise Refused(f"a guard compares a product of sizes that may need many bits ({side}), as Python does")
        names = sorted({name for product in mixed for name in product})
        tests += [Test(("less", o.bound[name], limit), 1) for name in names if isinstance(o.bound[name], Sym)]
    left, right = (size_of(side, o.bound) for side in check.wanted)
    return tests if left == right else [*tests, Test(("same", left, right), 1)]


_TESTS: Mapping[Kind, Callable[[Check, _GuardedValue], _Found]] = table(
    {
        "object": lambda check, o: TENSOR_WORDS in check.wanted,
        "dtype": lambda check, o: check.wanted.numpy == o.value.dtype,
        "device": lambda check, o: check.wanted == o.value.device,
        "requires_grad": _requires_grad,
        "rank": lambda check, o: check.wanted == len(o.value.sizes),
        "size": lambda check, o: check.wanted == o.size(check) or [Test(("size", o.size(check)), check.wanted)],
        "positive": lambda check, o: [Test(("positive", o.size(check)), 1)],
        "symbol": _symbol,
        "expression": lambda check, o: [Test(("same", o.size(check), size_of(check.wanted, o.bound)), 1)],
        "single": lambda check, o: [
            Test(("same", o.size(check), special), int(check.wanted == special)) for special in (0, 1)
        ],
        "aligned": lambda check, o: True,
        "contiguous": lambda check, o: isinstance(o.value, MadeValue) or [o.value.is_contiguous()],
        "stride": _stride,
        "order": _order,
        "fit": _fit,
    }
)
