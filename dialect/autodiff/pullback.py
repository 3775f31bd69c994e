"""A function and its pullback as two graphs: the first returns what the second needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..errors import ArgumentError
from ..importers.numpy.capture.inline import inline_program
from ..importers.numpy.python.users_code import wraps
from ..importers.numpy.tracing.current import user_loc
from ..importers.numpy.tracing.operators import as_value, op, recorder_of, wrap
from ..importers.numpy.tracing.pytree import TreeDef, flatten, leaves_like, unflatten
from ..importers.numpy.tracing.recorder import Recorder
from ..ir.dtypes import dtype_of
from ..ir.program import Block, Program
from ..ir.types import TensorType
from .functional import Recorded, outside, reverse_half, trace_in_progress
from .residuals import residuals


class Pullback:
    """The reverse half of one traced function; equal only to itself.

    Attributes:
        program: inputs are the saved values, then the gradients of the float results; outputs are
            the leaves of the arguments' gradients.
        tree: the structure of the arguments' gradients.
        result: the structure of the result.
        floats: which leaves of the result are floats.
    """

    def __init__(
        self, program: Program, tree: TreeDef, result: TreeDef, floats: Sequence[int]
    ) -> None:
        self.program, self.tree, self.result, self.floats = program, tree, result, tuple(floats)


class Forward:
    """``fn`` with what its pullback needs, as a function that must be traced.

    Args:
        fn: the function.
        wrt: the positions of arguments that the pullback has gradients for; None = all.
        budget: which part of what its pullback would keep it may keep, as of `residuals`.
    """

    only_traced: ClassVar[bool] = True

    def __init__(self, fn: Callable, wrt: Sequence[int] | None = None, budget: float = 1.0) -> None:
        wraps(self, fn)
        self.fn, self.wrt, self.budget = fn, wrt, budget

    def __call__(self, *args: Any) -> Any:
        rec = trace_in_progress()
        wrt = range(len(args)) if self.wrt is None else self.wrt
        made = Recorded(rec, self.fn, args, {}, wrt)
        floats = [k for k, v in enumerate(made.outputs) if rec.dtype(v).kind in "fcV"]
        tree: Any = None

        def gradients(pairs: list[tuple[int, Any]]) -> list[int]:
            nonlocal tree
            leaves, tree = flatten(tuple(made.gradients(pairs)))
            return [as_value(rec, leaf) for leaf in leaves]

        apart = reverse_half(rec, [made.outputs[k] for k in floats], gradients)
        inputs = [v for v in made.inputs if v is not None]
        kept = residuals(rec, apart, inputs, budget=self.budget).kept
        body = Block((*kept, *apart.args), apart.instrs, apart.outputs)
        program = Program("pullback", body, dict(rec.hints), rec.program.count)
        token = Pullback(program, tree, made.tree, floats)
        return made.result, [_own(rec, v) for v in kept], token


def _own(rec: Recorder, value: int) -> Any:
    """A value as the pullback keeps it: the user may write to results, and to what they view."""
    kept = wrap(rec, value)
    return op("copy", kept) if isinstance(rec.hints[value], TensorType) else kept


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
    wanted, wanted_tree = flatten(result)
    leaves = leaves_like(wanted_tree, gradient)
    if leaves is None:
        raise ArgumentError(
            "the gradient has another structure than the result: "
            f"{flatten(gradient)[1]}, not {wanted_tree}",
            loc=user_loc(), hint="give an array for each array, or None for zeros",
        )  # fmt: skip
    for given, like in zip(leaves, wanted, strict=True):
        if given is not None and _shape(given) != _shape(like):
            raise ArgumentError(
                f"the gradient of a result of shape {_shape(like)} has shape {_shape(given)}",
                loc=user_loc(),
            )
    return leaves


def _shape(x: Any) -> Any:
    return getattr(x, "shape", ())


def pulled_in_trace(fn: Callable, args: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """The result of ``fn``, and its pullback, where both join the trace in progress."""
    made = Recorded(trace_in_progress(), fn, tuple(args), {}, range(len(args)))
    result = made.result
    rec = made.rec
    return (
        outside(rec, result),
        lambda gradient: outside(rec, _pulled(made, checked(gradient, result))),
    )


def pulled_through(
    fn: Callable, args: Sequence[Any], gradients: Sequence[Any]
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of the arguments of ``fn``, from one for each leaf of its result, or None."""
    return _pulled(Recorded(trace_in_progress(), fn, tuple(args), {}, range(len(args))), gradients)


def _pulled(made: Recorded, gradients: Sequence[Any]) -> tuple[Any, ...]:
    pairs = [
        (v, op("cast", g, dtype=dtype_of(made.rec.dtype(v))))
        for v, g in zip(made.outputs, gradients, strict=True)
        if g is not None and made.rec.dtype(v).kind in "fcV"
    ]  # fmt: skip
    return tuple(made.gradients(pairs))


__all__ = ["Forward", "Pullback", "backward", "checked", "pulled_in_trace", "pulled_through"]
