"""Loops of a bufferised function whose rounds are independent, so that threads may share them.

The rounds of a loop are independent if each writes arrays at places that no other one reads or
writes. That is known where, on one axis, two accesses have the same linear expression over the
loop's index and what the loop does not change, or such that differ by less than a step; and of two
halves of a square. Nothing else may pass from one round to another one: a sum, for instance, would
need an order.

A run that ends on its way is void, and starts over: so it does not matter which rounds have run.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.mlir.nesting import encloses, is_inside
from ....dialect.mlir.rewrite import blocks_in, ops_in, walk
from ...linalg.loop_builder import ASSERT, NOTED
from ..temporaries import LOOP
from .linear import Linear, constant_of, linear

INDEPENDENT = "profuse.independent"  # of a loop: its rounds may run in any order, at one time
ONE_THREAD = "profuse.one_thread"  # of an outermost loop: why its rounds are not independent

_NUMBERS = ("arith.", "math.", "complex.", "llvm.intr.", "llvm.extractvalue", "affine.apply")
_CONTROL = ("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition", ASSERT)
_ACCESSES = {"memref.load": 0, "memref.store": 1}  # -> the number of the operand that is accessed
_VIEWS = ("memref.subview", "memref.cast")
_OTHERS = ("memref.alloc", "memref.dealloc", "memref.dim")
_OWN = ("memref.alloc", "memref.alloca", "memref.view")  # what makes memory that nothing else names
_MOST_FACTOR = 1 << 20
_MOST_ACCESSES = 200  # of one array: each is compared with each
Place = tuple[Linear, ...]


@dataclass(frozen=True)
class ArrayAccess:
    """The place where an operation reads or writes an array; ``place`` is None if that is not known."""

    op: ir.Operation
    place: Place | None

    @property
    def writes(self) -> bool:
        return self.op.name == "memref.store"


def mark_rounds(func: ir.Operation) -> None:
    """Mark loops with independent rounds that are in no other such loop.

    Outermost loops get the reason where they are not marked.
    """
    for block in blocks_in(func):
        for loop in _loops(block):
            reason = _mark(loop)
            if reason:
                loop.attributes[ONE_THREAD] = ir.StringAttr.get(reason)


def _loops(block: ir.Block) -> Iterator[ir.Operation]:
    """The outermost loops of a block, also those in branches."""
    for op in ops_in(block):
        if op.name in ("scf.for", "scf.while"):
            yield op
        elif op.name == "scf.if":
            for inner in blocks_in(op):
                yield from _loops(inner)


def _mark(loop: ir.Operation) -> str:
    """Mark a loop, or else loops in it; returns why the loop itself is not marked."""
    reason = what_rounds_share(loop)
    if not reason:
        loop.attributes[INDEPENDENT] = ir.UnitAttr.get()
        return ""
    for block in blocks_in(loop):
        for inner in _loops(block):
            _mark(inner)
    return reason


def what_rounds_share(loop: ir.Operation) -> str:
    """Words for what a round of a loop shares with another one; "" = nothing, they are independent."""
    if loop.name == "scf.while":
        return "a while loop has no number of rounds"
    if loop.results:
        return "a round hands on a number to the next one"
    accesses: dict[ir.Value, list[ArrayAccess]] = {}
    may_end = False
    for op in walk(loop):
        if op.name in _ACCESSES:
            first = _ACCESSES[op.name]
            base, place = _place(op.operands[first], list(op.operands)[first + 1 :])
            accesses.setdefault(base, []).append(ArrayAccess(op, place))
        elif op.name.startswith(("func.call", "llvm.call")):
            return "a round calls a library"
        elif op.name == ASSERT:
            may_end = True
        elif not op.name.startswith(_NUMBERS) and op.name not in (*_CONTROL, *_VIEWS, *_OTHERS):
            return f"a round has {op.name}"
    may_end = may_end or any(is_noted(base, loop) for base in accesses)
    if not all(map(_is_array, accesses)):
        return "a round takes one array or another"
    for base, uses in accesses.items():
        if not any(a.writes for a in uses):
            continue
        if is_inside(base, loop) or is_private(base, loop) or is_noted(base, loop):
            if may_end and not is_inside(base, loop) and base.owner.name == "memref.view":
                return "a round that may be forbidden has a large temporary"
            continue
        if not base_rank(base):
            return "a round hands on a number to the next one"
        if not _are_apart(uses, loop):
            kind = "a temporary" if not isinstance(base, ir.BlockArgument) else "an array"
            return f"rounds write {kind} at places that others read or write"
    return ""


# --- memory ---------------------------------------------------------------------------------------


def base_rank(base: ir.Value) -> int:
    """Number of axes of an array."""
    return ir.MemRefType(base.type).rank


def _is_array(base: ir.Value) -> bool:
    """True if a value is an argument of the function, or memory that nothing else names."""
    if isinstance(base, ir.BlockArgument):
        return base.owner.owner.operation.name == "func.func"
    return base.owner.name in _OWN


def base_of(array: ir.Value) -> ir.Value:
    """The array that a view is of, or the array itself."""
    while not isinstance(array, ir.BlockArgument) and array.owner.name in _VIEWS:
        array = array.owner.operands[0]
    return array


def _place(array: ir.Value, where: list[ir.Value]) -> tuple[ir.Value, Place | None]:
    """The array that a view is of, and where in it an element of the view is."""
    place: list[Linear] | None = [linear(v) for v in where]
    while not isinstance(array, ir.BlockArgument) and array.owner.name in _VIEWS:
        op = array.owner.operation
        if op.name == "memref.subview" and place is not None:
            place = _in_whole(op, place)
        array = op.operands[0]
    return array, None if place is None else tuple(place)


def _in_whole(op: ir.Operation, place: list[Linear]) -> list[Linear] | None:
    """A place in a view as one in the array; None where the view leaves out axes."""
    if ir.MemRefType(op.results[0].type).rank != ir.MemRefType(op.operands[0].type).rank:
        return None
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = iter(list(op.operands)[1:])
    open_ = ir.ShapedType.get_dynamic_size()
    offsets = [
        linear(next(operands)) if n == open_ else Linear({}, n)
        for n in ir.DenseI64ArrayAttr(op.attributes["static_offsets"])
    ]
    if counts[3]:
        return None
    steps = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    return [o.plus(p, s) for o, p, s in zip(offsets, place, steps, strict=True)]


def is_of_round(base: ir.Value, loop: ir.Operation) -> bool:
    """True if each round of a loop writes a number in memory before it reads it.

    Its first use is a store, and all others follow in the same block or in blocks inside.
    """
    if isinstance(base, ir.BlockArgument) or base.owner.name != "memref.alloca" or base_rank(base):
        return False
    users = [use.owner.operation for use in base.uses]
    if not users or not all(encloses(loop, user) for user in users):
        return False
    for store in (u for u in users if u.name == "memref.store" and u.operands[1] == base):
        order = {view.operation: k for k, view in enumerate(store.block.operations)}
        if all(order.get(_ancestor(u, order), -1) >= order[store] for u in users):
            return True
    return False


def is_temporary(base: ir.Value, loop: ir.Operation) -> bool:
    """True if memory holds a temporary of a round of a loop, or of a loop inside."""
    if isinstance(base, ir.BlockArgument) or LOOP not in base.owner.attributes:
        return False
    number = base.owner.attributes[LOOP]
    return any(
        LOOP in op.attributes and op.attributes[LOOP] == number
        for op in (loop, *walk(loop))
        if op.name in ("scf.for", "scf.while")
    )


def is_private(base: ir.Value, loop: ir.Operation) -> bool:
    """True if each chunk of the rounds of a loop may have memory of its own for this."""
    return is_of_round(base, loop) or is_temporary(base, loop)


def is_noted(base: ir.Value, loop: ir.Operation) -> bool:
    """True if rounds do nothing with a byte in memory but note that something is forbidden."""
    if isinstance(base, ir.BlockArgument) or NOTED not in base.owner.attributes:
        return False
    inside = [u for u in (use.owner.operation for use in base.uses) if encloses(loop, u)]
    stored = []
    for op in (u for u in inside if u.name == "memref.load"):
        readers = [use.owner.operation for use in op.results[0].uses]
        if len(readers) != 1 or readers[0].name != "arith.ori":
            return False
        stores = [use.owner.operation for use in readers[0].results[0].uses]
        if len(stores) != 1 or stores[0] not in inside or stores[0].name != "memref.store":
            return False
        stored.append(stores[0])
    return all(u.name == "memref.load" or u in stored for u in inside)


def _ancestor(op: ir.Operation, order: dict[ir.Operation, int]) -> ir.Operation:
    while op not in order and op.name != "func.func":
        op = op.parent.operation
    return op


def _are_apart(uses: list[ArrayAccess], loop: ir.Operation) -> bool:
    """True if no two rounds access one place of an array that one of them writes."""
    if len(uses) > _MOST_ACCESSES:
        return False
    return all(
        _apart(uses[k].place, other.place, loop)
        for k in range(len(uses))
        for other in uses[k:]
        if uses[k].writes or other.writes
    )


def _apart(a: Place | None, b: Place | None, loop: ir.Operation) -> bool:
    """True if accesses at two places, in different rounds, are of different elements."""
    if a is None or b is None:
        return False
    axes = range(len(a))
    return any(_never_meet(a[k], b[k], loop) for k in axes) or any(
        _mirrored(a, b, p, q, loop) for p in axes for q in axes if p != q
    )


def _never_meet(a: Linear, b: Linear, loop: ir.Operation) -> bool:
    """True if an index of one round is no index of another one.

    Both step alike from round to round, and start at the same place, or between the steps.
    """
    index, step = loop.regions[0].blocks[0].arguments[0], constant_of(loop.operands[2]) or 1
    stride = abs(a.factor(index) * step)
    if a.terms != b.terms or not 0 < stride < _MOST_FACTOR:
        return False
    if any(v != index and is_inside(v, loop) for v in a.terms):
        return False
    return a.const == b.const or (a.const - b.const) % stride != 0


def _mirrored(a: Place, b: Place, p: int, q: int, loop: ir.Operation) -> bool:
    """True if a place is in one half of a square, and the other one is its mirror image.

    As in ``d[i, j]`` and ``d[j, i]`` for all ``j`` above ``i``: if both were one element, each of
    two rounds would be above the other one.
    """
    index = loop.regions[0].blocks[0].arguments[0]
    itself = Linear({index: 1})
    if a[p] != itself or b[q] != itself:
        return False
    sides = {_side(a[q], index), _side(b[p], index)}
    return sides in ({1}, {-1})


def _side(other: Linear, index: ir.Value) -> int:
    """1 for the index of an inner loop that is above that of the outer one, -1 for one below."""
    if other.const or list(other.terms.values()) != [1]:
        return 0
    (value,) = other.terms
    if not isinstance(value, ir.BlockArgument) or value.owner.owner.operation.name != "scf.for":
        return 0
    low, high, _ = (linear(v) for v in list(value.owner.owner.operands)[:3])
    if value.arg_number or value == index:
        return 0
    itself = {index: 1}
    if low.terms == itself and low.const >= 1:
        return 1
    return -1 if high.terms == itself and high.const <= 0 else 0
