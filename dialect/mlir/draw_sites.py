"""Sites that draw random numbers: two of them that draw the same ones are a mistake of whoever wrote the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from ..ops.nn.dropouts import NativeDropout, RandomBits
from .facts import is_constant_op, source_of
from .rewrite import attributes, is_a, symbol_of

if TYPE_CHECKING:
    from mlir import ir


class DrawSites:
    """The sites of a module that draw by a literal offset, as they are met.

    Elements of one place have the same bits wherever seed and offset are the same. An op on the very operands of
    another one is the same site, computed once more.
    """

    def __init__(self) -> None:
        self._sites: dict[Hashable, tuple[str, ir.Operation]] = {}

    def complaints(self, op: ir.Operation) -> Iterator[str]:
        """Why a site draws what another one of its function draws."""
        if not (is_a(op, RandomBits) or is_a(op, NativeDropout)):
            return
        cls = RandomBits if is_a(op, RandomBits) else NativeDropout
        place = [field.name for field in cls.operands].index("seed")
        seed, offset = op.operands[place], op.operands[place + 1]
        literal = _literal(offset)
        if literal is None:
            return
        func = op.parent
        while func.name != "func.func":
            func = func.parent
        key = symbol_of(func), _literal(seed) or seed, literal
        computation = str((op.name, [str(v) for v in attributes(op).values()], [v.get_name() for v in op.operands]))
        before, _ = self._sites.setdefault(key, (computation, op))
        if before != computation:
            yield f"draws the numbers of another op: offset {literal} is that op's, too; each site needs its own"


def _literal(value: ir.Value) -> str | None:
    """The number that a value is, as text; None = it is no constant."""
    op = source_of(value)
    return str(op.attributes["value"]) if op is not None and is_constant_op(op) else None
