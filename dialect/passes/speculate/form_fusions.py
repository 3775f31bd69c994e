"""Merge fusible ops into groups and outline them (R1.36, R1.48)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.op import Fusion, Op
from ...ir.types import ListType, ScalarType, TensorType, Type
from ...mlir.block_graph import BlockGraph
from ...mlir.context import loc_of
from ...mlir.facts import CONSTANTS
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    defining_op,
    is_pure,
    op_class,
    ops_in,
    short_name,
    type_of,
    walk,
)
from ...mlir.values import Types, clone_op, constant_type, main_functions
from ...ops.control_flow.effects import Warn
from ...ops.gradients import Definedness
from ...ops.host_call import HostCall, shown
from ...ops.queries import Item
from ...ops.speculation import FusionGroup, Guard, Identity, ProfileCounter, Subgraph
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from .exact_groups import exact_refusal, split_views
from .fusion_types import is_embedded, number_refusal, replaces_part_of_carried
from .outline import outline

MAX_COPIES = 4  # of numbers for groups, per op of a block
_COUNTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)
_SILENT = (Subgraph, Guard, Identity, ProfileCounter, Warn, Definedness)


@register_pass
@dataclass(frozen=True)
class FormFusions(Pass):
    """Merge fusible ops of a block into groups, each outlined into a private function.

    First along values, then side by side, as long as no cycle arises, operands and results stay
    within ``max-values`` and ops, views and all, within ``max-ops``.  Views, queries and constants
    never make a group on their own; groups of fewer than ``min-size`` ops that compute are
    dissolved.  ``dynamic`` admits symbolic sizes; ``exact`` admits only what kernels of the host
    compute to the last bit as NumPy does (`exact_groups`).  Every refused op is noted with its
    reason, and so is every pair of groups that ``max-ops`` keeps apart.
    """

    name: ClassVar[str] = "form-fusions"
    min_size: int = 2
    max_values: int = 128
    max_ops: int = 128
    dynamic: bool = False
    exact: bool = False

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            blocks = [body_of(func)]
            blocks += [b for op in walk(func) for region in op.regions for b in region.blocks]
            constants: dict[ir.Value, Type] = {}
            for op in walk(func):
                value = op.results[0] if op.name in CONSTANTS else None
                if value is not None and (type_ := constant_type(value)) is not None:
                    constants[value] = type_
            for block in blocks:
                _BlockFuser(self, module, func, block, constants).run()

    def refuse(self, op: ir.Operation, reason: Reason) -> None:
        """Note an op that stays outside, with the reason, and with the user's line if known."""
        name, loc = short_name(op), loc_of(op.location)
        self.note(dataclasses.replace(reason, op=name, loc=loc, effect=Effect.NOT_FUSED))


@dataclass
class _Set:
    """What a group reads and makes; sets, because those of two groups are merged fast."""

    uses: set[ir.Value]  # from outside
    defs: set[ir.Value]
    outs: set[ir.Value]
    devices: set[str]
    size: int
    kept: int = 0  # how many of its results are read by an op that joins no group


