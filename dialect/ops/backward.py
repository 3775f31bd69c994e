"""The ops of a captured backward run, beside the gradients of ops (R4.13 - R4.28).

Code of users, hooks above all, is called by `foreign` ops, which are neither moved across each
other nor run while the graph is made. As long as the graph has its five lists, what they hold is
handed to these ops as operands; once `lower_backward` has taken the lists apart, an op finds hooks,
packed data and leaves by its ``slots`` in the `CaptureFrame` of the run that is under way in the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import GradientError, InternalError
from ..ir.attrs import BOOL_ARRAY, I64, I64_ARRAY, STR, TYPES
from ..ir.op import EVERY, Attrs, Op, attr, operand, result
from ..ir.types import ListType, TensorType, Type
from .gradient_ops import SumTo
from .speculation import Subgraph

LISTS = ("inputs", "sizes", "scalars", "hooks", "packed_data")
"""The inputs of a captured graph, in this order (R4.13)."""
HOOK_TYPES = ("unpack_hook", "tensor_pre_hook", "pre_hook", "post_hook", "post_acc_grad_hook")


class CaptureFrame:
    """The objects that the foreign ops of one run of a captured graph find by number.

    Attributes:
        leaves, hooks, packed: lists that the run was given.
        written: is not empty if something was written to since the last call of code of users.
        check: raises GradientError if that is needed behind a hook, given the hook's number in the
            run, which ``numbers`` has.
    """

    __slots__ = ("check", "hooks", "leaves", "numbers", "packed", "written")

    def __init__(
        self,
        leaves: Sequence[Any],
        hooks: Sequence[Any],
        packed: Sequence[Any],
        written: Sequence[Any],
        check: Callable[[int], None],
        numbers: Sequence[int],
    ) -> None:
        self.leaves, self.hooks, self.packed = leaves, hooks, packed
        self.written, self.check, self.numbers = written, check, numbers

    def called(self, hook: int) -> None:
        """Look at what has been written to, when this one of ``hooks`` has been called."""
        if self.written:
            self.check(self.numbers[hook])


class _Running(threading.local):
    frame: CaptureFrame | None = None


RUNNING = _Running()


def capture_frame() -> CaptureFrame:
    """The objects of the run that is under way in the thread."""
    frame = RUNNING.frame
    if frame is None:
        raise InternalError("an op of a captured backward run is evaluated outside of one")
    return frame


class ListGet(Op, name="list_get"):
    """Element number ``index`` of a list. ``origin`` names the node that it comes from (R4.14)."""

    list = operand()
    out = result()
    index = attr(I64)
    origin = attr(STR, default="")
    aliases = {0: 0}
    no_gradient = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (TensorType(),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[0][attrs["index"]]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], ListType):
            yield f"operand 0 must be a list, not {types[0]}"
        if attrs["index"] < 0:
            yield "index must not be negative"


class CallGradient(Subgraph, name="call_gradient"):
    """The gradients that one node computes, by the private function made of its rule (R4.21).

    Operands are the gradients of the node's results, then what it has saved.
    """

    origin = attr(STR, default="")


class _Foreign(Op):
    """Family of ops that call code of users, with values of the graph."""

    foreign = True
    pure = False
    undifferentiable = "it is part of a backward run, which is captured after gradients"
    origin = attr(STR, default="")
    slots = attr(I64_ARRAY, default=())

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()


class _Given(_Foreign):
    """Family of foreign ops some of whose arguments are None, as a gradient may be undefined.

    ``present`` says which positions operands have; the others are None.
    """

    values = operand(variadic=True)
    outs = result(variadic=True)
    present = attr(BOOL_ARRAY, default=())

    @classmethod
    def spread(cls, attrs: Attrs, values: Sequence[Any]) -> list[Any]:
        """The arguments, with None where there is no operand."""
        rest = iter(values)
        return [next(rest) if there else None for there in attrs["present"]]


class CallHook(_Given, name="call_hook"):
    """Call a hook of a user's, of one of five kinds (R4.26).

    Operands are the hook and its arguments; results are what takes the place of those among the
    first ``replaced`` arguments that are there. A hook that returns None replaces nothing (R4.27).
    """

    hook_type = attr(STR)
    replaced = attr(I64, default=0)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        slots = attrs["slots"]
        if slots:
            frame = capture_frame()
            hook = frame.hooks[slots[0]]
            arguments: Sequence[Any] = args
            if attrs["hook_type"] == "unpack_hook":
                arguments = (frame.packed[slots[1]],)
            elif attrs["hook_type"] == "post_acc_grad_hook":
                arguments = (frame.leaves[slots[1]],)
        else:
            hook, *arguments = args
        there, count = attrs["present"], attrs["replaced"]
        values = tuple(cls.spread(attrs, arguments))
        if attrs["hook_type"] == "post_hook":
            values = values[:count], values[count:]
        outcome = hook(*values)
        if slots:
            frame.called(slots[0])
        gradients = (outcome,) if attrs["hook_type"] == "tensor_pre_hook" else outcome[:count] if count else ()
        return tuple([g for g, defined in zip(gradients, there, strict=False) if defined])

    @classmethod
    def source(
        cls, attrs: Attrs, operands: Sequence[str], results: Sequence[str], last: Container[str]
    ) -> Sequence[str] | None:
        """`evaluate` of the two kinds of hooks that are in use in every step, without a call of its own."""
        slots, kind = attrs["slots"], attrs["hook_type"]
        if kind == "tensor_pre_hook" and len(slots) == len(operands) == len(results) == 1:
            call = f"{results[0]} = calls.hooks[{slots[0]}]({operands[0]})"
        elif kind == "post_acc_grad_hook" and len(slots) == 2 and not results:
            call = f"calls.hooks[{slots[0]}](calls.leaves[{slots[1]}])"
        else:
            return None
        return call, f"if calls.written: calls.called({slots[0]})"

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if attrs["hook_type"] not in HOOK_TYPES:
            yield f"hook_type must be one of {', '.join(HOOK_TYPES)}, not {attrs['hook_type']}"
        bound = attrs["slots"]
        own = 0 if bound else 1
        from_frame = attrs["hook_type"] in ("unpack_hook", "post_acc_grad_hook") and bool(bound)
        if not from_frame and sum(attrs["present"]) + own != len(types):
            yield f"present names {sum(attrs['present'])} arguments of {len(types) - own}"


class CallBackward(_Given, name="call_backward"):
    """Call the gradient of a function that has one of its own (R4.22).

    Operands are what calls it (an element of ``hooks``), saved arrays, and gradients, which may be
    undefined; results are the gradients that are wanted. Where it returns None, they are zeros, of
    the types that ``validate_grads`` asks for.
    """

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        slots = attrs["slots"]
        if not slots:
            call, *arguments = args
            return tuple(call(*cls.spread(attrs, arguments)))
        frame = capture_frame()
        gradients = tuple(frame.hooks[slots[0]](*cls.spread(attrs, args)))
        frame.called(slots[0])
        return gradients

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        own = 0 if attrs["slots"] else 1
        if sum(attrs["present"]) + own != len(types):
            yield f"present names {sum(attrs['present'])} arguments of {len(types) - own}"


class AccumulateGrad(_Foreign, name="accumulate_grad"):
    """Add a gradient to that of a leaf, or make it the first one (R4.42).

    Operands are the leaf and the gradient.
    """

    values = operand(variadic=True)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        leaf = capture_frame().leaves[attrs["slots"][0]] if attrs["slots"] else args[0]
        if leaf is not None and args[-1] is not None:
            leaf.add_gradient(args[-1], _UNKNOWN)
        return ()

    @classmethod
    def source(
        cls, attrs: Attrs, operands: Sequence[str], results: Sequence[str], last: Container[str]
    ) -> Sequence[str] | None:
        """`evaluate` of a leaf that is found by its number; a gradient that nothing else has is the leaf's own."""
        if not attrs["slots"]:
            return None
        g, place = operands[0], attrs["slots"][0]
        holders = 1 if g in last else _UNKNOWN
        there = f"(leaf := calls.leaves[{place}]) is not None and {g} is not None"
        return (f"if {there}: leaf.add_gradient({g}, {holders})",)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        count = 1 if attrs["slots"] else 2
        if len(types) != count:
            yield f"takes {'the gradient' if count == 1 else 'a leaf and a gradient'}"


