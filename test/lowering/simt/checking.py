"""Running a wrong kernel, and reading what the emulator says."""

from __future__ import annotations

import pytest

from .faults import KernelFault
from .kernel import run_kernel
from .launch import parse, programs
from .samples import module


def body(text: str, parameters: str = "", attributions: str = "") -> str:
    """A kernel with its thread number in ``%t`` and some constants, and these ops."""
    return f"""
gpu.func @bad({parameters}) {attributions} kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %t = gpu.thread_id x
  {text}
  gpu.return
}}"""


def fault_of(text, args, grid=(1,), block=(64,), shared_bytes=0) -> KernelFault:
    """What running the kernel raises."""
    (program,) = programs(parse(module(text))).values()
    with pytest.raises(KernelFault) as caught:
        run_kernel(program, grid, block, args, shared_bytes)
    return caught.value


def words(fault: KernelFault) -> str:
    """The message without the kernel's name and the op's place, which differ in line numbers."""
    assert str(fault).startswith(f"@bad, {fault.site.op} at ")
    assert fault.site.location.startswith('"-":')
    return str(fault).split(": ", 1)[1]


def run(text, args, block=(64,), grid=(1,)) -> None:
    """Run the kernel."""
    (program,) = programs(parse(module(text))).values()
    run_kernel(program, grid, block, args)
