"""Gradient mode in what is recorded: what a function computes under `no_grad` has no gradient.

An op that is recorded there reads its operands through `stop_gradient`, so that the graph itself
says where gradients end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ....errors import TraceError
from ....ir.op import Op
from ....ir.types import TensorType
from ....ops.create import Constant
from ....ops.gradient_ops import StopGradient
from .current import trace_error

if TYPE_CHECKING:
    from .recorder import Recorder

FLOATS = "fcV"  # kinds of dtypes that have gradients


class GradientFlow:
    """The ends of gradients in one trace.

    Attributes:
        is_off: the function has switched gradient mode off for what it records now.
        is_switched_on: it has asked for gradients whatever the mode of the caller is.
        overwrites: it has written to an array while the mode was off.
        notes_writes: it has written to an array while the mode was that of the caller, or on.
    """

    __slots__ = ("is_off", "is_switched_on", "notes_writes", "overwrites", "rec")

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.is_off = self.is_switched_on = self.overwrites = self.notes_writes = False

    def switch(self, on: bool) -> bool:
        """Switch the mode of what is recorded from here on; returns whether it was off."""
        before, self.is_off = self.is_off, not on
        self.is_switched_on |= on
        return before

    @contextmanager
    def differentiated(self) -> Iterator[None]:
        """Record what is to be differentiated, within `no_grad` as well."""
        before, self.is_off = self.is_off, False
        try:
            yield
        finally:
            self.is_off = before

    def operands(self, op: type[Op], operands: Sequence[int]) -> Sequence[int]:
        """The operands of an op that is recorded while the mode is off.

        What is written to stays what it is. Raises TraceError where its gradient would be lost.
        """
        if op.no_gradient or issubclass(op, StopGradient):
            return operands
        written = set(op.writes)
        for k in written:
            self._write(operands[k])
        return [v if k in written or not self.may_end(v) else self._stopped(v) for k, v in enumerate(operands)]

    def may_end(self, value: int) -> bool:
        """True if a value may have a gradient that `stop_gradient` would end."""
        rec = self.rec
        hint, definition = rec.hints[value], rec.defs.get(value)
        if definition is not None and definition.op in (Constant, StopGradient):
            return False
        # Python's numbers have gradients where they are differentiated by, and not on the tape.
        is_known = isinstance(hint, TensorType) or bool(rec.numbers.variables)
        return is_known and rec.is_float(value)

    def flows(self, value: int) -> bool:
        """True if a value may depend on what is differentiated, or on an argument if nothing is."""
        rec = self.rec
        ends, seen, waiting = rec.numbers.variables or set(rec.inputs), set[int](), [value]
        while waiting:
            v = waiting.pop()
            if v in seen:
                continue
            seen.add(v)
            definition = rec.defs.get(v)
            if v in ends or (definition is None and v not in (*rec.inputs, *rec.captures.inputs)):
                return True  # of what a block is given nothing is known
            if definition is not None and not definition.op.no_gradient:
                waiting += definition.operands
                waiting += [o for block in definition.blocks for o in block.outputs]
        return False

    def _stopped(self, value: int) -> int:
        return self.rec.emit(StopGradient, [value])[0]

    def _write(self, target: int) -> None:
        """Note a write to an array, whose old elements keep their gradient on the tape."""
        if not self.rec.is_float(target):
            return
        self.overwrites = True
        if self.rec.numbers.variables and self._is_filled(target):
            raise self._refused()

    def _is_filled(self, target: int) -> bool:
        """True if an array was made of what may be differentiated, or has been given such."""
        root = self._root(target)
        return self.flows(root) or any(
            instr.op.writes and self._root(instr.operands[0]) == root and any(map(self.flows, instr.operands[1:]))
            for block in self.rec.blocks
            for instr in block.walk()
        )

    def _root(self, value: int) -> int:
        definition = self.rec.defs.get(value)
        while definition is not None and definition.op.aliases and definition.operands:
            value = definition.operands[0]
            definition = self.rec.defs.get(value)
        return value

    @staticmethod
    def _refused() -> TraceError:
        return trace_error(
            "an array that may have a gradient is written to under pf.no_grad()",
            "write to a copy, y = x.copy(), or build a new array",
        )
