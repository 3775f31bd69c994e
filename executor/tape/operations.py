"""Operations on `Array`: evaluated at once, with a node on the tape where gradients are required.

`apply` is the one way; `functions` is what leads NumPy's functions, methods and operators here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError, InternalError
from ...dialect.importers.gradients.reads import Reads, reads_of
from ...dialect.importers.gradients.rules import pulled
from ...dialect.importers.tracing.leaves import NUMBERS
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.op import Op, op_named
from .array import FLOATS, Array, Version
from .builder import ArrayBuilder, Unsaved
from .elementwise import Plan, Plans, multiplied, plans_of
from .node import TAPE, Edge, Meta, Node, user_line, users_place
from .saved import Packed, Versions, freed, keep, overwritten

_VALUES = (np.ndarray, np.generic)
_CONFORM = op_named("conform")
_NO_ATTRS: dict[str, Any] = {}
_NONE = (None,)
_new_node: Any = object.__new__
_BOOL = np.dtype(bool)


class OpNode(Node):
    """An op of the table that was evaluated.

    Attributes:
        op: its class.
        attrs: of the op, with defaults.
        saved: operands and results, as far as the gradient reads them (`Unsaved` or None for what
            it does not), and counts of writes to them; None once they are freed.
    """

    __slots__ = ("attrs", "op", "saved")
    saved: tuple[Sequence[Any], Sequence[Any], Versions] | None

    def __init__(
        self, op: type[Op], attrs: Mapping[str, Any], edges: list[Edge], metas: Sequence[Meta]
    ) -> None:
        Node.__init__(self, edges, metas)
        self.op, self.attrs = op, attrs

    @property
    def name(self) -> str:
        return f"{self.op.name}_backward"

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        saved = self.saved  # read once, as another thread may free it
        if saved is None:
            raise freed(self.op.name, self.loc)
        operands, results, versions = saved
        for version, count in versions:
            if version.count != count:
                raise overwritten(version, self.op.name, self.loc)
        builder = ArrayBuilder([e is not None for e in self.edges], apply)
        xs, ys = self._values(operands, results)
        if len(xs) == 1 and self.op.linear:
            return (self.op.transpose(builder, self.attrs, xs, ys[0], gradients[0], 0),)
        found = pulled(builder, self.op, self.attrs, xs, ys, gradients)
        if Unsaved in map(type, found):
            raise InternalError(f"the gradient of {self.op.name} reads what was not saved")
        return found

    def _values(
        self, operands: Sequence[Any], results: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Operands and results as the rule takes them."""
        records = gradient_mode()
        xs: list[Any] = []
        for x, edge in zip(operands, self.edges, strict=True):
            if type(x) is Packed:
                x = x.array()
            if edge is None:
                xs.append(Unsaved(None, _BOOL) if x is None else x)
            elif x is None:
                xs.append(Unsaved(*edge[0].metas[edge[1]]))
            else:
                xs.append(Array(x, *edge) if records else x)
        ys: list[Any] = []
        for k, (y, meta) in enumerate(zip(results, self.metas, strict=True)):
            if type(y) is Packed:
                y = y.array()
            ys.append(Unsaved(*meta) if y is None else Array(y, self, k) if records else y)
        return xs, ys

    def release(self) -> None:
        self.saved = None


class ElementwiseNode(OpNode):
    """An elementwise op of one or two operands, on real floats.

    Attributes:
        plan: its derivatives, and what they read.
    """

    __slots__ = ("plan",)
    plan: Plan

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        saved = self.saved
        if saved is not None and not gradient_mode():
            for version, count in saved[2]:
                if version.count != count:
                    raise overwritten(version, self.op.name, self.loc)
            found = multiplied(self.plan, self.edges, saved[0], saved[1], gradients[0])
            if found is not None:
                return found
        return super().backward(gradients)


def apply(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], place: Any = None
) -> Any:
    """The result of an op, or the tuple of its results; arrays among them are `Array`.

    Args:
        op: a class of the op table.
        attrs: its attributes; those that are left out have their defaults.
        operands: `Array`, ndarrays, NumPy scalars, and Python's numbers.
        place: where the user's code called it; None = look for that.

    A node is made where gradient mode is on and an operand requires gradients. Raises what the op
    raises for its operands.
    """
    plans = plans_of(op)
    if plans is not None:
        return unary(plans, *operands) if len(operands) == 1 else binary(plans, *operands)
    return _applied(op, attrs, operands, place)


