"""Forget what a specialisation has said of types (R1.36)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.facts import is_constant_op
from ...mlir.rewrite import defining_op, is_a, is_terminator, op_class, refresh_signature, set_type, type_of, users
from ...mlir.typed_values import adopt_constants, main_functions, values_of
from ...ops.control_flow.control import For, If, While
from ...ops.speculation import Guard
from ...profiling.observers import erased
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class EraseTypes(Pass):
    """Make the types of all values bare but those of checked ones, and of constants.

    Private functions keep theirs: fusion functions are compiled for them.
    """

    name: ClassVar[str] = "erase-types"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            self.count("types-erased", erase_types(func))


def erase_types(func: ir.Operation) -> int:
    """Forget the types of all values but checked ones, and of constants that nothing ties."""
    adopt_constants(func)
    count = 0
    for value in list(values_of(func)):
        source = defining_op(value)
        if is_a(source, Guard):
            continue
        if source is not None and is_constant_op(source) and not _is_tied(value):
            continue
        old = type_of(value)
        if erased(old) != old:
            set_type(value, erased(old))
            count += 1
    refresh_signature(func)
    return count


def _is_tied(value: ir.Value) -> bool:
    """True if `scf` or the function's signature makes other values have this value's type."""
    return any(is_terminator(u) or op_class(u) in (If, For, While) for u in users(value))
