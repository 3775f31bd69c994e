"""Programs with their gradients: one joint graph of forward and backward, made of a graph alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InternalError, IRError
from ...ir.program import Block, Program
from ...ir.types import ScalarType, TensorType, Type
from ..python.journal import Journal
from ..python.scope import Scope
from ..tracing.current import recording
from ..tracing.inline import inline_program
from ..tracing.operators import wrap
from ..tracing.recorder import Recorder
from .functional import given_gradient, gradient_or_zeros, is_float, joined, variable
from .sweep import pull_back


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
    types = [_known(program, k) for k in range(len(program.inputs))]
    rec = Recorder(program.name, ())
    rec.entry, rec.journal = differentiate.__code__, Journal()
    rec.scope = Scope(rec, differentiate)
    with recording(rec):
        inputs = [rec.new_value(t) for t in types]
        floats = [k for k, v in enumerate(inputs) if is_float(wrap(rec, v))]
        chosen = floats if wrt is None else list(wrt)
        if not set(chosen) <= set(floats):
            raise IRError(
                f"@{program.name} cannot be differentiated by inputs {chosen}",
                hint=f"its inputs of floats are {floats}",
            )
        # Nothing but this program reads the variables, so that what gradients gather at them is
        # this program's, even if one input is an output as well.
        with rec.at(next((i.loc for i in program.body.instrs), None)):
            fresh: list[Any] = [
                variable(rec, wrap(rec, v)).value if k in chosen else v
                for k, v in enumerate(inputs)
            ]
        apart = Block()
        start = len(rec.blocks[-1].instrs)
        with rec.nested(apart):
            apart.outputs = tuple(inline_program(rec, program, fresh))
        outputs = joined(rec, apart)
        instrs = rec.blocks[-1].instrs[start:]
        given = [(v, given_gradient(rec, v)) for v in outputs if is_float(wrap(rec, v))]
        pairs = [(v, wrap(rec, g)) for v, g in given]
        found = pull_back(rec, instrs, pairs, [fresh[k] for k in chosen])
        gradients = [
            gradient_or_zeros(rec, wrap(rec, fresh[k]), g).value
            for k, g in zip(chosen, found, strict=True)
        ]
    if rec.captured:
        raise InternalError(f"a gradient in @{program.name} reads an array from outside of it")
    arguments = [*inputs, *(g for _, g in given)]
    rec.finish(arguments, [*outputs, *gradients])
    # What the recorder has inferred holds in every call, as it started from types alone.
    rec.program.types.update({v: _bare(t) for v, t in rec.hints.items()})
    return rec.program


def _known(program: Program, position: int) -> Type:
    """The type of an input; raises IRError if it has no dtype or rank."""
    found = _bare(program.type_of(program.inputs[position]))
    if isinstance(found, TensorType) and (found.dtype is None or found.shape is None):
        raise IRError(
            f"input {position} of @{program.name} is {found}: gradients need its dtype and rank",
            hint="write them into its type, as in tensor<?x4xf32>",
        )
    return found


def _bare(type_: Type) -> Type:
    """A type without layouts and values."""
    if isinstance(type_, ScalarType):
        return ScalarType(type_.dtype)
    return type_.without_layout() if isinstance(type_, TensorType) else type_


__all__ = ["differentiate"]
