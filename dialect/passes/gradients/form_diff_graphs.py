"""Subgraphs that are differentiated as a whole (R1.29, R2.15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import InternalError
from ...ir.gradients import rule_of
from ...ir.op import Fusion, Op
from ...ir.types import ListType, TensorType
from ...mlir.block_graph import BlockGraph, is_ordered
from ...mlir.context import loc_of
from ...mlir.facts import CONSTANTS
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    add_function,
    add_return,
    body_of,
    create,
    is_pure,
    is_terminator,
    op_class,
    ops_in,
    refresh_signature,
    short_name,
    symbol_of,
    type_of,
    types_of,
    unique_symbol,
    walk,
)
from ...mlir.values import clone_tree, constant_type, main_functions
from ...ops.control_flow.control import ControlFlow
from ...ops.gradients import AutogradAdd, AutogradZero, CustomResult, Definedness
from ...ops.speculation import DiffGraph, Identity, Profile
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from .observed import is_enough, is_observed, seen_at

MAX_CLONED = 64  # elements of a constant that a subgraph has a copy of
# What may be undefined is not differentiated ahead; a user's rule is known in one process alone.
_APART = (AutogradAdd, AutogradZero, Definedness, CustomResult)


@register_pass
@dataclass(frozen=True)
class FormDiffGraphs(Pass):
    """Merge differentiable ops of a block into subgraphs, each outlined into a private function.

    A backward scan merges what makes the operands of an op into its subgraph, as long as no cycle
    arises and no op with an effect lies between. Constants are copied, views stay outside, and so
    does what would make two results share memory, or a result and an operand. Subgraphs of fewer
    than ``threshold`` ops that have gradients are dissolved. ``observed`` leaves outside what reads
    arrays of which no run has seen the dtype and the rank, as in a branch that none has taken:
    gradients could not be recorded.
    """

    name: ClassVar[str] = "form-diff-graphs"
    counts_changes: ClassVar[bool] = True
    threshold: int = 2
    observed: bool = False

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            self._block(module, func, body_of(func))

    def _block(self, module: ir.Module, func: ir.Operation, block: ir.Block) -> None:
        """Merge in a block, and then in the blocks of those ops that are left in it."""
        _Merger(self, module, func, block).run()
        for inner in (b for op in ops_in(block) for region in op.regions for b in region.blocks):
            self._block(module, func, inner)


class _Merger:
    """Forms the subgraphs of one block."""

    def __init__(
        self, options: FormDiffGraphs, module: ir.Module, func: ir.Operation, block: ir.Block
    ) -> None:
        self.options, self.module, self.func, self.block = options, module, func, block
        memory = Memory(func)
        # By number: ops stay in their places until their subgraphs are known.
        self.may = {n for n, op in enumerate(ops_in(block)) if _may_join(op, memory)}
        if options.observed:
            self._leave_unobserved()

    def _leave_unobserved(self) -> None:
        """Leave outside what reads arrays of which too little was seen.

        The reason is told of ops of the function's own block: of a branch that never ran, that of
        the branch tells all.
        """
        made: set[ir.Value] = set()
        for n, op in enumerate(ops_in(self.block)):
            if n not in self.may:
                continue
            is_observer = op_class(op) is Profile
            if is_enough(seen_at(op.results[0])) if is_observer else is_observed(op, made):
                made.update(op.results)
                continue
            self.may.remove(n)
            if _weight(op) and self.block == body_of(self.func):
                self.options.note(Reason(
                    Kind.UNOBSERVED, short_name(op), loc=loc_of(op.location), effect=Effect.APART,
                ))  # fmt: skip

    def run(self) -> None:
        if sum(_weight(op) for op in ops_in(self.block)) < self.options.threshold or not self.may:
            return
        while True:
            self.graph = BlockGraph(self.func, self.block)
            self._merge()
            chosen = [g for g, nodes in self.graph.groups.members.items() if self._is_worth(nodes)]
            pushed = {n for g in chosen for n in self._sharing(g)}
            if not pushed:
                break
            self.may -= pushed
        if chosen:
            for g in (g for g in self.graph.arrange() if g in set(chosen)):
                self._outline([self.graph.ops[n] for n in self.graph.groups.members[g]])

    def _merge(self) -> None:
        graph, groups = self.graph, self.graph.groups
        part, parts = 0, []
        for op in graph.ops:
            part += is_ordered(op)
            parts.append(part)
        changed = True
        while changed:
            changed = False
            for n in sorted(self.may, reverse=True):
                for value in _reads(graph.ops[n]):
                    producer = graph.home.get(value)
                    if producer not in self.may or parts[producer] != parts[n]:
                        continue
                    a, b = groups.group(producer), groups.group(n)
                    if a != b and groups.can_merge(a, b):
                        groups.merge(a, b)
                        changed = True

    def _is_worth(self, nodes: list[int]) -> bool:
        """True for subgraphs of enough ops that have gradients."""
        if not self.may.issuperset(nodes):
            return False
        return sum(_weight(self.graph.ops[n]) for n in nodes) >= max(1, self.options.threshold)

    def _sharing(self, g: int) -> Iterator[int]:
        """Ops of a subgraph whose results would share memory with others, or with operands."""
        members = set(self.graph.groups.members[g])
        roots: dict[ir.Value, set[ir.Value]] = {}
        seen: dict[ir.Value, int] = {}
        for n in sorted(members):
            op, cls = self.graph.ops[n], op_class(self.graph.ops[n])
            assert cls is not None
            for k, value in enumerate(op.results):
                shared = cls.shared_operands(k, len(op.operands))
                found = [roots.get(v, {v}) for v in (op.operands[i] for i in shared)]
                roots[value] = set().union(*found) if found else {value}
                if not isinstance(type_of(value), TensorType) or not self._is_read(value, members):
                    continue
                made = {v for v in roots[value] if self.graph.home.get(v) in members}
                clash = [v for v in roots[value] if v in seen]
                if made != roots[value] or clash:
                    # The value that both share stays; what only passes it on goes.
                    yield from (m for m in (n, *(seen[v] for v in clash)) if self._passes(m))
                seen.update(dict.fromkeys(roots[value], n))

    def _passes(self, n: int) -> bool:
        """True for an op a result of which may share memory with an operand."""
        op = self.graph.ops[n]
        cls = op_class(op)
        count = len(op.operands)
        return cls is not None and any(
            cls.shared_operands(k, count) for k in range(len(op.results))
        )

    def _is_read(self, value: ir.Value, members: set[int]) -> bool:
        return not self.graph.users.get(value, set()) <= members

    def _outline(self, members: list[ir.Operation]) -> None:
        made = {r for op in members for r in op.results}
        own = {r for op in members for inner in walk(op) for r in inner.results}
        own |= {a for op in members for inner in (op, *walk(op)) for a in _arguments(inner)}
        reads = dict.fromkeys(v for op in members for v in _reads(op))
        outside = [v for v in reads if v not in made and v not in own]
        cloned = [v for v in outside if _is_small(v)]
        inputs = [v for v in outside if v not in cloned]
        nodes = {self.graph.home[r] for r in made}
        outputs = [r for op in members for r in op.results if self._is_read(r, nodes)]
        last = members[-1]
        name = unique_symbol(self.module, "diff")
        func, body = add_function(self.module, name, types_of(inputs), [], loc=last.location)
        mapping = dict(zip(inputs, body.arguments, strict=True))
        ip = ir.InsertionPoint(body)
        for value in cloned:
            clone_tree(value.owner.operation, mapping, ip)
        for op in members:
            clone_tree(op, mapping, ip)
        add_return(body, [mapping[v] for v in outputs], last.location)
        refresh_signature(func)
        attrs = {"callee": symbol_of(func)}
        call = create(DiffGraph, inputs, attrs, types_of(outputs), last, last.location)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(members):
            op.erase()
        self.options.count("subgraphs")
        self.options.count("ops-merged", len(members))


def _arguments(op: ir.Operation) -> list[ir.Value]:
    return [a for region in op.regions for block in region.blocks for a in block.arguments]


def _reads(op: ir.Operation) -> Iterator[ir.Value]:
    """What an op reads, and what the ops in its blocks do."""
    yield from op.operands
    if len(op.regions):
        for inner in walk(op):
            yield from inner.operands


def _is_small(value: ir.Value) -> bool:
    """True for a constant that a subgraph has a copy of."""
    type_ = constant_type(value) if _is_constant(value) else None
    if not isinstance(type_, TensorType):
        return type_ is not None
    size = 1
    for dim in type_.shape or ():
        size *= dim if isinstance(dim, int) else MAX_CLONED + 1
    return size <= MAX_CLONED


def _is_constant(value: ir.Value) -> bool:
    source = getattr(value.owner, "operation", None)
    return source is not None and source.name in CONSTANTS


def _may_join(op: ir.Operation, memory: Memory) -> bool:
    """True for an op that may be part of a differentiable subgraph."""
    if is_terminator(op) or op.name in CONSTANTS or not is_pure(op) or not len(op.results):
        return False
    if memory.is_touched(op):
        return False
    return all(_is_known(inner) for inner in (op, *walk(op)) if not is_terminator(inner))


def _is_known(op: ir.Operation) -> bool:
    """True for an op that has a gradient, or none to have, and passes no lists."""
    if op.name in CONSTANTS:
        return True
    cls = op_class(op)
    if cls is None or issubclass(cls, _APART) or cls.foreign:
        return False
    if any(isinstance(type_of(v), ListType) for v in (*op.operands, *op.results)):
        return False
    if issubclass(cls, (Identity, ControlFlow)):
        return True
    return cls.fusion is not Fusion.VIEW and _states_rule(cls)


def _states_rule(cls: type[Op]) -> bool:
    """True for an op whose class states its gradient, or that it has none."""
    try:
        return rule_of(cls) != "undifferentiable"
    except InternalError:
        return False


def _weight(op: ir.Operation) -> int:
    """How many ops with gradients an op is, those in its blocks included.

    Numbers, such as sizes and what is computed of them, have no place on the tape.
    """
    cls = op_class(op)
    if cls is None or op.name in CONSTANTS or issubclass(cls, Identity):
        return 0
    if issubclass(cls, ControlFlow):
        return sum(_weight(inner) for inner in walk(op))
    takes_arrays = any(isinstance(type_of(v), TensorType) for v in op.operands)
    return int(takes_arrays and not cls.no_gradient and _states_rule(cls))


__all__ = ["FormDiffGraphs"]
