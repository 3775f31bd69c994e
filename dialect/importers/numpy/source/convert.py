"""Loops and branches of a function ask a trace what becomes of them: its source, rewritten.

Statements stay Python's own. A ``for`` runs over what `Source.loop` makes of its iterable, and a
``while`` asks `Source.while_` before each round:

    _profuse_source_1 = __profuse_source__.loop(SITE, ITERABLE)
    for TARGET in _profuse_source_1:
        if _profuse_source_1.puts:            # the trace hands names their values
            if 'a' in _profuse_source_1.puts:
                a = _profuse_source_1.puts['a']
                if a is _profuse_source_1.unbound: del a
        BODY
    else: (the same, then what was there)

So jumps, exceptions, frames and lines are the user's. A trace that records the loop runs the body
on a traced round and reads the names in the user's frame; one that does not runs the statement.
Nothing but the text of a function matters here; `loops` knows traces.
"""

from __future__ import annotations

import ast
from typing import Any

from ..python.users_code import PREFIX, SOURCE
from .jumps import FLAG, STOP, Jumps, raises
from .name_uses import NameLiveness, stores
from .returns import loops_return, without_returns

# Code that asks for its own names would see more of them than it has.
_OF_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
_LAZY = frozenset({"range", "enumerate", "zip", "reversed"})
_COMPARED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_EXTREMES = frozenset({"min", "max"})
_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def convert(definition: Any, branches: bool = False) -> bool:
    """Rewrite the loops of a function's definition, and of functions in it; False: it has none.

    ``branches``: also functions with branches alone, and branches that return. Those of a function
    whose loops return are rewritten in any case.
    """
    is_rewritten = False
    for node in ast.walk(definition):
        if isinstance(node, ast.FunctionDef) and _may_convert(node, branches):
            if branches or loops_return(node):
                without_returns(node)
            node.body = Jumps().block(node.body)
            converter = _Converter(node)
            node.body = converter.block(node.body)
            is_rewritten |= converter.count > 0
    return is_rewritten


