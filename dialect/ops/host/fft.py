"""Functions of `numpy.fft`."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.types import MaybeDim, Shape
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
    """A rule for several axes, the last of which is as in `_one`; unknown where sizes are given."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape: Shape | None = call.shape("a")
        axes = call["axes"]
        if not shape or call["s"] is not None:
            return None
        last = -1 if axes is None else axes[-1] if len(axes) else None
        return [shape if last is None else replaced(shape, last, made(default(shape[last])))]

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
