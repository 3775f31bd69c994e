"""The stages of a CPU kernel: graph -> linalg -> loops -> llvm -> object, and the entry points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError
from ..abi import KernelArtifact
from ..stages import GRAPH, LINALG, KernelCompile, Stage, run
from ..target import Target

if TYPE_CHECKING:
    from mlir import ir

    from ...dialect.ir.program import Program


@dataclass(kw_only=True)
class _CpuCompile(KernelCompile):
    """A compile for a target.

    ``in_place``: outputs may alias inputs; ``exact``: every operation is rounded, none fused;
    ``signature``: of a function whose loops have been bufferised.
    """

    target: Target
    in_place: bool = False
    exact: bool = False
    signature: Any = None


def _schedule_and_emit(module: ir.Module, compile_: _CpuCompile) -> ir.Module:
    from ..buffers.bufferize import has_loops
    from ..emit.module import emit_module
    from ..schedule.in_place import in_place
    from ..schedule.scheduling import schedule
    from .loops_to_llvm import annotate_loops

    functions = [op.operation for op in module.body.operations]
    if len(functions) != 1 or functions[0].name != "func.func":
        raise LoweringError("expected a module with one func.func")
    if has_loops(module):
        return _bufferize(module, compile_)
    with module.context:
        with compile_.timed("schedule"):
            plan = schedule(functions[0], tiles=True, blocks=True, threads=True, places=True, windows=True)
        with compile_.timed("loops"):
            loops, entry = emit_module(
                plan,
                in_place=compile_.in_place,
                fused=compile_.target.fused,
                slow_subnormals=compile_.target.slow_subnormals,
                exact=compile_.exact,
            )
            annotate_loops(loops)
    abi = plan.abi(in_place(plan) if compile_.in_place else ())
    compile_.artifact = KernelArtifact(
        plan.graph.name, b"", entry, abi, compile_.stages, compile_.seconds, plan.library_calls, plan.shared_steps
    )
    return loops


def _bufferize(module: ir.Module, compile_: _CpuCompile) -> ir.Module:
    """The loops of a function with control flow; its outputs are never made in place of inputs."""
    from ..buffers.bufferize import bufferize
    from ..buffers.sharing.share import reasons_for_one_thread, shared_loops
    from ..buffers.signature import SUFFIX, function_named
    from .loops_to_llvm import annotate_loops

    if compile_.exact:
        raise LoweringError("loops have no kernels that compute the very bits of NumPy")
    with module.context, compile_.timed("loops"):
        loops, signature, workspace, calls = bufferize(
            module, fused=compile_.target.fused, slow_subnormals=compile_.target.slow_subnormals
        )
        # Sums of functions are SIMD code in their order.
        annotate_loops(loops, unroll_waiting=not signature.has_functions)
        func = function_named(loops, signature.name)
        shared, reasons = len(shared_loops(func)), reasons_for_one_thread(func)
    compile_.artifact = KernelArtifact(
        signature.name,
        b"",
        signature.name + SUFFIX,
        signature.abi(workspace),
        compile_.stages,
        compile_.seconds,
        calls,
        shared,
        reasons,
    )
    compile_.signature = signature
    return loops


def _to_llvm(module: ir.Module, compile_: _CpuCompile) -> str:
    from .hidden import hide_constants
    from .loops_to_llvm import lower_buffers, to_llvm_dialect, to_llvm_ir
    from .rotation import rotate_loops
    from .truncation import truncate_at_once

    with module.context, compile_.timed("llvm"):
        hide_constants(module)
        if compile_.signature is not None:
            if compile_.target.triple.startswith("x86_64"):
                truncate_at_once(module)
            rotate_loops(module)
            lower_buffers(module, compile_.signature, compile_.artifact.abi)
        to_llvm_dialect(module)
        return to_llvm_ir(module)


def _to_object(text: str, compile_: _CpuCompile) -> bytes:
    from ..libllvm import LLVMModule
    from .codegen import optimise

    with LLVMModule(text, compile_.target) as module:
        with compile_.timed("optimise"):
            optimise(module, text)
        with compile_.timed("object"):
            code = module.object_code()
        if compile_.keep:
            compile_.note("asm", module.assembly())
    return code


STAGES = (
    GRAPH,
    LINALG,
    Stage("loops", _schedule_and_emit),
    Stage("llvm", _to_llvm),
    Stage("object", _to_object, text=None),
)


def compile_program(
    function: Program, target: Target, *, keep_stages: bool = False, in_place: bool = False, exact: bool = False
) -> KernelArtifact:
    """Compile one fusion function; raises LoweringError.

    ``in_place``: outputs may alias inputs, where `KernelABI.in_place` says so. ``exact``: every
    operation is rounded, and none fused with another.
    """
    compile_ = _CpuCompile(keep_stages, target=target, in_place=in_place, exact=exact)
    return _finished(function, compile_)


def compile_linalg(module: ir.Module, target: Target, *, keep_stages: bool = False) -> KernelArtifact:
    """Compile a module with one linalg function, in the form of `docs/cpu-lowering.md`.

    The module stays as it is. Raises LoweringError.
    """
    return _finished(module, _CpuCompile(keep_stages, target=target), at="linalg")


def _finished(value: Any, compile_: _CpuCompile, at: str = "") -> KernelArtifact:
    code = run(STAGES, value, compile_, at=at)
    return replace(compile_.artifact, object=code)
