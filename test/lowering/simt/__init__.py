"""Emulates kernels at the level of the `gpu` dialect, and notices what a device would not say.

`run(module, plan, inputs)` runs a launch plan, `run_kernel(func, grid, block, args)` one kernel.
"""

from .faults import KernelFault, SimtError
from .kernel import contents, empty, holding, run_kernel
from .launch import parse, programs, run

__all__ = ["KernelFault", "SimtError", "contents", "empty", "holding", "parse", "programs", "run", "run_kernel"]
