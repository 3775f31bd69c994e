"""The compile target of a device."""

from __future__ import annotations

from dataclasses import replace

from ...dialect.errors import LoweringError
from ...dialect.ir.device import index_of
from ...lowering.gpu.ptxas import find_ptxas
from ...lowering.target import Target, host_target
from ..settings.events import log
from .nvidia.driver import driver
from .nvidia.driver_api import DriverError


def device_target(device: str) -> Target:
    """The host and the chip of a device; without a chip where no driver answers.

    Where there is no assembler, kernels stay PTX, which the driver assembles as it loads them.
    """
    try:
        current = driver()
        chip, image = current.chip(index_of(device)), current.image
    except DriverError:
        return host_target()  # groups for the device then say that there is none
    if image == "cubin":
        try:
            find_ptxas()
        except LoweringError as error:
            log("no-assembler", "", f"the driver assembles kernels: {error.what}")
            image = "ptx"
    return replace(host_target(), gpu=chip, gpu_image=image)
