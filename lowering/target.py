"""The machine that code is generated for, as a value that can travel in compile requests."""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A CPU.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM CPU name, e.g. ``"znver4"``.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
    """

    triple: str
    cpu: str
    features: str = ""


@functools.cache
def host_target() -> Target:
    """The CPU this process runs on."""
    import llvmlite.binding as llvm

    return Target(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
    )
