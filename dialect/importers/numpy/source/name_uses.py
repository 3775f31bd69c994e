"""The names of a function that may still be read at some point, from its source.

Answers are conservative: a name that is not live is certainly not read before it is bound anew.
Names that inner functions use are always live, as these may be called at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Names = frozenset[str]
NONE: Names = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_TRIES: Any = (ast.Try, getattr(ast, "TryStar", ast.Try))


class Live(NamedTuple):
    """Names that are live before a round of a loop (or in a branch), and behind the statement."""

    head: Names
    after: Names


class _Jumps(NamedTuple):
    """The names that are live where jumps lead: `break`, `continue`, and an error that is caught."""

    stop: Names
    next: Names
    caught: Names


class NameLiveness:
    """Liveness of one function.

    Args:
        function: its definition.

    Attributes:
        of: loop or branch -> what is live at it.
    """

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.of: dict[ast.AST, Live] = {}
        self._always = inner_names(function.body)
        self._block(function.body, NONE, _Jumps(NONE, NONE, NONE))

    def _block(self, body: Sequence[ast.stmt], live: Names, jumps: _Jumps) -> Names:
        for statement in reversed(body):
            live = self._statement(statement, live, jumps) | jumps.caught
        return live

    def _statement(self, node: Any, live: Names, jumps: _Jumps) -> Names:
        if isinstance(node, ast.If):
            self.of[node] = Live(live | self._always, live | self._always)
            both = self._block(node.body, live, jumps) | self._block(node.orelse, live, jumps)
            return both | loads(node.test)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, live, jumps)
        if isinstance(node, _TRIES):
            last = self._block(node.finalbody, live, jumps)
            caught = jumps.caught | last
            for handler in node.handlers:
                caught |= self._block(handler.body, last, jumps) | loads(handler.type)
            inner = _Jumps(jumps.stop | last, jumps.next | last, caught)
            other = self._block(node.orelse, last, inner)
            return self._block(node.body, other, inner)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            # What follows may run after an error in the body, too.
            inner = _Jumps(jumps.stop, jumps.next, jumps.caught | live)
            names = self._block(node.body, live, inner)
            for item in reversed(node.items):
                names = (names - stores([item.optional_vars])) | loads(item)
            return names
        if isinstance(node, ast.Match):
            names = live
            for case in node.cases:
                names |= self._block(case.body, live, jumps) | loads(case.pattern, case.guard)
            return names | loads(node.subject)
        if isinstance(node, (ast.Return, ast.Raise)):
            return loads(node) | jumps.caught
        if isinstance(node, ast.Break):
            return jumps.stop
        if isinstance(node, ast.Continue):
            return jumps.next
        if isinstance(node, ast.AugAssign):
            return live | loads(node) | stores([node.target])
        return (live - _bound(node)) | loads(node)

    def _loop(self, node: Any, live: Names, jumps: _Jumps) -> Names:
        other = self._block(node.orelse, live, jumps)
        is_while = isinstance(node, ast.While)
        target = NONE if is_while else stores([node.target])
        again = loads(node.test) if is_while else loads(node.target)
        head = other | again
        while True:
            inner = _Jumps(live, head, jumps.caught)
            names = self._block(node.body, head, inner)
            names = (names - target) | other | again
            if names <= head:
                break
            head |= names
        self.of[node] = Live(head | self._always, other | live | self._always)
        return head | (NONE if is_while else loads(node.iter))


def _bound(node: ast.stmt) -> Names:
    """Names that a statement without statements in it certainly binds."""
    if isinstance(node, ast.Assign):
        return stores(node.targets)
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return stores([node.target])
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return stores([node]) if isinstance(node, kinds) else NONE


def loads(*nodes: ast.AST | None) -> Names:
    """Names that are read in expressions and statements, inner functions included."""
    return frozenset().union(*(_names(node, (ast.Load, ast.Del)) for node in nodes if node is not None))


def _names(node: ast.AST, contexts: tuple[type, ...]) -> set[str]:
    """Names in a node, but for those that comprehensions in it bind for themselves."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, contexts) else set()
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        names |= _names(child, contexts)
    if isinstance(node, _COMPREHENSIONS):
        for generator in node.generators:
            names -= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        names |= _names(node.generators[0].iter, contexts)  # in the scope around
    return names


def inner_names(body: Iterable[ast.AST]) -> Names:
    """Names that functions, classes and generators inside read or bind."""
    names: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (*_FUNCTIONS, ast.GeneratorExp)):
                names |= _names(node, (ast.expr_context,))
                for declared in ast.walk(node):
                    if isinstance(declared, (ast.Nonlocal, ast.Global)):
                        names.update(declared.names)
    return frozenset(names)


def stores(nodes: Iterable[ast.AST | None]) -> Names:
    """Names that statements bind in the function's own scope."""
    visitor = _Stores()
    for node in nodes:
        if node is not None:
            visitor.visit(node)
    return frozenset(visitor.names)


class _Stores(ast.NodeVisitor):
    """Collects bound names; functions, classes and comprehensions have scopes of their own."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.names.add(node.id)

    def _named(self, node: Any) -> None:
        self.names.add(node.name)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _named

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _comprehension(self, node: ast.AST) -> None:
        # Of what a comprehension binds, targets of `:=` alone are the function's.
        self.names |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def _alias(self, node: Any) -> None:
        self.names |= {a.asname or a.name.split(".")[0] for a in node.names}

    visit_Import = visit_ImportFrom = _alias

    def _pattern(self, node: Any) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = _pattern

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.names.add(node.rest)
        self.generic_visit(node)
