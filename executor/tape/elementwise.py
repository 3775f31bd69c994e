"""A short way for elementwise operations: runs on small arrays consist of little else than ways.

Nothing here has results of its own: whatever is not usual goes the way of all operations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.importers.tracing.leaves import NUMBERS
from ...dialect.ir.gradient_mode import MODE
from .array import Array, Version
from .node import TAPE, USERS, Edge, users_place
from .op_node import OpNode, evaluated, noted
from .plans import ElementwisePlans, op_plans
from .saved import Versions, keep

_NO_ATTRS: dict[str, Any] = {}
_NONE = (None,)
_NOTHING: Versions = []
_new: Any = object.__new__
_frame = sys._getframe
# What the short way takes beside arrays of the tape, without further questions.
PLAIN = frozenset({np.ndarray, *NUMBERS, *(np.dtype(c).type for c in "?bhilqBHILQefdFD")})
Otherwise = Callable[..., Any]


def unary(plans: ElementwisePlans, otherwise: Otherwise) -> Callable[[Any], Any]:
    """What evaluates an elementwise op of one operand, and notes it.

    Args:
        plans: of the op.
        otherwise: is called with an operand that is no array of the tape.
    """
    numpy, known = plans.numpy, plans.known

    def call(a: Any) -> Any:
        if type(a) is not Array:
            return otherwise(a)
        x = a.data
        node = a._node if a.base is None else a.node
        y = numpy(x)
        if node is None or not MODE.on:
            return Array(y)
        shape, dtype = y.shape, y.dtype
        plan = None
        if dtype.kind == "f" and x.dtype is dtype and not TAPE.special:
            key = dtype.num * 64 + 1
            plan = known.get(key) or plans.plan(key, (x,))
        if plan is None:
            return noted(op_plans(plans.op, _NO_ATTRS), (a,), (x,), [(node, a.index)], y)
        versions = _NOTHING
        if plan.kept:
            version = a._version or a.version
            versions = [(version, version.count)]
        else:
            x = None
        made: OpNode = _new(OpNode)
        made.seq = TAPE.next_seq()
        made.edges = [(node, a.index)]
        made.metas = ((shape, dtype),)
        made.hooked = None
        frame = _frame(1)
        code = frame.f_code
        made.place = (code, frame.f_lasti) if code.co_filename in USERS else users_place()
        made.plan = plan
        out: Array = _new(Array)
        out.data, out._node, out.index, out.base, out._more = y, made, 0, None, None
        if plan.kept_results:
            version = out._version = Version()
            made.saved = (x,), (y,), [*versions, (version, 0)]
        else:
            out._version = None
            made.saved = (x,), _NONE, versions
        return out

    return call


def binary(plans: ElementwisePlans, otherwise: Otherwise) -> Callable[[Any, Any], Any]:
    """What evaluates an elementwise op of two operands, and notes it.

    Args:
        plans: of the op.
        otherwise: is called with operands of which one is neither an array nor a number, or none
            is an array.
    """
    numpy, known = plans.numpy, plans.known

    def call(a: Any, b: Any) -> Any:
        first: Edge = None
        second: Edge = None
        key: Any = 0
        if type(a) is Array:
            x = a.data
            node = a._node if a.base is None else a.node
            if node is not None:
                first = node, a.index
                key = 1
        elif type(a) in NUMBERS:
            x = a
            key = 16
        elif type(a) in PLAIN:
            x = a
        else:
            return otherwise(a, b)
        if type(b) is Array:
            z = b.data
            node = b._node if b.base is None else b.node
            if node is not None:
                second = node, b.index
                key |= 2
        elif type(b) in NUMBERS:
            z = b
            key |= 32
        elif type(b) in PLAIN:
            z = b
        else:
            return otherwise(a, b)
        if key & 48 == 48:
            return otherwise(a, b)
        y = numpy(x, z)
        if not key & 3 or not MODE.on:
            return Array(y)
        shape, dtype = y.shape, y.dtype
        plan = None
        if dtype.kind == "f" and not TAPE.special:
            if key & 16:
                if z.dtype is dtype and x:  # not for 0.0 and -0.0, which are one key
                    key = key + dtype.num * 64, type(x), x
                    plan = known.get(key) or plans.plan(key, (x, z))
            elif x.dtype is dtype and x.shape == shape:
                if key & 32:
                    if z:
                        key = key + dtype.num * 64, type(z), z
                        plan = known.get(key) or plans.plan(key, (x, z))
                elif z.dtype is dtype and z.shape == shape:
                    key += dtype.num * 64
                    plan = known.get(key) or plans.plan(key, (x, z))
        if plan is None:
            return noted(op_plans(plans.op, _NO_ATTRS), (a, b), (x, z), [first, second], y)
        kept = plan.kept
        versions = _NOTHING
        if kept:
            versions = []
            if 0 not in kept:
                x = None
            elif type(a) is Array:
                version = a._version or a.version
                versions.append((version, version.count))
            else:
                x = keep(x, a, versions)
            if 1 not in kept:
                z = None
            elif type(b) is Array:
                version = b._version or b.version
                versions.append((version, version.count))
            else:
                z = keep(z, b, versions)
        else:
            x = z = None
        made: OpNode = _new(OpNode)
        made.seq = TAPE.next_seq()
        made.edges = [first, second]
        made.metas = ((shape, dtype),)
        made.hooked = None
        frame = _frame(1)
        code = frame.f_code
        made.place = (code, frame.f_lasti) if code.co_filename in USERS else users_place()
        made.plan = plan
        out: Array = _new(Array)
        out.data, out._node, out.index, out.base, out._more = y, made, 0, None, None
        if plan.kept_results:
            version = out._version = Version()
            made.saved = (x, z), (y,), [*versions, (version, 0)]
        else:
            out._version = None
            made.saved = (x, z), _NONE, versions
        return out

    return call


def otherwise(plans: ElementwisePlans) -> Otherwise:
    """What evaluates the op like any other one."""
    return lambda *operands: evaluated(op_plans(plans.op, _NO_ATTRS), operands)


__all__ = ["PLAIN", "binary", "otherwise", "unary"]
