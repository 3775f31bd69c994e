"""``x is y`` in a traced function, where one of them stands for a bool or an array.

No class can change what ``is`` says: a traced bool is neither of Python's two, and an array that is passed twice has
two traced arrays. So code with such comparisons is compiled anew, and asks `is_same`.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ..python.users_code import IS, PREFIX
from ..tracing.identity import is_one
from ..tracing.operators import op
from ..tracing.traced import TracedArray
from ..tracing.traced_scalar import TracedScalar

_MATCHED = f"{PREFIX}matched"  # the variable of a value that ``case True:`` captures


def is_same(value: Any, other: Any, differs: bool = False) -> Any:
    """``value is other``, traced where one is a traced bool and both are bools; ``differs``: ``value is not other``.

    Raises TraceError where the call decides which arrays they are.
    """
    for x, y in ((value, other), (other, value)):
        if type(x) is TracedScalar and x.kind is bool and type(y) is bool:
            return x if y is not differs else op("eq", x, False)
        if type(x) is TracedArray and x is not y and isinstance(y, (TracedArray, np.ndarray)) and not x.rec.evaluates:
            return is_one(x.rec, x, y) is not differs
    if type(value) is type(other) is TracedScalar and value.kind is other.kind is bool:
        return op("ne" if differs else "eq", value, other)
    return (value is other) is not differs


class Identities(ast.NodeTransformer):
    """Has such comparisons of a function ask `is_same`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if len(sides) > 2 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return node
        if any(isinstance(side, ast.Constant) and type(side.value) is not bool for side in sides):
            return node  # None, mostly
        if isinstance(node.ops[0], ast.IsNot):
            sides.append(ast.copy_location(ast.Constant(True), node))
        return _asked(node, *sides)

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """``case True:`` compares so, too; it captures the value, and its guard asks."""
        self.generic_visit(node)
        pattern = node.pattern
        if not isinstance(pattern, ast.MatchSingleton) or type(pattern.value) is not bool:
            return node
        name, value = ast.Name(_MATCHED, ast.Load()), ast.Constant(pattern.value)
        guard = _asked(pattern, *(ast.copy_location(x, pattern) for x in (name, value)))
        if node.guard is not None:
            guard = ast.copy_location(ast.BoolOp(ast.And(), [guard, node.guard]), node.guard)
        node.pattern = ast.copy_location(ast.MatchAs(None, _MATCHED), pattern)
        node.guard = guard
        return node


def _asked(where: ast.AST, *args: ast.expr) -> ast.expr:
    name = ast.copy_location(ast.Name(IS, ast.Load()), where)
    return ast.copy_location(ast.Call(name, [*args], []), where)
