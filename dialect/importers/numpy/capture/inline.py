"""Inlining: a graph recorded earlier joins the trace in progress (R2.14).

Ops are inferred anew for the values they get, so types are specialised on the way; control flow
stays. The outer trace guards what tracing baked into the graph as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import InternalError
from ....ir.program import Block, Instr, Program
from ....ir.symbolic import Dimension, Sym
from ....ir.types import INT_SCALAR, Type
from ....ops.control_flow.control import For, If
from ..tracing.control import join_hints, own_arguments, unknown_number
from ..tracing.current import trace_error
from ..tracing.operators import as_value, recorder_of, wrap
from ..tracing.recorder import Recorder
from ..tracing.trace_guards import Computed, Constant, Expr, Passed
from ..tracing.traced import Traced, TracedScalar
from .tracer import Trace

# Ops that do to integers what the operators of `Sym` do.
_OPS = {"+": "add", "*": "mul", "//": "floor_div", "%": "remainder",
        "max": "maximum", "min": "minimum"}  # fmt: skip


def example_of(leaf: Any) -> Any:
    """A stand-in for a traced leaf, of its dtype, shape and value; None if these are not known.

    Arrays and numbers stand for themselves.
    """
    if isinstance(leaf, Traced):
        sizes = [d for d in leaf.hint if isinstance(d, int)]
        if len(sizes) < leaf.ndim:
            return None
        # Not np.zeros: NumPy's creation functions record while a trace is running.
        item = bytes(leaf.dtype.itemsize)
        return np.ndarray(sizes, leaf.dtype, item, strides=(0,) * leaf.ndim)
    if isinstance(leaf, TracedScalar):
        return leaf.rec.known.get(leaf.value)
    return leaf


def inline_trace(trace: Trace, leaves: Sequence[Any]) -> Any:
    """The result of a traced function on leaves, some of them traced.

    Raises TraceError as the outer trace does, and what `infer` raises for operands that do not fit.
    """
    rec = recorder_of([leaf for leaf in leaves if isinstance(leaf, (Traced, TracedScalar))])
    for guard in trace.guards:
        value = _guarded(rec, guard.expr, leaves)
        if value in rec.known:
            rec.numbers.bake(value)
    rec.inner_reads += trace.reads
    operands = [as_value(rec, leaf) for leaf in leaves]
    operands += [as_value(rec, array) for array in trace.captured]
    outputs = inline_program(rec, trace.module.main, operands)
    return trace.out_tree.unflatten([wrap(rec, value) for value in outputs])


def inline_program(rec: Recorder, program: Program, operands: Sequence[int]) -> list[int]:
    """Record a program's instructions on these operands and return its outputs."""
    return list(_Inliner(rec, dict(zip(program.inputs, operands, strict=True))).block(program.body))


def inline_block(rec: Recorder, block: Block, args: Sequence[int] = ()) -> tuple[int, ...]:
    """Record a block's instructions anew, where other values of the trace are visible.

    ``args`` take the place of the block's arguments. Returns what it yields.
    """
    return _Inliner(rec, _Visible(zip(block.args, args, strict=True))).block(block)


class _Visible(dict[int, int]):
    """Values of the trace: each stands for itself until it is bound to another one."""

    def __missing__(self, value: int) -> int:
        return value


def _guarded(rec: Recorder, expr: Expr, leaves: Sequence[Any]) -> int:
    """The value of a guard's expression in the outer trace."""

    def read(leaf: Any) -> int:
        if not isinstance(leaf, Dimension):
            return as_value(rec, leaves[leaf.position])
        array = leaves[leaf.array]
        if isinstance(array, Traced):
            return rec.dim(array.value, leaf.axis)
        return rec.constant(array.shape[leaf.axis])

    if isinstance(expr, Sym):
        return expr.fold(read, rec.constant, lambda op, a, b: rec.emit(_OPS[op], [a, b])[0])
    if isinstance(expr, Passed):
        return as_value(rec, leaves[expr.leaf])
    if isinstance(expr, Computed):
        args = [_guarded(rec, arg, leaves) for arg in expr.args]
        return rec.emit(expr.op, args, dict(expr.attrs))[0]
    return rec.constant(expr.value if isinstance(expr, Constant) else expr)


