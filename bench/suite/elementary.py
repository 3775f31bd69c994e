"""One elementary function each, on arguments of the usual size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kernel import KERNELS, Draw, Kernel

# Where the arguments lie: uniform between two numbers.
_RANGES = {
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "arcsinh"), (-5.0, 5.0)),
    **dict.fromkeys(("sin", "cos", "tan", "arctan", "erf"), (-5.0, 5.0)),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), (0.01, 10.0)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (-0.99, 0.99)),
    "arccosh": (1.0, 10.0),
}


def _one(name: str, low: float, high: float) -> Kernel:
    def make(d: Draw, n: int, m: int) -> tuple:
        return (d.positive(n, m, low=low, high=high),)

    def fn(np: Any, x: Any) -> Any:
        return getattr(np, name)(x)

    return _kernel(name, fn, make)


def _kernel(name: str, fn: Callable[..., Any], make: Callable[[Draw, int, int], tuple]) -> Kernel:
    fn.__name__ = f"elementary_{name}"
    return Kernel(fn.__name__, fn, make, ("f32", "f64"), group="elementary")


def _bases(d: Draw, n: int, m: int) -> tuple:
    return d.positive(n, m, low=0.01, high=10), d.positive(n, m, low=-5, high=5)


def _points(d: Draw, n: int, m: int) -> tuple:
    return d.positive(n, m, low=-5, high=5), d.positive(n, m, low=-5, high=5)


for _made in (
    *(_one(name, *limits) for name, limits in _RANGES.items()),
    _kernel("power", lambda np, x, y: x**y, _bases),
    _kernel("arctan2", lambda np, y, x: np.arctan2(y, x), _points),
):
    KERNELS[_made.name] = _made
