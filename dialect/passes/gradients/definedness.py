"""Arguments that were observed to be defined, and the branch that tests it (R1.43)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from ...ir.op import op_named
from ...ir.types import BOOL_SCALAR
from ...mlir.facts import behind_observers
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    op_class,
    ops_in,
    refresh_signature,
    symbol_of,
    terminator_of,
    types_of,
    walk,
)
from ...ops.control_flow.control import If
from ...ops.gradient_ops import AllNonzero, AllZero, AutogradAdd, Definedness
from ...ops.speculation import FallbackGraph, Profile, ProfileCounter
from ..cleanup.remove_profiling import remove_counter, remove_observers
from ..partition.alternatives import unspecialised


@dataclass(frozen=True)
class DefinednessGuard:
    """A branch that a function is to get, on what was observed of its arguments.

    Attributes:
        func: the function.
        fallback: a copy of it, of which nothing is known.
        definedness: whether an argument was defined whenever it was observed.
    """

    func: ir.Operation
    fallback: ir.Operation
    definedness: dict[ir.Value, bool]

    def insert(self) -> None:
        """Move the body of the function into one side of the branch; the fallback is the other."""
        body = body_of(self.func)
        end = terminator_of(body)
        every = ops_in(body)[:-1]
        inner = [op for op in every if op_class(op) is not ProfileCounter]
        returned, loc = list(end.operands), self.func.location
        tests = [
            create(cls, values, {}, [BOOL_SCALAR], end, loc).results[0]
            for cls, values in ((AllNonzero, self._args(True)), (AllZero, self._args(False)))
            if values
        ]
        if len(tests) == 2:
            both = create(op_named("bitwise_and"), tests, {}, [BOOL_SCALAR], end, loc)
            tests = list(both.results)
        branch = create(If, tests, {}, types_of(returned), end, loc)
        then, other = (region.blocks.append() for region in branch.regions)
        for op in inner:
            op.detach_from_parent()
            then.append(op)
        attrs, args = {"callee": symbol_of(self.fallback)}, list(body.arguments)
        call = create(FallbackGraph, args, attrs, types_of(returned), other, loc)
        for block, values in ((then, returned), (other, list(call.results))):
            ir.Operation.create("scf.yield", operands=values, loc=loc, ip=ir.InsertionPoint(block))
        for k, value in enumerate(branch.results):
            end.operands[k] = value
        for op in every:
            if op_class(op) is ProfileCounter:  # it is the last op of the top block (R1.20)
                op.move_before(end)

    def _args(self, defined: bool) -> Sequence[ir.Value]:
        return [value for value, was in self.definedness.items() if was is defined]


def observed_definedness(module: ir.Module, func: ir.Operation) -> DefinednessGuard | None:
    """The branch that a function gets; None if nothing in it asks for definedness, or is known.

    An argument counts that a test of definedness or a sum of gradients reads.
    """
    candidates = dict.fromkeys(
        value
        for op in walk(func)
        if (cls := op_class(op)) is not None and issubclass(cls, (Definedness, AutogradAdd))
        for operand in op.operands
        if isinstance((value := behind_observers(operand)).owner, ir.Block)
    )
    args = set(body_of(func).arguments)
    flags = {value: flag for value in candidates if value in args and (flag := _seen(func, value)) is not None}
    if not flags:
        return None
    fallback = unspecialised(module, func, symbol_of(func))
    fallback.attributes["sym_visibility"] = ir.StringAttr.get("private")
    remove_counter(fallback)
    remove_observers(fallback)
    refresh_signature(fallback)
    return DefinednessGuard(func, fallback, flags)


def _seen(func: ir.Operation, value: ir.Value) -> bool | None:
    """True if all observers of a value have seen it defined, False if none has, else None."""
    types = [attrs_of(op)["profiled_type"] for op in walk(func) if op_class(op) is Profile and op.operands[0] == value]
    flags = {t.defined for t in types if t is not None}
    return flags.pop() if len(flags) == 1 else None
