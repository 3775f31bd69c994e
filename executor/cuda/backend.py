"""NVIDIA GPUs as `executor.plans.processor.Backend`: this room's interface for rooms above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...lowering.gpu.artifact import GpuArtifact
from ..settings.events import Counters
from .device_target import device_target as target
from .exchange.libraries import exchanges
from .launching.launch import GroupRunner
from .nvidia.driver import unavailable
from .on_device import call, moved
from .tier0 import adapter

__all__ = ["adapter", "call", "exchanges", "moved", "runner", "target", "unavailable"]


def runner(
    artifact: GpuArtifact, device: str, counters: Counters, interpreted: Callable[..., Any]
) -> Callable[..., Any]:
    """A callable that runs a compiled group; each call on device arrays counts its launches."""
    return GroupRunner(artifact, device, interpreted)
