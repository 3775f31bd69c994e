"""Gradients, of traces and of runs, against torch's on the samples of its operator database.

Each of its names maps to one of NumPy's.

Skipped where torch or what its database imports is not installed. `make pytest` runs the first
samples of each op, `make peers-gradients` 40.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("expecttest", reason="torch's operator database imports expecttest")
database = pytest.importorskip("torch.testing._internal.common_methods_invocations")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of its own samples
SAMPLES = 40 if os.environ.get("EVERY_CASE") else 4  # of each op at most


def _reduced(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction with torch's names for its parameters."""

    def call(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        if dtype is not None:
            raise NotImplementedError
        return fn(x, axis=_axis(dim), keepdims=keepdim)

    return call


def _axis(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def _deviation(fn: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: Any = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = int(unbiased) if correction is None else correction
        if (isinstance(dim, tuple) and not dim) or x.size <= ddof:
            raise NotImplementedError
        return fn(x, axis=_axis(dim), ddof=ddof, keepdims=keepdim)

    return call


def _along(fn: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, dim: int, dtype: Any = None) -> Any:
        if dtype is not None or not x.ndim:
            raise NotImplementedError
        return fn(x, axis=dim)

    return call


def _clamp(x: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    return np.clip(x, bounds.get("min", low), bounds.get("max", high))


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    if not x.ndim:
        raise NotImplementedError
    top = np.max(x, axis=_axis(dim), keepdims=True)
    out = np.log(np.sum(np.exp(x - top), axis=_axis(dim), keepdims=True)) + top
    return out if keepdim else np.squeeze(out, _axis(dim))


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if dtype is not None or not x.ndim:
        raise NotImplementedError
    e = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return x + alpha * y


def _transpose(x: Any, a: int, b: int) -> Any:
    if not x.ndim:
        raise NotImplementedError
    return np.swapaxes(x, a, b)


def _norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None or not x.ndim:
        raise NotImplementedError
    return np.linalg.vector_norm(x, ord=ord, axis=_axis(dim), keepdims=keepdim)


def _norm_of_matrix(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None or ord in (2, -2, "nuc"):
        raise NotImplementedError
    return np.linalg.norm(x, ord=ord, axis=_axis(dim), keepdims=keepdim)


def _gather(x: Any, dim: int, index: Any) -> Any:
    if x.ndim != index.ndim or not x.ndim:
        raise NotImplementedError
    slices = tuple(slice(None) if k == dim % x.ndim else slice(n) for k, n in enumerate(index.shape))
    return np.take_along_axis(x[slices], index, dim)


def _scatter_to(pick: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        out = x.copy()
        out[pick(x, *args, **kwargs)] = value
        return out

    return call


def _select(x: Any, dim: int, index: int) -> Any:
    return (*[slice(None)] * (dim % x.ndim), index)


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return (*[slice(None)] * (dim % x.ndim), slice(start, end, step))


def _unless_scalar(fn: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not x.ndim:
            raise NotImplementedError
        return fn(x, *args, **kwargs)

    return call


def _expand(x: Any, *shape: Any) -> Any:
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    extra = len(shape) - x.ndim
    sizes = [x.shape[k - extra] if n == -1 else n for k, n in enumerate(shape)]
    return np.broadcast_to(x, tuple(sizes))


def _same(*names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(np, name) for name in names}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_same(
        "abs",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctan2",
        "arctanh",
        "cos",
        "cosh",
        "deg2rad",
        "exp",
        "exp2",
        "expm1",
        "fmax",
        "fmin",
        "fmod",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "maximum",
        "minimum",
        "negative",
        "positive",
        "rad2deg",
        "reciprocal",
        "remainder",
        "sign",
        "sin",
        "sinc",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
        "floor",
        "ceil",
        "copysign",
        "float_power",
        "heaviside",
        "multiply",
        "matmul",
        "outer",
        "kron",
        "dot",
        "inner",
        "fliplr",
        "flipud",
        "ravel",
        "hstack",
        "vstack",
        "dstack",
        "column_stack",
        "atleast_1d",
        "atleast_2d",
        "vdot",
        "einsum",
    ),
    **{name: getattr(np, "arc" + name[1:]) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2")},
    "where": lambda x, condition, y: np.where(condition, x, y),
    "cross": lambda x, y, dim=-1: np.cross(x, y, axis=dim),
    "add": _add,
    "sub": lambda x, y, alpha=1: x - alpha * y,
    "mul": np.multiply,
    "pow": lambda x, y: x**y,
    "__rpow__": lambda x, y: y**x,
    "__rsub__": lambda x, y: y - x,
    "__rdiv__": lambda x, y: y / x,
    "__radd__": lambda x, y: y + x,
    "__rmul__": lambda x, y: y * x,
    "__rmatmul__": lambda x, y: y @ x,
    "__rmod__": lambda x, y: y % x,
    "true_divide": lambda x, y: x / y,
    "rsub": lambda x, y, alpha=1: y - alpha * x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": pf.op("sigmoid"),
    "erf": pf.erf,
    "erfc": lambda x: 1 - pf.erf(x),
    "neg": np.negative,
    "clamp": _clamp,
    "clamp_min": lambda x, low: np.maximum(x, low),
    "clamp_max": lambda x, high: np.minimum(x, high),
    "max_binary": np.maximum,
    "min_binary": np.minimum,
    "sum": _reduced(np.sum),
    "mean": _reduced(np.mean),
    "prod": _reduced(np.prod),
    "amax": _reduced(np.max),
    "amin": _reduced(np.min),
    "max_reduction_no_dim": np.max,
    "min_reduction_no_dim": np.min,
    "var": _deviation(np.var),
    "std": _deviation(np.std),
    "var_unbiased": _deviation(np.var),
    "std_unbiased": _deviation(np.std),
    "cumsum": _along(np.cumsum),
    "cumprod": _along(np.cumprod),
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "log_softmax": lambda *a, **k: np.log(_softmax(*a, **k)),
    "mm": np.matmul,
    "bmm": np.matmul,
    "mv": np.matmul,
    "__rmatmul": np.matmul,
    "ger": np.outer,
    "addmm": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
    "addmv": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
    "addbmm": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b).sum(0),
    "baddbmm": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
    "addr": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * np.outer(a, b),
    "addcmul": lambda c, a, b, value=1: c + value * a * b,
    "addcdiv": lambda c, a, b, value=1: c + value * a / b,
    "linalg.vector_norm": _norm,
    "linalg.matrix_norm": _norm_of_matrix,
    "linalg.multi_dot": lambda arrays: arrays[0] if len(arrays) == 1 else _chain(arrays),
    "linalg.vecdot": lambda x, y, dim=-1: np.sum(np.conj(x) * y, axis=dim),
    "lerp": lambda x, y, w: x + w * (y - x),
    "ldexp": lambda x, k: x * 2.0**k,
    "tensordot": lambda x, y, dims=2: np.tensordot(x, y, dims if isinstance(dims, int) else [list(d) for d in dims]),
    "t": lambda x: x.T if x.ndim > 1 else x,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "permute": _unless_scalar(lambda x, *p: np.transpose(x, p[0] if len(p) == 1 else p)),
    "movedim": lambda x, a, b: np.moveaxis(x, _axis(a), _axis(b)),
    "flip": lambda x, dims: np.flip(x, tuple(dims)),
    "reshape": lambda x, *s: x.reshape(*s),
    "view": lambda x, *s: x.reshape(*s),
    "unsqueeze": lambda x, d: np.expand_dims(x, d),
    "expand": _expand,
    "broadcast_to": lambda x, s: np.broadcast_to(x, tuple(s)),
    "repeat": lambda x, *r: np.tile(x, r[0] if len(r) == 1 and not isinstance(r[0], int) else r),
    "tile": lambda x, *r: np.tile(x, r[0] if len(r) == 1 and not isinstance(r[0], int) else r),
    "roll": lambda x, s, d=None: np.roll(x, _axis(s), _axis(d)),
    "rot90": lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    "cat": lambda xs, dim=0: np.concatenate(list(xs), dim),
    "stack": lambda xs, dim=0: np.stack(list(xs), dim),
    "take": np.take,
    "gather": _gather,
    "select": lambda x, *a: x[_select(x, *a)],
    "narrow": lambda x, dim, start, n: x[_slice(x, dim, int(start), int(start) + n)],
    "select_scatter": _scatter_to(_select),
    "slice_scatter": _scatter_to(_slice),
    "take_along_dim": lambda x, i, dim=None: np.take_along_axis(
        *((x, i, dim) if dim is not None else (x.ravel(), i.ravel(), 0))
    ),
    "index_select": _unless_scalar(lambda x, d, i: np.take(x, i, axis=d)),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "diag": np.diag,
    "tril": np.tril,
    "triu": np.triu,
    "trace": np.trace,
    "diff": lambda x, n=1, dim=-1, prepend=None, append=None: np.diff(
        x, n, dim, *(() if prepend is None and append is None else _none())
    ),
    "nn.functional.relu": lambda x: np.maximum(x, 0),
    "nn.functional.linear": lambda x, w, b=None: x @ w.T + (0 if b is None else b),
    "nn.functional.softplus": lambda x, beta=1, threshold=20: (
        np.logaddexp(0, x * beta) / beta if threshold == 20 else _none()
    ),
    "nn.functional.silu": lambda x: x / (1 + np.exp(-x)),
    "nn.functional.mse_loss": lambda x, y, reduction="mean", weight=None: _loss((x - y) ** 2, reduction),
    "nn.functional.l1_loss": lambda x, y, reduction="mean": _loss(np.abs(x - y), reduction),
    "nn.functional.layer_norm": lambda x, shape, weight=1, bias=0, eps=1e-5: (
        (x - (m := x.mean(tuple(range(-len(shape), 0)), keepdims=True)))
        / np.sqrt(((x - m) ** 2).mean(tuple(range(-len(shape), 0)), keepdims=True) + eps)
        * (1 if weight is None else weight)
        + (0 if bias is None else bias)
    ),
}


def _none() -> Any:
    raise NotImplementedError


def _chain(arrays: Any) -> Any:
    found = arrays[0]
    for a in arrays[1:]:
        found = found @ a
    return found


def _loss(terms: Any, reduction: str) -> Any:
    return terms if reduction == "none" else terms.sum() if reduction == "sum" else terms.mean()


OPS = [
    op
    for op in database.op_db
    if op.name in FUNCTIONS
    and not op.variant_test_name.startswith("decomposed")
    and torch.float64 in op.supported_backward_dtypes("cpu")
]


def mapped(value: Any, fn: Callable[[Any], Any]) -> Any:
    """``value`` with a function applied to the tensors in it."""
    if isinstance(value, torch.Tensor):
        return fn(value)
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(v, fn) for v in value)
    return {k: mapped(v, fn) for k, v in value.items()} if isinstance(value, dict) else value


def _taped(fn: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """`pf.vjp` by the tape; what has no gradient there raises TraceError as well."""
    leaves = [pf.array(a, requires_grad=True) for a in arrays]
    try:
        value = fn(*leaves)
    except pf.GradientError as error:
        raise TraceError(error.what) from error

    def pull(g: Any) -> list[Any]:
        if not value.requires_grad:
            return [np.zeros_like(a) for a in arrays]
        found = pf.gradients([value], leaves, [g], allow_unused=True)
        return [np.zeros_like(a) if f is None else f for f, a in zip(found, arrays, strict=True)]

    return value, pull


@pytest.mark.parametrize("vjp", [pf.vjp, _taped], ids=["trace", "tape"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.name} {op.variant_test_name}".strip())
def test_gradients_are_those_of_torch(op, dtype, vjp):
    if dtype not in op.supported_backward_dtypes("cpu"):
        pytest.skip("torch has no gradient for complex numbers here")
    torch.manual_seed(0)
    compared, refused = 0, set()
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
        if number == SAMPLES:
            break
        given = (sample.input, *sample.args)
        leaves: list[Any] = []
        mapped((given, sample.kwargs), leaves.append)
        wanted = [t for t in leaves if t.requires_grad]
        out = op(*given, **sample.kwargs)
        if isinstance(out, (tuple, list)) or out.dtype != dtype:
            out = out[0] if isinstance(out, (tuple, list)) else out
            if not out.is_floating_point() and not out.is_complex():
                continue
        weights = torch.randn_like(out) if out.numel() else torch.zeros_like(out)
        theirs = torch.autograd.grad(out, wanted, weights, allow_unused=True)
        others = {id(t): _array(t) for t in leaves if not t.requires_grad}

        def ours(*arrays, sample=sample, given=given, others=others):
            rest = iter(arrays)
            args, kwargs = mapped(
                (given, sample.kwargs), lambda one: next(rest) if one.requires_grad else others[id(one)]
            )
            return FUNCTIONS[op.name](*args, **kwargs)

        arrays = [_array(t) for t in wanted]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:  # what NumPy refuses, or computes otherwise, is another function
                same = np.allclose(ours(*arrays), _array(out), rtol=1e-9, atol=1e-9)
            except (NotImplementedError, ValueError, TypeError) as error:
                refused.add(str(error).split("\n")[0])
                continue
        if not same:
            refused.add("another value")
            continue
        with np.errstate(all="ignore"), pf.knobs.override(cache=False):
            try:
                value, pull = vjp(ours, *arrays)
            except TraceError as error:
                refused.add(str(error).split("\n")[0])
                continue
            found = pull(_array(weights))
        value = value.detach() if isinstance(value, pf.Array) else value
        np.testing.assert_allclose(value, _array(out), rtol=1e-9, atol=1e-9)
        compared += 1
        for g, t, x in zip(found, theirs, arrays, strict=True):
            t = np.zeros_like(x) if t is None else _array(t)
            assert g.shape == x.shape
            np.testing.assert_allclose(g, t, rtol=1e-7, atol=1e-9, err_msg=f"sample {number}")
    if not compared:
        pytest.skip(f"no sample is for NumPy: {refused}")


def _array(t: Any) -> np.ndarray:
    return t.detach().resolve_conj().resolve_neg().numpy().copy()
