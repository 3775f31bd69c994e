"""Batch normalisation in the three forms of ATen; running statistics are results, and never written to.

Axis 1 has the channels. Statistics of 16-bit floats are f32, those of other arrays have their dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError
from ...ir.attrs import BOOL, DTYPE, F64
from ...ir.dtypes import U8
from ...ir.op import Attrs, Fusion, Op, Rounding, Values, attr, operand, result
from ...ir.types import ScalarType, TensorType, Type
from ..sizes import tensor_type
from .composite import WithOptional, inside, like, widened
from .layer_norms import NormBackward
from .operand_checks import check_float, check_rank, check_sizes_from

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder


class ValuesPerChannel(Op, name="values_per_channel"):
    """``count``, the number of elements per channel of which statistics are taken, as a 0-d tensor of ``dtype``.

    Raises ShapeError for one element; a run of a kernel in which there is one is void.
    """

    exact = True
    fusion = Fusion.POINTWISE
    no_gradient = True
    count = operand()
    out = result()
    dtype = attr(DTYPE)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        if isinstance(types[0], ScalarType):
            _check_count(types[0].value)
        return (TensorType(attrs["dtype"], ()),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        _check_count(args[0])
        return attrs["dtype"].numpy.type(args[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        count = b.scalar(args[0])
        if not isinstance(args[0], int):
            b.forbid(lambda n: n.eq(1), count)
        return b.fill(count.cast(attrs["dtype"]), TensorType(attrs["dtype"], ()))


def _check_count(count: Any) -> None:
    if isinstance(count, int) and count == 1:
        raise ShapeError(
            "Expected more than 1 value per channel when training",
            hint="the variance of one value is not defined: train on batches of more, or give training=False",
        )


class _BatchNorm(WithOptional, rounding=Rounding.SUMS):
    """Family: ``x`` normalised channel by channel, times ``weight``, plus ``bias``.

    By the statistics of the batch where it is ``training``, else by the running ones.
    """

    fusion = Fusion.REDUCTION
    optional = ("weight", "bias", "running_mean", "running_var")
    x = operand()
    parameters = operand(variadic=True)
    out = result()
    training = attr(BOOL)
    momentum = attr(F64, default=0.1)
    eps = attr(F64, default=1e-5)

    @classmethod
    def computed(cls, b: Any, attrs: Attrs, xs: Sequence[Any]) -> tuple[Any, ...]:
        """The result, the mean, one over the deviation, and where it is training the unbiased variance."""
        check_float(cls.name, *xs)
        x, weight, bias, running_mean, running_var = xs
        check_rank(cls.name, x, 2)
        for name, parameter in zip(cls.optional, xs[1:], strict=True):
            check_sizes_from(cls.name, name, parameter, (x.shape[1],))
        wide, around = widened(b, x), around_channels(x)
        if attrs["training"]:
            along = {"axes": around, "keepdims": True}
            # Statistics of one value raise an error: the count is asked for it.
            count = values_per_channel(b, x)
            mean = b.op("sum", wide, **along) / count
            distance = wide - mean
            variance = b.op("sum", distance * distance, **along) / count
            rstd = b.op("rsqrt", variance + attrs["eps"])
            y = distance * rstd
            mean, rstd, variance = (b.op("squeeze", s, axes=around) for s in (mean, rstd, variance))
            unbiased = variance * (count / (count - 1))
        else:
            if running_mean is None or running_var is None:
                raise ShapeError(
                    f"{cls.name} without training takes running statistics", hint="give them, or training=True"
                )
            mean = widened(b, running_mean)
            rstd = b.op("rsqrt", widened(b, running_var) + attrs["eps"])
            unbiased = None
            y = (wide - by_channel(b, mean, x)) * by_channel(b, rstd, x)
        if weight is not None:
            y = y * by_channel(b, widened(b, weight), x)
        if bias is not None:
            y = y + by_channel(b, widened(b, bias), x)
        return like(b, y, x), mean, rstd, unbiased

    @classmethod
    def all_results(cls, b: Any, attrs: Attrs, xs: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the forms with statistics: those, too, and the new running ones."""
        y, mean, rstd, unbiased = cls.computed(b, attrs, xs)
        x, running_mean, running_var = xs[0], xs[3], xs[4]
        if not attrs["training"]:
            none = b.op("full", 0.0, shape=(0,), dtype=inside(x))
            return y, none, none, b.op("copy", running_mean), b.op("copy", running_var)
        share = attrs["momentum"]

        def mixed(running: Any, new: Any) -> Any:
            if running is None:
                return b.op("full", 0.0, shape=(0,), dtype=inside(x))
            return like(b, widened(b, running) * (1 - share) + new * share, running)

        return y, mean, rstd, mixed(running_mean, mean), mixed(running_var, unbiased)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        running = 0b1100
        if not attrs["training"] and attrs.get("given", 0) & running != running:
            yield "running_mean and running_var are needed where training is false"
        if (rank := tensor_type(types[0]).rank) is not None and rank < 2:
            yield f"x has {rank} axes, of which axis 1 cannot have the channels"

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        x, weight, _, running_mean, running_var = cls.unpacked(attrs, xs)
        wanted = cls.unpacked(attrs, [b.wants(k) for k in range(len(xs))])
        if len(ys) == 1 or (not attrs["training"] and (wanted[3] or wanted[4])):
            return cls.gradient_of_expansion(b, attrs, xs, ys, gs)
        gradients: Values = [None] * len(xs)
        if gs[0] is not None:
            saved = (ys[1], ys[2]) if attrs["training"] else (None, None)
            backward = NativeBatchNormBackward
            operands, present = backward.packed([gs[0], x, weight, running_mean, running_var, *saved])
            mask = tuple(bool(flag) for flag in wanted[:3])
            own = {"training": attrs["training"], "eps": attrs["eps"], "mask": mask}
            results = [*b.op(backward.name, *operands, **own, **present), None, None]
            gradients = [g if flag else None for g, flag in zip(results, wanted, strict=True) if flag is not None]
        return cls.with_others(gradients, b, attrs, xs, ys, gs)


