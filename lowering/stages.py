"""The ordered stages of a kernel, graph -> linalg -> loops -> llvm -> object, and the entry points.

Every stage's text can be kept, and compiling can start from the text of any of them.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..dialect.errors import LoweringError
from ..dialect.ir.program import Module
from .abi import KernelABI, KernelArtifact, size_bindings
from .target import Target

if TYPE_CHECKING:
    from mlir import ir

    from ..dialect.ir.program import Program

STAGES = ("graph", "linalg", "loops", "llvm", "asm", "object")


@dataclass
class _Run:
    """One compile: what has been kept and timed so far."""

    target: Target
    keep: bool
    in_place: bool = False
    stages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str):
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    def note(self, stage: str, text: Any) -> None:
        if self.keep:
            self.stages[stage] = str(text)


def compile_program(
    function: Program, target: Target, *, keep_stages: bool = False, in_place: bool = False
) -> KernelArtifact:
    """Compile one fusion function; raises LoweringError.

    ``in_place``: outputs may be the memory of inputs, where `KernelABI.in_place` says so.
    """
    from .linalg.to_linalg import to_linalg

    run = _Run(target, keep_stages, in_place)
    if keep_stages:
        run.note("graph", Module(function).to_mlir())
    with run.timed("linalg"):
        module = to_linalg(function)
    return _from_linalg(module, run)


def compile_linalg(
    module: ir.Module, target: Target, *, keep_stages: bool = False
) -> KernelArtifact:
    """Compile a module with one linalg function (`docs/architecture.md`, "Lowering").

    The module is left as it is. Raises LoweringError.
    """
    return _from_linalg(module, _Run(target, keep_stages))


def compile_function(
    target: Target, *, from_stage: str, text: str, keep_stages: bool = True
) -> KernelArtifact | dict[str, str]:
    """Compile from the text of a stage, e.g. one kept by an earlier compile and then edited.

    From ``"graph"`` (a module with one function) and ``"linalg"`` the result is an artifact.
    Later stages no longer say how the kernel is called: the result is the texts of the stages
    that follow. Raises LoweringError and IRError.
    """
    from ..dialect.mlir.parse import parse_module

    if from_stage not in STAGES[:-2]:
        raise LoweringError(
            f"cannot compile from stage {from_stage!r}", hint=f"use one of {', '.join(STAGES[:-2])}"
        )
    run = _Run(target, keep_stages)
    if from_stage == "llvm":
        _from_llvm(text, run)
        return run.stages
    if from_stage == "graph":
        from ..dialect.mlir.decode import decode_module

        return compile_program(
            decode_module(parse_module(text)).main, target, keep_stages=keep_stages
        )
    module = _parse(text)
    if from_stage == "linalg":
        return _from_linalg(module, run)
    _from_loops(module, run)
    return run.stages


def _parse(text: str) -> ir.Module:
    from ..dialect.mlir.parse import parse_module
    from .emit.module import DIALECTS
    from .linalg.to_linalg import load_dialects

    module = parse_module(text, verify=False)
    load_dialects(module.context)
    for dialect in DIALECTS:
        _ = module.context.dialects[dialect]
    return module


def _from_linalg(module: ir.Module, run: _Run) -> KernelArtifact:
    from .emit.module import emit_module
    from .schedule.in_place import in_place
    from .schedule.plan import schedule

    run.note("linalg", module)
    functions = [op.operation for op in module.body.operations]
    if len(functions) != 1 or functions[0].name != "func.func":
        raise LoweringError("expected a module with one func.func")
    with module.context:
        with run.timed("schedule"):
            plan = schedule(functions[0])
        with run.timed("loops"):
            loops, entry = emit_module(
                plan, in_place=run.in_place, slow_subnormals=run.target.slow_subnormals
            )
        graph = plan.graph
        abi = KernelABI(
            inputs=tuple(graph.specs),
            outputs=tuple(graph.output_specs),
            symbols=size_bindings(graph.specs, list(graph.symbols)),
            strides=tuple(graph.strides.values()),
            workspace=str(plan.workspace),
            in_place=in_place(plan) if run.in_place else (),
        )
        code = _from_loops(loops, run)
    return KernelArtifact(graph.name, code, entry, abi, run.stages, run.seconds, plan.library_calls)


def _from_loops(module: ir.Module, run: _Run) -> bytes:
    from .cpu import loops_to_llvm as cpu

    with run.timed("loops"):
        cpu.annotate_loops(module)
    run.note("loops", module)
    with run.timed("llvm"):
        cpu.to_llvm_dialect(module)
        text = cpu.to_llvm_ir(module)
    return _from_llvm(text, run)


def _from_llvm(text: str, run: _Run) -> bytes:
    from .cpu import codegen

    run.note("llvm", text)
    with run.timed("optimise"):
        module = codegen.optimise(text, run.target)
    with run.timed("object"):
        code = codegen.to_object(module, run.target)
    if run.keep:
        run.note("asm", codegen.to_assembly(module, run.target))
    return code