def _applied(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], place: Any = None
) -> Any:
    """`apply` for all ops alike."""
    attrs = op.full_attrs(attrs) if op.attrs else attrs
    if op.writes:
        return _written(op, attrs, operands)
    values: list[Any] = []
    edges: list[Edge] = []
    active = False
    for x in operands:
        if type(x) is Array:
            values.append(x.data)
            node = x._node if x.base is None else x.node
            if node is None:
                edges.append(None)
            else:
                edges.append((node, x.index))
                active = True
        else:
            values.append(x)
            edges.append(None)
    found = op.evaluate(attrs, *values)
    several = type(found) is tuple
    active = active and not op.no_gradient and gradient_mode()
    if isinstance(found, _VALUES):  # the usual way, and the shortest
        one = _noted_one(op, attrs, operands, values, edges, found) if active else Array(found)
        if op.aliases and type(found) is np.ndarray:
            for position in op.shared_operands(0, len(operands)):
                note_shared(one, operands[position])
        return one
    results = found if several else (found,)
    if not active:
        out = [Array(y) if isinstance(y, _VALUES) else y for y in results]
    else:
        out = _noted(op, attrs, operands, values, edges, results, place)
    if op.aliases:
        for k, y in enumerate(out):
            for position in op.shared_operands(k, len(operands)):
                note_shared(y, operands[position])
    return tuple(out) if several else out[0]


def unary(plans: Plans, a: Any) -> Any:
    """`apply` of an elementwise op of one operand."""
    if type(a) is not Array:
        return _applied(plans.op, _NO_ATTRS, (a,))
    x = a.data
    node = a._node if a.base is None else a.node
    y = plans.numpy(x)
    if node is None or not gradient_mode():
        return Array(y)
    dtype = y.dtype
    if dtype.kind != "f" or TAPE.special:
        edges: list[Edge] = [(node, a.index)]
        return _noted(plans.op, _NO_ATTRS, (a,), [x], edges, (y,), None)[0]
    plan = plans.known.get(1) or plans.plan(1, (x,))
    versions: Versions = []
    kept = None
    if plan.reads:
        kept = x
        version = a._version or a.version
        versions.append((version, version.count))
    return _elementwise(plans, plan, [(node, a.index)], (kept,), y, versions)


def binary(plans: Plans, a: Any, b: Any) -> Any:
    """`apply` of an elementwise op of two operands."""
    first = second = None
    key = 0
    if type(a) is Array:
        x = a.data
        node = a._node if a.base is None else a.node
        if node is not None:
            first = node, a.index
            key = 1
    else:
        x = a
        if type(a) in NUMBERS:
            key = 16
    if type(b) is Array:
        z = b.data
        node = b._node if b.base is None else b.node
        if node is not None:
            second = node, b.index
            key |= 2
    else:
        z = b
        if type(b) in NUMBERS:
            key |= 32
    if key & 48 == 48:
        return _applied(plans.op, _NO_ATTRS, (a, b))
    y = plans.numpy(x, z)
    if not key & 3 or not gradient_mode():
        return Array(y)
    if y.dtype.kind != "f" or TAPE.special:
        return _noted(plans.op, _NO_ATTRS, (a, b), [x, z], [first, second], (y,), None)[0]
    plan = plans.known.get(key) or plans.plan(key, (x, z))
    versions: Versions = []
    reads = plan.reads
    if 0 in reads:
        if type(a) is Array:
            version = a._version or a.version
            versions.append((version, version.count))
        else:
            x = keep(x, a, versions)
    elif key & 16 == 0:
        x = None
    if 1 in reads:
        if type(b) is Array:
            version = b._version or b.version
            versions.append((version, version.count))
        else:
            z = keep(z, b, versions)
    elif key & 32 == 0:
        z = None
    return _elementwise(plans, plan, [first, second], (x, z), y, versions)


def _elementwise(
    plans: Plans, plan: Plan, edges: list[Edge], kept: tuple, y: Any, versions: Versions
) -> Array:
    """The result of an elementwise op, with its node."""
    node: ElementwiseNode = _new_node(ElementwiseNode)
    node.seq = TAPE.next_seq()
    node.edges = edges
    node.metas = ((y.shape, y.dtype),)
    node.hooked = None
    node.place = users_place(4)
    node.op, node.attrs, node.plan = plans.op, _NO_ATTRS, plan
    out = Array(y, node)
    if plan.reads_result:
        version = out._version = Version()
        versions.append((version, 0))
        node.saved = kept, (y,), versions
    else:
        node.saved = kept, _NONE, versions
    return out


def _written(op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any]) -> Any:
    """Run an op that writes to its first operand, and returns that.

    The gradient is that of the pure form, of which the operand becomes the result.
    """
    x = operands[0]
    if type(x) is not Array:
        x = Array(x)
    noted = gradient_mode() and any(type(y) is Array and y.node is not None for y in operands)
    if not noted or x.dtype.kind not in FLOATS:
        op.evaluate(attrs, *[y.data if type(y) is Array else y for y in operands])
    else:
        _check_leaf(x)
        # What the gradient reads of the operand is about to be overwritten.
        before = Array(x.data.copy(), x.node, x.index)
        emit = lambda name, given, attrs: [apply(op_named(name), attrs, given)]  # noqa: E731
        made = op.as_pure(emit, attrs, before, *operands[1:])  # type: ignore[attr-defined]
        x.rebase(made)
        x.data[...] = made.data
    x.wrote(users_place())
    return x


