"""The machine that code is generated for, as a value that can travel in compile requests."""

from __future__ import annotations

import functools
from dataclasses import replace

from ..dialect.dataclass import dataclass

_PREFERENCE = "prefer-256-bit"
_FAST_SUBNORMALS = ("znver", "btver", "bdver", "amdfam")


@dataclass(frozen=True)
class Target:
    """A CPU, and possibly a GPU beside it.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM CPU name, e.g. ``"znver4"``.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
        gpu: chip that functions on a device's tensors are for, e.g. ``"sm_90"``; "" = no GPU.
        gpu_image: the stage of `lowering.gpu.stages` whose outcome its driver loads.
    """

    triple: str
    cpu: str
    features: str = ""
    gpu: str = ""
    gpu_image: str = ""

    @property
    def slow_subnormals(self) -> bool:
        """True for CPUs that compute with subnormal numbers in microcode: 150 cycles for a vector.

        AMD's take a few cycles more, other architectures none.
        """
        return self.triple.startswith("x86_64") and not self.cpu.startswith(_FAST_SUBNORMALS)

    @property
    def fused(self) -> bool:
        """True for CPUs known to have fused multiply-add: on x86-64 by the features, else all."""
        return not self.triple.startswith("x86_64") or "+fma" in self.features.split(",")

    @property
    def machine(self) -> Target:
        """The target without what is merely preferred of it."""
        kept = (f for f in self.features.split(",") if f[1:] != _PREFERENCE)
        return replace(self, features=",".join(kept))

    def preferring(self, width: int) -> Target:
        """The target with vectors of ``width`` bits; 0 = 512 where they pay, else as LLVM has it.

        The same target where there is no choice. LLVM has 256 bits for all of Intel's CPUs, since
        their older ones lower the clock for more; those that came later have bfloat16 or VNNI for
        AVX, too.
        """
        features = self.features.split(",")
        if not {"+avx512f", "+avx512vl"} <= set(features):
            return self
        if width == 0 and not {"+avx512bf16", "+avxvnni"} & set(features):
            return self.machine
        sign = "+" if width == 256 else "-"
        return replace(self, features=f"{self.machine.features},{sign}{_PREFERENCE}")


@functools.cache
def host_target(vector_width: int = 0) -> Target:
    """The CPU this process runs on, with vectors as `Target.preferring` tells."""
    from .libllvm import host

    return Target(*host()).preferring(vector_width)
