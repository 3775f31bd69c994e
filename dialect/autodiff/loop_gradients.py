"""Gradients of loops: they run once more forwards, and then backwards over the rounds.

The first of these sweeps stacks up what each round begins with, the second one computes each round
again from there. Where the stack would take more than `Recorder.loop_bytes`, it has what every k-th
round begins with, k being about the root of the number of rounds; the second sweep then runs the k
rounds from there once more, to stack up what each of these begins with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.alias import uses
from ..importers.numpy.tracing.current import trace_error
from ..importers.numpy.tracing.operators import as_value, op, wrap
from ..importers.numpy.tracing.traced_control import cond, fori_loop, while_loop
from ..ir.attrs import DYNAMIC
from ..ir.dtypes import F64, I64, dtype_of
from ..ir.program import Block, Instr
from ..ir.types import ScalarType
from ..ops.control_flow.control import For
from ..ops.create import Full
from ..ops.elementwise.binary import Add
from ..ops.indexing.additions import Adding
from ..ops.indexing.scatter import Scatter
from ..ops.indexing.slicing import Pick
from .builder import TraceBuilder
from .needed import Needed
from .rerun import append, array, as_array, rerun, values_read, zeros

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder

_MOST = 64  # terms of a gradient that are looked at one by one
_FEW = 8  # rounds that are never divided into segments: two roots are hardly less

# `sweep.pull_back` of one trace.
Pull = Callable[[Sequence[Instr], Iterable[tuple[int, Any]], Sequence[int]], list[Any]]


def check_step(rec: Recorder, instr: Instr) -> None:
    """Raise TraceError for a counted loop whose step is not 1."""
    if rec.known.get(instr.operands[2]) != 1:
        raise trace_error("a loop with another step than 1 has no gradient yet")


def accumulated(rec: Recorder, total: Any, g: Any, value: int) -> Any:
    """``total + g``, the gradient of ``value`` so far and that of one more round.

    What a round adds to a part of an array is added there: the loop does not touch the rest.
    """
    b = TraceBuilder(rec)
    terms = list(itertools.islice(_terms(rec, g.value), _MOST + 1))
    if len(terms) > _MOST or not any(_is_part(b, v, value) for v in terms):
        return total + g
    for v in terms:
        definition = rec.defs.get(v)
        if definition is None or not _is_part(b, v, value):
            total = total + wrap(rec, v)
            continue
        _, new, *rest = (wrap(rec, o) for o in definition.operands)
        if issubclass(definition.op, Scatter):
            new = op(definition.op.view.name, total, *rest, **definition.attrs) + new
        total = op(definition.op.name, total, new, *rest, **definition.attrs)
    return total


def _drop_unused(rec: Recorder, values: Sequence[int], kept: set[int]) -> None:
    """Take back sums, and zeros with a part replaced, that nothing reads: they are large."""
    instrs, waiting = rec.blocks[-1].instrs, list(values)
    while waiting:
        definition = rec.defs.get(waiting.pop())
        if definition is None or not issubclass(definition.op, (Add, Full, Scatter, Adding)):
            continue
        place = next((k for k, instr in enumerate(instrs) if instr is definition), None)
        reads = kept.union(*map(uses, instrs))
        if place is not None and not reads.intersection(definition.results):
            del instrs[place]
            waiting += definition.operands


def _terms(rec: Recorder, value: int) -> Iterator[int]:
    """The values that additions have made a value of."""
    waiting = [value]
    while waiting:
        definition = rec.defs.get(v := waiting.pop())
        if definition is not None and definition.op is Add:
            waiting += definition.operands[::-1]
        else:
            yield v


def _is_part(b: TraceBuilder, v: int, value: int) -> bool:
    """True for zeros in the shape of ``value``, of which a part has been replaced or added to."""
    definition = b.rec.defs.get(v)
    if definition is None or not issubclass(definition.op, (Scatter, Adding)):
        return False
    zeros = b.rec.defs.get(definition.operands[0])
    if zeros is None or zeros.op is not Full or b.rec.known.get(zeros.operands[0]) != 0:
        return False
    return b.same_shape(wrap(b.rec, definition.operands[0]), wrap(b.rec, value))


def _keeps_shape(block: Block, before: int, after: int) -> bool:
    """True if ``after`` is ``before`` with elements replaced: sizes may be unknown, but stay."""
    makers = {r: instr for instr in block.instrs for r in instr.results}
    while after != before:
        if after not in makers or not issubclass(makers[after].op, Scatter):
            return False
        after = makers[after].operands[0]
    return True


class LoopGradient:
    """One loop that is run backwards.

    Attributes:
        stacked: the carried values, counted from 0, that are kept of each round.
    """

    stacked: list[int]

    def __init__(
        self, rec: Recorder, instr: Instr, gs: Sequence[Any], active: set[int], free: Sequence[int], pull: Pull
    ) -> None:
        self.rec, self.instr, self.gs, self.pull = rec, instr, gs, pull
        self.is_for = instr.op is For
        self.inits = instr.operands[3:] if self.is_for else instr.operands
        self.body = instr.blocks[-1]
        self.active, self.free = active, list(free)
        # Rounds read what the loop carries; of these, gradients flow through the floats.
        self.floats = [k for k, v in enumerate(instr.results) if rec.dtype(v).kind in "fcV"]
        args = self.body.args[len(self.body.args) - len(self.inits) :]
        for k, value in enumerate((*self.inits, *instr.results)):
            hint, at = rec.hints[value], k % len(self.inits)
            if isinstance(hint, ScalarType) or None not in rec.shape(value):
                continue
            as_given = self.is_for or instr.blocks[0].outputs[1 + at] == instr.blocks[0].args[at]
            if not (as_given and _keeps_shape(self.body, args[at], self.body.outputs[at])):
                raise trace_error(
                    "a loop that carries arrays whose sizes change has no gradient",
                    "keep the sizes, as with np.zeros outside of the loop and assignment in it",
                )

    def gradients(self) -> dict[int, Any]:
        """The gradients of the initial values and of what the body reads from outside."""
        rec = self.rec
        first, rounds = self._rounds()
        inits = [wrap(rec, v) for v in self.inits]
        g_carried = [
            zeros(rec, self.instr.results[k])
            if self.gs[k] is None
            else as_array(rec, self.gs[k], self.instr.results[k])
            for k in self.floats
        ]
        behind = (g_carried, [zeros(rec, v) for v in self.free])
        apart = Block()
        with rec.nested(apart):
            g_carried, g_free = self._backwards(first, rounds, inits, behind)
        length = self._segment(rounds)  # that depends on which values are stacked up
        if length is None:
            append(rec, apart)
        else:
            g_carried, g_free = self._in_segments(first, rounds, length, inits, behind)
        result = dict(zip(self.free, g_free, strict=True))
        for k, g in zip(self.floats, g_carried, strict=True):
            value = self.inits[k]
            if value in self.active:
                result[value] = result[value] + g if value in result else g
        return result

    def _backwards(self, first: Any, rounds: Any, values: Sequence[Any], gradients: Any) -> Any:
        """Run rounds backwards.

        Args:
            first: the index of the first of them.
            rounds: how many there are.
            values: what the first of them begins with.
            gradients: of what is carried behind the last of them, and of what the body reads from
                outside, as far as later rounds have added to these; those before them are returned.
        """
        rec = self.rec

        def forth(count: Any, values: Sequence[int]) -> list[Any]:
            return self._next(self._index(first, count), values)

        stacks = self._stacked(rounds, values, forth)

        def back(count: Any, state: Any) -> Any:
            at = rounds - 1 - count
            args = [self._picked(s, at, v) for s, v in zip(stacks, self.inits, strict=True)]
            outputs, instrs = rerun(rec, self.body, [*self._index(first, at), *args])
            pairs = zip((outputs[k] for k in self.floats), state[0], strict=True)
            grads = self.pull(instrs, pairs, [*(args[k] for k in self.floats), *self.free])
            split = len(self.floats)
            carried = [
                zeros(rec, args[k]) if g is None else as_array(rec, g, args[k])
                for k, g in zip(self.floats, grads[:split], strict=True)
            ]
            free = [
                total if g is None else accumulated(rec, total, g, v)
                for total, g, v in zip(state[1], grads[split:], self.free, strict=True)
            ]
            kept = {x.value for x in (*carried, *free)}
            _drop_unused(rec, [g.value for g in grads[split:] if g is not None], kept)
            return carried, free

        grads = fori_loop(0, rounds, back, gradients)
        self._drop_unread([s.value for s in stacks], [as_value(rec, v) for v in values])
        return grads

    def _drop_unread(self, stacks: Sequence[int], values: Sequence[int]) -> None:
        """Take back the stacks that the loop behind them does not read; the others are `stacked`.

        What is computed of values that nothing depends on goes with them, such as the results of
        earlier rounds in an array that each round writes a part of. Where the shape alone matters,
        ``values``, which the first round begins with, have it, too.
        """
        rec = self.rec
        instrs = rec.blocks[-1].instrs
        forth, back = rec.defs[stacks[0]], instrs[-1]
        (body,) = back.blocks
        needed = Needed(rec, body.outputs)
        needed.block(body)
        like = dict(zip(stacks, values, strict=True))
        same = {
            i.results[0]: like[i.operands[0]]
            for i in body.instrs
            if i.op is Pick and i.operands[0] in like and i.results[0] not in needed.contents
        }
        body.instrs = [i for i in body.instrs if not same.keys() & set(i.results)]
        for instr in body.walk():
            instr.operands = tuple(same.get(v, v) for v in instr.operands)
        read = values_read(body)
        self.stacked = [k for k, stack in enumerate(stacks) if stack in read]
        inits = [o for o, r in zip(forth.operands[3:], forth.results, strict=True) if r in stacks]
        apart = Block(instrs=[forth])
        Needed(rec, [s for s in stacks if s in read]).block(apart)
        if not apart.instrs:
            instrs[:] = [i for i in instrs if i is not forth]
        _drop_unused(rec, inits, set())

    def _in_segments(self, first: Any, rounds: Any, length: Any, values: Sequence[Any], gradients: Any) -> Any:
        """The same, where only what the first of every ``length`` rounds begins with is kept."""
        count = (rounds + length - 1) // length

        def forth(segment: Any, values: Sequence[int]) -> list[Any]:
            # No segment begins behind the last one. A round too many might fail.
            more = op("minimum", length, (count - 1 - segment) * length)
            begin = first + segment * length

            def step(k: Any, state: Any) -> list[Any]:
                return self._next(self._index(begin, k), [as_value(self.rec, x) for x in state])

            return fori_loop(0, more, step, [wrap(self.rec, v) for v in values])

        starts = self._stacked(count, values, forth)

        def back(done: Any, state: Any) -> Any:
            at = count - 1 - done
            picked = [self._picked(s, at, v) for s, v in zip(starts, self.inits, strict=True)]
            steps = op("minimum", length, rounds - at * length)
            begins = [wrap(self.rec, v) for v in picked]
            return self._backwards(first + at * length, steps, begins, state)

        grads = fori_loop(0, count, back, gradients)
        self._drop_unread([s.value for s in starts], [as_value(self.rec, v) for v in values])
        return grads

    def _segment(self, rounds: Any) -> Any:
        """The number of rounds that a segment has; None = there is one segment, in every call."""
        rec, most = self.rec, self.rec.loop_bytes
        if most is None or not self.stacked:
            return None
        sizes = [op("size", array(rec, v)) * rec.dtype(v).itemsize for v in (self.inits[k] for k in self.stacked)]
        row = sum(sizes[1:], start=sizes[0])
        few = rec.derivation.expr(rounds.value)
        if isinstance(few, int) and few <= _FEW:
            self._tell(few, rec.known.get(row.value), most, False)
            return None
        is_long = op("bitwise_and", rounds * row > most, rounds > _FEW)
        decided = _decided(rec, is_long.value)
        self._tell(rec.known.get(rounds.value), rec.known.get(row.value), most, decided)
        if decided is None:
            return op("maximum", cond(is_long, lambda: _root(rounds), lambda: rounds), 1)
        return _root(rounds) if decided else None

    def _tell(self, rounds: int | None, row: int | None, most: int, is_long: bool | None) -> None:
        """Have `explain` tell what is kept of the rounds, and why."""
        loop = f"the gradient of the loop at {self.instr.loc} keeps what "
        each = "" if row is None else f" ({row} bytes)"
        beyond = f"more than the {most} that loop_bytes and activation_budget allow"
        if is_long is None:
            self.rec.remark(
                f"{loop}each round begins with{each}; of rounds that would take {beyond}, what "
                "every k-th one begins with, and computes the others again"
            )
        elif not is_long:
            assert rounds is not None and row is not None
            self.rec.remark(f"{loop}each of {rounds} rounds begins with: {rounds * row} bytes")
        else:
            assert rounds is not None and row is not None
            length = math.isqrt(rounds - 1) + 1
            count = -(-rounds // length)
            self.rec.remark(
                f"{loop}{count} of {rounds} rounds begin with, and computes the {length} rounds "
                f"from there again: {(count + length) * row} bytes, where {rounds * row} would be "
                f"{beyond}"
            )

    def _index(self, first: Any, count: Any) -> list[int]:
        """The values that the body of a counted loop takes before what it carries."""
        return [as_value(self.rec, first + count)] if self.is_for else []

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
            outputs, _ = rerun(rec, before, [as_value(rec, x) for x in state[1]])
            return wrap(rec, outputs[0])

        def count_round(state: Any) -> Any:
            count, values = state
            return count + 1, self._next([], [as_value(rec, x) for x in values])

        inits = [wrap(rec, v) for v in self.inits]
        return 0, while_loop(goes_on, count_round, (0, inits))[0]

    def _next(self, index: Sequence[int], values: Sequence[int]) -> list[Any]:
        """The values that the loop carries after one more round."""
        if not self.is_for:
            outputs, _ = rerun(self.rec, self.instr.blocks[0], values)
            values = outputs[1:]
        outputs, _ = rerun(self.rec, self.body, [*index, *values])
        return [wrap(self.rec, v) for v in outputs]

    def _stacked(self, count: Any, values: Sequence[Any], forth: Callable) -> list[Any]:
        """For each carried value, an array of what it is before each of some steps.

        ``forth``: from the number of a step and what is carried before it, what is carried behind.
        """
        rec = self.rec
        buffers = []
        for value in self.inits:
            like = array(rec, value)
            sizes = [count, *(like.shape[k] for k in range(like.ndim))]
            zero = rec.dtype(value).type(0)
            buffers.append(op("full", zero, *sizes, shape=(DYNAMIC,) * len(sizes), dtype=dtype_of(rec.dtype(value))))

        def store(step: Any, state: Any) -> Any:
            before, stacks = state
            numbers = [as_value(rec, x) for x in before]
            stacks = [
                op("pick_scatter", s, array(rec, v), step, axis=0, index=DYNAMIC)
                for s, v in zip(stacks, numbers, strict=True)
            ]
            return forth(step, numbers), stacks

        return fori_loop(0, count, store, (list(values), buffers))[1]

    def _picked(self, stack: Any, at: Any, like: int) -> int:
        """The value that a carried value was before a round."""
        rec = self.rec
        element = op("pick", stack, at, axis=0, index=DYNAMIC)
        if isinstance(rec.hints[like], ScalarType):
            element = op("item", element)
        return as_value(rec, element)


def _decided(rec: Recorder, value: int) -> Any:
    """The number that a value has in all calls of the graph, which is guarded; None if unknown."""
    if rec.sizes_hold:
        return rec.known.get(value)
    return None if rec.derivation.expr(value) is None else rec.numbers.bake(value)


def _root(rounds: Any) -> Any:
    """The least number whose square is no less than a number of rounds above 0."""
    root = np.sqrt(op("to_tensor", rounds - 1, dtype=F64))
    return op("item", op("cast", root, dtype=I64)) + 1
