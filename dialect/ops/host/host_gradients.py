"""Gradients of functions that run on the host, by the name that their rule gives.

Each takes the builder, the call with operands by their numbers, operands, results, and gradients
of the results; it returns the gradient of each operand, None for 0. It is written in NumPy's
functions, which record or compute, whatever the arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TraceError
from ...ir.op import Values
from .call_text import CallTemplate, OperandPlace, arguments_text
from .compositions import COMPOSITIONS
from .fourier import opposite, resized, steps
from .rule import BoundCall, Rule, bound
from .special_gradients import PARTIALS, of_ufunc

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder

Gradient = Callable[["GradientBuilder", BoundCall, Values, Values, Values], Sequence[Any]]


def _refused(what: str) -> TraceError:
    return TraceError(f"{what} has no gradient yet")


def _adjoint(x: Any) -> Any:
    """Conjugate transposes of matrices."""
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if np.dtype(x.dtype).kind == "c" else turned


def _only(call: BoundCall, name: str) -> int:
    """The operand that an argument is; raises TraceError for anything but one array."""
    operand = call[name]
    if type(operand) is not int:
        raise _refused(f"{call.rule.shown} of a sequence")
    return operand


def _for(xs: Values, pairs: dict[int, Any]) -> list[Any]:
    return [pairs.get(k) for k in range(len(xs))]


def _inv(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    y = _adjoint(ys[0])
    return (-np.matmul(np.matmul(y, gs[0]), y),)


def _solve(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    k, m = _only(call, "a"), _only(call, "b")
    a, right, (y,), (g,) = xs[k], xs[m], ys, gs
    of_b = np.linalg.solve(_adjoint(a), g)
    if np.ndim(right) == 1:
        of_a = -np.matmul(np.expand_dims(of_b, -1), _adjoint(np.expand_dims(y, -1)))
    else:
        of_a = -np.matmul(of_b, _adjoint(y))
    return _for(xs, {k: b.like(of_a, a), m: b.like(of_b, right)})


def _det(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    scale = gs[0] * b.conjugate(ys[0])
    return (np.expand_dims(scale, (-1, -2)) * _adjoint(np.linalg.inv(xs[0])),)


def _slogdet(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    sign, size = gs
    if sign is not None and np.dtype(xs[0].dtype).kind == "c":
        raise _refused("the phase of np.linalg.slogdet")
    if size is None:
        return (None,)
    return (np.expand_dims(size, (-1, -2)) * _adjoint(np.linalg.inv(xs[0])),)


def _cholesky(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    lower, g = map(_adjoint, (ys[0], gs[0])) if call["upper"] else (ys[0], gs[0])
    turned = _adjoint(lower)
    inner = np.tril(np.matmul(turned, g))
    inner = inner - 0.5 * np.tril(np.triu(inner))
    left = np.linalg.solve(turned, inner)
    gradient = _adjoint(np.linalg.solve(turned, _adjoint(left)))
    return (b.converted(0.5 * (gradient + _adjoint(gradient)), xs[0]),)


def _eigh(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    (w, v), (of_w, of_v) = ys, gs
    inner: Any = None
    if of_v is not None:
        gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
        turned = np.matmul(_adjoint(v), of_v)
        inner = np.where(gaps == 0, 0.0, turned / np.where(gaps == 0, 1, gaps))
    left = v if of_w is None else v * np.expand_dims(of_w, -2)
    gradient = np.matmul(left, _adjoint(v)) if of_w is not None else None
    if inner is not None:
        turned = np.matmul(np.matmul(v, inner), _adjoint(v))
        gradient = turned if gradient is None else gradient + turned
    return (None if gradient is None else b.converted(0.5 * (gradient + _adjoint(gradient)), xs[0]),)


def _eigvalsh(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    _, v = np.linalg.eigh(xs[0], call["UPLO"])
    gradient = np.matmul(v * np.expand_dims(gs[0], -2), _adjoint(v))
    return (b.converted(gradient, xs[0]),)


def _eig(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    (_, v), (of_w, of_v) = ys, gs
    if of_v is not None:
        raise _refused("the eigenvectors of a matrix that need not be symmetric")
    turned = _adjoint(v)
    return (b.converted(np.linalg.solve(turned, np.expand_dims(of_w, -1) * turned), xs[0]),)


def _expm(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    a, g = _adjoint(xs[0]), gs[0]
    n = int(np.shape(a)[-1])
    # The exponential of [[a, g], [0, a]] has the derivative at a in the direction of g for its upper right quarter.
    upper, lower = np.concatenate([a, g], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)
    whole = _host_of(b, "profuse.expm", np.concatenate([upper, lower], axis=-2))
    return (b.converted(whole[..., :n, n:], xs[0]),)


def _fft(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    axis = call["axis"]
    back = np.fft.ifft if call.rule.name.endswith(".fft") else np.fft.fft
    gradient = back(gs[0], axis=axis, norm=opposite(call["norm"]))
    return (b.converted(resized(gradient, axis, np.shape(xs[0])[axis]), xs[0]),)


def _fftn(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    axes = [axis for _, axis in steps(xs[0], call["s"], call["axes"])]
    back = np.fft.fftn if ".i" in call.rule.name else np.fft.ifftn
    gradient = back(gs[0], axes=axes, norm=opposite(call["norm"]))
    for axis in axes:
        gradient = resized(gradient, axis, np.shape(xs[0])[axis])
    return (b.converted(gradient, xs[0]),)


def _rfft(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    axis = call["axis"]
    size = np.shape(xs[0])[axis]
    # The other half of the points has no gradient: `ifft` fills it up with zeros.
    args, kwargs = call.arguments.filled(xs.__getitem__)  # the number of points may be an operand
    points = bound(call.rule.function, args, kwargs)["n"]
    gradient = np.fft.ifft(gs[0], size if points is None else points, axis, opposite(call["norm"]))
    return (b.converted(resized(gradient, axis, size), xs[0]),)


def _irfft(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    axis = call["axis"]
    size, points = np.shape(xs[0])[axis], np.shape(ys[0])[axis]
    gradient = np.fft.rfft(gs[0], axis=axis, norm=opposite(call["norm"]))
    # All points but the first, and the last where that is a middle, stand for two.
    count = points // 2 + 1
    point = np.arange(count)
    twice = np.where((point == 0) | (2 * point == points), 1.0, 2.0)
    rank, place = np.ndim(xs[0]), axis % np.ndim(xs[0])
    weights = np.expand_dims(twice, tuple(k for k in range(rank) if k != place))
    return (b.converted(resized(gradient * weights, axis, size), xs[0]),)


def _fftshift(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    back = np.fft.fftshift if ".i" in call.rule.name else np.fft.ifftshift
    return (back(gs[0], call["axes"]),)


def _sorted(order: Callable[..., Any]) -> Gradient:
    def gradient(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
        x, axis = xs[0], call["axis"]
        flat = x if axis is not None else np.reshape(x, (-1,))
        place = -1 if axis is None else axis
        back = np.argsort(order(flat, call, place), place)
        of_flat = np.take_along_axis(gs[0], back, place)
        return _for(xs, {0: of_flat if axis is not None else np.reshape(of_flat, np.shape(x))})

    return gradient


def _item(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    key = call.arguments.positional[1]
    moved = CallTemplate((OperandPlace(0), key, OperandPlace(len(xs))), {})
    return (_host(b, "profuse.add_at", moved, *xs, gs[0]),)


def _add_at(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    _, key, values = call.arguments.positional
    arguments = CallTemplate((OperandPlace(0), key), {})
    gradient = _host(b, "numpy.ndarray.__getitem__", arguments, gs[0], *xs[1 : values.index])
    return _for(xs, {values.index: b.like(gradient, xs[values.index])})


def _host(b: GradientBuilder, function: str, arguments: CallTemplate, *operands: Any) -> Any:
    return b.op("host_call", *operands, function=function, arguments=arguments_text(arguments))


def _bincount(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    weights, places = _only(call, "weights"), call["x"]
    gradient = np.take(gs[0], xs[places] if type(places) is int else places)
    return _for(xs, {weights: b.converted(gradient, xs[weights])})


def _pinv(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    a, (y,), (g,) = xs[0], ys, gs
    turned, of = _adjoint(y), _adjoint(g)
    gradient = -np.matmul(np.matmul(turned, g), turned)
    m, n = int(np.shape(a)[-2]), int(np.shape(a)[-1])
    # What is outside of the range, and of the rows, counts where the matrix is not square.
    left = np.matmul(np.matmul(np.eye(m) - np.matmul(a, y), of), np.matmul(y, turned))
    right = np.matmul(np.matmul(turned, y), np.matmul(of, np.eye(n) - np.matmul(y, a)))
    return _for(xs, {0: b.converted(gradient + left + right, a)})


def _real_matrix(call: BoundCall, a: Any) -> None:
    if np.dtype(a.dtype).kind == "c":
        raise _refused(f"{call.rule.shown} of complex matrices")


def _qr(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    a, mode = xs[0], call["mode"]
    _real_matrix(call, a)
    m, n = int(np.shape(a)[-2]), int(np.shape(a)[-1])
    if mode not in ("reduced", "r") or m < n:
        raise _refused(f"np.linalg.qr(…, mode={mode!r}) of a matrix of {m} rows, {n} columns")
    if mode == "r":
        (q, r), of_q, of_r = np.linalg.qr(a), None, gs[0]
    else:
        (q, r), (of_q, of_r) = ys, gs
    inner = 0.0 if of_r is None else np.matmul(r, _adjoint(of_r))
    if of_q is not None:
        inner = inner - np.matmul(_adjoint(of_q), q)
    lower = np.tril(inner)
    gradient = np.matmul(q, lower + _adjoint(np.tril(inner, -1)))
    if of_q is not None:
        gradient = gradient + of_q
    return (b.converted(_adjoint(np.linalg.solve(r, _adjoint(gradient))), a),)


def _svd(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    a = xs[0]
    if not call["compute_uv"]:
        u, _, v = np.linalg.svd(a, full_matrices=False)
        return (b.converted(np.matmul(u * np.expand_dims(gs[0], -2), v), a),)
    (u, s, v), (of_u, of_s, of_v) = ys, gs
    m, n = int(np.shape(a)[-2]), int(np.shape(a)[-1])
    if of_u is None and of_v is None:
        k = min(m, n)
        return (np.matmul(u[..., :k] * np.expand_dims(of_s, -2), v[..., :k, :]),)
    _real_matrix(call, a)
    if call["full_matrices"] and m != n:
        raise _refused("np.linalg.svd(…, full_matrices=True) of a matrix that is not square")
    # Differences of squares of singular values; equal ones have no gradient of their own.
    gaps = np.expand_dims(s * s, -2) - np.expand_dims(s * s, -1)
    shares = np.where(gaps == 0, 0.0, 1 / np.where(gaps == 0, 1, gaps))
    row, column = np.expand_dims(s, -2), np.expand_dims(s, -1)
    inner: Any = 0.0
    outside: Any = 0.0
    if of_u is not None:
        turned = np.matmul(_adjoint(u), of_u)
        inner = shares * (turned - _adjoint(turned)) * row
        if m > n:
            outside = np.matmul((of_u - np.matmul(u, turned)) / row, v)
    if of_v is not None:
        turned = np.matmul(v, _adjoint(of_v))
        inner = inner + column * (shares * (turned - _adjoint(turned)))
        if n > m:
            rest = (of_v - np.matmul(_adjoint(turned), v)) / column
            outside = outside + np.matmul(u, rest)
    if of_s is not None:
        inner = inner + np.expand_dims(of_s, -1) * np.eye(min(m, n))
    return (b.converted(np.matmul(np.matmul(u, inner), v) + outside, a),)


def _host_of(b: GradientBuilder, function: str, *operands: Any) -> Any:
    return _host(b, function, CallTemplate(tuple(map(OperandPlace, range(len(operands)))), {}), *operands)


def _grouped_product(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    rows, matrices, ends = (_only(call, name) for name in ("rows", "matrices", "ends"))
    turned = np.swapaxes(xs[matrices], -1, -2)
    of_rows = _host_of(b, "profuse.grouped_product", gs[0], turned, xs[ends])
    return _for(xs, {rows: of_rows, matrices: _host_of(b, "profuse.grouped_outer", xs[rows], gs[0], xs[ends])})


def _grouped_outer(b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values) -> Sequence[Any]:
    rows, others, ends = (_only(call, name) for name in ("rows", "others", "ends"))
    of_rows = _host_of(b, "profuse.grouped_product", xs[others], np.swapaxes(gs[0], -1, -2), xs[ends])
    return _for(xs, {rows: of_rows, others: _host_of(b, "profuse.grouped_product", xs[rows], gs[0], xs[ends])})


def composed(
    b: GradientBuilder, call: BoundCall, xs: Values, ys: Values, gs: Values, composition: Callable[..., Any]
) -> Sequence[Any]:
    """The gradients of a function by those of the functions that it is composed of."""
    inputs = [k for k in range(len(xs)) if b.wants(k)]
    outputs = [k for k, g in enumerate(gs) if g is not None and np.dtype(ys[k].dtype).kind in "fcV"]

    def again(*values: Any) -> tuple[Any, ...]:
        operands = list(xs)
        for k, value in zip(inputs, values, strict=True):
            operands[k] = value
        args, kwargs = call.arguments.filled(operands.__getitem__)
        leaves = _leaves(composition(*args, **kwargs))
        return tuple(b.converted(leaves[k], ys[k]) for k in outputs)

    try:
        bound(composition, *call.arguments.filled(lambda _: None))
    except TypeError as error:
        raise _refused(f"{call.rule.shown}(…): {error}; it") from None
    gradients = b.pulled(again, [xs[k] for k in inputs], [gs[k] for k in outputs])
    return _for(xs, dict(zip(inputs, gradients, strict=True)))


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]


def gradient_of(rule: Rule) -> Gradient | None:
    """The gradient of a function, by a rule, derivatives, or a composition; None if it has none."""
    stated, partials = GRADIENTS.get(rule.gradient), PARTIALS.get(rule.name)
    if partials is not None:
        return lambda b, call, xs, ys, gs: of_ufunc(b, call, xs, ys, gs, partials, _refused)
    composition = COMPOSITIONS.get(rule.name)
    if stated is not None or composition is None:
        return stated
    return lambda b, call, xs, ys, gs: composed(b, call, xs, ys, gs, composition)


GRADIENTS: dict[str, Gradient] = {
    "inv": _inv,
    "solve": _solve,
    "det": _det,
    "slogdet": _slogdet,
    "cholesky": _cholesky,
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "eig": _eig,
    "expm": _expm,
    "grouped_product": _grouped_product,
    "grouped_outer": _grouped_outer,
    "fft": _fft,
    "fftn": _fftn,
    "rfft": _rfft,
    "bincount": _bincount,
    "pinv": _pinv,
    "qr": _qr,
    "svd": _svd,
    "irfft": _irfft,
    "fftshift": _fftshift,
    "item": _item,
    "add_at": _add_at,
    "sort": _sorted(lambda x, call, axis: np.argsort(x, axis)),
    "partition": _sorted(lambda x, call, axis: np.argpartition(x, call["kth"], axis)),
}
