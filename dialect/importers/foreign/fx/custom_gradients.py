"""Functions of torch with gradients of their own (`torch.autograd.Function`), noted in a graph beside their results.

A trace runs below torch's own differentiation, where a call of such a function leaves its forward half alone. While
`noting` is in force, its backward half is run as well, right behind, for a *slot* that stands for the gradient of the
result: what the graph then has between the slot and the gradients of the arguments is what it does with a gradient,
whatever else it reads. The reader of graphs takes these nodes out, as a block of the operator that joins all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import function as functions

from .gradient_stops import GradientStops

_library = torch.library.Library("profuse", "FRAGMENT")
for _schema, _result in (
    ("gradient_slot(Tensor x) -> Tensor", lambda x: torch.zeros_like(x)),
    ("custom_gradient(Tensor x, Tensor[] inputs, Tensor slot, Tensor?[] gradients) -> Tensor", lambda x, *_: x.clone()),
):
    _name = _schema.partition("(")[0]
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(_name, _result, "CompositeExplicitAutograd")
    _library.impl(_name, lambda x, *_: torch.empty_like(x), "Meta")
SLOT, JOINED = torch.ops.profuse.gradient_slot.default, torch.ops.profuse.custom_gradient.default
_Base: Any = functions._SingleLevelFunction
_state = threading.local()
_lock = threading.Lock()
_noting = 0  # traces under way, in all threads; torch's `apply` is another while there are any
_WITHIN = "within the backward half of a function"


class OwnGradientUnsupported(RuntimeError):
    """A function with a gradient of its own does something that no graph holds."""


class _Context(functions.FunctionCtx):
    """What both halves of a function get in the place of a node of torch's graph."""

    saved: tuple[Any, ...] = ()
    materialize_grads = True
    non_differentiable: tuple[Any, ...] = ()

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.saved

    def mark_dirty(self, *args: Any) -> None:
        raise OwnGradientUnsupported("an autograd.Function writes to its arguments")

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing: tangents are not taken here."""


@contextmanager
def noting(stops: GradientStops | None) -> Iterator[set[str]]:
    """Note the gradients of functions that have their own in the graph that is being traced by this thread.

    ``stops`` is in force; None = no gradients are taken. Gives the names of these functions. Raises
    OwnGradientUnsupported for what no graph holds.
    """
    names: set[str] = set()
    if stops is None:
        yield names
        return
    before = getattr(_state, "noted", None)
    _state.noted = names, stops
    _count(1)
    try:
        yield names
    finally:
        _state.noted = before
        _count(-1)


def _count(change: int) -> None:
    global _noting
    with _lock:
        _noting += change
        if _noting:
            _Base.apply = classmethod(_applied)
        elif "apply" in vars(_Base):
            del _Base.apply


@contextmanager
def _half(stops: GradientStops, noted: Any) -> Iterator[None]:
    """Run a half of a function, with what is noted of functions within it."""
    before = _state.noted
    _state.noted, stops.in_own_half = noted, True
    try:
        yield
    finally:
        _state.noted, stops.in_own_half = before, False


def _applied(cls: Any, *args: Any, **named: Any) -> Any:
    noted = getattr(_state, "noted", None)
    if noted is None or not any(map(_has_gradient, args)):
        return super(_Base, cls).apply(*args, **named)
    if named:
        raise OwnGradientUnsupported(f"{cls.__name__} is an autograd.Function with arguments by name")
    if noted == _WITHIN:
        raise OwnGradientUnsupported(f"{cls.__name__} is an autograd.Function in the backward pass of another")
    names, stops = noted
    names.add(cls.__name__)
    ctx = _Context(tuple(map(_has_gradient, args)))
    with _half(stops, None):  # functions within this one have no gradient in its forward half
        if functions._is_setup_context_defined(cls.setup_context):
            outputs = cls.forward(*args)
            cls.setup_context(ctx, args, outputs)
        else:
            outputs = cls.forward(ctx, *args)
    results = outputs if isinstance(outputs, tuple) else (outputs,)
    floats = [k for k, y in enumerate(results) if _has_gradient(y) and not any(y is z for z in ctx.non_differentiable)]
    if len(floats) != 1:
        raise OwnGradientUnsupported(f"{cls.__name__} is an autograd.Function with {len(floats)} results of floats")
    (place,) = floats
    own = (*args, *results)
    ctx.saved = tuple(
        t if any(t is x for x in own) or not _has_gradient(t) else stops.without_gradient(t) for t in ctx.saved
    )
    slot = SLOT(results[place])
    others = [torch.zeros_like(y) if ctx.materialize_grads and isinstance(y, torch.Tensor) else None for y in results]
    with _half(stops, _WITHIN):
        gradients = cls.backward(ctx, *(slot if k == place else zeros for k, zeros in enumerate(others)))
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    if len(gradients) < len(args) or any(g is not None for g in gradients[len(args) :]):
        raise OwnGradientUnsupported(f"{cls.__name__} gives {len(gradients)} gradients for {len(args)} arguments")
    pairs = [(x, g) for x, g in zip(args, gradients, strict=False) if _has_gradient(x)]
    joined = JOINED(results[place], [x for x, _ in pairs], slot, [g for _, g in pairs])
    if not isinstance(outputs, tuple):
        return joined
    return tuple(joined if k == place else y for k, y in enumerate(results))


def _has_gradient(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
