"""Places for the temporaries of bufferised loops: the stack, the workspace, or a block's own."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.size_algebra import OPERATORS
from ...dialect.ir.symbolic import Dim, symbol
from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit
from ..linalg.loop_builder import ASSERT

LOOP = "profuse.loop"  # number of a loop, and, of a temporary, of the loop whose rounds need it
STACK_BYTES = 4096  # largest size of a temporary on the stack
ALIGNMENT = 64
_VIEWS = frozenset(
    f"memref.{name}"
    for name in (
        "subview",
        "cast",
        "collapse_shape",
        "expand_shape",
        "view",
        "reinterpret_cast",
        "reshape",
        "transpose",
    )
)


def place_temporaries(func: ir.Operation, symbols: Sequence[str]) -> tuple[Dim, int]:
    """Give each ``memref.alloc`` of a function a place.

    Returns the bytes of workspace, and how many of its first words hold addresses of memory that
    has been allocated, which a run that ends on its way has to leave to its caller (else 0). The
    memory is an argument of the function, before the sizes. Raises LoweringError where a temporary
    outlives its block.
    """
    block = func.regions[0].blocks[0]
    arguments = list(block.arguments)
    size_arguments = arguments[len(arguments) - len(symbols) :]
    names: dict[ir.Value, Dim] = {value: symbol(name) for value, name in zip(size_arguments, symbols, strict=True)}
    memory = arguments[len(arguments) - len(symbols) - 1]
    allocations = [op for op in walk(func) if op.name == "memref.alloc"]
    sized: list[tuple[ir.Operation, list[Dim]]] = []
    freed = []
    for op in allocations:
        if _escapes(op.results[0]):
            raise LoweringError("a round of a loop would hand on memory of its own")
        maybe_dims = [dim_of(v, names) for v in op.operands]
        dims = [d for d in maybe_dims if d is not None]
        if len(dims) < len(maybe_dims):
            freed.append(op)
        else:
            sized.append((op, dims))
    words = len(freed) if any(op.name == ASSERT for op in walk(func)) else 0
    for number, op in enumerate(freed):
        _free(op, _word(memory, number, block) if words else None)
    total: Dim = -(-_bytes(ir.IndexType.get()) * words // ALIGNMENT) * ALIGNMENT
    for op, dims in sized:
        type_ = ir.MemRefType(op.results[0].type)
        sizes = iter(dims)
        shape: list[Dim] = [next(sizes) if n == _OPEN else n for n in type_.shape]
        bytes_: Dim = _bytes(type_.element_type)
        for size in shape:
            bytes_ = bytes_ * size
        start = _start(block)
        with ir.InsertionPoint(start), op.location:
            if isinstance(bytes_, int) and bytes_ <= STACK_BYTES:
                place = emit(
                    "memref.alloca",
                    type_,
                    alignment=_integer(ALIGNMENT),
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                )
            else:
                values = dict(zip(names.values(), names, strict=True))
                extents = [_value(d, values) for d in shape if not isinstance(d, int)]
                offset = _value(total, values)
                place = emit("memref.view", type_, memory, offset, *extents)
                total = total + (bytes_ + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
        _mark(place.owner.operation, _loop_around(op))
        op.results[0].replace_all_uses_with(place)
        op.erase()
    return total, words


_OPEN = ir.ShapedType.get_dynamic_size()


def _start(block: ir.Block) -> ir.Operation:
    """The first operation of the function: what is placed before it is there everywhere."""
    return block.operations[0].operation


def _loop_around(op: ir.Operation) -> ir.Operation | None:
    while op.name not in ("scf.for", "scf.while"):
        if op.name == "func.func":
            return None
        op = op.parent.operation
    return op


def _mark(place: ir.Operation, loop: ir.Operation | None) -> None:
    """Say that no round of a loop needs what another one has left in a temporary."""
    if loop is None:
        return
    if LOOP not in loop.attributes:
        root = loop
        while root.name != "func.func":
            root = root.parent.operation
        numbers = sum(op.name.startswith("scf.") and LOOP in op.attributes for op in walk(root))
        loop.attributes[LOOP] = _integer(numbers)
    place.attributes[LOOP] = loop.attributes[LOOP]


def _escapes(value: ir.Value) -> bool:
    """True if a terminator hands on the memory of a value."""
    waiting = [value]
    while waiting:
        for use in waiting.pop().uses:
            owner = use.owner
            if owner.name in ("scf.yield", "scf.condition", "func.return"):
                return True
            if owner.name in ("scf.for", "scf.while"):
                inner = owner.operation
                skipped = 3 if owner.name == "scf.for" else 0
                number = use.operand_number - skipped
                if number >= 0:
                    # The loop leaves it where it is: what follows uses the result in its place.
                    waiting.append(inner.results[number])
            elif owner.name in _VIEWS:
                waiting += list(owner.results)
    return False


def _free(op: ir.Operation, word: ir.Value | None) -> None:
    """Free a temporary at the end of its block; until then, ``word`` holds its address."""
    if word is not None:
        # With an alignment of its own, what it is freed by would not be what it is accessed by.
        if "alignment" in op.attributes:
            del op.attributes["alignment"]
        with ir.InsertionPoint.after(op), op.location:
            address = emit("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), op.results[0])
            _store(address, word)
    end = list(op.block.operations)[-1].operation
    with ir.InsertionPoint(end), op.location:
        ir.Operation.create("memref.dealloc", operands=[op.results[0]])
        if word is not None:
            _store(_value(0, {}), word)


def _word(memory: ir.Value, number: int, block: ir.Block) -> ir.Value:
    """A word of the workspace, which holds 0 at first."""
    with ir.InsertionPoint(_start(block)), block.owner.location:
        type_ = ir.MemRefType.get([], ir.IndexType.get())
        word = emit("memref.view", type_, memory, _value(number * _bytes(ir.IndexType.get()), {}))
        _store(_value(0, {}), word)
    return word


def _store(value: ir.Value, word: ir.Value) -> None:
    ir.Operation.create("memref.store", operands=[value, word])


def _bytes(element: ir.Type) -> int:
    if isinstance(element, ir.ComplexType):
        return 2 * _bytes(element.element_type)
    if isinstance(element, ir.IndexType):
        return 8
    return -(-element.width // 8)


_OPS = {"arith.addi": "+", "arith.muli": "*", "arith.maxsi": "max", "arith.minsi": "min", "arith.floordivsi": "//"}


def dim_of(value: ir.Value, names: dict[ir.Value, Dim]) -> Dim | None:
    """A size as an expression over the function's sizes; None = it is not made of these alone."""
    if value in names:
        return names[value]
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    if op.name == "arith.index_cast":
        return dim_of(op.operands[0], names)
    if op.name == "arith.subi" or op.name in _OPS:
        a, b = (dim_of(v, names) for v in op.operands)
        if a is None or b is None:
            return None
        if op.name == "arith.subi":
            return a - b
        if op.name == "arith.floordivsi" and not (isinstance(b, int) and b > 0):
            return None
        return OPERATORS[_OPS[op.name]](a, b)
    return None


def _value(dim: Dim, values: dict[Dim, ir.Value]) -> ir.Value:
    """An expression over the function's sizes as an ``index`` value."""
    index = ir.IndexType.get()

    def leaf(name: str) -> ir.Value:
        return values[symbol(name)]

    def binary(op: str, a: ir.Value, b: ir.Value) -> ir.Value:
        names = {sign: name for name, sign in _OPS.items()}
        return emit(names[op], index, a, b)

    if isinstance(dim, int):
        return emit("arith.constant", index, value=ir.IntegerAttr.get(index, dim))
    return dim.fold(leaf, lambda part: _value(part, values), binary)


def _integer(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
