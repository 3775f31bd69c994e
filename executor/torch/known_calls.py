"""Calls like those that have been: their exports, found without all that makes a key."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..exchange.torch_tensors import alike, sees_autocast
from .closed_code import ClosedCode
from .model_export import FIRST, Entry
from .module_state import ModuleState
from .object_comparison import ObjectComparison
from .tensor_function import tensors_of

_MOST = 256  # kinds of calls
_MOST_CHECKS = 32  # made for one kind, as the inference mode changes
_requires = operator.attrgetter("requires_grad")
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
_grad_mode, _casts, _default_dtype = torch.is_grad_enabled, torch.is_autocast_enabled, torch.get_default_dtype
_Tensor = torch.Tensor
UNSERVED = object()
Server = Callable[[tuple], Any]  # gives the result of a call, or `UNSERVED`


class KnownCall:
    """What serves a kind of calls.

    Args:
        entry: the export, and what makes the result of a flat list.
        held: the tensors of the module.
        differentiates: whether gradients are taken.
        comparison: what the export holds for besides arguments.
        has_args: there are arguments.

    Attributes:
        left: how many operators torch runs between the parts of the graph.
    """

    def __init__(
        self,
        entry: Entry,
        held: Sequence[torch.Tensor],
        differentiates: bool,
        comparison: ObjectComparison,
        has_args: bool,
    ) -> None:
        self._call, self._out_tree = entry
        self._held, self._differentiates, self._comparison = held, differentiates, comparison
        self._requires = list(map(_requires, held)) if _grad_mode() else None
        self._default = _default_dtype()
        # What gives the results without more; None = the export runs more than one function.
        self._function = None if differentiates or not has_args else self._call.only_function()
        self._takes: Callable[..., bool] | None = None
        self._server: Server | None = None
        self._checks = 0
        self.left = len(self._call.parts.left)

    def holds(self) -> bool:
        """True if all that the export holds for besides arguments is as it was."""
        return (
            not _casts("cpu")
            and _default_dtype() is self._default
            and self._comparison.are_same()
            and (self._requires is None or list(map(_requires, self._held)) == self._requires)
        )

    def results(self, args: tuple) -> Any:
        """The result of a call of the kind."""
        if self._function is not None:
            return self._result_of((self._function.native or self._function)(*args))
        return self._out_tree(self._call(self._held, args, self._differentiates))

    def _result_of(self, outputs: Sequence[Any]) -> Any:
        """The result of a call, of what the graph gives."""
        return self._out_tree(tensors_of(outputs))

    def server(self, args: tuple) -> Server | None:
        """What serves calls with arguments like these as long as the call `holds`, in few steps; None = nothing does.

        torch's own check compares the arguments, in one call of C. It holds for the modes of the present, among which
        the inference mode is.
        """
        if self._takes is not None and self._takes(*args):
            return self._server
        if self.left or self._checks > _MOST_CHECKS or not args:
            return None
        self._checks += 1
        self._takes = takes = alike(args)
        if takes is None:
            return None
        function, result_of = self._function, self._result_of
        are_same, default = self._comparison.are_same, self._default
        grad, count, sees_casts = _grad_mode(), len(args), sees_autocast()
        is_plain = function is not None and self._requires is None
        holds, results, itself = self.holds, self.results, self._out_tree is FIRST

        def serve(args: tuple) -> Any:
            if len(args) != count or _grad_mode() is not grad or _function_modes() or _dispatch_modes():
                return UNSERVED
            if not takes(*args):
                return UNSERVED
            if not is_plain or not sees_casts:
                return results(args) if holds() else UNSERVED
            if _default_dtype() is not default or not are_same():
                return UNSERVED
            assert function is not None
            outputs = (function.native or function)(*args)
            if itself and type(x := outputs[0]) is _Tensor and x.is_contiguous():
                return x
            return result_of(outputs)

        self._server = serve
        return serve


class KnownCalls:
    """The kinds of calls of one model whose arguments are plain tensors of the CPU, by position.

    Attributes:
        serve: serves calls like the latest one, in few steps, and gives `UNSERVED` for others; None = nothing does.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple, KnownCall] = {}
        self._comparison: ObjectComparison | None = None
        self._latest: KnownCall | None = None
        self.serve: Server | None = None

    def find(self, args: tuple) -> KnownCall | None:
        """What serves a call; None = nobody knows."""
        if not self._calls or _function_modes() or _dispatch_modes():
            return None
        kind = _kind_of(args)
        served = None if kind is None else self._calls.get(kind)
        if served is None or not served.holds():
            return None
        if served is self._latest:
            self.serve = served.server(args)
        self._latest = served
        return served

    def comparison_of(self, closed: ClosedCode, state: ModuleState) -> ObjectComparison:
        """What exports hold for besides arguments, as it is now."""
        if self._comparison is None or not self._comparison.are_same():
            self._comparison = ObjectComparison()
            closed.note_in(self._comparison)
            state.note_in(self._comparison)
            self._comparison.taken()
        return self._comparison

    def add(
        self,
        args: tuple,
        comparison: ObjectComparison,
        entry: Entry,
        held: Sequence[torch.Tensor],
        differentiates: bool,
    ) -> None:
        """Keep what has served a call, outside of modes of torch, while nothing of ``comparison`` has changed."""
        kind = _kind_of(args)
        if kind is None or _casts("cpu") or not comparison.are_same():
            return
        if len(self._calls) >= _MOST:
            self.clear()
        self._calls[kind] = KnownCall(entry, held, differentiates, comparison, bool(args))

    def clear(self) -> None:
        """Forget all kinds."""
        self._calls.clear()
        self._latest = self.serve = None


def _kind_of(args: tuple) -> tuple | None:
    """What tells a call from others, besides the state of the model; None for other arguments than plain tensors."""
    kind: list[Any] = [_grad_mode()]
    try:
        for x in args:
            if type(x) is not _Tensor or not x.is_cpu:
                return None
            kind += (x.dtype, x.shape, x.stride(), x.requires_grad)
    except RuntimeError:  # sparse tensors have no strides
        return None
    return tuple(kind)
