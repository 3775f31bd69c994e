"""Values that elements rarely need (`math.expander.K.rarely`), in loops over memory.

A loop that may become SIMD code gets a test of all its rounds in front, and a version without these
values; elsewhere a branch goes around what computes them. `emit.rare` sees to nests.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import ops_in, walk
from ..linalg.element import RARE, emit, int_type
from ..linalg.loop_builder import ASSERT

_MAX_TEST = 24  # most operations of a test; constants and addresses are free
_VIEWS = ("memref.subview", "memref.cast", "memref.expand_shape", "memref.collapse_shape")
_MOVED = ("arith.", "math.")


def set_rare_values_aside(func: ir.Operation, versions: bool = True) -> None:
    """Compute values that are marked with `RARE` only where they are needed, and take the marks.

    ``versions``: loops may become SIMD code, and get a version without these values.
    """
    for loop in [op for op in walk(func) if op.name == "scf.for" and versions]:
        selects = _marked(loop.regions[0].blocks[0])
        if not selects or not _may_be_simd(loop):
            continue
        _version(loop, selects)
        for select in selects:  # a branch would keep the loop from becoming SIMD code
            if not _calls(select):
                del select.attributes[RARE]
    groups: dict[ir.Value, list[ir.Operation]] = {}
    for op in [op for op in walk(func) if RARE in op.attributes]:
        groups.setdefault(op.operands[0], []).append(op)
    for selects in reversed(groups.values()):  # what is in the way of a rare value moves with it
        _branch(selects)


def _marked(block: ir.Block) -> list[ir.Operation]:
    return [v.operation for v in block.operations if RARE in v.operation.attributes]


def _operations(loop: ir.Operation) -> list[ir.Operation]:
    return ops_in(loop.regions[0].blocks[0])


def _defined(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _may_be_simd(loop: ir.Operation) -> bool:
    """True if rounds of a loop neither branch nor do more to a float than to add to it."""
    *inside, end = _operations(loop)
    if any(len(op.regions) or op.name == ASSERT for op in inside):
        return False
    carried = list(loop.regions[0].blocks[0].arguments)[1:]
    for arg, value in zip(carried, end.operands, strict=True):
        producer = _defined(value)
        if isinstance(value.type, (ir.F32Type, ir.F64Type)) and not (
            producer is not None
            and producer.name in ("arith.addf", "arith.subf")
            and arg in list(producer.operands)
            and len(list(arg.uses)) == 1
        ):
            return False
    return True


def _chain(select: ir.Operation) -> list[ir.Operation]:
    """The operations that only the rare value of a select needs, last first."""
    chain: list[ir.Operation] = []
    waiting = [select.operands[1]]
    inside: set[ir.Operation] = set()

    def is_inside(use: ir.OpOperand) -> bool:
        op = use.owner.operation
        return op in inside or (op == select and use.operand_number == 1)

    while waiting:
        op = _defined(waiting.pop())
        if op is None or op in inside or op.block != select.block:
            continue
        if not op.name.startswith(_MOVED):
            continue
        if all(is_inside(use) for result in op.results for use in result.uses):
            inside.add(op)
            chain.append(op)
            waiting += op.operands
    return chain


def _calls(select: ir.Operation) -> bool:
    """True if the rare value is one of libm's."""
    return any(op.name.startswith("math.") for op in _chain(select))


def _branch(selects: list[ir.Operation]) -> None:
    """Put a branch in the place of selects of one condition and what lies between them.

    A branch for each would be little enough for LLVM to take back.
    """
    block, last = selects[-1].block, selects[-1]
    order = {view.operation: number for number, view in enumerate(block.operations)}
    between = _between(selects)
    if between is None:
        for select in selects:
            _branch([select])
        return
    chain = {op for select in between if select in selects for op in _chain(select)}
    results = [
        result
        for op in between
        for result in op.results
        if any(use.owner.operation not in between for use in result.uses)
    ]
    with ir.InsertionPoint(last), last.location:
        # Else LLVM would compute functions of libm in any case, which it takes for cheap.
        truth = int_type(1)
        never = emit("arith.constant", truth, value=ir.IntegerAttr.get(truth, 0))
        condition = emit("llvm.intr.expect", truth, last.operands[0], never)
        branch = ir.Operation.create("scf.if", results=[r.type for r in results], operands=[condition], regions=2)
    rare, usual = (region.blocks.append() for region in branch.regions)
    for old, new in zip(results, branch.results, strict=True):
        old.replace_all_uses_except(new, between)
    copies: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(rare), last.location:
        for op in between:
            if op in selects:
                copies[op.results[0]] = copies.get(op.operands[1], op.operands[1])
                continue
            copy = op.clone(ir.InsertionPoint.current)
            for number, value in enumerate(op.operands):
                copy.operands[number] = copies.get(value, value)
            copies.update(zip(op.results, copy.results, strict=True))
        ir.Operation.create("scf.yield", operands=[copies[r] for r in results])
    first = rare.operations[0].operation
    for op in sorted(chain.difference(between), key=order.__getitem__):
        op.move_before(first)
    with ir.InsertionPoint(usual), last.location:
        end = ir.Operation.create("scf.yield", operands=results)
    for op in between:
        op.move_before(end)
    for select in selects:
        select.results[0].replace_all_uses_with(select.operands[2])
    for op in reversed(between):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()


