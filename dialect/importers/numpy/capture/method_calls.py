"""Calls by users' code of what it got from an object: ``self.layer(x)``, ``fs[0](x)``.

A trace supplies the globals through which code reads names, but not attributes and items. So code
that calls an attribute or an item is compiled anew from its source, and passes each callee through
`CALLEE` first. Nothing else changes: lines, columns and names are the user's. Code without source,
or whose source does not match, runs as it is.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import dis
import functools
import itertools
import linecache
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..python.users_code import IS, PREFIX, SOURCE, is_users_name

CALLEE = "__profuse_callee__"  # a global name that user code cannot have by accident
_KEPT = 1024  # code objects remembered
_LONGEST = 2000  # lines of a function that is worth compiling again
# Builtins that look at the frame that calls them, which must stay the user's.
_OF_FRAMES = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
# Names of methods of arrays, containers and texts, whose callees need no look; `fill` does.
_KNOWN = frozenset(name for kind in (np.ndarray, list, dict, set, str, tuple, int, float) for name in dir(kind)) - {
    "fill"
}
# Modules whose functions need no look: attributes are substituted, or have no effects.
_SUBSTITUTED = frozenset(
    {
        "numpy",
        "numpy.linalg",
        "numpy.fft",
        "numpy.random",
        "profuse",
        "math",
        "operator",
        "time",
        "random",
        "secrets",
        "uuid",
        "contextlib",
        "scipy.special",
    }
)
_CONVERSIONS = frozenset({"int", "float", "bool", "complex"})
_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag

_made: dict[tuple, types.CodeType] = {}
_unread: set[tuple] = set()  # of these, the ones whose source would have been needed


def with_callees(function: types.FunctionType, loops: bool = False, branches: bool = False) -> types.CodeType:
    """Code of a function that passes its callees through `CALLEE`; its own if none needs it.

    ``loops``: its loops ask the trace what becomes of them, too (see `convert`); ``branches``: so
    do its branches, where it has no loops.
    """
    code = function.__code__
    key = (code.co_filename, code, loops, branches)
    result = _made.get(key)
    if result is None:
        result, is_read = code, False
        callees = _calls_attributes(code, function)
        loops = branches or (loops and _has_loops(code))
        if callees or loops or any(map(has_identities, codes_in(code))):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                compiled = _compiled(code, function, callees, loops, branches)
                result, is_read = compiled or code, compiled is not None
        if len(_made) >= _KEPT:
            _made.clear()
            _unread.clear()
        _made[key] = result
        if loops and not is_read:
            _unread.add(key)
    return result


def is_unread(function: types.FunctionType, loops: bool, branches: bool) -> bool:
    """True where `with_callees` was to convert loops or branches, and has not found their source.

    There is none of code from `exec`, of ``python -c``, and of files that have been edited since.
    """
    code = function.__code__
    return bool(_unread) and (code.co_filename, code, loops, branches) in _unread


def asks_source(code: types.CodeType) -> bool:
    """True for a code object whose loops ask the trace."""
    return any(SOURCE in inner.co_names for inner in codes_in(code))


def asks_identities(code: types.CodeType) -> bool:
    """True for a code object that compares by ``is``, and asks about it."""
    return any(IS in inner.co_names for inner in codes_in(code))


@functools.lru_cache(maxsize=4096)
def has_identities(code: types.CodeType) -> bool:
    """True for a code object that compares by ``is``, but with None and the like."""
    if _IS_OP not in code.co_code[::2]:
        return False
    steps = itertools.pairwise(_instructions(code))
    return any(
        after == _IS_OP and (before != _LOAD_CONST or type(code.co_consts[arg]) is bool)
        for (before, arg), (after, _) in steps
    )


def _has_loops(code: types.CodeType) -> bool:
    return any(not _BACK.isdisjoint(inner.co_code[::2]) for inner in codes_in(code))


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code, and the code of all that is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


_OPS = dis.opmap
_FREE = frozenset(number for name, number in _OPS.items() if name.endswith("_DEREF"))
_LOAD_METHOD = _OPS.get("LOAD_METHOD", -1)
_LOAD_ATTR = _OPS["LOAD_ATTR"]
_LOAD_SUPER_ATTR = _OPS.get("LOAD_SUPER_ATTR", -1)  # of `super()`, since Python 3.12
_LOAD_CONST = _OPS["LOAD_CONST"]
_LOAD_GLOBAL = _OPS["LOAD_GLOBAL"]
_LOAD_NAME = _OPS["LOAD_NAME"]  # in the body of a class
_PUSH_NULL = _OPS["PUSH_NULL"]
_EXTENDED = _OPS["EXTENDED_ARG"]
_CACHE = _OPS["CACHE"]
_IS_OP = _OPS["IS_OP"]
_BACK = frozenset(code for name, code in _OPS.items() if "BACKWARD" in name)
_METHOD_FLAG = sys.version_info >= (3, 12)  # LOAD_ATTR has a bit for it since then


def _instructions(code: types.CodeType) -> Iterator[tuple[int, int]]:
    """Opcodes with their arguments, without caches."""
    raw, extended = code.co_code, 0
    for at in range(0, len(raw), 2):
        opcode, arg = raw[at], raw[at + 1] | extended
        extended = arg << 8 if opcode == _EXTENDED else 0
        if opcode not in (_EXTENDED, _CACHE):
            yield opcode, arg


@functools.lru_cache(maxsize=4096)
def values_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Names of variables, and of attributes, that code takes as values: it does not call them.

    The variables are global or free, and the code asks for no part of them.
    """
    variables, attributes = set(), set()
    for inner in codes_in(code):
        before, steps = -1, [*_instructions(inner), (-1, 0)]
        for (opcode, arg), (after, _) in itertools.pairwise(steps):
            is_asked = after in (_LOAD_ATTR, _LOAD_METHOD)
            if opcode == _LOAD_GLOBAL and not (is_asked or arg & 1):
                variables.add(inner.co_names[arg >> 1])
            elif opcode == _LOAD_NAME:
                variables.add(inner.co_names[arg])
            elif opcode in _FREE and not (is_asked or _PUSH_NULL in (before, after)):
                variables.add(inner._varname_from_oparg(arg))  # type: ignore[attr-defined]
            elif opcode == _LOAD_ATTR and not (_METHOD_FLAG and arg & 1):
                attributes.add(inner.co_names[arg >> 1 if _METHOD_FLAG else arg])
            before = opcode
    return frozenset(variables), frozenset(attributes)


