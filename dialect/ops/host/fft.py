"""Functions of `numpy.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.types import MaybeDim, ScalarType
from .rule import BoundCall, Rule, Shapes
from .shapes import replaced, same

_Length = Callable[[MaybeDim], MaybeDim]


def _all(size: MaybeDim) -> MaybeDim:
    return size


def _half(size: MaybeDim) -> MaybeDim:
    return None if size is None else size // 2 + 1


def _one(made: _Length, default: _Length = _all) -> Callable[[BoundCall], Shapes | None]:
    """A rule for one axis: ``made`` of the points, which ``default`` gives where no ``n`` is."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape = call.shape("a")
        if not shape:
            return None
        axis = call["axis"]
        n = default(shape[axis]) if call["n"] is None else call.number("n")
        return [replaced(shape, axis, made(n))]

    return shapes


def _from_half(size: MaybeDim) -> MaybeDim:
    return None if size is None else 2 * (size - 1)


def _several(made: _Length, default: _Length = _all) -> Callable[[BoundCall], Shapes | None]:
    """A rule for several axes, the last of which is as in `_one`."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape: Any = call.shape("a")
        axes, s = call["axes"], call["s"]
        if not shape or not (s is None or isinstance(s, (list, tuple))):
            return None
        if axes is None:
            axes = range(len(shape))[-len(s) :] if s else range(len(shape))
        for k, axis in enumerate(axes):
            ends = k == len(axes) - 1
            n = None if s is None or k >= len(s) else s[k]
            size: Any = n.value if isinstance(n, ScalarType) else n
            if n is None or size == -1:
                size = default(shape[axis]) if ends else shape[axis]
            shape = replaced(shape, axis, made(size) if ends else size)
        return [shape]

    return shapes


def _fft(name: str, shapes: Callable[[BoundCall], Shapes | None], gradient: str = "") -> Rule:
    neutral = {"s": 2} if name.endswith(("2", "n")) else {"n": 2}
    return Rule(f"numpy.fft.{name}", shapes, neutral=neutral, gradient=gradient)


RULES = (
    _fft("fft", _one(_all), "fft"),
    _fft("ifft", _one(_all), "fft"),
    _fft("rfft", _one(_half), "rfft"),
    _fft("irfft", _one(_all, _from_half), "irfft"),
    _fft("hfft", _one(_all, _from_half)),
    _fft("ihfft", _one(_half)),
    _fft("fft2", _several(_all), "fftn"),
    _fft("ifft2", _several(_all), "fftn"),
    _fft("fftn", _several(_all), "fftn"),
    _fft("ifftn", _several(_all), "fftn"),
    _fft("rfft2", _several(_half)),
    _fft("rfftn", _several(_half)),
    _fft("irfft2", _several(_all, _from_half)),
    _fft("irfftn", _several(_all, _from_half)),
    Rule("numpy.fft.fftshift", same("x"), gradient="fftshift"),
    Rule("numpy.fft.ifftshift", same("x"), gradient="fftshift"),
)
