"""Gradient arithmetic where definedness is known (R1.43, the part that needs no speculation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Fusion, op_named
from ...ir.types import BOOL_SCALAR, TensorType
from ...mlir.facts import CONSTANTS, behind_observers, constant_value, source_of
from ...mlir.rewrite import create, functions, op_class, replace, terminator_of, type_of, walk
from ...ops.control import If
from ...ops.gradients import AutogradAdd, AutogradZero, Definedness
from ...ops.speculation import Profile
from ..base import Pass, register_pass

_COMPUTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)


@register_pass
@dataclass(frozen=True)
class SpecializeAutogradZero(Pass):
    """Drop undefined addends, add defined ones plainly, and decide ``any_nonzero`` where known.

    An undefined tensor is the result of ``autograd_zero`` or of a type that says so. Defined are
    results of computing ops and types that say so; arguments may be either.
    """

    name: ClassVar[str] = "specialize-autograd-zero"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in list(walk(func)):
                new = self._rewritten(op)
                if new is not None:
                    replace(op, [_as_typed(new, op.results[0], op)])
                    self.count("ops-specialized")

    def _rewritten(self, op: ir.Operation) -> ir.Value | None:
        cls = op_class(op)
        if cls is AutogradAdd:
            return _sum(op)
        if cls is not None and issubclass(cls, Definedness):
            found = cls.decide([_is_defined(v) for v in op.operands])
            if found is not None:
                constant = op_named("constant")
                return create(constant, [], {"value": found}, [BOOL_SCALAR], op).results[0]
        return None


def _as_typed(new: ir.Value, old: ir.Value, op: ir.Operation) -> ir.Value:
    """``new`` with the type of ``old``, which control flow may share with other values."""
    if new.type == old.type:
        return new
    return create(Profile, [new], {"site": 0}, [type_of(old)], op).results[0]


def _sum(op: ir.Operation) -> ir.Value | None:
    a, b = op.operands
    for addend, other in ((a, b), (b, a)):
        if _is_defined(addend) is False:
            return other
    if _is_defined(a) and _is_defined(b):
        return create(op_named("add"), [a, b], {}, [type_of(op.results[0])], op).results[0]
    return None


def _is_defined(value: ir.Value) -> bool | None:
    """True or False where it is known, else None."""
    type_, source = type_of(value), source_of(value)
    if isinstance(type_, TensorType) and type_.defined is not None:
        return type_.defined
    if source is None or source.name in CONSTANTS:
        return None if source is None else True
    cls = op_class(source)
    if cls is AutogradZero:
        return False
    if cls is AutogradAdd:
        return True if True in map(_is_defined, source.operands) else None
    if cls is If:
        return _chosen(source, list(source.results).index(behind_observers(value)))
    # Loops, calls and views pass on what they get.
    return True if cls is not None and cls.fusion in _COMPUTING else None


def _chosen(branch: ir.Operation, index: int) -> bool | None:
    """Definedness of a result of a branch: that of the block taken, or of both if they agree."""
    yielded = [terminator_of(region.blocks[0]).operands[index] for region in branch.regions]
    taken = constant_value(branch.operands[0])
    if taken is not None:
        return _is_defined(yielded[0 if taken else 1])
    a, b = map(_is_defined, yielded)
    return a if a == b else None
