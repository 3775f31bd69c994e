"""Where a function of torch stops gradients: noted in its graph, which is differentiated by rules of this package.

A trace runs below torch's own differentiation, so that `detach`, `torch.no_grad` and the like leave nothing in it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch._C import _functorch
from torch.fx import traceback as notes
from torch.overrides import TorchFunctionMode, resolve_name

_library = torch.library.Library("profuse", "DEF")
_library.define("stop_gradient(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("stop_gradient", lambda x: x.clone(), "CompositeExplicitAutograd")
_library.impl("stop_gradient", torch.empty_like, "Meta")
_stop = torch.ops.profuse.stop_gradient

_DETACH = {torch.Tensor.detach, torch.detach, torch._C.TensorBase.data.__get__}
_SWITCHES = {torch._C._set_grad_enabled}
_REFUSED = {
    torch.Tensor.register_hook: "a hook on a tensor",
    torch.Tensor.detach_: "detach_",
    torch.Tensor.requires_grad_: "requires_grad_",
    torch.Tensor.backward: "a backward pass",
    torch.autograd.grad: "a backward pass",
}


_PACKAGES = (str(Path(torch.__file__).parent), str(Path(__file__).parents[4] / "dialect"))


class StopsUnsupported(RuntimeError):
    """A function does something about gradients that no graph holds."""


class GradientStops(TorchFunctionMode):
    """While it is in force, what the function keeps gradients from becomes an operator of the graph.

    It also notes the user's line, for the nodes of the graph.

    Args:
        has_gradients: gradients are enabled where the function is called.

    Attributes:
        in_own_half: a half of a function with a gradient of its own is run. Whether gradients are enabled there says
            nothing of those that the function has.
    """

    def __init__(self, has_gradients: bool) -> None:
        super().__init__()
        self._has_gradients = self._is_on = has_gradients
        self.in_own_half = False
        self._stopped: set[int] = set()
        self._alive: list[torch.Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function in _REFUSED and not self._is_harmless(function):
            raise StopsUnsupported(f"{_REFUSED[function]} is nothing that a graph holds")
        if function in _SWITCHES:
            self._is_on = bool(args[0])
            return function(*args)
        if self._stopped and args and id(args[0]) in self._stopped and _writes(function):
            raise StopsUnsupported("a write to a detached tensor, which is its source as well")
        is_off = self._has_gradients and not self._is_on and not self.in_own_half
        if is_off and args and _writes(function) and _is_inexact(args[0]):
            raise StopsUnsupported("a write where gradients are off, which leaves those of its target as they are")
        _note_place()
        result = function(*args, **(kwargs or {}))
        if not self._has_gradients:
            return result
        if function in _DETACH:
            return self.without_gradient(result)
        if not is_off or not isinstance(result, (torch.Tensor, tuple, list)) or _writes(function):
            return result
        if isinstance(result, torch.Tensor):
            return self.without_gradient(result)
        if type(result) not in (tuple, list):
            return result
        return type(result)(self.without_gradient(x) if isinstance(x, torch.Tensor) else x for x in result)

    def _is_harmless(self, function: Any) -> bool:
        """True if there are no gradients that it is about, but those of a transform within the function."""
        if self._has_gradients:
            return False
        return function is torch.Tensor.detach_ or _functorch.get_dynamic_layer_stack_depth() > 0

    def without_gradient(self, x: torch.Tensor) -> torch.Tensor:
        """The tensor, noted as one that gradients do not reach."""
        if not _is_inexact(x):
            return x
        stopped = _stop(x)
        self._stopped.add(id(stopped))
        self._alive.append(stopped)  # so that no other tensor gets the same id
        return stopped


def _is_inexact(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def _note_place() -> None:
    """Have the nodes that are made next tell the innermost line of the user's, unless an interpreter has set theirs."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == torch.fx.interpreter.__file__:
            return
        if not file.startswith(_PACKAGES):
            notes.current_meta["stack_trace"] = f'File "{file}", line {frame.f_lineno}, in {frame.f_code.co_name}'
            return
        frame = frame.f_back  # type: ignore[assignment]


def _writes(function: Any) -> bool:
    name = (resolve_name(function) or getattr(function, "__name__", "")).rpartition(".")[2]
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
