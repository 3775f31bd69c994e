"""Layers that are a product with a matrix: `linear`, and `embedding`, which picks rows of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import BoundsError
from ..python.pausing import unwatched
from ..tracing.composites import recorded
from ..tracing.current import current, user_loc
from ..tracing.handler_tables import created
from .layer_inputs import (
    array,
    detached,
    is_real,
    narrowed,
    number,
    result_dtype,
    vector,
    widened,
    wrong_argument,
    wrong_dtype,
    wrong_shape,
)


@unwatched
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``.

    Args:
        input: (..., in).
        weight: (out, in), or (in,) for a result without the last axis.
        bias: (out,), of a weight (in,) without axes; None = zeros.

    The result is (..., out), of the dtype that NumPy gives to the product. f16 and bf16 are summed in f32. Raises
    ShapeError where the sizes do not fit.
    """
    array("linear", "input", input)
    array("linear", "weight", weight, (1, 2), "(out, in) or (in,)")
    if not input.ndim or input.shape[-1] != weight.shape[-1]:
        raise wrong_shape(
            "linear",
            f"input has shape {tuple(input.shape)}, weight {tuple(weight.shape)}: the last sizes differ",
            "pass weight as (out, in), where in is the last size of input",
        )
    if weight.ndim == 2:
        vector("linear", "bias", bias, weight.shape[0], "rows of weight")
    elif bias is not None and np.ndim(bias):
        raise wrong_shape("linear", f"bias has shape {tuple(bias.shape)}, and weight one axis", "pass one number")
    if is_real(input, weight, bias) and (bias is None or bias.ndim):
        y = recorded("linear", input, weight, bias)
        if y is not None:
            return y
    dtype = result_dtype(input, weight, bias)
    x, w, b = widened(input, weight, bias)
    y = x @ (w.T if w.ndim == 2 else w)
    return narrowed(y if b is None else y + b, dtype)


@unwatched
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of ``weight`` that ``input`` names.

    Args:
        input: integers in ``range(len(weight))``, of any shape.
        weight: (count, size).
        padding_idx: a row that gets no gradient, counted from the end where it is negative; None = there is none.

    The result is ``(*input.shape, size)``. The gradient of a row is the sum over all places that name it. Raises
    BoundsError for an index that is no row; unlike in NumPy, indices do not count from the end.
    """
    array("embedding", "input", input)
    array("embedding", "weight", weight, (2,), "(count, size)")
    if input.dtype.kind not in "iu":
        raise wrong_dtype("embedding", f"input is of {input.dtype}", "pass integers: input.astype(np.int64)")
    count = weight.shape[0]
    index = in_range("embedding", "input", input, count)
    if padding_idx is None:
        return weight[index]
    row = number("embedding", "padding_idx", padding_idx, -count)
    if row >= count:
        raise BoundsError(
            f"nn.embedding: padding_idx={row} is no row of a weight with {count} rows",
            loc=user_loc(),
            hint=f"pass a row from {-count} to {count - 1}, or None",
        )
    rows = weight[index]
    return np.where((index == row % count)[..., None], detached(rows), rows)


@unwatched
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """For each class, as many numbers as there are classes: 1 at that class, 0 at the others.

    Args:
        tensor: integers in ``range(num_classes)``, of any shape.
        num_classes: how many there are; -1 = one more than the largest, which a graph cannot know.

    The result is i64, of shape ``(*tensor.shape, num_classes)``. Raises BoundsError for an integer that is no class
    (IndexError inside a graph); TraceError for -1 in a trace.
    """
    array("one_hot", "tensor", tensor)
    if tensor.dtype.kind not in "iu":
        raise wrong_dtype("one_hot", f"tensor is of {tensor.dtype}", "pass integers: tensor.astype(np.int64)")
    count = number("one_hot", "num_classes", num_classes, -1)
    if count == -1:
        count = int(np.max(tensor)) + 1 if tensor.size else 0
    if count == 0:
        raise wrong_argument("one_hot", f"num_classes={num_classes} leaves no class", "pass the number of classes")
    classes = created("arange", count, dtype=np.int64)
    places = classes[in_range("one_hot", "tensor", tensor, count)]  # a kernel refuses what is no class
    return (places[..., None] == classes).astype(np.int64)


def in_range(function: str, name: str, index: Any, count: int) -> Any:
    """Indices, of which none counts from the end; raises BoundsError, or NumPy's IndexError inside a graph.

    There negative ones become ``count``, which no axis of that size has.
    """
    if current() is None and isinstance(index, (np.ndarray, np.generic)):
        if index.size and (int(index.min()) < 0 or int(index.max()) >= count):
            worst = index.min() if int(index.min()) < 0 else index.max()
            raise BoundsError(
                f"nn.{function}: {name} has {int(worst)}, where there are {count}",
                loc=user_loc(),
                hint=f"pass integers from 0 to {count - 1}",
            )
        return index
    if index.dtype.kind == "u":
        return index
    return np.where(index < 0, count, index.astype(np.int64))
