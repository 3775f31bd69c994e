"""Reverse and forward mode over recorded instructions, by the rules of their op classes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..importers.numpy.tracing.current import trace_error
from ..importers.numpy.tracing.recorder import Recorder
from ..ir.gradients import times
from ..ir.op import EACH, Op
from ..ir.program import Instr
from ..ops.control_flow.control import ControlFlow
from ..ops.gradient_ops import CustomResult
from .builder import TraceBuilder
from .cancel import cancelling
from .centred import gradient_of_mean, subtracted_mean
from .rerun import values_read
from .rules import partials_of, pulled, refused, stated_rule


def pull_back(
    rec: Recorder, instrs: Sequence[Instr], gradients: Iterable[tuple[int, Any]], wanted: Sequence[int]
) -> list[Any]:
    """The gradients of ``wanted`` values, from those of values that ``instrs`` compute.

    ``gradients``: pairs of a value and a gradient, None for 0; those of one value add up.

    What is recorded has the lines of the instructions. None = nothing depends on the value. Raises
    TraceError for an instruction that has no gradient yet, at its line.
    """
    b = TraceBuilder(rec)
    sums: dict[int, Any] = {}
    for value, g in gradients:
        if g is not None:
            _add(sums, value, g)
    active = active_values(rec, instrs, sums, wanted)
    for instr in reversed(instrs):
        gs = [sums.pop(r, None) if r in active else None for r in instr.results]
        if any(g is not None for g in gs):
            with rec.at(instr.loc):
                for value, g in contributions(b, instr, gs, active):
                    _add(sums, value, g)
    return [sums.get(v) for v in wanted]


def active_values(rec: Recorder, instrs: Sequence[Instr], grads: Mapping[int, Any], wanted: Sequence[int]) -> set[int]:
    """The values that have gradients; what provably cancels has none, which is remarked.

    ``grads``: the gradients of values that are given.
    """
    still = cancelling(rec, instrs, grads)
    for value in still:
        definition = rec.defs[value]
        rec.remark(
            f"the gradient of the {definition.op.name} at {definition.loc} is left out: the results do not "
            "depend on what is subtracted there"
        )
    return flowing_into(rec, instrs, wanted) - still


def contributions(b: TraceBuilder, instr: Instr, gs: Sequence[Any], active: set[int]) -> Iterator[tuple[int, Any]]:
    """The terms that one instruction adds to the gradients of active values that it reads.

    ``gs``: the gradients of its results, None for 0.
    """
    rec = b.rec
    if issubclass(instr.op, ControlFlow):
        from .flow import pull_flow  # few functions have any, and a first call waits for imports

        yield from pull_flow(rec, instr, gs, active, functools.partial(pull_back, rec)).items()
        return
    b.wanted = [v in active for v in instr.operands]
    for value, g in zip(instr.operands, _pulled_in_short(b, instr, gs), strict=True):
        if g is not None and value in active:
            yield value, g


def _pulled_in_short(b: TraceBuilder, instr: Instr, gs: Sequence[Any]) -> Sequence[Any]:
    """The result of `pulled`, without what is known to sum to zero."""
    mean = subtracted_mean(b.rec, instr)
    if mean is None or not b.wants(mean):
        return pulled(b, *_parts(b, instr), gs)
    b.wanted = [flag and k != mean for k, flag in enumerate(b.wanted)]
    gradients = list(pulled(b, *_parts(b, instr), gs))
    gradients[mean] = gradient_of_mean(b, instr, mean, gs[0])
    return gradients


def push_forward(
    rec: Recorder, instrs: Sequence[Instr], tangents: Mapping[int, Any], wanted: Sequence[int]
) -> list[Any]:
    """The tangents of ``wanted`` values, from those of values that ``instrs`` read.

    None = the value does not depend on them. Raises TraceError as `pull_back` does.
    """
    b = TraceBuilder(rec)
    all_tangents = dict(tangents)
    wild: set[int] = set()  # values whose tangents may be infinite or NaN where they are finite
    for instr in instrs:
        is_wild = not wild.isdisjoint(instr.operands)
        if is_wild or any(i.op.singular for i in (instr, *_inside(instr))):
            wild.update(instr.results)
        if issubclass(instr.op, ControlFlow):
            if not all_tangents.keys().isdisjoint((*instr.operands, *values_read(*instr.blocks))):
                from .flow import push_flow

                with rec.at(instr.loc):
                    moved = push_flow(rec, instr, all_tangents, functools.partial(push_forward, rec))
                _note(all_tangents, instr.results, moved)
            continue
        operand_tangents = [all_tangents.get(v) for v in instr.operands]
        if all(t is None for t in operand_tangents) or not _is_differentiable(rec, instr):
            continue
        b.wanted = [t is not None for t in operand_tangents]
        with rec.at(instr.loc):
            _note(all_tangents, instr.results, _pushed(b, instr, operand_tangents, is_wild))
    return [all_tangents.get(v) for v in wanted]


def _note(all_tangents: dict[int, Any], results: Sequence[int], tangents: Sequence[Any]) -> None:
    """Keep the tangents of results that have one."""
    pairs = zip(results, tangents, strict=True)
    all_tangents.update((v, t) for v, t in pairs if t is not None)


def _add(sums: dict[int, Any], value: int, g: Any) -> None:
    sums[value] = sums[value] + g if value in sums else g


def flowing_into(rec: Recorder, instrs: Sequence[Instr], wanted: Sequence[int]) -> set[int]:
    """The values that gradients flow through on their way to the wanted ones."""
    active = set(wanted)
    for instr in instrs:
        read = instr.operands if not instr.blocks else (*instr.operands, *values_read(*instr.blocks))
        if not active.isdisjoint(read) and _is_differentiable(rec, instr):
            active |= {r for r in instr.results if rec.is_float(r)}
    return active


def _is_differentiable(rec: Recorder, instr: Instr) -> bool:
    return not instr.op.no_gradient and any(rec.is_float(r) for r in instr.results)


def _inside(instr: Instr) -> Iterator[Instr]:
    """The instructions in the blocks of one."""
    for block in instr.blocks:
        yield from block.walk()


def _pushed(b: TraceBuilder, instr: Instr, ts: Sequence[Any], is_wild: bool) -> Sequence[Any]:
    """One tangent per result, or None.

    ``is_wild``: a tangent may be NaN. What a derivative of 0 multiplies has no part in the result,
    as in reverse mode, where a gradient of 0 stays 0.
    """
    op, attrs, xs, ys = _parts(b, instr)
    rule = stated_rule(op)
    if rule == "partials":
        parts, multiply = partials_of(b, op, xs, ys[0])
        if is_wild and not op.singular:
            multiply = lambda t, partial: b.absorbing_product(partial, t)  # noqa: E731
        terms = [times(p, t, multiply) for p, t in zip(parts, ts, strict=True) if p is not None and t is not None]
        return (_summed(b, terms, ys[0]),)
    if rule == "linear":
        sets = [tuple(range(len(xs)))] if op.linear is EACH else op.linear
        terms = []
        for operands in sets:
            if any(ts[k] is not None for k in operands):
                args = list(xs)
                for k in operands:
                    args[k] = np.zeros_like(xs[k]) if ts[k] is None else ts[k]
                terms.append(b.op(op.name, *args, **attrs))
        return (_summed(b, terms, ys[0]),)
    if issubclass(op, CustomResult):
        if op.rule(attrs).forward_mode:
            return (ts[op.chosen(attrs)],)
        raise trace_error("a function with its own gradient has no forward mode", "use pf.grad or pf.vjp")
    if rule == "vjp":
        return _pushed_by_transposing(b, instr, ts)
    raise refused(op)


def _pushed_by_transposing(b: TraceBuilder, instr: Instr, ts: Sequence[Any]) -> Sequence[Any]:
    """Tangents by a rule for gradients: these are linear in what they are made from."""
    op, attrs, xs, ys = _parts(b, instr)
    rec = b.rec
    previous = list(b.wanted)
    dummies = [
        b.op("copy", np.zeros_like(y)) if rec.is_float(v) else None for v, y in zip(instr.results, ys, strict=True)
    ]
    start = len(rec.blocks[-1].instrs)
    gradients = op.vjp(b, attrs, xs, ys, dummies)
    linear = rec.blocks[-1].instrs[start:]
    pairs = [(g.value, t) for g, t in zip(gradients, ts, strict=False) if g is not None]
    tangents = iter(pull_back(rec, linear, pairs, [d.value for d in dummies if d is not None]))
    b.wanted = previous
    return [None if d is None else next(tangents) for d in dummies]


def _parts(b: TraceBuilder, instr: Instr) -> tuple[type[Op], dict[str, Any], list, list]:
    attrs = instr.op.full_attrs(instr.attrs)
    xs, ys = ([b.value(v) for v in values] for values in (instr.operands, instr.results))
    return instr.op, attrs, xs, ys


def _summed(b: TraceBuilder, terms: Sequence[Any], y: Any) -> Any:
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return b.converted(b.spread(total, y), y)
