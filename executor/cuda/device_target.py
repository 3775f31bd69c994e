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
    """The target with the host and a device's chip; without a chip if there is no driver.

    If there is no assembler, kernels stay PTX, which the driver assembles when it loads them.
    """
    try:
        current = driver()
        chip, image = current.chip(index_of(device)), current.image
    except DriverError:
        return host_target()  # groups for the device then fail with `placement.NO_GPU`
    if image == "cubin":
        try:
            find_ptxas()
        except LoweringError as error:
            log("no-assembler", "", f"the driver assembles kernels: {error.what}")
            image = "ptx"
    return replace(host_target(), gpu=chip, gpu_image=image)
