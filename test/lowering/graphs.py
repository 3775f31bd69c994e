"""Building programs for lowering tests, and random ones."""

import numpy as np
from profuse.dialect.errors import ShapeError
from profuse.dialect.ir.dtypes import F32, I64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)

CAST = op_named("cast")


class Graph:
    """A program under construction; values are numbers, ops are methods: ``g.add(x, y)``."""

    def __init__(self, *inputs, name="kernel"):
        self.program = Program(name)
        self.program.body.args = tuple(self.program.new_value(t) for t in inputs)
        self.types = dict(zip(self.program.body.args, inputs, strict=True))

    @property
    def inputs(self):
        return self.program.body.args

    def __getattr__(self, name):
        op = op_named(name)

        def call(*operands, **attrs):
            attrs = dict(attrs)
            types = [self.types[v] for v in operands]
            wanted = op.operand_dtypes(types, op.full_attrs(attrs)) or (None,) * len(types)
            # As `insert-casts` would.
            operands = tuple(
                v if w is None or w is t.dtype else self._emit(CAST, (v,), {"dtype": w})
                for v, t, w in zip(operands, types, wanted, strict=True)
            )
            return self._emit(op, operands, attrs)

        return call

    def _emit(self, op, operands, attrs):
        found = op.infer([self.types[v] for v in operands], op.full_attrs(attrs))
        results = tuple(self.program.new_value() for _ in found)
        self.types.update(zip(results, found, strict=True))
        self.program.body.instrs.append(Instr(op, operands, results, attrs))
        return results[0] if len(results) == 1 else results

    def number(self, value, dtype=np.float32):
        """A 0-d constant."""
        return self.constant(value=np.array(value, dtype))

    def returning(self, *outputs):
        self.program.body.outputs = outputs
        return self.program

    def shape(self, value):
        return self.types[value].shape


def tensor(*shape, dtype=F32, strides="contiguous"):
    """A tensor type; strings are symbols."""
    dims = tuple(symbol(d) if isinstance(d, str) else d for d in shape)
    return TensorType(dtype, dims, strides)


UNARY = ("neg", "abs", "square", "tanh", "exp", "sqrt_abs", "sigmoid")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
STEPS = (
    "unary",
    "binary",
    "binary",
    "reduce",
    "reduce",
    "normal",
    "transpose",
    "row",
    "flip",
    "scan",
    "cube",
    "flat",
    "product",
    "join",
    "top",
    "pick",
)
REDUCE = ("sum", "mean", "max", "min")


def random_program(rng, sizes, symbolic=(), steps=10):
    """A random program over axes with these sizes, and its arguments.

    ``symbolic``: names of axes whose size is a symbol. Values stay of moderate size.
    """
    names = list(sizes)

    def dim(axis):
        return symbol(axis) if axis in symbolic else sizes[axis]

    # Every input shows all symbols somewhere: the first input has every axis.
    shapes = [tuple(names)]
    for _ in range(rng.integers(0, 3)):
        kept = [n for n in names if rng.random() < 0.7]
        rng.shuffle(kept)
        shapes.append(tuple(kept))
    types, args = [], []
    for axes in shapes:
        array, strides = _random_layout(rng, [sizes[a] for a in axes])
        types.append(TensorType(F32, tuple(dim(a) for a in axes), strides))
        args.append(array)
    g = Graph(*types)
    axes_of = dict(zip(g.inputs, shapes, strict=True))
    for _ in range(steps):
        try:
            value, axes = _random_step(rng, g, axes_of)
        except (ShapeError, _Skip):
            continue
        axes_of[value] = axes
    used = {o for i in g.program.body.instrs for o in i.operands}
    fresh = [v for v in axes_of if v not in g.inputs and v not in used] or list(g.inputs[:1])
    extra = [v for v in axes_of if v not in g.inputs and rng.random() < 0.15]
    outputs = tuple(dict.fromkeys([*fresh, *extra]))
    return g.returning(*outputs), args


class _Skip(Exception):
    pass


