"""A short way for elementwise operations: runs on small arrays consist of little else than ways.

Nothing here has results of its own: whatever is not usual goes the way of all operations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.ir.gradient_mode import MODE, OFF
from ...dialect.trees.leaves import NUMBERS
from .array import Array, Version
from .node import OTHERS, SPECIAL, TAPE, USERS, Edge, next_seq, users_place
from .op_node import OpNode, evaluated, noted
from .plans import ElementwisePlans, OpPlan, op_plans
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
    """The evaluator of an elementwise op of one operand, which notes it.

    Args:
        plans: of the op.
        otherwise: is called with an operand that is no array of the tape.
    """
    numpy, tables, others = plans.numpy, plans.known, op_plans(plans.op, _NO_ATTRS)

    def call(a: Any) -> Any:
        if type(a) is not Array:
            return otherwise(a)
        x = a.data
        node = a._node if a.base is None else a.node
        y = numpy(x)
        if node is None or (OFF and not MODE.on):
            return Array(y)
        shape, dtype = y.shape, y.dtype
        plan = None
        if x.dtype is dtype and not (SPECIAL and TAPE.special):
            table = 9 if shape else 1
            plan = tables[table].get(dtype) or plans.plan(table, dtype, (x,))
        if plan is None:
            return noted(others, (a,), (x,), [(node, a.index)], y)
        versions = _NOTHING
        if plan.keeps:
            version = a._version
            if version is None:
                version = a._version = Version()
            versions = [(version, version.count)]
        else:
            x = None
        return with_node(plan, [(node, a.index)], (x,), y, shape, dtype, versions)

    return call


def binary(plans: ElementwisePlans, otherwise: Otherwise) -> Callable[[Any, Any], Any]:
    """The evaluator of an elementwise op of two operands, which notes it.

    Args:
        plans: of the op.
        otherwise: is called with operands of which one is neither an array nor a number, or none
            is an array.
    """
    numpy, tables, others = plans.numpy, plans.known, op_plans(plans.op, _NO_ATTRS)

    def call(a: Any, b: Any) -> Any:
        first: Edge = None
        second: Edge = None
        table = 0
        if type(a) is Array:
            x = a.data
            node = a._node if a.base is None else a.node
            if node is not None:
                first = node, a.index
                table = 1
        elif type(a) in NUMBERS:
            x = a
            table = 16
        elif type(a) in PLAIN:
            x = a
        else:
            return otherwise(a, b)
        if type(b) is Array:
            z = b.data
            node = b._node if b.base is None else b.node
            if node is not None:
                second = node, b.index
                table |= 2
        elif type(b) in NUMBERS:
            z = b
            table |= 32
        elif type(b) in PLAIN:
            z = b
        else:
            return otherwise(a, b)
        if table >= 48:
            return otherwise(a, b)
        y = numpy(x, z)
        if not table & 3 or (OFF and not MODE.on):
            return Array(y)
        shape, dtype = y.shape, y.dtype
        if shape:
            table |= 8
        plan = None
        if not (SPECIAL and TAPE.special):
            if table < 16:
                if x.dtype is dtype and z.dtype is dtype and x.shape == shape == z.shape:
                    plan = tables[table].get(dtype) or plans.plan(table, dtype, (x, z))
            elif table & 16:
                if z.dtype is dtype:  # as text, 0.0 and -0.0 are two keys
                    key = dtype, type(x), x or repr(x)
                    plan = tables[table].get(key) or plans.plan(table, key, (x, z))
            elif x.dtype is dtype and x.shape == shape:
                key = dtype, type(z), z or repr(z)
                plan = tables[table].get(key) or plans.plan(table, key, (x, z))
            if plan is None and dtype.kind == "f":
                plan = others.of((x, z), [first, second])
        if plan is None:
            return noted(others, (a, b), (x, z), [first, second], y)
        keeps, blank = plan.keeps, plan.blank
        versions = _NOTHING
        if keeps:
            versions = []
            if not keeps & 1:
                x = blank[0]
            elif type(a) is Array:
                version = a._version
                if version is None:
                    version = a._version = Version()
                versions.append((version, version.count))
            else:
                x = keep(x, a, versions)
            if not keeps & 2:
                z = blank[1]
            elif type(b) is Array:
                version = b._version
                if version is None:
                    version = b._version = Version()
                versions.append((version, version.count))
            else:
                z = keep(z, b, versions)
        else:
            x, z = blank
        return with_node(plan, [first, second], (x, z), y, shape, dtype, versions)

    return call


def with_node(
    plan: OpPlan,
    edges: list[Edge],
    kept: Sequence[Any],
    y: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    versions: Versions,
) -> Array:
    """The result of an op with its node; called by what the user's code, or NumPy, has called.

    Args:
        plan: of the op, where nothing of `SPECIAL` is in use.
        edges, kept: of the operands.
        y, shape, dtype: the result.
        versions: counts of writes to operands.
    """
    node: OpNode = _new(OpNode)
    node.seq = next_seq()
    node.edges = edges
    node.metas = ((shape, dtype),)
    node.plan = plan
    node.hooked = None
    frame: Any = _frame(2)
    code = frame.f_code
    if code.co_filename in OTHERS:  # what NumPy calls
        frame = frame.f_back or frame
        code = frame.f_code
    node.place = (code, frame.f_lasti) if code.co_filename in USERS else users_place(3)
    out: Array = _new(Array)  # all that its initialiser does, without a call
    out.data = y
    out._node = node
    out.index = 0
    out.base = out._more = None
    if plan.kept_results:
        version = out._version = Version()
        node.saved = kept, (y,), [*versions, (version, 0)]
    else:
        out._version = None
        node.saved = kept, _NONE, versions
    return out


def otherwise(plans: ElementwisePlans) -> Otherwise:
    """The evaluator of the op, like that of any other one."""
    return lambda *operands: evaluated(op_plans(plans.op, _NO_ATTRS), operands)
