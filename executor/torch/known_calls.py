"""Calls like those that have been: their exports, found without all that makes a key."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialect.dataclass import dataclass
from ..exchange.torch_tensors import alike
from .closed_code import ClosedCode
from .exported_call import ExportedCall
from .module_state import ModuleState
from .object_comparison import ObjectComparison
from .tensor_function import as_tensor

_MOST = 256  # kinds of calls
_requires = operator.attrgetter("requires_grad")
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
_grad_mode, _casts, _default_dtype = torch.is_grad_enabled, torch.is_autocast_enabled, torch.get_default_dtype
_Tensor = torch.Tensor


@dataclass
class KnownCall:
    """What serves a kind of calls.

    Attributes:
        call: the export.
        out_tree: makes the result of a flat list.
        held: the tensors of the module.
        requires: which of these require gradients; None = the call is one without gradients.
        differentiates: whether gradients are taken.
        default: torch's default dtype.
        comparison: what the export holds for besides arguments.
        function: gives the results without more; None = the export runs more than one function.
        left: how many operators torch runs between the parts of the graph.
    """

    call: ExportedCall
    out_tree: Callable[[Sequence[Any]], Any]
    held: Sequence[torch.Tensor]
    requires: list[bool] | None
    differentiates: bool
    default: torch.dtype
    comparison: ObjectComparison
    function: Callable[..., Any] | None
    left: int

    def results(self, args: tuple) -> Any:
        """The result of a call of the kind."""
        if self.function is not None:
            results = self.function(*args)
            if len(results) == 1 and type(x := results[0]) is _Tensor and x.is_contiguous():  # nothing to be made
                return self.out_tree(results)
            return self.out_tree([*map(as_tensor, results)])
        return self.out_tree(self.call(self.held, args, self.differentiates))


class _Latest:
    """The latest call, and torch's own check that another one has arguments of its kind, which is one call of C.

    Args:
        call: what has served it; None = there was none.
        args: its arguments; empty = nothing is compared with it.

    Attributes:
        count: the number of arguments.
        grad: whether gradient mode was on.
        takes: torch's check; None = nothing is compared.
    """

    def __init__(self, call: KnownCall | None, args: tuple) -> None:
        self.call, self.grad, self.count = call, _grad_mode(), len(args)
        self.takes = alike(args) if args else None


class KnownCalls:
    """The kinds of calls of one model whose arguments are plain tensors of the CPU, by position."""

    def __init__(self) -> None:
        self._calls: dict[tuple, KnownCall] = {}
        self._comparison: ObjectComparison | None = None
        self._latest = _Latest(None, ())

    def find(self, args: tuple) -> KnownCall | None:
        """What serves a call; None = nobody knows."""
        if not self._calls or _function_modes() or _dispatch_modes():
            return None
        latest = self._latest
        takes = latest.takes
        if takes is not None and latest.count == len(args) and latest.grad is _grad_mode() and takes(*args):
            served = latest.call
        else:
            served = self._of_kind(args)
        if (
            served is None
            or _casts("cpu")
            or _default_dtype() is not served.default
            or not served.comparison.are_same()
            or (served.requires is not None and list(map(_requires, served.held)) != served.requires)
        ):
            return None
        return served

    def _of_kind(self, args: tuple) -> KnownCall | None:
        """What serves calls with such arguments; those that are like the latest one are found sooner from now on."""
        kind = _kind_of(args)
        served = None if kind is None else self._calls.get(kind)
        if served is not None:
            is_repeated = served is self._latest.call
            self._latest = _Latest(served, args if is_repeated else ())
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
        entry: tuple[ExportedCall, Any],
        held: Sequence[torch.Tensor],
        differentiates: bool,
    ) -> None:
        """Keep what has served a call, outside of modes of torch, while nothing of ``comparison`` has changed."""
        kind = _kind_of(args)
        if kind is None or _casts("cpu") or not comparison.are_same():
            return
        if len(self._calls) >= _MOST:
            self._calls.clear()
        self._latest = _Latest(None, ())
        requires = list(map(_requires, held)) if _grad_mode() else None
        default = _default_dtype()
        function = None if differentiates or not args else entry[0].only_function()
        self._calls[kind] = KnownCall(
            *entry, held, requires, differentiates, default, comparison, function, len(entry[0].parts.left)
        )

    def clear(self) -> None:
        """Forget all kinds."""
        self._calls.clear()
        self._latest = _Latest(None, ())


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
