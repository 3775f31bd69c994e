"""Guard device groups, with the unspecialised body as the alternative (R3.35 to R3.41)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...guards.checks import ALL_FREE
from ...guards.free_sizes import FreeSizes
from ...ir.types import TensorType, Type
from ...mlir.facts import is_constant
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    defining_op,
    erase,
    is_a,
    refresh_signature,
    symbol_of,
    types_of,
    walk,
    walk_inner_first,
)
from ...mlir.typed_values import main_functions
from ...ops.speculation import CudaGroup, CudaGuard
from ...reasons import Effect, Reason
from ..base import Pass, register_pass
from ..cleanup.bind_late import BindLate
from ..partition.alternatives import callee_of, guarded, put_back, unspecialised
from .group_sizes import free_group, is_profiled
from .guarded_values import insert_value_checks, unexpressed_sizes
from .speculated_values import ValueCheck, take_constants, take_operands


@dataclass(frozen=True)
class _Candidate:
    """A group that is to be guarded.

    Attributes:
        call: the call of its function.
        callee: the function.
        fallback: the copy of it that runs otherwise.
        checked: the operands that are tensors, but for constants.
        profiled: the types of all operands.
        speculated: what has to be compared of operands that stand for values of the run.
    """

    call: ir.Operation
    callee: ir.Operation
    fallback: ir.Operation
    checked: list[int]
    profiled: Sequence[Type]
    speculated: list[ValueCheck]


@register_pass
@dataclass(frozen=True)
class InsertDeviceGuards(Pass):
    """Run each device group only for operands that its kernel is made for.

    A `cuda_guard` of all tensor operands but constants decides between the group and a fallback graph, a
    copy of the body with the types erased. The function of the group gets symbols for sizes, and the
    guard asks that these fit each other as the ops of the group need it (A6).

    An operand that an observer gives, for which there is a conditional constant in the body, is compared
    with that constant; the fallback alone takes it. The sizes of a view have to regroup those of the
    viewed array as they did when profiled.

    A group that cannot be compiled so, or of which too little is known for such a comparison, is
    dissolved. One with an operand of which no profile tells dtype, rank and device keeps what there is,
    for `drop-unprofiled-groups`.
    """

    name: ClassVar[str] = "insert-device-guards"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        candidates = []
        for func in main_functions(module):
            for op in [op for op in walk_inner_first(func) if is_a(op, CudaGroup) and not _is_guarded(op)]:
                candidate = self._prepare(module, op)
                candidates += [] if candidate is None else [candidate]
        binding = BindLate()
        binding.run(module)
        self.statistics.update(binding.statistics)
        speculated = {}
        for candidate in candidates:
            if self._guard(module, candidate):
                speculated[symbol_of(candidate.fallback)] = candidate.speculated
        insert_value_checks(module, {name: checks for name, checks in speculated.items() if checks})

    def _prepare(self, module: ir.Module, op: ir.Operation) -> _Candidate | None:
        callee = callee_of(module, op)
        fallback = unspecialised(module, callee, "cuda_group")
        take_operands(fallback)
        # However NumPy laid out what another group makes when it was profiled, a kernel does so in C order.
        laid_out = zip(op.operands, types_of(body_of(callee).arguments), strict=True)
        profiled = [_as_kernels_give_it(t) if is_a(defining_op(v), CudaGroup) else t for v, t in laid_out]
        checked = [k for k, v in enumerate(op.operands) if isinstance(profiled[k], TensorType) and not is_constant(v)]
        candidate = _Candidate(op, callee, fallback, checked, profiled, [])
        answer = take_constants(callee)
        if not isinstance(answer, Reason):
            answer = unexpressed_sizes(fallback, answer) or answer
        if isinstance(answer, Reason):
            self._dissolve(module, candidate, answer)
            return None
        if not checked and not answer:
            erase(fallback)
            return None
        return replace(candidate, speculated=answer)

    def _guard(self, module: ir.Module, group: _Candidate) -> bool:
        """Guard one group; False if it is dissolved instead."""
        gone = {check.operand for check in group.speculated}
        left = [k for k in range(len(group.profiled)) if k not in gone]
        arguments = body_of(group.callee).arguments
        for k in sorted(gone, reverse=True):
            arguments[k].owner.erase_argument(k)
        refresh_signature(group.callee)
        expected: Sequence[TensorType] = [group.profiled[k] for k in group.checked]  # type: ignore[misc]
        free: FreeSizes = ALL_FREE
        if all(map(is_profiled, expected)):
            answer = free_group(group.callee, {left.index(k): n for n, k in enumerate(group.checked)}, expected)
            if isinstance(answer, Reason):
                self._dissolve(module, group, answer)
                return False
            free, expected = answer
        asked = {"equal": free.equal, "fit": free.fit}
        name = symbol_of(group.fallback)
        guarded(group.call, CudaGuard, group.checked, expected, name, asked, gone, keeps_types=True)
        self.count("guards")
        return True

    def _dissolve(self, module: ir.Module, group: _Candidate, reason: Reason) -> None:
        self.note(replace(reason, effect=Effect.DISSOLVED))
        put_back(group.call, group.fallback)
        erase(group.fallback)
        name = symbol_of(group.callee)
        if not any(is_a(op, CudaGroup) and attrs_of(op)["callee"] == name for op in walk(module)):
            erase(group.callee)
        self.count("groups-dissolved")


def _as_kernels_give_it(type_: Type) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None or type_.strides is None:
        return type_
    return replace(type_, strides="contiguous")


def _is_guarded(op: ir.Operation) -> bool:
    """True if an operand comes from a check: the group has been through this pass."""
    return any(is_a(defining_op(v), CudaGuard) for v in op.operands)
