"""Orthogonal matrices as products of Householder's reflectors, which LAPACK gives of a decomposition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...on_host import on_host
from ..aten_table import aten, refuse
from ..promotion import cast, category

_MOST_REFLECTORS = 64  # each of which is some ops


@aten("geqrf")
def geqrf(self: Any) -> tuple[Any, Any]:
    factors, scales = on_host("numpy.linalg.qr", self, mode="raw")
    return np.swapaxes(factors, -1, -2), scales


@aten("linalg_householder_product", "orgqr")
def householder_product(input: Any, tau: Any) -> Any:
    rows, columns = int(input.shape[-2]), int(input.shape[-1])
    eye = np.broadcast_to(np.eye(rows, columns, dtype=input.dtype), tuple(input.shape))
    return _reflected(input, tau, eye, reversed(range(int(tau.shape[-1]))), is_conjugate=False)


@aten("ormqr")
def ormqr(self: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    count = int(input2.shape[-1])
    x, is_adjoint = (input3, transpose) if left else (_adjoint(input3), not transpose)
    order = range(count) if is_adjoint else reversed(range(count))
    y = _reflected(self, input2, x, order, is_conjugate=is_adjoint)
    return y if left else _adjoint(y)


def _reflected(factors: Any, scales: Any, x: Any, order: Iterable[int], *, is_conjugate: bool) -> Any:
    """What reflectors make of a matrix, one after the other."""
    if int(scales.shape[-1]) > _MOST_REFLECTORS:
        raise refuse("linalg_householder_product", f"of more than {_MOST_REFLECTORS} reflectors")
    rows = np.arange(int(factors.shape[-2]))
    one = cast(1, factors.dtype)
    for k in order:
        column = np.where(rows > k, factors[..., k], cast(rows == k, factors.dtype) * one)[..., None]
        scale = scales[..., k][..., None, None]
        scale = np.conj(scale) if is_conjugate and category(scales.dtype) == 3 else scale
        x = x - scale * (column @ (_adjoint(column) @ x))
    return x


def _adjoint(x: Any) -> Any:
    y = np.swapaxes(x, -1, -2)
    return np.conj(y) if category(x.dtype) == 3 else y
