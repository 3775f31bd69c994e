"""Subgraphs that are differentiated as a whole (R1.29, R2.15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from mlir import ir

from ...errors import InternalError
from ...ir.gradients import rule_of
from ...ir.op import Fusion, Op
from ...ir.types import ListedType, ListType, TensorType
from ...mlir.aliases import WrittenMemory
from ...mlir.context import loc_of
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import blocks_in, body_of, is_pure, is_terminator, op_class, ops_in, short_name, type_of, walk
from ...mlir.typed_values import main_functions
from ...ops.control_flow.control import ControlFlow
from ...ops.gradient_ops import AutogradAdd, AutogradZero, CustomResult, Definedness
from ...ops.speculation import DiffGraph, Identity, Profile
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..partition.block_graph import is_ordered
from ..partition.partition import Partition
from .observed import is_enough, is_observed, seen_at

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
        DiffGraphs(self, module, func, block).run()
        for inner in (b for op in ops_in(block) for b in blocks_in(op)):
            self._block(module, func, inner)


class DiffGraphs(Partition[int]):
    """The policy of one block; what it knows of a group is how many ops with gradients that has."""

    call, prefix = DiffGraph, "diff"

    def __init__(self, options: FormDiffGraphs, module: ir.Module, func: ir.Operation, block: ir.Block) -> None:
        super().__init__(module, func, block)
        self.options = options
        memory = WrittenMemory(func)
        # By number: ops stay in their places until their subgraphs are known.
        self.may = {n for n, op in enumerate(ops_in(block)) if _may_join(op, memory)}
        if options.observed:
            self._leave_unobserved()

    def _leave_unobserved(self) -> None:
        """Leave outside what reads arrays of which too little was seen.

        The reason is told of ops of the function's own block: of a branch that never ran, that of
        the branch tells all.
        """
        inside: set[ir.Value] = set()
        for n, op in enumerate(ops_in(self.block)):
            if n not in self.may:
                continue
            is_observer = op_class(op) is Profile
            if is_enough(seen_at(op.results[0])) if is_observer else is_observed(op, inside):
                inside.update(op.results)
                continue
            self.may.remove(n)
            if _weight(op) and self.block == body_of(self.func):
                self.options.note(Reason(Kind.UNOBSERVED, short_name(op), loc=loc_of(op.location), effect=Effect.APART))

    def run(self) -> None:
        if sum(_weight(op) for op in ops_in(self.block)) < self.options.threshold or not self.may:
            return
        while True:
            self.analyse()
            self.part = list(accumulate(map(is_ordered, self.graph.ops)))
            while self.merge_along_values(sorted(self.may, reverse=True)):
                pass
            chosen = self.worthy()
            pushed = {n for g in chosen for n in self._sharing(g)}
            if not pushed:
                break
            self.may -= pushed
        self.outline_groups(chosen)

    def may_join(self, n: int, op: ir.Operation) -> int | None:
        return _weight(op) if n in self.may else None

    def joins(self, a: int, b: int) -> int | None:
        """No op with an effect lies between ops of a group."""
        return self.facts[a] + self.facts[b] if self.part[a] == self.part[b] else None

    def is_worth(self, group: int) -> bool:
        return self.facts[group] >= max(1, self.options.threshold)

    def _sharing(self, g: int) -> Iterator[int]:
        """Ops of a subgraph whose results would share memory with others, or with operands."""
        members = set(self.groups.members[g])
        roots: dict[ir.Value, set[ir.Value]] = {}
        sharers: dict[ir.Value, int] = {}
        for n in sorted(members):
            op, cls = self.graph.ops[n], op_class(self.graph.ops[n])
            assert cls is not None
            for k, value in enumerate(op.results):
                shared = cls.shared_operands(k, len(op.operands))
                operand_roots = [roots.get(v, {v}) for v in (op.operands[i] for i in shared)]
                roots[value] = set().union(*operand_roots) if operand_roots else {value}
                if not isinstance(type_of(value), TensorType) or not self.is_read_outside(value, g):
                    continue
                inner_roots = {v for v in roots[value] if self.graph.home.get(v) in members}
                clash = [v for v in roots[value] if v in sharers]
                if inner_roots != roots[value] or clash:
                    # The value that both share stays; what only passes it on goes.
                    yield from (m for m in (n, *(sharers[v] for v in clash)) if self._passes(m))
                sharers.update(dict.fromkeys(roots[value], n))

    def _passes(self, n: int) -> bool:
        """True for an op a result of which may share memory with an operand."""
        op = self.graph.ops[n]
        cls = op_class(op)
        count = len(op.operands)
        return cls is not None and any(cls.shared_operands(k, count) for k in range(len(op.results)))

    def outline(self, members: list[ir.Operation], outputs: list[ir.Value], at: ir.Operation) -> None:
        self.options.count("subgraphs")
        self.options.count("ops-merged", len(members))
        super().outline(members, outputs, at)


def _may_join(op: ir.Operation, memory: WrittenMemory) -> bool:
    """True for an op that may be part of a differentiable subgraph."""
    if is_terminator(op) or is_constant_op(op) or not is_pure(op) or not len(op.results):
        return False
    if memory.is_touched(op):
        return False
    return all(_is_known(inner) for inner in (op, *walk(op)) if not is_terminator(inner))


def _is_known(op: ir.Operation) -> bool:
    """True for an op that has a gradient, or none to have, and passes no lists."""
    if is_constant_op(op):
        return True
    cls = op_class(op)
    if cls is None or issubclass(cls, _APART) or cls.foreign:
        return False
    if any(isinstance(type_of(v), (ListType, ListedType)) for v in (*op.operands, *op.results)):
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
    """The number of ops with gradients that an op is, those in its blocks included.

    Numbers, such as sizes and what is computed of them, have no place on the tape.
    """
    cls = op_class(op)
    if cls is None or is_constant_op(op) or issubclass(cls, Identity):
        return 0
    if issubclass(cls, ControlFlow):
        return sum(_weight(inner) for inner in walk(op))
    takes_arrays = any(isinstance(type_of(v), TensorType) for v in op.operands)
    return int(takes_arrays and not cls.no_gradient and _states_rule(cls))
