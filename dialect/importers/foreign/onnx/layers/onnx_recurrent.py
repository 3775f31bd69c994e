"""ONNX's recurrent layers: one loop over time for each direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....errors import ShapeError, TraceError
from ....numpy.neural.activation_functions import elu, leaky_relu
from ...array_values import constant_or_created, item_of
from ...time_steps import steps
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_elementwise import sigmoid

_PLAIN: dict[str, Callable[[Any], Any]] = {
    "Relu": lambda x: np.maximum(x, np.zeros((), x.dtype)[()]),
    "Tanh": np.tanh,
    "Sigmoid": sigmoid,
    "Softsign": lambda x: x / (1.0 + np.abs(x)),
    "Softplus": lambda x: np.logaddexp(x, np.zeros((), x.dtype)[()]),
}
# With parameters, and their defaults.
_SCALED: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "Affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "LeakyRelu": (lambda x, a, b: leaky_relu(x, a), 0.01, 0.0),
    "ThresholdedRelu": (lambda x, a, b: np.where(x > a, x, np.zeros((), x.dtype)[()]), 1.0, 0.0),
    "ScaledTanh": (lambda x, a, b: np.tanh(x * b) * a, 1.0, 1.0),
    "HardSigmoid": (lambda x, a, b: np.maximum(0.0, np.minimum(1.0, x * a + b)), 0.2, 0.5),
    "Elu": (lambda x, a, b: elu(x, a), 1.0, 0.0),
}
_TAKES_BETA = ("Affine", "ScaledTanh", "HardSigmoid")


def _functions(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None, clip: float | None
) -> list[Callable[[Any], Any]]:
    """The activations, which take their parameters from the lists one after the other."""
    waiting, more = list(alphas or ()), list(betas or ())
    functions = []
    for name in names:
        if name in _PLAIN:
            function = _PLAIN[name]
        elif name in _SCALED:
            scaled, alpha, beta = _SCALED[name]
            alpha = waiting.pop(0) if waiting else alpha
            beta = more.pop(0) if more and name in _TAKES_BETA else beta
            function = _with(scaled, alpha, beta)
        else:
            raise TraceError(f"the activation {name!r} is not known")
        functions.append(function if clip is None else _clipped(function, clip))
    return functions


def _with(scaled: Callable, alpha: float, beta: float) -> Callable[[Any], Any]:
    return lambda x: scaled(x, alpha, beta)


def _clipped(function: Callable[[Any], Any], clip: float) -> Callable[[Any], Any]:
    return lambda x: function(np.minimum(np.maximum(x, -clip), clip))


def _layer(
    call: Any,
    operands: Sequence[Any],
    states: Sequence[Any],
    cell: Callable[..., tuple[Any, ...]],
    gates: int,
    defaults: Sequence[str],
    attributes: dict[str, Any],
) -> Any:
    """The layer of a cell.

    Args:
        call: the node.
        operands: input (T, N, I), weights (D, G * H, I) and (D, G * H, H), biases (D, 2 * G * H) or None, lengths (N,)
            or None.
        states: the first states, (D, N, H) each, or None.
        cell: gives the next states of ``(x @ w + b, states, r, recurrent biases, activations, direction)``.
        gates: G.
        defaults: names of the activations.
        attributes: of the node.
    """
    x, w, r, b, lengths = operands
    if x.ndim != 3:
        raise ShapeError(f"a recurrent layer takes an array with 3 axes, not {x.ndim}")
    layout, direction = attributes.get("layout", 0), attributes.get("direction", "forward")
    if layout:
        x = np.swapaxes(x, 0, 1)
        states = [None if s is None else np.swapaxes(s, 0, 1) for s in states]
    names = attributes.get("activations") or tuple(defaults) * (2 if direction == "bidirectional" else 1)
    functions = _functions(
        names, attributes.get("activation_alpha"), attributes.get("activation_beta"), attributes.get("clip")
    )
    hidden, batch = int(r.shape[2]), x.shape[1]
    outputs, finals = [], []
    for k in range(int(w.shape[0])):
        backward = direction == "reverse" or k == 1
        biases = None if b is None else b[k]
        projected = np.matmul(x, w[k].T)
        if biases is not None:
            projected = projected + biases[: gates * hidden]
        recurrent = None if biases is None else biases[gates * hidden :]
        first = tuple(constant_or_created("zeros", (batch, hidden), x.dtype) if s is None else s[k] for s in states)
        chosen = functions[k * len(defaults) : (k + 1) * len(defaults)]
        ys, last = _direction(projected, first, r[k], recurrent, lengths, cell, chosen, k, backward=backward)
        outputs.append(ys)
        finals.append(last)
    y = np.stack(outputs, 1)
    ends = [np.stack([last[m] for last in finals], 0) for m in range(len(states))]
    if layout:
        y = np.transpose(y, (2, 0, 1, 3))
        ends = [np.swapaxes(end, 0, 1) for end in ends]
    return NodeResults((y, *ends))


def _direction(
    projected: Any,
    first: tuple[Any, ...],
    r: Any,
    recurrent: Any,
    lengths: Any,
    cell: Callable,
    functions: list,
    number: int,
    *,
    backward: bool,
) -> tuple[Any, tuple[Any, ...]]:
    """The output of each step, and the last states, of one direction."""

    def step(at: Any, states: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        new = cell(item_of(projected, at), states, r, recurrent, functions, number)
        y = new[0]
        if lengths is not None:
            # Sequences that have ended keep their states, and give zeros.
            going = np.reshape(at < lengths, (-1, 1))
            new = tuple(np.where(going, a, b) for a, b in zip(new, states, strict=True))
            y = np.where(going, y, np.zeros((), y.dtype)[()])
        return new, (y,)

    last, (ys,) = steps(projected.shape[0], first, step, backward=backward, keeps_sizes=True)
    return ys, last


def _split(x: Any, count: int) -> list[Any]:
    size = x.shape[-1] // count
    return [x[..., k * size : (k + 1) * size] for k in range(count)]


@onnx_op("RNN")
def _rnn(
    call: Any, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, /, **attributes: Any
) -> Any:
    def cell(now: Any, states: tuple, r: Any, rb: Any, functions: list, number: int) -> tuple[Any, ...]:
        total = now + np.matmul(states[0], r.T)
        return (functions[0](total if rb is None else total + rb),)

    _check(attributes)
    return _layer(call, (x, w, r, b, lengths), (initial,), cell, 1, ("Tanh",), attributes)


@onnx_op("GRU")
def _gru(
    call: Any, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, /, **attributes: Any
) -> Any:
    behind = attributes.pop("linear_before_reset", 0)

    def cell(now: Any, states: tuple, r: Any, rb: Any, functions: list, number: int) -> tuple[Any, ...]:
        (h,) = states
        size = h.shape[-1]
        xz, xr, xh = _split(now, 3)
        gates = np.matmul(h, r[: 2 * size].T)
        if rb is not None:
            gates = gates + rb[: 2 * size]
        hz, hr = _split(gates, 2)
        update, reset = functions[0](xz + hz), functions[0](xr + hr)
        bias = None if rb is None else rb[2 * size :]
        if behind:
            inner = np.matmul(h, r[2 * size :].T)
            inner = (inner if bias is None else inner + bias) * reset
        else:
            inner = np.matmul(h * reset, r[2 * size :].T)
            inner = inner if bias is None else inner + bias
        new = functions[1](xh + inner)
        return (update * h + (1.0 - update) * new,)

    _check(attributes)
    return _layer(call, (x, w, r, b, lengths), (initial,), cell, 3, ("Sigmoid", "Tanh"), attributes)


@onnx_op("LSTM")
def _lstm(
    call: Any,
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    peepholes: Any = None,
    /,
    **attributes: Any,
) -> Any:
    coupled = attributes.pop("input_forget", 0)

    def cell(now: Any, states: tuple, r: Any, rb: Any, functions: list, number: int) -> tuple[Any, ...]:
        h, c = states
        total = now + np.matmul(h, r.T)
        i, o, f, g = _split(total if rb is None else total + rb, 4)
        p = None if peepholes is None else _split(peepholes[number], 3)
        i = functions[0](i if p is None else i + p[0] * c)
        f = 1.0 - i if coupled else functions[0](f if p is None else f + p[2] * c)
        new = f * c + i * functions[1](g)
        o = functions[0](o if p is None else o + p[1] * new)
        return o * functions[2](new), new

    _check(attributes)
    return _layer(call, (x, w, r, b, lengths), (initial_h, initial_c), cell, 4, ("Sigmoid", "Tanh", "Tanh"), attributes)


_KNOWN = {"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "layout"}


def _check(attributes: dict[str, Any]) -> None:
    others = attributes.keys() - _KNOWN - {"output_sequence"}
    if others:
        raise TraceError(f"the attributes {', '.join(sorted(others))} are not known")