class _BlockFuser:
    def __init__(
        self,
        options: FormFusions,
        module: ir.Module,
        func: ir.Operation,
        block: ir.Block,
        constants: dict[ir.Value, Type],
    ) -> None:
        self.options, self.module, self.func, self.block = options, module, func, block
        self.types = Types()
        self.types.known.update(constants)
        self.constants = constants
        # By first result: the hash of an `ir.Operation` changes with its operands.
        self.fusible: set[ir.Value] = set()
        self.too_large: set[tuple[int, int]] = set()

    def run(self) -> None:
        given = devices_of([self.types[v] for v in body_of(self.func).arguments])
        self.on_device = not given <= {HOST}
        # What is in no kernel for a device is computed by none.
        self.is_exact = self.options.exact and not self.on_device
        self.memory = Memory(self.func)
        for op in ops_in(self.block):
            cls = op_class(op)
            if cls is None or _is_expected_outside(op, cls):
                continue
            reason = self._refusal(op, cls)
            if reason is None:
                self.fusible.add(op.results[0])
            else:
                self.options.refuse(op, reason)
        if not self.fusible:
            return
        if self.is_exact:
            split_views(self.block, self.fusible, self.types)
        self._split_scalars()
        self._analyse()
        self._merge()
        self._outline()

    # --- which ops ----------------------------------------------------------------------------

    def _refusal(self, op: ir.Operation, cls: type[Op]) -> Reason | None:
        """Why an op is not fused; None = it may be."""
        types, attrs = self.types.of(op), attrs_of(op)
        try:
            results = cls.infer(types, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        for value, type_ in zip(op.results, results, strict=False):
            if isinstance(type_, ScalarType):
                self.types[value] = type_
        if issubclass(cls, HostCall):
            return Reason(Kind.ON_HOST, detail=shown(attrs["function"]))
        if cls.fusion is Fusion.NONE:
            return Reason(Kind.NEVER_FUSED)
        if not is_pure(op):
            return Reason(Kind.SIDE_EFFECTS)
        if self.memory.shares_written(op):
            return Reason(Kind.WRITTEN_VIEW)
        reason = self._operand_refusal(types)
        if reason is None and self.is_exact:
            reason = exact_refusal(op, cls, types, results, self.fusible)
        if reason is not None:
            return reason
        if self.on_device and any(_is_complex(t) for t in (*types, *results)):
            return Reason(Kind.COMPLEX)  # kernels for GPUs have no complex numbers
        if replaces_part_of_carried(op, types):
            return Reason(Kind.PART_OF_CARRIED)
        if any(isinstance(t, TensorType) and not t.is_complete for t in results):
            return Reason(Kind.RUN_TIME_SIZES)
        # Arithmetic on Python numbers keeps Python's semantics unless the outcome is known; a group
        # would return a number whose type is not yet told as a tensor.
        for value, type_ in zip(op.results, results, strict=False):
            is_told = isinstance(type_of(value), ScalarType)
            if isinstance(type_, ScalarType) and (type_.value is None or not is_told):
                return Reason(Kind.PYTHON_NUMBER)
        return number_refusal(cls.operand_dtypes(types, attrs), types) or cls.can_lower_types(
            types, attrs
        )

    def _is_fusible(self, op: ir.Operation) -> bool:
        return len(op.results) > 0 and op.results[0] in self.fusible

    def _operand_refusal(self, types: list[Type]) -> Reason | None:
        for index, type_ in enumerate(types):
            if isinstance(type_, ListType):
                return Reason(Kind.LIST_OPERAND, operand=index)
            if not isinstance(type_, TensorType):
                continue
            if not type_.is_complete or type_.defined is False:
                return Reason(Kind.UNKNOWN_OPERAND, operand=index)
            if not self.options.dynamic and not type_.is_static:
                return Reason(Kind.VARYING_SIZE, operand=index)
        devices = sorted(devices_of(types))
        return Reason(Kind.DEVICES, detail=", ".join(devices)) if devices[1:] else None

    def _split_scalars(self) -> None:
        """Give each user of a query its own copy, as a group can return tensors only."""
        ops = ops_in(self.block)
        # Numbers that are used twice at every step would take copies without end.
        left = MAX_COPIES * len(ops)
        for op in reversed(ops):
            if not self._is_fusible(op) or not _is_scalar(op):
                continue
            value = op.results[0]
            others = list(value.uses)[1:]
            left -= len(others)
            if left < 0:
                self.fusible.discard(value)
                self.options.refuse(op, Reason(Kind.NUMBER_COPIES))
                continue
            for use in others:
                owner = use.owner.operation
                copy = clone_op(op, {}, ir.InsertionPoint(op))
                self.types[copy.results[0]] = self.types[value]
                self.fusible.add(copy.results[0])
                owner.operands[use.operand_number] = copy.results[0]

    # --- which groups -------------------------------------------------------------------------

    def _analyse(self) -> None:
        """The graph of the block, and per op what it reads and makes."""
        self.graph = graph = BlockGraph(self.func, self.block)
        self.ops, self.home, self.users = graph.ops, graph.home, graph.users
        self.groups = graph.groups
        self.sets: dict[int, _Set] = {}
        self.scalars: set[ir.Value] = set()
        fusible = {n for n, op in enumerate(self.ops) if self._is_fusible(op)}
        for n, op in enumerate(self.ops):
            if n in fusible:
                defs = set(op.results)
                uses = {v for v in op.operands if not self._embedded(v)}
                outs = {v for v in defs if self.users.get(v)}
                size = int(_counts(op))
                self.scalars.update(v for v in defs if isinstance(type_of(v), ScalarType))
                kept = sum(not self.users[v] <= fusible for v in outs)
                self.sets[n] = _Set(uses, defs, outs, devices_of(self.types.of(op)), size, kept)

    def _embedded(self, value: ir.Value) -> bool:
        """True for constants that are copied into the group."""
        return is_embedded(self.constants.get(value))

    def _merge(self) -> None:
        while not self._merge_numbers():
            self._analyse()
        self._merge_along_values()
        # Side by side: independent parts of one step (Adam's moments) belong in one kernel.
        starts = [n for n in sorted(self.sets) if self._is_group(n)]
        while starts:
            a, *starts = starts
            for b in starts:
                self._try(a, b)
            # What has joined another group is not asked again.
            starts = [n for n in starts if self._is_group(n)]
        # Queries and views whose producer and user were apart before.
        self._merge_along_values()
        self._report_splits()

    def _merge_numbers(self) -> bool:
        """Give ops the numbers that they are computed with, before any group is full.

        A group that is handed a number does not know its value, and hence no type that depends on
        it: an op that cannot have its numbers with it stays outside, and so do the numbers of a
        group that had to be cut among them; what the numbers were for may then be handed the last.
        No group returns a number either, so that a chain of them joins from its end.  False if an
        op was refused, and the groups have to be formed again.
        """
        for n in sorted(self.sets, reverse=True):
            for value in self.ops[n].operands:
                if value in self.scalars:
                    self._try(self.home[value], n)
        refused: dict[int, Reason] = {}
        for n in sorted(self.sets):
            reason = self._refusal_apart(n)
            if reason is None:
                continue
            refused[n] = reason
            if _is_scalar(self.ops[n]):
                group = self.groups.members[self.groups.group(n)]
                refused.update({m: reason for m in group if _is_scalar(self.ops[m])})
        for n, reason in refused.items():
            self.options.refuse(self.ops[n], reason)
            self.fusible.discard(self.ops[n].results[0])
        return not refused

    def _refusal_apart(self, n: int) -> Reason | None:
        """Why an op cannot be fused with numbers that its group is handed; None = it can be."""
        op, group = self.ops[n], self.groups.members[self.groups.group(n)]
        types: list[Type] = []
        for value, type_ in zip(op.operands, self.types.of(op), strict=True):
            handed = value not in self.constants and self.home.get(value) not in group
            is_number = handed and isinstance(type_, ScalarType)
            types.append(ScalarType(type_.dtype) if is_number else type_)  # type: ignore[union-attr,arg-type]
        if types == self.types.of(op):
            return None
        cls, attrs = op_class(op), attrs_of(op)
        assert cls is not None
        try:
            results = cls.infer(types, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        if any(isinstance(t, TensorType) and not t.is_complete for t in results):
            return Reason(Kind.NUMBERS_APART)
        # A size's bounds keep arithmetic on it within 64 bits; a handed number has none.
        if any(isinstance(t, ScalarType) and t.value is None for t in results):
            return Reason(Kind.PYTHON_NUMBER)
        return cls.can_lower_types(types, attrs)

    def _merge_along_values(self) -> None:
        # Upwards too: what could not join its producers may have become part of a group that can.
        for n in (*sorted(self.sets), *sorted(self.sets, reverse=True)):
            for value in self.ops[n].operands:
                producer = self.home.get(value)
                if producer in self.sets:
                    self._try(producer, n)

    def _is_group(self, n: int) -> bool:
        return self.groups.group(n) == n and self.sets[n].size > 0

    def _try(self, a: int, b: int) -> None:
        a, b = self.groups.group(a), self.groups.group(b)
        if a == b or not self.groups.can_merge(a, b):
            return
        x, y = self.sets[a], self.sets[b]
        uses = (x.uses - y.defs) | (y.uses - x.defs)
        if len(uses) + x.kept + y.kept > self.options.max_values:
            return  # they cannot be merged, whatever the other results are
        outs = {v for v in x.outs | y.outs if self._is_read_outside(v, a, b)}
        devices = x.devices | y.devices
        if len(devices) > 1 or not outs.isdisjoint(self.scalars):
            return
        if len(uses) + len(outs) > self.options.max_values:
            return
        if len(self.groups.members[a]) + len(self.groups.members[b]) > self.options.max_ops:
            self.too_large.add((a, b))
            return
        both = _Set(uses, x.defs | y.defs, outs, devices, x.size + y.size, x.kept + y.kept)
        self.sets[self.groups.merge(a, b)] = both

    def _is_read_outside(self, value: ir.Value, *groups: int) -> bool:
        return any(self.groups.group(n) not in groups for n in self.users[value])

    def _report_splits(self) -> None:
        """Note the pairs of groups that would have been one but for ``max-ops``."""
        pairs = {tuple(sorted(map(self.groups.group, pair))) for pair in self.too_large}
        for _ in (pair for pair in pairs if pair[0] != pair[1]):
            limit = str(self.options.max_ops)
            self.options.note(Reason(Kind.GROUP_LIMIT, detail=limit, effect=Effect.GROUPS_APART))

    # --- rewriting ----------------------------------------------------------------------------

    def _outline(self) -> None:
        chosen = []
        for g, nodes in self.groups.members.items():
            if g not in self.sets:
                continue
            if self.sets[g].size >= max(1, self.options.min_size):
                chosen.append(g)
                continue
            for n in nodes:
                if _counts(self.ops[n]):
                    self.options.refuse(self.ops[n], Reason(Kind.FEW_NEIGHBOURS))
        if not chosen:
            return
        for g in (g for g in self.graph.arrange() if g in set(chosen)):
            self._outline_group(g)

    def _outline_group(self, g: int) -> None:
        members = [self.ops[n] for n in self.groups.members[g]]
        group = self.sets[g]
        reads = dict.fromkeys(v for op in members for v in op.operands)
        inputs = [v for v in reads if v not in group.defs and not self._embedded(v)]
        outputs = [v for op in members for v in op.results if v in group.outs]
        reason = outline(self.module, members, inputs, outputs, self.constants)
        if reason is not None:
            for op in members:
                self.options.refuse(op, reason)
            return
        self.options.count("groups")
        self.options.count("ops-fused", group.size)


def _is_complex(type_: Type) -> bool:
    dtype = getattr(type_, "dtype", None)
    return dtype is not None and dtype.is_complex


def _is_expected_outside(op: ir.Operation, cls: type[Op]) -> bool:
    """True for what nobody would expect to be fused: no reason is given for it."""
    if cls is Item:  # of a number that a loop has computed, which no kernel can return as such
        made = defining_op(op.operands[0])
        return made is not None and op_class(made) is FusionGroup
    return cls.dialect == "scf" or op.name in CONSTANTS or issubclass(cls, _SILENT)


def _counts(op: ir.Operation) -> bool:
    cls = op_class(op)
    return cls is not None and cls.fusion in _COUNTING and not _is_scalar(op)


def _is_scalar(op: ir.Operation) -> bool:
    return all(isinstance(type_of(v), ScalarType) for v in op.results)
