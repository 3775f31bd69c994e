"""Gradients of graphs alone: one joint graph, or a forward and a reverse one."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from ..errors import InternalError, IRError
from ..importers.numpy.capture.inline import inline_program
from ..importers.numpy.capture.scope import TraceScope
from ..importers.numpy.tracing.current import recording
from ..importers.numpy.tracing.operators import as_value, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.world.journal import Journal
from ..ir.program import Block, Program
from ..ir.types import ScalarType, TensorType, Type
from ..ops.speculation import Gradient
from .derived_functions import given_gradient, gradient_or_zeros, is_float, joined, reverse_half
from .gradient_blocks import pull_back_blocks
from .residuals import residuals
from .sweep import flowing_into, pull_back


def differentiate(program: Program, wrt: Sequence[int] | None = None) -> Program:
    """A program that computes what ``program`` does, and its gradients.

    Its inputs are those of ``program`` and a gradient for each float output, in order; its outputs
    are those of ``program`` and a gradient for each input that ``wrt`` names (default: all floats).
    The gradient of an input that no output depends on is zeros.

    Args:
        program: its inputs have a dtype and a rank; sizes may be unknown. It stays as it is.
        wrt: positions of inputs.

    Raises IRError for inputs of unknown types and for what ``wrt`` names without being a float
    input; TraceError, at its line, for an instruction that has no gradient.
    """
    half = _Forward(program, wrt, differentiate.__code__)
    with recording(half.rec):
        seeds = [given_gradient(half.rec, v) for v in half.float_outputs]
        pairs = [(v, wrap(half.rec, g)) for v, g in zip(half.float_outputs, seeds, strict=True)]
        gradients = half.gradients(pairs)
    return half.program((*half.inputs, *seeds), (*half.outputs, *gradients))


def split(
    program: Program, wrt: Sequence[int] | None = None, budget: float = 1.0, loop_bytes: int | None = None
) -> Gradient:
    """A program and its gradients as two programs, between which few bytes pass (R2.29).

    Inputs and outputs are in memory in any case, so they rather than other values are captured.
    The reverse half returns a gradient for each chosen input that a float output depends on. If
    there are several float outputs, any of their gradients may be undefined, and so may those that
    it returns (R2.30). ``budget`` is that of `residuals`, and ``loop_bytes`` what the gradient
    of a loop may keep of its rounds; other arguments and errors are those of `differentiate`.
    """
    half = _Forward(program, wrt, split.__code__)
    half.rec.loop_bytes = loop_bytes
    half.leave_independent()
    with recording(half.rec):
        apart = reverse_half(half.rec, half.float_outputs, half.flowing)
        in_memory = {*half.inputs, *half.outputs}
        kept = set(residuals(half.rec, apart, (), in_memory, budget, half.inputs).kept)
        computed = [r for instr in half.rec.blocks[-1].instrs for r in instr.results]
    inputs = [k for k, v in enumerate(half.inputs) if v in kept]
    own = [v for v in computed if v in kept]  # in topological order
    outputs = (*half.outputs, *(v for v in own if v not in half.outputs))
    captured = sorted(map(outputs.index, own))
    body = Block(
        (*apart.args, *(half.inputs[k] for k in inputs), *(outputs[k] for k in captured)), apart.instrs, apart.outputs
    )
    forward = half.program(half.inputs, outputs)
    reverse = Program(f"{program.name}_reverse", body, forward.types, forward.count)
    return Gradient(
        forward,
        reverse,
        len(half.outputs),
        tuple(half.floats),
        tuple(inputs),
        tuple(captured),
        tuple(half.reached),
        tuple(half.rec.remarks),
    )


class _Forward:
    """A program recorded anew, free of writes, of which gradients can be recorded.

    Args:
        program, wrt: as of `differentiate`.
        entry: code of the function that records: frames beyond it are none of the graph's.

    Attributes:
        floats: positions of the float outputs.
        chosen: positions of the inputs to differentiate by.
        reached: those of them that `flowing` has found gradients of.
    """

    reached: list[int]

    def __init__(self, program: Program, wrt: Sequence[int] | None, entry: CodeType) -> None:
        types = [_known(program, k) for k in range(len(program.inputs))]
        self.rec = rec = Recorder(program.name, ())
        rec.entry, rec.journal = entry, Journal()
        rec.scope = TraceScope(rec, differentiate)
        rec.sizes_hold = True
        with recording(rec):
            self.inputs = [rec.new_value(t) for t in types]
            floats = [k for k, v in enumerate(self.inputs) if is_float(wrap(rec, v))]
            self.chosen = floats if wrt is None else list(wrt)
            if not set(self.chosen) <= set(floats):
                raise IRError(
                    f"@{program.name} cannot be differentiated by inputs {self.chosen}",
                    hint=f"its inputs of floats are {floats}",
                )
            apart = Block()
            with rec.nested(apart):
                apart.outputs = tuple(inline_program(rec, program, self.inputs))
            self.outputs = joined(rec, apart)
            self.instrs = list(rec.blocks[-1].instrs)
            self.floats = [k for k, v in enumerate(self.outputs) if is_float(wrap(rec, v))]

    def leave_independent(self) -> None:
        """Have the float outputs that no chosen input flows into count as none."""
        inputs = [self.inputs[k] for k in self.chosen]
        active = flowing_into(self.rec, self.instrs, inputs)
        self.floats = [k for k in self.floats if self.outputs[k] in active]

    @property
    def float_outputs(self) -> list[int]:
        """The outputs that have gradients."""
        return [self.outputs[k] for k in self.floats]

    def gradients(self, pairs: list[tuple[int, Any]]) -> list[int]:
        """Record the gradients of the chosen inputs, from outputs with theirs."""
        rec = self.rec
        inputs = [self.inputs[k] for k in self.chosen]
        gradients = pull_back(rec, self.instrs, pairs, inputs)
        return [gradient_or_zeros(rec, wrap(rec, v), g).value for v, g in zip(inputs, gradients, strict=True)]

    def flowing(self, pairs: list[tuple[int, Any]]) -> list[int]:
        """Record the gradients of those of the chosen inputs that gradients flow into."""
        rec = self.rec
        inputs = [self.inputs[k] for k in self.chosen]
        if len(pairs) == 1:
            pulled = pull_back(rec, self.instrs, pairs, inputs)
            gradients = [None if g is None else as_value(rec, g) for g in pulled]
        else:
            by_value = [(v, as_value(rec, g)) for v, g in pairs]
            gradients = pull_back_blocks(rec, self.instrs, by_value, inputs)
        self.reached = [k for k, g in zip(self.chosen, gradients, strict=True) if g is not None]
        return [g for g in gradients if g is not None]

    def program(self, inputs: Sequence[int], outputs: Sequence[Any]) -> Program:
        """The recorded program. Nothing more can be recorded then."""
        rec = self.rec
        if rec.captures.known:
            raise InternalError(f"a gradient in @{rec.program.name} reads an array of its own")
        rec.finish(inputs, outputs)
        # What the recorder has inferred holds in every call, as it started from types alone.
        rec.program.types.update({v: _bare(t) for v, t in rec.hints.items()})
        return rec.program


def _known(program: Program, position: int) -> Type:
    """The type of an input; raises IRError if it has no dtype or rank."""
    type_ = _bare(program.type_of(program.inputs[position]))
    if isinstance(type_, TensorType) and (type_.dtype is None or type_.shape is None):
        raise IRError(
            f"input {position} of @{program.name} is {type_}: gradients need its dtype and rank",
            hint="write them into its type, as in tensor<?x4xf32>",
        )
    return type_


def _bare(type_: Type) -> Type:
    """A type without layouts and values."""
    if isinstance(type_, ScalarType):
        return ScalarType(type_.dtype)
    return type_.without_layout() if isinstance(type_, TensorType) else type_


__all__ = ["Gradient", "differentiate", "split"]
