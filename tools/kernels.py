"""The output of `profuse-opt --emit` for GPU kernels: PTX, or what ptxas says that they need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..dialect.errors import PipelineError

if TYPE_CHECKING:
    from mlir import ir

FORMS = ("ir", "ptx", "usage")


def kernels_text(module: ir.Module, form: str) -> str:
    """The kernels of a module that `gpu-to-nvvm` has lowered, as ``"ptx"`` or ``"usage"``.

    Raises PipelineError where there are none, LoweringError where one does not assemble.
    """
    from ..dialect.mlir.rewrite import walk

    kernels = [op for op in walk(module) if op.name == "gpu.module" and "targets" in op.attributes]
    if not kernels:
        raise PipelineError(f"no kernels to print as {form}", hint="run a pipeline that ends in gpu-to-nvvm")
    return "".join(_text(op, form) for op in kernels)


def _text(kernels: ir.Operation, form: str) -> str:
    from mlir import ir

    from ..lowering.gpu.nvvm import assemble, to_ptx

    with kernels.context, ir.Location.unknown():
        alone = ir.Module.create()
        alone.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        kernels.clone(ir.InsertionPoint(alone.body))
        ptx = to_ptx(alone)
    if form == "ptx":
        return ptx
    chip = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    assert chip is not None
    lines = [
        f"{name} {chip[1]}: {need.registers} registers, {need.spilled} bytes spilled, "
        f"{need.stack} bytes of stack, {need.shared} bytes shared\n"
        for name, need in sorted(assemble(ptx, chip[1]).usage.items())
    ]
    return "".join(lines)
