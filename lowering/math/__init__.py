"""Inline expansions of `math` dialect functions, which LLVM's loop vectoriser makes SIMD code.

`expand` is the entry; a function without an expansion for its type is left to libm. Results at
special values (signed zeros, infinities, NaN, overflow, gradual underflow) are those of C99 and
NumPy. Floating-point exception flags are not modelled. Subnormal results need a thread that does
not flush them to zero; no thread does when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from . import erf, exp, log, pow, remainder, trig
from .expander import K

EXPANSIONS: dict[str, Callable[..., ir.Value]] = {
    "exp": exp.exp,
    "exp2": exp.exp2,
    "expm1": exp.expm1,
    "sinh": exp.sinh,
    "cosh": exp.cosh,
    "tanh": exp.tanh,
    "log": log.log,
    "log2": log.log2,
    "log10": log.log10,
    "log1p": log.log1p,
    "asinh": log.asinh,
    "acosh": log.acosh,
    "atanh": log.atanh,
    "erf": erf.erf,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": trig.asin,
    "acos": trig.acos,
    "atan": trig.atan,
    "atan2": trig.atan2,
    "powf": pow.powf,
}

# For f32 and f64: the largest error over all arguments, in units in the last place of the correctly
# rounded result, on a target with fused multiply-add (half a unit more without). None: there is no
# expansion, and libm is called.
ULP_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "exp": (1.0, 1.25),
    "exp2": (1.0, 1.25),
    "expm1": (2.0, 2.0),
    "sinh": (2.0, 2.0),
    "cosh": (2.0, 2.0),
    "tanh": (5.5, 3.0),
    "log": (1.0, 1.0),
    "log2": (1.0, 1.25),
    "log10": (1.0, 1.25),
    "log1p": (2.0, 1.5),
    "asinh": (2.5, 2.5),
    "acosh": (3.0, 3.0),
    "atanh": (2.5, 2.5),
    "erf": (6.0, 2.0),
    "sin": (2.5, 1.25),
    "cos": (2.5, 1.25),
    "tan": (3.25, 2.5),
    "asin": (3.0, 3.0),
    "acos": (1.5, 1.5),
    "atan": (2.5, 2.5),
    "atan2": (2.5, 2.5),
    "powf": (1.5, 2.0),
}


# Functions that are expanded in f64 only where `fused` holds.
FUSED_F64 = ("sin", "cos", "tan")


def expand(
    name: str, operands: Sequence[ir.Value], *, slow_subnormals: bool = False, fused: bool = False
) -> ir.Value | None:
    """Emit `math.<name>`, or `arith.remf`, inline at the current insertion point.

    ``slow_subnormals``: the target computes with subnormal numbers in microcode.
    ``fused``: the target has fused multiply-add, and `emit.rare` makes two versions of the loop.

    Returns None where there is no expansion for the name and type: the caller keeps the operation
    itself, which becomes a call of libm.
    """
    function = EXPANSIONS.get(name)
    type = operands[0].type
    if name == "fma" and not fused:  # a call of libm is not worth the rounding that it spares
        k = K(type)
        return k.exact_add(k.exact_mul(*operands[:2]), operands[2])
    if name == "remf" and fused and isinstance(type, (ir.F32Type, ir.F64Type)):
        return remainder.remainder(K(type, slow_subnormals, fused), *operands)
    if function is None or not isinstance(type, (ir.F32Type, ir.F64Type)):
        return None
    if ULP_BOUNDS[name][0 if isinstance(type, ir.F32Type) else 1] is None:
        return None
    if name in FUSED_F64 and isinstance(type, ir.F64Type) and not fused:
        return None
    return function(K(type, slow_subnormals, fused), *operands)
