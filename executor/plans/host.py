"""The host as `processor.Backend`: values are NumPy arrays, and calls take them as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.ir.program import Module
from ..settings.events import Counters

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.target import Target


def unavailable(device: str) -> str:
    """The host is always there."""
    return ""


def target(device: str) -> Target:
    """The CPU of this process."""
    from ...lowering.target import host_target

    return host_target()


def adapter(module: Module, home: str) -> None:
    """Tier 0 computes with host arrays as it is."""


def runner(
    artifact: KernelArtifact, device: str, counters: Counters, interpreted: Callable[..., Any]
) -> Callable[..., Any]:
    """What runs a compiled group."""
    from .kernel_call import kernel_runner

    return kernel_runner(artifact, counters, interpreted)


def exchanges(device: str) -> tuple[Sequence[None], list[str]]:
    """Emitted code reads NumPy arrays by their layout: one way, which takes no exchange."""
    return (None,), []


def moved(leaves: Sequence[Any], device: str) -> list[Any]:
    """Arguments stay where they are."""
    return list(leaves)


def call(
    run: Callable[[Any, list], list], executor: Any, leaves: Sequence[Any], captured: Sequence[Any]
) -> list:
    """Outputs of an executor for these arguments and captured arrays."""
    return run(executor, [*leaves, *captured])
