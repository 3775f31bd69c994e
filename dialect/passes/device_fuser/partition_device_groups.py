"""Cut blocks into groups that a device computes (R3.14 to R3.27)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.chunk_motion import lower_broadcasting_chunks
from ...analysis.device_partition import DeviceGroups, GroupNode, GroupOptions
from ...errors import PipelineError
from ...ir.program import Block, Program
from ...ir.types import TensorType, Type
from ...mlir.decode import decode_function
from ...mlir.parse import replace_function
from ...mlir.rewrite import functions, is_terminator, symbol_of, type_of, walk
from ...mlir.typed_values import main_functions
from ...ops.speculation import CudaGroup
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..cleanup.cse import Cse
from ..cleanup.dce import Dce
from ..cleanup.pool_constants import PoolConstants
from ..partition.outline import Outliner
from .device_members import DeviceMembers, MemberOptions
from .size_only_results import drop_size_only_results

_CHIP = re.compile(r"sm_(\d+)[a-z]?")


@register_pass
@dataclass(frozen=True)
class PartitionDeviceGroups(Pass):
    """Merge ops of a block into groups for a device, each outlined into a private function.

    From the last op on, what makes the operands of an op joins it, what is made last first, and then, if
    ``horizontal`` is set, what reads the same tensors before it; this is repeated until nothing changes.
    A producer joins if it may be moved to just before the op, writes of memory considered, and while the
    two have at most ``max-values`` operands and results, and ``max-ops`` ops if that is set. ``single``
    makes groups of ops that nothing joins. With ``chunks``, an elementwise op whose result is cut into
    chunks for one consumer is computed chunk by chunk in its group; what it reads is broadcast and cut
    instead. ``concat`` and ``leading-chunks`` let ops that join tensors, and chunks, take part as well.
    Views of what a group reads are no results of it.

    Ops on the host's tensors take part if ``host`` is set. ``chip`` (``sm_90``) is the device's; those
    before ``sm_70`` get elementwise ops only. Results that are there for their sizes alone go where the
    sizes can be worked out.

    A merge is never refused because one tensor would be broadcast in two ways (R3.27): the
    kernels that are made here read each operand by an index of its own.
    """

    name: ClassVar[str] = "partition-device-groups"
    counts_changes: ClassVar[bool] = True
    max_values: int = 128
    max_ops: int = 0
    single: bool = False
    horizontal: bool = True
    chunks: bool = True
    host: bool = False
    chip: str = ""
    concat: bool = False
    leading_chunks: bool = False

    def run(self, module: ir.Module) -> None:
        chip = _CHIP.fullmatch(self.chip)
        if self.chip and chip is None:
            raise PipelineError(f"chip={self.chip!r} names no CUDA device", hint="chip=sm_90 is one")
        capability = int(chip[1]) if chip else 0
        members = MemberOptions(self.host, capability, self.concat, self.leading_chunks)
        names = [name for func in main_functions(module) for name in self._function(module, func, members)]
        if names:
            self._clean(module, set(names))
            drop_size_only_results(self, module, lambda _, name: name in names)

    def _function(self, module: ir.Module, func: ir.Operation, options: MemberOptions) -> list[str]:
        """Partition a function; returns the names of the functions of its groups."""
        program = decode_function(func)
        members = DeviceMembers(program, options, lambda instr, reason: self.note(reason))
        before = self.statistics.total()
        groups = list(self._block(program, program.body, members))
        if not groups and self.statistics.total() == before:
            return []
        func = replace_function(func, program)
        ops = dict(zip(map(id, program.body.walk()), (op for op in walk(func) if not is_terminator(op)), strict=True))
        values = {r: value for i in program.body.walk() for r, value in zip(i.results, ops[id(i)].results, strict=True)}
        outliner = _GroupOutliner(module)
        for group in groups:
            inside = [ops[id(instr)] for instr in group.members]
            outliner.outline(inside, [values[r] for r in group.results], inside[-1])
            self.count("groups")
            self.count("ops-fused", group.computing)
        return outliner.names

    def _block(self, program: Program, block: Block, members: DeviceMembers) -> Iterator[GroupNode]:
        """Form the groups of a block, and of those in it."""
        options = GroupOptions(self.max_values, self.max_ops, self.single, self.horizontal, self.chunks)
        partition = DeviceGroups(program, block, members, options)
        groups = partition.run()
        if partition.chunks_moved:
            self.count("chunks-moved", partition.chunks_moved)
        if partition.is_cut_short:
            self.note(Reason(Kind.ROUND_LIMIT, effect=Effect.GROUPS_APART))
        if partition.is_limited:
            self.note(Reason(Kind.GROUP_LIMIT, detail=str(self.max_ops), effect=Effect.GROUPS_APART))
        inside = {id(instr) for node in groups for instr in node.members}
        if lowered := lower_broadcasting_chunks(program, block, inside):
            self.count("chunks-lowered", lowered)
        yield from groups
        for instr in block.instrs:
            if id(instr) not in inside:
                for inner in instr.blocks:
                    yield from self._block(program, inner, members)

    def _clean(self, module: ir.Module, names: set[str]) -> None:
        """Compute in each group only once what is the same, and nothing that is not needed."""
        for func in functions(module):
            if symbol_of(func) in names:
                Dce().function(func)
                Cse().function(func, careful=True)  # the fallback is a copy, results of which may share memory
                PoolConstants().function(func, careful=True)


class _GroupOutliner(Outliner):
    """Makes a function of a group, whose arguments are tensors, and then all else (R3.19)."""

    call, prefix, copies_first = CudaGroup, "cuda_group", False

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.names: list[str] = []

    def inputs(self, members: list[ir.Operation]) -> list[ir.Value]:
        return sorted(super().inputs(members), key=lambda value: not isinstance(type_of(value), TensorType))

    def refine(self, func: ir.Operation, outputs: list[ir.Value]) -> Sequence[Type]:
        self.names.append(symbol_of(func))
        return super().refine(func, outputs)
