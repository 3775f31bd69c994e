"""Functions of the tape for users: `array`, `gradients`, and the switches of gradient mode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import wraps
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, GradientError, TraceError
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.ir import gradient_mode
from ...dialect.trees.leaves import check_array
from . import functions as _functions  # noqa: F401 - gives `Array` its operators
from .array import Array, keep_apart
from .eager_builder import ArrayBuilder
from .engine import run
from .node import Node
from .saved import detect_anomaly, saved_arrays_hooks


def array(x: Any, dtype: Any = None, *, copy: bool | None = True, requires_grad: bool = False) -> Array:
    """An array of the tape with the elements of ``x``, of which gradients can be noted.

    Args:
        x: whatever `numpy.array` takes; of an `Array`, the elements.
        dtype: of the elements; None = that of ``x``.
        copy: as of `numpy.array`; with None it may be the memory of ``x``, to which only writes
            through the result are then counted.
        requires_grad: what is computed of it is noted, and `backward` gives it a ``grad``.

    Raises DTypeError where gradients of integers are asked for, and for dtypes that no graph has.
    """
    data = np.array(x.data if type(x) is Array else x, dtype, copy=copy)
    if data.dtype.char not in "fd":
        check_array(data, "pf.array: ")
    result = Array(data)
    if requires_grad:
        result.require_grad()
    return result


def gradients(
    outputs: Any,
    inputs: Any,
    gradients: Any = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> Any:
    """The gradients of ``inputs``, from those of ``outputs``; no ``grad`` is changed.

    Args:
        outputs: an `Array`, or a sequence of them.
        inputs: an `Array`, or a sequence of them: anything on the way to the outputs.
        gradients: one for each output, in its shape; None = 1, for outputs without axes.
        retain_graph: what is noted is kept, so that it can be gone through again.
        create_graph: gradients are noted themselves, and are `Array`; implies ``retain_graph``.
        allow_unused: None is the gradient of an input that no output depends on.

    Returns one ndarray, or NumPy scalar, for one input, and a tuple for a sequence. Raises
    GradientError for arrays that are not on the tape, and ArgumentError for gradients that do not
    fit. It is torch's ``autograd.grad``; `grad` makes a function that is compiled.
    """
    ends = (outputs,) if type(outputs) is Array else _sequence(outputs, "outputs")
    starts = (inputs,) if type(inputs) is Array else _sequence(inputs, "inputs")
    captures: dict[Node, list[tuple[int, int]]] = {}
    for k, x in enumerate(starts):
        node = x._node if x.base is None else x.node
        if node is None:
            raise GradientError(
                f"input {k} requires no gradient",
                hint="make it with pf.array(x, requires_grad=True), before what is differentiated",
            )
        if node in captures:
            captures[node].append((x.index, k))
        else:
            captures[node] = [(x.index, k)]
    roots = _roots(ends, gradients, create_graph)
    input_gradients = run(roots, captures, retain_graph=retain_graph or create_graph, create_graph=create_graph)
    if not create_graph:
        keep_apart(input_gradients)
    if not allow_unused:
        for k, g in enumerate(input_gradients):
            if g is None:
                raise GradientError(
                    f"no output depends on input {k}", hint="pass allow_unused=True, and its gradient is None"
                )
    if create_graph:  # also a gradient that depends on no array of the tape
        input_gradients = [g if g is None or type(g) is Array else Array(g) for g in input_gradients]
    return input_gradients[0] if type(inputs) is Array else tuple(input_gradients)


def backward(self: Array, gradient: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
    """Add the gradients of this array to ``grad`` of all leaves that it depends on.

    Args:
        gradient: that of this array, in its shape; None = 1, for an array without axes.
        retain_graph: what is noted is kept, so that a second call is possible.
        create_graph: gradients are noted themselves, and are `Array`; implies ``retain_graph``.

    Raises GradientError for an array that requires no gradient, and where what is needed was freed
    or written to; ArgumentError for a gradient that does not fit.
    """
    roots = _roots((self,), None if gradient is None else (gradient,), create_graph)
    run(roots, retain_graph=retain_graph or create_graph, create_graph=create_graph)


def _sequence(x: Any, what: str) -> Sequence[Array]:
    if current() is not None:
        raise _traced()
    if not isinstance(x, (list, tuple, np.ndarray, Mapping)) and isinstance(x, Iterable):
        x = tuple(x)  # such as the values of a dict
    if isinstance(x, (list, tuple)) and x:
        for y in x:
            if type(y) is not Array:
                break
        else:
            return x
    raise ArgumentError(
        f"{what} must be an Array, or a sequence of them", hint="pf.array(x, requires_grad=True) makes one"
    )


def _traced() -> TraceError:
    return TraceError("backward is called in a function that is traced", hint="use pf.grad or pf.vjp there")


def _roots(outputs: Sequence[Array], gradients: Any, create_graph: bool) -> list[tuple[Node, int, Any]]:
    if current() is not None:
        raise _traced()
    output_gradients: Sequence[Any] = (None,) * len(outputs)
    if gradients is not None:
        is_one = type(gradients) is Array or not isinstance(gradients, (list, tuple))
        output_gradients = (gradients,) if is_one else gradients
        if len(output_gradients) != len(outputs):
            raise ArgumentError(f"{len(outputs)} outputs have {len(output_gradients)} gradients")
    roots = []
    for y, g in zip(outputs, output_gradients):  # noqa: B905 - as many of both
        node = y._node if y.base is None else y.node
        if node is None:
            raise GradientError(
                "an array that requires no gradient is differentiated",
                hint="make what it depends on with pf.array(x, requires_grad=True), and compute "
                "it outside of pf.no_grad()",
            )
        g = _gradient_of(y, g, create_graph)
        roots.append((node, y.index, Array(g) if create_graph and type(g) is not Array else g))
    return roots


_ONES = {np.dtype(kind): kind(1) for kind in (np.float32, np.float64)}


def _gradient_of(y: Array, g: Any, create_graph: bool) -> Any:
    if g is None:
        data = y.data
        shape, dtype = data.shape, data.dtype
        if not shape and dtype in _ONES:
            return _ONES[dtype]
        if dtype.kind == "c" or (shape and y.data.size != 1):
            raise ArgumentError(
                f"a result of {dtype} with shape {shape} has no gradient by itself",
                hint="reduce it, as with .sum() or .mean(), or pass gradient=",
            )
        return np.ones(shape, dtype) if shape else dtype.type(1)
    if np.shape(g) != y.shape:
        raise ArgumentError(f"a gradient of shape {np.shape(g)} is given to a result of {y.shape}")
    if type(g) is Array:
        return g if create_graph else g.data
    if np.iscomplexobj(g) and y.dtype.kind != "c":
        raise ArgumentError(
            f"a complex gradient is given to a result of {y.dtype}", hint="give it the real part: gradient.real"
        )
    return np.asarray(g, y.dtype)[()]


class _ModeScope(ContextDecorator):
    """Sets gradient mode of this thread for a ``with`` block, or for the calls of a function.

    Of a generator function, for all that its generators run, and not for what runs between. Raises ArgumentError for a
    coroutine function: others run in its thread while it waits.
    """

    on = True

    def __new__(cls, function: Callable | None = None) -> Any:
        mode = super().__new__(cls)
        mode.before = []
        return mode if function is None else mode(function)

    before: list[tuple[bool, Any, bool]]

    def _recreate_cm(self) -> _ModeScope:
        # One for each call: threads may be in the function at once, each with a mode of its own.
        return type(self)()

    def __call__(self, function: Callable) -> Any:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise ArgumentError(
                f"pf.{type(self).__name__} is a decorator of a coroutine function, while which waits others run",
                hint=f"write with pf.{type(self).__name__}(): in it, around what does not wait",
            )
        if not inspect.isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return _scoped(function(*args, **kwargs), type(self))

        return generator

    def __enter__(self) -> None:
        rec = current()
        was_off = rec is not None and rec.flow.switch(self.on)
        self.before.append((gradient_mode.set_gradient_mode(self.on), rec, was_off))

    def __exit__(self, *_: Any) -> None:
        before, rec, was_off = self.before.pop()
        gradient_mode.set_gradient_mode(before)
        if rec is not None:
            rec.flow.is_off = was_off


def _scoped(generator: Any, scope: type[_ModeScope]) -> Any:
    """A generator that runs in a scope, which ends wherever it yields."""
    resume: Callable[..., Any] = generator.send
    sent: Any = None
    while True:
        with scope():
            try:
                value = resume(sent)
            except StopIteration as end:
                return end.value
        try:
            sent = yield value
            resume = generator.send
        except GeneratorExit:
            with scope():
                generator.close()
            raise
        except BaseException as error:
            resume, sent = generator.throw, error


class no_grad(_ModeScope):
    """Nothing that runs in a ``with pf.no_grad():`` block is noted on the tape.

    Also a decorator, ``@pf.no_grad``: nothing that the function, or a generator of it, runs is noted.
    """

    on = False


class enable_grad(_ModeScope):
    """Code in a ``with pf.enable_grad():`` block is noted, within `no_grad` as well.

    Also a decorator, ``@pf.enable_grad``.
    """


Array.backward = backward  # type: ignore[attr-defined]
ArrayBuilder.backward = staticmethod(gradients)

__all__ = ["Array", "array", "detect_anomaly", "enable_grad", "gradients", "no_grad", "saved_arrays_hooks"]
