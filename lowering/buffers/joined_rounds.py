"""One operation for what the rounds of a loop compute element by element.

MLIR fuses an operation with its only reader. What several read, such as a mask by which arrays are
chosen from, stays an array, and each of its readers a walk through memory. Here operations that
have the same elements become one with several results: what they hand to each other is a number.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.mlir.rewrite import blocks_in, ops_in, walk
from .positions import enclosing, order_in

MOST_RESULTS = 8
MOST_OPERATIONS = 200  # of one body
_PLAIN = ("arith.", "math.", "complex.", "linalg.index", "linalg.yield")
_STILL = (
    "arith.",
    "linalg.",
    "math.",
    "complex.",
    "tensor.extract",
    "tensor.empty",
    "tensor.dim",
    "tensor.extract_slice",
)


def join_elementwise(func: ir.Operation) -> None:
    """Join operations on the same elements in the rounds of loops."""
    for loop in [op for op in walk(func) if op.name in ("scf.for", "scf.while")]:
        for block in blocks_in(loop):
            _join_in(block)


def _join_in(block: ir.Block) -> None:
    joined: list[ir.Operation] = []
    for op in ops_in(block):
        if not _is_elementwise(op):
            continue
        for number, before in enumerate(joined):
            generic = _joined(before, op, block)
            if generic is not None:
                joined[number] = generic
                break
        else:
            joined.append(op)


def _is_elementwise(op: ir.Operation) -> bool:
    """True if an operation makes each element of new arrays, of what it reads at its place."""
    if op.name != "linalg.generic" or not op.results:
        return False
    kinds = ir.ArrayAttr(op.attributes["iterator_types"])
    if any("parallel" not in str(kind) for kind in kinds):
        return False
    maps, count = _maps(op), len(op.results)
    if any(m != ir.AffineMap.get_identity(len(kinds)) for m in maps[len(maps) - count :]):
        return False
    arguments = list(op.regions[0].blocks[0].arguments)
    if any(list(a.uses) for a in arguments[len(arguments) - count :]):
        return False
    if any(_empty(value) is None for value in _outs(op)):
        return False
    users = [use.owner.operation for r in op.results for use in r.uses]
    if any(u.name in ("tensor.insert_slice", "tensor.insert") for u in users):
        return False  # what becomes a part of an array is made there
    return all(inner.name.startswith(_PLAIN) for inner in walk(op))


def _joined(first: ir.Operation, second: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """One operation in place of two; None = they stay apart."""
    if _elements(first) != _elements(second) or not _fit(first, second):
        return None
    results = set(first.results)
    identity = _maps(first)[-1]
    for value, map_ in zip(_ins(second), _maps(second), strict=False):
        if value in results and map_ != identity:
            return None
    order = order_in(block)
    begin, end = order[first], order[second]
    if not all(op.name.startswith(_STILL) for op, at in order.items() if begin < at < end):
        return None
    users = {enclosing(use.owner.operation, order) for r in results for use in r.uses}
    if any(u is None or begin < order[u] < end for u in users):
        operands = [v for op in (second, *walk(second)) for v in op.operands if v not in results]
        if not all(_is_before(v, first, order, second) for v in operands):
            return None
        return _merge(first, second, first)
    return _merge(first, second, second)


def _fit(first: ir.Operation, second: ir.Operation) -> bool:
    size = sum(1 for op in (first, second) for _ in walk(op))
    return size <= MOST_OPERATIONS and len(first.results) + len(second.results) <= MOST_RESULTS


def _is_before(value: ir.Value, op: ir.Operation, order: dict[ir.Operation, int], inside: ir.Operation) -> bool:
    """True if a value that an operation uses, itself or in its body, is there before another."""
    if isinstance(value, ir.BlockArgument):
        return True
    producer = enclosing(value.owner.operation, order)
    return producer is None or producer == inside or order[producer] < order[op]


def _merge(first: ir.Operation, second: ir.Operation, place: ir.Operation) -> ir.Operation:
    results = list(first.results)
    ins: list[ir.Value] = []
    maps: list[ir.AffineMap] = []
    for op in (first, second):
        for value, map_ in zip(_ins(op), _maps(op), strict=False):
            if value not in results and (value, map_) not in zip(ins, maps, strict=True):
                ins.append(value)
                maps.append(map_)
    yields = [list(op.regions[0].blocks[0].operations)[-1].operation for op in (first, second)]
    handed = dict(zip(results, yields[0].operands, strict=True))
    kept = [k for k, r in enumerate(results) if any(u.owner.operation != second for u in r.uses)]
    olds = [*(results[k] for k in kept), *second.results]
    outs = [*(_outs(first)[k] for k in kept), *_outs(second)]
    yielded = [*(yields[0].operands[k] for k in kept), *yields[1].operands]
    identity = _maps(first)[-1]
    with ir.InsertionPoint(place), second.location:
        clones = [_empty(value).clone().results[0] for value in outs]  # type: ignore[union-attr]
        generic = ir.Operation.create(
            "linalg.generic",
            results=[v.type for v in olds],
            operands=[*ins, *clones],
            regions=1,
            attributes={
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in [*maps, *[identity] * len(outs)]]),
                "iterator_types": first.attributes["iterator_types"],
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(ins), len(outs)]),
            },
        )
    body = generic.regions[0].blocks.append(*[v.type.element_type for v in [*ins, *outs]])
    arguments = dict(zip(zip(ins, maps, strict=True), body.arguments, strict=False))
    for op, end in zip((first, second), yields, strict=True):
        block = op.regions[0].blocks[0]
        for value, map_, argument in zip(_ins(op), _maps(op), block.arguments, strict=False):
            new = handed[value] if value in handed and op == second else arguments[value, map_]
            argument.replace_all_uses_with(new)
            yielded = [new if v == argument else v for v in yielded]
            if op == first:
                handed = {r: new if v == argument else v for r, v in handed.items()}
        for view in list(block.operations):
            if view.operation != end:
                body.append(view.operation)
    with ir.InsertionPoint(body), second.location:
        ir.Operation.create("linalg.yield", operands=yielded)
    for old, new in zip(olds, generic.results, strict=True):
        old.replace_all_uses_with(new)
    second.erase()
    first.erase()
    return generic


def _elements(op: ir.Operation) -> tuple[object, ...]:
    """A key of the sizes of the arrays that an operation makes: equal for operations of the same sizes."""
    value = _outs(op)[0]
    empty = _empty(value)
    assert empty is not None
    return (*value.type.shape, *empty.operands)


def _maps(op: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]


def _ins(op: ir.Operation) -> Sequence[ir.Value]:
    return list(op.operands)[: len(op.operands) - len(op.results)]


def _outs(op: ir.Operation) -> Sequence[ir.Value]:
    return list(op.operands)[len(op.operands) - len(op.results) :]


def _empty(value: ir.Value) -> ir.Operation | None:
    """The ``tensor.empty`` that makes a value."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "tensor.empty":
        return None
    return value.owner.operation
