"""NumPy's ufuncs as ops: one table, and the ufunc methods that have a graph form."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ShapeError
from ....ir.dtypes import dtype_of
from ....ir.op import find_op
from ..tracing.current import trace_error, user_loc
from ..tracing.handler_tables import COMPOSED, FUNCTIONS, METHODS, UFUNCS, function_handler
from ..tracing.mutation import check_owner, write
from ..tracing.operators import op, recorder_of
from ..tracing.outputs import traced_out
from ..tracing.traced import Traced
from ..tracing.unsupported import is_supported, unsupported_call
from .axes import as_array, check_order, dtype_like, loop, ndim, strong, zero_of
from .creation import broadcast
from .registry import array_method, refuse_parameter

# Names of ufuncs whose op is called differently.
_RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "divide": "div",
    "equal": "eq",
    "expit": "sigmoid",
    "floor_divide": "floor_div",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "shift_left",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "right_shift": "shift_right",
    "subtract": "sub",
}
_SAME = (
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "maximum",
    "minimum",
    "positive",
    "reciprocal",
    "remainder",
    "rint",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
)
UFUNCS.update(_RENAMED)
UFUNCS.update({name: name for name in _SAME})

COMPOSED.update(
    {
        "fabs": lambda x: op("abs", *_in_loop(np.fabs, x)),
        "float_power": lambda a, b: op("pow", *_in_loop(np.float_power, a, b)),
        "deg2rad": lambda x: _times(np.pi / 180.0, *_in_loop(np.deg2rad, x)),
        "radians": lambda x: _times(np.pi / 180.0, *_in_loop(np.radians, x)),
        "rad2deg": lambda x: _times(180.0 / np.pi, *_in_loop(np.rad2deg, x)),
        "degrees": lambda x: _times(180.0 / np.pi, *_in_loop(np.degrees, x)),
        "fmax": lambda a, b: _fmax("maximum", a, b),
        "fmin": lambda a, b: _fmax("minimum", a, b),
        "heaviside": lambda x, h: _heaviside(*_in_loop(np.heaviside, x, h)),
        "signbit": lambda x: op("lt", op("copysign", 1.0, x), 0),
        "divmod": lambda a, b: (op("floor_div", a, b), op("remainder", a, b)),
        "modf": lambda x: _modf(*_in_loop(np.modf, x)),
        "vecdot": lambda a, b: _vecdot(a, b),
    }
)


def _is_exact(name: str) -> bool:
    """True for ufuncs of which NumPy's loops give the same bits for any layout."""
    op_class = find_op(UFUNCS[name]) if name in UFUNCS else None
    return op_class is not None and op_class.exact


def _is_contiguous(array: Any) -> bool:
    """True for an array that the function has made, all of it."""
    definition = array.rec.defs.get(array.value)
    return definition is not None and not definition.op.aliases and array.value not in array.rec.layouts.unordered


# ufunc -> the NumPy function that its ``reduce`` is.
_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}


@array_method("__array_ufunc__")
def call_ufunc(_: Any, ufunc: np.ufunc, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """``ufunc(*inputs, **kwargs)`` or one of its methods, recorded."""
    name = ufunc.__name__
    if method == "__call__" and any(getattr(type(x), "lifts", False) for x in inputs):
        from .masks import lift_ufunc

        return lift_ufunc(ufunc, inputs, kwargs)
    if method in ("reduce", "accumulate"):
        return _reduce(ufunc, method, inputs, kwargs)
    if method == "at":
        from .index_writes import ufunc_at

        return ufunc_at(ufunc, inputs)
    if method == "outer":
        return _outer(ufunc, inputs, kwargs)
    if method == "reduceat":
        return _on_host(ufunc, method, inputs, kwargs)
    rec = recorder_of(inputs)
    out = kwargs.pop("out", None)
    targets = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None]
    for target in targets:
        check_owner(traced_out(f"np.{name}", target))
        if rec.exact and not (_is_exact(name) or _is_contiguous(target)):
            raise trace_error(
                f"what np.{name} writes to out= may depend on how that array lies in memory, to "
                "the last bit (PROFUSE_EXACT)",
                f"assign the result: out[...] = np.{name}(x)",
            )
    dtype, where = kwargs.pop("dtype", None), kwargs.pop("where", True)
    _refuse_keywords(f"np.{name}", kwargs, inputs)
    if not is_supported(ufunc):
        raise unsupported_call(rec, ufunc)
    if where is not True:
        from .masked_writes import call_where

        options = {} if dtype is None else {"dtype": dtype}
        call = functools.partial(call_ufunc, None, ufunc, "__call__", **options)
        return call_where(ufunc, call, inputs, where, targets)
    made_in = None
    if dtype is not None:
        inputs = tuple(as_array(x) if isinstance(x, (list, tuple)) else x for x in inputs)
        dtypes = loop(ufunc, inputs, dtype_of(dtype).numpy)
        inputs, made_in = tuple(_in_dtypes(inputs, dtypes)), dtypes[ufunc.nin :]
    else:
        inputs = strong(*inputs)
    if name in COMPOSED:
        result = COMPOSED[name](*inputs)
    elif name in UFUNCS:
        result = op(UFUNCS[name], *inputs)
    else:
        handler = function_handler(ufunc)
        assert handler is not None, "it is supported"
        result = handler(*inputs)
    if made_in is not None and not isinstance(result, tuple) and result.dtype != made_in[0]:
        result = _cast(result, made_in[0])
    if not targets:
        return result
    if isinstance(result, tuple):
        raise refuse_parameter(f"np.{name}", "out")
    if ndim(result) < targets[0].ndim:  # an output may have more axes than the operands
        result = broadcast(result, targets[0].shape)
    return write(targets[0], result)


