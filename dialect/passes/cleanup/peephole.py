"""Small rewrites across two ops, beyond the canonical form (R1.24, R1.26)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Fusion, Op, op_named
from ...ir.types import ScalarType, TensorType
from ...mlir.facts import constant_value, is_constant, source_of
from ...mlir.memory import Memory
from ...mlir.rewrite import create, functions, op_class, replace, terminator_of, type_of, walk
from ...ops.control import If
from ...ops.families import Elementwise
from ...ops.queries import Query
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class Peephole(Pass):
    """``x + -y`` and ``x - -y`` without the negation, queries past elementwise ops, idle branches.

    A size or rank is asked of the operand of a unary op instead of its result, which may then go.
    A branch whose blocks yield one value, or true and false, gives that value, or the condition.
    """

    name: ClassVar[str] = "peephole"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            memory = Memory(func)
            for op in list(walk(func)):
                cls = op_class(op)
                if cls is If:
                    self._branch(op)
                elif cls is not None and issubclass(cls, Query):
                    self._query(cls, op)
                elif cls is not None and cls.name in _SIGNS:
                    self._sign(cls, op, memory)

    def _branch(self, op: ir.Operation) -> None:
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        if len(blocks) != 2:
            return
        for result, a, b in zip(
            op.results, *(terminator_of(k).operands for k in blocks), strict=True
        ):
            if next(iter(result.uses), None) is None:
                continue
            if a == b:
                new = a
            elif _truth(a) is True and _truth(b) is False:
                new = op.operands[0]
            else:
                continue
            result.replace_all_uses_with(new)
            self.count("branch-results-replaced")

    def _query(self, cls: type[Op], op: ir.Operation) -> None:
        source = source_of(op.operands[0])
        inner = op_class(source) if source is not None else None
        if source is None or inner is None or len(source.operands) != 1:
            return
        if not issubclass(inner, Elementwise) or inner.fusion is not Fusion.POINTWISE:
            return
        # A Python number has no sizes, and an op may change the dtype.
        x = source.operands[0]
        if cls.name == "dtype_code" or not isinstance(type_of(x), TensorType):
            return
        op.operands[0] = x
        self.count("queries-moved")

    def _sign(self, cls: type[Op], op: ir.Operation, memory: Memory) -> None:
        a, b = op.operands
        source = source_of(b)
        if source is None or source.name != "profuse.neg" or memory.is_touched(source):
            return
        inner = source.operands[0]
        types = [type_of(v) for v in (a, inner)]
        # Negation in a narrow dtype wraps before the sum widens: the dtypes must be one.
        dtypes = {None if isinstance(t, ScalarType) else t.dtype for t in types}  # type: ignore[union-attr]
        if len(dtypes) != 1 or None in dtypes or next(iter(dtypes)).kind not in "iuf":  # type: ignore[union-attr]
            return
        made = create(op_named(_SIGNS[cls.name]), [a, inner], {}, [type_of(op.results[0])], op)
        replace(op, list(made.results))
        self.count("negations-absorbed")


_SIGNS = {"add": "sub", "sub": "add"}


def _truth(value: ir.Value) -> bool | None:
    found = constant_value(value) if is_constant(value) else None
    return found if isinstance(found, bool) else None
