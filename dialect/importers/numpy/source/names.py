"""The variables of a statement that a trace records."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..tracing.operators import Recording
from ..tracing.traced import TracedArray
from ..tracing.traced_scalar import TracedScalar

UNBOUND = object()  # what a trace says of a variable that Python has not bound
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Site(NamedTuple):
    """A statement of the source, as `convert` describes it.

    Attributes:
        line: where it is.
        column: where it is.
        names: variables that it may bind.
        head: of these, the ones that a round may read before it binds them.
        after: of these, the ones that may be read behind the statement.
        changed: of the targets of a ``for``, the ones that its body binds as well.
        stop: the variable that says whether the loop is left, see `jumps`.
        lists: variables of lists to which each round appends, see `appends`.
    """

    line: int
    column: int
    names: tuple[str, ...]
    head: tuple[str, ...]
    after: tuple[str, ...]
    changed: tuple[str, ...]
    stop: str | None
    lists: tuple[str, ...] = ()


def same(a: Any, b: Any) -> bool:
    """True if a variable that had value ``a``, and has ``b``, certainly has not changed."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    if kind in _PLAIN:
        return repr(a) == repr(b)
    if issubclass(kind, np.generic):
        return bool(a.dtype == b.dtype) and a.tobytes() == b.tobytes()
    if kind is TracedScalar:
        return bool(a._dim == b._dim and a._value == b._value)
    if kind is TracedArray:
        return bool(a.value == b.value and a.storage is b.storage)
    return False


def is_carried(value: Any) -> bool:
    """True for an array or a number, which is one value of a graph."""
    return isinstance(value, (Recording, np.generic)) or type(value) in (bool, int, float, complex)


def may_carry(value: Any) -> bool:
    """True for what a loop may carry: arrays, numbers, and tuples of these."""
    if type(value) is tuple:
        return len(value) > 0 and all(map(may_carry, value))
    return is_carried(value)


def read(frame: types.FrameType, names: Mapping[str, Any] | tuple[str, ...]) -> dict[str, Any]:
    """The bound ones of some variables of a frame."""
    variables = frame.f_locals
    return {name: variables[name] for name in names if name in variables}
