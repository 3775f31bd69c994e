"""Tensors made of numbers: filled ones, ranges, and random ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....numpy.handlers.axes import sizes
from ....numpy.neural.dropout_masks import numbers_drawn
from ....numpy.neural.layer_inputs import detached
from ....numpy.tracing.composites import composite
from ....numpy.tracing.handler_tables import created
from ..aten_table import aten, refuse
from ..demands import demanded
from ..promotion import DEFAULT, FLOAT64, INT64, cast, category, is_float, is_tensor, number_dtype


def filled(shape: Any, value: Any, dtype: np.dtype) -> Any:
    """A tensor of this shape and dtype, filled with a number or a tensor of one element."""
    if is_tensor(value):
        number = cast(value, dtype)
        return (
            np.broadcast_to(np.reshape(number, ()), tuple(shape))
            if number.ndim
            else created("full", tuple(shape), number, dtype)
        )
    return created("full", tuple(shape), cast(value, dtype), dtype)


@aten("full")
def full(size: Any, fill_value: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    own = fill_value.dtype if is_tensor(fill_value) else number_dtype(fill_value)
    return filled(size, fill_value, dtype or own)


@aten("full_like")
def full_like(self: Any, fill_value: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    return filled(self.shape, fill_value, dtype or self.dtype)


@aten("new_full")
def new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    return filled(size, fill_value, dtype or self.dtype)


def _constant(name: str, value: int, *others: str) -> None:
    @aten(name, *others)
    def constant(size: Any, *, dtype: Any = None, memory_format: Any = None, names: Any = None) -> Any:
        return filled(size, value, dtype or DEFAULT)

    @aten(f"{name}_like")
    def like(self: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
        return filled(self.shape, value, dtype or self.dtype)

    @aten(f"new_{name}")
    def new(self: Any, size: Any, *, dtype: Any = None) -> Any:
        return filled(size, value, dtype or self.dtype)


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)  # what is in it is not told; zeros are as good as anything


@aten("empty_strided")
def empty_strided(size: Any, stride: Any, *, dtype: Any = None) -> Any:
    return filled(size, 0, dtype or DEFAULT)


@aten("new_empty_strided")
def new_empty_strided(self: Any, size: Any, stride: Any, *, dtype: Any = None) -> Any:
    return filled(size, 0, dtype or self.dtype)


@aten("empty_permuted")
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None) -> Any:
    return filled(size, 0, dtype or DEFAULT)


@aten("fill")
def fill(self: Any, value: Any) -> Any:
    return filled(self.shape, value, self.dtype)


@aten("zero")
def zero(self: Any) -> Any:
    return filled(self.shape, 0, self.dtype)


@aten("copy")
def copy(self: Any, src: Any, non_blocking: bool = False) -> Any:
    return np.copy(np.broadcast_to(cast(src, self.dtype), tuple(self.shape)))


@aten("scalar_tensor", "tensor")
def scalar_tensor(s: Any, *, dtype: Any = None) -> Any:
    return cast(s, dtype or (DEFAULT if type(s) is not complex else number_dtype(s)))


@aten("arange")
def arange(*bounds: Any, dtype: Any = None, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    numbers = [x for x in (start, *bounds, end) if x is not None]
    if len(numbers) == 3:
        step = numbers.pop()
    first, last = numbers if len(numbers) == 2 else (0, numbers[0])
    if dtype is None:
        dtype = INT64 if all(isinstance(x, int) for x in (first, last, step)) else DEFAULT
    if dtype == INT64:  # bounds are cast first
        first, last, step = (math.trunc(x) for x in (first, last, step))
    if all(isinstance(x, int) for x in (first, last, step)):
        return cast(created("arange", first, last, step, dtype=np.int64), dtype)
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    steps: Any = np.arange(count).astype(FLOAT64)
    return cast(steps * float(step) + float(first), dtype)


@aten("linspace")
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Any:
    out = dtype or DEFAULT
    inner = FLOAT64 if category(out) < 3 else np.dtype(np.complex128)
    first, last = cast(start, inner), cast(end, inner)
    if steps == 1:
        return np.reshape(cast(first, out), (1,))
    positions = np.arange(steps, dtype=np.float64)
    step = (last - first) / (steps - 1)
    line = np.where(positions < steps // 2, first + step * positions, last - step * (steps - 1 - positions))
    return cast(line, out)


@aten("logspace")
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None) -> Any:
    return cast(np.power(float(base), linspace(start, end, steps, dtype=FLOAT64)), dtype or DEFAULT)


@aten("eye")
def eye(n: Any, m: Any = None, *, dtype: Any = None) -> Any:
    return created("eye", n, m, 0, dtype or DEFAULT)


def _index_pairs(lower: bool, row: int, col: int, offset: int, dtype: Any) -> Any:
    indices = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
    return np.stack(indices).astype(dtype or INT64)


@aten("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Any:
    return _index_pairs(True, row, col, offset, dtype)


@aten("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Any:
    return _index_pairs(False, row, col, offset, dtype)


# --- random numbers: of our own generator, not torch's ------------------------------------------------------


def _bits(shape: Any) -> Any:
    """32 random bits for each element."""
    static, dynamic = sizes(tuple(shape))
    return composite("random_bits", *numbers_drawn(), *dynamic, shape=static)


def uniform_numbers(shape: Any, dtype: np.dtype) -> Any:
    """Random numbers from 0 on, below 1."""
    return cast(_bits(shape) >> np.uint32(8), dtype) * cast(2.0**-24, dtype)


def normal_numbers(shape: Any, dtype: np.dtype) -> Any:
    """Normally distributed random numbers (Box and Muller, 1958)."""
    inner = FLOAT64 if dtype == FLOAT64 else np.dtype(np.float32)
    radius = np.sqrt(cast(-2, inner) * np.log(cast(1, inner) - uniform_numbers(shape, inner)))
    return cast(radius * np.cos(cast(2 * math.pi, inner) * uniform_numbers(shape, inner)), dtype)


def _random(name: str, numbers: Callable[[Any, np.dtype], Any]) -> None:
    @aten(name)
    def draw(size: Any, *, dtype: Any = None, generator: Any = None) -> Any:
        return numbers(size, dtype or DEFAULT)

    @aten(f"{name}_like")
    def like(self: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
        return numbers(self.shape, dtype or self.dtype)


_random("rand", uniform_numbers)
_random("randn", normal_numbers)


@aten("bernoulli")
def bernoulli(self: Any, p: Any = None, *, generator: Any = None) -> Any:
    chance = self if p is None else p
    inner = self.dtype if is_float(self.dtype) else DEFAULT
    return cast(uniform_numbers(self.shape, inner) < cast(chance, inner), self.dtype)


@aten("uniform")
def uniform(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    span, low = cast(to - from_, self.dtype), cast(from_, self.dtype)
    return uniform_numbers(self.shape, self.dtype) * span + low


@aten("normal_functional")
def normal_functional(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    return normal_numbers(self.shape, self.dtype) * cast(std, self.dtype) + cast(mean, self.dtype)


@aten("exponential")
def exponential(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    return -np.log(cast(1, self.dtype) - uniform_numbers(self.shape, self.dtype)) / cast(lambd, self.dtype)


@aten("log_normal")
def log_normal(self: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    return np.exp(normal_functional(self, mean, std))


@aten("cauchy")
def cauchy(self: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    angle = cast(math.pi, self.dtype) * (uniform_numbers(self.shape, self.dtype) - cast(0.5, self.dtype))
    return cast(median, self.dtype) + cast(sigma, self.dtype) * np.tan(angle)


@aten("geometric")
def geometric(self: Any, p: float, *, generator: Any = None) -> Any:
    inner = self.dtype if is_float(self.dtype) else DEFAULT
    tries = np.log(cast(1, inner) - uniform_numbers(self.shape, inner)) / cast(math.log1p(-p), inner)
    return cast(np.maximum(np.ceil(tries), cast(1, inner)), self.dtype)


@aten("normal")
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None, generator: Any = None) -> Any:
    if size is not None:
        out, shape = dtype or DEFAULT, size
    else:
        out = mean.dtype if is_tensor(mean) else std.dtype
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in (mean, std) if is_tensor(x)))
    # As of torch's, what the numbers are drawn by has the gradient 0.
    mean, std = (detached(x) if is_tensor(x) else x for x in (mean, std))
    return normal_numbers(shape, out) * cast(std, out) + cast(mean, out)


@aten("normal_")
def normal_in_place(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    self[...] = normal_functional(self, mean, std)
    return self


@aten("randint_like")
def randint_like(self: Any, *bounds: Any, dtype: Any = None, memory_format: Any = None) -> Any:
    return cast(randint(*bounds, tuple(self.shape)), dtype or self.dtype)


@aten("randint")
def randint(*bounds: Any, dtype: Any = None, generator: Any = None, **named: Any) -> Any:
    *edges, size = bounds
    low, high = edges if len(edges) == 2 else (0, edges[0])
    if high - low > 2**24:
        raise refuse("randint", "for more than 2**24 numbers")
    scaled = np.floor(uniform_numbers(size, FLOAT64) * float(high - low))
    return cast(cast(scaled, INT64) + low, dtype or INT64)


@aten("multinomial")
def multinomial(self: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Places of elements, drawn by the weights that these are; a weight of 0 is never drawn."""
    is_vector = self.ndim == 1
    weights = cast(self, FLOAT64)
    weights = weights[None] if is_vector else weights
    is_right = np.all(np.isfinite(weights) & (weights >= 0), axis=1) & (np.sum(weights, axis=1) > 0)
    weights = demanded(weights, is_right, "probabilities must be finite, not negative, and not all of them 0")
    rows, count = int(weights.shape[0]), int(weights.shape[1])
    places: Any
    if replacement:
        ends = np.cumsum(weights, axis=1)
        drawn = uniform_numbers((rows, num_samples), FLOAT64) * ends[:, -1:]
        places = np.sum(ends[:, None, :] <= drawn[..., None], axis=-1, dtype=np.int64)
    else:  # the least of exponentially distributed times, the rate of each of which is a weight, come first
        is_enough = np.sum(weights > 0, axis=1) >= num_samples
        weights = demanded(weights, is_enough, "there are not as many weights that are not 0 as samples")
        times = -np.log(uniform_numbers((rows, count), FLOAT64) + 2.0**-25)
        order = np.argsort(-(weights / times), axis=1, kind="stable")
        places = order[:, :num_samples]
    return places[0] if is_vector else places
