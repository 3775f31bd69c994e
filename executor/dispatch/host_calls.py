"""Functions of libraries that emitted code calls between kernels (`host_call`), ops of NumPy, and draws.

Such a function gives objects of which nothing is known before it has run. The guard behind it says
what kernels expect of them, and is tested when they are there: a leaf has these tests between its
kernels, and leaves the whole call to Python where one fails. Python then calls the function once
more, which changes nothing, since it computes and does no more. A leaf that has given up too often
for that is not tried any more (`LeafWriter.spare`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ...dialect.ir.device import HOST
from ...dialect.ir.dtypes import dtype_of
from ...dialect.ir.program import Instr
from ...dialect.ir.symbolic import Integer, Sym
from ...dialect.ir.types import TensorType, Type
from ..interpret.evaluate import bound_evaluate
from ..memory.offsets import Refused
from .layout import SCALARS
from .leaf_spec import HostStep
from .leaf_values import ArrayValue, HostValue, MadeValue, Test, Value, array_of, tests_of
from .number_values import NUMBERS, ComputedNumber, NumberValue, SizeNumber
from .refs import FromHost, OnTape, Ref, ScalarRef


def host_step(instr: Instr, operands: tuple[int, ...], values: Mapping[int, Value]) -> HostStep:
    """The call that an instruction is; raises Refused where emitted code has no such operands."""
    name = instr.attrs.get("function", instr.op.name)
    for operand in operands:
        value = values.get(operand)
        if not isinstance(value, (ArrayValue, MadeValue, HostValue, *NUMBERS)):
            raise Refused(f"{name} takes what is no array of a kernel's")
        if isinstance(value, (ArrayValue, MadeValue)) and value.device != HOST:
            raise Refused(f"{name} takes an array on a device")
        if isinstance(value, ArrayValue) and isinstance(value.ref, OnTape):
            raise Refused(f"{name} takes what may be on the tape")
    return HostStep(_listed(bound_evaluate(instr), len(instr.results)), operands, instr.results)


def _listed(function: Callable[..., Any], count: int) -> Callable[..., tuple]:
    if count != 1:
        return function
    return lambda *args: (function(*args),)


def expect(types: Sequence[Type], operands: Sequence[int], values: MutableMapping[int, Value]) -> list[Test]:
    """Take what functions have given for arrays of the dtypes and ranks of a guard's types.

    Returns the tests for that; raises Refused for a guard that leaves these open, and for one on values that are not
    among ``values``.
    """
    arrays: dict[int, ArrayValue] = {}
    for type_, operand in zip(types, operands, strict=True):
        if operand not in values:
            raise Refused("a guard checks what emitted code does not hold")
        if not isinstance(values[operand], HostValue) or operand in arrays:
            continue
        if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
            raise Refused(f"a guard on {type_} leaves open what a function of a library gives")
        dtype, ref = type_.dtype.numpy, FromHost(operand)
        # Functions give NumPy scalars in the place of arrays without axes.
        is_scalar = not type_.shape and dtype.type in SCALARS
        arrays[operand] = array_of(ScalarRef(ref) if is_scalar else ref, dtype, len(type_.shape))
    values.update(arrays)
    return tests_of([*arrays.values()])


def drawn_number(k: int) -> int:
    """The number of what the draw ``k`` of a graph gives: one that no value of a graph has; each plan has its own."""
    return ~k


def drawn_value(k: int, kind: Any) -> Value:
    """What the draw ``k`` of a graph gives, of this `leaf_kind`."""
    ref = FromHost(drawn_number(k))
    if not isinstance(kind, type):
        dtype, rank = kind
        return array_of(ref, dtype_of(dtype).numpy, rank)
    if issubclass(kind, np.generic):
        return array_of(ScalarRef(ref), np.dtype(kind), 0)
    return NumberValue(ref, kind)


def is_late(test: Test) -> bool:
    """True for a test that reads what a function of a library has given."""
    return reads_host(test.field)


def reads_host(part: Any) -> bool:
    """True for what follows from what a function of a library has given: a field, a size, a number, …."""
    waiting, seen = [part], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif isinstance(part, ComputedNumber):
            if id(part) not in seen:  # numbers are computed of others, which may be operands of many
                seen.add(id(part))
                waiting += part.operands
        elif isinstance(part, SizeNumber):
            waiting.append(part.size)
        elif isinstance(part, Sym):
            leaves = [leaf for leaf in part.symbols if not isinstance(leaf, str)]
            waiting += [leaf.position if isinstance(leaf, Integer) else leaf.array for leaf in leaves]
        elif is_from_host(part.position if isinstance(part, NumberValue) else part):
            return True
    return False


def is_from_host(ref: Ref | Any) -> bool:
    """True for an array that a function of a library has given."""
    return isinstance(ref, FromHost) or (isinstance(ref, ScalarRef) and is_from_host(ref.position))
