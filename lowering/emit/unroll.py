"""Short innermost loops become straight code, so that the loop around them is the vector's.

Points of three coordinates, pixels of three colours and quaternions are rows of a few numbers. A
loop over these is too short for a vector. Without it, the loop over rows is the innermost one: LLVM
reads whole vectors of its rows and takes them apart by shuffles, divisions by a number of the row
and versions for rare values count for all rows, and comparisons with the index are decided here.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import ops_in, walk
from ..schedule.body import may_reassociate
from ..schedule.columns import NARROW as MOST
from ..schedule.graph import definition
from .loop_ops import EXPANDED, IN_ORDER, STRAIGHT, Ops, iterations, literal

_MAX_SIZE = 400  # operations after unrolling
_MAX_FUNCTIONS = 6  # expansions of functions after unrolling


def unroll_short_loops(ops: Ops, function: ir.Operation) -> bool:
    """Unroll the short loops of a nest that are within loops and hold none themselves; True if there were any."""
    return _visit(ops, function.regions[0].blocks[0], None)


def _visit(ops: Ops, block: ir.Block, around: ir.Operation | None) -> bool:
    is_unrolled = False
    for op in ops_in(block):
        if op.name != "scf.for":
            continue
        is_unrolled |= _visit(ops, op.regions[0].blocks[0], op)
        _fold_bounds(ops, op)
        count = iterations(op)
        if around is None or count is None or count > MOST:
            continue
        inside = list(walk(op))
        if any(IN_ORDER in o.attributes for o in inside):
            # Sizes depend on the CPU's expansions of functions, and the order of sums must not.
            is_small = sum(EXPANDED in o.attributes for o in inside) * count <= _MAX_FUNCTIONS
        else:
            is_small = len(inside) * count <= _MAX_SIZE
        if is_small and not any(o.name in _NESTED for o in inside):
            _unroll(ops, op)
            around.attributes[STRAIGHT] = ir.UnitAttr.get()
            is_unrolled = True
    return is_unrolled


def _fold_bounds(ops: Ops, loop: ir.Operation) -> None:
    """Make constants of a loop's bounds that are extrema of constants, as splitting makes them."""
    for number in range(2):
        bound = _known(loop.operands[number])
        if bound is not None:
            with ir.InsertionPoint(loop), loop.location:
                loop.operands[number] = ops.constant(bound, loop.operands[number].type)


def _known(value: ir.Value) -> int | None:
    constant = literal(value)
    if constant is not None:
        return constant
    op = definition(value)
    if op is None or op.name not in _EXTREMA:
        return None
    a, b = map(_known, op.operands)
    return None if a is None or b is None else _EXTREMA[op.name](a, b)


def _unroll(ops: Ops, loop: ir.Operation) -> None:
    """Replace a loop with known bounds by copies of its body; what it adds up is added in order."""
    bounds = [_known(v) for v in list(loop.operands)[:3]]
    carried = list(loop.operands)[3:]
    block = loop.regions[0].blocks[0]
    arguments = list(block.arguments)
    inside = ops_in(block)
    with ir.InsertionPoint(loop), loop.location:
        for number in range(*bounds):  # type: ignore[arg-type]
            index = ops.constant(number, arguments[0].type)
            values = dict(zip(arguments, [index, *carried], strict=True))
            for op in inside:
                operands = [values.get(v, v) for v in op.operands]
                if op.name == "scf.yield":
                    carried = operands
                    break
                copy = op.clone(ir.InsertionPoint.current)
                for k, value in enumerate(operands):
                    copy.operands[k] = value
                if may_reassociate(copy):
                    copy.attributes[IN_ORDER] = ir.UnitAttr.get()
                values.update(zip(op.results, copy.results, strict=True))
    for old, new in zip(loop.results, carried, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


_EXTREMA = {"arith.maxsi": max, "arith.minsi": min}
_NESTED = ("scf.for", "scf.if", "scf.while")
