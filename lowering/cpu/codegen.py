"""LLVM IR text to object code; nothing of MLIR is imported."""

from __future__ import annotations

import functools
from typing import Any

from ...dialect.errors import InternalError, LoweringError
from ..target import Target


@functools.cache
def _initialise() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.lru_cache(maxsize=4)
def target_machine(target: Target) -> Any:
    """LLVM's code generator for a target; raises LoweringError for an unknown one."""
    import llvmlite.binding as llvm

    _initialise()
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise LoweringError(f"no code generator for {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small"
    )


def optimise(text: str, target: Target, level: int = 3) -> Any:
    """LLVM IR text -> optimised llvmlite module; ``level`` is that of ``-O``."""
    import llvmlite.binding as llvm

    machine = target_machine(target)
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the generated IR: {error}") from error
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_interleaving = level > 1
    options.slp_vectorization = options.loop_unrolling = level > 1
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    manager.run(module, builder)
    _dispose(manager)
    return module


def _dispose(manager: Any) -> None:
    """Free a pass manager, which llvmlite 0.50 forgets: over 100 KiB for each kernel.

    Its class inherits the empty ``_dispose`` of its first base before that of its second.
    """
    from llvmlite.binding.ffi import ObjectRef
    from llvmlite.binding.newpassmanagers import NewPassManager

    if type(manager)._dispose is ObjectRef._dispose:
        NewPassManager._dispose(manager)
        manager.detach()


def to_object(module: Any, target: Target) -> bytes:
    """Optimised llvmlite module -> relocatable object code."""
    return target_machine(target).emit_object(module)


def to_assembly(module: Any, target: Target) -> str:
    """Optimised llvmlite module -> assembly text."""
    return target_machine(target).emit_assembly(module)