def _reduce(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if method == "accumulate" and name in ("add", "multiply"):
        target = np.cumsum if name == "add" else np.cumprod
    elif method == "reduce" and name in _REDUCE:
        target = getattr(np, _REDUCE[name])
    else:
        return _on_host(ufunc, method, inputs, kwargs)
    array, *rest = inputs
    if isinstance(array, (list, tuple)):
        array = as_array(array)
    # By default a ufunc's reduce is along axis 0, unlike np.sum.
    arguments = {"axis": 0} | kwargs | dict(zip(("axis", "dtype", "out"), rest, strict=False))
    if method == "accumulate":
        if not ndim(array):
            raise TypeError("cannot accumulate on a scalar")
        axis = arguments["axis"]
        if (axis is None and ndim(array) > 1) or (isinstance(axis, tuple) and len(axis) != 1):
            raise ValueError("accumulate does not allow multiple axes")
        arguments["axis"] = 0 if axis is None else axis[0] if isinstance(axis, tuple) else axis
    if target in (np.any, np.all, np.max, np.min) and arguments.get("dtype") is not None:
        raise refuse_parameter(f"np.{name}.{method}", "dtype")
    if target in (np.any, np.all) and "initial" in arguments:
        raise refuse_parameter(f"np.{name}.{method}", "initial")
    kept = ("axis", "initial")
    options = {k: v for k, v in arguments.items() if v is not None or k in kept}
    return FUNCTIONS[target](array, **options)


def _outer(ufunc: np.ufunc, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    if ufunc.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    a, b = map(as_array, inputs)
    if ndim(b) and ndim(a):
        axes = tuple(range(ndim(a), ndim(a) + ndim(b)))
        a = op("expand_dims", a, axes=axes) if isinstance(a, Traced) else np.expand_dims(a, axes)
    return call_ufunc(None, ufunc, "__call__", a, b, **kwargs)


def _on_host(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    from .host import host_function

    first = 2 if method == "reduceat" else 1
    arguments = dict(zip(("axis", "dtype", "out"), inputs[first:], strict=False)) | kwargs
    if arguments.get("out") is not None:  # what is computed in depends on its dtype, op by op
        raise refuse_parameter(f"np.{ufunc.__name__}.{method}", "out")
    handler = host_function(getattr(ufunc, method), f"numpy.{ufunc.__name__}.{method}")
    if handler is None or getattr(np, ufunc.__name__, None) is not ufunc:
        raise unsupported_call(recorder_of(inputs), ufunc, f"np.{ufunc.__name__}.{method}")
    return handler(*inputs, **kwargs)


def _refuse_keywords(where: str, kwargs: dict[str, Any], inputs: tuple) -> None:
    for name, value in kwargs.items():
        if (value is None and name != "signature") or (name == "casting" and value == "same_kind") or name == "subok":
            continue
        if name == "order":
            check_order(value)
            continue
        raise refuse_parameter(where, name)


def _cast(x: Any, dtype: Any) -> Any:
    return METHODS["astype"](x, dtype) if isinstance(x, Traced) else op("cast", x, dtype=dtype_of(dtype))


def _in_loop(ufunc: np.ufunc, *inputs: Any) -> list[Any]:
    """The operands as arrays of the dtypes that ``ufunc`` computes in."""
    arrays = [as_array(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    return _in_dtypes(arrays, loop(ufunc, arrays))


def _in_dtypes(inputs: Sequence[Any], loop: Sequence[np.dtype]) -> list[Any]:
    return [
        x if hasattr(x, "dtype") and x.dtype == dtype else _cast(x, dtype)
        for x, dtype in zip(inputs, loop, strict=False)
    ]


def _times(factor: float, x: Any) -> Any:
    # NumPy has no weak numbers beside bfloat16, so that the product is float32.
    return _cast(op("mul", x, factor), x.dtype) if x.dtype.kind == "V" else op("mul", x, factor)


def _heaviside(x: Any, h: Any) -> Any:
    positive = op("select", op("lt", x, 0), zero_of(x), op("sign", x))
    return op("select", op("eq", x, 0), h, positive)


def _modf(x: Any) -> tuple[Any, Any]:
    whole = op("trunc", x)
    rest = op("select", op("isinf", x), zero_of(x), op("sub", x, whole))
    return op("copysign", rest, x), whole


def _vecdot(a: Any, b: Any) -> Any:
    for k, x in enumerate((a, b)):
        if not ndim(x):
            raise ShapeError(f"vecdot: operand {k} is a number, and has to have an axis at least", loc=user_loc())
    if dtype_like(a).kind == "c":
        a = op("conj", a)  # np.conj makes int8 of bools
    product = op("mul", as_array(a), as_array(b))
    return FUNCTIONS[np.sum](product, axis=-1, dtype=product.dtype)


def _fmax(name: str, a: Any, b: Any) -> Any:
    """The maximum or minimum of two operands; the other operand where one is NaN."""
    picked = op(name, a, b)
    return op("select", op("ne", a, a), b, op("select", op("ne", b, b), a, picked))
