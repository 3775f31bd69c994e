"""Loops of a known number of steps that carry values and give an output at each step: scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..numpy.tracing.current import current
from ..numpy.tracing.operators import Recording
from ..numpy.tracing.traced_control import fori_loop
from .array_values import constant_or_created, owned

Values = tuple[Any, ...]
_MOST_UNROLLED = 8  # steps that are recorded one by one


def steps(
    length: Any,
    first: Values,
    step: Callable[[Any, Values], tuple[Values, Values]],
    *,
    backward: bool = False,
    keeps_sizes: bool = False,
) -> tuple[Values, Values]:
    """The values behind the last step, and the outputs of all steps, stacked along a new first axis.

    Args:
        length: the number of steps, an int, traced or not.
        first: the values before the first step.
        step: gives the new values and the outputs for the number of a step and the values before it.
        backward: the last step comes first; outputs are in the order of their numbers in any case.
        keeps_sizes: the values have the sizes of the first ones behind each step.
    """
    is_open = getattr(length, "is_open", False)
    if not is_open and (current() is None or length <= _MOST_UNROLLED) and length >= 1:
        numbers = range(int(length))
        values, rows = first, []
        for k in reversed(numbers) if backward else numbers:
            values, outputs = step(k, values)
            rows.append(outputs)
        if backward:
            rows.reverse()
        return values, tuple(np.stack(column) for column in zip(*rows, strict=True))
    values, stacks = _looped(length, first, step, backward=backward)
    # Of what a loop carries no size is known.
    return tuple(map(_sized, values, first)) if keeps_sizes else values, stacks


def _looped(length: Any, first: Values, step: Callable, *, backward: bool) -> tuple[Values, Values]:
    shapes: list[tuple[tuple[Any, ...], Any]] = []
    sizes = _known_sizes((length, *(size for x in first for size in getattr(x, "shape", ()))))

    def probe(at: Any, values: Values) -> Values:
        # Of the first values more is known than of those that a loop carries.
        _, outputs = step(_number(at, length, backward=backward), first)
        shapes[:] = [(tuple(_outside(size, sizes) for size in y.shape), y.dtype) for y in outputs]
        return values

    # The shapes of outputs are those that a step, which is recorded for them alone, has.
    fori_loop(0, 0, probe, first)
    stacks = tuple(constant_or_created("zeros", (length, *shape), dtype) for shape, dtype in shapes)

    def body(at: Any, carried: tuple[Values, Values]) -> tuple[Values, Values]:
        values, kept = carried
        number = _number(at, length, backward=backward)
        new, outputs = step(number, values)
        return new, tuple(_with(stack, number, y) for stack, y in zip(kept, outputs, strict=True))

    values, kept = fori_loop(0, length, body, (first, stacks))
    return values, tuple(map(_sized, kept, stacks))


def _sized(x: Any, like: Any) -> Any:
    """An array of the sizes that another one has, of which these are known."""
    return np.reshape(x, tuple(like.shape))


def _known_sizes(sizes: Iterable[Any]) -> dict[Any, Any]:
    """Sizes by the expressions by which they follow from the arguments."""
    rec = current()
    assert rec is not None
    traced = [size for size in sizes if isinstance(size, Recording)]
    return {expr: size for size in traced if (expr := rec.derivation.expr(size.value)) is not None}


def _outside(size: Any, sizes: Mapping[Any, Any]) -> Any:
    """A size that a step tells, as one that is known before the first step: else the graph holds for the number."""
    if not isinstance(size, Recording):
        return int(size)
    expr = size.rec.derivation.expr(size.value)
    return int(size) if expr is None or expr not in sizes else sizes[expr]


def _number(at: Any, length: Any, *, backward: bool) -> Any:
    return length - 1 - at if backward else at


def _with(stack: Any, at: Any, y: Any) -> Any:
    new = owned(stack)
    new[at] = y
    return new
