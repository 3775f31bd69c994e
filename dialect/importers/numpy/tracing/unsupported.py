"""Errors for NumPy calls without a graph form, which list all such calls of a function at once."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....errors import TraceError
from .current import trace_error, user_loc
from .handler_tables import COMPOSED, CREATION, UFUNCS, function_handler, load_all
from .recorder import Recorder

_WAYS_OUT = {"tolist": "keep it an array", "fill": "use np.full"}


def unsupported_call(rec: Recorder, target: Any, name: str | None = None) -> TraceError:
    """The error for a call of ``target``; lists every unsupported call of the traced function."""
    shown = name or name_of(target)
    loc = user_loc()
    others = [
        f"{other} ({where}:{line})"
        for other, where, line in unsupported_names(rec.fn)
        if other != shown or (loc is not None and line != loc.line)
    ]
    listed = ", ".join(dict.fromkeys(others))
    also = f"; also unsupported in this function: {listed}" if listed else ""
    hint = _WAYS_OUT.get(shown.rsplit(".", 1)[-1]) or "call it outside of the traced function"
    return trace_error(f"{shown} is not supported while tracing{also}", hint)


def unsupported_method(rec: Recorder, name: str) -> TraceError:
    """The error for an ndarray attribute or method that has no graph form."""
    return unsupported_call(rec, None, f"ndarray.{name}")


def name_of(target: Any) -> str:
    """The name by which users write a NumPy callable: ``np.linalg.inv``, ``scipy.special.gamma``."""
    name = getattr(target, "__name__", str(target))
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        if getattr(module, name, None) is target:
            return f"{prefix}.{name}"
    module_name = getattr(target, "__module__", "") or ""
    return f"{module_name}.{name}" if module_name else name


def is_unsupported(target: Any) -> bool:
    """True for NumPy callables on arrays without a handler; types and helpers are fine."""
    if isinstance(target, np.ufunc):
        return not is_supported(target)
    if getattr(target, "__name__", "") in CREATION:
        return False
    # Only functions that dispatch on their array arguments carry this attribute.
    dispatches = callable(target) and hasattr(target, "_implementation")
    return dispatches and function_handler(target) is None


def is_supported(ufunc: np.ufunc) -> bool:
    """True if calling this ufunc on traced values works."""
    native = ufunc.__name__ in UFUNCS or ufunc.__name__ in COMPOSED
    return native or function_handler(ufunc) is not None


def unsupported_names(fn: Any) -> list[tuple[str, str, int]]:
    """(name, file, line) of unsupported NumPy calls in ``fn`` and what it calls in its module."""
    load_all()
    out: list[tuple[str, str, int]] = []
    for code, scope in _codes(fn):
        for target, line in _numpy_references(code, scope):
            try:
                bad = is_unsupported(target)
            except TypeError:
                continue  # unhashable: no function
            if bad:
                out.append((name_of(target), code.co_filename, line))
    return out


def _codes(fn: Any) -> Iterator[tuple[types.CodeType, dict[str, Any]]]:
    """Code objects of a function, its inner functions, and functions of its module it names."""
    todo: list[Any] = [fn]
    seen: set[types.CodeType] = set()
    while todo:
        function = todo.pop()
        function = getattr(function, "__func__", function)
        function = getattr(function, "__wrapped__", function)
        code = getattr(function, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        scope = dict(function.__globals__)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                scope[name] = cell.cell_contents
            except ValueError:
                continue  # not bound yet
        for inner in _nested(code):
            yield inner, scope
            for name in (*inner.co_names, *inner.co_freevars):
                value = scope.get(name)
                if isinstance(value, types.FunctionType) and (value.__module__ == function.__module__):
                    todo.append(value)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _numpy_references(code: types.CodeType, scope: dict[str, Any]) -> Iterator[tuple[Any, int]]:
    """The objects that ``np.a.b`` chains in the code refer to, with their lines."""
    target: Any = None
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        line = (position.lineno if position else None) or line
        name = instruction.argval
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"):
            target = scope.get(name)
            if getattr(target, "_implementation", None) or isinstance(target, np.ufunc):
                yield target, line
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if isinstance(target, types.ModuleType) and target.__name__.split(".")[0] == "numpy":
                target = getattr(target, str(name), None)
                if not isinstance(target, types.ModuleType):
                    yield target, line
            else:
                target = None
        else:
            target = None
