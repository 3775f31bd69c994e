"""Lowers a CPU kernel: loops -> LLVM dialect -> LLVM IR; `codegen` makes object code of that."""

from __future__ import annotations

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import blocks_in, ops_in, walk
from ..abi import KernelABI
from ..buffers.sharing.launches import add_launches
from ..buffers.sharing.share import share_rounds
from ..buffers.signature import Signature, add_entry, end_void_runs, function_named
from ..emit.loop_ops import IN_PLACE, OVER_BLOCKS, SCALAR, STRAIGHT, iterations
from ..linalg.loop_builder import ASSERT
from ..stages import run_passes
from .codegen import OF_FUNCTIONS, OF_LOOPS

# In order: integer powers become calls of functions with a loop; structured loops become branches;
# math with an LLVM intrinsic becomes that, the rest a call of libm; then each remaining dialect.
# Index arithmetic is i64 already, so no canonicalizer is needed: LLVM's own simplification runs
# anyway and costs less.
TO_LLVM = (
    "builtin.module(convert-math-to-funcs,convert-scf-to-cf,convert-math-to-llvm,"
    "convert-math-to-libm,convert-arith-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},"
    "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts)"
)
# Of functions on memrefs, which become several arguments each.
BUFFERS_TO_LLVM = (
    "builtin.module(convert-math-to-funcs,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-complex-to-llvm,convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,"
    "reconcile-unrealized-casts)"
)
ANNOTATION = "llvm.loop_annotation"
INTERLEAVE = 4
SHORT = 16  # iterations of a reduction
FEW = 7  # iterations of another loop: less than a vector of most dtypes
_NOT_UNROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"
_ORDERED = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf")
_SCALAR = "#llvm.loop_annotation<vectorize = <disable = true>, unroll = <count = 8 : i32>>"


def annotate_loops(module: ir.Module, *, unroll_waiting: bool = False) -> None:
    """Ask for interleaving on innermost loops: LLVM's own estimate is too small for them.

    Unrolling on top of that is disabled: besides code size, reassociation of a fully unrolled sum
    would join the interleaved accumulators into one serial chain. ``unroll_waiting``: it is left to
    LLVM where each round waits for the one before, as in a sum that has an order.
    """
    options = f"interleave = <count = {INTERLEAVE} : i32>, unroll = <disable = true>"
    with module.context:
        annotation = ir.Attribute.parse(f"#llvm.loop_annotation<{options}>")
    for view in module.body.operations:
        function = view.operation
        # What was a loop has enough to do at once without being interleaved.
        usual, straight = annotation, ir.Attribute.parse(_NOT_UNROLLED, module.context)
        if IN_PLACE in function.attributes:
            usual = straight = _independent(function, options)
            del function.attributes[IN_PLACE]
        for block in blocks_in(function):
            _annotate(block, usual, straight, unroll_waiting)


def _independent(function: ir.Operation, options: str) -> ir.Attribute:
    """The loop annotation that no iteration writes what another one reads.

    Without it, LLVM would compare addresses at run time, and not vectorise where they are the same.
    """
    group = "#llvm.access_group<id = distinct[0]<>>"  # one group within one parsed text
    with function.context:
        pair = ir.ArrayAttr(
            ir.Attribute.parse(f"[#llvm.loop_annotation<{options}, parallelAccesses = {group}>, {group}]")
        )
        groups = ir.ArrayAttr.get([pair[1]])
    for op in walk(function):
        if op.name in ("llvm.load", "llvm.store"):
            op.attributes["access_groups"] = groups
    return pair[0]


def _annotate(block: ir.Block, annotation: ir.Attribute, straight: ir.Attribute, unroll_waiting: bool) -> bool:
    """Annotate the innermost loops of a block; True if it contains a loop.

    ``straight``: for those in which loops have been unrolled.
    """
    has_loop = False
    for op in ops_in(block):
        if op.name == "scf.for":
            has_loop = True
            has_inner = _annotate(op.regions[0].blocks[0], annotation, straight, unroll_waiting)
            if SCALAR in op.attributes:
                del op.attributes[SCALAR]
                op.attributes[ANNOTATION] = ir.Attribute.parse(_SCALAR, op.context)
            elif STRAIGHT in op.attributes:
                del op.attributes[STRAIGHT]
                if not has_inner and not _branches(op):
                    op.attributes[ANNOTATION] = straight
            elif not has_inner and not _is_short(op) and not _branches(op):
                if not (unroll_waiting and _waits(op)):
                    op.attributes[ANNOTATION] = annotation
            elif OVER_BLOCKS in op.attributes:
                del op.attributes[OVER_BLOCKS]
                op.attributes[ANNOTATION] = ir.Attribute.parse(_NOT_UNROLLED, op.context)
        elif op.name == "scf.if":
            for inner in blocks_in(op):
                has_loop |= _annotate(inner, annotation, straight, unroll_waiting)
    return has_loop


