"""Which code takes the number of an array that requires gradients, and whether it would lose them.

C code asks for numbers by ``__float__`` and does not say what for. Users who want one write ``float(x)``, a
format, or a comparison; stores in ndarrays and functions that compute with the number lose a gradient that
plain NumPy has. The instruction of the calling frame tells them apart.
"""

from __future__ import annotations

import dis
import types
from typing import Any, NamedTuple

import numpy as np

_STORE = "an array that requires gradients is written to an ndarray, which would lose them"
_STORE_HINT = (
    "make the other array with pf.array(np.zeros(…)), or fill one by np.broadcast_to(x, shape); "
    "for numbers alone write x.data"
)
_NUMPY = "NumPy takes the number of an array that requires gradients, which would lose them"
_NUMPY_HINT = (
    "compute with it outside of the call, as in c.sum() + x for c.sum(initial=x); for the number alone write float(x)"
)
_NOWHERE = object()
# Functions of `math` and `cmath` whose results have no gradient.
_CONSTANT = frozenset({"isnan", "isinf", "isfinite", "isclose", "floor", "ceil", "trunc", "ulp"})
_OF_ARRAYS = frozenset({*dir(np.ndarray), *dir(np.ufunc)})
_MOST = 1000
_calls: dict[int, tuple[types.CodeType, dict[int, _Instruction]]] = {}


class _Instruction(NamedTuple):
    """What a frame is at.

    Attributes:
        stores: True for ``a[i] = x``.
        base: opcode name and name of what the called function is looked up in, or is itself; None = it is no
            call, or its function is no name.
        path: the attributes on the way to the function.
    """

    stores: bool
    base: tuple[str, str] | None
    path: tuple[str, ...]


def what_loses(frame: types.FrameType) -> tuple[str, str] | None:
    """What is wrong and what to write instead, if ``frame`` would lose a gradient with a number; else None."""
    if (frame.f_globals.get("__name__") or "").startswith("numpy."):
        fills = frame.f_code.co_name == "full"
        return (_STORE, _STORE_HINT) if fills else (_NUMPY, _NUMPY_HINT)
    at = _instruction(frame.f_code, frame.f_lasti)
    if at.stores:
        return _STORE, _STORE_HINT
    function = _function(frame, at)
    if function is _NOWHERE:
        return (_NUMPY, _NUMPY_HINT) if at.path and at.path[-1] in _OF_ARRAYS else None
    if isinstance(function, type):
        return None  # float, int, np.float64: this is how users ask for the number
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None) or ""
    if module in ("math", "cmath"):
        what = f"{module}.{name} takes the number of an array that requires gradients, which would lose them"
        numpy = f"np.{name}(x)" if hasattr(np, name) else "a function of NumPy's"
        return None if name in _CONSTANT else (what, f"write {numpy}; for the number alone write float(x)")
    if module == "_operator" and name == "setitem":
        return _STORE, _STORE_HINT
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ndarray) and name in ("fill", "__setitem__"):
        return _STORE, _STORE_HINT
    of_numpy = isinstance(owner, (np.ndarray, np.ufunc)) or module.partition(".")[0] in ("numpy", "scipy")
    return (_NUMPY, _NUMPY_HINT) if of_numpy else None


def _function(frame: types.FrameType, at: _Instruction) -> Any:
    """What a frame calls; `_NOWHERE` if that is not told by names of variables, modules and ndarrays."""
    if at.base is None:
        return _NOWHERE
    opcode, name = at.base
    value = _NOWHERE if opcode == "LOAD_GLOBAL" else frame.f_locals.get(name, _NOWHERE)
    for names in (frame.f_globals, frame.f_builtins):
        if value is _NOWHERE and opcode in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = names.get(name, _NOWHERE)
    for name in at.path:
        if type(value) not in (types.ModuleType, np.ndarray, np.ufunc):
            return _NOWHERE  # to look into other objects may run code
        value = getattr(value, name, _NOWHERE)
    return value


def _instruction(code: types.CodeType, place: int) -> _Instruction:
    """The instruction at a place of a code object, looked up once."""
    entry = _calls.get(id(code))
    if entry is None:
        if len(_calls) >= _MOST:
            _calls.clear()
        entry = _calls[id(code)] = (code, {})  # which keeps the code, so that its id stays its own
    at = entry[1].get(place)
    if at is None:
        at = entry[1][place] = _read(code, place)
    return at


def _read(code: types.CodeType, place: int) -> _Instruction:
    before = [i for i in dis.get_instructions(code) if i.offset <= place]
    last = before[-1]
    if "CALL" not in last.opname or last.positions is None or last.positions.col_offset is None:
        return _Instruction(last.opname == "STORE_SUBSCR", None, ())
    # The function is what begins where the call begins, as names of arguments do in Python 3.13.
    start = last.positions.lineno, last.positions.col_offset
    loads = [
        i
        for i in before[:-1]
        if i.positions is not None
        and (i.positions.lineno, i.positions.col_offset) == start
        and i.positions[:4] != last.positions[:4]
        and i.opname not in ("PUSH_NULL", "KW_NAMES", "LOAD_CONST", "CACHE", "NOP")
    ]
    path = []
    while loads and loads[-1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        path.append(loads.pop().argval)
    is_name = len(loads) == 1 and loads[0].opname.startswith("LOAD_") and isinstance(loads[0].argval, str)
    base = (loads[0].opname, loads[0].argval) if is_name else None
    return _Instruction(False, base, tuple(reversed(path)))
