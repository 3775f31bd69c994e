"""Operations on `Array`: evaluated at once, with a node on the tape where gradients are required.

`apply` is the one way; `functions` is what leads NumPy's functions, methods and operators here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.op import Op, op_named
from .array import FLOATS, Array
from .eager_builder import ArrayBuilder
from .elementwise import binary, otherwise, unary
from .node import user_line, users_place
from .op_node import evaluated, note_shared
from .plans import elementwise_plans, op_plans

_CONFORM = op_named("conform")
_short: dict[type[Op], Callable[..., Any] | None] = {}


def apply(op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], place: Any = None) -> Any:
    """The result of an op, or the tuple of its results; arrays among them are `Array`.

    Args:
        op: a class of the op table.
        attrs: its attributes; those that are left out have their defaults.
        operands: `Array`, ndarrays, NumPy scalars, and Python's numbers.
        place: where the user's code called it; None = look for that.

    A node is made where gradient mode is on and an operand requires gradients. Raises what the op
    raises for its operands.
    """
    try:
        short = _short[op]
    except KeyError:
        short = _short[op] = _short_way(op)
    if short is not None:
        return short(*operands)
    if op.writes:
        return _written(op, op.full_attrs(attrs), operands)
    return evaluated(op_plans(op, attrs), operands, place)


def _short_way(op: type[Op]) -> Callable[..., Any] | None:
    plans = elementwise_plans(op)
    if plans is None:
        return None
    return (unary if len(op.operands) == 1 else binary)(plans, otherwise(plans))


ArrayBuilder.apply = staticmethod(apply)


def _written(op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any]) -> Any:
    """Run an op that writes to its first operand, and returns that.

    The gradient is that of the pure form, of which the operand becomes the result.
    """
    x = operands[0]
    if type(x) is not Array:
        x = Array(x)
    noted = gradient_mode() and any(type(y) is Array and y.node is not None for y in operands)
    if not noted or x.dtype.kind not in FLOATS:
        op.evaluate(attrs, *[y.data if type(y) is Array else y for y in operands])
    else:
        _check_leaf(x)
        # What the gradient reads of the operands is about to be overwritten.
        before = Array(x.data.copy(), x.node, x.index)
        others = [_apart(y, x.data) for y in operands[1:]]
        emit = lambda name, values, attrs: [apply(op_named(name), attrs, values)]  # noqa: E731
        result = op.as_pure(emit, attrs, before, *others)  # type: ignore[attr-defined]
        x.rebase(result)
        x.data[...] = result.data
    x.wrote(users_place())
    return x


def _apart(y: Any, written: np.ndarray) -> Any:
    """An operand, or a copy of one that shares memory with an array that is written to."""
    data = y.data if type(y) is Array else y
    if not isinstance(data, np.ndarray) or not np.may_share_memory(data, written):
        return y
    return Array(data.copy(), y.node, y.index) if type(y) is Array else data.copy()


def write(x: Array, key: Any, value: Any) -> None:
    """``x[key] = value`` noted on the tape, with any key of NumPy's."""
    _check_leaf(x)
    items = key if type(key) is tuple else (key,)
    if all(k is None or k is Ellipsis or isinstance(k, (slice, int, np.integer)) for k in items):
        rest = () if any(k is Ellipsis for k in items) else (Ellipsis,)
        target, inner_key = Array(x.data[(*items, *rest)]), None
        target.view_of(x, differentiable=True)
    else:
        target, inner_key = x, key
    destination = target.data if inner_key is None else target.data[inner_key]
    if type(value) is Array and inner_key is None and _is_same(value.data, destination):
        return  # ``x[key] += v`` has written to the view, which Python then assigns to itself
    source = apply(_CONFORM, {"assign": True}, (value, destination))
    target.rebase(source, inner_key)
    x.data[key] = source.data
    x.wrote(users_place())


def _is_same(a: Any, b: np.ndarray) -> bool:
    return (
        type(a) is np.ndarray
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
        and a.ctypes.data == b.ctypes.data
    )


def _check_leaf(x: Array) -> None:
    if x.node is not None and (x if x.base is None else x.base).is_leaf:
        raise GradientError(
            "a write to a leaf that requires gradients would lose the value that they are of",
            loc=user_line(),
            hint="write to a copy, x.copy(), or under pf.no_grad() if it is an update of the leaf",
        )


__all__ = ["apply", "note_shared", "write"]
