"""Lowers a module of kernels: gpu dialect -> NVVM dialect -> PTX -> cubin."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError
from ...dialect.mlir.rewrite import walk
from ..libllvm import code_generation
from ..stages import run_passes
from .artifact import Usage
from .chip import is_known
from .ptxas import run_ptxas
from .void_runs import end_void_threads

# The passes, in order: vectors that do not fit a register are unrolled; structured loops become
# branches; then the dialects gpu, arith, math, memref and vector are lowered together (functions
# without an inline expansion become calls of libdevice, which MLIR embeds). Casts between memrefs
# and their descriptors, including those of `_as_pointer`, cancel out.
TO_BRANCHES = (
    "builtin.module(nvvm-attach-target{{chip={chip} O=3}},gpu.module(convert-vector-to-scf,convert-scf-to-cf))"
)
TO_NVVM = "builtin.module(gpu.module(convert-gpu-to-nvvm,canonicalize,cse,reconcile-unrealized-casts))"
TO_PTX = "builtin.module(gpu-module-to-binary{format=isa})"
_INTRINSICS = {
    ("math.sqrt", "f32"): "llvm.nvvm.sqrt.rn.f",  # the correctly rounded one
    ("math.trunc", "f32"): "llvm.trunc.f32",
    ("math.trunc", "f64"): "llvm.trunc.f64",
}
_FAILURE = "kernels do not lower"
_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"


def to_nvvm(module: ir.Module, chip: str) -> None:
    """Lower kernels to the NVVM dialect in place, for a chip such as ``"sm_90"``.

    Raises LoweringError.
    """
    if not is_known(chip):
        # For an unknown chip, LLVM would choose another one, or fail.
        raise LoweringError(f"there are no kernels for {chip!r}", hint="use sm_80, sm_90, …")
    with module.context, ir.Location.unknown():
        for kernel in _functions(module, "gpu.func"):
            _pass_pointers(kernel)
            _call_intrinsics(kernel)
        run_passes(TO_BRANCHES.format(chip=chip), module, _FAILURE)
        for kernel in _functions(module, "gpu.func"):
            end_void_threads(kernel)
        run_passes(TO_NVVM, module, _FAILURE)
        for memory in _functions(module, "llvm.mlir.global"):
            _leave_size_to_launch(memory)
    for function in _functions(module, "llvm.func"):
        for block in function.regions[0].blocks if function.regions else ():
            for view in block.operations:
                name = view.operation.name
                if not name.startswith(("llvm.", "nvvm.")):
                    raise LoweringError(f"{name} is left after lowering to NVVM")


def to_ptx(module: ir.Module) -> str:
    """PTX of a module that `to_nvvm` has lowered. Raises LoweringError."""
    # MLIR says of all that it indexes that no unsigned sum of address and offset wraps, which does
    # not hold of negative strides.
    text = module.operation.get_asm(enable_debug_info=True).replace("inbounds|nuw", "inbounds")
    with module.context:
        module = ir.Module.parse(text)
    with code_generation():
        run_passes(TO_PTX, module, _FAILURE)
    match = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', str(module))
    if match is None:
        raise LoweringError("no PTX came out of the NVVM target")
    return _unescape(match[1]).rstrip(b"\0").decode()


@dataclass(frozen=True)
class Cubin:
    """Machine code of all kernels of a function; ``usage``: kernel -> its resources."""

    code: bytes
    usage: dict[str, Usage]


def assemble(ptx: str, chip: str) -> Cubin:
    """Assemble PTX to machine code; raises LoweringError, also if ptxas is missing."""
    with tempfile.TemporaryDirectory(prefix="profuse-") as folder:
        source, target = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        report = run_ptxas(["-v", f"-arch={chip}", str(source), "-o", str(target)])
        return Cubin(target.read_bytes(), _usage(report))


def _usage(report: str) -> dict[str, Usage]:
    usage: dict[str, Usage] = {}
    for part in report.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]

        def number(pattern: str, text: str = part) -> int:
            match = re.search(pattern, text)
            return int(match[1]) if match else 0

        usage[name] = Usage(
            registers=number(r"Used (\d+) registers"),
            spilled=number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
            stack=number(r"(\d+) bytes stack frame"),
            shared=number(r"(\d+) bytes smem"),
        )
    return usage


# --- rewrites that no pass of the pipeline makes ---------------------------------------------


def _pass_pointers(kernel: ir.Operation) -> None:
    """Pass buffers as bare pointers to global memory.

    The calling convention with bare pointers refuses memrefs of dynamic size.
    """
    block = kernel.regions[0].blocks[0]
    inputs = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs
    types, attributes = [], []
    with ir.InsertionPoint.at_block_begin(block):
        for argument, type_ in zip(list(block.arguments), inputs, strict=False):
            is_buffer = isinstance(type_, ir.MemRefType)
            types.append(_as_pointer(argument, type_) if is_buffer else type_)
            # No kernel gets a buffer twice, and outputs are new arrays.
            shown = {"llvm.noalias": ir.UnitAttr.get()} if is_buffer else {}
            attributes.append(ir.DictAttr.get(shown))
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _as_pointer(argument: ir.Value, type_: ir.Type) -> ir.Type:
    """Make a memref argument a pointer; its uses get a memref descriptor built from the pointer."""
    create = ir.Operation.create
    pointer, descriptor = ir.Type.parse("!llvm.ptr<1>"), ir.Type.parse(_DESCRIPTOR)
    memref = create("builtin.unrealized_conversion_cast", results=[type_], operands=[argument])
    argument.replace_all_uses_except(memref.results[0], [memref])
    argument.set_type(pointer)
    generic = create("llvm.addrspacecast", results=[ir.Type.parse("!llvm.ptr")], operands=[argument]).results[0]
    i64 = ir.IntegerType.get_signless(64)
    zero = create("llvm.mlir.constant", results=[i64], attributes={"value": ir.IntegerAttr.get(i64, 0)}).results[0]
    value = create("llvm.mlir.undef", results=[descriptor]).results[0]
    for position, part in enumerate((generic, generic, zero)):
        value = create(
            "llvm.insertvalue",
            results=[descriptor],
            operands=[value, part],
            attributes={"position": ir.DenseI64ArrayAttr.get([position])},
        ).results[0]
    memref.move_after(value.owner)
    memref.operands[0] = value
    return pointer


def _leave_size_to_launch(memory: ir.Operation) -> None:
    """Make dynamic shared memory external; MLIR defines it as one byte of static memory."""
    if ir.StringAttr(memory.attributes["sym_name"]).value.startswith("__dynamic_shmem_"):
        memory.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")


def _call_intrinsics(kernel: ir.Operation) -> None:
    """Replace functions by device intrinsics if the pass has none, or a less exact one."""
    for op in walk(kernel):
        name = _INTRINSICS.get((op.name, str(op.results[0].type) if len(op.results) else ""))
        if name is None:
            continue
        with ir.InsertionPoint(op), op.location:
            call = ir.Operation.create(
                "llvm.call_intrinsic",
                results=[op.results[0].type],
                operands=[op.operands[0]],
                attributes={
                    "intrin": ir.StringAttr.get(name),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
                },
            )
        op.results[0].replace_all_uses_with(call.results[0])
        op.erase()


def _functions(module: ir.Module, name: str) -> list[ir.Operation]:
    return [op for op in walk(module) if op.name == name]


def _unescape(text: str) -> bytes:
    return re.sub(
        rb"\\([0-9A-Fa-f]{2})|\\(.)", lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], text.encode("latin1")
    )
