"""A compiled module, which users hold in the place of their own."""

from __future__ import annotations

from typing import Any

import torch

METHODS = ("explain", "state", "wait", "save")  # of `CompiledCalls`, which compiled modules and functions have


class CompiledModule(torch.nn.Module):
    """A compiled module: parameters, modes and attributes are those of the module itself."""

    def __init__(self, model: torch.nn.Module, calls: Any) -> None:
        super().__init__()
        self.__dict__["calls"] = calls
        self._orig_mod = model
        self.training = model.training
        for method in METHODS:
            self.__dict__[method] = getattr(calls, method)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.__dict__["calls"](args, kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        model = self.__dict__.get("_modules", {}).get("_orig_mod")
        if model is None or name == "_orig_mod" or (name in self.__dict__ and name not in model.__dict__):
            super().__setattr__(name, value)
            return
        setattr(model, name, value)
        if name in self.__dict__:  # as `training`, which torch sets in both
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __reduce__(self) -> Any:
        return self.calls.reduced(self._orig_mod)
