"""How the sizes of an op's results follow from those of its operands, as ops on sizes (R3.29).

A rule is written for a family of ops. Ops without a rule, and operands for which a rule does not
hold, have results whose sizes are not expressed: these are results of their group (A10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ...dataclass import dataclass
from ...ir.attrs import DYNAMIC
from ...ir.op import Op, op_named
from ...ops.create import Constant, Full, Iota
from ...ops.elementwise.families import Elementwise
from ...ops.indexing.scatter import Copy
from ...ops.inferred_sizes import INFERRED, BroadcastToSizes, LinearSizes, ReshapeSizes, StrictSqueezeSizes
from ...ops.manipulation.shape import BroadcastTo, ExpandDims, Reshape, Squeeze
from ...ops.manipulation.split import Chunk
from ...ops.reductions.reduce import Reduction
from ...ops.size_lists import BroadcastSizes, ChunkSizes, ReductionSizes, SqueezeSizes, UnsqueezeSizes

Sizes = int | None
"""The value, of the graph around a group, that holds sizes; None = they are not expressed."""


class Emit(Protocol):
    """Appends an op on sizes, and returns its results.

    ``late`` has the attributes whose values are known at run time alone, as values of the graph.
    """

    def __call__(
        self, op: type[Op], operands: Sequence[int], attrs: Mapping[str, Any], late: Mapping[str, int] | None = None, /
    ) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class SizedOp:
    """An op of a group, as rules see it.

    Attributes:
        op: its class; of a ``late`` op the one that it stands for.
        names: the names of the operands; operands that may be missing have names of their own.
        sizes: of each operand that is a tensor or may be one, the value with its sizes.
        tensors: which operands are tensors, or may be.
        attrs: the attributes that are known, with defaults.
        late: the attributes known at run time alone: values of the graph around the group.
        count: how many results there are.
    """

    op: type[Op]
    names: tuple[str, ...]
    sizes: tuple[Sizes, ...]
    tensors: tuple[bool, ...]
    attrs: Mapping[str, Any]
    late: Mapping[str, int]
    count: int

    def of(self, name: str) -> Sizes:
        """The sizes of the operand of a name; None where there is no such operand."""
        return self.sizes[self.names.index(name)] if name in self.names else None

    def chosen(self, *names: str) -> tuple[dict[str, Any], dict[str, int]]:
        """Those of these attributes that are known, and those that are known at run time."""
        literal = {name: self.attrs[name] for name in names if name not in self.late}
        return literal, {name: self.late[name] for name in names if name in self.late}


Rule = Callable[[SizedOp, Emit], Sequence[Sizes]]
_RULES: list[tuple[type[Op], Rule]] = []
_BY_OP: dict[type[Op], Rule] = {}


def derived_sizes(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The sizes of each result of an op, None for each that is not expressed."""
    rule = _BY_OP.get(site.op)
    if rule is None:
        rule = next((r for family, r in _RULES if issubclass(site.op, family)), None)
    return (None,) * site.count if rule is None else rule(site, emit)


def of_family(*families: type[Op]) -> Callable[[Rule], Rule]:
    """Decorator: the rule of ops of these families."""

    def add(rule: Rule) -> Rule:
        _RULES.extend((family, rule) for family in families)
        return rule

    return add


