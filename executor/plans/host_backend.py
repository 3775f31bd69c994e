"""The host as a `processor.Backend`: all values are NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.ir.program import Module
from ..settings.events import Counters
from ..settings.knobs import knobs

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.target import Target


def unavailable(device: str) -> str:
    """The empty string, since the host is always available."""
    return ""


def target(device: str) -> Target:
    """The CPU of this process, with vectors of the width that is set."""
    from ..compile.cache.installation import host_target

    width = knobs.vector_width
    return host_target().preferring(0 if width == "auto" else int(width))


def adapter(module: Module, home: str) -> None:
    """None: tier 0 computes with host arrays without an adapter."""


def runner(
    artifact: KernelArtifact, device: str, counters: Counters, interpreted: Callable[..., Any]
) -> Callable[..., Any]:
    """A callable that runs a compiled group."""
    from .kernel_call import kernel_runner

    return kernel_runner(artifact, counters, interpreted)


def exchanges(device: str) -> tuple[Sequence[None], list[str]]:
    """One way without an exchange: emitted code reads NumPy arrays by their struct layout."""
    return (None,), []


def moved(leaves: Sequence[Any], device: str) -> list[Any]:
    """Arguments stay where they are."""
    return list(leaves)


def call(run: Callable[[Any, list], list], executor: Any, leaves: Sequence[Any], captured: Sequence[Any]) -> list:
    """Run an executor on these arguments and captured arrays; returns its outputs."""
    return run(executor, [*leaves, *captured])