_UNKNOWN = -1 << 30  # holders of a gradient, so that the leaf copies what it is given


class ValidateGrads(Op, name="validate_grads"):
    """The gradients of a node as the edges want them: summed and cast, or refused (R4.19).

    ``types`` has the dtype and the sizes of each; a size that changes from run to run is unknown
    there, and an operand behind the gradients, in order.
    """

    values = operand(variadic=True)
    outs = result(variadic=True)
    types = attr(TYPES)
    origin = attr(STR, default="")
    aliases: ClassVar[dict[int, int]] = {}
    undifferentiable = "it is part of a backward run, which is captured after gradients"

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (result,)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return tuple(attrs["types"])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        unknown = 0
        for k, type_ in enumerate(attrs["types"]):
            if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
                yield f"types must have dtype and rank, which {k} has not: {type_}"
            else:
                unknown += sum(not isinstance(d, int) for d in type_.shape)
        if len(types) != len(attrs["types"]) + unknown:
            yield (f"takes {len(attrs['types'])} gradients and {unknown} sizes, not {len(types)} operands")

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        types = attrs["types"]
        sizes = iter(args[len(types) :])
        gradients = []
        for g, type_ in zip(args, types, strict=False):
            shape = tuple(d if isinstance(d, int) else next(sizes) for d in type_.shape)
            gradients.append(fitted(g, shape, type_.dtype.numpy, attrs["origin"]))
        return tuple(gradients)


def fitted(g: Any, shape: tuple[int, ...], dtype: np.dtype, what: str) -> Any:
    """A gradient in a shape and dtype: summed over what was broadcast, and cast; zeros for None.

    Raises GradientError for one that cannot be made of this shape.
    """
    if g is None:
        return np.zeros(shape, dtype)[()]
    g = np.asarray(g)[()]
    if g.shape != shape:
        try:
            g = SumTo.evaluate({}, g, np.ndarray(shape, dtype, bytes(dtype.itemsize), 0, (0,) * len(shape)))
        except ValueError:
            raise GradientError(
                f"{what or 'a node'} gives a gradient of shape {np.shape(g)} for one of {shape}",
                hint="return gradients of the shapes of the arguments",
            ) from None
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = np.real(g)
    return g if g.dtype == dtype else g.astype(dtype)


class FinalCallbacks(_Foreign, name="final_callbacks"):
    """The end of a backward run, at which what is queued for then is called (R4.29)."""

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return ()


USERS_CODE = (CallHook, CallBackward, AccumulateGrad)
"""Ops that call code of users, or change what it sees."""
KEPT = (*USERS_CODE, FinalCallbacks)
"""Ops that are kept, whoever reads their results (R4.40)."""

__all__ = [
    "EVERY",
    "HOOK_TYPES",
    "KEPT",
    "LISTS",
    "RUNNING",
    "USERS_CODE",
    "AccumulateGrad",
    "CallBackward",
    "CallGradient",
    "CallHook",
    "CaptureFrame",
    "FinalCallbacks",
    "ListGet",
    "ValidateGrads",
    "capture_frame",
    "fitted",
]
