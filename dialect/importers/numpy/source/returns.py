"""`return` in branches, written without the jump: pure Python to Python.

    if c:                  if c:
        return A               value = A
    REST            ->     else:
    return B                   REST
                               value = B
                           return value

So that a trace can record both branches where the condition is traced. A loop is left by `break`
first, and its value computed behind it, of what names hold then:

    for i in r:            leaves = False
        if c:              for i in r:
            return A   ->      if c:
                                   leaves = True
                                   break
                           if leaves:
                               return A

Branches behind which the rest would have to be written twice stay as they are, and so do those in
`try` and `with`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..python.users_code import PREFIX
from .jumps import assign, placed

NAME = f"{PREFIX}value"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
NEVER, MAYBE, ALWAYS = range(3)  # whether a list of statements returns


def without_returns(function: ast.FunctionDef) -> None:
    """Rewrite the branches of a function that return, in place."""
    body = function.body = _Loops().block(function.body)
    if any(isinstance(n, ast.If) and _returns([n]) for n in body) and _fits(body):
        function.body = [*_valued(body, body[0]), placed(ast.Return(ast.Name(NAME, ast.Load())), body[-1])]


def loops_return(function: ast.FunctionDef) -> bool:
    """True if a function returns in a loop."""
    return any(isinstance(n, (ast.For, ast.While)) and _holds_return(n) for n in function.body)


class _Loops:
    """Rewrites the loops of one function that return."""

    def __init__(self) -> None:
        self._count = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements whose outermost loops return nothing."""
        out: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.If):
                node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            if not isinstance(node, (ast.For, ast.While)) or not _leaves_by_branches(node):
                out.append(node)
                continue
            is_endless = _is_endless(node)
            returns = self._left(node)
            before = [assign(node, name, False) for name, _ in returns]
            behind: list[ast.stmt] = [placed(_if(name, [statement]), statement) for name, statement in returns]
            out += [*before, node, *behind]
            if is_endless:  # what left it is a return, and nothing is reached behind it
                out[-1] = returns[-1][1]
        return out

    def _left(self, loop: Any) -> list[tuple[str, ast.Return]]:
        """Have a loop break where it returned; the names of flags, and what to return for each."""
        returns: list[tuple[str, ast.Return]] = []
        loop.body = self._without(loop.body, returns)
        return returns

    def _without(self, body: list[ast.stmt], returns: list[tuple[str, ast.Return]]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.Return):
                self._count += 1
                name = f"{PREFIX}leaves{self._count}"
                returns.append((name, node))
                return [*out, assign(node, name, True), placed(ast.Break(), node)]
            if isinstance(node, ast.If):
                node.body = self._without(node.body, returns)
                node.orelse = self._without(node.orelse, returns)
            out.append(node)
            if isinstance(node, (ast.For, ast.While)) and _holds_return(node):
                inner = self._left(node)
                returns += inner
                out += [placed(_if(name, [ast.Break()]), statement) for name, statement in inner]
        return out


def _is_endless(loop: ast.For | ast.While) -> bool:
    """True for a ``while True`` that only returns and errors leave."""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant):
        return False
    return bool(loop.test.value) and not any(map(_breaks, loop.body))


def _breaks(node: ast.AST) -> bool:
    """True if a statement may leave the loop around it by a `break`."""
    if isinstance(node, (ast.For, ast.While)):
        return any(map(_breaks, node.orelse))
    if isinstance(node, (ast.Break, *_SCOPES)):
        return isinstance(node, ast.Break)
    return any(map(_breaks, ast.iter_child_nodes(node)))


def _leaves_by_branches(loop: ast.For | ast.While) -> bool:
    """True if a loop returns, and does so in branches and loops alone."""
    returns_behind = any(isinstance(n, ast.Return) or _holds_return(n) for n in loop.orelse)
    return _holds_return(loop) and _are_branches(loop.body) and not returns_behind


def _are_branches(body: Sequence[ast.stmt]) -> bool:
    for node in body:
        if isinstance(node, (ast.Return, *_SCOPES)) or not _holds_return(node):
            continue
        if isinstance(node, ast.If):
            if not (_are_branches(node.body) and _are_branches(node.orelse)):
                return False
        elif not isinstance(node, (ast.For, ast.While)) or not _leaves_by_branches(node):
            return False
    return True


def _if(name: str, body: list[ast.stmt]) -> ast.If:
    return ast.If(ast.Name(name, ast.Load()), body, [])


def _returns(body: Sequence[ast.stmt]) -> int:
    """`ALWAYS`, `MAYBE` or `NEVER`: the paths on which statements return."""
    outcome = NEVER
    for node in body:
        if isinstance(node, ast.Return):
            return ALWAYS
        if isinstance(node, ast.If):
            sides = _returns(node.body), _returns(node.orelse)
            if sides == (ALWAYS, ALWAYS):
                return ALWAYS
            if sides != (NEVER, NEVER):
                outcome = MAYBE
        elif not isinstance(node, _SCOPES) and _holds_return(node):
            outcome = MAYBE
    return outcome


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
            return all(_fits(side if returns is ALWAYS else [*side, *rest]) for side, returns in sides)
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
                _valued(side if _returns(side) is ALWAYS else [*side, *rest], node) for side in (node.body, node.orelse)
            )
            return [*out, node]
        out.append(node)
    return [*out, _bound(where if not body else body[-1], ast.Constant(None))]


def _bound(where: ast.AST, value: ast.expr) -> ast.stmt:
    return placed(ast.Assign([ast.Name(NAME, ast.Store())], value), where)
