"""`arith`, `math` and `vector.fma`: element by element, in the precision of the type.

f16 and bf16 are computed in f32 and rounded, which is exact for ``+ - * /`` and the square root.
`math` functions are NumPy's or SciPy's, in f32 or f64: the device's differ by a few ulp.  Fast-math
flags are ignored: ``contract`` may make the device fuse what is rounded twice here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special
from mlir import ir

from .rounding import fma, narrow
from .types import BF16, dtype_of, is_float, unsigned

Function = Callable[..., np.ndarray]


def _unsigned(function: Function) -> Function:
    """``function`` on the operands as unsigned numbers; integer results as signed ones again."""

    def apply(*operands: np.ndarray) -> np.ndarray:
        result = function(*map(unsigned, operands))
        return result.view(f"i{result.itemsize}") if result.dtype.kind == "u" else result

    return apply


def _in_f32(function: Function) -> Function:
    """``function`` in f32 for the 16-bit floats, which NumPy has no or poor versions for."""

    def apply(*operands: np.ndarray) -> np.ndarray:
        dtype = operands[0].dtype
        if dtype.itemsize > 2:
            return function(*operands).astype(dtype, copy=False)
        return function(*[v.astype(np.float32) for v in operands]).astype(dtype)

    return apply


def _wrapping(function: Function) -> Function:
    """``function`` on integers; i1 is arithmetic modulo 2."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype == bool:
            return (function(a.astype(np.int8), b.astype(np.int8)) & 1).astype(bool)
        return function(a, b)

    return apply


def _truncating(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    remainder = np.fmod(a, b)
    return (a - remainder) // b


def _ceiling(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a // b + (a % b != 0)


def _shift(function: Function) -> Function:
    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return function(a, np.where(shift_is_poison(a, b), 0, b))

    return apply


def shift_is_poison(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """True where a shift is by as many bits as there are, or more."""
    return unsigned(b) >= a.itemsize * 8


def _maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def _round_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + np.where(np.abs(x) < 2.0**22, 0.5, 0.0)), x)


def _count_leading_zeros(x: np.ndarray) -> np.ndarray:
    x, bits = unsigned(x), x.itemsize * 8
    count = np.full(x.shape, bits, np.int64)
    for k in range(bits):
        count = np.where((x >> x.dtype.type(k)) != 0, bits - 1 - k, count)
    return count.astype(f"i{bits // 8}")


FUNCTIONS: dict[str, Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.remf": _in_f32(np.fmod),
    "arith.maximumf": _in_f32(_maximum),
    "arith.minimumf": _in_f32(_minimum),
    "arith.maxnumf": _in_f32(np.fmax),
    "arith.minnumf": _in_f32(np.fmin),
    "arith.addi": _wrapping(np.add),
    "arith.subi": _wrapping(np.subtract),
    "arith.muli": _wrapping(np.multiply),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": lambda a, b: a & b if a.dtype == bool else np.maximum(a, b),  # true is -1
    "arith.minsi": lambda a, b: a | b if a.dtype == bool else np.minimum(a, b),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.divsi": _truncating,
    "arith.remsi": np.fmod,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": _ceiling,
    "arith.divui": _unsigned(np.floor_divide),
    "arith.remui": _unsigned(np.remainder),
    "arith.ceildivui": _unsigned(_ceiling),
    "arith.shli": _shift(np.left_shift),
    "arith.shrsi": _shift(np.right_shift),
    "arith.shrui": _unsigned(_shift(np.right_shift)),
    "math.fma": fma,
    "vector.fma": fma,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": _in_f32(np.ceil),
    "math.floor": _in_f32(np.floor),
    "math.trunc": _in_f32(np.trunc),
    "math.roundeven": _in_f32(np.rint),
    "math.round": _in_f32(_round_away),
    "math.copysign": _in_f32(np.copysign),
    "math.fpowi": _in_f32(np.power),
    "math.powf": _in_f32(np.power),
    "math.ipowi": np.power,
    "math.sqrt": _in_f32(np.sqrt),
    "math.rsqrt": _in_f32(lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)),
    "math.cbrt": _in_f32(np.cbrt),
    "math.exp": _in_f32(np.exp),
    "math.exp2": _in_f32(np.exp2),
    "math.expm1": _in_f32(np.expm1),
    "math.log": _in_f32(np.log),
    "math.log2": _in_f32(np.log2),
    "math.log10": _in_f32(np.log10),
    "math.log1p": _in_f32(np.log1p),
    "math.sin": _in_f32(np.sin),
    "math.cos": _in_f32(np.cos),
    "math.tan": _in_f32(np.tan),
    "math.asin": _in_f32(np.arcsin),
    "math.acos": _in_f32(np.arccos),
    "math.atan": _in_f32(np.arctan),
    "math.atan2": _in_f32(np.arctan2),
    "math.sinh": _in_f32(np.sinh),
    "math.cosh": _in_f32(np.cosh),
    "math.tanh": _in_f32(np.tanh),
    "math.asinh": _in_f32(np.arcsinh),
    "math.acosh": _in_f32(np.arccosh),
    "math.atanh": _in_f32(np.arctanh),
    "math.erf": _in_f32(scipy.special.erf),
    "math.erfc": _in_f32(scipy.special.erfc),
    "math.isnan": np.isnan,
    "math.isinf": np.isinf,
    "math.isfinite": np.isfinite,
    "math.ctlz": _count_leading_zeros,
    "math.ctpop": lambda x: np.bitwise_count(unsigned(x)).astype(x.dtype),
}
"""What each op computes from its operands alone."""

