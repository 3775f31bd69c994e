"""``x is True`` and ``x is not False`` in a traced function, where ``x`` stands for a bool.

No class can change what ``is`` says, and a traced bool is neither of Python's two. So code with
such comparisons is compiled anew, and asks `is_bool`.
"""

from __future__ import annotations

import ast
from typing import Any

from ..python.users_code import IS, PREFIX
from ..tracing.operators import op
from ..tracing.traced_scalar import TracedScalar

_MATCHED = f"{PREFIX}matched"  # the variable of a value that ``case True:`` captures


def is_bool(value: Any, constant: bool, differs: bool = False) -> Any:
    """``value is constant``, traced where the value is; ``differs``: ``value is not constant``."""
    if type(value) is TracedScalar and value.kind is bool:
        return value if constant is not differs else op("eq", value, False)
    return (value is constant) is not differs


class Identities(ast.NodeTransformer):
    """Has such comparisons of a function ask `is_bool`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if len(sides) > 2 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return node
        if _is_literal(sides[0]):
            sides.reverse()
        if not _is_literal(sides[1]):
            return node
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


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is bool
