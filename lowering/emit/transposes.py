"""A function that transposes a tile: squares of vectors, each in registers."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from .loop_ops import Ops, noalias

_LANES = 128  # bits that x86 shuffles with the cheapest instructions


def transposer(ops: Ops, module: ir.Operation, side: int, extent: int | None, bits: int) -> str:
    """The name of a function in ``module``, added if need be, that transposes a tile of a matrix.

    The function's arguments are a pointer to the first element of the matrix, the distance of its
    rows in elements, a pointer to the array that it writes, and the numbers of rows and columns of
    the array to write, which are at least ``side``. The rows of the array have ``extent`` elements;
    where that is None, their distance is a further argument. Elements are moved as integers of
    ``bits`` bits.

    The function is not inlined: LLVM would take long to compile loops around so long a body.
    """
    name = f"transpose_{side}x{side}xi{bits}_into_{extent or 'rows'}"
    block = module.regions[0].blocks[0]
    for view in block.operations:
        if ir.StringAttr(view.operation.attributes["sym_name"]).value == name:
            return name
    nothing = ir.DictAttr.get({})
    types = [ops.pointer, ops.i64, ops.pointer, ops.i64, ops.i64]
    attributes = [noalias(), nothing, noalias(), nothing, nothing]
    if extent is None:
        types.append(ops.i64)
        attributes.append(nothing)
    with ir.InsertionPoint(block):
        function = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "arg_attrs": ir.ArrayAttr.get(attributes),
                "llvm.linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "passthrough": ir.ArrayAttr.get([ir.StringAttr.get("noinline")]),
            },
        )
    body = function.regions[0].blocks.append(*types)
    matrix, distance, array, rows, columns = list(body.arguments)[:5]
    element = ir.IntegerType.get_signless(bits)
    with ir.InsertionPoint(body):
        zero, by = ops.constant(0), ops.constant(side)
        width = body.arguments[5] if extent is None else ops.constant(extent)
        last_row = ops.create("arith.subi", ops.word, rows, by)
        last_column = ops.create("arith.subi", ops.word, columns, by)
        # The inner loop runs along rows of memory, not of the array: their distance is larger.
        ends = (rows, columns) if extent is None else (columns, rows)
        outer = ops.loop(zero, ends[0], by, [])
        with ir.InsertionPoint(outer.body):
            inner = ops.loop(zero, ends[1], by, [])
            with ir.InsertionPoint(inner.body):
                # The last squares overlap those before them, so that no square is partial.
                down, across = inner.induction_variable, outer.induction_variable
                if extent is None:
                    down, across = across, down
                row, column = ops.least(down, last_row), ops.least(across, last_column)
                start = ops.offset(matrix, ops.mul(column, distance), element)
                source = [ops.offset(start, row, element)]
                while len(source) < side:
                    source.append(ops.offset(source[-1], distance, element))
                target = ops.offset(array, ops.add(ops.mul(row, width), column), element)
                _square(ops, element, source, target, width)
                ir.Operation.create("scf.yield")
            ir.Operation.create("scf.yield")
        ir.Operation.create("func.return")
    return name


def _square(ops: Ops, element: ir.Type, source: list[ir.Value], target: ir.Value, width: ir.Value) -> None:
    """Store a square; ``source``: its rows; ``target``: the first element, in rows of ``width``."""
    side = len(source)
    vector = ir.VectorType.get([side], element)
    aligned = ir.IntegerAttr.get(ops.i64, element.width // 8)
    rows = [ops.create("llvm.load", vector, pointer, alignment=aligned) for pointer in source]
    for n, low, high in rounds(side, min(side, _LANES // element.width)):
        for a in (a for a in range(side) if not a & n):
            b = a + n
            rows[a], rows[b] = _shuffled(rows[a], rows[b], low), _shuffled(rows[a], rows[b], high)
    for column in rows:
        ir.Operation.create("llvm.store", operands=[column, target], attributes={"alignment": aligned})
        target = ops.offset(target, width, element)


def rounds(side: int, lanes: int) -> Iterator[tuple[int, list[int], list[int]]]:
    """The rounds of shuffles that transpose a square in registers.

    Each round is a distance n and the lanes of two shuffles: they replace the rows a and a + n, for
    each a without the bit n. The rounds within blocks of ``lanes`` elements interleave two rows,
    the others move whole blocks: each shuffle is one instruction of x86.
    """
    n = lanes // 2
    while n:
        mixed = [
            k + row
            for half in (0, lanes // 2)
            for block in range(0, side, lanes)
            for k in range(block + half, block + half + lanes // 2)
            for row in (0, side)
        ]
        yield n, mixed[:side], mixed[side:]
        n //= 2
    n = lanes
    while n < side:
        even = [k for k in range(2 * side) if k // lanes % 2 == 0]
        yield n, even, [k + lanes for k in even]
        n *= 2


def _shuffled(a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    return ir.Operation.create(
        "llvm.shufflevector", results=[a.type], operands=[a, b], attributes={"mask": ir.DenseI32ArrayAttr.get(lanes)}
    ).results[0]
