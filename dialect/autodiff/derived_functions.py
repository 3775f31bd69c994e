"""Functions that differentiate the function they were made of, while they are traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..analysis.functional import functionalize
from ..errors import ArgumentError, TraceError
from ..importers.numpy.capture.inline import inline_block
from ..importers.numpy.python.users_code import wraps
from ..importers.numpy.tracing.current import current, trace_error, user_loc
from ..importers.numpy.tracing.mutation import in_memory, memory_of, write
from ..importers.numpy.tracing.operators import Recording, as_value, op, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.tracing.traced import Traced, TracedArray
from ..importers.numpy.tracing.traced_control import own_arguments
from ..importers.numpy.tracing.traced_scalar import TracedScalar
from ..ir.dtypes import F64, dtype_of
from ..ir.op import op_named
from ..ir.program import Block, Instr, Program
from ..trees.pytree import TreeDef, flatten, leaves_like, positional_names, unflatten
from .own_memory import in_own_memory
from .rerun import append
from .sweep import pull_back, push_forward

Selector = int | str


class Recorded:
    """The record of one call of a function, with inputs that nothing else reads.

    Attributes:
        instrs: the instructions, free of writes.
        inputs: the values of the float leaves among ``leaves``; None for other leaves.
        outputs: the leaves of the result.
        tree: its structure.
    """

    def __init__(self, rec: Recorder, fn: Callable, args: tuple, kwargs: dict, names: Sequence[Selector]) -> None:
        self.rec = rec
        positional, kwargs = list(args), dict(kwargs)
        self.trees: list[TreeDef] = []
        self.leaves: list[Any] = []
        self.inputs: list[int | None] = []
        for name in names:
            holder: Any = positional if isinstance(name, int) else kwargs
            leaves, tree = flatten(holder[name])
            fresh = [variable(rec, leaf) for leaf in leaves]
            holder[name] = unflatten(tree, fresh)
            self.trees.append(tree)
            self.leaves += leaves
            self.inputs += [None if f is x else f.value for f, x in zip(fresh, leaves, strict=True)]
        apart, block = Block(), rec.blocks[-1]
        outer, rec.numbers.variables = (rec.numbers.variables, rec.numbers.variables.union(filter(None, self.inputs)))
        try:
            with rec.nested(apart), rec.draws.once(apart), rec.flow.differentiated():
                results, self.tree = flatten(rec.callee(fn)(*positional, **kwargs))
                self._are_arrays = [isinstance(leaf, np.ndarray) for leaf in results]
                apart.outputs = tuple(as_value(rec, leaf) for leaf in results)
        finally:
            rec.numbers.variables = outer
        written = written_from_outside(rec, apart)
        start = len(block.instrs)
        outputs = joined(rec, apart)
        self.instrs: list[Instr] = block.instrs[start:]
        self.outputs = outputs[: len(outputs) - len(written)]
        for value, content in zip(written, outputs[len(self.outputs) :], strict=True):
            write(wrap(rec, value), wrap(rec, content))

    @property
    def result(self) -> Any:
        """The result that the function has returned."""
        return unflatten(self.tree, self._of_their_kinds([wrap(self.rec, v) for v in self.outputs]))

    def _of_their_kinds(self, leaves: Sequence[Any]) -> list[Any]:
        """Leaves as arrays without axes, or as scalars, where those of the result are such."""
        return [
            x
            if not isinstance(x, Traced) or x.ndim
            else in_memory(x)
            if is_array
            else x[()]
            if isinstance(x, np.ndarray)
            else x
            for x, is_array in zip(leaves, self._are_arrays, strict=True)
        ]

    def tangents(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the result, from those of the leaves; zeros where it depends on none."""
        by_value = {
            v: op("cast", t, dtype=dtype_of(self.rec.dtype(v)))
            for v, t in zip(self.inputs, tangents, strict=True)
            if v is not None and t is not None
        }
        with self.rec.flow.differentiated():
            results = push_forward(self.rec, self.instrs, by_value, self.outputs)
        return unflatten(
            self.tree,
            self._of_their_kinds(
                [gradient_or_zeros(self.rec, wrap(self.rec, v), t) for v, t in zip(self.outputs, results, strict=True)]
            ),
        )

    def gradients(self, gradients: Iterable[tuple[int, Any]]) -> list[Any]:
        """One tree per argument: of the gradient for each float leaf, and None for all others."""
        floats = [v for v in self.inputs if v is not None]
        with self.rec.flow.differentiated():
            float_gradients = iter(pull_back(self.rec, self.instrs, gradients, floats))
        leaves = [
            None if value is None else gradient_or_zeros(self.rec, leaf, next(float_gradients))
            for value, leaf in zip(self.inputs, self.leaves, strict=True)
        ]
        trees, rest = [], leaves
        for tree in self.trees:
            trees.append(unflatten(tree, rest[: tree.leaves]))
            rest = rest[tree.leaves :]
        return trees


