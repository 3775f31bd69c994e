"""Methods of ndarray; those of `reductions` and `linalg` are registered there, beside the functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import ShapeError
from ....ir.dtypes import dtype_of
from ..tracing.current import trace_error, user_loc
from ..tracing.handler_tables import LATE, METHODS, Handler
from ..tracing.layouts import Laid
from ..tracing.mutation import in_memory, is_immutable, write
from ..tracing.operators import op
from ..tracing.outputs import write_out
from ..tracing.traced import Traced
from . import joins, selection
from . import shape_functions as shapes
from .axes import ndim
from .creation import in_order, wanted_order
from .registry import array_method, refuse_parameter


def _sizes_of(args: tuple) -> Any:
    return args[0] if len(args) == 1 else args


@array_method("astype")
def astype(
    self: Traced, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """`ndarray.astype`."""
    order = wanted_order(order, self)
    target = dtype_of(dtype)
    if not np.can_cast(self.dtype, target.numpy, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {self.dtype!r} to {target.numpy!r} according to the rule {casting!r}"
        )
    if self.dtype == target.numpy:
        if copy:
            return METHODS["copy"](self, order)
        self.rec.is_native = True  # NumPy converts others
        return self if order == "K" or is_immutable(self) else in_order(self, order)
    out = op("cast", self, dtype=target)
    if is_immutable(self):
        return out
    return in_memory(out) if order == "K" else in_order(in_memory(out), order)


@array_method("copy", "__copy__")
def copy(self: Traced, order: str = "C") -> Traced:
    """`ndarray.copy`; a rank-0 result is a NumPy scalar, which cannot change."""
    order = wanted_order(order, self)
    if is_immutable(self):
        return self
    out = op("copy", self)
    if order == "K":
        out.rec.layouts.unordered[out.value] = Laid((self.value,), np.array)
    return in_order(out, order) if order == "F" else out


@array_method("__deepcopy__")
def deepcopy(self: Traced, memo: Any) -> Traced:
    """`copy.deepcopy`."""
    return copy(self)


@array_method("detach")
def detach(self: Traced) -> Any:
    """`pf.Array.detach`: the same memory, through which no gradient flows."""
    return op("stop_gradient", self, view_of=self)


@array_method("reshape")
def reshape(self: Traced, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    """`ndarray.reshape`."""
    if not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    return shapes.reshape(self, _sizes_of(shape), order)


@array_method("ravel")
def ravel(self: Traced, order: str = "C") -> Any:
    """`ndarray.ravel`."""
    return shapes.exposed_ravel(self, order)


@array_method("flatten")
def flatten(self: Traced, order: str = "C") -> Any:
    """`ndarray.flatten`, always a copy."""
    return copy(shapes.ravel(self, order))  # of rank 1, which has one order


@array_method("transpose")
def transpose(self: Traced, *axes: Any) -> Any:
    """`ndarray.transpose`."""
    if not axes or axes == (None,):
        return shapes.transpose(self)
    return shapes.transpose(self, _sizes_of(axes))


# These take the arguments of the functions, and only these.
for _name, _function in {"swapaxes": shapes.swapaxes, "squeeze": shapes.squeeze, "repeat": joins.repeat}.items():
    array_method(_name)(_function)


@array_method("take")
def take(self: Traced, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """`ndarray.take`."""
    result = selection.take(self, indices, axis, mode)
    return result if out is None else write_out("ndarray.take", out, result)


@array_method("clip")
def clip(self: Traced, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    """`ndarray.clip`."""
    for name in options:
        raise refuse_parameter("ndarray.clip", name)
    result = selection.clip(self, min, max)
    return result if out is None else write_out("ndarray.clip", out, result)


@array_method("round")
def round_(self: Traced, decimals: Any = 0, out: Any = None) -> Any:
    """`ndarray.round`."""
    result = selection.round_(self, decimals)
    return result if out is None else write_out("ndarray.round", out, result)


@array_method("conj", "conjugate")
def conj(self: Traced) -> Any:
    """`ndarray.conj`: a copy of complex numbers, and of those of dtypes that are not NumPy's."""
    if self.dtype.kind == "V":
        return op("copy", self)
    return op("conj", self) if self.dtype.kind == "c" else self


@array_method("item")
def item(self: Traced, *args: Any) -> Any:
    """`ndarray.item`: a Python number known at run time."""
    if not args:
        return op("item", self)
    key = args[0] if len(args) == 1 else args
    if isinstance(key, tuple):
        return op("item", self[key])
    return op("item", shapes.ravel(self)[operator.index(key)])


@array_method("fill")
def fill(self: Traced, value: Any) -> None:
    """`ndarray.fill`."""
    if ndim(value):
        raise ShapeError("setting an array element with a sequence.", loc=user_loc())
    write(self, value, strict=False)


@array_method("resize", "itemset", "setfield", "byteswap")
def _mutating(self: Traced, *args: Any, **kwargs: Any) -> Any:
    raise trace_error(
        "methods that change an array in place are not supported while tracing",
        "build a new array: np.full, np.where, np.concatenate",
    )


# --- methods whose work is a library's ----------------------------------------------------------


def _on_host(name: str) -> Callable[..., Any]:
    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        from .host import call

        return call(f"numpy.{name}", (self, *args), kwargs)

    return method


for _name in ("argsort", "argpartition", "searchsorted", "nonzero"):
    array_method(_name)(_on_host(_name))


@array_method("choose")
def choose(self: Traced, *choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """`ndarray.choose`, of a sequence or of several arrays."""
    from .host import call

    if not choices:
        raise TypeError("choose() takes exactly 1 argument (0 given)")
    listed = choices[0] if len(choices) == 1 else choices
    return call("numpy.choose", (self, listed), {"out": out, "mode": mode})


@array_method("compress")
def compress(self: Traced, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """`ndarray.compress`."""
    result = np.compress(condition, self, axis)
    return result if out is None else write_out("ndarray.compress", out, result)


@array_method("sort")
def sort(self: Traced, axis: Any = -1, kind: Any = None, order: Any = None, **more: Any) -> None:
    """`ndarray.sort`, in place."""
    write(self, np.sort(self, axis, kind, order, **more))


@array_method("partition")
def partition(self: Traced, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
    """`ndarray.partition`, in place."""
    write(self, np.partition(self, kth, axis, kind, order))


def _host_function(function: Any) -> Handler | None:
    from .host import host_function

    return host_function(function)


LATE.append(_host_function)
