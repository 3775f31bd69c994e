"""NumPy's functions, methods and operators on `Array`.

What requires gradients goes the way of a trace: the handlers of `importers.numpy` turn a call into
ops of the table. To them the tape is a recorder that evaluates ops at once, and whose values are
the arrays themselves. All other calls are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError, TraceError
from ...dialect.importers.numpy.capture import tracer as _tables  # noqa: F401 - fills the tables
from ...dialect.importers.numpy.tracing import operators
from ...dialect.importers.numpy.tracing.current import current, evaluate_with
from ...dialect.importers.numpy.tracing.handler_tables import COMPOSED, CREATION, METHODS, UFUNCS, function_handler
from ...dialect.importers.numpy.tracing.traced import Traced, shortcut
from ...dialect.importers.numpy.tracing.unsupported import name_of
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.op import Op, op_named
from ...dialect.trees.leaves import NUMBERS
from .array import Array
from .axis_reductions import reduction
from .conversions import Conversions
from .eager_recorder import Tape, operand
from .elementwise import PLAIN, binary, unary
from .node import user_line, users_place
from .op_node import evaluated, note_shared
from .operations import apply, write
from .plans import elementwise_plans, op_plans

evaluate_with(Tape())
_NO_ATTRS: dict[str, Any] = {}
_OPERANDS = PLAIN | {Array}
_MATMUL, _SELECT, _TRANSPOSE = (op_plans(op_named(name), _NO_ATTRS) for name in ("matmul", "select", "transpose"))
# Functions that write to their first argument.
_WRITING = frozenset({np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal})
_WRITING_METHODS = frozenset({"sort", "partition", "put", "fill", "resize", "itemset", "setfield"})
# Functions of which no result has a gradient, and no argument is written to.
_WITHOUT_GRADIENT = frozenset(
    {
        np.argsort,
        np.argpartition,
        np.nonzero,
        np.argwhere,
        np.flatnonzero,
        np.searchsorted,
        np.digitize,
        np.histogram,
        np.array_equal,
        np.array_equiv,
        np.allclose,
        np.isclose,
        np.lexsort,
        np.array2string,
        np.array_repr,
        np.array_str,
        np.save,
        np.savez,
        np.savetxt,
        np.result_type,
        np.can_cast,
        np.min_scalar_type,
        np.shares_memory,
        np.may_share_memory,
        np.iscomplexobj,
        np.isrealobj,
        np.shape,
        np.ndim,
        np.size,
    }
)


def noted(args: Any) -> bool:
    """True if what is computed of these arguments, nested ones too, goes onto the tape."""
    return gradient_mode() and _requires(args)


def _requires(args: Any) -> bool:
    for x in args:
        if type(x) is Array:
            if x.node is not None:
                return True
        elif isinstance(x, (list, tuple)) and _requires(x):
            return True
    return False


def plainly(call: Callable[..., Any], args: tuple, kwargs: dict[str, Any], writes: bool) -> Any:
    """A call of NumPy's own on the data of arrays; arrays that it returns are `Array` again.

    ``writes``: to its first argument. What is given as ``out`` is written to in any case.
    """
    if current() is not None:
        for x in (*args, *kwargs.values()):
            if type(x) is Array:
                x.check_live()
    out = kwargs.get("out")
    written = [*(out if isinstance(out, tuple) else (out,)), *(args[:1] if writes else ())]
    result = call(*map(_data, args), **{name: _data(x) for name, x in kwargs.items()})
    for x in written:
        if type(x) is Array:
            x.wrote(users_place())
    for x in written[: len(out) if isinstance(out, tuple) else 1]:
        if type(x) is Array and result is x.data:
            return x
    arrays = [x for x in args if type(x) is Array]
    return _arrays(result, arrays)


def _data(x: Any) -> Any:
    if type(x) is Array:
        return x.data
    if type(x) in (list, tuple):
        return type(x)(map(_data, x))
    return x


def _arrays(result: Any, arguments: Sequence[Array]) -> Any:
    if isinstance(result, (np.ndarray, np.generic)):
        array = Array(result)
        for x in arguments:
            note_shared(array, x)
        return array
    if type(result) in (list, tuple):
        return type(result)(_arrays(x, arguments) for x in result)
    return result


def _refused(name: str, error: TraceError | None = None) -> GradientError:
    """The error for a call that requires gradients and has no graph form."""
    why = "" if error is None else f", called like this: {error.what}"
    return GradientError(
        f"{name} has no gradient{why}",
        loc=user_line(),
        hint="give it x.detach(), through which no gradient flows, or compute it in another way",
    )


# --- functions, ufuncs, methods -------------------------------------------------------------------


def _array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method == "__call__" and not kwargs:
        call = _ufunc_calls.get(ufunc)
        if call is not None and (result := call(*inputs)) is not NotImplemented:
            return result
    if not noted(inputs) and not noted(_outputs(kwargs)):
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        return plainly(call, inputs, kwargs, method == "at")
    if method == "__call__":
        inputs = tuple(map(operand, inputs))
    if method == "__call__" and not kwargs:
        op = _ufunc_ops.get(ufunc)
        if op is not None and _OPERANDS.issuperset(map(type, inputs)):
            return apply(op, _NO_ATTRS, inputs)
    try:
        return METHODS["__array_ufunc__"](self, ufunc, method, *inputs, **kwargs)
    except TraceError as error:
        if current() is not None:
            raise
        raise _refused(name_of(ufunc), error) from None


def _outputs(kwargs: dict[str, Any]) -> tuple:
    out = kwargs.get("out")
    return out if isinstance(out, tuple) else (out,)


def _method(name: str) -> Callable[..., Any]:
    handler = METHODS.get(name)

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if not noted((self, *args, *kwargs.values())):
            own = getattr(type(self.data), name)
            return plainly(own, (self, *args), kwargs, name in _WRITING_METHODS)
        if handler is None:
            raise _refused(f"ndarray.{name}")
        try:
            return handler(self, *args, **kwargs)
        except TraceError as error:
            if current() is not None:
                raise
            raise _refused(f"ndarray.{name}", error) from None

    method.__name__ = method.__qualname__ = name
    return method


_REDUCTIONS = {
    func: reduction(name, _method(name))
    for name, func in {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}.items()
}


def _array_function(self: Array, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    method = _REDUCTIONS.get(func)
    if method is not None and len(args) == 1 and type(args[0]) is Array:
        return method(args[0], **kwargs)
    if func is np.where and len(args) == 3 and not kwargs and current() is None:
        is_usual = _OPERANDS.issuperset(map(type, args))
        if is_usual and not (type(args[1]) in NUMBERS and type(args[2]) in NUMBERS):
            return evaluated(_SELECT, args)
    if not noted((*args, *kwargs.values())) or (func in _WITHOUT_GRADIENT and not _is_weighed(func, args, kwargs)):
        return plainly(func, args, kwargs, func in _WRITING)
    handler = function_handler(func)
    if handler is None:
        raise _refused(name_of(func))
    try:
        return handler(*args, **kwargs)
    except TraceError as error:
        if current() is not None:
            raise
        raise _refused(name_of(func), error) from None


def _is_weighed(func: Any, args: tuple, kwargs: dict) -> bool:
    """True if `np.histogram` adds up weights that have gradients."""
    return func is np.histogram and noted((*args[4:5], kwargs.get("weights")))


def _by_masks(key: Any) -> Any:
    """A key with the places where masks hold as arrays of indices."""
    items: list[Any] = []
    for item in key if type(key) is tuple else (key,):
        index = item.data if type(item) is Array else item
        if isinstance(index, list):
            index = np.asarray(index, None if len(index) else np.int64)
        if isinstance(index, np.ndarray) and index.dtype.kind == "b" and index.ndim:
            items += np.nonzero(index)
        else:
            items.append(index)
    return tuple(items) if type(key) is tuple or len(items) > 1 else items[0]


def _get_item(self: Array, key: Any) -> Any:
    if type(key) is int and self.data.ndim and -len(self.data) <= key < len(self.data):
        self.check_live()
        return apply(_PICK, {"axis": 0, "index": key}, (self,))
    key = _by_masks(key)
    if not noted((self,)):
        self.check_live()
        return _arrays(self.data[key], [self])
    return METHODS["__getitem__"](self, key)


def _set_item(self: Array, key: Any, value: Any) -> None:
    self.check_live()
    key = _by_masks(key)
    if not isinstance(self.data, np.ndarray):
        raise TypeError(f"a {type(self.data).__name__} cannot be written to")
    if not noted((self, value)):
        self.data[key] = _data(value)
        self.wrote(users_place())
        return
    write(self, key, CREATION["array"](value) if isinstance(value, (list, tuple)) else value)


# --- operators ------------------------------------------------------------------------------------


def _operator(op: type[Op]) -> tuple[Callable, Callable]:
    def usual(a: Any, b: Any) -> Any:
        self, other = (a, b) if type(a) is Array else (b, a)
        if type(other) in _OPERANDS:
            return apply(op, _NO_ATTRS, (a, b))
        return operators.op(op.name, a, b) if self.takes(other) else NotImplemented

    plans = elementwise_plans(op)
    call = usual if plans is None else binary(plans, usual)
    return call, lambda self, other: call(other, self)


_PICK, _POW = op_named("pick"), op_named("pow")
_ARRAYS = (Array, np.ndarray)


def _matmul(self: Array, other: Any) -> Any:
    if type(other) in _ARRAYS and self.ndim and other.ndim and current() is None:
        return evaluated(_MATMUL, (self, other))
    return Traced.__matmul__(self, other)


def _rmatmul(self: Array, other: Any) -> Any:
    if type(other) in _ARRAYS and self.ndim and other.ndim and current() is None:
        return evaluated(_MATMUL, (other, self))
    return Traced.__rmatmul__(self, other)


def _power(self: Array, other: Any) -> Any:
    if type(other) not in _OPERANDS:
        return Traced.__pow__(self, other)
    self.check_live()
    short = shortcut(self, other)
    return apply(op_named(short), _NO_ATTRS, (self,)) if short else apply(_POW, _NO_ATTRS, (self, other))


def _transposed(self: Array) -> Any:
    self.check_live()
    return evaluated(_TRANSPOSE, (self,))


def _unary(op: type[Op]) -> Callable:
    return lambda self: apply(op, _NO_ATTRS, (self,))


def _install() -> None:
    """Give `Array` its operators and methods."""
    for python, name in operators.OPERATORS.items():
        if python == "pow":
            continue  # of an array and a number, it may be another op
        forward, reflected = _operator(op_named(name))
        setattr(Array, f"__{python}__", forward)
        setattr(Array, f"__r{python}__", reflected)
    for name in operators.COMPARISONS:
        setattr(Array, f"__{name}__", _operator(op_named(name))[0])
    for python, name in operators.UNARY.items():
        setattr(Array, f"__{python}__", _unary(op_named(name)))
    for name in {*METHODS, *dir(np.ndarray)}:
        own = name.startswith("_") or any(name in vars(c) for c in (Array, Conversions, Traced))
        if not own and (name in METHODS or callable(getattr(np.ndarray, name))):
            setattr(Array, name, _method(name))
    for method in _REDUCTIONS.values():
        setattr(Array, method.__name__, method)
    setattr(Array, "T", property(_transposed))  # noqa: B010 - beside the others
    for name, function in _SPECIAL.items():
        setattr(Array, f"__{name}__", function)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "array_ufunc": _array_ufunc,
    "array_function": _array_function,
    "getitem": _get_item,
    "setitem": _set_item,
    "matmul": _matmul,
    "rmatmul": _rmatmul,
    "pow": _power,
}
_ufunc_ops: dict[np.ufunc, type[Op]] = {
    ufunc: op_named(UFUNCS[name])
    for name, ufunc in vars(np).items()
    if isinstance(ufunc, np.ufunc) and ufunc.__name__ == name and name in UFUNCS and name not in COMPOSED
}
_ufunc_calls: dict[np.ufunc, Callable[..., Any]] = {
    ufunc: (unary if ufunc.nin == 1 else binary)(plans, lambda *_: NotImplemented)
    for ufunc, op in _ufunc_ops.items()
    if (plans := elementwise_plans(op)) is not None and plans.numpy is ufunc
}
_install()