def outside(rec: Recorder, result: Any) -> Any:
    """A result as it is outside: under `no_grad`, nothing there is differentiated by it."""
    if not rec.flow.is_off:
        return result
    leaves, tree = flatten(result)
    return unflatten(
        tree,
        [
            op("stop_gradient", x, view_of=x) if isinstance(x, Recording) and rec.flow.may_end(x.value) else x
            for x in leaves
        ],
    )


def is_float(leaf: Any) -> bool:
    """True if a leaf of an argument, traced or not, has a gradient."""
    if isinstance(leaf, (Traced, TracedScalar)):
        return leaf.rec.dtype(leaf.value).kind in "fcV"
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "fcV"
    return isinstance(leaf, (float, complex))


def variable(rec: Recorder, leaf: Any) -> Any:
    """A float leaf as a value of its own; any other leaf itself."""
    if not is_float(leaf):
        return leaf
    fresh = op("positive", wrap(rec, as_value(rec, leaf)))
    owner = leaf.storage.owner if isinstance(leaf, Traced) and leaf.storage else None
    if isinstance(fresh, Traced) and owner:
        fresh = TracedArray(rec, fresh.value, owner=owner)
    return fresh


def written_from_outside(rec: Recorder, apart: Block) -> list[int]:
    """Have a block write to copies of the inputs that it writes to; returns these inputs.

    Its last outputs are what the copies hold in the end: no op with a gradient writes to what others read. Raises
    TraceError, at its line, where the block reads an input also by a view that was made outside.
    """
    writes = [instr for instr in apart.walk() if instr.op.writes]
    inputs = {v: instr for instr in writes if (v := memory_of(rec, instr.operands[0])) in rec.written}
    if not inputs:
        return []
    own = {v for instr in apart.walk() for v in (*instr.results, *(a for b in instr.blocks for a in b.args))}
    for value in {v for instr in apart.walk() for v in instr.operands} - own - inputs.keys():
        if (root := memory_of(rec, value)) in inputs:
            raise TraceError(
                "an array that is written to cannot be differentiated: the function reads a view of it that was made "
                "outside of it",
                loc=inputs[root].loc,
                hint="take the view inside of the function, or a copy outside: x[0].copy()",
            )
    copies = {v: rec.new_value(rec.hints[v], home=apart) for v in inputs}
    apart.replace(copies)
    apart.instrs[:0] = [Instr(op_named("copy"), (v,), (copy,)) for v, copy in copies.items()]
    apart.outputs = (*apart.outputs, *copies.values())
    return list(inputs)


def joined(rec: Recorder, apart: Block) -> tuple[int, ...]:
    """Append the instructions of a block to the current one, free of writes; returns its outputs.

    Raises TraceError, at their lines, for writes to memory that the block has not made.
    """
    if not any(instr.op.writes for instr in apart.walk()):
        append(rec, apart)
        return apart.outputs
    program = Program("differentiated", apart, rec.hints, rec.program.count)
    _, writes = functionalize(program, at_run_time=lambda write: True)
    if writes:
        raise TraceError(
            f"an array that is written to cannot be differentiated: {writes[0]}",
            loc=writes[0].loc,
            hint="build a new array in place of the write, or write to one made in the function",
        )
    return inline_block(rec, program.body)


def given_gradient(rec: Recorder, value: int) -> int:
    """A value of the block that is recorded, for the gradient of ``value``, which it is given."""
    gradient = rec.new_value(rec.hints[value])
    rec.shaped[gradient] = value
    return gradient


def reverse_half(
    rec: Recorder, outputs: Sequence[int], gradients: Callable[[list[tuple[int, Any]]], list[int]]
) -> Block:
    """A block that is given the gradients of ``outputs``, and yields what follows from them.

    ``gradients`` records that, from pairs of an output and its gradient.
    """
    apart = Block()
    with rec.nested(apart):
        apart.args = tuple(given_gradient(rec, v) for v in outputs)
        own_arguments(rec, apart)
        pairs = [(v, wrap(rec, g)) for v, g in zip(outputs, apart.args, strict=True)]
        apart.outputs = tuple(gradients(pairs))
    return apart


def gradient_or_zeros(rec: Recorder, leaf: Any, g: Any) -> Any:
    """A gradient as it is returned: of the dtype of its leaf, zeros where nothing depends on it."""
    if not isinstance(leaf, (Traced, np.ndarray)):  # numbers have one of their own dtype
        dtype = rec.dtype(as_value(rec, leaf))
        if g is None:
            return wrap(rec, rec.constant(dtype.type(0)))
        return op("to_tensor", g, dtype=F64) if isinstance(g, TracedScalar) else g
    return np.zeros_like(wrap(rec, as_value(rec, leaf))) if g is None else g


