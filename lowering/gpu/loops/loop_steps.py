"""The division of a bufferised function into kernels.

A loop of the function itself is a kernel with a thread for each round. Loops that are perfectly
nested in it, with independent rounds of their own and as many of them in each round, make it a
kernel with a thread for each round of the innermost one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.errors import LoweringError
from ....dialect.mlir.context import loc_of
from ....dialect.mlir.nesting import is_inside
from ....dialect.mlir.rewrite import ops_in, walk
from ...buffers.sharing.linear import constant_of
from ...buffers.sharing.repeats import ends_surely
from ...buffers.sharing.rounds import base_of, what_rounds_share
from ...buffers.sharing.work import known_work
from ...linalg.loop_builder import ASSERT

VIEWS = ("memref.subview", "memref.cast")
PLACES = (*VIEWS, "memref.alloca", "memref.view")  # where arrays are: each kernel finds them anew
_NUMBERS = ("arith.", "math.", "complex.", "llvm.intr.", "llvm.extractvalue")
_LOOPS = ("scf.for", "scf.while")
_FEW = 1024  # rounds that leave most of a GPU idle
_LONG = 1e8  # picoseconds on a core of a CPU; a thread of a GPU takes many times as long


@dataclass(frozen=True)
class Rounds:
    """A thread for each round of perfectly nested loops, the outermost first."""

    loops: tuple[ir.Operation, ...]


@dataclass(frozen=True)
class Alone:
    """Operations that one thread runs, in order."""

    operations: tuple[ir.Operation, ...]


Step = Union[Rounds, Alone]


class Pure:
    """Operations that each kernel may run for itself, as nothing that the function writes matters.

    Attributes:
        values: results of those of the function's own block.
    """

    def __init__(self, func: ir.Operation) -> None:
        self.written = {base_of(op.operands[1]) for op in walk(func) if op.name == "memref.store"}
        self.values = set(func.regions[0].blocks[0].arguments)

    def holds(self, op: ir.Operation, asserts: bool = False) -> bool:
        """True if an operation computes a number, and that of what is never written.

        ``asserts``: it may end a void run.
        """
        if op.name == "memref.load":
            return base_of(op.operands[0]) not in self.written
        if op.name == "scf.if":
            return all(o.name == "scf.yield" or self.holds(o, asserts) for o in walk(op))
        if op.name == ASSERT:
            return asserts
        return op.name.startswith(_NUMBERS) or op.name in (*PLACES, "memref.dim")

    def takes(self, op: ir.Operation) -> bool:
        """True if an operation of the function's own block is one; its results are known then."""
        if not self.holds(op, asserts=True):
            return False
        values = [*op.operands, *(v for o in walk(op) for v in o.operands if not is_inside(v, op))]
        if not self.values.issuperset(values):
            return False
        self.values.update(op.results)
        return True


def divide(func: ir.Operation, has_flag: bool, arrays: bool) -> tuple[list[Step], set[ir.Value]]:
    """The steps of a bufferised function, in order, and what each kernel may compute for itself.

    ``arrays``: rounds compute arrays, and not just single elements.

    What makes the run void from the beginning is told by the first step, which clears the flag.
    Raises LoweringError, with the reason, where a loop cannot run on a GPU.
    """
    for op in walk(func):
        if op.name == "memref.alloc":
            raise _refused("a round needs memory of a size that is not known before", op)
    pure = Pure(func)
    steps: list[Step] = []
    first: list[ir.Operation] = []
    waiting: list[ir.Operation] = []
    *operations, _end = ops_in(func.regions[0].blocks[0])
    for op in operations:
        if pure.takes(op):
            if any(o.name == ASSERT for o in (op, *walk(op))):
                first.append(op)
        elif any(o.name in _LOOPS for o in (op, *walk(op))):
            if waiting:
                steps.append(Alone(tuple(waiting)))
                waiting = []
            steps.append(_rounds(op, pure, arrays))
        else:
            waiting.append(op)
    if waiting:
        steps.append(Alone(tuple(waiting)))
    if not any(isinstance(step, Rounds) for step in steps):
        raise LoweringError("there is no loop of which a GPU could run the rounds at one time")
    return [*([Alone(tuple(first))] if has_flag else []), *steps], pure.values


def _rounds(op: ir.Operation, pure: Pure, arrays: bool) -> Rounds:
    if op.name == "scf.if":
        raise _refused("a branch decides whether there is a loop", op)
    shared = what_rounds_share(op)
    if shared:
        raise _refused(f"rounds cannot run at one time: {shared}", op)
    loops = [op]
    while (inner := _nested(loops[-1], op, pure)) is not None:
        loops.append(inner)
    if arrays:
        _check_length(loops)
    may_end = any(inner.name == ASSERT for inner in walk(op))
    if may_end and any(o.name == "scf.while" and not ends_surely(o) for o in walk(op)):
        # Python might have raised before it came to the round that never ends.
        raise _refused("a round that might not end stands beside rounds that may raise", op)
    return Rounds(tuple(loops))


def _nested(loop: ir.Operation, outermost: ir.Operation, pure: Pure) -> ir.Operation | None:
    """The loop whose rounds are all that a round of another one does, if they are independent."""
    *inside, _end = ops_in(loop.regions[0].blocks[0])
    effects = [op for op in inside if not pure.holds(op)]
    if len(effects) != 1 or effects[0].name != "scf.for" or what_rounds_share(effects[0]):
        return None
    bounds = list(effects[0].operands)[:3]
    return None if any(is_inside(v, outermost) for v in bounds) else effects[0]


def _check_length(loops: Sequence[ir.Operation]) -> None:
    """Refuse a few rounds that each take long: kernels for the arrays there use more threads."""
    count = 1
    for loop in loops:
        low, high, step = (constant_of(v) for v in list(loop.operands)[:3])
        if low is None or high is None or not step:
            return
        count *= max(-(-(high - low) // step), 0)
    work = known_work(loops[0])
    if work is not None and 0 < count < _FEW and work / count > _LONG:
        raise _refused(f"there are only {count} rounds, and each of them takes long", loops[0])


def _refused(why: str, op: ir.Operation) -> LoweringError:
    return LoweringError(f"on a GPU, {why}", loc=loc_of(op.location))
