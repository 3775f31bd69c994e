"""Take ops apart into simpler ones, where the result is the same to the last bit (R1.47)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ProfuseError
from ...ir.types import TENSOR, TensorType
from ...mlir.rewrite import create, replace, set_type, type_of, types_of
from ...ops.elementwise.binary import Add
from ...ops.elementwise.unary import Sqrt
from ...ops.gradient_ops import AutogradZero
from ...ops.linalg.contract import Addmm, Matmul
from ...ops.nn.composite import UNDEFINED_OUTPUT, Composite
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
    dtype = m.attrs.get("dtype") or x.dtype
    if x.dtype.name in _ROUNDED_LATE or dtype.name in _ROUNDED_LATE:
        return 0
    variance = create(Var, [m.op.operands[0]], m.attrs, [out], m.op)
    root = create(Sqrt, list(variance.results), {}, [out], m.op)
    replace(m.op, list(root.results))
    return 1


def _composite(m: Match) -> int:
    assert issubclass(m.cls, Composite)
    try:
        program = m.cls.expansion(types_of(m.op.operands), m.attrs)
    except ProfuseError:
        return 0  # running it is where that is reported
    if program is None:
        return 0
    types = types_of(m.op.results)
    if any(v in program.body.args and program.type_of(v) != t for v, t in zip(program.outputs, types, strict=True)):
        return 0  # users of the result, such as a function, have the type that it has
    values = dict(zip(program.body.args, m.op.operands, strict=True))
    for instr in program.body.instrs:
        inner = [program.type_of(v) for v in instr.results]
        op = create(instr.op, [values[v] for v in instr.operands], instr.attrs, inner, m.op)
        values.update(zip(instr.results, op.results, strict=True))
    outputs = [
        create(AutogradZero, [], {}, [TENSOR], m.op).results[0] if v == UNDEFINED_OUTPUT else values[v]
        for v in program.outputs
    ]
    for number, value, type_ in zip(program.outputs, outputs, types, strict=True):
        if number not in program.body.args and type_of(value) != type_:
            set_type(value, type_)
    replace(m.op, outputs)
    return 1


@register_pass
@dataclass(frozen=True)
class Decompose(PatternPass):
    """``addmm`` with both factors 1 into a product and a sum, ``std`` into ``var`` and ``sqrt``.

    One variance can then serve both. ``std`` only where the dtype is known, and is one in which
    variances are computed. Composites into what they are compositions of, where that is known: it
    takes the dtype and the rank of every operand.
    """

    name: ClassVar[str] = "decompose"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("ops-decomposed", (Addmm,), _addmm),
        Pattern("ops-decomposed", (Std,), _std),
        Pattern("ops-decomposed", (Composite,), _composite),
    )
