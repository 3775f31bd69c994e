"""Gradients of branches and loops: their blocks are recorded anew, and run backwards.

A branch computes what it needs again inside of the block that is taken. A loop runs once more
forwards, to stack up what each round begins with, and then backwards over the rounds, each of
which is computed again from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analysis.alias import uses
from ...ir.attrs import DYNAMIC
from ...ir.dtypes import dtype_of
from ...ir.program import Block, Instr
from ...ir.types import ScalarType
from ...ops.control_flow.control import For, If
from ...ops.create import Full
from ...ops.elementwise.binary import Add
from ...ops.indexing.additions import Adding
from ...ops.indexing.scatter import Scatter
from ..tracing.control import cond, fori_loop, while_loop
from ..tracing.current import trace_error
from ..tracing.inline import inline_block
from ..tracing.operators import as_value, op, wrap
from .builder import TraceBuilder

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_MOST = 64  # terms of a gradient that are looked at one by one

# `sweep.pull_back` and `sweep.push_forward` of one trace.
Pull = Callable[[Sequence[Instr], Iterable[tuple[int, Any]], Sequence[int]], list[Any]]
Push = Callable[[Sequence[Instr], dict[int, Any], Sequence[int]], list[Any]]


def pull_flow(
    rec: Recorder, instr: Instr, gs: Sequence[Any], active: set[int], pull: Pull
) -> dict[int, Any]:
    """Gradients of the values that a branch or loop reads: by value, free ones included.

    ``active``: the values whose gradients are asked for. Raises TraceError where a loop carries
    arrays whose sizes change.
    """
    free = [v for v in values_read(*instr.blocks) if v in active]
    if instr.op is If:
        return _branch(rec, instr, gs, free, pull)
    return _Loop(rec, instr, gs, active, free, pull).gradients()


def push_flow(rec: Recorder, instr: Instr, tangents: dict[int, Any], push: Push) -> list[Any]:
    """Tangents of the results of a branch or loop, from those of the values that it reads.

    ``push``: `sweep.push_forward` of one trace. None = a result is no float.
    """
    free = {v: tangents[v] for v in values_read(*instr.blocks) if v in tangents}
    floats = [k for k, v in enumerate(instr.results) if rec.dtype(v).kind in "fcV"]

    def of(outputs: Sequence[int], instrs: Sequence[Instr], given: dict[int, Any]) -> list[Any]:
        wanted = [outputs[k] for k in floats]
        found = push(instrs, {**free, **given}, wanted)
        return [
            _zeros_as_array(rec, v) if t is None else _as_array(rec, t, v)
            for v, t in zip(wanted, found, strict=True)
        ]

    if instr.op is If:
        sides = [
            lambda block=block: of(*_rerun(rec, block, ()), {}) for block in instr.blocks
        ]  # fmt: skip
        moved = cond(wrap(rec, instr.operands[0]), *sides)
    else:
        moved = _pushed_loop(rec, instr, tangents, floats, of)
    found: list[Any] = [None] * len(instr.results)
    for k, t in zip(floats, moved, strict=True):
        found[k] = t
    return found


def _pushed_loop(
    rec: Recorder, instr: Instr, tangents: dict[int, Any], floats: Sequence[int], of: Callable
) -> list[Any]:
    """The tangents that a loop carries beside its values, after the last round."""
    inits = instr.operands[3:] if instr.op is For else instr.operands
    starts = [
        _as_array(rec, tangents[inits[k]], inits[k]) if inits[k] in tangents
        else _zeros_as_array(rec, inits[k])
        for k in floats
    ]  # fmt: skip
    body = instr.blocks[-1]

    def step(index: Sequence[int], state: Any) -> Any:
        values, moved = [as_value(rec, x) for x in state[0]], state[1]
        given = {values[k]: t for k, t in zip(floats, moved, strict=True)}
        outputs, instrs = _rerun(rec, body, [*index, *values])
        return [wrap(rec, v) for v in outputs], of(outputs, instrs, given)

    state = ([wrap(rec, v) for v in inits], starts)
    if instr.op is For:
        lower, upper = (wrap(rec, v) for v in instr.operands[:2])
        check_step(rec, instr)
        return fori_loop(lower, upper, lambda i, s: step([as_value(rec, i)], s), state)[1]

    def goes_on(state: Any) -> Any:
        outputs, _ = _rerun(rec, instr.blocks[0], [as_value(rec, x) for x in state[0]])
        return wrap(rec, outputs[0])

    return while_loop(goes_on, lambda s: step([], s), state)[1]


def check_step(rec: Recorder, instr: Instr) -> None:
    """Raise TraceError for a counted loop whose step is not 1."""
    if rec.known.get(instr.operands[2]) != 1:
        raise trace_error("a loop with another step than 1 has no gradient yet")


def values_read(*blocks: Block) -> dict[int, None]:
    """The values from outside that blocks read, in the order of the first reads."""
    every = list(_nested(blocks))
    inner = {v for b in every for v in b.args}
    inner |= {r for b in every for i in b.instrs for r in i.results}
    read = [o for b in every for i in b.instrs for o in i.operands]
    read += [o for b in every for o in b.outputs]
    return dict.fromkeys(v for v in read if v not in inner)


def _nested(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        for instr in block.instrs:
            yield from _nested(instr.blocks)


def _rerun(
    rec: Recorder, block: Block, args: Sequence[int]
) -> tuple[tuple[int, ...], Sequence[Instr]]:
    """Record a block on other arguments; returns its outputs and its instructions."""
    start = len(rec.blocks[-1].instrs)
    outputs = inline_block(rec, block, args)
    return outputs, rec.blocks[-1].instrs[start:]


def _zeros(rec: Recorder, value: int) -> Any:
    if isinstance(rec.hints[value], ScalarType):
        return wrap(rec, rec.constant(rec.dtype(value).type(0)))
    return np.zeros_like(wrap(rec, value))


def _zeros_as_array(rec: Recorder, value: int) -> Any:
    return _as_array(rec, _zeros(rec, value), value)


def _array(rec: Recorder, value: int) -> Any:
    """A value as an array: of a number, one without axes."""
    traced = wrap(rec, value)
    if isinstance(rec.hints[value], ScalarType):
        return op("to_tensor", traced, dtype=dtype_of(rec.dtype(value)))
    return traced


def _branch(
    rec: Recorder, instr: Instr, gs: Sequence[Any], free: Sequence[int], pull: Pull
) -> dict[int, Any]:
    def side(block: Block) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            outputs, instrs = _rerun(rec, block, ())
            found = pull(instrs, zip(outputs, gs, strict=True), free)
            return [
                _zeros(rec, v) if g is None else _as_array(rec, g, v)
                for v, g in zip(free, found, strict=True)
            ]

        return run

    then, other = map(side, instr.blocks)
    found = cond(wrap(rec, instr.operands[0]), then, other)
    return dict(zip(free, found, strict=True))


def _as_array(rec: Recorder, g: Any, value: int) -> Any:
    """A gradient as an array, so that both branches and all rounds give the same type."""
    if isinstance(rec.hints[g.value], ScalarType):
        return op("to_tensor", g, dtype=dtype_of(rec.dtype(value)))
    return g


def accumulated(rec: Recorder, total: Any, g: Any, value: int) -> Any:
    """``total + g``, the gradient of ``value`` so far and that of one more round.

    What a round adds to a part of an array is added there: the loop does not touch the rest.
    """
    b = TraceBuilder(rec)
    terms = list(itertools.islice(_terms(rec, g.value), _MOST + 1))
    if len(terms) > _MOST or not any(_is_part(b, v, value) for v in terms):
        return total + g
    for v in terms:
        made = rec.defs.get(v)
        if made is None or not _is_part(b, v, value):
            total = total + wrap(rec, v)
            continue
        _, new, *rest = (wrap(rec, o) for o in made.operands)
        if issubclass(made.op, Scatter):
            new = op(made.op.view.name, total, *rest, **made.attrs) + new
        total = op(made.op.name, total, new, *rest, **made.attrs)
    return total


def _drop_unused(rec: Recorder, values: Sequence[int], kept: set[int]) -> None:
    """Take back sums, and zeros with a part replaced, that nothing reads: they are large."""
    instrs, waiting = rec.blocks[-1].instrs, list(values)
    while waiting:
        made = rec.defs.get(waiting.pop())
        if made is None or not issubclass(made.op, (Add, Full, Scatter, Adding)):
            continue
        place = next((k for k, instr in enumerate(instrs) if instr is made), None)
        used = kept.union(*map(uses, instrs))
        if place is not None and not used.intersection(made.results):
            del instrs[place]
            waiting += made.operands


def _terms(rec: Recorder, value: int) -> Iterator[int]:
    """The values that additions have made a value of."""
    waiting = [value]
    while waiting:
        made = rec.defs.get(v := waiting.pop())
        if made is not None and made.op is Add:
            waiting += made.operands[::-1]
        else:
            yield v


def _is_part(b: TraceBuilder, v: int, value: int) -> bool:
    """True for zeros in the shape of ``value``, of which a part has been replaced or added to."""
    made = b.rec.defs.get(v)
    if made is None or not issubclass(made.op, (Scatter, Adding)):
        return False
    zeros = b.rec.defs.get(made.operands[0])
    if zeros is None or zeros.op is not Full or b.rec.known.get(zeros.operands[0]) != 0:
        return False
    return b.same_shape(wrap(b.rec, made.operands[0]), wrap(b.rec, value))


def _keeps_shape(block: Block, before: int, after: int) -> bool:
    """True if ``after`` is ``before`` with elements replaced: sizes may be unknown, but stay."""
    made = {r: instr for instr in block.instrs for r in instr.results}
    while after != before:
        if after not in made or not issubclass(made[after].op, Scatter):
            return False
        after = made[after].operands[0]
    return True


class _Loop:
    """One loop that is run backwards."""

    def __init__(
        self, rec: Recorder, instr: Instr, gs: Sequence[Any], active: set[int],
        free: Sequence[int], pull: Pull,
    ) -> None:  # fmt: skip
        self.rec, self.instr, self.gs, self.pull = rec, instr, gs, pull
        self.is_for = instr.op is For
        self.inits = instr.operands[3:] if self.is_for else instr.operands
        self.body = instr.blocks[-1]
        self.active, self.free = active, free
        # Rounds read what the loop carries; of these, gradients flow through the floats.
        self.floats = [
            k for k, v in enumerate(instr.results) if rec.dtype(v).kind in "fcV"
        ]  # fmt: skip
        passed = self.body.args[len(self.body.args) - len(self.inits) :]
        for k, value in enumerate((*self.inits, *instr.results)):
            hint, at = rec.hints[value], k % len(self.inits)
            if isinstance(hint, ScalarType) or None not in rec.shape(value):
                continue
            as_given = self.is_for or instr.blocks[0].outputs[1 + at] == instr.blocks[0].args[at]
            if not (as_given and _keeps_shape(self.body, passed[at], self.body.outputs[at])):
                raise trace_error(
                    "a loop that carries arrays whose sizes change has no gradient",
                    "keep the sizes, as with np.zeros outside of the loop and assignment in it",
                )

    def gradients(self) -> dict[int, Any]:
        """The gradients of the initial values and of what the body reads from outside."""
        rec = self.rec
        first, rounds = self._rounds()
        inits = [wrap(rec, v) for v in self.inits]
        stacks = self._stacked(first, rounds, inits)
        g_carried = [
            _zeros(rec, self.instr.results[k]) if self.gs[k] is None
            else _as_array(rec, self.gs[k], self.instr.results[k])
            for k in self.floats
        ]  # fmt: skip
        g_free = [_zeros(rec, v) for v in self.free]

        def back(count: Any, state: Any) -> Any:
            at = rounds - 1 - count
            args = [self._picked(s, at, v) for s, v in zip(stacks, self.inits, strict=True)]
            index = [as_value(rec, first + at)] if self.is_for else []
            outputs, instrs = _rerun(rec, self.body, [*index, *args])
            given = zip((outputs[k] for k in self.floats), state[0], strict=True)
            found = self.pull(instrs, given, [*(args[k] for k in self.floats), *self.free])
            split = len(self.floats)
            carried = [
                _zeros(rec, args[k]) if g is None else _as_array(rec, g, args[k])
                for k, g in zip(self.floats, found[:split], strict=True)
            ]
            free = [
                total if g is None else accumulated(rec, total, g, v)
                for total, g, v in zip(state[1], found[split:], self.free, strict=True)
            ]
            kept = {x.value for x in (*carried, *free)}
            _drop_unused(rec, [g.value for g in found[split:] if g is not None], kept)
            return carried, free

        g_carried, g_free = fori_loop(0, rounds, back, (g_carried, g_free))
        result = dict(zip(self.free, g_free, strict=True))
        for k, g in zip(self.floats, g_carried, strict=True):
            value = self.inits[k]
            if value in self.active:
                result[value] = result[value] + g if value in result else g
        return result

    def _rounds(self) -> tuple[Any, Any]:
        """The first index, and how many rounds there are."""
        rec = self.rec
        if self.is_for:
            lower, upper = (wrap(rec, v) for v in self.instr.operands[:2])
            check_step(rec, self.instr)
            count = upper - lower
            return lower, op("maximum", count, 0)
        before = self.instr.blocks[0]

        def goes_on(state: Any) -> Any:
            outputs, _ = _rerun(rec, before, [as_value(rec, x) for x in state[1]])
            return wrap(rec, outputs[0])

        def count_round(state: Any) -> Any:
            count, values = state
            return count + 1, self._next([], [as_value(rec, x) for x in values])

        inits = [wrap(rec, v) for v in self.inits]
        return 0, while_loop(goes_on, count_round, (0, inits))[0]

    def _next(self, index: Sequence[int], values: Sequence[int]) -> list[Any]:
        """What the loop carries after one more round."""
        if not self.is_for:
            outputs, _ = _rerun(self.rec, self.instr.blocks[0], values)
            values = outputs[1:]
        outputs, _ = _rerun(self.rec, self.body, [*index, *values])
        return [wrap(self.rec, v) for v in outputs]

    def _stacked(self, first: Any, rounds: Any, inits: Sequence[Any]) -> list[Any]:
        """For each carried value, an array of what it is before each round."""
        rec = self.rec
        made = []
        for value in self.inits:
            like = _array(rec, value)
            sizes = [rounds, *(like.shape[k] for k in range(like.ndim))]
            zero = rec.dtype(value).type(0)
            made.append(op("full", zero, *sizes, shape=(DYNAMIC,) * len(sizes),
                           dtype=dtype_of(rec.dtype(value))))  # fmt: skip

        def store(count: Any, state: Any) -> Any:
            values, stacks = state
            numbers = [as_value(rec, x) for x in values]
            stacks = [
                op("pick_scatter", s, _array(rec, v), count, axis=0, index=DYNAMIC)
                for s, v in zip(stacks, numbers, strict=True)
            ]
            index = [as_value(rec, first + count)] if self.is_for else []
            return self._next(index, numbers), stacks

        return fori_loop(0, rounds, store, (list(inits), made))[1]

    def _picked(self, stack: Any, at: Any, like: int) -> int:
        """What a carried value was before a round."""
        rec = self.rec
        found = op("pick", stack, at, axis=0, index=DYNAMIC)
        if isinstance(rec.hints[like], ScalarType):
            found = op("item", found)
        return as_value(rec, found)


__all__ = ["pull_flow", "push_flow", "values_read"]
