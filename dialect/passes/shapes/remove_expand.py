"""Leave broadcasting to the ops that do it themselves (R1.24)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TensorType, Type
from ...mlir.facts import source_of
from ...mlir.rewrite import attrs_of, functions, op_class, type_of, types_of, walk
from ...ops.families import Elementwise
from ...ops.shape import BroadcastTo
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class RemoveExpand(Pass):
    """Let elementwise ops read what a ``broadcast_to`` expands, where they do so too.

    An ``implicit`` one says that they do. Of others it is shown, by complete types, that the result
    does not change and the expansion does not fail. The op itself is left for `dce`.
    """

    name: ClassVar[str] = "remove-expand"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in walk(func):
                cls = op_class(op)
                if cls is not None and issubclass(cls, Elementwise):
                    for index in range(len(op.operands)):
                        self._operand(cls, op, index)

    def _operand(self, cls: type[Elementwise], op: ir.Operation, index: int) -> None:
        source = source_of(op.operands[index])
        if source is None or op_class(source) is not BroadcastTo:
            return
        inner = source.operands[0]
        if not isinstance(type_of(inner), TensorType):
            return  # a Python number promotes differently from the tensor made of it
        if attrs_of(source)["implicit"] or _changes_nothing(cls, op, index, source):
            op.operands[index] = inner
            self.count("operands-narrowed")


def _changes_nothing(
    cls: type[Elementwise], op: ir.Operation, index: int, source: ir.Operation
) -> bool:
    """True if the types show that ``op`` gives the same on what ``source`` expands."""
    types, given = list(types_of(op.operands)), type_of(source.operands[0])
    if not (_is_static(given) and _is_static(types[index])):
        return False
    try:
        attrs = attrs_of(op)
        old = cls.infer(types, attrs)
        types[index] = given
        new = cls.infer(types, attrs)
        BroadcastTo.infer(types_of(source.operands), attrs_of(source))
    except ProfuseError:
        return False
    return old == new and all(map(_is_static, new))


def _is_static(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.is_static