def _calls_attributes(code: types.CodeType, function: types.FunctionType) -> bool:
    """True unless every callee is a global, in a `_SUBSTITUTED` module or a `_KNOWN` method."""
    scope = function.__globals__
    for inner in codes_in(code):
        names = inner.co_names
        in_module = called_later = False
        for opcode, arg in _instructions(inner):
            if opcode == _LOAD_SUPER_ATTR:
                return True
            if opcode == _PUSH_NULL:
                # Where the callee before has got its own, this is that of one among the arguments.
                if not in_module or called_later:
                    return True
            elif opcode == _LOAD_GLOBAL:
                value = dict.get(scope, names[arg >> 1])
                if _is_users_class_or_object(value):
                    return True
                if arg & 1 and names[arg >> 1] in _CONVERSIONS and value is None:
                    return True
                in_module = isinstance(value, types.ModuleType) and value.__name__ in _SUBSTITUTED
                called_later = bool(arg & 1)  # this global, or an attribute of it
            elif opcode == _LOAD_METHOD or (_METHOD_FLAG and opcode == _LOAD_ATTR and arg & 1):
                name = names[arg >> 1 if _METHOD_FLAG else arg]
                if not in_module and name not in _KNOWN:
                    return True
                in_module = False
            elif opcode == _LOAD_ATTR:
                if called_later and not in_module:
                    return True
            else:
                in_module = called_later = False
    return False


def _imported(code: types.CodeType) -> set[str]:
    """Globals that the code takes for modules.

    Python compiles calls of their attributes in another way, which new code has to keep.
    """
    out = set()
    for inner in codes_in(code):
        steps = [*_instructions(inner), (-1, 0)]
        for (one, name), (two, flag), (three, _) in zip(steps, steps[1:], steps[2:], strict=False):
            plain = two == _LOAD_ATTR and not (_METHOD_FLAG and flag & 1)
            if one == _LOAD_GLOBAL and plain and (name & 1 or three == _PUSH_NULL):
                out.add(inner.co_names[name >> 1])
    return out


def _is_users_class_or_object(value: Any) -> bool:
    """True for a class or object whose call runs an ``__init__`` or ``__call__`` of the user's."""
    kind = value if isinstance(value, type) else type(value)
    method = getattr(kind, "__init__" if isinstance(value, type) else "__call__", None)
    return isinstance(method, types.FunctionType) and is_users_name(method.__module__)


