"""Result types of a library's function: those that it gives for tiny arrays of the same dtypes.

Nothing is ever called with arrays of the size of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import COMPLAINTS, ProfuseError, TraceError, located
from ...ir.dtypes import NUMBERS, DType, dtype_of
from ...ir.types import ScalarType, TensorType, Type
from .call_text import CallTemplate, parsed_arguments
from .rule import BoundCall, Rule, bound, rule_named

SIZE = 3  # of each axis of a tiny array
_LARGEST = 8  # of an axis whose size decides ranks
_MOST = 4096  # elements of a tiny array

Kind = tuple
"""(dtype, sizes) of an array, (dtype,) of a number."""


@dataclass(frozen=True)
class ProbeOutcome:
    """The outcome of a function for tiny arrays.

    Attributes:
        structure: the result, in which each array or number is its position among them.
        types: dtype and rank of each.
        arrays: those of no axes that are arrays and no scalars.
        views: pairs of a result and an operand, by number, that share memory.
        gaps: those that are parts of larger arrays, with gaps between their elements.
    """

    structure: Any
    types: tuple[Type, ...]
    arrays: frozenset[int]
    views: tuple[tuple[int, int], ...]
    gaps: frozenset[int]


def outcome(function: str, arguments: str, types: Sequence[Type]) -> ProbeOutcome | None:
    """The structure of a call's result; None where too little is known of the operands.

    Raises what the function raises for such operands, as an error of ours, and TraceError where
    dtypes depend on contents.
    """
    rule, parsed = rule_named(function), parsed_arguments(arguments)
    kinds = kinds_of(rule, parsed, types)
    if kinds is None:
        return None
    try:
        why = None if rule.refuse is None else rule.refuse(BoundCall(rule, parsed, types))
        if why is not None:
            raise TraceError(f"{rule.shown}: {why[0]}", hint=why[1])
        return _outcome(function, arguments, kinds)
    except ProfuseError:
        raise
    except COMPLAINTS as error:
        raise located(error, None) from error


def result_types(function: str, arguments: str, types: Sequence[Type], count: int) -> tuple[Type, ...]:
    """The types of the results, with the sizes that the rule knows; raises as `outcome` does."""
    result = outcome(function, arguments, types)
    if result is None or len(result.types) != count:
        return (TensorType(),) * count
    rule = rule_named(function)
    if rule.shapes is None:
        return result.types
    shapes = rule.shapes(BoundCall(rule, parsed_arguments(arguments), types))
    if shapes is None:
        return result.types
    return tuple(
        TensorType(t.dtype, s) if isinstance(t, TensorType) and s is not None and len(s) == t.rank else t
        for t, s in zip(result.types, shapes, strict=True)
    )


def kinds_of(rule: Rule, arguments: CallTemplate, types: Sequence[Type]) -> tuple[Kind, ...] | None:
    """The kinds of tiny arrays that have to stand for operands; None where too little is known of these."""
    sizes: dict[int, dict[int, int]] = {}
    if rule.sized is not None:
        by_name = bound(rule.function, *arguments.filled(lambda index: (index, types[index])))
        for name, axis in rule.sized({k: v[1] if _is_numbered(v) else v for k, v in by_name.items()}):
            if not _is_numbered(by_name[name]):
                continue
            index, type_ = by_name[name]
            size = type_.shape[axis] if isinstance(type_, TensorType) and type_.shape else None
            if not isinstance(size, int):
                return None
            sizes.setdefault(index, {})[axis % len(type_.shape)] = min(size, _LARGEST)
    kinds: list[Kind] = []
    for index, type_ in enumerate(types):
        if isinstance(type_, ScalarType):
            kinds.append((type_.dtype,))
        elif isinstance(type_, TensorType) and type_.dtype is not None and type_.shape is not None:
            own = sizes.get(index, {})
            shape = tuple(own.get(axis, SIZE) for axis in range(len(type_.shape)))
            if np.prod(shape) > _MOST:
                return None
            kinds.append((type_.dtype, shape))
        else:
            return None
    return tuple(kinds)


def _is_numbered(x: Any) -> bool:
    return type(x) is tuple and len(x) == 2 and isinstance(x[1], (TensorType, ScalarType))


@lru_cache(maxsize=1024)
def _outcome(function: str, arguments: str, kinds: tuple[Kind, ...]) -> ProbeOutcome:
    return tried(rule_named(function), parsed_arguments(arguments), kinds)


def tried(rule: Rule, parsed: CallTemplate, kinds: tuple[Kind, ...]) -> ProbeOutcome:
    """The outcome of a function for tiny arrays of such kinds; raises what it raises for them."""
    operands = [_tiny(kind, rule.fill) for kind in kinds]
    args, kwargs = parsed.filled(operands.__getitem__)
    if rule.neutral:
        names = list(bound(rule.function, [*range(len(args))], dict.fromkeys(kwargs)))
        args = [
            _neutral(x, rule.neutral[name]) if name in rule.neutral else x for name, x in zip(names, args, strict=False)
        ]
        kwargs = {k: _neutral(x, rule.neutral[k]) if k in rule.neutral else x for k, x in kwargs.items()}
    with np.errstate(all="ignore"):
        result = rule.function(*args, **kwargs)
    leaves: list[Any] = []

    def number(leaf: Any) -> int:
        leaves.append(leaf)
        return len(leaves) - 1

    structure = mapped(number, result)
    made_arrays = {k: x for k, x in enumerate(leaves) if isinstance(x, np.ndarray)}
    arrays = frozenset(k for k, x in made_arrays.items() if not x.ndim)
    views = tuple(
        (k, index)
        for k, x in made_arrays.items()
        for index, operand in enumerate(operands)
        if isinstance(operand, np.ndarray) and np.may_share_memory(x, operand)
    )
    gaps = frozenset(k for k, x in made_arrays.items() if x.base is not None and not x.flags.forc)
    return ProbeOutcome(structure, tuple(map(type_of_result, leaves)), arrays, views, gaps)


def type_of_result(leaf: Any) -> Type:
    """The part of a result that does not depend on sizes: the kind of a number, or dtype and rank."""
    if type(leaf) in NUMBERS:
        return ScalarType(dtype_of(type(leaf)))
    return TensorType(dtype_of(leaf.dtype), (None,) * leaf.ndim)


def mapped(apply: Callable[[Any], Any], result: Any) -> Any:
    """A result in which ``apply`` has been called on each array and number, in order."""
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(mapped(apply, item) for item in result))
    if isinstance(result, (tuple, list)):
        return type(result)(mapped(apply, item) for item in result)
    return apply(result)


def _tiny(kind: Kind, fill: str) -> Any:
    dtype: DType = kind[0]
    if len(kind) == 1:
        return type(dtype.numpy.type(0).item())(1)
    shape = kind[1]
    rank = len(shape)
    if fill == "tensor" and rank and rank % 2 == 0:
        side = SIZE ** (rank // 2)
        array = np.eye(side).reshape(shape)
    elif fill == "eye" and rank >= 2:
        array = np.broadcast_to(np.eye(*shape[-2:]), shape)
    elif fill == "ramp" and rank:
        array = np.broadcast_to(np.arange(shape[-1]), shape)
    elif dtype.kind == "b" and rank >= 2:
        # As a mask it has as many elements as an axis has.
        array = np.zeros(shape)
        array[(np.arange(min(shape)),) * rank] = 1
    else:
        array = np.ones(shape)
    return np.array(array).astype(dtype.numpy)


def _neutral(x: Any, number: Any) -> Any:
    """An argument with ``number`` in place of each number in it."""
    if isinstance(x, (list, tuple)):
        return type(x)(_neutral(item, number) for item in x)
    if isinstance(x, slice):
        return slice(None)
    if type(x) in (int, float):
        return type(x)(number)
    return np.full_like(x, number)[()] if isinstance(x, np.integer) else x
