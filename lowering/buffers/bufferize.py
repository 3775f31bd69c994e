"""Linalg on tensors with loops -> loops over memrefs, by MLIR's one-shot bufferisation.

The function gets memory for its outputs, and never writes that of its inputs. Temporaries of sizes
that do not change lie on the stack or in the workspace; others are allocated and freed in a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.symbolic import Dim
from ...dialect.mlir.rewrite import blocks_in, ops_in, walk
from ..emit.lengths import compare_squares
from ..linalg.element import emit
from ..linalg.generic import fill_region
from ..math import expand
from ..schedule.body import may_reassociate
from ..schedule.columns import NARROW
from ..stages import run_passes
from .complex_sums import carry_parts
from .edges import set_edges_apart
from .fitting import set_fitting_apart
from .interchange import rounds_within_blocks
from .joined_rounds import join_elementwise
from .memory_choice import make_in_outputs, own_destinations, write_directly
from .merge_parts import chain_insertions, merge_parts
from .old_values import keep_old_values
from .ownership import MATERIALIZE, keep_in_place
from .rare_rounds import set_rare_values_aside
from .round_products import lower_products, mark_products
from .sharing.rounds import mark_rounds
from .signature import Signature, function_named
from .temporaries import place_temporaries
from .written import share_written

MOST_WRITES = 64
"""Of tensors in one function: the analysis takes time with the cube of their number."""
MARK = "profuse.workspace"  # of a module of bufferised loops: bytes of workspace

_FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize,cse)"
_UNIQUE = "builtin.module(cse)"
_BUFFERIZE = "builtin.module(one-shot-bufferize,canonicalize,cse,canonicalize)"
_LOOPS = "builtin.module(func.func(convert-linalg-to-loops),canonicalize,cse,fold-memref-alias-ops)"
_EDGES = "builtin.module(canonicalize,cse)"
_DIALECTS = ("func", "arith", "math", "scf", "llvm", "ub", "memref", "linalg", "bufferization", "cf")


def has_loops(module: ir.Module) -> bool:
    """True for a module of functions with control flow on tensors."""
    return any(has_control_flow(func.operation) for func in module.body.operations)


def has_control_flow(function: ir.Operation) -> bool:
    """True for a function with loops or branches on tensors."""
    operations = function.regions[0].blocks[0].operations
    return any(op.operation.name in ("scf.for", "scf.while", "scf.if") for op in operations)


def bufferize(
    module: ir.Module, *, slow_subnormals: bool = False, fused: bool = False, on_host: bool = True
) -> tuple[ir.Module, Signature, Dim, int]:
    """Loops over memrefs, in a new module, the signature, the bytes of workspace, library calls.

    ``on_host``: inputs may be written in place, and loops are taken apart for caches, vectors and
    predictable branches; else each round stays whole. `math.expand` explains the other arguments.
    Raises LoweringError, also where rounds of a loop would copy arrays.
    """
    for dialect in _DIALECTS:
        _ = module.context.dialects[dialect]
    text = module.operation.get_asm(enable_debug_info=True)  # refusals name the place
    with ir.Location.unknown():
        result = ir.Module.parse(text, module.context)
    func = result.body.operations[0].operation
    signature = Signature(func)
    run_passes(_UNIQUE, result, "loops on tensors do not simplify")
    with ir.Location.unknown(module.context):
        # Simplification would take what a row is put into for what it was taken from.
        merge_parts(func)
    _verify(result)
    run_passes(_FUSE, result, "loops on tensors do not simplify")
    func = result.body.operations[0].operation
    with ir.Location.unknown(module.context):
        join_elementwise(func)
        chain_insertions(func)
        mark_products(func)
        keep_old_values(func)
        _write_constants(func)
        own_destinations(func)
        keep_in_place(func)
        write_directly(func)
        _check_writes(func)
        _take_memory(func, signature)
    _verify(result)  # a pass may abort the process on what is not valid
    run_passes(_BUFFERIZE, result, "loops on tensors do not bufferise")
    func = result.body.operations[0].operation
    with ir.Location.unknown(module.context):
        _check_copies(func)
        if on_host:
            share_written(func, signature)
        _write_copies(func)
        workspace, signature.freed = place_temporaries(func, signature.symbols)
        calls = lower_products(result, func, on_host)
        _add_in_order(func)
        carry_parts(func)
    run_passes(_LOOPS, result, "loops on memory do not lower")
    func = function_named(result, signature.name)  # declarations of products may stand before it
    with ir.Location.unknown(module.context):
        if on_host:
            rounds_within_blocks(func)
        compare_squares(func)
        signature.has_functions = _expand_math(func, slow_subnormals, fused, versions=on_host)
        fitting = on_host and set_fitting_apart(func)
        mark_rounds(func)
        edges = on_host and set_edges_apart(func)
        result.operation.attributes[MARK] = ir.StringAttr.get(str(workspace))
    if edges or fitting:
        run_passes(_EDGES, result, "the edges of loops do not simplify")
    return result, signature, workspace, calls


def _verify(module: ir.Module) -> None:
    """Raise LoweringError for IR that is not valid."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise LoweringError(f"loops on tensors are not valid: {error}") from error


