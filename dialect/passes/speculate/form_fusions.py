"""Merge fusible ops into groups and outline them (R1.36, R1.48)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import ProfuseError
from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.op import Fusion, Op
from ...ir.types import ListedType, ListType, ScalarType, TensorType, Type
from ...mlir.aliases import WrittenMemory
from ...mlir.context import loc_of
from ...mlir.facts import is_conditional, is_constant_op
from ...mlir.rewrite import (
    attrs_of,
    blocks_in,
    body_of,
    defining_op,
    is_a,
    is_pure,
    op_class,
    ops_in,
    short_name,
    type_of,
    types_of,
    walk,
)
from ...mlir.typed_values import Types, clone_op, constant_type, main_functions, unused_and_undefined
from ...ops.control_flow.effect_ops import Warn
from ...ops.gradient_ops import Definedness
from ...ops.host_call import HostCall, shown
from ...ops.queries import Item
from ...ops.size_lists import OfValues
from ...ops.speculation import FusionGroup, Guard, Identity, ProfileCounter, Subgraph
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..partition.outline import GroupRefused, is_embedded
from ..partition.partition import Partition
from .exact_groups import exact_refusal, split_views
from .fusion_types import argument_types, number_refusal, replaces_part_of_carried
from .group_types import infer_group
from .left_devices import LeftDevices

MAX_COPIES = 4  # of numbers for groups, per op of a block
_COUNTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)
_SILENT = (Subgraph, Guard, Identity, ProfileCounter, Warn, Definedness, OfValues)


@register_pass
@dataclass(frozen=True)
class FormFusions(Pass):
    """Merge fusible ops of a block into groups, each outlined into a private function.

    First along values, then side by side, as long as no cycle arises, operands and results stay
    within ``max-values`` and ops, views and all, within ``max-ops``.  Views, queries and constants
    never make a group on their own; groups of fewer than ``min-size`` ops that compute are
    dissolved.  ``dynamic`` admits symbolic sizes; ``exact`` admits only what kernels of the host
    compute to the last bit as NumPy does (`exact_groups`).  Ops on the devices that ``leave`` names
    (cuda, or all) are left to the fuser of device groups (A7).  Every refused op is noted with its
    reason, and so is every pair of groups that ``max-ops`` keeps apart.
    """

    name: ClassVar[str] = "form-fusions"
    min_size: int = 2
    max_values: int = 128
    max_ops: int = 128
    dynamic: bool = False
    exact: bool = False
    leave: str = ""

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            blocks = [body_of(func)]
            blocks += [b for op in walk(func) for b in blocks_in(op)]
            constants: dict[ir.Value, Type] = {}
            for op in walk(func):
                if is_constant_op(op) and (type_ := constant_type(op.results[0])) is not None:
                    constants[op.results[0]] = type_
            for block in blocks:
                Fusions(self, module, func, block, constants).run()

    def refuse(self, op: ir.Operation, reason: Reason) -> None:
        """Note an op that stays outside, with the reason, and with the user's line if known."""
        name, loc = short_name(op), loc_of(op.location)
        effect = Effect.LEFT if reason.kind is Kind.LEFT_TO_DEVICE_FUSER else Effect.NOT_FUSED
        self.note(dataclasses.replace(reason, op=name, loc=loc, effect=effect))


@dataclass
class _Set:
    """The values that a group reads and makes, as sets, because those of two groups are merged fast."""

    uses: set[ir.Value]  # from outside
    defs: set[ir.Value]
    outs: set[ir.Value]
    devices: set[str]
    size: int
    kept: int = 0  # how many of its results are read by an op that joins no group