DIVISIONS = frozenset(
    f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
)
SHIFTS = frozenset(f"arith.{name}" for name in ("shli", "shrsi", "shrui"))

_INTEGER_PREDICATES: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    _unsigned(np.less),
    _unsigned(np.less_equal),
    _unsigned(np.greater),
    _unsigned(np.greater_equal),
)


def _unordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isnan(a) | np.isnan(b)


_UNORDERED, _TRUE = 14, 15


def _float_predicate(number: int) -> Function:
    """As LLVM numbers them, predicates are sets: bit 0 equal, 1 greater, 2 less, 3 unordered."""
    if 8 <= number < _TRUE:  # MLIR counts the plain "unordered" last
        number = 8 if number == _UNORDERED else number + 1

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        holds = np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
        for bit, relation in enumerate((np.equal, np.greater, np.less, _unordered)):
            if number >> bit & 1:
                holds |= relation(a, b)
        return holds

    return apply


def overflow_is_poison(op: ir.Operation) -> Function | None:
    """Where an ``arith`` op that promises not to overflow does; None if it promises nothing."""
    flags = str(op.attributes["overflowFlags"]) if "overflowFlags" in op.attributes else ""
    checks = _OVERFLOWS.get(op.name, {})
    made = [check for flag, check in checks.items() if flag in flags]
    if not made:
        return None
    return lambda a, b: np.logical_or.reduce([check(a, b) for check in made])


def _product_overflows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bound = 2 ** (a.itemsize * 8 - (a.dtype.kind == "i"))
    limits = [max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0 for x in (a, b)]
    if limits[0] * limits[1] < bound:
        return np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
    exact = a.astype(object) * b.astype(object)
    return np.asarray((exact < (-bound if a.dtype.kind == "i" else 0)) | (exact >= bound), bool)


_OVERFLOWS: dict[str, dict[str, Function]] = {
    "arith.addi": {
        "nsw": lambda a, b: ((a ^ (a + b)) & (b ^ (a + b))) < 0,
        "nuw": lambda a, b: unsigned(a + b) < unsigned(a),
    },
    "arith.subi": {"nsw": lambda a, b: ((a ^ b) & (a ^ (a - b))) < 0, "nuw": lambda a, b: unsigned(a) < unsigned(b)},
    "arith.muli": {"nsw": _product_overflows, "nuw": lambda a, b: _product_overflows(unsigned(a), unsigned(b))},
}


def comparison(op: ir.Operation) -> Function:
    """The function of an ``arith.cmpi`` or ``arith.cmpf``."""
    number = op.attributes["predicate"].value
    if op.name == "arith.cmpf":
        return _float_predicate(number)
    function = _INTEGER_PREDICATES[number]
    return lambda a, b: function(*(v.astype(np.int8) * -1 if v.dtype == bool else v for v in (a, b)))


def conversion(op: ir.Operation) -> Function | None:
    """The function of an ``arith`` cast; None if ``op`` is none."""
    name = op.name.removeprefix("arith.")
    target = dtype_of(op.results[0].type)
    if name in ("extf", "truncf", "sitofp", "extsi", "index_cast"):
        return lambda x: _to_float(_signed(x), target) if is_float(target) else _narrow(x, target)
    if name in ("uitofp",):
        return lambda x: _to_float(unsigned(x), target)
    if name in ("extui", "index_castui"):
        return lambda x: unsigned(x).astype(target)
    if name == "trunci":
        return lambda x: (x & 1).astype(bool) if target.kind == "b" else x.astype(target)
    if name in ("fptosi", "fptoui"):
        return _to_integer(target, name == "fptoui")
    if name == "bitcast":
        return lambda x: x.view(target)
    return None


def cast_is_poison(op: ir.Operation) -> Function | None:
    """Where a float does not fit the integer type of an ``arith.fptosi`` or ``fptoui``."""
    name = op.name.removeprefix("arith.")
    if name not in ("fptosi", "fptoui"):
        return None
    bits = dtype_of(op.results[0].type).itemsize * 8
    low, high = (0.0, 2.0**bits) if name == "fptoui" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))

    def outside(x: np.ndarray) -> np.ndarray:
        whole = np.trunc(x.astype(np.float64))
        return ~((whole >= low) & (whole < high))

    return outside


def _signed(x: np.ndarray) -> np.ndarray:
    return -x.astype(np.int8) if x.dtype == bool else x


def _narrow(x: np.ndarray, target: np.dtype) -> np.ndarray:
    return _signed(x).astype(target)


def _to_float(x: np.ndarray, target: np.dtype) -> np.ndarray:
    if target == BF16 and x.dtype != np.float32:
        return narrow(x.astype(np.float64), target)
    return x.astype(target)


def _to_integer(target: np.dtype, no_sign: bool) -> Function:
    through = np.dtype(f"u{target.itemsize}") if no_sign else target

    def apply(x: np.ndarray) -> np.ndarray:
        if target.kind == "b":
            return x.astype(np.float64) != 0
        return np.trunc(x.astype(np.float64)).astype(through).view(target)

    return apply
