"""Conversions of an `Array` that NumPy, Python and traced functions ask for: attributes, numbers, text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from ...dialect.importers.numpy.tracing.current import current, evaluator, trace_error
from ...dialect.importers.numpy.tracing.operators import Recording
from ...dialect.importers.numpy.tracing.traced import Traced
from ...dialect.ir.gradient_mode import MODE
from .node import Node, user_line
from .taken import what_loses

_OUTSIDE = "an Array of the tape is used in a function that is traced, which was not given it"


class Conversions(Traced):
    """The part of `Array` that concerns its elements alone.

    Attributes:
        data: the ndarray or NumPy scalar.
    """

    __slots__ = ()
    data: Any

    @property
    def node(self) -> Node | None:
        """The node that has computed it; None = it requires no gradient."""
        raise NotImplementedError

    @property
    def is_leaf(self) -> bool:
        """True if no noted operation has computed it."""
        raise NotImplementedError

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.data)

    @property
    def rec(self) -> Any:  # type: ignore[override]
        return evaluator()

    @property
    def value(self) -> Any:
        return self

    @property
    def hint(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise GradientError("the shape of an array on the tape cannot be assigned", hint="write x = x.reshape(shape)")

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def strides(self) -> tuple[int, ...]:
        return self.data.strides

    @property
    def flags(self) -> Any:
        return self.data.flags

    def check_live(self) -> None:
        if current() is not None:
            raise trace_error(_OUTSIDE, "pass it as an argument, or x.data")

    def share(self, base: Recording) -> None:
        """The memory of arrays is looked up where ops are evaluated."""

    def bake(self) -> Any:
        self.check_live()
        return self.data.item()

    @property
    def device(self) -> Any:
        return self.data.device

    @property
    def ctypes(self) -> Any:
        return self.data.ctypes

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if current() is not None:
            self.check_live()
        if MODE.on and self.node is not None:
            self._check_kept(sys._getframe(1))
            raise GradientError(
                "an array that requires gradients is made a plain one, which would lose them",
                loc=user_line(),
                hint="call NumPy's functions as np.<name> with it, and stack lists of arrays with "
                "np.stack; for the numbers alone write x.data, x.detach(), or convert it under "
                "pf.no_grad()",
            )
        data = self.data
        if type(data) is np.ndarray and dtype is None and not copy:
            return data
        return np.array(data, dtype, copy=copy)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self) >> 4

    def __repr__(self) -> str:
        shown = repr(self.data).removeprefix("array").removeprefix("np.").strip()
        shown = shown if shown.startswith("(") else f"({shown})"
        if self.node is None:
            return f"array{shown}"
        of = "requires_grad=True" if self.is_leaf else f"node={self.node.name}"
        return f"array{shown[:-1]}, {of})"

    def __str__(self) -> str:
        return str(self.data)

    def __format__(self, spec: str) -> str:
        return format(self.data, spec)

    def __bool__(self) -> bool:
        self.check_live()
        return bool(self.data)

    def __int__(self) -> int:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return int(self.data)

    def __float__(self) -> float:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return float(self.data)

    def __complex__(self) -> complex:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return complex(self.data)

    def _check_kept(self, frame: Any) -> None:
        """Raise GradientError if ``frame`` stores the elements, or computes with them."""
        if not MODE.on or self.node is None:
            return
        lost = what_loses(frame)
        if lost is not None:
            what, hint = lost
            raise GradientError(what, loc=user_line(), hint=hint)

    def __index__(self) -> int:
        self.check_live()
        return self.data.__index__()

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self.data)))

    def item(self, *args: int) -> Any:
        """An element as a Python number, through which no gradient flows."""
        return self.data.item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.data.tolist()
