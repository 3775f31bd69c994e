"""Give up groups whose guards would not know what to compare (R3.46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import drop_unread, readers
from ...errors import InternalError
from ...ir.program import Block, Instr, Program
from ...ir.types import TensorType, Type
from ...mlir.decoded_module import DecodedModule
from ...ops.control_flow.control import If
from ...ops.speculation import CudaGroup, CudaGuard, FallbackGraph
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class DropUnprofiledGroups(Pass):
    """Put the fallback in the place of a group whose guard lacks a device, a rank or a dtype.

    The ``if`` goes, and with it the group, its guard, and the checks of values that stood beside
    the guard. Nested blocks are searched as well.
    """

    name: ClassVar[str] = "drop-unprofiled-groups"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(CudaGuard)):
            program = graphs[name]
            unprofiled = [(i, k) for i in program.body.walk() if (k := _unprofiled(i)) is not None]
            for guard, operand in unprofiled:
                groups = _drop(program, guard)
                self.count("groups-dropped")
                reason = Reason(Kind.UNKNOWN_OPERAND, "cuda_group", operand, effect=Effect.DISSOLVED, loc=guard.loc)
                self.note(reason)
                graphs.mark(name)
                graphs.remove_unnamed(*groups)
        graphs.store()


def _unprofiled(instr: Instr) -> int | None:
    """The number of the first type in a guard of a device group that lacks a fact; None = each has all."""
    if not issubclass(instr.op, CudaGuard):
        return None
    return next((k for k, type_ in enumerate(instr.attrs["types"]) if not _is_profiled(type_)), None)


def _is_profiled(type_: Type) -> bool:
    return isinstance(type_, TensorType) and None not in (type_.device, type_.rank, type_.dtype)


def _drop(program: Program, guard: Instr) -> list[str]:
    """Put the fallback in the place of a guarded group; returns the functions that groups there called.

    Raises InternalError where the graph around the guard is not what `insert-device-guards` makes.
    """
    branch, chain = _branch(program, guard)
    group, fallback = branch.blocks
    inside = {id(instr) for instr in group.walk()}
    for refined in guard.results[:-1]:
        if any(id(r) not in inside and r is not group for r in readers(program.body).get(refined, ())):
            raise InternalError("a checked operand of a device group is read outside of the group", loc=guard.loc)
    if sum(i.op is FallbackGraph for i in fallback.walk()) != 1:
        raise InternalError("the guard of a device group must have exactly one fallback", loc=guard.loc)
    block = _block_of(program.body, branch)
    at = next(n for n, instr in enumerate(block.instrs) if instr is branch)
    block.instrs[at : at + 1] = fallback.instrs
    program.body.replace(dict(zip(branch.results, fallback.outputs, strict=True)))
    drop_unread(program.body, [chain.results[-1], guard.results[-1]])
    if any(i is guard for i in program.body.walk()):
        raise InternalError("the guard of a dropped group is still read", loc=guard.loc)
    return [i.attrs["callee"] for i in group.walk() if issubclass(i.op, CudaGroup)]


def _branch(program: Program, guard: Instr) -> tuple[Instr, Instr]:
    """The ``if`` that a guard decides, and what makes its condition: the guard, or all checks together."""
    users = readers(program.body)
    maker = guard
    for _ in range(2):
        passed = users.get(maker.results[-1], [])
        if len(passed) != 1 or not isinstance(passed[0], Instr):
            raise InternalError("what a guard of a device group says must be read exactly once", loc=guard.loc)
        user = passed[0]
        if user.op is If:
            return user, maker
        if user.op.name != "all_true":
            break
        maker = user
    raise InternalError("the guard of a device group must decide an if", loc=guard.loc)


def _block_of(block: Block, instr: Instr) -> Block:
    """The block, this one or one in it, that an instruction stands in."""
    for inner in block.instrs:
        if inner is instr:
            return block
        for nested in inner.blocks:
            if any(i is instr for i in nested.walk()):
                return _block_of(nested, instr)
    raise InternalError("the instruction is not in the block")
