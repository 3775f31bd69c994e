"""The registration of handlers, and the one way by which a NumPy call reaches its handler.

A handler is a small function whose parameters carry NumPy's names.  This module binds a call by
NumPy's own signature, drops arguments left at their defaults, and passes the rest to the handler by
name. For a parameter that the handler does not have, it drops harmless values and refuses others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ....trees.leaves import NUMBERS
from ..tracing.current import trace_error
from ..tracing.handler_tables import CREATION, FUNCTIONS, METHODS, Handler
from ..tracing.operators import op
from ..tracing.outputs import note_order, write_out
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar

# Arguments that say where or how a result is laid out, not what it is.
_HARMLESS = {
    "order": ("C", "K", "A"),
    "casting": ("same_kind", "unsafe"),
    "subok": (True, False),
    "copy": (True, False, None),
    "device": (None, "cpu"),
    "like": (None,),
    "mode": ("raise",),
    "where": (True,),
    "optimize": None,
    "method": ("linear",),
    "kind": (None,),
    "stable": (None, True, False),
}
_WAY_OUT = {
    "where": "use np.where(condition, x, neutral_element) on the operand",
    "casting": "convert with astype",
    "order": "results have no memory order of their own; drop order=",
    "mode": "clip the indices with np.clip first",
}


# Functions whose results lie in memory as those of the ops do that they consist of. Of others it is
# known for operands in C order alone.
_LAID_OUT = frozenset(
    {
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "array",
        "array_split",
        "asarray",
        "ascontiguousarray",
        "asfortranarray",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "around",
        "broadcast_arrays",
        "broadcast_to",
        "clip",
        "column_stack",
        "concatenate",
        "copy",
        "cumprod",
        "cumsum",
        "diag",
        "diagonal",
        "diff",
        "dot",
        "dsplit",
        "dstack",
        "einsum",
        "empty",
        "empty_like",
        "expand_dims",
        "eye",
        "flip",
        "fliplr",
        "flipud",
        "full",
        "full_like",
        "hsplit",
        "hstack",
        "identity",
        "imag",
        "inner",
        "linspace",
        "max",
        "mean",
        "min",
        "moveaxis",
        "ones",
        "ones_like",
        "outer",
        "prod",
        "ravel",
        "real",
        "reshape",
        "rollaxis",
        "rot90",
        "round",
        "split",
        "squeeze",
        "stack",
        "std",
        "sum",
        "swapaxes",
        "take",
        "tensordot",
        "trace",
        "transpose",
        "tri",
        "var",
        "vdot",
        "vsplit",
        "vstack",
        "where",
        "zeros",
        "zeros_like",
    }
)


def _note_orders(result: Any, arguments: dict[str, Any]) -> None:
    """Note of results that they lie in C order where the arrays among the arguments do."""
    sources = [x for x in arguments.values() if isinstance(x, Traced) and x.ndim > 1]
    results = result if isinstance(result, (tuple, list)) else (result,)
    for out in results:
        if sources and isinstance(out, Traced) and all(out is not x for x in sources):
            note_order(out, _in_c_order, out, *sources)


def _in_c_order(own: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    if not all(x.flags.c_contiguous for x in sources):
        raise ValueError("NumPy's order is known for arrays in C order alone")
    return own


def numpy_function(*names: str, raw: bool = False, weak: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler for ``np.<name>``.

    Args:
        names: of the functions.
        raw: the handler is called with the arguments as given.
        weak: a Python number given as the first argument stays one, without a dtype of its own;
            most functions make an array of it.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            target = _named(name)
            if target is not None:
                call = handler if raw else bound(target, f"np.{name}", handler, strong=not weak)
                FUNCTIONS[target] = call
        return handler

    return register


def creation_function(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for a function that does not dispatch on traced arguments."""

    def register(handler: Handler) -> Handler:
        for name in names:
            CREATION[name] = bound(getattr(np, name), f"np.{name}", handler)
        return handler

    return register


def array_method(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for ``ndarray.<name>``; it is called with the arguments as given."""

    def register(handler: Handler) -> Handler:
        for name in names:
            METHODS[name] = handler
        return handler

    return register


def refuse_parameter(where: str, name: str) -> Exception:
    """The error for an argument that has no meaning in a graph."""
    return trace_error(f"{where}(…, {name}=…) is not supported while tracing", _WAY_OUT.get(name))


def _named(name: str) -> Any:
    member: Any = np
    for part in name.split("."):
        member = getattr(member, part, None)
    return member


def bound(target: Callable, where: str, handler: Handler, strong: bool = False) -> Handler:
    """``handler``, called with the arguments of ``target`` by name, as the module says."""

    def call(*args: Any, **kwargs: Any) -> Any:
        # Not earlier: inspecting all handlers, and what they stand for, would slow the import.
        accepted = _accepted(handler)
        arguments = _bind(target, where, args, kwargs)
        out = None if "out" in accepted else arguments.pop("out", None)
        for name in list(arguments):
            if name in accepted:
                continue
            allowed = _HARMLESS.get(name, ())
            value = arguments.pop(name)
            if allowed is not None and not _among(value, allowed):
                raise refuse_parameter(where, name)
        first = next((p.name for p in _parameters(target)), None) if strong else None
        if first in arguments:
            arguments[first] = _array_of_number(arguments[first])
        result = handler(**arguments)
        if target.__name__ not in _LAID_OUT:
            _note_orders(result, arguments)
        if out is None:
            return result
        return write_out(where, out, result)

    return call


def _among(value: Any, allowed: tuple[Any, ...]) -> bool:
    if isinstance(value, (Traced, np.ndarray)):
        return False
    return any(value is a or value == a for a in allowed)


def _array_of_number(x: Any) -> Any:
    if isinstance(x, TracedScalar):
        return op("to_tensor", x)
    return np.asarray(x) if type(x) in NUMBERS else x


def _bind(target: Callable, where: str, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name, without those left at (or given as) their default."""
    parameters = _parameters(target)
    out: dict[str, Any] = {}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(positional):
        raise TypeError(f"{where}() takes {len(positional)} arguments but {len(args)} were given")
    for parameter, value in zip(positional, args, strict=False):
        out[parameter.name] = value
    names = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    open_ended = len(names) < len(parameters)
    for name, value in kwargs.items():
        if name in out or not (open_ended or name in names):
            raise TypeError(f"{where}() got an unexpected keyword argument {name!r}")
        out[name] = value
    for p in parameters:
        value = out.get(p.name, p.empty)
        if p.default is not p.empty and value is not p.empty and value is p.default:
            del out[p.name]
        elif value is p.empty and p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            raise TypeError(f"{where}() missing a required argument: {p.name!r}")
    return out


@lru_cache(maxsize=1024)
def _accepted(handler: Handler) -> frozenset[str]:
    return frozenset(inspect.signature(handler).parameters)


@lru_cache(maxsize=1024)
def _parameters(target: Callable) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(target).parameters.values())