def _own_nodes(function: ast.AST) -> Any:
    """The nodes of a function without those of functions in it."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


def _may_convert(function: ast.FunctionDef, branches: bool) -> bool:
    kinds = (ast.For, ast.While, *((ast.If, ast.IfExp, ast.Assert, ast.Call) if branches else ()))
    has_any = False
    for node in _own_nodes(function):
        if isinstance(node, _YIELDS):
            return False
        if isinstance(node, ast.Name) and node.id in _OF_NAMES:
            return False
        has_any |= isinstance(node, kinds)
    return has_any


class _Converter(ast.NodeTransformer):
    """Rewrites one function; functions in it are left to others."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.count = 0
        self._live = NameLiveness(function).of
        inner = {
            n.id
            for scope in _own_nodes(function)
            if isinstance(scope, _SCOPES)
            for n in ast.walk(scope)
            if isinstance(n, ast.Name)
        }
        self._locals = stores(function.body) - inner
        self._outer = {
            name for node in _own_nodes(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    def _leave(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if _is_call_of(node, frozenset({"len"}), 1):
            self.count += 1
            return _at(node, _ask("length", node.func, *node.args))
        if _is_call_of(node, _EXTREMES, 8):
            self.count += 1
            return _at(node, _ask("extreme", node.func, *node.args))
        if _is_call_of(node, frozenset({"sum"}), 1):
            self.count += 1
            return _at(node, _ask("total", node.func, *node.args))
        return node

    def _may(self, names: frozenset[str]) -> bool:
        """False for names of other scopes, and for those that a class makes private."""
        return not names & self._outer and not any(name.startswith("__") and not name.endswith("__") for name in names)

    def visit_For(self, node: ast.For) -> Any:
        names = stores([node.target, *node.body])
        live = self._live[node]
        self.generic_visit(node)
        if not self._may(names) or not _plain_target(node.target):
            return node
        loop = self._name()
        _stops(node, loop)
        lists = self._appended(node)
        target = stores([node.target])
        site = _site(node, names, live, target & stores(node.body), lists)
        assignment = _at(
            node, ast.Assign([ast.Name(loop, ast.Store())], _ask("loop", site, _target(node.target), _lazy(node.iter)))
        )
        node.iter = _at(node.iter, ast.Name(loop, ast.Load()))
        puts = names & (live.head | live.after)
        node.body = [*_puts(node, loop, puts | lists), *node.body]
        node.orelse = [*_puts(node, loop, puts | lists), *node.orelse]
        return [assignment, node]

    def _appended(self, node: ast.For) -> frozenset[str]:
        """The lists to which rounds append; the trace has something else stand for these."""
        if not hasattr(node, STOP) and _jumps(node):
            return frozenset()
        lists = {n.func.value.id for n in _own_nodes(node) if _is_append(n)}
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        return frozenset(lists & self._locals - bound)

    def visit_While(self, node: ast.While) -> Any:
        names = stores([node.test, *node.body])
        live = self._live[node]
        self.generic_visit(node)
        if not self._may(names):
            return node
        loop = self._name()
        _stops(node, loop)
        site = _site(node, names, live, frozenset())
        assignment = _at(node, ast.Assign([ast.Name(loop, ast.Store())], _ask("while_", site)))
        puts = names & (live.head | live.after)
        test = _at(node.test, _method(loop, "test", _condition(node.test)))
        runs = _at(node, ast.If(test, [*_puts(node, loop, puts), *node.body], []))
        node.test = _at(node.test, _method(loop, "round"))
        node.body = [*_puts(node, loop, puts), runs]
        node.orelse = [*_puts(node, loop, puts), *node.orelse]
        return [assignment, node]

    def visit_If(self, node: ast.If) -> Any:
        if _leaves(node):
            return node  # see `_stops`
        if raises(node.body) != raises(node.orelse):
            self.count += 1
            self.generic_visit(node)
            node.test = _exit("raises" if raises(node.body) else "holds", node.test)
            return node
        names = stores([*node.body, *node.orelse])
        live = self._live[node]
        self.generic_visit(node)
        if not self._may(names):
            return node
        branch = self._name()
        puts = _puts(node, branch, names & live.after)
        site = _site(node, names, live, frozenset())
        assignment = _at(node, ast.Assign([ast.Name(branch, ast.Store())], _ask("if_", site, _condition(node.test))))
        node.test = _at(node, _method(branch, "then"))
        other = _at(node, ast.If(_method(branch, "other"), [*puts, *node.orelse, *_nothing()], []))
        end = _at(node, ast.If(_method(branch, "end"), [*_puts(node, branch, names & live.after), *_nothing()], []))
        node.orelse = []
        return [assignment, node, other, end]

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.count += 1
        node.test = _exit("holds", self.visit(node.test))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if not _may_wait(node.body, node.orelse):
            return node
        self.count += 1
        return _at(node, _ask("choose", _condition(node.test), _later(node.body), _later(node.orelse)))

    def _name(self) -> str:
        self.count += 1
        return f"{PREFIX}{self.count}"


def _is_append(call: Any) -> bool:
    """True for ``name.append(value)``."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and isinstance(call.func.value, ast.Name)
        and len(call.args) == 1
        and not call.keywords
        and not isinstance(call.args[0], ast.Starred)
    )


def _jumps(loop: ast.For) -> bool:
    """True for a loop whose rounds may be left, as far as it is still written so."""
    todo, jumps = [*loop.body], bool(loop.orelse)
    while todo and not jumps:
        node = todo.pop()
        jumps = isinstance(node, (ast.Break, ast.Continue, ast.Return))
        if not isinstance(node, (ast.For, ast.While, *_SCOPES)):
            todo += ast.iter_child_nodes(node)  # type: ignore[arg-type]
    return jumps


def _plain_target(target: ast.expr) -> bool:
    """True for a name, and for tuples of such."""
    if isinstance(target, ast.Tuple):
        return all(map(_plain_target, target.elts))
    return isinstance(target, ast.Name)


def _target(target: ast.expr) -> ast.Constant:
    """The names of a target, as nested tuples."""

    def names(node: Any) -> Any:
        return node.id if isinstance(node, ast.Name) else tuple(map(names, node.elts))

    return ast.Constant(names(target))


def _site(node: Any, names: Any, live: Any, changed: Any, lists: frozenset[str] = frozenset()) -> ast.Constant:
    """The arguments of `names.Site`, as one constant."""
    return _constant(
        (
            node.lineno,
            node.col_offset,
            tuple(sorted(names)),
            tuple(sorted(names & live.head)),
            tuple(sorted(names & live.after)),
            tuple(sorted(changed)),
            getattr(node, STOP, None),
            tuple(sorted(lists)),
        )
    )


def _is_call_of(node: ast.AST, names: frozenset[str], most: int) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        and not node.keywords
        and 1 <= len(node.args) <= most
        and not any(isinstance(arg, ast.Starred) for arg in node.args)
    )


def _is_lenient(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Name) or node.func.id != "zip" or len(node.keywords) != 1:
        return False
    value = node.keywords[0].value
    return node.keywords[0].arg == "strict" and isinstance(value, ast.Constant) and not value.value


def _lazy(node: ast.expr) -> ast.expr:
    """An iterable whose `range`, `enumerate`, `zip` and `reversed` the trace may see through."""
    if isinstance(node, ast.Call) and _is_lenient(node):
        node.keywords = []  # `strict=False` of zip, which is the default
    if not _is_call_of(node, _LAZY, 64):
        return node
    assert isinstance(node, ast.Call)
    args = node.args
    if node.func.id != "range":  # type: ignore[attr-defined]
        args = [_lazy(arg) for arg in args]
    return _at(node, _ask("lazy", node.func, *args))


def _leaves(node: ast.stmt) -> bool:
    """True for the statement by which `jumps` leaves a loop."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id.startswith(FLAG)


def _stops(node: Any, loop: str) -> None:
    """Have the statement that leaves a loop ask the trace."""
    last = node.body[-1]
    if _leaves(last):
        last.test = _at(last, _ask("stops", ast.Name(loop, ast.Load()), last.test))


def _nothing() -> list[ast.stmt]:
    return [ast.Pass()]


def _may_wait(*nodes: ast.AST) -> bool:
    """True for expressions that may be the body of a function: they bind no name."""
    return not any(isinstance(n, ast.NamedExpr) for node in nodes for n in ast.walk(node))


def _later(node: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), node)


def _condition(node: ast.expr) -> ast.expr:
    """An expression of which the truth matters, with what Python asks for the truth on the way."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _at(node, _ask("negation", _condition(node.operand)))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        names = [_COMPARED.get(type(op)) for op in node.ops]
        if None not in names and _may_wait(*node.comparators):
            later = map(_later, node.comparators)
            return _at(node, _ask("chained", _constant(tuple(names)), node.left, *later))
    if isinstance(node, ast.BoolOp) and _may_wait(*node.values[1:]):
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _both(name, node, [_condition(value) for value in node.values])
    return node


def _exit(what: str, node: ast.expr) -> ast.expr:
    """A condition on which a statement ``raises``, or which ``holds`` where none is raised.

    What stands behind an ``or``, or an ``and``, is asked where no exception has been raised so far:
    each part is an exit of its own.
    """
    is_raise = what == "raises"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _at(node, ast.UnaryOp(ast.Not(), _exit("holds" if is_raise else "raises", node.operand)))
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or if is_raise else ast.And):
        return _at(node, ast.BoolOp(node.op, [_exit(what, value) for value in node.values]))
    return _at(node, _ask(what, _condition(node)))


def _both(name: str, node: ast.expr, values: list[ast.expr]) -> ast.expr:
    expr = values.pop()
    while values:
        expr = _at(node, _ask(name, values.pop(), _later(expr)))
    return expr


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _ask(what: str, *args: ast.expr) -> ast.Call:
    return _method(SOURCE, what, *args)


def _method(name: str, what: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(name, ast.Load()), what, ast.Load()), list(args), [])


def _puts(node: ast.AST, loop: str, names: Any) -> list[ast.stmt]:
    """Statements that give names the values that the trace has for them."""
    if not names:
        return []

    def puts(what: str = "puts") -> ast.expr:
        return ast.Attribute(ast.Name(loop, ast.Load()), what, ast.Load())

    each: list[ast.stmt] = [
        ast.If(
            ast.Compare(ast.Constant(name), [ast.In()], [puts()]),
            [
                ast.Assign([ast.Name(name, ast.Store())], ast.Subscript(puts(), ast.Constant(name), ast.Load())),
                ast.If(
                    ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [puts("unbound")]),
                    [ast.Delete([ast.Name(name, ast.Del())])],
                    [],
                ),
            ],
            [],
        )
        for name in sorted(names)
    ]
    return [_at(node, ast.If(puts(), each, []))]


def _at(where: Any, tree: Any) -> Any:
    """Give new nodes the place of the source that they stand for, on one line."""
    node: Any
    for node in ast.walk(tree):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            node.lineno, node.col_offset = where.lineno, where.col_offset
            # A call that spans lines is said to be on the last one.
            node.end_lineno, node.end_col_offset = where.lineno, where.col_offset
    return tree
