"""Python's numbers, strings and comparisons in TorchScript: what neither takes nor gives tensors."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import TraceError
from ...numpy.tracing.current import current, trace_error
from ...numpy.tracing.operators import Recording, op
from ...numpy.world.substitutes import CONVERSIONS
from ..interpreter import NodeContext
from .c_numbers import float_power, floor_quotient, of_math, quotient, remainder
from .carried_structures import UNINITIALIZED, is_leaf
from .script_branches import is_open
from .script_containers import ScriptDict, ScriptList
from .script_table import is_distinct, script


def _register(function: Callable[..., Any], *names: str) -> None:
    script(*names)(lambda call, *operands: function(*operands))


def converted(kind: type, value: Any) -> Any:
    """``int(value)``, or the like, which of what only a run tells is recorded."""
    return CONVERSIONS[kind](value)


def _traced(*values: Any) -> bool:
    return any(isinstance(value, Recording) for value in values)


for _name in (
    *("sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "erf", "erfc", "gamma", "lgamma", "fabs", "degrees"),
    *("radians", "isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "gcd", "factorial", "copysign", "fmod"),
    "hypot",
):
    _register(of_math(_name), f"aten::{_name}")


def _power(a: Any, b: Any) -> Any:
    return a**b


def _float_power(call: NodeContext, a: Any, b: Any) -> Any:
    result = _power(a, b)
    return result if call.node.op == "aten::pow.int_to_int" or not isinstance(result, int) else result * 1.0


script("aten::pow")(_float_power)
script("aten::pow.int_to_int")(lambda call, a, b: _power(a, b))
_register(float_power, "aten::pow.float", "aten::pow.int_float")
script("aten::pow.Scalar")(lambda call, a, b: _power(a, b))
script("aten::pow.Scalar_Scalar")(lambda call, a, b: _power(a, b))


def _sum(a: Any, b: Any) -> Any:
    if type(a) is ScriptList:
        return ScriptList([*a.known(), *b.known()])
    return a + b


def _times(a: Any, b: Any) -> Any:
    if type(a) is ScriptList:
        return ScriptList(a.known() * int(b))
    if type(b) is ScriptList:
        return _times(b, a)
    return a * b


_register(_sum, "aten::add", "prim::add")
_register(operator.sub, "aten::sub")
_register(_times, "aten::mul")
_register(quotient, "aten::div", "prim::div")
_register(floor_quotient, "aten::floordiv.float", "aten::floordiv.int_float", "aten::floordiv.float_int")
_register(operator.floordiv, "aten::floordiv")
_register(remainder, "aten::remainder.float", "aten::remainder.int_float", "aten::remainder.float_int")
_register(lambda a, b: (a // b, a % b), "aten::divmod.int")
_register(operator.neg, "aten::neg")
_register(operator.lshift, "aten::__lshift__")
_register(operator.rshift, "aten::__rshift__")
_register(lambda a: a, "aten::ceil.int", "aten::floor.int")


@script("aten::remainder")
def _remainder(call: NodeContext, a: Any, b: Any) -> Any:
    return a % b


def _logic(name: str, plain: Callable[[Any, Any], Any]) -> None:
    def call(a: Any, b: Any) -> Any:
        return op(name, a, b) if _traced(a, b) else plain(a, b)

    _register(call, f"aten::__{plain.__name__.strip('_')}__")


_logic("bitwise_and", operator.and_)
_logic("bitwise_or", operator.or_)
_logic("bitwise_xor", operator.xor)


@script("aten::__not__")
def _not(call: NodeContext, value: Any) -> Any:
    return op("logical_not", value) if is_open(value) else not value


@script("prim::abs", "aten::abs")
def _abs(call: NodeContext, value: Any) -> Any:
    return abs(value)


@script("aten::round")
def _round(call: NodeContext, value: Any, digits: Any = None) -> Any:
    """The nearest integer as a float, halves to the even one, as torch's."""
    if digits is not None or is_open(value):
        raise trace_error("round() of what only a run tells, or to some digits, is not supported", "use torch.round")
    number = value.bake() if isinstance(value, Recording) else value
    return float(np.rint(number)) if isinstance(number, float) else number


