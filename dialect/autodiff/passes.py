"""Passes that differentiate: whole functions, and subgraphs of them (R1.33, R2.15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ..errors import IRError, PipelineError, ProfuseError
from ..ir.gradient_mode import LOOP_BYTES
from ..ir.program import Program
from ..ir.types import TensorType
from ..mlir.context import loc_of
from ..mlir.decode import decode_function
from ..mlir.parse import add_program, replace_function
from ..mlir.rewrite import attrs_of, create, op_class, replace, short_name, types_of, walk
from ..mlir.typed_values import main_functions, map_types
from ..ops.speculation import DiffGraph
from ..passes.base import Pass, register_pass
from ..passes.cleanup.remove_profiling import remove_observers
from ..passes.partition.alternatives import callee_of, put_back
from ..profiling.observers import erased
from ..reasons import Effect, Kind, Reason
from .differentiate import differentiate, split


@register_pass
@dataclass(frozen=True)
class Differentiate(Pass):
    """Make a joint graph of each public function: it also takes gradients and gives gradients.

    The function takes a gradient for each float result after its inputs, and returns a gradient
    for each float input after its results. ``wrt`` (``0:2``) names the inputs instead, by position.
    Inputs must have a dtype and a rank; writes to arrays that the function makes are made pure.
    """

    name: ClassVar[str] = "differentiate"
    wrt: str = ""

    def run(self, module: ir.Module) -> None:
        try:
            wrt = [int(part) for part in self.wrt.split(":")] if self.wrt else None
        except ValueError:
            raise PipelineError(f"wrt={self.wrt!r} is no list of numbers, as in 0:2") from None
        for func in main_functions(module):
            program = decode_function(func)
            try:
                joint = differentiate(program, wrt)
            except IRError as error:
                raise IRError(error.what, loc=loc_of(func.location), hint=error.hint) from None
            replace_function(func, joint)
            self.count("functions-differentiated")


@register_pass
@dataclass(frozen=True)
class DifferentiateDiffGraphs(Pass):
    """Make a forward and a reverse half of each differentiable subgraph (R1.33, R2.15, R2.29).

    Gradients are those of the tensor operands that require them, or may. Types and observers of
    the subgraph go. A subgraph that has no gradient is dissolved, with the reason. ``budget``: per
    cent of what the forward half would keep for the reverse one that it may keep. ``loop-bytes``:
    what the gradient of a loop may keep of its rounds.
    """

    name: ClassVar[str] = "differentiate-diff-graphs"
    counts_changes: ClassVar[bool] = True
    budget: int = 100
    loop_bytes: int = LOOP_BYTES

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            for op in [op for op in walk(func) if op_class(op) is DiffGraph]:
                if attrs_of(op)["callee"] is not None:
                    self._differentiate(module, op)

    def _differentiate(self, module: ir.Module, op: ir.Operation) -> None:
        callee = callee_of(module, op)
        remove_observers(callee)
        program = decode_function(callee)
        try:
            halves = split(program, _wanted(program), self.budget / 100, self.loop_bytes)
        except ProfuseError as error:
            self.note(
                Reason(
                    Kind.NOT_DIFFERENTIATED, short_name(op), detail=error.what, loc=error.loc, effect=Effect.DISSOLVED
                )
            )
            map_types(callee, erased)
            put_back(op, callee)
            self.count("dissolved")
        else:
            for remark in halves.remarks:
                self.note(Reason(Kind.DIFFERENTIATED, detail=remark))
            names = []
            for half, part in (("forward", halves.forward), ("reverse", halves.reverse)):
                names.append(f"{program.name}_{half}")
                types = {value: erased(type_) for value, type_ in part.types.items()}
                add_program(module, Program(names[-1], part.body, types, part.count))
            bare = types_of(op.results)
            graph = create(DiffGraph, list(op.operands), halves.pack(*names), bare, op, op.location)
            replace(op, list(graph.results))
            self.count("differentiated")
        callee.erase()


def _wanted(program: Program) -> list[int]:
    """The inputs that gradients are needed for, as far as their types tell."""
    types = [program.type_of(v) for v in program.inputs]
    return [
        k
        for k, t in enumerate(types)
        if isinstance(t, TensorType) and t.requires_grad is not False and t.dtype is not None and t.dtype.kind in "fc"
    ]
