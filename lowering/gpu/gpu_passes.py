"""The passes `to-gpu` and `gpu-to-nvvm`: stages of GPU kernels, on whole modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...dialect.mlir.rewrite import functions
from ...dialect.passes.base import Pass, register_pass
from ..linalg.to_linalg_pass import ToLinalg
from .chip import DEFAULT
from .gpu_module import DIALECTS, KERNELS, emit_gpu
from .launch_plan import LaunchPlan
from .nvvm import to_nvvm


@register_pass
@dataclass(frozen=True)
class ToGpu(Pass):
    """Lower the functions that `to-linalg` lowers to kernels and launch plans.

    Each function is replaced by a declaration with the kernel arguments of `to-linalg` and the
    steps of the plan as ``profuse.plan``. Its kernels follow as ``gpu.module @<function>_kernels``.
    """

    name: ClassVar[str] = "to-gpu"
    chip: str = DEFAULT

    def run(self, module: ir.Module) -> None:
        for dialect in DIALECTS:
            _ = module.context.dialects[dialect]
        lowered = ToLinalg()
        before = set(functions(module))
        lowered.run(module)
        for func in functions(module):
            if func in before:
                continue
            with func.location:
                kernels, plan = emit_gpu(func, self.chip)
            with ir.InsertionPoint(func), func.location:
                _declare(func, plan)
                inner = kernels.body.operations[0].operation.clone(ir.InsertionPoint.current)
            inner.attributes["sym_name"] = ir.StringAttr.get(f"{plan.name}_{KERNELS}")
            func.erase()
            self.count("functions-lowered")
            self.count("kernels", len(inner.regions[0].blocks[0].operations))
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()


def _declare(func: ir.Operation, plan: LaunchPlan) -> None:
    attributes = {name: func.attributes[name] for name in func.attributes}
    attributes["sym_visibility"] = ir.StringAttr.get("private")
    steps = [ir.StringAttr.get(str(step)) for step in plan.steps]
    attributes["profuse.plan"] = ir.ArrayAttr.get(steps)
    ir.Operation.create("func.func", attributes=attributes, regions=1)


@register_pass
@dataclass(frozen=True)
class GpuToNvvm(Pass):
    """Lower kernels to the NVVM dialect, for one kind of chip."""

    name: ClassVar[str] = "gpu-to-nvvm"
    chip: str = DEFAULT

    def run(self, module: ir.Module) -> None:
        to_nvvm(module, self.chip)
