"""What an indexed batch normalisation hands to its backward op, made beside the groups (R3.44, R3.45)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import makers, readers
from ...ir.dtypes import F32, U8, DType
from ...ir.program import Block, Instr, Program
from ...ir.types import INT_SCALAR, TensorType, Type
from ...mlir.decoded_module import DecodedModule
from ...ops.create import Constant, Full
from ...ops.nn.batch_norms import BatchNormIndex, BatchNormIndexBackward
from ...ops.speculation import CudaGroup
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from .group_calls import drop_results

_RESERVE, _INDEX = ([field.name for field in BatchNormIndex.results].index(name) for name in ("reserve", "index"))


@register_pass
@dataclass(frozen=True)
class RepairBatchNorm(Pass):
    """Make the index and the reserve of `batch_norm_index` beside the group instead of in it.

    The index is 0, and the reserve is an empty array of u8; fallbacks keep their own. A group of
    the backward op gets an empty array of f32 as its reserve, of which kernels read nothing.
    """

    name: ClassVar[str] = "repair-batch-norm"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(CudaGroup)):
            program = graphs[name]
            for block in [program.body, *(b for instr in program.body.walk() for b in instr.blocks)]:
                for call in [i for i in block.instrs if issubclass(i.op, CudaGroup)]:
                    callee = call.attrs["callee"]
                    body = graphs[callee]
                    if not any(i.op in (BatchNormIndex, BatchNormIndexBackward) for i in body.body.walk()):
                        continue
                    if graphs.count_calls(callee) != 1:
                        continue  # as each group has a function of its own before equal ones become one
                    changes = self._forward(program, block, call, body) + self._backward(program, block, call, body)
                    if changes:
                        graphs.mark(name)
                        graphs.mark(callee)
        graphs.store()

    def _forward(self, program: Program, block: Block, call: Instr, body: Program) -> int:
        """Take indices and reserves from the results of a group; returns how many."""
        sources = makers(body.body)
        repaired: list[int] = []
        for k in reversed(range(len(call.results))):
            source = sources.get(body.outputs[k])
            if source is None or source.op is not BatchNormIndex:
                continue
            position = source.results.index(body.outputs[k])
            if position not in (_RESERVE, _INDEX):
                continue
            at = _place(block, call) + 1
            if position == _INDEX:
                instrs = [Instr(Constant, (), (program.new_value(INT_SCALAR),), {"value": 0}, loc=call.loc)]
            else:
                instrs = _empty(program, call, U8, program.type_of(call.results[k]))
            block.instrs[at:at] = instrs
            program.body.replace({call.results[k]: instrs[-1].results[0]})
            repaired.append(k)
        if repaired:
            self.count("results-made-outside", drop_results(program, call, body, repaired))
        return len(repaired)

    def _backward(self, program: Program, block: Block, call: Instr, body: Program) -> int:
        """Feed reserves of backward ops in a group with empty arrays; returns how many."""
        count = 0
        users = readers(body.body)
        for instr in [i for i in body.body.walk() if i.op is BatchNormIndexBackward]:
            reserve = instr.operands[-1]
            others = [u for u in users[reserve] if not _reads_as_reserve(u, reserve)]
            if reserve not in body.inputs or others:
                # One that the group makes itself, or computes with, is what the op takes.
                self.note(
                    Reason(Kind.RESERVE_COMPUTED, instr.op.name, effect=Effect.LEFT_WHOLE, loc=instr.loc or call.loc)
                )
                continue
            k = body.inputs.index(reserve)
            type_ = _beside(program, F32, call.operands[1:2])
            if body.type_of(reserve) == type_:
                continue
            instrs = _empty(program, call, F32, type_)
            at = _place(block, call)
            block.instrs[at:at] = instrs
            call.operands = (*call.operands[:k], instrs[-1].results[0], *call.operands[k + 1 :])
            body.types[reserve] = type_
            self.count("reserves-replaced")
            count += 1
        return count


def _place(block: Block, call: Instr) -> int:
    return next(n for n, instr in enumerate(block.instrs) if instr is call)


def _reads_as_reserve(user: Instr | Block, value: int) -> bool:
    if not isinstance(user, Instr) or user.op is not BatchNormIndexBackward:
        return False
    return user.operands.count(value) == 1 and user.operands[-1] == value


def _empty(program: Program, call: Instr, dtype: DType, type_: Type) -> list[Instr]:
    """The ops that make an array without elements; the last one gives it, as a value of this type.

    An op that reads no array puts what it makes on the device of the graph, on which groups run.
    """
    zero, empty = program.new_value(INT_SCALAR), program.new_value(type_)
    return [
        Instr(Constant, (), (zero,), {"value": 0}, loc=call.loc),
        Instr(Full, (zero,), (empty,), {"shape": (0,), "dtype": dtype}, loc=call.loc),
    ]


def _beside(program: Program, dtype: DType, arrays: Sequence[int]) -> TensorType:
    """The type of an array without elements on the device of another one."""
    types = [program.type_of(value) for value in arrays]
    device = types[0].device if types and isinstance(types[0], TensorType) else None
    return TensorType(dtype, (0,), device=device)
