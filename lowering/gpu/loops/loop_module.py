"""Emits a function with loops as a module of kernels and a launch plan.

The function is bufferised as for CPUs. Each of its outermost loops becomes a kernel, in the order
in which they stand; what is between them and writes memory, a kernel of one thread.

A run may be void: then a thread sets the function's flag and ends, kernels that have not begun do
nothing, and the caller, which looks at the flag behind the last one, starts over. Inputs are never
written.
"""

from __future__ import annotations

from mlir import ir

from ....dialect.mlir.rewrite import walk
from ...buffers.bufferize import bufferize
from ...buffers.signature import function_named
from ...stages import run_passes
from ..launch_plan import Launch, LaunchPlan
from .loop_kernel import LoopKernel, LoopMemory
from .loop_steps import divide
from .notes import settle_flag
from .thread import Thread

_SIMPLIFY = "builtin.module(gpu.module(canonicalize,cse))"


def emit_loops(function: ir.Operation, made: ir.Module, block: ir.Block) -> LaunchPlan:
    """Emit the kernels of a linalg function with loops.

    ``block``: that of the ``gpu.gpu_module`` in the module ``made``.

    Raises LoweringError, with the reason, for loops that do not run on a GPU.
    """
    with ir.Location.unknown():
        module = ir.Module.parse(function.get_asm(enable_debug_info=True))
    arrays = any(
        op.name.startswith("linalg.") for loop in walk(function) if loop.name == "scf.for" for op in walk(loop)
    )
    # Threads have no vectors to keep short, and functions have the forms that they have in nests.
    loops, signature, workspace, _ = bufferize(module, fused=False, on_host=False)
    func = function_named(loops, signature.name)
    with ir.Location.unknown():
        settle_flag(loops, func, signature.flag_of(func))
    func = function_named(loops, signature.name)
    memory = LoopMemory(func, signature, workspace)
    steps, pure = divide(func, memory.flag is not None, arrays)
    launches: list[Launch] = []
    for number, step in enumerate(steps):
        with ir.Location.unknown():
            kernel = LoopKernel(block, memory, f"{signature.name}_step{number}", number == 0)
            launches.append(Thread(kernel, pure).run(step))
    run_passes(_SIMPLIFY, made, "kernels do not simplify")
    return LaunchPlan(signature.name, signature.abi(memory.workspace), tuple(launches))
