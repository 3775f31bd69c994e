"""Leave broadcasting to the ops that do it themselves (R1.24)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TensorType, Type
from ...mlir.facts import source_of
from ...mlir.rewrite import attrs_of, op_class, type_of, types_of
from ...ops.elementwise.families import Elementwise
from ...ops.manipulation.shape import BroadcastTo
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _narrow(m: Match) -> int:
    return sum(_narrow_operand(m, index) for index in range(len(m.op.operands)))


def _narrow_operand(m: Match, index: int) -> bool:
    source = source_of(m.op.operands[index])
    if source is None or op_class(source) is not BroadcastTo:
        return False
    inner = source.operands[0]
    if not isinstance(type_of(inner), TensorType):
        return False  # a Python number promotes differently from the tensor made of it
    if not attrs_of(source)["implicit"] and not _changes_nothing(m, index, source):
        return False
    m.op.operands[index] = inner
    return True


@register_pass
@dataclass(frozen=True)
class RemoveExpand(PatternPass):
    """Let elementwise ops read what a ``broadcast_to`` expands, where they do so too.

    An ``implicit`` one says that they do. Of others it is shown, by complete types, that the result
    does not change and the expansion does not fail. The op itself is left for `dce`.
    """

    name: ClassVar[str] = "remove-expand"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("operands-narrowed", (Elementwise,), _narrow),)


def _changes_nothing(m: Match, index: int, source: ir.Operation) -> bool:
    """True if the types show that the op gives the same on what ``source`` expands."""
    types, source_type = list(types_of(m.op.operands)), type_of(source.operands[0])
    if not (_is_static(source_type) and _is_static(types[index])):
        return False
    try:
        old = m.cls.infer(types, m.attrs)
        types[index] = source_type
        new = m.cls.infer(types, m.attrs)
        BroadcastTo.infer(types_of(source.operands), attrs_of(source))
    except ProfuseError:
        return False
    return old == new and all(map(_is_static, new))


def _is_static(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.is_static