class ValueAndGrad:
    """``fn`` with its gradients, as a function that must be traced.

    Args:
        fn: has a float result of rank 0, or with ``has_aux`` a pair of it and anything.
        wrt: the arguments to differentiate by: a position or name, or a tuple of these.
        has_aux: see ``fn``.
        with_value: return the result, too.

    Attributes:
        is_plain: it is jitted without options of the user's.
    """

    only_traced: ClassVar[bool] = True
    is_plain: bool = False

    def __init__(self, fn: Callable, wrt: Selector | Sequence[Selector], has_aux: bool, with_value: bool) -> None:
        wraps(self, fn)
        self.fn, self.wrt, self.has_aux, self.with_value = fn, wrt, has_aux, with_value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rec = trace_in_progress()
        names = selected(self.fn, self.wrt, args, kwargs)
        recorded = Recorded(rec, self.fn, args, kwargs, names)
        result, aux = recorded.result, None
        if self.has_aux:
            if type(result) is not tuple or len(result) != 2:
                raise ArgumentError(
                    "with has_aux=True the function must return a pair",
                    loc=user_loc(),
                    hint="return loss, anything_else",
                )
            result, aux = result
        if all(v is None for v in recorded.inputs):
            raise ArgumentError(
                f"nothing can be differentiated by {self.wrt!r}: it holds no floats",
                loc=user_loc(),
                hint="name an argument with floats in wrt, or convert it first",
            )
        since = rec.program.count
        trees = recorded.gradients([(as_value(rec, result), _one(rec, result))])
        trees = in_own_memory(rec, trees, since)
        gradients = tuple(trees) if isinstance(self.wrt, (tuple, list)) else trees[0]
        if self.with_value:
            return outside(rec, ((result, aux), gradients) if self.has_aux else (result, gradients))
        return outside(rec, (gradients, aux) if self.has_aux else gradients)


class Jvp:
    """``fn`` with the derivative along tangents of its arguments, as a function that is traced."""

    only_traced: ClassVar[bool] = True

    def __init__(self, fn: Callable) -> None:
        self.__module__ = fn.__module__
        self.__name__ = f"jvp_{getattr(fn, '__name__', type(fn).__name__)}"
        self.fn = fn

    def __call__(self, args: tuple, tangents: tuple) -> Any:
        rec = trace_in_progress()
        recorded = Recorded(rec, self.fn, tuple(args), {}, range(len(args)))
        leaves = []
        for arg, tree, tangent in zip(args, recorded.trees, tangents, strict=True):
            leaves += _along(arg, tree, tangent)
        result, since = recorded.result, rec.program.count
        return outside(rec, (result, in_own_memory(rec, recorded.tangents(leaves), since)))


def _along(arg: Any, tree: TreeDef, tangent: Any) -> list[Any]:
    """The leaves of a tangent, None where it has None; raises ArgumentError for another tree."""
    leaves = leaves_like(tree, tangent)
    if leaves is None:
        raise ArgumentError(
            f"a tangent has another structure than its argument: {flatten(tangent)[1]}, not {tree}",
            loc=user_loc(),
            hint="give an array for each array, or None for zeros",
        )
    for leaf, primal in zip(leaves, flatten(arg)[0], strict=True):
        if leaf is not None and np.shape(leaf) != np.shape(primal):
            raise ArgumentError(
                f"a tangent has shape {np.shape(leaf)}, its argument {np.shape(primal)}", loc=user_loc()
            )
    return leaves


def trace_in_progress() -> Recorder:
    """The trace that this thread records; raises TraceError if there is none."""
    rec = current()
    if rec is None:
        raise trace_error("no function is being traced")
    return rec


def _one(rec: Recorder, loss: Any) -> Any:
    """The gradient of a loss by itself; raises ArgumentError for what is no loss."""
    value = as_value(rec, loss) if isinstance(loss, (Traced, TracedScalar, float)) else None
    if value is None or rec.dtype(value).kind not in "fV" or _shape(rec, value) != ():
        said = "no single array" if value is None else (f"{rec.dtype(value)} of shape {_shape(rec, value)}")
        raise ArgumentError(
            f"only a float without axes can be differentiated; the function returns {said}",
            loc=user_loc(),
            hint="reduce the result, as with .sum() or .mean(), or use pf.vjp",
        )
    return wrap(rec, rec.constant(rec.dtype(value).type(1)))


def _shape(rec: Recorder, value: int) -> Any:
    return rec.shape(value)


def selected(fn: Callable, wrt: Selector | Sequence[Selector], args: tuple, kwargs: dict[str, Any]) -> list[Selector]:
    """The places of the arguments named by ``wrt``: positions in ``args``, names in ``kwargs``.

    Raises ArgumentError for arguments that are not there, or are named twice.
    """
    names = list(positional_names(fn, len(args)))
    places: list[Selector] = []
    for name in wrt if isinstance(wrt, (tuple, list)) else (wrt,):
        place: Selector | None = None
        if isinstance(name, str):
            place = names.index(name) if name in names else name if name in kwargs else None
        elif type(name) is int and -len(args) <= name < len(args):
            place = name % len(args)
        elif type(name) is int and name >= 0:
            parameters = [*inspect.signature(fn).parameters]
            place = parameters[name] if name < len(parameters) else None
            place = place if place in kwargs else None
        if place is None or place in places:
            raise ArgumentError(
                f"wrt={wrt!r}: the call has no argument {name!r}"
                if place is None
                else f"wrt={wrt!r} names an argument twice",
                hint=f"its arguments are {', '.join(map(str, (*names, *kwargs)))}",
            )
        places.append(place)
    return places
