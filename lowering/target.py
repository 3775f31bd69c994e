"""The machine that code is generated for, as a value that can travel in compile requests."""

from __future__ import annotations

import functools
from dataclasses import replace

from ..dialect.dataclass import dataclass

_PREFERENCE = "prefer-256-bit"
_NO_GATHERS = "+prefer-no-gather"
# Intel's cores whose microcode keeps what gathers read from other programs (CVE-2022-40982).
_SLOW_GATHERS = (
    "skylake", "cascadelake", "cooperlake", "cannonlake", "icelake", "tigerlake", "rocketlake",
)  # fmt: skip
_FAST_SUBNORMALS = ("znver", "btver", "bdver", "amdfam")


@dataclass(frozen=True)
class Target:
    """A CPU, and possibly a GPU beside it.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM CPU name, e.g. ``"znver4"``.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
        gpu: chip for functions whose tensors are on a device, e.g. ``"sm_90"``; "" = no GPU.
        gpu_image: the stage of `lowering.gpu.stages` whose result the GPU's driver loads.
    """

    triple: str
    cpu: str
    features: str = ""
    gpu: str = ""
    gpu_image: str = ""

    @property
    def slow_subnormals(self) -> bool:
        """True for CPUs that compute with subnormal numbers in microcode: 150 cycles for a vector.

        AMD's CPUs take a few cycles more, other architectures none.
        """
        return self.triple.startswith("x86_64") and not self.cpu.startswith(_FAST_SUBNORMALS)

    @property
    def fused(self) -> bool:
        """True for CPUs known to have fused multiply-add: on x86-64 by the features, else all."""
        return not self.triple.startswith("x86_64") or "+fma" in self.features.split(",")

    @property
    def machine(self) -> Target:
        """The target without a preferred vector width."""
        kept = (f for f in self.features.split(",") if f[1:] != _PREFERENCE)
        return replace(self, features=",".join(kept))

    def preferring(self, width: int) -> Target:
        """The target with vectors of ``width`` bits; 0 = 512 where they pay, else LLVM's choice.

        Gathers are left out where they take three times as long as reads one by one.

        A target without AVX-512 has no choice and stays as it is. LLVM chooses 256 bits for all of
        Intel's CPUs, since the older ones lower their clock for 512. The newer ones, for which 512
        bits pay, are known by their instructions for bfloat16 or by AVX-VNNI.
        """
        features = self.features.split(",")
        if self.cpu.startswith(_SLOW_GATHERS) and _NO_GATHERS not in features:
            return replace(self, features=f"{self.features},{_NO_GATHERS}").preferring(width)
        if not {"+avx512f", "+avx512vl"} <= set(features):
            return self
        if width == 0 and not {"+avx512bf16", "+avxvnni"} & set(features):
            return self.machine
        sign = "+" if width == 256 else "-"
        return replace(self, features=f"{self.machine.features},{sign}{_PREFERENCE}")


@functools.cache
def host_target(vector_width: int = 0) -> Target:
    """The CPU that this process runs on, with the vector width of `Target.preferring`."""
    from .libllvm import host

    return Target(*host()).preferring(vector_width)
