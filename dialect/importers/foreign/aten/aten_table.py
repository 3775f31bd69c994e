"""The table of ATen's operators, and how the names of overloads and of in-place forms find handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...numpy.handlers.masks import Masked
from ...numpy.tracing.current import trace_error
from ...numpy.tracing.operators import Recording
from ..operator_table import OperatorTable
from .promotion import cast

_Function = TypeVar("_Function", bound=Callable)


# In-place forms that change a tensor's shape, which arrays cannot.
_OF_SHAPE = frozenset(
    ("as_strided_", "resize_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_")
)


class AtenTable(OperatorTable):
    """ATen's operators by their names without the namespace: ``"add"``, ``"add.Tensor"``, ``"add_"``.

    An in-place form, ``add_`` of ``add``, has a handler of its own, or computes, casts to the dtype of its first
    operand and writes there. Overloads that write to ``out`` have none.
    """

    def __init__(self) -> None:
        super().__init__("ATen", home=(f"{__package__}.all_aten", "ATEN"))
        self._in_place: dict[str, Callable[..., Any]] = {}

    def _own(self, name: str) -> Callable[..., Any] | None:
        base, _, overload = name.partition(".")
        if overload.endswith("out"):
            return self._handlers.get(name)
        handler = super()._own(name)
        if handler is not None or not base.endswith("_") or base.endswith("__"):
            return handler
        if base in _OF_SHAPE:
            return None
        if base not in self._in_place:
            functional = super()._own(base[:-1])
            if functional is None:
                return None
            self._in_place[base] = _written(functional)
        return self._in_place[base]


def _written(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of an operator."""

    @functools.wraps(handler)
    def in_place(call: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, np.generic) and not isinstance(self, Recording):
            raise refuse(call.node.op, "on a number of NumPy's", "write x = x + y instead of x += y")
        result = handler(call, self, *args, **kwargs)
        if type(self) is not Masked or not self.hold(result):
            self[...] = cast(result, self.dtype)
        return self

    return in_place


ATEN = AtenTable()


def aten(*names: str) -> Callable[[_Function], _Function]:
    """Decorate a function of operands and attributes, named as in ATen's schemas, as the handler of these names."""

    def add(function: _Function) -> _Function:
        ATEN.register(*names)(lambda call, *args, **kwargs: function(*args, **kwargs))
        return function

    return add


def refuse(operator: str, form: str, hint: str | None = None) -> Exception:
    """The error for a form of an operator that cannot be imported; to be raised."""
    return trace_error(f"ATen's operator {operator} is not supported {form}", hint)
