"""Doors for users of torch: modules and functions of torch, compiled and differentiated by this package."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiled import compile
    from .dynamo_backend import dynamo_graphs
    from .script_door import script

_HOME = {"compile": ".compiled", "dynamo_graphs": ".dynamo_backend", "script": ".script_door"}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """The doors, whose modules import torch."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
