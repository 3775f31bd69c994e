"""What the passes share that split ops: reasons why one stays whole (A10), and the type of what stands for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mlir import ir

from ...ir.dtypes import BF16, F16
from ...ir.types import TensorType, Type
from ...mlir.context import loc_of
from ...mlir.rewrite import is_terminator, op_class, type_of, users
from ...ops.speculation import Subgraph
from ...reasons import Effect, Kind, Reason
from ..patterns import Match

ROUNDED_ONCE = Reason(Kind.TYPES, detail="with its bias it is rounded to 16 bits once")


def is_rounded_once(types: Iterable[Type]) -> bool:
    """True for operands of the dtypes in which products with weights do not add their bias."""
    return any(t.dtype in (F16, BF16) for t in types if isinstance(t, TensorType))


def left_whole(m: Match, reason: Reason) -> int:
    """Note why an op stays as it is; returns how many changes that are."""
    m.options.note(replace(reason, op=m.cls.name, effect=Effect.LEFT_WHOLE, loc=loc_of(m.op.location)))
    return 0


def type_in_place_of(value: ir.Value, inferred: Type) -> Type:
    """The type of what is read instead of a value: what follows from its operands, where no reader ties it.

    What was seen of the value, as its strides, need not hold of what stands for it. Blocks,
    functions and calls make other values have its type.
    """
    for user in users(value):
        cls = op_class(user)
        if cls is None or cls.regions or is_terminator(user) or issubclass(cls, Subgraph):
            return type_of(value)
    return inferred
