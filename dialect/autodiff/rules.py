"""Asking the rule of an op class for gradients, of values in a trace and of arrays alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import GradientError, InternalError, TraceError
from ..importers.numpy.tracing.current import trace_error, user_loc
from ..ir.gradients import GradientBuilder, Partial, conjugate, rule_of, times
from ..ir.op import EACH, Op


def pulled(
    b: GradientBuilder, op: type[Op], attrs: Mapping[str, Any], xs: Sequence[Any], ys: Sequence[Any], gs: Sequence[Any]
) -> Sequence[Any]:
    """The gradient of each operand, or None for 0, by the rule of an op class.

    Args:
        attrs: of the op, with defaults.
        xs, ys: its operands and results.
        gs: the gradients of the results, of which one at least is not None.

    Raises TraceError for an op that has no gradient yet.
    """
    rule = stated_rule(op)
    if rule == "partials":
        parts, multiply = partials_of(b, op, xs, ys[0])
        return [
            None if p is None or not b.wants(k) else b.like(times(conjugate(p), gs[0], multiply), xs[k])
            for k, p in enumerate(parts)
        ]
    if rule == "linear":
        linear = range(len(xs)) if op.linear is EACH else {i for s in op.linear for i in s}
        return [
            op.transpose(b, attrs, xs, ys[0], gs[0], k) if k in linear and b.wants(k) else None for k in range(len(xs))
        ]
    if rule == "vjp":
        try:
            gradients = op.vjp(b, attrs, xs, ys, gs)
        except TraceError as error:
            raise error if error.loc is not None else trace_error(error.what, error.hint) from None
        return (*gradients, *[None] * (len(xs) - len(gradients)))
    raise refused(op)


def partials_of(
    b: GradientBuilder, op: type[Op], xs: Sequence[Any], y: Any
) -> tuple[Sequence[Partial], Callable[[Any, Any], Any]]:
    """The derivatives of an elementwise op, and what multiplies by them."""
    assert op.partials is not None
    multiply = b.absorbing_product if op.singular else b.product
    return op.partials(*xs, y), multiply


_stated: dict[type[Op], str] = {}


def stated_rule(op: type[Op]) -> str:
    """`rule_of` an op; raises TraceError for one of the user's that states nothing."""
    rule = _stated.get(op)
    if rule is not None:
        return rule
    try:
        rule = _stated[op] = rule_of(op)
    except InternalError as error:
        raise trace_error(error.what, "state how gradients pass it, as docs/gradients.md explains") from error
    return rule


def refused(op: type[Op]) -> Exception:
    """The error for an op without a gradient; users may have written one that passes alone make, in IR text."""
    if op.undifferentiable and not op.writes:
        return GradientError(f"{op.full_name()} is differentiated: {op.undifferentiable}", loc=user_loc())
    return trace_error(f"{op.name} has no gradient yet")