class _Inliner:
    """Copies instructions; ``values`` maps values of the graph to values of the trace."""

    def __init__(self, rec: Recorder, values: dict[int, int]) -> None:
        self.rec, self.values = rec, values

    def block(self, block: Block) -> tuple[int, ...]:
        """Record a block's instructions and return what it yields."""
        for instr in block.instrs:
            self._instr(instr)
        return self._of(block.outputs)

    def _of(self, values: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.values[v] for v in values)

    def _bind(self, values: Sequence[int], new: Sequence[int]) -> None:
        self.values.update(zip(values, new, strict=True))

    def _instr(self, instr: Instr) -> None:
        if "callee" in instr.op.attrs:
            raise trace_error(f"a graph that calls @{instr.attrs['callee']} cannot be traced")
        if instr.blocks:
            flow = self._if if instr.op is If else self._for if instr.op is For else self._while
            flow(instr)
            return
        results = self.rec.emit(instr.op, self._of(instr.operands), instr.attrs)
        self._bind(instr.results, results)
        self.rec.blocks[-1].instrs[-1].loc = instr.loc

    def _if(self, instr: Instr) -> None:
        blocks = []
        for block in instr.blocks:
            made = Block()
            with self.rec.nested(made):
                made.outputs = self.block(block)
            blocks.append(made)
        ends = zip(*(block.outputs for block in blocks), strict=True)
        hints = [self._joined(*(self.rec.hints[v] for v in end)) for end in ends]
        self._append(instr, self._of(instr.operands), hints, blocks)

    def _for(self, instr: Instr) -> None:
        (body,) = instr.blocks
        inits = self._of(instr.operands[3:])
        hints = [unknown_number(self.rec.hints[v]) for v in inits]
        while True:
            block = self._round(body, [INT_SCALAR, *hints])
            if not self._widened(hints, block.outputs):
                self._append(instr, self._of(instr.operands), hints, [block])
                return

    def _while(self, instr: Instr) -> None:
        before, body = instr.blocks
        hints = [unknown_number(self.rec.hints[v]) for v in self._of(instr.operands)]
        while True:
            test = self._round(before, hints)
            passed = [self.rec.hints[v] for v in test.outputs[1:]]
            block = self._round(body, passed)
            if not self._widened(hints, block.outputs):
                self._append(instr, self._of(instr.operands), passed, [test, block])
                return

    def _round(self, block: Block, hints: Sequence[Type]) -> Block:
        """A loop's block, recorded for arguments of these hints."""
        made = Block()
        with self.rec.nested(made):
            made.args = tuple(self.rec.new_value(h) for h in hints)
            own_arguments(self.rec, made)
            self._bind(block.args, made.args)
            made.outputs = self.block(block)
        return made

    def _widened(self, hints: list[Type], outputs: Sequence[int]) -> bool:
        """Widen hints so that they also hold after a round; True if that changed them."""
        after = [unknown_number(self.rec.hints[v]) for v in outputs]
        both = [self._joined(a, b) for a, b in zip(hints, after, strict=True)]
        changed = both != hints
        hints[:] = both
        return changed

    @staticmethod
    def _joined(a: Type, b: Type) -> Type:
        found = join_hints(a, b)
        if found is None:
            raise InternalError(f"control flow of a traced graph joins {a} and {b}")
        return found

    def _append(
        self, instr: Instr, operands: tuple[int, ...], hints: Sequence[Type], blocks: list[Block]
    ) -> None:
        results = tuple(self.rec.new_value(h) for h in hints)
        self._bind(instr.results, results)
        self.rec.append(
            Instr(instr.op, operands, results, dict(instr.attrs), tuple(blocks), instr.loc)
        )
