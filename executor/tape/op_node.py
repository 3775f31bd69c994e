"""The node of an op, and how any op but one that writes is evaluated and noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...dialect.autodiff.rules import pulled
from ...dialect.errors import GradientError, InternalError
from ...dialect.ir.gradient_mode import MODE, OFF
from .array import FLOATS, Array
from .eager_builder import Unsaved
from .node import SPECIAL, TAPE, Edge, Node, next_seq, user_line, users_place
from .plans import OpPlan, OpPlans
from .saved import Packed, Versions, freed, keep, overwritten

_VALUES = (np.ndarray, np.generic)
_BOOL = np.dtype(bool)
_NONE = (None,)
_new: Any = object.__new__


class OpNode(Node):
    """An op of the table that was evaluated.

    Attributes:
        plan: the op with its attributes, and how its gradient runs.
        saved: operands and results, as far as the gradient reads them (`Unsaved` or None for what
            it does not), and counts of writes to them; None once they are freed.
    """

    __slots__ = ("plan", "saved")
    packed: ClassVar[bool] = False  # what is saved may be `Packed`
    plan: OpPlan
    saved: tuple[Sequence[Any], Sequence[Any], Versions] | None

    @property
    def name(self) -> str:
        return f"{self.plan.op.name}_backward"

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        saved = self.saved  # read once, as another thread may free it
        if saved is None:
            raise freed(self.plan.op.name, self.loc)
        operands, results, versions = saved
        for version, count in versions:
            if version.count != count:
                raise overwritten(version, self.plan.op.name, self.loc)
        pull = self.plan.pull
        if pull is None or MODE.on or self.packed:
            return self._by_rule(operands, results, gradients)
        return pull(gradients[0], operands, results)

    def _by_rule(self, operands: Sequence[Any], results: Sequence[Any], gradients: list[Any]) -> Sequence[Any]:
        plan = self.plan
        records = MODE.on
        xs, ys = self._values(operands, results, records)
        if len(xs) == 1 and plan.op.linear:
            outgoing: Sequence[Any] = (plan.op.transpose(plan.builder, plan.attrs, xs, ys[0], gradients[0], 0),)
        else:
            outgoing = pulled(plan.builder, plan.op, plan.attrs, xs, ys, gradients)
        if Unsaved in map(type, outgoing):
            raise InternalError(f"the gradient of {plan.op.name} reads what was not saved")
        if not records:
            plan.ran()
        return outgoing

    def _values(self, operands: Sequence[Any], results: Sequence[Any], records: bool) -> tuple[list[Any], list[Any]]:
        """Operands and results as the rule takes them."""
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


class PackedNode(OpNode):
    """An op that was evaluated where functions of users pack what is saved."""

    __slots__ = ()
    packed = True


def evaluated(plans: OpPlans, operands: Sequence[Any], place: Any = None) -> Any:
    """The result of an op that writes to nothing, or the tuple of its results.

    Args:
        plans: of the op with its attributes.
        operands, place: as of `operations.apply`.
    """
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
    op = plans.op
    result = op.evaluate(plans.attrs, *values)
    active = active and not op.no_gradient and (not OFF or MODE.on)
    if isinstance(result, _VALUES):
        out = noted(plans, operands, values, edges, result, place) if active else Array(result)
        if op.aliases and type(result) is np.ndarray:
            for position in op.shared_operands(0, len(operands)):
                note_shared(out, operands[position])
        return out
    results = result if type(result) is tuple else (result,)
    several = (
        _all_noted(plans, operands, values, edges, results, place)
        if active
        else [Array(y) if isinstance(y, _VALUES) else y for y in results]
    )
    if op.aliases:
        for k, y in enumerate(several):
            for position in op.shared_operands(k, len(operands)):
                note_shared(y, operands[position])
    return tuple(several) if type(result) is tuple else several[0]


def noted(
    plans: OpPlans, operands: Sequence[Any], values: Sequence[Any], edges: list[Edge], y: Any, place: Any = None
) -> Array:
    """The one result of an op, with a node if it is a float.

    Args:
        plans: of the op.
        operands: as users gave them.
        values, edges: their elements, and where they come from.
        y: what was computed, an ndarray or a NumPy scalar.
        place: where the user's code called the op; None = look for that.
    """
    dtype = y.dtype
    if dtype.kind not in FLOATS:
        _check_numbers(dtype, plans)
        return Array(y)
    node, versions = _node(plans.of(values, edges), operands, values, edges, place)
    node.metas = ((y.shape, dtype),)
    out = Array(y, node)
    if node.plan.kept_results:
        node.saved = node.saved[0], (keep(y, out, versions),), versions  # type: ignore[index]
    return out


def _check_numbers(dtype: np.dtype, plans: OpPlans) -> None:
    """Raise GradientError for a result that holds no numbers that the tape knows, in which gradients would be lost."""
    if dtype.kind not in "biu":
        raise GradientError(
            f"{plans.op.name} of an array that requires gradients has a result of {dtype}, which has none",
            loc=user_line(),
            hint="convert the other operand first, as with np.asarray(x, float)",
        )


def _all_noted(
    plans: OpPlans,
    operands: Sequence[Any],
    values: Sequence[Any],
    edges: list[Edge],
    results: Sequence[Any],
    place: Any,
) -> list[Any]:
    """`noted` for several results, numbers among them; without a node if none is a float."""
    metas = [(y.shape, y.dtype) if isinstance(y, _VALUES) else ((), np.dtype(type(y))) for y in results]
    is_float = [dtype.kind in FLOATS for _, dtype in metas]
    if True not in is_float:
        for _, dtype in metas:
            _check_numbers(dtype, plans)
        return [Array(y) if isinstance(y, _VALUES) else y for y in results]
    node, versions = _node(plans.of(values, edges), operands, values, edges, place)
    node.metas = metas
    out = [
        Array(y, node if flows else None, k) if isinstance(y, _VALUES) else y
        for k, (y, flows) in enumerate(zip(results, is_float, strict=True))
    ]
    saved_results: list[Any] = [None] * len(results)
    for k in node.plan.kept_results:
        saved_results[k] = keep(results[k], out[k], versions)
    node.saved = node.saved[0], saved_results, versions  # type: ignore[index]
    return out


def _node(
    plan: OpPlan, operands: Sequence[Any], values: Sequence[Any], edges: list[Edge], place: Any
) -> tuple[OpNode, Versions]:
    """A node that keeps of the operands what it needs, and the counts of writes to that."""
    node: OpNode = _new(PackedNode if SPECIAL and TAPE.packing else OpNode)
    node.seq = next_seq()
    node.edges, node.hooked, node.plan = edges, None, plan
    node.place = place or users_place(4)
    versions: Versions = []
    saved_operands = plan.blank
    if plan.kept:
        saved_operands = saved_operands.copy()
        for k in plan.kept:
            saved_operands[k] = keep(values[k], operands[k], versions)
    node.saved = saved_operands, _NONE, versions
    return node, versions


def note_shared(y: Any, x: Any) -> None:
    """Have ``y`` be a view of ``x``, if both are arrays and it is one in memory."""
    if type(y) is Array and type(x) is Array and y is not x and _shares(y.data, x.data):
        y.view_of(x, differentiable=MODE.on)


def _shares(view: Any, of: Any) -> bool:
    if type(view) is not np.ndarray or type(of) is not np.ndarray:
        return False
    owner = view.base
    return view is of or (owner is not None and (owner is of or owner is of.base))