class BatchNorm(_BatchNorm, name="batch_norm"):
    """The result alone."""

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        return cls.computed(b, attrs, xs)[0]


class NativeBatchNorm(_BatchNorm, name="native_batch_norm"):
    """Also gives the mean and one over the standard deviation of the batch, and the new running statistics.

    New ones are a ``momentum`` of the batch's, of which the variance is the unbiased one, and the
    rest of the old ones; empty where these are not given. Without training the statistics of the
    batch are empty, and the running ones stay.
    """

    mean = result()
    rstd = result()
    new_mean = result()
    new_var = result()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        return cls.all_results(b, attrs, xs)


class BatchNormIndex(_BatchNorm, name="batch_norm_index"):
    """`native_batch_norm` with the results that tell ATen's backward op of the library that has run.

    These are an empty ``reserve`` of u8, and the ``index`` 0.
    """

    mean = result()
    rstd = result()
    reserve = result()
    index = result()
    new_mean = result()
    new_var = result()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        y, mean, rstd, *running = cls.all_results(b, attrs, xs)
        return y, mean, rstd, b.op("full", 0, shape=(0,), dtype=U8), 0, *running


class _BatchNormBackward(NormBackward):
    """Family: the gradients of a batch normalisation.

    The statistics are the saved ones where it is ``training``, else the running ones. The gradient of the bias
    does not ask for the bias.
    """

    optional = ("weight", "running_mean", "running_var", "mean", "rstd")
    training = attr(BOOL)
    eps = attr(F64, default=1e-5)

    @classmethod
    def gradients(cls, b: Any, attrs: Attrs, grad: Any, x: Any, parameters: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients from the operands: weight, running mean and variance, saved mean and deviation."""
        weight, running_mean, running_var, saved_mean, saved_rstd = parameters
        check_float(cls.name, grad, x, *parameters)
        check_rank(cls.name, x, 2)
        check_sizes_from(cls.name, "grad", grad, x.shape)
        if attrs["training"]:
            mean, rstd = saved_mean, saved_rstd
        else:
            mean, rstd = running_mean, running_var
        if mean is None or rstd is None:
            which = "saved" if attrs["training"] else "running"
            raise ShapeError(f"{cls.name} takes the {which} statistics where training is {attrs['training']}")
        mean, rstd = widened(b, mean), widened(b, rstd)
        if not attrs["training"]:
            rstd = b.op("rsqrt", rstd + attrs["eps"])
        g, wide, around = widened(b, grad), widened(b, x), around_channels(x)
        factor = by_channel(b, rstd if weight is None else rstd * widened(b, weight), x)
        places = (wide - by_channel(b, mean, x)) * by_channel(b, rstd, x)
        along = {"axes": around, "keepdims": True}
        of_x, of_weight, of_bias = attrs["mask"]
        total = b.op("sum", g, **along) if of_bias or (of_x and attrs["training"]) else None
        turned = b.op("sum", g * places, **along) if of_weight or (of_x and attrs["training"]) else None
        gx = gw = gb = None
        if of_x:
            if attrs["training"]:
                count = values_per_channel(b, x)
                g = g - total / count - places * (turned / count)
            gx = like(b, factor * g, x)
        if of_weight and weight is not None:
            gw = like(b, b.op("squeeze", turned, axes=around), weight)
        if of_bias:
            gb = b.op("squeeze", total, axes=around)
            gb = gb if weight is None else like(b, gb, weight)
        return gx, gw, gb


class NativeBatchNormBackward(_BatchNormBackward, name="native_batch_norm_backward"):
    """The gradients of `native_batch_norm`."""

    grad = operand()
    x = operand()
    parameters = operand(variadic=True)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        grad, x, *parameters = xs
        return cls.gradients(b, attrs, grad, x, parameters)


class BatchNormIndexBackward(_BatchNormBackward, name="batch_norm_index_backward"):
    """The gradients of `batch_norm_index`; ``index`` and ``reserve`` are its results of that name."""

    numbers = ("index",)
    index = operand()
    x = operand()
    grad = operand()
    parameters = operand(variadic=True)
    reserve = operand()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        _, x, grad, *parameters, _ = xs
        return cls.gradients(b, attrs, grad, x, parameters)


def values_per_channel(b: Any, x: Any) -> Any:
    """The number of elements per channel of a batch that is trained on, to divide sums of it by."""
    sizes = x.shape
    count = sizes[0]
    for axis in range(2, x.ndim):
        count = count * sizes[axis]
    return b.op("values_per_channel", count, dtype=inside(x))


def around_channels(x: Any) -> tuple[int, ...]:
    """The axes of a batch other than that of the channels."""
    return (0, *range(2, x.ndim))


def by_channel(b: Any, values: Any, x: Any) -> Any:
    """One value per channel, with the axes of the batch ``x``."""
    return b.op("expand_dims", values, axes=around_channels(x))
