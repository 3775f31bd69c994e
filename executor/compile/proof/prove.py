"""The compiler's interface to the check: decides whether a kernel is checked, never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....dialect.ir.program import Module, Program
from ....lowering.abi import KernelArtifact
from .check_verdict import FAILED, UNCHECKED, CheckVerdict

if TYPE_CHECKING:
    from ....lowering.gpu.artifact import GpuArtifact
    from ..request import CompileRequest, CompileResult

_AGAIN = 0.25  # share of a new kernel's time for a stored one: a first call waits for it
OFF = CheckVerdict(UNCHECKED, "checks are off")
_GPU = CheckVerdict(UNCHECKED, "it is for a GPU: only a process that has the device could run it")
_FOREIGN = CheckVerdict(UNCHECKED, "it is for another CPU than this one")


def prove(
    artifact: KernelArtifact | GpuArtifact, function: Program, request: CompileRequest, module: Module | None = None
) -> CheckVerdict:
    """The verdict on a kernel; `CheckVerdict.detail` says how to replay a failure.

    This never raises. If the check itself fails with an exception, the kernel stays unchecked, and
    the verdict gives the reason.
    """
    from .check import Budget, Difference, check_kernel
    from .kept import keep

    if request.check == "off":
        return OFF
    if not isinstance(artifact, KernelArtifact):
        return _GPU
    if request.is_foreign:
        return _FOREIGN
    budget = Budget(request.check, request.check_ms / 1e3, request.check_bytes)
    try:
        return check_kernel(function, artifact, budget, module)
    except Difference as error:
        how = keep(request, function.name, Module(function), error.setting)
        return CheckVerdict(FAILED, f"{error}; {how}")
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return CheckVerdict(UNCHECKED, f"its check went wrong: {said}")


def refuted(result: CompileResult, request: CompileRequest) -> str:
    """The fault of the kernels of a result that others may have stored; "" = none was found.

    Each kernel is checked on some inputs of a new one and on the sizes of its profile. This never
    raises; what cannot be checked, because it does not link say, counts as wrong.
    """
    from .check import Budget, Difference, check_kernel

    if request.check == "off" or request.is_foreign:
        return ""
    budget = Budget(request.check, _AGAIN * request.check_ms / 1e3, request.check_bytes)
    for name, artifact in result.kernels.items():
        function = result.module.functions.get(name)
        if not isinstance(artifact, KernelArtifact):
            continue  # of a GPU
        if function is None:
            return f"there is no function @{name}"
        try:
            check_kernel(function, artifact, budget, result.module, result.sizes.get(name))
        except Difference as error:
            return f"the kernel of @{name} is wrong: {error}"
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            return f"the kernel of @{name} cannot be checked: {said}"
    return ""


def prove_program(function: Program, request: CompileRequest) -> CheckVerdict:
    """Compile a fusion function for this CPU and check the kernel."""
    from ....lowering.cpu.cpu_stages import compile_program
    from ....lowering.target import host_target

    artifact = compile_program(function, host_target(), in_place=request.in_place, exact=request.exact)
    return prove(artifact, function, request)