def _take_memory(func: ir.Operation, signature: Signature) -> None:
    """Give a function memory in place of tensors: inputs, outputs, workspace, then sizes."""
    block = func.regions[0].blocks[0]
    memrefs = signature.memrefs()
    count = len(signature.inputs)
    bytes_ = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8))
    index = ir.IndexType.get()
    old = list(block.arguments)
    here = ir.Location.unknown()
    new = [block.add_argument(t, here) for t in [*memrefs, bytes_]]
    sizes = [block.add_argument(index, here) for _ in signature.symbols]
    start = ir.InsertionPoint.at_block_begin(block)
    unit = ir.UnitAttr.get()
    outputs: list[ir.Value | None] = []
    with start:
        for value, memory in zip(old, new, strict=False):
            if isinstance(value.type, ir.RankedTensorType):
                tensor = emit("bufferization.to_tensor", value.type, memory, restrict=unit)
                value.replace_all_uses_with(tensor)
        for type_, memory in zip(signature.result_types, new[count:], strict=False):
            outputs.append(
                emit("bufferization.to_tensor", type_, memory, restrict=unit, writable=unit) if type_.rank else None
            )
    for value, size in zip(old[count:], sizes, strict=True):
        value.replace_all_uses_with(size)
    end = list(block.operations)[-1].operation
    make_in_outputs(list(end.operands), outputs)
    with ir.InsertionPoint(end):
        for value, memory in zip(list(end.operands), new[count:], strict=False):
            ir.Operation.create(MATERIALIZE, operands=[value, memory], attributes={"restrict": unit, "writable": unit})
        ir.Operation.create("func.return")
    end.erase()
    for number in reversed(range(len(old))):
        block.erase_argument(number)
    types = [a.type for a in block.arguments]
    for name in list(_attributes(func)):
        if name.startswith("profuse.") or name in ("arg_attrs", "res_attrs"):
            del func.attributes[name]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _write_constants(func: ir.Operation) -> None:
    """Make constant tensors of their elements, once: bufferisation makes globals of literals."""
    block = func.regions[0].blocks[0]
    for op in [op for op in walk(func) if op.name == "arith.constant"]:
        type_ = op.results[0].type
        if not isinstance(type_, ir.RankedTensorType):
            continue
        with ir.InsertionPoint.at_block_begin(block), op.location:
            elements = [
                emit("arith.constant", type_.element_type, value=value)
                for value in _elements(ir.DenseElementsAttr(op.attributes["value"]), type_)
            ]
            tensor = emit("tensor.from_elements", type_, *elements)
        op.results[0].replace_all_uses_with(tensor)
        op.erase()


def _elements(values: ir.DenseElementsAttr, type_: ir.RankedTensorType) -> list[ir.Attribute]:
    count, kind = math.prod(type_.shape), type_.element_type
    if values.is_splat:
        return [values.get_splat_value()] * count
    if isinstance(kind, (ir.IntegerType, ir.IndexType)):
        numbers = ir.DenseIntElementsAttr(values)
        return [ir.IntegerAttr.get(kind, numbers[k]) for k in range(count)]
    floats = ir.DenseFPElementsAttr(values)
    return [ir.FloatAttr.get(kind, floats[k]) for k in range(count)]


