"""Complex numbers that loops carry, in two parts: LLVM makes no SIMD code of pairs."""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import ops_in, walk
from ..linalg.element import emit


def carry_parts(func: ir.Operation) -> None:
    """Have each counted loop that carries complex numbers carry their parts instead."""
    for loop in [op for op in walk(func) if op.name == "scf.for"]:
        if any(isinstance(r.type, ir.ComplexType) for r in loop.results):
            _split(loop)


def _split(loop: ir.Operation) -> None:
    body = loop.regions[0].blocks[0]
    low, high, step, *inits = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        begin = [part for value in inits for part in _parts(value)]
        new_loop = ir.Operation.create(
            "scf.for", results=[v.type for v in begin], operands=[low, high, step, *begin], regions=1
        )
    block = new_loop.regions[0].blocks.append(ir.IndexType.get(), *[v.type for v in begin])
    with ir.InsertionPoint(block), loop.location:
        index, *carried = block.arguments
        whole = [index, *_joined(carried, [v.type for v in inits])]
        *inside, end = ops_in(body)
        for old, new in zip(body.arguments, whole, strict=True):
            old.replace_all_uses_with(new)
        for op in inside:
            block.append(op)
        ir.Operation.create("scf.yield", operands=[part for value in end.operands for part in _parts(value)])
    with ir.InsertionPoint(loop), loop.location:
        results = _joined(list(new_loop.results), [v.type for v in inits])
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _parts(value: ir.Value) -> list[ir.Value]:
    if not isinstance(value.type, ir.ComplexType):
        return [value]
    kind = value.type.element_type
    return [emit("complex.re", kind, value), emit("complex.im", kind, value)]


def _joined(parts: list[ir.Value], types: list[ir.Type]) -> list[ir.Value]:
    values = iter(parts)
    return [
        emit("complex.create", type_, next(values), next(values)) if isinstance(type_, ir.ComplexType) else next(values)
        for type_ in types
    ]
