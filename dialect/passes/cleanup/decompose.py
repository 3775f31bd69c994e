"""Take ops apart into simpler ones, where the result is the same to the last bit (R1.47)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ProfuseError
from ...ir.types import TensorType
from ...mlir.rewrite import create, replace, type_of, types_of
from ...ops.elementwise.binary import Add
from ...ops.elementwise.unary import Sqrt
from ...ops.linalg.contract import Addmm, Matmul
from ...ops.reductions.moments import Std, Var
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass

# `std` rounds these only after taking the root.
_ROUNDED_LATE = frozenset({"f16", "bf16"})


def _addmm(m: Match) -> int:
    if m.attrs["alpha"] != 1 or m.attrs["beta"] != 1:
        return 0
    c, a, b = m.op.operands
    try:
        (type_,) = Matmul.infer(types_of([a, b]), {})
    except ProfuseError:
        return 0  # running it is where that is reported
    product = create(Matmul, [a, b], {}, [type_], m.op)
    total = create(Add, [c, *product.results], {}, types_of(m.op.results), m.op)
    replace(m.op, list(total.results))
    return 1


def _std(m: Match) -> int:
    x, out = type_of(m.op.operands[0]), type_of(m.op.results[0])
    if not isinstance(x, TensorType) or x.dtype is None:
        return 0
    wanted = m.attrs.get("dtype") or x.dtype
    if x.dtype.name in _ROUNDED_LATE or wanted.name in _ROUNDED_LATE:
        return 0
    variance = create(Var, [m.op.operands[0]], m.attrs, [out], m.op)
    root = create(Sqrt, list(variance.results), {}, [out], m.op)
    replace(m.op, list(root.results))
    return 1


@register_pass
@dataclass(frozen=True)
class Decompose(PatternPass):
    """``addmm`` with both factors 1 into a product and a sum, ``std`` into ``var`` and ``sqrt``.

    One variance can then serve both. ``std`` only where the dtype is known, and is one in which
    variances are computed. Normalisations are no ops here: importers write what they consist of.
    """

    name: ClassVar[str] = "decompose"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("ops-decomposed", (Addmm,), _addmm),
        Pattern("ops-decomposed", (Std,), _std),
    )
