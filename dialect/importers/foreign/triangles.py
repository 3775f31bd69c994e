"""Matrices as products of two triangles, with rows exchanged, as LAPACK's getrf and PyTorch have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numpy.tracing.traced_control import fori_loop
from .array_values import captured
from .size_values import as_array

_INT32 = np.dtype(np.int32)


def factored(x: Any) -> tuple[Any, Any]:
    """Both triangles of each matrix (..., M, N) in one, and the rows that have been exchanged, counted from 1.

    The row with the largest number comes first; of a complex one both parts are added, as LAPACK does. The rows are
    (..., min(M, N)) of int32: at each step the row of that number has changed places with the one of the step.
    """
    *batch, m, n = map(int, x.shape)
    count = min(m, n)
    rows, columns, steps = np.arange(m), np.arange(n), np.arange(count)
    zero = np.zeros((), x.dtype)

    def eliminated(step: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        a, places = state
        k = as_array(step)
        column = column_at(a, k)
        sizes = np.abs(np.real(column)) + np.abs(np.imag(column)) if x.dtype.kind == "c" else np.abs(column)
        place = np.argmax(np.where(rows >= k, sizes, -1), axis=-1)[..., None]
        a = np.take_along_axis(a, np.broadcast_to(_exchanged(rows, k, place), (*batch, m))[..., None], -2)
        column, row = column_at(a, k), column_at(np.swapaxes(a, -1, -2), k)
        pivot = np.sum(np.where(rows == k, column, zero), -1)[..., None]
        is_zero = pivot == 0
        factors = np.where((rows > k) & ~is_zero, column / np.where(is_zero, np.ones((), a.dtype), pivot), zero)
        a = a - factors[..., :, None] * np.where(columns > k, row, zero)[..., None, :]
        below = (rows > k)[:, None] & (columns == k)[None, :]
        a = np.where(below, np.where(is_zero[..., None], a, factors[..., :, None]), a)
        return a, np.where(steps == k, (place + 1).astype(_INT32), places)

    return fori_loop(0, count, eliminated, (x, captured(np.zeros((*batch, count), _INT32))))


def row_order(exchanges: Any, count: int) -> Any:
    """Which of ``count`` rows is at each place, (..., count), when rows have been exchanged as `factored` says."""
    *batch, steps = map(int, exchanges.shape)
    rows = np.arange(count)

    def exchanged(step: Any, order: Any) -> Any:
        k = as_array(step)
        place = np.sum(np.where(np.arange(steps) == k, exchanges, 0), -1)[..., None] - 1
        return np.take_along_axis(order, np.broadcast_to(_exchanged(rows, k, place), (*batch, count)), -1)

    first = np.ascontiguousarray(np.broadcast_to(rows, (*batch, count)))
    return fori_loop(0, steps, exchanged, captured(first))


def _exchanged(rows: Any, k: Any, place: Any) -> Any:
    """The rows with two that have changed places."""
    return np.where(rows == k, place, np.where(rows == place, k, rows))


def column_at(x: Any, k: Any) -> Any:
    """Column ``k`` of each matrix."""
    return np.sum(np.where(np.arange(int(x.shape[-1])) == k, x, np.zeros((), x.dtype)), -1)
