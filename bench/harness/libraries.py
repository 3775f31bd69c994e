"""The names by which kernels call NumPy: one set of names, in NumPy, Profuse, JAX, torch and numexpr."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy

# Names that are the same everywhere but in torch.
_NAMES = (
    "abs",
    "all",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arange",
    "arctanh",
    "argmax",
    "argmin",
    "astype",
    "bool",
    "clip",
    "concatenate",
    "cos",
    "cosh",
    "cumsum",
    "exp",
    "exp2",
    "expm1",
    "flip",
    "float16",
    "float32",
    "float64",
    "int32",
    "int64",
    "isfinite",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "prod",
    "reshape",
    "sin",
    "sinh",
    "sqrt",
    "stack",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "transpose",
    "uint8",
    "var",
    "where",
)


def _scatter_add(x: Any, index: Any, y: Any) -> Any:
    """``x`` with each row of ``y`` added to the row that ``index`` names."""
    out = x.copy()
    numpy.add.at(out, index, y)
    return out


def numpy_library() -> SimpleNamespace:
    """NumPy, with SciPy's error function."""
    from scipy.special import erf

    shared = {name: getattr(numpy, name) for name in _NAMES}
    return SimpleNamespace(**shared, erf=erf, scatter_add=_scatter_add)


def profuse_library() -> SimpleNamespace:
    """NumPy as Profuse traces it."""
    import profuse as pf

    shared = {name: getattr(numpy, name) for name in _NAMES}
    return SimpleNamespace(**shared, erf=pf.erf, scatter_add=_scatter_add, value_and_grad=pf.value_and_grad)


def tape_library() -> SimpleNamespace:
    """NumPy on the tape of Profuse."""
    import profuse as pf

    def taped(loss: Any, wrt: Any) -> Any:
        places = (wrt,) if isinstance(wrt, int) else wrt

        def call(*args: Any) -> Any:
            given = [pf.array(a, copy=None, requires_grad=True) if k in places else a for k, a in enumerate(args)]
            value = loss(*given)
            found = pf.gradients(value, [given[k] for k in places])
            return numpy.asarray(value), found[0] if isinstance(wrt, int) else found

        return call

    found = profuse_library()
    found.value_and_grad = taped
    return found


def autograd_library() -> SimpleNamespace:
    """HIPS autograd's NumPy."""
    import autograd
    import autograd.numpy

    shared = {n: getattr(autograd.numpy, n) for n in _NAMES if hasattr(autograd.numpy, n)}

    def along(x: Any, index: Any, axis: int) -> Any:
        """It has no gradient of ``take_along_axis``."""
        assert axis == -1 and x.ndim == 2
        return x[numpy.arange(len(x))[:, None], index]

    shared |= {"take_along_axis": along}
    return SimpleNamespace(**shared, value_and_grad=autograd.value_and_grad)


def jax_library() -> SimpleNamespace:
    """`jax.numpy`."""
    import jax
    import jax.numpy as jnp

    shared = {name: getattr(jnp, name) for name in _NAMES}
    return SimpleNamespace(
        **shared,
        erf=jax.scipy.special.erf,
        scatter_add=lambda x, index, y: x.at[index].add(y),
        value_and_grad=jax.value_and_grad,
    )