def _between(selects: list[ir.Operation]) -> list[ir.Operation] | None:
    """The operations that depend on selects and on which the last one depends, itself included.

    None = not all of them can be moved to where the last one is.
    """
    last = selects[-1]
    affected: list[ir.Operation] = []
    for op in ops_in(last.block):
        if op in selects or any(_defined(value) in affected for value in op.operands):
            affected.append(op)
        if op == last:
            break
    needed = [last]
    for op in reversed(affected[:-1]):
        if any(use.owner.operation in needed for result in op.results for use in result.uses):
            needed.append(op)
    between = needed[::-1]
    if not all(op.name.startswith(_MOVED) for op in between) or not set(selects) <= set(between):
        return None
    if any(RARE in op.attributes for op in between if op not in selects):
        return None  # which have a branch of their own
    for op in affected:
        # What is used before the last select has no value yet where the branch is.
        if op not in between and any(_defined(value) in between for value in op.operands):
            return None
    return between


def _version(loop: ir.Operation, selects: list[ir.Operation]) -> None:
    """Put a test and two versions in the place of a loop, if the test is short."""
    test = _test(loop, {op.operands[0] for op in selects})
    if test is None:
        return
    truth = int_type(1)
    with ir.InsertionPoint(loop), loop.location:
        never = emit("arith.constant", truth, value=ir.IntegerAttr.get(truth, 0))
        tests = ir.Operation.create("scf.for", results=[truth], operands=[*list(loop.operands)[:3], never], regions=1)
    block = tests.regions[0].blocks.append(ir.IndexType.get(), truth)
    copies: dict[ir.Value, ir.Value] = {loop.regions[0].blocks[0].arguments[0]: block.arguments[0]}
    with ir.InsertionPoint(block), loop.location:
        for op in test:
            copy = op.clone(ir.InsertionPoint.current)
            for number, value in enumerate(op.operands):
                copy.operands[number] = copies.get(value, value)
            copies.update(zip(op.results, copy.results, strict=True))
        any_rare = block.arguments[1]
        for condition in dict.fromkeys(op.operands[0] for op in selects):
            any_rare = emit("arith.ori", truth, any_rare, copies.get(condition, condition))
        ir.Operation.create("scf.yield", operands=[any_rare])
    with ir.InsertionPoint(loop), loop.location:
        choice = ir.Operation.create(
            "scf.if", results=[r.type for r in loop.results], operands=[tests.results[0]], regions=2
        )
    for old, new in zip(loop.results, choice.results, strict=True):
        old.replace_all_uses_with(new)
    whole, usual = (region.blocks.append() for region in choice.regions)
    with ir.InsertionPoint(usual), loop.location:
        copy = loop.clone(ir.InsertionPoint.current)
        ir.Operation.create("scf.yield", operands=list(copy.results))
    for select in _marked(copy.regions[0].blocks[0]):
        chain = _chain(select)
        select.results[0].replace_all_uses_with(select.operands[2])
        select.erase()
        for op in chain:
            op.erase()
    with ir.InsertionPoint(whole), loop.location:
        end = ir.Operation.create("scf.yield", operands=list(loop.results))
    loop.move_before(end)


def _test(loop: ir.Operation, conditions: set[ir.Value]) -> list[ir.Operation] | None:
    """The operations that compute conditions of all rounds before the first round; None = that cannot be."""
    body = loop.regions[0].blocks[0]
    carried = list(body.arguments)[1:]
    stores = [op for op in _operations(loop) if op.name == "memref.store"]
    ops: set[ir.Operation] = set()
    waiting = list(conditions)
    while waiting:
        value = waiting.pop()
        if value in carried:
            return None
        op = _defined(value)
        if op is None or op in ops or op.block != body:
            continue
        if op.name == "memref.load":
            if not all(_apart(op, store) for store in stores):
                return None
        elif not op.name.startswith("arith.") and op.name not in ("math.absf", "math.fma"):
            return None
        ops.add(op)
        waiting += op.operands
    if sum(op.name not in ("arith.constant", "memref.load") for op in ops) > _MAX_TEST:
        return None
    return [op for op in _operations(loop) if op in ops]


def _apart(load: ir.Operation, store: ir.Operation) -> bool:
    """True if no round reads what an earlier one has written."""
    if load.operands[0] == store.operands[1]:
        return list(load.operands)[1:] == list(store.operands)[2:]
    one, other = _memory(load.operands[0]), _memory(store.operands[1])
    return one is not None and other is not None and one != other


def _memory(value: ir.Value) -> ir.Value | None:
    """The memory of which a value is a part; None = it cannot be told."""
    op = _defined(value)
    while op is not None and op.name in _VIEWS:
        value = op.operands[0]
        op = _defined(value)
    if op is None:
        assert isinstance(value, ir.BlockArgument)
        return value if value.owner.owner.operation.name == "func.func" else None
    # Temporaries that are in use at the same time have different places in the workspace.
    return value if op.name in ("memref.alloc", "memref.alloca", "memref.view") else None
