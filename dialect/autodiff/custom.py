"""Functions that come with their own gradient, or compute it from their arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import MethodType
from typing import Any

from ..errors import ArgumentError
from ..importers.numpy.python.users_code import JITTED, wraps
from ..importers.numpy.tracing.current import current, evaluator, trace_error, user_loc
from ..importers.numpy.tracing.mutation import Storage, is_immutable, memory_of
from ..importers.numpy.tracing.operators import as_value, op, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.tracing.traced import Traced
from ..importers.numpy.world.own_draws import keys_again, noted_keys
from ..ir.program import Block
from ..ops.create import Constant
from ..ops.custom_rules import CustomRule, key_of
from ..trees.pytree import TreeDef, flatten, leaves_like, unflatten
from .derived_functions import joined, variable
from .pullback import pulled_in_trace
from .rerun import values_read


class CustomVjp:
    """A function with its own gradient.

    Args:
        forward: ``forward(*args) -> (result, saved)``.
        backward: ``backward(saved, gradient) -> gradients``: a tuple with one for each argument,
            of its structure, or None; ``gradient`` has the structure of the result. The gradient of
            the only argument may stand for itself.
    """

    __slots__ = ("__dict__", "__weakref__", "backward", "forward")  # what its dict holds is the user's
    forward_mode = False  # whether tangents may pass through ``forward``

    def __init__(self, forward: Callable, backward: Callable, name: str, module: str) -> None:
        self.forward, self.backward = forward, backward
        self.__name__ = self.__qualname__ = name
        self.__module__ = module

    def __call__(self, *args: Any) -> Any:
        rec = current()
        if rec is None:
            tape = evaluator()
            if tape is not None:
                return tape.call_custom(self, args)
            return pair(self.forward(*args), self.__name__)[0]
        originals, tree = flatten(args)
        # What the function reads from elsewhere is told from its arguments by these values.
        leaves = [variable(rec, leaf) for leaf in originals]
        apart = Block()
        with rec.nested(apart), rec.draws.once(apart):
            outcome = rec.callee(self.forward)(*unflatten(tree, leaves))
            result, saved = pair(outcome, self.__name__)
            saved_leaves, saved_tree = flatten(saved)
            result_leaves, result_tree = flatten(result)
            apart.outputs = tuple(as_value(rec, leaf) for leaf in (*saved_leaves, *result_leaves))
        self._check(rec, apart, leaves)
        outputs = [wrap(rec, v) for v in joined(rec, apart)]
        saved_leaves, result_leaves = outputs[: len(saved_leaves)], outputs[len(saved_leaves) :]
        rule = CustomRule(
            f"{self.__module__}.{self.__qualname__}",
            _Pull(self, tree, saved_tree, result_tree),
            (tree, saved_tree, result_tree),
            self.forward_mode,
        )
        results = _results(rec, rule, leaves, saved_leaves, result_leaves)
        pairs = zip(leaves, originals, strict=True)
        arguments = {leaf.value: x for leaf, x in pairs if isinstance(x, Traced) and leaf is not x}
        for result, leaf in zip(results, result_leaves, strict=True):
            argument = arguments.get(memory_of(rec, as_value(rec, leaf)))
            if argument is not None and not (is_immutable(argument) or is_immutable(result)):
                self._refuse_writes(argument, result)
        return unflatten(result_tree, results)

    def _refuse_writes(self, argument: Traced, result: Traced) -> None:
        """Have writes to an argument and to a result refused that are one array in NumPy, and are two in the graph."""
        storage = argument.storage or Storage()
        storage.owner, storage.input = f"an argument of {self.__name__} that it returns", None
        argument.storage = result.storage = storage

    def _check(self, rec: Recorder, apart: Block, leaves: Sequence[Any]) -> None:
        """Raise TraceError if the function reads what may have a gradient, and was not given."""
        own = {as_value(rec, leaf) for leaf in leaves}
        captured = (v for v in values_read(apart) if v not in own and rec.dtype(v).kind in "fcV")
        if any(v not in rec.captures.inputs and not _is_constant(rec, v) for v in captured):
            raise trace_error(
                f"{self.__name__} reads a traced array that it is not given",
                "pass it as an argument, so that it gets its gradient",
            )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<profuse.custom_vjp {self.__module__}.{self.__qualname__}>"


class Checkpoint(CustomVjp):
    """A function that is computed again in its pullback, which so needs its arguments alone."""

    __slots__ = ("fn",)
    forward_mode = True

    def __init__(self, fn: Callable) -> None:
        name = getattr(fn, "__name__", type(fn).__name__)
        module = getattr(fn, "__module__", None) or type(fn).__module__
        super().__init__(self._forward, self._backward, f"checkpoint of {name}", module)
        wraps(self, fn)
        self.fn = fn

    def _forward(self, *args: Any) -> Any:
        rec = current()
        if rec is None:
            return self.fn(*args), (args, [])
        with rec.draws.refused(), noted_keys() as keys:
            return rec.callee(self.fn)(*args), (args, keys)

    def _backward(self, saved: Any, gradient: Any) -> Any:
        (args, keys), rec = saved, current()
        tape = evaluator() if rec is None else None
        with keys_again(keys):
            if tape is not None:  # a trace that is run op by op there
                return tape.call_again(self.fn, args, gradient)
            with nullcontext() if rec is None else rec.draws.refused():
                return pulled_in_trace(self.fn, args)[1](gradient)


JITTED.update((CustomVjp, Checkpoint))


def _is_constant(rec: Recorder, value: int) -> bool:
    definition = rec.defs.get(value)
    return definition is not None and definition.op is Constant


def _results(
    rec: Recorder, rule: CustomRule, leaves: Sequence[Any], kept: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """The results of a function as those of its rule; integers have no gradient."""
    groups = [[as_value(rec, leaf) for leaf in group] for group in (leaves, kept, results)]
    operands = [wrap(rec, v) for group in groups for v in group]
    attrs = {"inputs": len(leaves), "saved": len(kept), "key": key_of(rule)}
    return [
        op("custom_result", *operands, index=k, **attrs) if rec.dtype(v).kind in "fcV" else wrap(rec, v)
        for k, v in enumerate(groups[2])
    ]


class _Pull:
    """Calls a backward function with what it expects; equal for one function and structure."""

    def __init__(self, custom: CustomVjp, args: TreeDef, saved: TreeDef, result: TreeDef) -> None:
        self.custom, self.trees = custom, (args, saved, result)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Pull):
            return False
        return self.custom is other.custom and self.trees == other.trees

    def __hash__(self) -> int:
        return hash((id(self.custom), self.trees))

    def __call__(self, saved: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        rec = current()
        args, saved_tree, result = self.trees
        gradient = unflatten(result, list(gradients))
        # On the tape, outside of traces, the function computes with arrays at once.
        backward = self.custom.backward if rec is None else rec.callee(self.custom.backward)
        grads = backward(unflatten(saved_tree, list(saved)), gradient)
        return [
            x if x is None or rec is None else wrap(rec, as_value(rec, x))
            for x in checked_gradients(self.custom, grads, args)
        ]


def checked_gradients(custom: CustomVjp, grads: Any, args: TreeDef) -> list[Any]:
    """The gradients that ``backward`` has returned, one for each leaf of the arguments.

    What is no tuple counts as the gradient of the only argument (R4.22). Raises ArgumentError for
    something else.
    """
    name, trees = custom.__name__, args.spec[2]
    if type(grads) is not tuple and len(trees) == 1:
        grads = (grads,)
    if type(grads) is not tuple or len(grads) != len(trees):
        raise ArgumentError(
            f"backward of {name} must return a tuple of {len(trees)} gradients, one for each argument",
            loc=user_loc(),
            hint="write None for an argument without gradient",
        )
    leaves: list[Any] = []
    for g, spec in zip(grads, trees, strict=True):
        part = leaves_like(TreeDef(spec, len(TreeDef(spec, 0).paths())), g)
        if part is None:
            raise ArgumentError(
                f"backward of {name} returns a gradient of another structure than its argument: {flatten(g)[1]}",
                loc=user_loc(),
                hint="return one array for each array of the argument",
            )
        leaves += part
    return leaves


def pair(outcome: Any, name: str) -> tuple[Any, Any]:
    """The pair that ``forward`` has returned; raises ArgumentError for something else than a pair."""
    if type(outcome) is not tuple or len(outcome) != 2:
        raise ArgumentError(
            f"forward of {name} must return a pair: its result, and what backward needs",
            loc=user_loc(),
            hint="return y, (x, y)",
        )
    return outcome
