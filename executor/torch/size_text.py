"""Sizes that a model makes text of: the text is of the number, which the export is guarded by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_KINDS: tuple[Any, ...] = (torch.SymInt, torch.SymFloat, torch.SymBool)
_lock = threading.Lock()
_depth = 0


def _text(size: Any) -> str:
    return str(size.node.pytype(size))


def _formatted(size: Any, format_spec: str) -> str:
    return format(size.node.pytype(size), format_spec)


_OURS = {"__repr__": _text, "__str__": _text, "__format__": _formatted}
_before: list[tuple[Any, str, Any]] = []


@contextmanager
def sizes_as_text() -> Iterator[None]:
    """Text of symbols for sizes, as in ``f"{x.shape[0]}"``, is that of their numbers meanwhile, and has a guard."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _before[:] = [(kind, name, kind.__dict__.get(name)) for kind in _KINDS for name in _OURS]
            for kind in _KINDS:
                for name, function in _OURS.items():
                    setattr(kind, name, function)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for kind, name, function in _before:
                    delattr(kind, name) if function is None else setattr(kind, name, function)
