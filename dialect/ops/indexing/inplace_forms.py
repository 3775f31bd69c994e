"""In-place forms of the elementwise ops of this package, one each; importing this module declares them.

Programs that write nothing in place do without: `dialect.ir.op.find_op` loads the module.
"""

from __future__ import annotations

from typing import Any

from ...ir.attrs import I64_ARRAY
from ...ir.op import OPS, attr, operand, result
from ..elementwise import special  # noqa: F401  (these have such forms, too)
from ..elementwise.families import Binary, Compare, Elementwise, Unary
from .additions import AtIndices
from .inplace import InPlace, WriteAtIndices

_PACKAGE = __package__.rpartition(".")[0]


def _make(base: type[Elementwise]) -> None:
    """Declare the in-place form of an elementwise op."""
    names = [f.name for f in base.operands]
    scope: dict[str, Any] = {name: operand() for name in names}
    scope |= {
        "out": result(),
        "base": base,
        "__module__": __name__,
        "__doc__": f"In-place form of `{base.name}`: writes ``{names[0]}``.",
    }
    type(f"{base.__name__}InPlace", (InPlace,), scope, name=f"{base.name}_")


def _make_at_indices(base: type[AtIndices]) -> None:
    """Declare the in-place form of an op that updates what `index` picks."""
    scope: dict[str, Any] = {
        "dst": operand(),
        "src": operand(),
        "indices": operand(variadic=True),
        "out": result(),
        "axes": attr(I64_ARRAY),
        "base": base,
        "__module__": __name__,
        "__doc__": f"In-place form of `{base.name}`: writes ``dst``.",
    }
    type(f"{base.__name__}InPlace", (WriteAtIndices,), scope, name=f"{base.name}_")


for _op in tuple(OPS.values()):
    if not _op.__module__.startswith(f"{_PACKAGE}."):
        continue  # a user's
    if issubclass(_op, AtIndices):
        _make_at_indices(_op)
    if (
        issubclass(_op, (Unary, Binary))
        and not issubclass(_op, Compare)
        and not (_op.attrs or _op.aliases or _op.of_gradients or _op.of_numbers)
    ):
        _make(_op)
