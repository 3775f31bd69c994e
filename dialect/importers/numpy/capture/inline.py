"""Inlining: a graph recorded earlier joins the trace in progress (R2.14).

Ops are inferred anew for the values they get, so types are specialised on the way; control flow
stays. The outer trace guards what tracing baked into the graph as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import InternalError
from ....ir.op import Op
from ....ir.program import Block, Instr, Program
from ....ir.symbolic import Dimension, Sym
from ....ir.types import INT_SCALAR, Type, listed_type
from ....ops.control_flow.control import For, If
from ....ops.create import Constant
from ....ops.late import Late
from ....ops.size_lists import OfValues
from ..tracing.current import trace_error
from ..tracing.operators import Recording, as_value, recorder_of, wrap
from ..tracing.recorder import Recorder
from ..tracing.trace_guards import Computed, Expr, NumberConstant, PassedNumber, SameObject, TraceGuard
from ..tracing.traced import Traced
from ..tracing.traced_control import join_hints, own_arguments, unknown_number
from ..tracing.traced_scalar import TracedScalar
from .trace import Trace

# Ops that do to integers what the operators of `Sym` do.
_OPS = {"+": "add", "*": "mul", "//": "floor_div", "%": "remainder", "max": "maximum", "min": "minimum"}


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
    return None if isinstance(leaf, Recording) else leaf  # what a mask picks has as many elements as contents decide


def inline_trace(trace: Trace, leaves: Sequence[Any]) -> Any:
    """The result of a traced function on leaves, some of them traced.

    Raises TraceError as the outer trace does, and what `infer` raises for operands that do not fit.
    """
    rec = recorder_of([leaf for leaf in leaves if isinstance(leaf, (Traced, TracedScalar))])
    for guard in trace.guards:
        if isinstance(guard.expr, SameObject):
            _check_identity(guard, leaves)
            continue
        value = _guarded(rec, guard.expr, leaves)
        if value in rec.known:
            rec.numbers.bake(value)
    rec.inner_reads += trace.reads
    operands = [as_value(rec, leaf) for leaf in leaves]
    operands += [as_value(rec, array) for array in trace.captured]
    outputs = inline_program(rec, trace.module.main, operands)
    return trace.out_tree.unflatten([wrap(rec, value) for value in outputs])


def _check_identity(guard: TraceGuard, leaves: Sequence[Any]) -> None:
    """Raise TraceError unless a guard of a graph holds for traced leaves; the outer trace has one of its own."""
    from ..world.identities import is_same  # few graphs have such guards

    expr = guard.expr
    assert isinstance(expr, SameObject)
    other = leaves[expr.other] if type(expr.other) is int else expr.other
    if is_same(leaves[expr.leaf], other) is not guard.expected:
        raise trace_error(f"a graph holds for calls in which `{guard.text}` is {guard.expected}")


def inline_program(
    rec: Recorder, program: Program, operands: Sequence[int | None], listed: Mapping[int, Any] | None = None
) -> list[int]:
    """Record a program's instructions on these operands and return its outputs.

    Args:
        operands: None for one that is no array and no number.
        listed: what such operands are, by position.
    """
    values = {v: o for v, o in zip(program.inputs, operands, strict=True) if o is not None}
    return list(_Inliner(rec, values, {program.inputs[k]: x for k, x in (listed or {}).items()}).block(program.body))


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
    if isinstance(expr, PassedNumber):
        return as_value(rec, leaves[expr.leaf])
    if isinstance(expr, Computed):
        args = [_guarded(rec, arg, leaves) for arg in expr.args]
        return rec.emit(expr.op, args, dict(expr.attrs))[0]
    return rec.constant(expr.value if isinstance(expr, NumberConstant) else expr)


class _Inliner:
    """Copies instructions; ``values`` maps values of the graph to values of the trace.

    ``listed`` has those of a `ListedType`, which a trace knows: its ops have attributes.
    """

    def __init__(self, rec: Recorder, values: dict[int, int], listed: Mapping[int, Any] | None = None) -> None:
        self.rec, self.values, self.listed = rec, values, dict(listed or {})

    def block(self, block: Block) -> tuple[int, ...]:
        """Record a block's instructions and return what it yields."""
        for instr in block.instrs:
            self._instr(instr)
        return self._of(block.outputs)

    def _of(self, values: Sequence[int]) -> tuple[int, ...]:
        if not self.listed.keys().isdisjoint(values):
            raise trace_error(
                "a list of integers or bools, or a string, of a graph can only be an attribute in a trace"
            )
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
        if instr.op is Constant and instr.operands:  # until a guard compares them, it is its operand
            same = self.listed if instr.operands[0] in self.listed else self.values
            same[instr.results[0]] = same[instr.operands[0]]
            return
        if instr.op is Constant and listed_type(instr.attrs["value"]) is not None:
            self.listed[instr.results[0]] = instr.attrs["value"]
            return
        op, attrs, operands = instr.op, instr.attrs, instr.operands
        if op is Late:
            op, attrs, operands = self._plain_form(instr)
        elif issubclass(op, OfValues):
            raise trace_error(f"{op.full_name()}, of sizes as values, cannot be traced")
        results = self.rec.emit(op, self._of(operands), attrs)
        self._bind(instr.results, results)
        self.rec.blocks[-1].instrs[-1].loc = instr.loc

    def _plain_form(self, instr: Instr) -> tuple[type[Op], dict[str, Any], tuple[int, ...]]:
        """A late op as the op that its values make of it; that numbers are these is guarded. Raises TraceError."""
        count = len(instr.operands) - len(instr.attrs["names"])
        bake = self.rec.numbers.bake
        values = [
            self.listed[v] if v in self.listed else bake(self.values[v], instr.loc) for v in instr.operands[count:]
        ]
        op, attrs, _ = Late.plain_form(instr.attrs, values)
        return op, attrs, instr.operands[:count]

    def _if(self, instr: Instr) -> None:
        blocks = []
        for block in instr.blocks:
            new = Block()
            with self.rec.nested(new):
                new.outputs = self.block(block)
            blocks.append(new)
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
            inner_hints = [self.rec.hints[v] for v in test.outputs[1:]]
            block = self._round(body, inner_hints)
            if not self._widened(hints, block.outputs):
                self._append(instr, self._of(instr.operands), inner_hints, [test, block])
                return

    def _round(self, block: Block, hints: Sequence[Type]) -> Block:
        """A loop's block, recorded for arguments of these hints."""
        new = Block()
        with self.rec.nested(new):
            new.args = tuple(self.rec.new_value(h) for h in hints)
            own_arguments(self.rec, new)
            self._bind(block.args, new.args)
            new.outputs = self.block(block)
        return new

    def _widened(self, hints: list[Type], outputs: Sequence[int]) -> bool:
        """Widen hints so that they also hold after a round; True if that changed them."""
        after = [unknown_number(self.rec.hints[v]) for v in outputs]
        both = [self._joined(a, b) for a, b in zip(hints, after, strict=True)]
        changed = both != hints
        hints[:] = both
        return changed

    @staticmethod
    def _joined(a: Type, b: Type) -> Type:
        hint = join_hints(a, b)
        if hint is None:
            raise InternalError(f"control flow of a traced graph joins {a} and {b}")
        return hint

    def _append(self, instr: Instr, operands: tuple[int, ...], hints: Sequence[Type], blocks: list[Block]) -> None:
        results = tuple(self.rec.new_value(h) for h in hints)
        self._bind(instr.results, results)
        self.rec.append(Instr(instr.op, operands, results, dict(instr.attrs), tuple(blocks), instr.loc))
