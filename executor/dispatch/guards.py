"""The tests of one guard: together they say what `dialect.guards.checks.check_types` says.

They may rely on `spec.tests_of`: the values are arrays of known dtype and rank, aligned and in
native byte order. `check_types` is the definition;
test_dispatch_guards.py asserts of random guards that both agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...dialect.guards.checks import symbol_name
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ir.types import TensorType, Type, contiguous_strides
from ...lowering.abi import CONTIGUOUS
from ..memory.placement import Refused, size_of
from .leaf_spec import ArrayValue, MadeValue, Test, Value

# Host arrays have no flag, and a device's are not described while theirs is set (`Exchange.false`).
NO_GRADIENTS = "no value of emitted code requires"


def guard_tests(types: Sequence[Type], values: Sequence[Value]) -> list[Test]:
    """What has to hold for these values to fit these types.

    Raises Refused for a guard that is more than a comparison of sizes and strides.
    """
    tests: list[Test] = []
    bound: dict[str, Dim] = {}
    later: list[tuple[Sym, Dim]] = []
    for type_, value in zip(types, values, strict=True):
        if not isinstance(value, (ArrayValue, MadeValue)):
            raise Refused("a guard checks what is no array")
        if not isinstance(type_, TensorType) or not type_.is_complete or not type_.dtype:
            raise Refused(f"a guard on {type_} leaves sizes open")
        if type_.requires_grad:
            raise Refused(f"a guard on {type_} asks for gradients, which {NO_GRADIENTS}")
        if type_.device not in (None, value.device) or type_.defined is False:
            raise Refused(f"a guard on {type_} checks more than layout")
        if len(type_.shape or ()) != len(value.sizes) or type_.dtype.numpy != value.dtype:
            raise Refused(f"a guard on {type_} never holds for these arguments")
        for want, size in zip(type_.shape or (), value.sizes, strict=True):
            tests += _size_tests(want, size, bound, later)
        tests += _layout_tests(type_, value)
    # Expressions over several symbols can be checked only when all symbols have been met.
    tests += [Test(("same", size, size_of(want, bound)), 1) for want, size in later]
    return tests


def _size_tests(
    want: Any, size: Dim, bound: dict[str, Dim], later: list[tuple[Sym, Dim]]
) -> Iterator[Test]:
    if isinstance(want, int):
        if size != want:
            yield Test(("size", size), want)
        return
    name = symbol_name(want)
    yield Test(("positive", size), 1)
    if name is None:
        later.append((want, size))
    elif bound.setdefault(name, size) != size:
        yield Test(("same", size, bound[name]), 1)


def _layout_tests(type_: TensorType, value: ArrayValue | MadeValue) -> Iterator[Test]:
    if type_.strides is None:
        return
    if isinstance(value, MadeValue):
        fits = type_.strides == CONTIGUOUS or (
            type_.is_static and type_.strides == contiguous_strides(type_.shape or ())  # type: ignore[arg-type]
        )
        if not fits:
            raise Refused(f"a guard on {type_} checks the strides of a kernel's output")
        return
    if type_.strides == CONTIGUOUS:
        yield value.is_contiguous()
        return
    assert type_.dtype is not None
    itemsize = type_.dtype.itemsize
    for axis, (want, size) in enumerate(zip(type_.strides, type_.shape or (), strict=True)):
        if 0 in (type_.shape or ()) or size == 1:
            continue  # no address depends on this stride
        if want is None:
            yield Test(("multiple", value.ref, axis, itemsize), 1)
        elif isinstance(size, int):
            yield Test(("stride", value.ref, axis), int(want) * itemsize)
        else:
            yield Test(("step", value.ref, axis, int(want) * itemsize), 1)
