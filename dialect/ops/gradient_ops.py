"""The ops that only gradients need: undefined tensors, sums over what was broadcast, rules of users.

An undefined tensor is absent, which is not the same as full of zeros (R1.24, R1.43). At run time it
is None. Only `autograd_zero`, `autograd_add`, tests of definedness and control flow may meet one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import ShapeError, TraceError
from ..ir.attrs import I64, STR, AttrKind
from ..ir.dtypes import dtype_of
from ..ir.op import Attrs, Failure, Fusion, Op, Rounding, Values, attr, operand, result
from ..ir.types import BOOL_SCALAR, TENSOR, Shape, TensorType, Type
from .broadcast import shape_of, shape_text
from .elementwise.families import Binary, Unary
from .reductions.reduce import wide
from .sizes import complete_shape, prove_equal, tensor_type
from .structural import Proven

if TYPE_CHECKING:
    from ...lowering.linalg.scalar import Scalar
    from ...lowering.linalg.tensor_builder import Builder, TensorValue
    from ..ir.gradients import GradientBuilder
    from .custom_rules import CustomRule, RuleKey


class AutogradZero(Op, name="autograd_zero"):
    """An undefined tensor: a gradient that nothing flows into."""

    out = result()
    no_gradient = True

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return None


class _OfTensors(Op):
    """Family of ops of which every operand is a tensor."""

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        for index, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                yield f"operand {index} must be a tensor, not {type_}"


class AutogradAdd(_OfTensors, name="autograd_add"):
    """The sum of two gradients, either of which may be undefined."""

    a = operand()
    b = operand()
    out = result()
    linear = ((0, 1),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(g, xs[k])

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (0, 1)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        a, b = args
        if a is None or b is None:
            return b if a is None else a
        return np.add(a, b)


class Definedness(_OfTensors):
    """Family of tests of which of some tensors are defined.

    One tensor that is ``decisive`` (defined or not) settles the ``outcome``.
    """

    grads = operand(variadic=True)
    out = result()
    decisive: ClassVar[bool] = True
    outcome: ClassVar[bool] = False
    no_gradient = True

    @classmethod
    def decide(cls, defined: Sequence[bool | None]) -> bool | None:
        """The outcome from what is known of each tensor; None = it depends on the others."""
        if cls.decisive in defined:
            return cls.outcome
        return None if None in defined else not cls.outcome

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (BOOL_SCALAR,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.decide([grad is not None for grad in args])


class AnyNonzero(Definedness, name="any_nonzero"):
    """True if any of the tensors is defined."""

    outcome = True


class AllNonzero(Definedness, name="all_nonzero"):
    """True if all of the tensors are defined."""

    decisive = False


class AllZero(Definedness, name="all_zero"):
    """True if all of the tensors are undefined."""


class GradOf(_OfTensors, name="grad_of"):
    """Run the block if any of the incoming gradients is defined; else all results are undefined.

    ``forward`` names the op whose gradient it is. The block ends in ``profuse.yield``. It cannot
    be evaluated: `lower-grad-blocks` makes an ``scf.if`` of it.
    """

    regions = 1
    grads = operand(variadic=True)
    outs = result(variadic=True)
    forward = attr(STR, default="")
    undifferentiable = "`lower-grad-blocks` makes a branch of it"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()


# --- sums and products that only gradients ask for ---------------------------------------------


class SumTo(Proven, name="sum_to", rounding=Rounding.SUMS):
    """``x`` summed over the axes along which ``like`` was broadcast to its shape.

    These are the leading axes that ``like`` does not have, and those of size 1 in ``like``. Raises
    ShapeError where ``like`` does not broadcast to the shape of ``x``.
    """

    aliases = {0: 0}
    fusion = Fusion.REDUCTION
    linear = ((0,),)
    x = operand()
    like = operand()
    out = result()

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.spread(g, xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape, target = shape_of(types[0]), shape_of(types[1])
        if shape is not None and target is not None:
            _check(shape, target)
        return (TensorType(tensor_type(types[0]).dtype, target),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.summed(args[0], np.shape(args[1]))

    @staticmethod
    def summed(x: Any, shape: tuple[int, ...]) -> Any:
        """``x`` summed to a shape that broadcasts to its own; no view, if that can be."""
        axes = _axes(x.shape, shape)
        if not axes:
            return x if x.ndim else x[()]
        dtype = x.dtype
        inside = dtype if dtype.char in "fd" else wide(dtype_of(dtype)).numpy
        if len(axes) + len(shape) == x.ndim:
            total = np.add.reduce(x, axes, inside)
        else:
            total = np.add.reduce(x, axes, inside, keepdims=True).reshape(shape)
        total = total if inside is dtype else total.astype(dtype)
        return total if total.ndim else total[()]

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape, target = complete_shape(tensor_type(types[0])), shape_of(types[1]) or ()
        for size, expected in zip(shape[len(shape) - len(target) :], target, strict=True):
            if expected != 1:
                prove_equal(size, expected, "sum_to sums over axes of size 1 only")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None and out.shape is not None
        axes = summed_axes(x.shape, out.shape)
        if not axes:
            return x
        inside = wide(out.dtype)
        sizes = tuple(d for k, d in enumerate(x.shape) if k not in axes)
        acc = TensorType(inside, sizes)
        total = b.reduce(lambda acc, e: acc + e, 0, b.cast(x, inside), axes, acc, keepdims=False)
        return b.reshape(b.cast(total, out.dtype), out)


def summed_axes(shape: Shape, target: Shape) -> tuple[int, ...]:
    """The axes of ``shape`` along which ``target`` is repeated."""
    extra = len(shape) - len(target)
    ones = (k + extra for k, d in enumerate(target) if d == 1 and shape[k + extra] != 1)
    return (*range(extra), *ones)


@lru_cache(maxsize=4096)
def _axes(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    _check(shape, target)
    return summed_axes(shape, target)


def _check(shape: Shape, target: Shape) -> None:
    extra = len(shape) - len(target)
    if extra < 0 or any(
        isinstance(a, int) and isinstance(d, int) and d not in (1, a)
        for a, d in zip(shape[extra:], target, strict=True)
    ):
        raise ShapeError(
            f"shape {shape_text(target)} is not broadcast to {shape_text(shape)}",
            hint="a gradient has the shape of its argument; does the backward of a pf.custom_vjp return another one?",
        )


class AbsorbingMul(Binary, name="absorbing_mul"):
    """``a * b``, but 0 where ``a`` is 0 and that is NaN: what no result depends on is none."""

    exact = True
    of_gradients = True
    rule = np.multiply
    singular = True
    partials = staticmethod(lambda a, b, y: (b, a))

    @staticmethod
    def numpy(a: Any, b: Any) -> Any:
        with np.errstate(invalid="ignore"):
            product = np.multiply(a, b)
        is_absorbed = np.equal(a, 0) & np.isnan(product)
        if type(product) is np.ndarray:
            np.copyto(product, product.dtype.type(0), where=is_absorbed)
            return product
        return np.where(is_absorbed, np.zeros((), product.dtype), product)[()]

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = xs
        product = a * b
        return (a.eq(0) & product.isnan()).select(a.const(0), product)


class Passed(Unary, rounding=Rounding.MOVES):
    """Family of ops whose result is ``x`` itself; only its gradient is another one.

    `canonicalize-profuse` removes them.
    """

    exact = True
    aliases = {0: 0}
    element = staticmethod(lambda x: x)
    numpy = staticmethod(lambda x: x)
    python = staticmethod(lambda x: x)

    @classmethod
    def loop(cls, *keys: Any) -> tuple[Any, ...]:
        return (keys[0][0],) * 2


class StopGradient(Passed, name="stop_gradient"):
    """``x``, through which no gradient flows."""

    no_gradient = True


class FlatAtZero(Passed, name="flat_at_zero"):
    """``x``, through which no gradient flows where it is 0: a norm has a kink there."""

    partials = staticmethod(lambda x, y: (lambda g: np.where(x == 0, 0, g),))


# --- gradients of the user's own -----------------------------------------------------------------


def _key(number: int) -> RuleKey:
    from .custom_rules import RuleKey

    return RuleKey(number)


RULE = AttrKind(
    "integer", I64.irdl, I64.text, lambda a: _key(I64.decode(a)), int, lambda data: _key(I64.from_json(data))
)


class CustomResult(Op, name="custom_result", rounding=Rounding.MOVES):
    """One of the results, as it is, of a function whose gradient a rule of the user's computes.

    Operands are the inputs of that function, what it has saved, and its results, of which this op
    gives number ``index``. `canonicalize-profuse` removes the op.
    """

    failure = Failure.NEVER
    values = operand(variadic=True)
    out = result()
    inputs = attr(I64)
    saved = attr(I64)
    index = attr(I64)
    key = attr(RULE)

    @classmethod
    def chosen(cls, attrs: Attrs) -> int:
        """The number of the operand that is the result."""
        return attrs["inputs"] + attrs["saved"] + attrs["index"]

    @classmethod
    def rule(cls, attrs: Attrs) -> CustomRule:
        """The user's rule; raises TraceError for one that is not known in this process."""
        rule = _key(attrs["key"]).rule
        if rule is None:
            raise TraceError(
                "the gradient of a function that another process has saved is not known",
                hint="trace the function with its custom_vjp in this process",
            )
        return rule

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        chosen = cls.chosen(attrs)
        return (types[chosen] if chosen < len(types) else TENSOR,)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not 0 <= cls.chosen(attrs) < len(types):
            yield f"operand {cls.chosen(attrs)} of {len(types)} is the result"

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[cls.chosen(attrs)]

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        count, end = attrs["inputs"], attrs["inputs"] + attrs["saved"]
        results = [np.zeros_like(y) for y in xs[end:]]
        results[attrs["index"]] = gs[0]
        gradients = cls.rule(attrs).pull(xs[count:end], results)
        pairs = enumerate(zip(gradients, xs[:count], strict=True))
        return [b.nothing(k, x) if g is None else b.like(g, x) for k, (g, x) in pairs]
