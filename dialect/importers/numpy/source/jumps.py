"""`break` and `continue` at the end of branches, written without the jump: pure Python to Python.

    for i in r:                      stop = False
        if c:                        for i in r:
            A                            if c:
            break            ->              A
        REST                                 stop = True
                                         else:
                                             REST
                                         if stop: break

So that a trace can record both branches where the condition is traced. `convert` gives the last
line its meaning. What follows a branch that jumps on some of its paths is written once for each
side of it. Jumps in `try` and `with`, and many such branches one after the other, stay as they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from ..python.users_code import PREFIX

STOP = "stop"  # attribute of a loop's node: the variable that says that it is left
FLAG = f"{PREFIX}stop"  # what such variables are called, with a number behind it
NEVER, MAYBE, ALWAYS = range(3)  # whether a list of statements jumps
_DOUBLINGS = 4  # of what follows such branches in one loop


class Jumps:
    """Rewrites the loops of one function."""

    def __init__(self) -> None:
        self._count = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of the function, with its loops rewritten."""
        out: list[ast.stmt] = []
        for node in body:
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(node, field, None)
                if isinstance(inner, list) and not isinstance(node, _SCOPES):
                    setattr(node, field, self.block(inner))
            for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                handler.body = self.block(handler.body)
            if isinstance(node, (ast.For, ast.While)) and _has_jump(node.body):
                out += self._loop(node)
            else:
                out.append(node)
        return out

    def _loop(self, node: Any) -> list[ast.stmt]:
        """A loop, rewritten, with what goes before it and behind it."""
        if not _is_simple(node.body) or _doublings(node.body) > _DOUBLINGS:
            return [node]
        self._count += 1
        flag = f"{FLAG}{self._count}"
        body, has_jumps = _without_jumps(node.body, flag)
        if not has_jumps:
            node.body = body
            return [node]
        behind: list[ast.stmt] = []
        if node.orelse:  # which runs where no `break` does
            test = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
            behind, node.orelse = [placed(ast.If(test, node.orelse, []), node.orelse[0])], []
        leave = ast.copy_location(ast.If(ast.Name(flag, ast.Load()), [ast.copy_location(ast.Break(), node)], []), node)
        setattr(node, STOP, flag)
        node.body = [*body, leave]
        return [assign(node, flag, False), node, *behind]


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _has_jump(body: Sequence[ast.stmt]) -> bool:
    """True if statements leave, or go on with, the loop around them under some condition."""
    return any(_kind(node) is not NEVER for node in body) and not isinstance(body[0], (ast.Break, ast.Continue))


def _kind(node: ast.AST) -> int:
    """`ALWAYS`, `MAYBE` or `NEVER`: the cases in which a statement jumps within the loop around it."""
    if isinstance(node, (ast.Break, ast.Continue)):
        return ALWAYS
    if isinstance(node, (ast.For, ast.While, *_SCOPES)):
        return MAYBE if any(_kind(n) for n in getattr(node, "orelse", ())) else NEVER
    children = [n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case))]
    return MAYBE if any(_kind(n) for n in children) else NEVER


def _is_simple(body: Sequence[ast.stmt]) -> bool:
    """True if all jumps are at the end of branches."""
    for k, node in enumerate(body):
        kind = _kind(node)
        if kind == NEVER:
            continue
        if kind == ALWAYS:
            return k == len(body) - 1
        if not isinstance(node, ast.If) or not _is_simple(node.body) or not _is_simple(node.orelse):
            return False
    return True


def _doublings(body: Sequence[ast.stmt], is_followed: bool = False) -> int:
    """The number of times that `_without_jumps` writes what follows a branch twice."""
    count = 0
    for k, node in enumerate(body):
        if isinstance(node, ast.If) and _kind(node):
            sides, behind = (node.body, node.orelse), is_followed or k < len(body) - 1
            count += behind and ALWAYS not in map(_ends, sides)
            count += sum(_doublings(side, behind) for side in sides)
    return count


def _ends(body: Sequence[ast.stmt]) -> int:
    """`ALWAYS`, `MAYBE` or `NEVER`: the paths on which a list of statements jumps."""
    if not body:
        return NEVER
    last = body[-1]
    if isinstance(last, (ast.Break, ast.Continue, ast.Raise)):
        return ALWAYS
    if isinstance(last, ast.If):
        sides = {_ends(last.body), _ends(last.orelse)}
        if sides == {ALWAYS}:
            return ALWAYS
    return MAYBE if any(_kind(node) for node in body) else NEVER


def _without_jumps(body: Sequence[ast.stmt], flag: str) -> tuple[list[ast.stmt], bool]:
    """Statements without their jumps, and whether one of these left the loop."""
    out: list[ast.stmt] = []
    left = False
    for k, node in enumerate(body):
        if isinstance(node, ast.Break):
            return [*out, assign(node, flag, True)], True
        if isinstance(node, ast.Continue):
            return out or [ast.copy_location(ast.Pass(), node)], left
        if isinstance(node, ast.Raise):
            return [*out, node], left
        if not isinstance(node, ast.If) or not _kind(node):
            out.append(node)
            continue
        rest, sides = list(body[k + 1 :]), []
        for side, behind in ((node.body, rest), (node.orelse, copy.deepcopy(rest))):
            ends = _ends(side)
            statements, leaves = _without_jumps(side if ends == ALWAYS else [*side, *behind], flag)
            sides.append(statements)
            left |= leaves
        node.body = sides[0] or [ast.copy_location(ast.Pass(), node)]
        node.orelse = sides[1]
        return [*out, node], left
    return out, left


def raises(body: Sequence[ast.stmt]) -> bool:
    """True for statements that end with an exception on all paths, and no other jump."""
    for node in body:
        if isinstance(node, ast.If) and raises(node.body) and raises(node.orelse):
            return True
        if isinstance(node, (ast.Raise, ast.Return, ast.Break, ast.Continue)):
            return isinstance(node, ast.Raise)
    return False


def assign(where: ast.AST, name: str, value: bool) -> ast.stmt:
    """A statement that sets a flag, at the place of another statement."""
    return placed(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), where)


def placed(tree: Any, where: ast.AST) -> Any:
    """A new statement at the place of another one; what it holds of the source stays in place."""
    node: Any
    for node in ast.walk(tree):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, where)
            node.end_lineno = node.lineno
    return tree