def _inside_loops(func: ir.Operation) -> Iterator[ir.Operation]:
    for op in walk(func):
        if op.name in ("scf.for", "scf.while"):
            yield op


def _check_writes(func: ir.Operation) -> None:
    writes = sum(
        op.name in ("tensor.insert", "tensor.insert_slice", MATERIALIZE)
        or (op.name.startswith("linalg.") and len(op.results) > 0)
        for op in walk(func)
    )
    if writes > MOST_WRITES:
        raise LoweringError(f"its loops write arrays at {writes} places, of which {MOST_WRITES} are analysed")


def _check_copies(func: ir.Operation) -> None:
    """Refuse loops that copy an array in a round that computes no array as large."""
    for loop in _inside_loops(func):
        for block in blocks_in(loop):
            _check_block(block)


def _check_block(block: ir.Block, around: int = 0) -> None:
    """``around``: what `_work` finds in the round of which the block is a branch."""
    most = max(map(_work, ops_in(block)), default=0)
    most = max(most, around)
    for op in ops_in(block):
        if op.name == "memref.copy" and ir.MemRefType(op.operands[0].type).rank > most and not _is_part(op.operands[1]):
            raise LoweringError("a round of a loop would copy an array that it changes in part")
        if op.name == "scf.if":
            for inner in blocks_in(op):
                _check_block(inner, most)


def _is_part(target: ir.Value) -> bool:
    """True for a part of an array, into which a round puts what it has: no copy of an array that it changes."""
    return not isinstance(target, ir.BlockArgument) and target.owner.operation.name == "memref.subview"


def _work(op: ir.Operation) -> int:
    """The number of axes of the largest array that an operation computes, itself or in loops."""
    if op.name == "linalg.generic":
        return len(ir.ArrayAttr(op.attributes["iterator_types"]))
    if op.name == "linalg.fill":
        return ir.MemRefType(op.operands[1].type).rank
    inside = [_work(inner) for block in blocks_in(op) for inner in ops_in(block)]
    if op.name == "scf.for":
        return 1 + max(inside)
    return max(inside, default=0) if op.name == "scf.if" else 0


def _write_copies(func: ir.Operation) -> None:
    """Loops in place of ``memref.copy``, which calls a library for strided memory."""
    for op in [op for op in walk(func) if op.name == "memref.copy"]:
        with ir.InsertionPoint(op), op.location:
            copy = ir.Operation.create(
                "linalg.copy",
                operands=list(op.operands),
                regions=1,
                attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
            )
            fill_region(copy)
        op.erase()


def _add_in_order(func: ir.Operation) -> None:
    """Let sums along other axes than the innermost loop's be added up in order, as NumPy does.

    Of a few columns the order stays LLVM's, which keeps them in registers: in order, each addition
    would wait for the one before, and nothing else of the round would be computed in vectors.
    """
    for op in [op for op in walk(func) if op.name == "linalg.generic"]:
        kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
        columns = ir.MemRefType(op.operands[-1].type).shape[-1:]
        if not kinds or "reduction" in kinds[-1] or 0 < max(columns, default=0) <= NARROW:
            continue
        for inner in walk(op):
            if may_reassociate(inner):
                flags = str(inner.attributes["fastmath"])
                flag = "contract" if "contract" in flags else "none"
                inner.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flag}>")


def _expand_math(func: ir.Operation, slow_subnormals: bool, fused: bool, versions: bool) -> bool:
    """Functions inline, as in other kernels, for the same results; False: there are none."""
    has_functions = False
    for op in list(walk(func)):
        if op.name.startswith("math.") or op.name == "arith.remf":
            with ir.InsertionPoint(op), op.location:
                value = expand(op.name.split(".")[1], list(op.operands), slow_subnormals=slow_subnormals, fused=fused)
            if value is not None:
                op.results[0].replace_all_uses_with(value)
                op.erase()
                has_functions = True
    set_rare_values_aside(func, versions)
    return has_functions
