"""`return` in branches, written without the jump: pure Python to Python.

    if c:                  if c:
        return A               value = A
    REST            ->     else:
    return B                   REST
                               value = B
                           return value

So that a trace can record both branches where the condition is traced. Branches behind which the
rest would have to be written twice stay as they are, and so do those in loops, `try` and `with`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..python.users_code import PREFIX
from .jumps import placed

NAME = f"{PREFIX}value"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
NEVER, MAYBE, ALWAYS = range(3)  # whether a list of statements returns


def without_returns(function: ast.FunctionDef) -> None:
    """Rewrite the branches of a function that return, in place."""
    body = function.body
    if any(isinstance(n, ast.If) and _returns([n]) for n in body) and _fits(body):
        function.body = [
            *_valued(body, body[0]),
            placed(ast.Return(ast.Name(NAME, ast.Load())), body[-1]),
        ]


def _returns(body: Sequence[ast.stmt]) -> int:
    """Whether statements return: on all paths, on some, or on none."""
    found = NEVER
    for node in body:
        if isinstance(node, ast.Return):
            return ALWAYS
        if isinstance(node, ast.If):
            sides = _returns(node.body), _returns(node.orelse)
            if sides == (ALWAYS, ALWAYS):
                return ALWAYS
            if sides != (NEVER, NEVER):
                found = MAYBE
        elif not isinstance(node, _SCOPES) and _holds_return(node):
            found = MAYBE
    return found


def _holds_return(node: ast.AST) -> bool:
    return any(
        isinstance(n, ast.Return) or (not isinstance(n, _SCOPES) and _holds_return(n))
        for n in ast.iter_child_nodes(node)
    )


def _fits(body: Sequence[ast.stmt]) -> bool:
    """True if all returns are in branches, of which one at most goes on."""
    for k, node in enumerate(body):
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, ast.If) and _returns([node]):
            rest = body[k + 1 :]
            sides = [(side, _returns(side)) for side in (node.body, node.orelse)]
            if rest and all(returns is not ALWAYS for _, returns in sides):
                return False
            return all(
                _fits(side if returns is ALWAYS else [*side, *rest]) for side, returns in sides
            )
        if not isinstance(node, _SCOPES) and _holds_return(node):
            return False
    return True


def _valued(body: Sequence[ast.stmt], where: ast.stmt) -> list[ast.stmt]:
    """Statements that bind the value instead of returning it."""
    out: list[ast.stmt] = []
    for k, node in enumerate(body):
        if isinstance(node, ast.Return):
            return [*out, _bound(node, node.value or ast.Constant(None))]
        if isinstance(node, ast.If) and _returns([node]):
            rest = body[k + 1 :]
            node.body, node.orelse = (
                _valued(side if _returns(side) is ALWAYS else [*side, *rest], node)
                for side in (node.body, node.orelse)
            )
            return [*out, node]
        out.append(node)
    return [*out, _bound(where if not body else body[-1], ast.Constant(None))]


def _bound(where: ast.AST, value: ast.expr) -> ast.stmt:
    return placed(ast.Assign([ast.Name(NAME, ast.Store())], value), where)


__all__ = ["without_returns"]
