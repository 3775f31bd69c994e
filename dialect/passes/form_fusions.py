"""Merge fusible ops into groups and outline them (R1.36, R1.48)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from mlir import ir

from ..base import Fusion
from ..context import loc_of
from ..dtypes import I64, DType
from ..errors import ProfuseError
from ..ops.effects import Warn
from ..ops.speculation import FusionGroup, Guard, Identity, ProfileCounter, Subgraph
from ..rewrite import (
    add_function,
    add_return,
    attrs_of,
    body_of,
    create,
    defining_op,
    is_pure,
    is_terminator,
    op_class,
    ops_in,
    refresh_signature,
    set_type,
    symbol_of,
    terminator_of,
    type_of,
    unique_symbol,
    walk,
)  # fmt: skip
from ..types import ListType, ScalarType, TensorType, Type
from .base import Pass, register_pass
from .facts import CONSTANTS
from .grouping import Groups, chain
from .memory import Memory
from .values import Types, clone_op, constant_type, main_functions

# A larger constant is handed to the kernel as an operand instead of becoming part of its code.
MAX_EMBEDDED = 64
_COUNTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)
_SILENT = (Subgraph, Guard, Identity, ProfileCounter, Warn)


@register_pass
@dataclass(frozen=True)
class FormFusions(Pass):
    """Merge fusible ops of a block into groups, each outlined into a private function.

    First along values, then side by side, as long as no cycle arises and operands and results
    stay within ``max-values``.  Views, queries and constants never make a group on their own;
    groups of fewer than ``min-size`` ops that compute are dissolved.  ``dynamic`` admits symbolic
    sizes.  The statistics count every refused op with its reason.
    """

    name: ClassVar[str] = "form-fusions"
    min_size: int = 2
    max_values: int = 128
    dynamic: bool = False

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

    def refuse(self, op: ir.Operation, reason: str) -> None:
        """Count an op that stays outside, with the reason, and with the user's line if known."""
        what = f"{op.name.removeprefix('profuse.')}: {reason}"
        self.count(f"refused: {what}")
        loc = loc_of(op.location)
        if loc is not None:
            self.count(f"unfused: {what} at {loc}")


