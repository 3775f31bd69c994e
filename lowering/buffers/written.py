"""Inputs in whose memory a function with loops may write: its output may be the very same array.

A function copies an input that it changes to an output, and goes on there. Where nothing else reads
the input, the caller may pass the output's memory for both, and the copy is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.ir.dtypes import dtype_named
from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim
from ...dialect.mlir.rewrite import ops_in, walk
from ..abi import CONTIGUOUS, TensorSpec
from ..emit.loop_ops import Ops
from ..linalg.element import emit
from ..linalg.loop_builder import ASSERT

if TYPE_CHECKING:
    from .signature import Signature

_ALIGNMENT = 64
_COPY = "memref.copy"
_EQ, _NE = 0, 1  # of the predicates of ``arith.cmpi``


def share_written(func: ir.Operation, signature: Signature) -> None:
    """Leave copies of inputs to outputs out where both are one array; tell so in the signature."""
    block = func.regions[0].blocks[0]
    count = len(signature.inputs)
    outputs = [
        value for value, spec in zip(list(block.arguments)[count:], signature.outputs, strict=False) if spec.dims
    ]
    first = next(
        (
            view.operation
            for view in block.operations
            if any(v in outputs for op in [view.operation, *walk(view)] for v in op.operands)
        ),
        None,
    )
    if first is None:
        return
    _test_before(first, list(block.arguments)[:count])
    order = list(walk(func))
    signature.ends_early = all(op.name != ASSERT for op in order[order.index(first) :])
    copies = list(_copies(func, signature))
    signature.in_place = tuple(pair for _, pair in copies)
    if signature.ends_early:
        signature.in_place += tuple(_unread(block, signature))
    for copy, _ in copies:
        _only_if_apart(copy)


def _test_before(first: ir.Operation, inputs: Sequence[ir.Value]) -> None:
    """Test what may end the run before it writes anything, as far as that is known by then."""
    rest = ops_in(first.block)
    rest = rest[rest.index(first) :]
    for test in [op for op in rest if op.name == ASSERT]:
        needed, waiting = {test}, [test]
        while waiting:
            for value in waiting.pop().operands:
                producer = None if isinstance(value, ir.BlockArgument) else value.owner.operation
                if producer is not None and producer in rest and producer not in needed:
                    needed.add(producer)
                    waiting.append(producer)
        if all(op == test or _is_free(op, inputs) for op in needed):
            for op in [op for op in rest if op in needed]:
                op.move_before(first)
                rest.remove(op)


def _is_free(op: ir.Operation, inputs: Sequence[ir.Value]) -> bool:
    """True if an operation gives the same wherever it stands: it reads nothing that is written."""
    if op.name == "memref.load":  # of a number
        return len(op.operands) == 1 and op.operands[0] in inputs
    return op.name.startswith("arith.")


def _copies(func: ir.Operation, signature: Signature) -> Iterator[tuple[ir.Operation, tuple[int, int]]]:
    """The copies of inputs that nothing else reads, in order, with the (output, input) of each."""
    block = func.regions[0].blocks[0]
    count = len(signature.inputs)
    memory = list(block.arguments)[: count + len(signature.outputs)]
    places = {value: number for number, value in enumerate(memory)}
    written: set[int] = set()  # the arguments that what stands before has to do with
    for op in ops_in(block):
        pair = [places.get(v, -1) for v in op.operands] if op.name == _COPY else []
        if len(pair) == 2 and 0 <= pair[0] < count <= pair[1] and pair[1] not in written:
            input_, output = pair[0], pair[1] - count
            one, other = signature.inputs[input_], signature.outputs[output]
            is_same = (one.dims, one.dtype) == (other.dims, other.dtype)
            if one.strides == CONTIGUOUS and is_same and len(list(memory[input_].uses)) == 1:
                yield op, (output, input_)
        written.update(places[v] for inner in [op, *walk(op)] for v in inner.operands if v in places)


def _unread(block: ir.Block, signature: Signature) -> Iterator[tuple[int, int]]:
    """The (output, input) pairs of one type of which nothing reads the input."""
    for input_, spec in enumerate(signature.inputs):
        if spec.dims and spec.strides == CONTIGUOUS and not list(block.arguments[input_].uses):
            for output, other in enumerate(signature.outputs):
                if (spec.dims, spec.dtype) == (other.dims, other.dtype):
                    yield output, input_


def _only_if_apart(copy: ir.Operation) -> None:
    index = ir.IndexType.get()
    with ir.InsertionPoint(copy), copy.location:
        one, other = (emit("memref.extract_aligned_pointer_as_index", index, v) for v in copy.operands)
        ne = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _NE)
        with _where(emit("arith.cmpi", ir.IntegerType.get_signless(1), one, other, predicate=ne)):
            inside = ir.InsertionPoint.current.block
    copy.move_before(inside.operations[0].operation)


# --- void runs --------------------------------------------------------------------------------


def rooms_of(signature: Signature) -> list[tuple[tuple[int, int], Dim, Dim]]:
    """The (output, input) pairs whose array is kept: where in the workspace, and bytes of room.

    These are all that the function may write in place, if it may find its run void behind that.
    """
    rooms, place = [], signature.workspace
    for pair in () if signature.ends_early else signature.in_place:
        room = (_bytes_of(signature.inputs[pair[1]]) + (_ALIGNMENT - 1)) // _ALIGNMENT * _ALIGNMENT
        rooms.append((pair, place, room))
        place = place + room
    return rooms


def _bytes_of(spec: TensorSpec) -> Dim:
    total: Dim = dtype_named(spec.dtype).itemsize
    for text in spec.dims:
        total = parse_dim(text) * total
    return total


@dataclass
class _Kept:
    """An array that an entry keeps, if ``same`` is true: the output is also the input."""

    array: ir.Value
    copy: ir.Value
    nbytes: ir.Value
    same: ir.Value


Slot = Callable[[int], ir.Value]  # the address of a slot
Size = Callable[[Dim], ir.Value]


def keep_written(ops: Ops, signature: Signature, slot: Slot, size: Size) -> list[_Kept]:
    """Copy each array that the function is about to write in place, and might write for nothing."""
    count, kept = len(signature.inputs), []
    memory = slot(count + len(signature.outputs))
    for (output, input_), place, _ in rooms_of(signature):
        one, other = (ops.load(slot(k), ops.i64) for k in (input_, count + output))
        same = emit("arith.cmpi", ops.i1, one, other, predicate=ir.IntegerAttr.get(ops.i64, _EQ))
        array = ops.load(slot(input_), ops.pointer)
        copy = ops.offset(ops.load(memory, ops.pointer), size(place), ops.i8)
        entry = _Kept(array, copy, size(_bytes_of(signature.inputs[input_])), same)
        with _where(same):
            _copy(copy, array, entry.nbytes)
        kept.append(entry)
    return kept


def restore_written(ops: Ops, signature: Signature, slot: Slot, kept: Sequence[_Kept]) -> None:
    """Give the arrays back what they held, if the run is void."""
    if not kept:
        return
    specs = [*signature.inputs, *signature.outputs]
    number = next(k for k, spec in enumerate(specs) if spec.kind == "violation")
    flag = ops.load(slot(number), ops.pointer)
    with _where(ops.load(flag, ops.i1)):
        for one in kept:
            with _where(one.same):
                _copy(one.array, one.copy, one.nbytes)


@contextmanager
def _where(condition: ir.Value) -> Iterator[None]:
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        yield
        ir.Operation.create("scf.yield")


def _copy(to: ir.Value, since: ir.Value, nbytes: ir.Value) -> None:
    never = ir.BoolAttr.get(False)
    ir.Operation.create("llvm.intr.memcpy", operands=[to, since, nbytes], attributes={"isVolatile": never})