class Fusions(Partition[_Set]):
    """The policy of one block."""

    call, prefix, copies_first = FusionGroup, "fusion", False

    def __init__(
        self,
        options: FormFusions,
        module: ir.Module,
        func: ir.Operation,
        block: ir.Block,
        constants: dict[ir.Value, Type],
    ) -> None:
        super().__init__(module, func, block)
        self.options = options
        self.types = Types()
        self.types.known.update(constants)
        self.constants = constants
        # By first result: the hash of an `ir.Operation` changes with its operands.
        self.fusible: set[ir.Value] = set()
        self.too_large: set[tuple[int, int]] = set()

    def run(self) -> None:
        devices = devices_of([self.types[v] for v in body_of(self.func).arguments])
        self.on_device = not devices <= {HOST}
        # What is in no kernel for a device is computed by none.
        self.is_exact = self.options.exact and not self.on_device
        self.memory = WrittenMemory(self.func)
        self.left = LeftDevices(self.options.leave, self.func)
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
        self.analyse()
        while not self._merge_numbers():
            self.analyse()
        self._merge_along_values()
        # Side by side: independent parts of one step (Adam's moments) belong in one kernel.
        starts = [n for n in sorted(self.facts) if self._is_group(n)]
        while starts:
            a, *starts = starts
            for b in starts:
                self.merge(a, b)
            # What has joined another group is not asked again.
            starts = [n for n in starts if self._is_group(n)]
        # Queries and views whose producer and user were apart before.
        self._merge_along_values()
        self._report_splits()
        self.outline_groups(self.worthy())

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
        if self.left.is_left((*types, *results)):
            return Reason(Kind.LEFT_TO_DEVICE_FUSER)
        if issubclass(cls, HostCall):
            return Reason(Kind.ON_HOST, detail=shown(attrs["function"]))
        if cls.fusion is Fusion.NONE:
            return Reason(Kind.NEVER_FUSED)
        if is_conditional(op):
            return Reason(Kind.SPECULATED)
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
        if _is_open(op, types, results):
            return Reason(Kind.RUN_TIME_SIZES)
        # Arithmetic on Python numbers keeps Python's semantics unless the outcome is known; a group
        # would return a number whose type is not yet told as a tensor.
        for value, type_ in zip(op.results, results, strict=False):
            is_told = isinstance(type_of(value), ScalarType)
            if isinstance(type_, ScalarType) and (type_.value is None or not is_told):
                return Reason(Kind.PYTHON_NUMBER)
        return number_refusal(cls.operand_dtypes(types, attrs), types) or cls.can_lower_types(types, attrs)

    def _is_fusible(self, op: ir.Operation) -> bool:
        return len(op.results) > 0 and op.results[0] in self.fusible

    def _operand_refusal(self, types: list[Type]) -> Reason | None:
        for index, type_ in enumerate(types):
            if isinstance(type_, (ListType, ListedType)):
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
        budget = MAX_COPIES * len(ops)
        for op in reversed(ops):
            if not self._is_fusible(op) or not _is_scalar(op):
                continue
            value = op.results[0]
            others = list(value.uses)[1:]
            budget -= len(others)
            if budget < 0:
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

    def analyse(self) -> None:
        self.scalars: set[ir.Value] = set()
        super().analyse()

    def may_join(self, n: int, op: ir.Operation) -> _Set | None:
        if not self._is_fusible(op):
            return None
        ops, users = self.graph.ops, self.graph.users
        defs = set(op.results)
        uses = {v for v in op.operands if not self.is_copied(v)}
        outs = {v for v in defs if users.get(v)}
        self.scalars.update(v for v in defs if isinstance(type_of(v), ScalarType))
        kept = sum(not all(self._is_fusible(ops[m]) for m in users[v]) for v in outs)
        return _Set(uses, defs, outs, devices_of(self.types.of(op)), int(_counts(op)), kept)

    def _merge_numbers(self) -> bool:
        """Give ops the numbers that they are computed with, before any group is full.

        A group that is handed a number does not know its value, and hence no type that depends on
        it: an op that cannot have its numbers with it stays outside, and so do the numbers of a
        group that had to be cut among them; what the numbers were for may then be handed the last.
        No group returns a number either, so that a chain of them joins from its end.  False if an
        op was refused, and the groups have to be formed again.
        """
        for n in sorted(self.facts, reverse=True):
            for value in self.graph.reads[n]:
                if value in self.scalars:
                    self.merge(self.graph.home[value], n)
        refused: dict[int, Reason] = {}
        for n in sorted(self.facts):
            reason = self._refusal_apart(n)
            if reason is None:
                continue
            refused[n] = reason
            if _is_scalar(self.graph.ops[n]):
                group = self.groups.members[self.groups.group(n)]
                refused.update({m: reason for m in group if _is_scalar(self.graph.ops[m])})
        for n, reason in refused.items():
            self.options.refuse(self.graph.ops[n], reason)
            self.fusible.discard(self.graph.ops[n].results[0])
        return not refused

    def _refusal_apart(self, n: int) -> Reason | None:
        """Why an op cannot be fused with numbers that its group is handed; None = it can be."""
        op, group = self.graph.ops[n], self.groups.members[self.groups.group(n)]
        operands, types = self.types.of(op), list[Type]()
        for value, type_ in zip(op.operands, operands, strict=True):
            handed = value not in self.constants and self.graph.home.get(value) not in group
            is_number = handed and isinstance(type_, ScalarType)
            types.append(ScalarType(type_.dtype) if is_number else type_)  # type: ignore[union-attr,arg-type]
        if types == operands:
            return None
        cls, attrs = op_class(op), attrs_of(op)
        assert cls is not None
        try:
            results = cls.infer(types, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        if _is_open(op, types, results):
            return Reason(Kind.NUMBERS_APART)
        # A size's bounds keep arithmetic on it within 64 bits; a handed number has none.
        if any(isinstance(t, ScalarType) and t.value is None for t in results):
            return Reason(Kind.PYTHON_NUMBER)
        return cls.can_lower_types(types, attrs)

    def _merge_along_values(self) -> None:
        # Upwards too: what could not join its producers may have become part of a group that can.
        self.merge_along_values((*sorted(self.facts), *sorted(self.facts, reverse=True)))

    def _is_group(self, n: int) -> bool:
        return self.groups.group(n) == n and self.facts[n].size > 0

    def joins(self, a: int, b: int) -> _Set | None:
        x, y = self.facts[a], self.facts[b]
        uses = (x.uses - y.defs) | (y.uses - x.defs)
        if len(uses) + x.kept + y.kept > self.options.max_values:
            return None  # they cannot be merged, whatever the other results are
        outs = {v for v in x.outs | y.outs if self.is_read_outside(v, a, b)}
        devices = x.devices | y.devices
        if len(devices) > 1 or not outs.isdisjoint(self.scalars):
            return None
        if len(uses) + len(outs) > self.options.max_values:
            return None
        if len(self.groups.members[a]) + len(self.groups.members[b]) > self.options.max_ops:
            self.too_large.add((a, b))
            return None
        return _Set(uses, x.defs | y.defs, outs, devices, x.size + y.size, x.kept + y.kept)

    def _report_splits(self) -> None:
        """Note the pairs of groups that would have been one but for ``max-ops``."""
        pairs = {tuple(sorted(map(self.groups.group, pair))) for pair in self.too_large}
        for _ in (pair for pair in pairs if pair[0] != pair[1]):
            limit = str(self.options.max_ops)
            self.options.note(Reason(Kind.GROUP_LIMIT, detail=limit, effect=Effect.GROUPS_APART))

    # --- rewriting ----------------------------------------------------------------------------

    def is_worth(self, group: int) -> bool:
        if self.facts[group].size >= max(1, self.options.min_size):
            return True
        for n in self.groups.members[group]:
            if _counts(self.graph.ops[n]):
                self.options.refuse(self.graph.ops[n], Reason(Kind.FEW_NEIGHBOURS))
        return False

    def is_copied(self, value: ir.Value) -> bool:
        return is_embedded(self.constants.get(value))

    def argument_types(self, values: list[ir.Value]) -> Sequence[Type]:
        return argument_types(values)

    def refine(self, func: ir.Operation, outputs: list[ir.Value]) -> Sequence[Type]:
        infer_group(func)
        return types_of(outputs)

    def outline(self, members: list[ir.Operation], outputs: list[ir.Value], at: ir.Operation) -> None:
        size = sum(map(_counts, members))
        try:
            super().outline(members, outputs, at)
        except GroupRefused as error:
            for op in members:
                self.options.refuse(op, error.reason)
            return
        self.options.count("groups")
        self.options.count("ops-fused", size)


def _is_open(op: ir.Operation, types: Sequence[Type], results: Sequence[Type]) -> bool:
    """True if the type of a tensor among the results is not complete; those that are undefined do not count."""
    undefined = unused_and_undefined(op, types)
    return any(isinstance(t, TensorType) and not t.is_complete for k, t in enumerate(results) if k not in undefined)


def _is_complex(type_: Type) -> bool:
    dtype = getattr(type_, "dtype", None)
    return dtype is not None and dtype.is_complex


def _is_expected_outside(op: ir.Operation, cls: type[Op]) -> bool:
    """True for what nobody would expect to be fused: no reason is given for it."""
    if cls is Item:  # of a number that a loop has computed, which no kernel can return as such
        return is_a(defining_op(op.operands[0]), FusionGroup)
    return cls.dialect == "scf" or is_constant_op(op) or issubclass(cls, _SILENT)


def _counts(op: ir.Operation) -> bool:
    cls = op_class(op)
    return cls is not None and cls.fusion in _COUNTING and not _is_scalar(op)


def _is_scalar(op: ir.Operation) -> bool:
    return all(isinstance(type_of(v), ScalarType) for v in op.results)