def _random_layout(rng, shape):
    """An array and its stride class: contiguous, transposed, sliced, reversed or run-time."""
    kind = rng.choice(["plain", "plain", "plain", "order", "step", "reverse", "unknown"])
    if kind == "plain" or not shape:
        return rng.standard_normal(shape).astype(np.float32), "contiguous"
    if kind == "order":
        order = rng.permutation(len(shape))
        base = rng.standard_normal([shape[k] for k in order]).astype(np.float32)
        array = base.transpose(np.argsort(order))
    elif kind == "step":
        base = rng.standard_normal([2 * s for s in shape]).astype(np.float32)
        array = base[tuple(slice(0, 2 * s, 2) for s in shape)]
    else:
        array = rng.standard_normal(shape).astype(np.float32)
        array = array[tuple(slice(None, None, rng.choice([-1, 1])) for _ in shape)]
    strides = tuple(s // 4 for s in array.strides)
    if kind == "unknown":
        strides = (None,) * len(shape)
    return array, strides


def _random_step(rng, g, axes_of):
    values = list(axes_of)
    a = values[-1 - min(rng.geometric(0.35) - 1, len(values) - 1)]
    axes = axes_of[a]
    what = rng.choice(STEPS)
    if what == "unary":
        name = rng.choice(UNARY)
        if name == "sqrt_abs":
            return g.sqrt(g.add(g.abs(a), g.number(0.25))), axes
        if name == "exp":
            return g.exp(g.tanh(a)), axes
        return getattr(g, str(name))(a), axes
    if what == "binary":
        b = values[rng.integers(len(values))]
        return _binary(rng, g, a, axes, b, axes_of[b])
    if what in ("reduce", "normal"):
        if not axes:
            raise _Skip
        over = sorted(rng.choice(len(axes), rng.integers(1, len(axes) + 1), replace=False))
        keep = what == "normal"
        attrs = {"axes": tuple(int(k) for k in over), "keepdims": bool(keep)}
        reduced = getattr(g, str(rng.choice(REDUCE)))(a, **attrs)
        if keep:
            return g.sub(g.tanh(a), g.tanh(reduced)), axes
        return g.tanh(reduced), tuple(x for k, x in enumerate(axes) if k not in over)
    if what == "transpose":
        order = tuple(int(k) for k in rng.permutation(len(axes)))
        return g.transpose(a, perm=order), tuple(axes[k] for k in order)
    if what == "flip":
        if not axes:
            raise _Skip
        return g.flip(a, axes=(int(rng.integers(len(axes))),)), axes
    if what == "scan":
        if not axes:
            raise _Skip
        return g.tanh(g.cumsum(a, axis=int(rng.integers(len(axes))))), axes
    if what == "row":
        if not axes:
            raise _Skip
        top = g.max(a, axes=(len(axes) - 1,), keepdims=True)
        e = g.exp(g.tanh(g.sub(a, top)))
        return g.div(e, g.sum(e, axes=(len(axes) - 1,), keepdims=True)), axes
    if what in ("flat", "product", "join", "top", "pick"):
        return _rearranged(rng, g, a, axes, axes_of, what)
    b = values[rng.integers(len(values))]
    return _binary(rng, g, g.tanh(a), axes, g.exp(g.tanh(b)), axes_of[b])


def _rearranged(rng, g, a, axes, axes_of, what):
    """Steps that move elements, or call a library product, and come back to the same axes."""
    if not axes:
        raise _Skip
    shape = g.shape(a)
    axis = int(rng.integers(len(axes)))
    if what == "flat":
        # All axes merged, something done, and split again.
        total = _count(shape)
        if total == 0:
            raise _Skip
        flat = _reshape(g, a, (total,))
        if rng.random() < 0.5:
            flat = g.cumsum(g.tanh(flat), axis=0)
        return _reshape(g, g.tanh(flat), shape), axes
    if what == "product":
        if len(axes) < 2 or 0 in shape:
            raise _Skip
        order = [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]
        gram = g.matmul(g.tanh(a), g.transpose(g.tanh(a), perm=tuple(order)))
        return g.tanh(g.matmul(gram, a)), axes
    if what == "join":
        both = g.concatenate(a, g.tanh(a), axis=axis)
        if not isinstance(shape[axis], int) or shape[axis] == 0:
            raise _Skip
        start = int(rng.integers(0, shape[axis] + 1))
        return g.slice(both, starts=(start,), stops=(start + shape[axis],), axes=(axis,)), axes
    if not isinstance(shape[axis], int) or shape[axis] == 0:
        raise _Skip
    if what == "top":
        where = g.argmax(a, axis=axis, keepdims=True)
        return g.add(g.gather(a, where, axis=axis), g.tanh(a)), axes
    index = rng.integers(-shape[axis], shape[axis], shape[axis])
    return g.take(a, g.constant(value=index), axis=axis), axes


def _count(shape):
    total = 1
    for size in shape:
        total = total * size
    return total


def _reshape(g, a, shape):
    """`reshape` to sizes that are numbers or symbols of the program."""
    if all(isinstance(s, int) for s in shape):
        return g.reshape(a, shape=tuple(shape))
    raise _Skip


def _binary(rng, g, a, axes, b, other):
    """An operation on two values, ``b`` brought to the axes of ``a`` where it has a subset."""
    if not set(other) <= set(axes) or not axes:
        raise _Skip
    order = [other.index(x) for x in axes if x in other]
    if order != list(range(len(order))):
        b = g.transpose(b, perm=tuple(order))
    missing = tuple(k for k, x in enumerate(axes) if x not in other)
    if missing:
        b = g.expand_dims(b, axes=missing)
    return getattr(g, str(rng.choice(BINARY)))(a, b), axes


__all__ = ["F32", "I64", "Graph", "random_program", "tensor"]
