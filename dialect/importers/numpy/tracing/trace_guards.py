"""Guards of a trace: numbers that Python forced, as expressions over the call's leaves.

Integers are `Sym` over the `Dimension` and `Integer` of leaves, which name a leaf by its number.
`PassedNumber`, `NumberConstant` and `Computed` stand for what no `Sym` can be: comparisons, floats, and what is
computed with these.  The ops' own `evaluate` works `Computed` out, so that a guard means on new
arguments exactly what the graph would compute.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Union

import numpy as np

from ....dataclass import dataclass
from ....errors import Loc
from ....ir import symbolic
from ....ir.op import op_named
from ....ir.symbolic import Dim, Dimension, Integer, Sym, dim_text, symbol

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floor_div": "//",
    "remainder": "%",
    "pow": "**",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}


@dataclass(frozen=True, slots=True)
class PassedNumber:
    """The bool, float or complex number passed as leaf ``leaf``."""

    leaf: int


@dataclass(frozen=True, slots=True, eq=False)
class NumberConstant:
    """A number that is no Python int; 1.0 and True are not equal, nor are 0.0 and -0.0."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberConstant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of an op on numbers, if it is no `Sym`; ``op`` is the op's name in the dialect."""

    op: str
    args: tuple[Expr, ...]
    attrs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SameObject:
    """True if leaf ``leaf`` is the same array as another leaf, by number, or as an array from outside."""

    leaf: int
    other: int | np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, bool, int]:
        is_leaf = type(self.other) is int
        return self.leaf, is_leaf, self.other if is_leaf else id(self.other)  # type: ignore[return-value]


Expr = Union[Dim, PassedNumber, NumberConstant, Computed, SameObject]


def passed(leaf: int, kind: type) -> Expr:
    """The Python number of this type that is passed as leaf ``leaf``."""
    return symbol(Integer(leaf)) if kind is int else PassedNumber(leaf)


def constant(number: Any) -> Expr:
    """The expression that is always this number."""
    return number if type(number) is int else NumberConstant(number)


def evaluate(expr: Expr, leaves: Sequence[Any]) -> Any:
    """The number that an expression has for these argument leaves.

    Raises ArithmeticError, TypeError or ValueError where Python or NumPy would.
    """
    if isinstance(expr, Computed):
        args = [evaluate(arg, leaves) for arg in expr.args]
        return op_named(expr.op).evaluate(dict(expr.attrs), *args)
    if isinstance(expr, Sym):
        return symbolic.evaluate(expr, lambda leaf: _read(leaf, leaves))
    if isinstance(expr, PassedNumber):
        return leaves[expr.leaf]
    if isinstance(expr, SameObject):
        return leaves[expr.leaf] is (leaves[expr.other] if type(expr.other) is int else expr.other)
    return expr.value if isinstance(expr, NumberConstant) else expr


def _read(leaf: Dimension | Integer, leaves: Sequence[Any]) -> int:
    if isinstance(leaf, Integer):
        return leaves[leaf.position]
    return leaves[leaf.array].shape[leaf.axis]


def numbers_of(expr: Expr) -> set[int]:
    """The argument leaves whose Python numbers an expression reads."""
    if isinstance(expr, Computed):
        return set().union(*map(numbers_of, expr.args))
    if isinstance(expr, PassedNumber):
        return {expr.leaf}
    if isinstance(expr, Sym):
        return {leaf.position for leaf in expr.symbols if isinstance(leaf, Integer)}
    return set()


def leaves_of(expr: Expr) -> set[int]:
    """The argument leaves that an expression reads anything of."""
    if isinstance(expr, Computed):
        return set().union(*map(leaves_of, expr.args))
    if isinstance(expr, SameObject):
        return {leaf for leaf in (expr.leaf, expr.other) if type(leaf) is int}
    if isinstance(expr, Sym):
        return {leaf.array if isinstance(leaf, Dimension) else leaf.position for leaf in expr.symbols}
    return numbers_of(expr)


def text(expr: Expr, names: Sequence[str] | None = None) -> str:
    """An expression in words; ``names[k]`` is how leaf ``k`` is called, ``ak`` without names."""

    def name(leaf: Any) -> str:
        if isinstance(leaf, Dimension):
            return f"{name(leaf.array)}.shape[{leaf.axis}]"
        number = leaf.position if isinstance(leaf, Integer) else leaf
        return names[number] if names else f"a{number}"

    if isinstance(expr, PassedNumber):
        return name(expr.leaf)
    if isinstance(expr, NumberConstant):
        return repr(expr.value)
    if isinstance(expr, SameObject):
        other = name(expr.other) if type(expr.other) is int else "an array that the function reads"
        return f"{name(expr.leaf)} is {other}"
    if not isinstance(expr, Computed):
        return dim_text(expr, name)
    args = [text(arg, names) for arg in expr.args]
    if expr.op in _INFIX and len(args) == 2:
        args = [
            f"({t})" if isinstance(a, Computed) or (isinstance(a, Sym) and len(a.terms) > 1) else t
            for a, t in zip(expr.args, args, strict=True)
        ]
        return f"{args[0]} {_INFIX[expr.op]} {args[1]}"
    return args[0] if expr.op == "to_tensor" else f"{expr.op}({', '.join(args)})"


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
            value = evaluate(self.expr, leaves)
        except (ArithmeticError, ValueError, TypeError):
            return False
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.item()
        if type(value) is not type(self.expected):
            return False
        # repr tells 0.0 from -0.0, and takes all NaNs for one, where == does not.
        return (value == self.expected and bool(value)) or repr(value) == repr(self.expected)

    @property
    def is_float(self) -> bool:
        """True if the number is a float or a complex: few calls of a solver bring one twice."""
        return isinstance(self.expected, (float, complex))

    @property
    def text(self) -> str:
        """The text of the baked value, as an expression over the arguments."""
        return text(self.expr, self.names)

    def explain(self) -> str:
        """One sentence: what was baked, and where."""
        if isinstance(self.expr, SameObject):
            return f"the graph is for calls in which `{self.text}` is {self.expected}, as {self.loc} asks"
        baked = f"{text(self.expr, self.names)} = {self.expected!r} was baked into the graph"
        if self.loc is None:
            return baked
        source = linecache.getline(self.loc.file, self.loc.line).strip()
        why = f": `{source}` needs a number" if source else ""
        return f"{baked} at {self.loc}{why}"
