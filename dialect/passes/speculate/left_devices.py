"""The ops that the general fuser leaves to the fuser of device groups (A7)."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from ...errors import PipelineError
from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.types import Type
from ...mlir.rewrite import body_of, types_of

ALL = "all"
_CHOICES = ("", "cuda", ALL)


class LeftDevices:
    """The devices whose ops passes of the general fuser leave alone, by their option ``leave``.

    Args:
        leave: "" = none, "cuda" = those of CUDA devices, "all" = those of the host as well.
        func: the function whose ops are asked about. Ops on no device are those of its arguments.

    Raises PipelineError for any other text.
    """

    def __init__(self, leave: str, func: ir.Operation) -> None:
        if leave not in _CHOICES:
            raise PipelineError(f"leave={leave!r} names no devices", hint="choose cuda or all")
        self._leave = leave
        self._of_arguments = devices_of(types_of(body_of(func).arguments)) if leave else set()

    def is_left(self, types: Iterable[Type]) -> bool:
        """True for an op, or a group of ops, whose operands and results have these types."""
        if not self._leave or self._leave == ALL:
            return bool(self._leave)
        devices = devices_of(types) or self._of_arguments
        return any(device.partition(":")[0] == self._leave for device in devices - {HOST})