class _Callees(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        callee = node.func
        if isinstance(callee, ast.Name) and callee.id in _OF_FRAMES:
            return node
        if isinstance(callee, ast.Attribute) and _is_made(callee.value):
            return node
        name = ast.copy_location(ast.Name(CALLEE, ast.Load()), callee)
        node.func = ast.copy_location(ast.Call(name, [callee], []), callee)
        return node


def _is_made(node: ast.AST) -> bool:
    """True for a name that `source.convert` has written."""
    return isinstance(node, ast.Name) and (node.id == SOURCE or node.id.startswith(PREFIX))


def _compiled(
    code: types.CodeType, function: types.FunctionType, callees: bool, loops: bool, branches: bool
) -> types.CodeType | None:
    last = max((line for inner in codes_in(code) for *_, line in inner.co_lines() if line), default=code.co_firstlineno)
    ends = [p[1] for inner in codes_in(code) for p in inner.co_positions() if p[1]]
    last = max([last, *ends])
    first = code.co_firstlineno
    if last - first > _LONGEST:
        return None
    lines = linecache.getlines(code.co_filename, dict(function.__globals__))
    for node in _definitions(code, lines, first, last):
        if _code_of(node, code, function) == code:
            if loops:
                from ..source.convert import convert  # few functions have loops

                loops = convert(node, branches)
            if callees:
                node = _Callees().visit(node)
            if any(map(has_identities, codes_in(code))):
                from ..world.identities import Identities  # few functions have any

                node = Identities().visit(node)
            return _code_of(node, code, function)
    return None


def _definitions(code: types.CodeType, lines: list[str], first: int, last: int) -> Iterator[Any]:
    """The definitions that may be that of code in these lines, counted from 1, of its file.

    The lines are parsed by themselves, which is quick; those that do not parse so, as an entry of
    a dict does not, are looked for in all of the file.
    """
    part = lines[first - 1 : last]
    if not part:
        return
    indented = part[0][:1].isspace()
    text = "".join(["if 1:\n", *part] if indented else part)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        nodes = _candidates(_tree("".join(lines)), code)
        yield from copy.deepcopy([node for node in nodes if first - 1 <= node.lineno <= last])
        return
    ast.increment_lineno(tree, first - 1 - indented)
    yield from _candidates(tree, code)


@functools.lru_cache(maxsize=16)
def _tree(text: str) -> ast.AST:
    return ast.parse(text)


def _candidates(tree: ast.AST, code: types.CodeType) -> list[Any]:
    if code.co_name == "<lambda>":
        return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [n for n in ast.walk(tree) if isinstance(n, kinds) and n.name == code.co_name]


def _code_of(node: Any, code: types.CodeType, function: types.FunctionType) -> types.CodeType | None:
    """The code object of a function's definition, compiled within its class and free variables."""
    body: Any = node
    line = {"lineno": node.lineno, "col_offset": 0, "end_lineno": node.lineno, "end_col_offset": 0}
    if isinstance(node, ast.Lambda):
        body = ast.Expr(node, **line)
    path = function.__qualname__.split(".")
    if len(path) > 1 and path[-2].isidentifier():
        # The class gives its name to private names, and `super` looks for it.
        body = ast.parse(f"class {path[-2]}: pass").body[0]
        ast.increment_lineno(body, node.lineno - 1)
        body.body = [ast.Expr(node, **line) if isinstance(node, ast.Lambda) else node]
    outer: Any = ast.parse("def _outer(): pass")
    maker = outer.body[0]
    names = [n for n in code.co_freevars if n != "__class__" or len(path) < 2]
    maker.args.args = [ast.arg(name, **line) for name in names]
    # The definition binds a global name, unless that is one of the free variables.
    defined = (body, node)
    own = {d.name for d in defined if not isinstance(d, (ast.Expr, ast.Lambda))} - {*names}
    maker.body = [*([ast.Global(sorted(own), **line)] if own else []), body]
    imports = [ast.alias(name, **line) for name in sorted(_imported(code))]
    if imports:
        outer.body.insert(0, ast.Import(imports, **line))
    module = compile(outer, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    for inner in codes_in(module):
        if inner.co_name == code.co_name and inner.co_firstlineno == code.co_firstlineno:
            # The flags of compiled code would say that it is nested.
            return inner.replace(co_flags=code.co_flags)
    return None