def torch_library(*, compiled: bool = False) -> SimpleNamespace:
    """torch's functions under NumPy's names; ``compiled``: for torch.compile."""
    import torch

    other = (
        "astype",
        "cumsum",
        "flip",
        "max",
        "maximum",
        "min",
        "minimum",
        "take",
        "take_along_axis",
        "transpose",
        "var",
    )
    same = {name: getattr(torch, name) for name in (*_NAMES, "erf") if name not in other}

    def bounded(two: Any, bound: str) -> Any:
        def call(x: Any, y: Any) -> Any:
            return two(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, **{bound: y})

        return call

    def extreme(whole: Any, along: Any) -> Any:
        def call(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
            return whole(x) if axis is None else along(x, dim=axis, keepdim=keepdims)

        return call

    def taped(loss: Any, wrt: Any) -> Any:
        places = (wrt,) if isinstance(wrt, int) else wrt

        def call(*args: Any) -> Any:
            given = [a.detach().requires_grad_(k in places) if a.is_floating_point() else a for k, a in enumerate(args)]
            with torch.enable_grad():
                value = loss(*given)
            found = torch.autograd.grad(value, [given[k] for k in places])
            return value.detach(), found[0] if isinstance(wrt, int) else found

        return call

    def functional(loss: Any, wrt: Any) -> Any:
        """Forward and backward are one graph for the compiler, and no tape is kept."""

        def call(*args: Any) -> Any:
            found, value = torch.func.grad_and_value(loss, wrt)(*args)
            return value, found

        return call

    return SimpleNamespace(
        **same,
        value_and_grad=functional if compiled else taped,
        maximum=bounded(torch.maximum, "min"),
        minimum=bounded(torch.minimum, "max"),
        max=extreme(torch.max, torch.amax),
        min=extreme(torch.min, torch.amin),
        var=lambda x, axis: torch.var(x, dim=axis, correction=0),
        cumsum=lambda x, axis: torch.cumsum(x, dim=axis),
        flip=lambda x, axis: torch.flip(x, (axis,)),
        take=lambda x, index, axis: torch.index_select(x, axis, index),
        take_along_axis=lambda x, index, axis: torch.take_along_dim(x, index, dim=axis),
        transpose=torch.permute,
        astype=lambda x, dtype: x.to(dtype),
        scatter_add=lambda x, index, y: x.index_add(0, index, y),
    )


class Expression:
    """A numexpr expression that grows as a kernel computes with it.

    Numbers become variables of the arrays' dtype, as numexpr takes literals for float64.
    """

    def __init__(self, text: str, values: dict[str, Any], dtype: Any) -> None:
        self.text, self.values, self.dtype = text, values, dtype

    def _with(self, form: str, *others: Any) -> Expression:
        return joined(form, self, *others)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"numexpr has no counterpart of .{name}")

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError("numexpr has no indexing")


def joined(form: str, *operands: Any) -> Expression:
    """An expression of expressions and numbers; ``form`` has a ``{}`` for each."""
    first = next(x for x in operands if isinstance(x, Expression))
    texts = []
    for x in operands:
        if not isinstance(x, Expression):
            name = f"k{len(first.values)}"
            first.values[name] = first.dtype.type(x)
            x = Expression(name, first.values, first.dtype)
        texts.append(x.text)
    return Expression(form.format(*texts), first.values, first.dtype)


for _method, _sign in {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}.items():
    _form = "({} " + _sign + " {})"
    setattr(Expression, f"__{_method}__", lambda a, b, form=_form: joined(form, a, b))
    setattr(Expression, f"__r{_method}__", lambda a, b, form=_form: joined(form, b, a))
for _method, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    _form = "({} " + _sign + " {})"
    setattr(Expression, f"__{_method}__", lambda a, b, form=_form: joined(form, a, b))
setattr(Expression, "__neg__", lambda a: joined("(-{})", a))  # noqa: B010 - beside the others


def numexpr_library() -> SimpleNamespace:
    """The functions that numexpr has; all else raises."""
    one = {n: f"{n}({{}})" for n in ["abs", "cos", "exp", "log", "log1p", "sin", "sqrt", "tanh"]}
    two = {"maximum": "where(({0} > {1}), {0}, {1})", "minimum": "where(({0} < {1}), {0}, {1})"}
    forms = one | two | {"where": "where({}, {}, {})"}

    def clip(x: Any, low: Any, high: Any) -> Any:
        return joined(two["minimum"], joined(two["maximum"], x, low), high)

    def missing(name: str) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            raise NotImplementedError(f"numexpr has no counterpart of {name}")

        return call

    found = {name: missing(name) for name in (*_NAMES, "erf", "scatter_add")}
    found |= {name: lambda *args, form=form: joined(form, *args) for name, form in forms.items()}
    return SimpleNamespace(**(found | {"clip": clip}))