def _extreme(name: str, is_better: Callable[[Any, Any], Any]) -> None:
    def call(context: NodeContext, *numbers: Any) -> Any:
        values = list(numbers[0].known()) if type(numbers[0]) is ScriptList else list(numbers)
        best = values[0]
        for value in values[1:]:
            best = _chosen(is_better(value, best), value, best)
        return best

    script(f"prim::{name}", f"aten::{name}")(call)


def _chosen(condition: Any, then: Any, other: Any) -> Any:
    if not is_open(condition):
        return then if condition else other
    number = np.where(np.asarray(condition) if not _traced(condition) else condition, then, other)
    return converted(int if isinstance(then, int) and isinstance(other, int) else float, number)


_extreme("min", operator.lt)
_extreme("max", operator.gt)


# --- conversions --------------------------------------------------------------------------------


@script("aten::Int", "aten::Float", "aten::Bool", "aten::Complex")
def _to_number(call: NodeContext, value: Any) -> Any:
    name = call.node.op.partition("::")[2].partition(".")[0]
    kind = {"Int": int, "Float": float, "Bool": bool, "Complex": complex}[name]
    if isinstance(value, str):
        return kind(value)
    return _number_as(kind, value)


def _number_as(kind: type, value: Any) -> Any:
    """A number as one of another kind; a known traced one stays traced, since sizes follow from it."""
    if not isinstance(value, Recording):
        return kind(value)
    if type(value) is not kind and getattr(value, "kind", None) is kind:
        return value
    if kind is float and getattr(value, "kind", None) in (int, bool):
        return op("mul", value, 1.0)
    return converted(kind, value)


# --- comparisons --------------------------------------------------------------------------------


def _equal(a: Any, b: Any) -> Any:
    if type(a) is ScriptList and type(b) is ScriptList:
        if len(a) != len(b):
            return False
        result: Any = True
        for x, y in zip(a, b, strict=True):
            equal = _equal(x, y)
            result = op("bitwise_and", result, equal) if is_open(equal) else result if equal else False
        return result
    if UNINITIALIZED in (a, b) if not _traced(a, b) and not is_leaf(a) and not is_leaf(b) else False:
        raise trace_error("a value is compared that has none")
    if type(a) is ScriptDict or type(b) is ScriptDict:
        raise trace_error("dictionaries are compared")
    return a == b


@script("aten::eq")
def _eq(call: NodeContext, a: Any, b: Any) -> Any:
    return _equal(a, b)


@script("aten::ne")
def _ne(call: NodeContext, a: Any, b: Any) -> Any:
    equal = _equal(a, b)
    return op("logical_not", equal) if is_open(equal) else not equal


for _python in ("lt", "le", "gt", "ge"):
    _register(getattr(operator, _python), f"aten::{_python}")


@script("aten::__is__")
def _is(call: NodeContext, a: Any, b: Any) -> bool:
    return _is_same(call, a, b)


@script("aten::__isnot__")
def _is_not(call: NodeContext, a: Any, b: Any) -> bool:
    return not _is_same(call, a, b)


def _is_same(call: NodeContext, a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if is_distinct(call, a) and is_distinct(call, b):
        return a is b
    raise trace_error(
        "tensors are compared by their identity, which graphs keep of arguments and of results of operators alone",
        "compare with ==",
    )


@script("aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled")
def _is_autocast_enabled(call: NodeContext, *device: Any) -> bool:
    return False


# --- ranges -------------------------------------------------------------------------------------


@script("aten::__range_length")
def _range_length(call: NodeContext, lower: Any, upper: Any, step: Any) -> Any:
    stride = step.bake() if isinstance(step, Recording) else step
    if stride == 0:
        raise TraceError("range() arg 3 must not be zero", loc=call.node.loc)
    if not _traced(lower, upper):
        return builtins.len(range(lower, upper, stride))
    distance = upper - lower if stride > 0 else lower - upper
    count = distance if abs(stride) == 1 else (distance + (abs(stride) - 1)) // abs(stride)
    return _chosen(count < 0, 0, count) if is_open(count) else count if count >= 0 else 0


@script("aten::__derive_index")
def _derive_index(call: NodeContext, number: Any, lower: Any, step: Any) -> Any:
    return lower + number * step


# --- warnings ---------------------------------------------------------------------------------


@script("aten::warn")
def _warn(call: NodeContext, message: str, level: int = 2) -> None:
    """A warning of the model: an effect that computes nothing; a trace would give it once only."""
    rec = current()
    if rec is not None:
        rec.remark(f"the model warns: {message}")