def of_named(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of the ops of these names; goes before those of families."""

    def add(rule: Rule) -> Rule:
        _BY_OP.update({op_named(name): rule for name in names})
        return rule

    return add


def _like(*operands: str | None) -> Rule:
    """A rule: each result has the sizes of the operand of this name; None = they are not expressed."""

    def rule(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
        return [None if name is None else site.of(name) for name in operands]

    return rule


@of_family(Elementwise)
@of_named("add_optional")
def _broadcast(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The sizes of the only operand that is a tensor, or those that all of them broadcast to."""
    sizes = [s for s, is_tensor in zip(site.sizes, site.tensors, strict=True) if is_tensor]
    if not sizes or None in sizes:
        return (None,) * site.count
    distinct = list(dict.fromkeys(sizes))
    if len(distinct) > 1:
        distinct = list(emit(BroadcastSizes, distinct, {}))  # type: ignore[arg-type]
    return (distinct[0],) * site.count


@of_family(Reduction)
def _reduction(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    sizes = site.of("x")
    if sizes is None or site.op.no_identity:  # type: ignore[attr-defined]
        return (None,)  # without elements it raises an error, which may not get lost
    return emit(ReductionSizes, [sizes], *site.chosen("axes", "keepdims"))


@of_family(Chunk)
def _chunk(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    return _pieces(site.of("x"), site, emit)


@of_named("broadcasting_chunk")
def _broadcasting_chunk(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The pieces, operand by operand, of what the operands broadcast to."""
    if None in site.sizes or site.late:
        return (None,) * site.count
    distinct = list(dict.fromkeys(site.sizes))
    whole = distinct[0] if len(distinct) == 1 else emit(BroadcastSizes, distinct, {})[0]  # type: ignore[arg-type]
    return [*_pieces(whole, site, emit)] * len(site.sizes)


def _pieces(sizes: Sizes, site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    count = site.attrs["chunks"]
    if sizes is None or site.late:
        return (None,) * count
    regular, last = emit(ChunkSizes, [sizes], {"axis": site.attrs["axis"], "chunks": count})
    return (*(regular,) * (count - 1), last)


@of_family(ExpandDims)
@of_named("unsqueeze_copy")
def _unsqueeze(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    sizes = site.of("x")
    return (None,) if sizes is None else emit(UnsqueezeSizes, [sizes], *site.chosen("axes"))


@of_family(Squeeze)
@of_named("squeeze_copy")
def _squeeze(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    sizes = site.of("x")
    strict = "axes" in site.late or site.attrs["axes"] is not None
    return (
        (None,)
        if sizes is None
        else emit(StrictSqueezeSizes if strict else SqueezeSizes, [sizes], *site.chosen("axes"))
    )


@of_family(Reshape, BroadcastTo)
@of_named("reshape_copy")
def _stated(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The sizes that the op states, if the elements fit them."""
    sizes, shape = site.of("x"), None if "shape" in site.late else site.attrs["shape"]
    if shape is None or sizes is None or DYNAMIC in shape:
        return (None,)
    return emit(BroadcastToSizes if site.op is BroadcastTo else ReshapeSizes, [sizes], {"shape": shape})


@of_family(*INFERRED)
def _inferred(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The sizes that the op's own inference gives."""
    sizes = site.sizes
    if None in sizes or not all(site.tensors):
        return (None,)
    return emit(INFERRED[site.op], sizes, *site.chosen(*site.op.attrs))  # type: ignore[arg-type]


@of_named("linear")
def _linear(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    sizes = [site.of("x"), site.of("weight")]
    if None in sizes or site.of("bias") is not None:
        return (None,)  # sums with a bias are ops of their own by then
    return emit(LinearSizes, sizes, {})  # type: ignore[arg-type]


@of_family(Full, Iota)
def _literal(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    """The sizes that the op states, if it states all of them, and nothing has to fit them."""
    shape = None if "shape" in site.late else site.attrs["shape"]
    if shape is None or DYNAMIC in shape or any(site.tensors):
        return (None,)
    return emit(Constant, [], {"value": tuple(shape)})


@of_family(Constant)
def _constant(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    shape = getattr(site.attrs["value"], "shape", None)
    return (None,) if shape is None else emit(Constant, [], {"value": tuple(map(int, shape))})


of_family(Copy)(_like("x"))


def _gradients(*operands: str) -> Rule:
    """A rule of gradients that a mask may leave out, each of which has the sizes of the operand of this name."""

    def rule(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
        mask = (False,) * len(operands) if "mask" in site.late else site.attrs["mask"]
        return [site.of(name) if wanted else None for name, wanted in zip(operands, mask, strict=True)]

    return rule


@of_named("sum_to_size")
def _sum_to_size(site: SizedOp, emit: Emit) -> Sequence[Sizes]:
    if "sizes" in site.late:
        return (None,)  # which may be None
    sizes = site.attrs["sizes"]
    return emit(Constant, [], {"value": tuple(sizes)}) if sizes else (site.of("x"),)


# Statistics have no row: what asks for their sizes has them as results of the group.
of_named("gelu", "silu", "softmax", "log_softmax", "batch_norm")(_like("x"))
of_named("softmax_backward", "log_softmax_backward", "native_dropout_backward")(_like("grad"))
of_named("native_dropout")(_like("x", "x"))
of_named("native_layer_norm", "native_group_norm")(_like("x", None, None))
of_named("native_batch_norm")(_like("x", None, None, None, None))
of_named("batch_norm_index")(_like("x", None, None, None, None, None, None))
of_named("native_layer_norm_backward")(_gradients("grad", "weight", "bias"))
of_named("native_batch_norm_backward")(_gradients("grad", "weight", "weight"))
of_named("batch_norm_index_backward")(_gradients("x", "weight", "weight"))
