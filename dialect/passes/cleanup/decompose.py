"""Take ops apart into simpler ones, where the result is the same to the last bit (R1.47)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...ir.op import op_named
from ...ir.types import TensorType
from ...mlir.rewrite import attrs_of, create, functions, op_class, replace, type_of, types_of, walk
from ...ops.binary import Add
from ...ops.contract import Addmm, Matmul
from ...ops.moments import Std
from ..base import Pass, register_pass

# `std` rounds these only after taking the root.
_ROUNDED_LATE = frozenset({"f16", "bf16"})


@register_pass
@dataclass(frozen=True)
class Decompose(Pass):
    """``addmm`` with both factors 1 into a product and a sum, ``std`` into ``var`` and ``sqrt``.

    One variance can then serve both. ``std`` only where the dtype is known, and is one in which
    variances are computed. Normalisations are no ops here: importers write what they consist of.
    """

    name: ClassVar[str] = "decompose"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in list(walk(func)):
                if op_class(op) is Addmm:
                    self._addmm(op, attrs_of(op))
                elif op_class(op) is Std:
                    self._std(op, attrs_of(op))

    def _addmm(self, op: ir.Operation, attrs: dict[str, Any]) -> None:
        if attrs["alpha"] != 1 or attrs["beta"] != 1:
            return
        c, a, b = op.operands
        try:
            (type_,) = Matmul.infer(types_of([a, b]), {})
        except ProfuseError:
            return  # running it is where that is reported
        product = create(Matmul, [a, b], {}, [type_], op)
        total = create(Add, [c, *product.results], {}, types_of(op.results), op)
        replace(op, list(total.results))
        self.count("ops-decomposed")

    def _std(self, op: ir.Operation, attrs: dict[str, Any]) -> None:
        x, out = type_of(op.operands[0]), type_of(op.results[0])
        if not isinstance(x, TensorType) or x.dtype is None:
            return
        wanted = attrs.get("dtype") or x.dtype
        if x.dtype.name in _ROUNDED_LATE or wanted.name in _ROUNDED_LATE:
            return
        variance = create(op_named("var"), [op.operands[0]], attrs, [out], op)
        root = create(op_named("sqrt"), list(variance.results), {}, [out], op)
        replace(op, list(root.results))
        self.count("ops-decomposed")
