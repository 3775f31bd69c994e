"""A function and its pullback as two graphs: the first returns what the second needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..analysis.alias import block_content_uses
from ..errors import ArgumentError
from ..importers.numpy.capture.inline import inline_program
from ..importers.numpy.python.users_code import wraps
from ..importers.numpy.tracing.current import user_loc
from ..importers.numpy.tracing.mutation import memory_of
from ..importers.numpy.tracing.operators import as_value, op, recorder_of, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.tracing.traced import Traced
from ..ir.dtypes import dtype_of
from ..ir.program import Block, Program
from ..ir.types import TensorType
from ..trees.pytree import TreeDef, flatten, leaves_like, unflatten
from .derived_functions import Recorded, outside, reverse_half, trace_in_progress
from .own_memory import End, in_own_memory
from .rerun import append
from .residuals import residuals


class Pullback:
    """The reverse half of one traced function; equal only to itself.

    Attributes:
        program: inputs are the saved values, then the gradients of the float results; outputs are
            the leaves of the arguments' gradients.
        tree: the structure of the arguments' gradients.
        result: the structure of the result.
        floats: which leaves of the result are floats.
        borrowed: where the caller finds the last of the saved values, which it has itself: the number of an
            argument, or of a leaf of the result as its complement (``~number``).
        shaped: likewise for the values in front of these, of which nothing but the shape is read: they may be
            written to.
    """

    def __init__(
        self,
        program: Program,
        tree: TreeDef,
        result: TreeDef,
        floats: Sequence[int],
        borrowed: Sequence[int] = (),
        shaped: Sequence[int] = (),
    ) -> None:
        self.program, self.tree, self.result, self.floats = program, tree, result, tuple(floats)
        self.borrowed, self.shaped = tuple(borrowed), tuple(shaped)


class Forward:
    """``fn`` with what its pullback needs, as a function that must be traced.

    Args:
        fn: the function.
        wrt: the positions of arguments that the pullback has gradients for; None = all.
        budget: which part of what its pullback would keep it may keep, as of `residuals`.
        borrows: the caller keeps arguments and results itself where the pullback needs them, and sees to it that
            nobody writes to them; each argument is one array, and so is each leaf of the result.
    """

    only_traced: ClassVar[bool] = True

    def __init__(
        self, fn: Callable, wrt: Sequence[int] | None = None, budget: float = 1.0, borrows: bool = False
    ) -> None:
        wraps(self, fn)
        self.fn, self.wrt, self.budget, self.borrows = fn, wrt, budget, borrows

    def __call__(self, *args: Any) -> Any:
        rec = trace_in_progress()
        wrt = range(len(args)) if self.wrt is None else self.wrt
        recorded = Recorded(rec, self.fn, args, {}, wrt)
        floats = [k for k, v in enumerate(recorded.outputs) if rec.dtype(v).kind in "fcV"]
        tree: Any = None

        def gradients(pairs: list[tuple[int, Any]]) -> list[int]:
            nonlocal tree
            since = rec.program.count
            trees = tuple(recorded.gradients(pairs))
            leaves, tree = flatten(trees if self.borrows else in_own_memory(rec, trees, since))
            return [as_value(rec, leaf) for leaf in leaves]

        apart = reverse_half(rec, [recorded.outputs[k] for k in floats], gradients)
        inputs = [v for v in recorded.inputs if v is not None]
        # What the caller keeps costs nothing, and an array tells a kernel more than its sizes as numbers do.
        places = _places(rec, args, wrt, recorded) if self.borrows else {}
        kept = residuals(rec, apart, inputs, in_memory=places, budget=self.budget, shaped=places).kept
        read = block_content_uses(apart)
        borrowed = [v for v in kept if v in places and v in read]
        shaped = [v for v in kept if v in places and v not in read]
        kept = [v for v in kept if v not in places]
        body = Block((*kept, *shaped, *borrowed, *apart.args), apart.instrs, apart.outputs)
        program = Program("pullback", body, dict(rec.hints), rec.program.count)
        places_of = ([places[v] for v in group] for group in (borrowed, shaped))
        token = Pullback(program, tree, recorded.tree, floats, *places_of)
        if self.borrows:
            return recorded.result, [_unshared(rec, v) for v in kept], token
        return recorded.result, [_own(rec, v) for v in kept], token


def _places(rec: Recorder, args: Sequence[Any], wrt: Sequence[int], recorded: Recorded) -> dict[int, int]:
    """Where a caller finds values: see `Pullback.borrowed`."""
    places = {v: ~k for k, v in enumerate(recorded.outputs) if isinstance(rec.hints[v], TensorType)}
    inputs = {k: as_value(rec, x) for k, x in enumerate(args) if isinstance(x, Traced)}
    inputs.update((k, v) for k, v in zip(wrt, recorded.inputs, strict=True) if v is not None)
    return {**places, **{v: k for k, v in inputs.items()}}


def _unshared(rec: Recorder, value: int) -> Any:
    """A value of which nobody else has the memory, which is copied only where that is not known."""
    return wrap(rec, value) if memory_of(rec, value) == value else _own(rec, value)


def _own(rec: Recorder, value: int) -> Any:
    """A value as the pullback keeps it: the user may write to results, and to what they view."""
    own = wrap(rec, value)
    return op("copy", own) if isinstance(rec.hints[value], TensorType) else own


class _Backward:
    """The gradients of the arguments, as a function that must be traced."""

    only_traced: ClassVar[bool] = True

    def __call__(self, token: Pullback, saved: list[Any], gradients: list[Any]) -> Any:
        rec = recorder_of()
        operands = [as_value(rec, x) for x in (*saved, *gradients)]
        outputs = inline_program(rec, token.program, operands)
        return unflatten(token.tree, [wrap(rec, v) for v in outputs])


backward = _Backward()


def checked(gradient: Any, result: Any) -> list[Any]:
    """The leaves of a gradient, one for each of the result's; None for zeros.

    Raises ArgumentError for a gradient of another structure or of other shapes.
    """
    result_leaves, result_tree = flatten(result)
    leaves, tree = leaves_like(result_tree, gradient), flatten(gradient)[1]
    if leaves is None or tree.leaves > result_tree.leaves:  # more, where the result has None, say
        raise ArgumentError(
            f"the gradient has another structure than the result: {tree}, not {result_tree}",
            loc=user_loc(),
            hint="give an array for each array, or None for zeros",
        )
    for leaf, like in zip(leaves, result_leaves, strict=True):
        if leaf is not None and _shape(leaf) != _shape(like):
            raise ArgumentError(
                f"the gradient of a result of shape {_shape(like)} has shape {_shape(leaf)}", loc=user_loc()
            )
        if _is_complex(leaf) and not _is_complex(like):
            raise ArgumentError(
                "a complex gradient is given to a real result",
                loc=user_loc(),
                hint="give it the real part: gradient.real",
            )
    return leaves


def _shape(x: Any) -> Any:
    return getattr(x, "shape", ())


def _is_complex(x: Any) -> bool:
    return type(x) is complex or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def pulled_in_trace(fn: Callable, args: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """The result of ``fn``, and its pullback, where both join the trace in progress."""
    recorded = Recorded(trace_in_progress(), fn, tuple(args), {}, range(len(args)))
    rec, result, end = recorded.rec, recorded.result, End(recorded.rec)

    def pull(gradient: Any) -> Any:
        leaves, since, apart = checked(gradient, result), rec.program.count, Block()
        with rec.nested(apart):
            gradients = end.keep(apart, _pulled(recorded, leaves))
        append(rec, apart)
        return outside(rec, in_own_memory(rec, gradients, since))

    return outside(rec, result), pull


def pulled_through(fn: Callable, args: Sequence[Any], gradients: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of the arguments of ``fn``, from one for each leaf of its result, or None."""
    return _pulled(Recorded(trace_in_progress(), fn, tuple(args), {}, range(len(args))), gradients)


def _pulled(recorded: Recorded, gradients: Sequence[Any]) -> tuple[Any, ...]:
    pairs = [
        (v, op("cast", g, dtype=dtype_of(recorded.rec.dtype(v))))
        for v, g in zip(recorded.outputs, gradients, strict=True)
        if g is not None and recorded.rec.dtype(v).kind in "fcV"
    ]
    return tuple(recorded.gradients(pairs))
