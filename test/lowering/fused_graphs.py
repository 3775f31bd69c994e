"""Graphs that users want fused, built for any dtype and any sizes.

A builder takes a dtype and the sizes of rows and columns, numbers or names of symbols; `FUSED` says
what arguments it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from graphs import Graph, tensor
from profuse.dialect.ir.dtypes import F32, I64

ROWS = {"axes": (1,), "keepdims": True}


@dataclass(frozen=True)
class Fused:
    """A graph of the list.

    Attributes:
        build: ``(dtype, rows, columns)`` to a Program.
        shapes: of its arguments; ``"labels"`` are column numbers, one per row.
    """

    build: Callable
    shapes: tuple[str, ...]

    def arguments(self, rng, rows, columns, dtype=np.float32):
        """Random arguments."""
        sizes = {"matrix": (rows, columns), "row": (columns,), "one": (1,)}
        return [
            rng.integers(0, max(columns, 1), rows)
            if name == "labels"
            else rng.standard_normal(sizes[name]).astype(dtype)
            for name in self.shapes
        ]


def _types(dtype, rows, columns, *names, strides="contiguous"):
    found = {
        "matrix": tensor(rows, columns, dtype=dtype, strides=strides),
        "row": tensor(columns, dtype=dtype),
        "one": tensor(1, dtype=dtype),
        "labels": tensor(rows, dtype=I64),
    }
    return [found[name] for name in names]


def _fused(*names):
    def decorate(body):
        def build(dtype=F32, rows="n", columns="m", strides="contiguous"):
            g = Graph(*_types(dtype, rows, columns, *names, strides=strides), name=body.__name__)
            outputs = body(g, lambda value: g.number(value, dtype.numpy), *g.inputs)
            return g.returning(*(outputs if isinstance(outputs, tuple) else (outputs,)))

        FUSED[body.__name__] = Fused(build, names)
        return body

    return decorate


FUSED: dict[str, Fused] = {}


@_fused("matrix", "row")
def gelu(g, number, x, bias):
    y = g.add(x, bias)
    cubic = g.mul(number(0.044715), g.mul(y, g.mul(y, y)))
    inner = g.mul(number(0.7978845608), g.add(y, cubic))
    return g.mul(g.mul(number(0.5), y), g.add(number(1), g.tanh(inner)))


def _exponentials(g, x):
    top = g.max(x, **ROWS)
    e = g.exp(g.sub(x, top))
    return top, e, g.sum(e, **ROWS)


@_fused("matrix")
def softmax(g, number, x):
    _, e, total = _exponentials(g, x)
    return g.div(e, total)


@_fused("matrix")
def log_sum_exp(g, number, x):
    top, _, total = _exponentials(g, x)
    return g.add(g.log(total), top)


@_fused("matrix", "row", "row")
def layernorm(g, number, x, scale, shift):
    centred = g.sub(x, g.mean(x, **ROWS))
    variance = g.mean(g.square(centred), **ROWS)
    y = g.div(centred, g.sqrt(g.add(variance, number(1e-5))))
    return g.add(g.mul(y, scale), shift)


@_fused("matrix", "row")
def rmsnorm(g, number, x, scale):
    size = g.mean(g.square(x), **ROWS)
    return g.mul(g.div(x, g.sqrt(g.add(size, number(1e-6)))), scale)


@_fused("matrix", "labels")
def cross_entropy(g, number, x, labels):
    top, _, total = _exponentials(g, x)
    picked = g.gather(x, g.expand_dims(labels, axes=(1,)), axis=1)
    return g.mean(g.sub(g.add(g.log(total), top), picked))


@_fused("matrix")
def column_sum(g, number, x):
    return g.sum(g.square(x), axes=(0,))


@_fused("matrix", "matrix")
def swiglu(g, number, x, y):
    return g.mul(g.mul(x, g.sigmoid(x)), y)


@_fused("matrix", "matrix", "matrix", "matrix", "one")
def adam(g, number, weight, gradient, first, second, rate):
    m = g.add(g.mul(number(0.9), first), g.mul(number(0.1), gradient))
    v = g.add(g.mul(number(0.999), g.abs(second)), g.mul(number(0.001), g.square(gradient)))
    step = g.div(g.mul(rate, m), g.add(g.sqrt(v), number(1e-8)))
    return g.sub(weight, step), m, v