@dataclass
class _Set:
    """What a group reads and makes, as sets that merge fast."""

    uses: set[ir.Value] = field(default_factory=set)
    defs: set[ir.Value] = field(default_factory=set)
    outs: set[ir.Value] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    size: int = 0


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

    def run(self) -> None:
        self.memory = Memory(self.func)
        for op in ops_in(self.block):
            reason = self._refusal(op)
            if reason is None:
                self.fusible.add(op.results[0])
            elif reason:
                self.options.refuse(op, reason)
        if not self.fusible:
            return
        self._split_scalars()
        self.ops = ops_in(self.block)
        self._analyse()
        self._merge()
        self._outline()

    # --- which ops ----------------------------------------------------------------------------

    def _refusal(self, op: ir.Operation) -> str | None:
        """Why an op is not fused: None = it may be, "" = nobody would expect it to be."""
        cls = op_class(op)
        if cls is None or cls.dialect == "scf" or op.name in CONSTANTS or issubclass(cls, _SILENT):
            return ""
        types, attrs = self.types.of(op), attrs_of(op)
        try:
            results = cls.infer(types, attrs)
        except ProfuseError as error:
            return error.what
        for value, type_ in zip(op.results, results, strict=False):
            if isinstance(type_, ScalarType):
                self.types[value] = type_
        if cls.fusion is Fusion.NONE:
            return "is never fused"
        if not is_pure(op):
            return "has side effects"
        if self.memory.shares_written(op):
            return "is a view of memory that is written"
        reason = self._operand_refusal(types)
        if reason is not None:
            return reason
        if any(isinstance(t, TensorType) and not t.is_complete for t in results):
            return "result sizes depend on run-time values"
        # Arithmetic on Python numbers keeps Python's semantics unless the outcome is known.
        if any(isinstance(t, ScalarType) and t.value is None for t in results):
            return "computes a Python number"
        return _number_refusal(cls.operand_dtypes(types, attrs), types) or cls.can_lower_types(
            types, attrs
        )

    def _is_fusible(self, op: ir.Operation) -> bool:
        return len(op.results) > 0 and op.results[0] in self.fusible

    def _operand_refusal(self, types: list[Type]) -> str | None:
        devices = set()
        for index, type_ in enumerate(types):
            if isinstance(type_, ListType):
                return f"operand {index} is a list"
            if not isinstance(type_, TensorType):
                continue
            if not type_.is_complete or type_.defined is False:
                return f"type of operand {index} is not known"
            if not self.options.dynamic and not type_.is_static:
                return f"size of operand {index} varies"
            devices.add(type_.device)
        return "operands are on different devices" if len(devices - {None}) > 1 else None

    def _split_scalars(self) -> None:
        """Give each user of a query its own copy, as a group can return tensors only."""
        for op in reversed(ops_in(self.block)):
            if not self._is_fusible(op) or not _is_scalar(op):
                continue
            value = op.results[0]
            for use in list(value.uses)[1:]:
                owner = use.owner.operation
                copy = clone_op(op, {}, ir.InsertionPoint(op))
                self.types[copy.results[0]] = self.types[value]
                self.fusible.add(copy.results[0])
                owner.operands[use.operand_number] = copy.results[0]

    # --- which groups -------------------------------------------------------------------------

    def _analyse(self) -> None:
        """Edges of the block's graph, and per op what it reads and makes."""
        home = {r: n for n, op in enumerate(self.ops) for r in op.results}
        self.home = home
        self.users: dict[ir.Value, set[int]] = {}
        edges: set[tuple[int, int]] = set()
        for n, op in enumerate(self.ops):
            for user in (op, *walk(op)):
                for value in user.operands:
                    self.users.setdefault(value, set()).add(n)
                    if value in home and home[value] != n:
                        edges.add((home[value], n))
        # The reads of memory and its writes keep their order (R3.17).
        edges.update(Memory(self.func).order(self.block))
        edges.update(chain([n for n, op in enumerate(self.ops) if self._is_ordered(op)]))
        last = len(self.ops) - 1
        edges.update((n, last) for n in range(last))
        self.groups = Groups(len(self.ops), edges)
        self.sets: dict[int, _Set] = {}
        for n, op in enumerate(self.ops):
            if self._is_fusible(op):
                defs = set(op.results)
                uses = {v for v in op.operands if not self._embedded(v)}
                outs = {v for v in defs if self.users.get(v)}
                devices = {t.device for t in self.types.of(op) if isinstance(t, TensorType)}
                size = int(_counts(op))
                self.sets[n] = _Set(uses, defs, outs, devices - {None}, size)  # type: ignore[arg-type]

    def _is_ordered(self, op: ir.Operation) -> bool:
        return not is_terminator(op) and not is_pure(op)

    def _embedded(self, value: ir.Value) -> bool:
        """True for constants that are copied into the group."""
        type_ = self.constants.get(value)
        if isinstance(type_, TensorType):
            size = 1
            for dim in type_.shape or ():
                size *= dim  # type: ignore[operator,assignment]
            return type_.is_static and size <= MAX_EMBEDDED
        return isinstance(type_, ScalarType)

    def _merge(self) -> None:
        self._merge_along_values()
        # Side by side: independent parts of one step (Adam's moments) belong in one kernel.
        starts = [n for n in sorted(self.sets) if self._is_group(n)]
        for k, a in enumerate(starts):
            for b in starts[k + 1 :]:
                if self._is_group(a) and self._is_group(b):
                    self._try(a, b)
        # Queries and views whose producer and user were apart before.
        self._merge_along_values()

    def _merge_along_values(self) -> None:
        # Upwards too: a chain of scalars joins a group only from its end, as no group returns one.
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
        both = _Set(x.uses | y.uses, x.defs | y.defs, set(), x.devices | y.devices, x.size + y.size)
        members = {*self.groups.members[a], *self.groups.members[b]}
        both.outs = {v for v in x.outs | y.outs if not self.users[v] <= members}
        if len(both.devices) > 1 or any(isinstance(type_of(v), ScalarType) for v in both.outs):
            return
        if len(both.uses - both.defs) + len(both.outs) > self.options.max_values:
            return
        self.sets[self.groups.merge(a, b)] = both

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
                    self.options.refuse(self.ops[n], "too few neighbours to fuse with")
        if not chosen:
            return
        order = self.groups.order()
        end = terminator_of(self.block)
        for g in order:
            for n in self.groups.members[g]:
                if self.ops[n] != end:
                    self.ops[n].move_before(end)
        for g in (g for g in order if g in set(chosen)):
            self._outline_group(g)

    def _outline_group(self, g: int) -> None:
        members = [self.ops[n] for n in self.groups.members[g]]
        group, last = self.sets[g], members[-1]
        reads = dict.fromkeys(v for op in members for v in op.operands)
        inputs = [v for v in reads if v not in group.defs and not self._embedded(v)]
        outputs = [v for op in members for v in op.results if v in group.outs]
        args = [_argument_type(type_of(v)) for v in inputs]
        name = unique_symbol(self.module, "fusion")
        func, body = add_function(self.module, name, args, [], loc=last.location)
        mapping = dict(zip(inputs, body.arguments, strict=True))
        reason = self._fill(body, members, mapping)
        if reason is not None:
            func.erase()
            for op in members:
                self.options.refuse(op, reason)
            return
        results = [mapping[v] for v in outputs]
        add_return(body, results, last.location)
        refresh_signature(func)
        types = [type_of(v) for v in outputs]
        call = create(FusionGroup, inputs, {"callee": symbol_of(func)}, types, last, last.location)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(members):
            op.erase()
        self.options.count("groups")
        self.options.count("ops-fused", group.size)

    def _fill(
        self, body: ir.Block, members: list[ir.Operation], mapping: dict[ir.Value, ir.Value]
    ) -> str | None:
        """Copy the members; the reason if their types do not follow from the arguments alone."""
        types = Types()
        ip = ir.InsertionPoint(body)
        for op in members:
            for value in op.operands:
                source = defining_op(value)
                if value not in mapping and source is not None:
                    types[clone_op(source, mapping, ip).results[0]] = self.constants[value]
            copy = clone_op(op, mapping, ip)
            cls, attrs, ins = op_class(copy), attrs_of(copy), types.of(copy)
            assert cls is not None
            try:
                inferred = cls.infer(ins, attrs)
            except ProfuseError as error:
                return error.what
            reason = cls.can_lower_types(ins, attrs)
            if reason is not None:
                return reason
            for value, type_ in zip(copy.results, inferred, strict=True):
                if isinstance(type_, TensorType):
                    if not type_.is_complete:
                        return "result sizes depend on run-time values"
                    set_type(value, type_)
                else:
                    types[value] = type_
        return None


def _number_refusal(dtypes: Sequence[DType | None] | None, types: Sequence[Type]) -> str | None:
    """Why a Python integer cannot be cast: NumPy raises OverflowError where a kernel would wrap."""
    for dtype, type_ in zip(dtypes or (), types, strict=False):
        if dtype is None or not isinstance(type_, ScalarType):
            continue
        if not dtype.is_int or dtype is I64 or not type_.dtype.is_int:
            continue
        if not isinstance(type_.value, int):
            return f"a Python integer may not fit {dtype}"
        info = np.iinfo(dtype.numpy)
        if not info.min <= type_.value <= info.max:
            return f"{type_.value} does not fit {dtype}"
    return None


def _argument_type(type_: Type) -> Type:
    """The type a group's argument is checked for; a layout nobody knows may be any, per axis."""
    if isinstance(type_, TensorType) and type_.strides is None and type_.shape is not None:
        return replace(type_, strides=(None,) * len(type_.shape))
    return type_


def _counts(op: ir.Operation) -> bool:
    cls = op_class(op)
    return cls is not None and cls.fusion in _COUNTING and not _is_scalar(op)


def _is_scalar(op: ir.Operation) -> bool:
    return all(isinstance(type_of(v), ScalarType) for v in op.results)
