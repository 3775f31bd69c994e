"""Guards of a trace: expressions over the call's leaves that Python forced to be a number.

An expression is a tree over sizes of array leaves and over Python-number leaves, evaluated by the
ops' own `evaluate`, so a guard means on new arguments exactly what the graph would compute.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import Loc
from ...ir.op import op_named
from ...ir.symbolic import Dim, Dimension, Sym

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floor_div": "//", "remainder": "%",
    "pow": "**", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
_OF_SYMBOL = {"+": "add", "*": "mul", "//": "floor_div", "%": "remainder"}


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of guard expressions; picklable and hashable."""

    def evaluate(self, leaves: Sequence[Any]) -> Any:
        """The number this expression has for these argument leaves."""
        raise NotImplementedError

    def text(self, names: Sequence[str] | None = None) -> str:
        """In words; ``names[k]`` is how leaf ``k`` is called."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()


def _name(leaf: int, names: Sequence[str] | None) -> str:
    return names[leaf] if names else f"a{leaf}"


@dataclass(frozen=True, slots=True)
class DimExpr(Expr):
    """The size of array leaf ``leaf`` along ``axis``."""

    leaf: int
    axis: int

    def evaluate(self, leaves: Sequence[Any]) -> int:
        return leaves[self.leaf].shape[self.axis]

    def text(self, names: Sequence[str] | None = None) -> str:
        return f"{_name(self.leaf, names)}.shape[{self.axis}]"


@dataclass(frozen=True, slots=True)
class LeafExpr(Expr):
    """The Python number passed as leaf ``leaf``."""

    leaf: int

    def evaluate(self, leaves: Sequence[Any]) -> Any:
        return leaves[self.leaf]

    def text(self, names: Sequence[str] | None = None) -> str:
        return _name(self.leaf, names)


@dataclass(frozen=True, slots=True, eq=False)
class ConstExpr(Expr):
    """A number; 1, 1.0 and True are three, as are 0.0 and -0.0."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstExpr) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)

    def evaluate(self, leaves: Sequence[Any]) -> Any:
        return self.value

    def text(self, names: Sequence[str] | None = None) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class OpExpr(Expr):
    """An op on expressions; ``op`` is its name in the dialect."""

    op: str
    args: tuple[Expr, ...]
    attrs: tuple[tuple[str, Any], ...] = ()

    def evaluate(self, leaves: Sequence[Any]) -> Any:
        if self.op in ("max_size", "min_size"):
            values = [a.evaluate(leaves) for a in self.args]
            return max(values) if self.op == "max_size" else min(values)
        args = [a.evaluate(leaves) for a in self.args]
        return op_named(self.op).evaluate(dict(self.attrs), *args)

    def text(self, names: Sequence[str] | None = None) -> str:
        args = [a.text(names) for a in self.args]
        if self.op in _INFIX and len(args) == 2:
            args = [f"({t})" if isinstance(a, OpExpr) else t
                    for a, t in zip(self.args, args, strict=True)]  # fmt: skip
            return f"{args[0]} {_INFIX[self.op]} {args[1]}"
        return args[0] if self.op == "to_tensor" else f"{self.op}({', '.join(args)})"


def expr_of_dim(dim: Dim) -> Expr:
    """A size over each `Dimension` and `Integer` of the call's leaves as an expression."""
    if not isinstance(dim, Sym):
        return ConstExpr(dim)

    def binary(op: str, a: Expr, b: Expr) -> Expr:
        return OpExpr(_OF_SYMBOL.get(op, f"{op}_size"), (a, b))

    def read(leaf: Any) -> Expr:
        is_size = isinstance(leaf, Dimension)
        return DimExpr(leaf.array, leaf.axis) if is_size else LeafExpr(leaf.position)

    return dim.fold(read, ConstExpr, binary)


@dataclass(frozen=True)
class TraceGuard:
    """A number that tracing baked into the graph: the graph is valid only while it is the same.

    Attributes:
        expr: expression over the call's leaves.
        expected: its value when tracing.
        loc: the user's line that needed a Python number.
        names: what the user calls the leaves.
    """

    expr: Expr
    expected: bool | int | float | complex
    loc: Loc | None = None
    names: tuple[str, ...] = field(default=(), compare=False)

    def holds(self, leaves: Sequence[Any]) -> bool:
        """True if the graph is valid for these leaves."""
        try:
            value = self.expr.evaluate(leaves)
        except (ArithmeticError, ValueError, TypeError):
            return False
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.item()
        if type(value) is not type(self.expected):
            return False
        # repr tells 0.0 from -0.0, and takes all NaNs for one, where == does not.
        return (value == self.expected and bool(value)) or repr(value) == repr(self.expected)

    def explain(self) -> str:
        """One sentence: what was baked, and where."""
        text = f"{self.expr.text(self.names)} = {self.expected!r} was baked into the graph"
        if self.loc is None:
            return text
        source = linecache.getline(self.loc.file, self.loc.line).strip()
        why = f": `{source}` needs a number" if source else ""
        return f"{text} at {self.loc}{why}"