def _branches(loop: ir.Operation) -> bool:
    """True for loops whose rounds take different ways: no SIMD code, but LLVM may unroll them."""
    return any(op.name in ("scf.if", "scf.while", ASSERT) for op in walk(loop))


def _waits(loop: ir.Operation) -> bool:
    """True for loops each round of which waits for a float of the one before: no SIMD code.

    The float is carried, or lies where all rounds write. Unrolled rounds compute less of indices,
    and CPUs predict when they end.
    """
    block = loop.regions[0].blocks[0]
    inner = ops_in(block)
    carried = set(list(block.arguments)[1:])
    if any(_is_in_order(v) and _follows(v, carried, loop) for v in inner[-1].operands):
        return True
    for op in inner:
        if op.name != "memref.store" or not _is_in_order(op.operands[0]):
            continue
        place = list(op.operands)[1:]
        before = {r.results[0] for r in inner if r.name == "memref.load" and _is_at(r, place)}
        if not any(is_inside(v, loop) for v in place) and _follows(op.operands[0], before, loop):
            return True
    return False


def _is_at(load: ir.Operation, place: list[ir.Value]) -> bool:
    return list(load.operands) == place


def _is_in_order(value: ir.Value) -> bool:
    """True if a float is made by an operation that has to take its operands as they come."""
    if isinstance(value, ir.BlockArgument) or value.owner.name not in _ORDERED:
        return False
    flags = value.owner.attributes
    return "fastmath" not in flags or "reassoc" not in str(flags["fastmath"])


def _follows(value: ir.Value, given: set[ir.Value], loop: ir.Operation) -> bool:
    """True if a value is computed in a round from one of the given ones."""
    seen, waiting = set(), [value]
    while waiting:
        value = waiting.pop()
        if value in given:
            return True
        if isinstance(value, ir.BlockArgument) or value in seen or not is_inside(value, loop):
            continue
        seen.add(value)
        waiting += list(value.owner.operation.operands)
    return False


def _is_short(loop: ir.Operation) -> bool:
    """True for loops with so few iterations that LLVM should unroll them.

    It then vectorises the loop around them, by gathers and scatters.
    """
    count = iterations(loop)
    return count is not None and count <= (SHORT if len(loop.results) else FEW)


def lower_buffers(module: ir.Module, signature: Signature, abi: KernelABI) -> None:
    """Lower a function on memrefs to the LLVM dialect, and add its entry; raises LoweringError."""
    with ir.Location.unknown():
        func = function_named(module, signature.name)
        shared = share_rounds(module, func, signature.flag_of(func))
    run_passes(BUFFERS_TO_LLVM, module, "loops on memory do not lower to LLVM")
    with ir.Location.unknown():
        end_void_runs(module, signature, shared)
        add_launches(module, shared)
        marks = [OF_LOOPS, *([OF_FUNCTIONS] if signature.has_functions else [])]
        add_entry(module, signature, abi, marks)


def to_llvm_dialect(module: ir.Module) -> None:
    """Lower loops to the LLVM dialect in place; raises LoweringError."""
    run_passes(TO_LLVM, module, "loops do not lower to LLVM")
    for op in ops_in(module.body):
        if not op.name.startswith("llvm."):
            raise LoweringError(f"{op.name} is left after lowering to LLVM")
        if op.name == "llvm.func":
            _finish_function(op)


def _finish_function(function: ir.Operation) -> None:
    """Move loop annotations to the place that translation reads; refuse ops that crash it."""
    for block in function.regions[0].blocks:
        last = None
        for view in block.operations:
            last = view.operation
            if not last.name.startswith("llvm."):
                raise LoweringError(f"{last.name} is left after lowering to LLVM")
        if last is not None and ANNOTATION in last.attributes:
            last.attributes["loop_annotation"] = last.attributes[ANNOTATION]
            del last.attributes[ANNOTATION]


def to_llvm_ir(module: ir.Module) -> str:
    """LLVM IR text of a module that is entirely in the LLVM dialect."""
    from mlir.dialects import llvm

    text: str = llvm.translate_module_to_llvmir(module.operation)
    # MLIR says of all that it indexes that no unsigned sum of address and offset wraps, which is
    # not so of negative strides: LLVM takes an array whose first offset is -1 to be at address 0.
    return text.replace("getelementptr inbounds nuw ", "getelementptr inbounds ")
