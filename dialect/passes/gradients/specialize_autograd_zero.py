"""Gradient arithmetic where definedness is known (R1.43, the part that needs no speculation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Fusion
from ...ir.types import BOOL_SCALAR, TensorType
from ...mlir.facts import CONSTANTS, behind_observers, constant_value, source_of
from ...mlir.rewrite import create, op_class, replace, terminator_of, type_of
from ...ops.control_flow.control import If
from ...ops.create import Constant
from ...ops.elementwise.binary import Add
from ...ops.gradients import AutogradAdd, AutogradZero, Definedness
from ...ops.speculation import Profile
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass

_COMPUTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)


def _sum(m: Match) -> int:
    op, (a, b) = m.op, m.op.operands
    defined = [_is_defined(a), _is_defined(b)]
    if False in defined:
        new = b if defined[0] is False else a
    elif all(defined):
        new = create(Add, [a, b], {}, [type_of(op.results[0])], op).results[0]
    else:
        return 0
    return _replace_by(new, op)


def _test(m: Match) -> int:
    assert issubclass(m.cls, Definedness)
    found = m.cls.decide([_is_defined(v) for v in m.op.operands])
    if found is None:
        return 0
    made = create(Constant, [], {"value": found}, [BOOL_SCALAR], m.op)
    return _replace_by(made.results[0], m.op)


def _replace_by(new: ir.Value, op: ir.Operation) -> int:
    """Replace an op; control flow may share the type of its result with other values."""
    if new.type != op.results[0].type:
        attrs, out = {"site": 0}, type_of(op.results[0])
        new = create(Profile, [new], attrs, [out], op).results[0]
    replace(op, [new])
    return 1


@register_pass
@dataclass(frozen=True)
class SpecializeAutogradZero(PatternPass):
    """Drop undefined addends, add defined ones plainly, and decide ``any_nonzero`` where known.

    An undefined tensor is the result of ``autograd_zero`` or of a type that says so. Defined are
    results of computing ops and types that say so; arguments may be either.
    """

    name: ClassVar[str] = "specialize-autograd-zero"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("ops-specialized", (AutogradAdd,), _sum),
        Pattern("ops-specialized", (Definedness,), _test),
    )


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
