"""Recurrent layers and their cells: one loop over time for each layer and direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....numpy.capture.user_functions import op
from ...array_values import item_of
from ...time_steps import steps
from ..aten_table import aten, refuse
from ..tensors.product_operators import linear
from ..tensors.unary_operators import sigmoid
from .activation_operators import dropout

States = tuple[Any, ...]
_relu = op("relu")
# The next states of the projected input, the states, and the recurrent weight and bias.
_Cell = Callable[[Any, States, Any, Any], States]


def _lstm(now: Any, states: States, weight: Any, bias: Any) -> States:
    h, c = states
    i, f, g, o = np.split(now + linear(h, weight, bias), 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def _gru(now: Any, states: States, weight: Any, bias: Any) -> States:
    (h,) = states
    (r, z, n), (hr, hz, hn) = (np.split(gates, 3, axis=-1) for gates in (now, linear(h, weight, bias)))
    reset, update = sigmoid(r + hr), sigmoid(z + hz)
    new = np.tanh(n + reset * hn)
    return ((h - new) * update + new,)


def _rnn_tanh(now: Any, states: States, weight: Any, bias: Any) -> States:
    return (np.tanh(now + linear(states[0], weight, bias)),)


def _rnn_relu(now: Any, states: States, weight: Any, bias: Any) -> States:
    return (_relu(now + linear(states[0], weight, bias)),)


# --- cells --------------------------------------------------------------------------------------


@aten("lstm_cell")
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    h, c = _lstm(linear(input, w_ih, b_ih), tuple(hx), w_hh, b_hh)
    return h, c


def _register_cell(name: str, cell: _Cell) -> None:
    @aten(name)
    def of_one_step(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return cell(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


for _name, _function in (("gru_cell", _gru), ("rnn_tanh_cell", _rnn_tanh), ("rnn_relu_cell", _rnn_relu)):
    _register_cell(_name, _function)


# --- layers -------------------------------------------------------------------------------------


def _direction(x: Any, first: States, parameters: Sequence[Any], cell: _Cell, *, backward: bool) -> tuple[Any, States]:
    """The outputs (T, N, H) of a layer in one direction, and its last states.

    ``parameters``: weights of input and state, biases or None, and the projection of the output or None.
    """
    w_ih, w_hh, b_ih, b_hh, projection = parameters
    projected = linear(x, w_ih, b_ih)

    def step(at: Any, states: States) -> tuple[States, States]:
        new = cell(item_of(projected, at), states, w_hh, b_hh)
        if projection is not None:
            new = (linear(new[0], projection), *new[1:])
        return new, (new[0],)

    last, (outputs,) = steps(x.shape[0], first, step, backward=backward)
    return outputs, last


def _stacked(
    cell: _Cell,
    input: Any,
    first: States,
    params: Any,
    has_biases: bool,
    num_layers: int,
    drop: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """The output of the last layer, and the last states of all, stacked: (layers * directions, N, H) each."""
    x = np.swapaxes(input, 0, 1) if batch_first else input
    if x.ndim != 3:
        raise refuse("a recurrent layer", f"of a tensor with {x.ndim} axes")
    if x.shape[0] == 0:
        raise refuse("a recurrent layer", "of a sequence without elements")
    directions = 1 + bidirectional
    count, rest = divmod(len(params), num_layers * directions)
    projects = count == 3 + 2 * has_biases
    if rest or count != 2 + 2 * has_biases + projects:
        raise refuse("a recurrent layer", f"with {len(params)} parameters")
    lasts: list[States] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            own = list(params[number * count : (number + 1) * count])
            projection = own.pop() if projects else None
            biases = own[2:] if has_biases else (None, None)
            states = tuple(state[number] for state in first)
            y, last = _direction(x, states, (*own[:2], *biases, projection), cell, backward=direction == 1)
            outputs.append(y)
            lasts.append(last)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, axis=-1)
        if drop and train and layer < num_layers - 1:
            x = dropout(x, drop, train)
    ends = tuple(np.stack(column) for column in zip(*lasts, strict=True))
    return (np.swapaxes(x, 0, 1) if batch_first else x, *ends)


@aten("lstm.input")
def lstm(input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
    return _stacked(_lstm, input, tuple(hx), params, *options)


def _register_layer(name: str, cell: _Cell) -> None:
    @aten(name)
    def layer(input: Any, hx: Any, params: Any, *options: Any) -> tuple[Any, ...]:
        return _stacked(cell, input, (hx,), params, *options)


for _name, _function in (("gru.input", _gru), ("rnn_tanh.input", _rnn_tanh), ("rnn_relu.input", _rnn_relu)):
    _register_layer(_name, _function)


__all__: list[str] = []
