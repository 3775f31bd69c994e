"""The machine that code is generated for, as a value that can travel in compile requests."""

from __future__ import annotations

import functools
from dataclasses import replace

from ..dialect.dataclass import dataclass

_PREFERENCE = "prefer-256-bit"
_FAST_SUBNORMALS = ("znver", "btver", "bdver", "amdfam")
# Intel's CPUs whose gathers leak data: microcode has them wait, 50 cycles for 8 numbers, where as
# many loads take 10. Hypervisors hide that from what the system tells of weaknesses.
_SLOW_GATHERS = (
    "skylake",
    "skylake-avx512",
    "cascadelake",
    "cooperlake",
    "cannonlake",
    "icelake-client",
    "icelake-server",
    "tigerlake",
    "rocketlake",
)


@dataclass(frozen=True)
class Target:
    """A CPU, and possibly a GPU beside it.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM CPU name, e.g. ``"znver4"``.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
        gpu: chip for functions whose tensors are on a device, e.g. ``"sm_90"``; "" = no GPU.
        gpu_image: the stage of `lowering.gpu.gpu_stages` whose result the GPU's driver loads.
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
        features = (f for f in self.features.split(",") if f[1:] != _PREFERENCE)
        return replace(self, features=",".join(features))

    def without_slow_gathers(self) -> Target:
        """The target with single loads in place of gathers, where those take longer."""
        if self.cpu not in _SLOW_GATHERS:
            return self
        return replace(self, features=f"{self.features},+prefer-no-gather")

    def preferring(self, width: int) -> Target:
        """The target with vectors of ``width`` bits; 0 = 512 where they pay, else LLVM's choice.

        A target without AVX-512 has no choice and stays as it is. LLVM chooses 256 bits for all of
        Intel's CPUs, since the older ones lower their clock for 512. The newer ones, for which 512
        bits pay, are known by their instructions for bfloat16 or by AVX-VNNI.
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
    """The CPU that this process runs on, with the vector width of `Target.preferring`."""
    from .libllvm import host

    return Target(*host()).without_slow_gathers().preferring(vector_width)