def write(x: Array, key: Any, value: Any) -> None:
    """``x[key] = value`` noted on the tape, with any key of NumPy's."""
    _check_leaf(x)
    items = key if type(key) is tuple else (key,)
    if all(k is None or k is Ellipsis or isinstance(k, (slice, int, np.integer)) for k in items):
        rest = () if any(k is Ellipsis for k in items) else (Ellipsis,)
        target, left = Array(x.data[(*items, *rest)]), None
        target.view_of(x, differentiable=True)
    else:
        target, left = x, key
    found = target.data if left is None else target.data[left]
    if type(value) is Array and left is None and _is_same(value.data, found):
        return  # ``x[key] += v`` has written to the view, which Python then assigns to itself
    made = apply(_CONFORM, {"assign": True}, (value, found))
    target.rebase(made, left)
    x.data[key] = made.data
    x.wrote(users_place())


def _is_same(a: Any, b: np.ndarray) -> bool:
    return (
        type(a) is np.ndarray and a.shape == b.shape and a.strides == b.strides
        and a.dtype == b.dtype and a.ctypes.data == b.ctypes.data
    )  # fmt: skip


def _check_leaf(x: Array) -> None:
    if x.node is not None and (x if x.base is None else x.base).is_leaf:
        raise GradientError(
            "a write to a leaf that requires gradients would lose the value that they are of",
            loc=user_line(),
            hint="write to a copy, x.copy(), or under pf.no_grad() if it is an update of the leaf",
        )


def _noted_one(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], values: list[Any],
    edges: list[Edge], y: Any,
) -> Array:  # fmt: skip
    """`_noted` for one result that is an array."""
    dtype = y.dtype
    if dtype.kind not in FLOATS:
        return Array(y)
    reads, kept = _reads(op, attrs, values, edges)
    node: OpNode = _new_node(OpNode)
    node.seq = TAPE.next_seq()
    node.edges, node.metas = edges, ((y.shape, dtype),)
    node.hooked, node.place = None, users_place(4)
    node.op, node.attrs = op, attrs
    out = Array(y, node)
    versions: Versions = []
    saved: list[Any] = [None] * len(values)
    for k, x in enumerate(values):
        if k in reads:
            saved[k] = keep(x, operands[k], versions)
        elif edges[k] is None:
            saved[k] = Unsaved(x.shape, x.dtype) if isinstance(x, _VALUES) else x
    node.saved = saved, (keep(y, out, versions),) if kept else _NONE, versions
    return out


def _noted(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], values: list[Any],
    edges: list[Edge], results: Sequence[Any], place: Any,
) -> list[Any]:  # fmt: skip
    """The results of an op with a node of theirs, if one of them is a float."""
    metas = [
        (y.shape, y.dtype) if isinstance(y, _VALUES) else ((), np.dtype(type(y))) for y in results
    ]
    if not any(dtype.kind in FLOATS for _, dtype in metas):
        return [Array(y) if isinstance(y, _VALUES) else y for y in results]
    reads, kept = _reads(op, attrs, values, edges)
    node = OpNode(op, attrs, edges, metas)
    node.place = place or users_place()
    out = [
        Array(y, node if dtype.kind in FLOATS else None, k) if isinstance(y, _VALUES) else y
        for k, (y, (_, dtype)) in enumerate(zip(results, metas, strict=True))
    ]
    versions: Versions = []
    operands_kept: list[Any] = []
    for k, (x, edge) in enumerate(zip(values, edges, strict=True)):
        if k in reads:
            operands_kept.append(keep(x, operands[k], versions))
        elif edge is not None:
            operands_kept.append(None)
        else:
            operands_kept.append(Unsaved(x.shape, x.dtype) if isinstance(x, _VALUES) else x)
    results_kept = [keep(y, out[k], versions) if k in kept else None for k, y in enumerate(results)]
    node.saved = operands_kept, results_kept, versions
    return out


_known_reads: dict[Any, Reads] = {}


def _reads(
    op: type[Op], attrs: Mapping[str, Any], values: Sequence[Any], edges: Sequence[Edge]
) -> Reads:
    """Which operands and results a gradient reads; looked up by what can decide it."""
    wanted = [e is not None for e in edges]
    if op.linear:  # operands decide alone, by which of them require gradients
        key: Any = (op, *wanted)
    else:
        kinds = [type(x) if type(x) in NUMBERS else (x.dtype.kind, x.ndim) for x in values]
        key = (op, *attrs.values(), *wanted, *kinds)
    try:
        found = _known_reads.get(key)
    except TypeError:  # an attribute that is not hashed
        return reads_of(op, attrs, values, wanted)
    if found is None:
        found = _known_reads[key] = reads_of(op, attrs, values, wanted)
    return found


def note_shared(y: Any, x: Any) -> None:
    """Have ``y`` be a view of ``x``, if both are arrays and it is one in memory."""
    if type(y) is Array and type(x) is Array and y is not x and _shares(y.data, x.data):
        y.view_of(x, differentiable=gradient_mode())


def _shares(view: Any, of: Any) -> bool:
    if type(view) is not np.ndarray or type(of) is not np.ndarray:
        return False
    owner = view.base
    return view is of or (owner is not None and (owner is of or owner is of.base))


__all__ = ["ElementwiseNode", "OpNode", "apply", "binary", "note_shared", "unary"]
