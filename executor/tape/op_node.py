"""The node of an op, and how any op but one that writes is evaluated and noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...dialect.errors import InternalError
from ...dialect.importers.gradients.rules import pulled
from ...dialect.ir.gradient_mode import MODE
from ...dialect.ir.op import Op
from .array import FLOATS, Array
from .builder import Unsaved
from .node import TAPE, Edge, Node, users_place
from .plans import PLANS, Plan
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
    plan: Plan
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

    def _by_rule(
        self, operands: Sequence[Any], results: Sequence[Any], gradients: list[Any]
    ) -> Sequence[Any]:
        plan = self.plan
        records = MODE.on
        xs, ys = self._values(operands, results, records)
        if len(xs) == 1 and plan.op.linear:
            found: Sequence[Any] = (
                plan.op.transpose(plan.builder, plan.attrs, xs, ys[0], gradients[0], 0),
            )
        else:
            found = pulled(plan.builder, plan.op, plan.attrs, xs, ys, gradients)
        if Unsaved in map(type, found):
            raise InternalError(f"the gradient of {plan.op.name} reads what was not saved")
        if not records:
            plan.ran()
        return found

    def _values(
        self, operands: Sequence[Any], results: Sequence[Any], records: bool
    ) -> tuple[list[Any], list[Any]]:
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


def evaluated(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], place: Any = None
) -> Any:
    """The result of an op that writes to nothing, or the tuple of its results.

    Arguments are those of `operations.apply`.
    """
    if op.attrs and attrs.keys() != op.attrs.keys():
        attrs = op.full_attrs(attrs)
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
    results = found if type(found) is tuple else (found,)
    if active and not op.no_gradient and MODE.on:
        out = noted(op, attrs, operands, values, edges, results, place)
    else:
        out = [Array(y) if isinstance(y, _VALUES) else y for y in results]
    if op.aliases:
        for k, y in enumerate(out):
            for position in op.shared_operands(k, len(operands)):
                note_shared(y, operands[position])
    return tuple(out) if type(found) is tuple else out[0]


def noted(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], values: Sequence[Any],
    edges: list[Edge], results: Sequence[Any], place: Any = None,
) -> list[Any]:  # fmt: skip
    """The results of an op with a node of theirs, if one of them is a float.

    Args:
        attrs: of the op, with defaults.
        operands: as users gave them.
        values, edges: their elements, and where they come from.
        results: what was computed.
        place: where the user's code called the op; None = look for that.
    """
    metas = [
        (y.shape, y.dtype) if isinstance(y, _VALUES) else ((), np.dtype(type(y))) for y in results
    ]
    is_float = [dtype.kind in FLOATS for _, dtype in metas]
    if True not in is_float:
        return [Array(y) if isinstance(y, _VALUES) else y for y in results]
    plan = PLANS.of(op, attrs, values, edges)
    node: OpNode = _new(PackedNode if TAPE.packing else OpNode)
    node.seq = TAPE.next_seq()
    node.edges, node.metas = edges, metas
    node.hooked, node.place = None, place or users_place(3)
    node.plan = plan
    versions: Versions = []
    kept: list[Any] = list(plan.blank)
    for k in plan.kept:
        kept[k] = keep(values[k], operands[k], versions)
    y = results[0]
    if len(results) == 1 and isinstance(y, _VALUES):
        out = Array(y, node)
        node.saved = kept, (keep(y, out, versions),) if plan.kept_results else _NONE, versions
        return [out]
    several = [
        Array(y, node if flows else None, k) if isinstance(y, _VALUES) else y
        for k, (y, flows) in enumerate(zip(results, is_float, strict=True))
    ]
    kept_results: list[Any] = [None] * len(results)
    for k in plan.kept_results:
        kept_results[k] = keep(results[k], several[k], versions)
    node.saved = kept, kept_results, versions
    return several


def note_shared(y: Any, x: Any) -> None:
    """Have ``y`` be a view of ``x``, if both are arrays and it is one in memory."""
    if type(y) is Array and type(x) is Array and y is not x and _shares(y.data, x.data):
        y.view_of(x, differentiable=MODE.on)


def _shares(view: Any, of: Any) -> bool:
    if type(view) is not np.ndarray or type(of) is not np.ndarray:
        return False
    owner = view.base
    return view is of or (owner is not None and (owner is of or owner is of.base))


__all__ = ["OpNode", "evaluated", "note_shared", "noted"]
