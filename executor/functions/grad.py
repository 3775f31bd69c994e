"""`grad` and its kin: jitted functions that differentiate the function they were made of."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from ...dialect.autodiff.custom import Checkpoint, CustomVjp
from ...dialect.autodiff.derived_functions import Jvp, Selector, ValueAndGrad, is_float
from ...dialect.autodiff.pullback import Forward, backward, checked, pulled_in_trace
from ...dialect.errors import ArgumentError
from ...dialect.importers.numpy.tracing.operators import op
from ...dialect.importers.numpy.tracing.traced import Traced, is_on_tape, is_tracing
from ...dialect.importers.numpy.tracing.traced_scalar import TracedScalar
from ...dialect.ir.device import DeviceTensor
from ...dialect.trees.pytree import flatten, unflatten
from ..settings.events import log
from ..settings.knobs import knobs
from .function import GraphFunction
from .jit import jit


def grad(
    fn: Callable[..., Any], wrt: Selector | Sequence[Selector] = 0, *, has_aux: bool = False, **options: Any
) -> GraphFunction:
    """The function that computes the gradient of ``fn``, jitted with ``options`` of `jit`.

    Args:
        fn: a function in plain NumPy whose result is a float without axes; with ``has_aux`` a pair
            of it and anything else, which is returned beside the gradient.
        wrt: the arguments to differentiate by: positions or names, one or a tuple of them.

    The gradient of an argument has its structure: for each float array one of its dtype and shape,
    for each number a NumPy scalar, None for all other leaves. Of a complex argument it is
    ``dL/dRe + 1j * dL/dIm``. Within another trace, ``pf.grad`` again or `jit`, it joins that.

    Raises ArgumentError for arguments or results of another kind, TraceError for what cannot be
    differentiated, at its line.
    """
    return _made(fn, wrt, has_aux, False, "grad", options)


def value_and_grad(
    fn: Callable[..., Any], wrt: Selector | Sequence[Selector] = 0, *, has_aux: bool = False, **options: Any
) -> GraphFunction:
    """As `grad`, with the value: ``(value, gradient)``, or ``((value, aux), gradient)``.

    Both are computed by one graph, in which forward and backward fuse.
    """
    return _made(fn, wrt, has_aux, True, "value_and_grad", options)


def jvp(fn: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``fn(*args)``, and its derivative along ``tangents``: forward mode.

    A tangent has the structure and shapes of its argument; None, in the place of an array or of
    all that a container holds, stands for zeros. Raises
    ArgumentError for others, TraceError for what cannot be differentiated, at its line.
    """
    if len(args) != len(tangents):
        raise ArgumentError(f"jvp was given {len(args)} arguments and {len(tangents)} tangents")
    if is_on_tape(flatten((args, tangents))[0]):
        args, tangents = _off_tape("jvp", (args, tangents))
    return _jitted(Jvp, fn)(tuple(args), tuple(tangents))


def _off_tape(what: str, tree: Any) -> Any:
    from .tape_calls import off_tape

    return off_tape(what, tree)


def vjp(fn: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple]]:
    """``fn(*args)`` and its pullback: the function from a gradient of the result to the arguments'.

    The pullback takes a gradient of the structure and shapes of the result, None in place of an
    array for zeros, and returns a tuple of one gradient per argument, as `grad` does. It may be
    called often. It keeps what it needs of the call, by copies: later writes to the arguments do
    not reach it. Under a smaller ``knobs.activation_budget`` it keeps less and computes more again.
    Raises ArgumentError for a gradient of another structure or shape, TraceError for what cannot be
    differentiated.
    """
    leaves = flatten(args)[0]
    if is_tracing(leaves):
        return pulled_in_trace(fn, args)
    if is_on_tape(leaves):
        args = _off_tape("vjp", args)
    result, saved, token = _jitted(Forward, fn, None, knobs.activation_budget)(*args)

    def pull(gradient: Any) -> tuple:
        leaves, results = checked(gradient, result), flatten(result)[0]
        gradients = [_in_dtype_of(leaves[k], results[k]) for k in token.floats]
        return _backward(token, saved, gradients)

    return result, pull


def _in_dtype_of(gradient: Any, result: Any) -> Any:
    """A gradient in the dtype of its result; that of a device is there already, or is refused.

    None stands for zeros.
    """
    dtype = result.dtype if isinstance(result, DeviceTensor) else np.asarray(result).dtype
    if gradient is None:
        return np.zeros(np.shape(result), dtype)
    if not isinstance(gradient, DeviceTensor):
        return np.asarray(gradient, dtype)
    if gradient.dtype != dtype:
        raise ArgumentError(
            f"the gradient on {gradient.device} of a result of {dtype} is of {gradient.dtype}",
            hint=f"convert it to {dtype} with its library",
        )
    return gradient


_backward = jit(backward, name="pullback", unsupported="raise")


def stop_gradient(x: Any) -> Any:
    """``x``, an array or a tree of arrays, through which no gradient flows."""
    leaves, tree = flatten(x)
    if not (is_tracing(leaves) or is_on_tape(leaves)):
        return x
    stopped = [
        op("stop_gradient", leaf) if isinstance(leaf, (Traced, TracedScalar)) and is_float(leaf) else leaf
        for leaf in leaves
    ]
    return unflatten(tree, stopped)


def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``, of which a pullback keeps the arguments alone, and computes the rest again.

    Usable as a decorator. ``fn`` takes positional arguments; traced arrays that it reads must be
    among them, else TraceError is raised. A joint graph, of `grad` or `value_and_grad`, is fused as
    a whole and keeps nothing: there it changes nothing.
    """
    if not callable(fn):
        raise ArgumentError(f"checkpoint takes a function, not {type(fn).__name__}")
    return Checkpoint(fn)


def custom_vjp(functions: type) -> CustomVjp:
    """The function that a class describes, with a gradient of its own. Used as a decorator.

    The class has two functions: ``forward(*args)`` returns the result, and what ``backward`` needs
    (arrays, numbers, containers of these); ``backward(saved, gradient)`` takes that and the
    gradient of the result, and returns a tuple of one gradient per argument, None for zeros. A
    gradient of the only argument may stand without a tuple. Both
    are traced. Outside of a trace ``forward`` runs in NumPy. Forward mode is refused.

    Raises ArgumentError for a class without them, and where they return something else.
    """
    forward, backward = (getattr(functions, name, None) for name in ("forward", "backward"))
    if not (isinstance(functions, type) and callable(forward) and callable(backward)):
        raise ArgumentError(
            "custom_vjp takes a class with the functions forward and backward",
            hint="forward(*args) -> (result, saved); backward(saved, gradient) -> gradients",
        )
    return CustomVjp(forward, backward, functions.__name__, functions.__module__)


_made_of: OrderedDict[Any, dict[tuple, GraphFunction]] = OrderedDict()  # the one that was asked for last is last
_KEPT = 64  # functions: what is made of one keeps it, with all that it closes over
# Gradients without options, by what they are of.
_alive: WeakValueDictionary[tuple, GraphFunction] = WeakValueDictionary()
_asked_for: WeakKeyDictionary[Any, set[tuple]] = WeakKeyDictionary()  # functions, with the gradients of each
_times_made: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()
_TOO_OFTEN = 4  # functions made of the same code, each of which is traced anew


def _jitted(kind: type, fn: Any, *options: Any) -> GraphFunction:
    """The jitted ``kind(fn, *options)``, one for each function, or gradient of one."""
    what = kind.__name__.lower()
    if not callable(fn):
        raise ArgumentError(f"{what} takes a function, not {type(fn).__name__}")
    base, derivatives = _behind(fn)
    try:
        functions = _kept_with(base)
    except TypeError:  # not hashed
        return jit(kind(fn, *options), unsupported="raise")
    key = (kind, *options, *derivatives, knobs.changed)
    if key not in functions:
        if not functions:
            _note_made(base, {"forward": "vjp"}.get(what, what))
        name = f"{what}_{getattr(fn, '__name__', type(fn).__name__)}"
        functions[key] = jit(kind(fn, *options), name=name, unsupported="raise")
    return functions[key]


def _kept_with(base: Any) -> dict[tuple, GraphFunction]:
    """What is made of a function and kept with it; of too many functions, what is of the first ones is let go."""
    functions = _made_of.pop(base, None) or {}
    _made_of[base] = functions
    if len(_made_of) > _KEPT:
        _made_of.popitem(last=False)
    return functions


def _behind(fn: Any) -> tuple[Any, tuple]:
    """The function of which gradients have been taken, and these: equal ones are equal.

    ``pf.grad(f)`` makes another function each time, so that its derivatives cannot be kept with it.
    """
    derivatives: tuple = ()
    while isinstance(fn, GraphFunction) and type(derivative := fn._source.fn) is ValueAndGrad and derivative.is_plain:
        wrt = tuple(derivative.wrt) if isinstance(derivative.wrt, list) else derivative.wrt
        derivatives = (*derivatives, (wrt, derivative.has_aux, derivative.with_value))
        fn = derivative.fn
    return fn, derivatives


def _note_made(fn: Any, what: str) -> None:
    """Tell, once, where a derivative of the same code is made anew again and again."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    times = _times_made.setdefault(code, {})
    times[what] = times.get(what, 0) + 1
    if times[what] == _TOO_OFTEN:
        example = f"g = pf.{what}(f, …)" if what in ("grad", "value_and_grad") else "def f, once"
        log(
            "slower",
            getattr(fn, "__name__", ""),
            f"pf.{what} of the function at {code.co_filename}:{code.co_firstlineno} has been made "
            f"{_TOO_OFTEN} times, and each is traced and compiled anew; make it once and keep it: "
            f"{example}, outside of the loop",
        )


def _made(fn: Any, wrt: Any, has_aux: bool, with_value: bool, what: str, options: dict[str, Any]) -> GraphFunction:
    if not callable(fn):
        raise ArgumentError(f"{what} takes a function, not {type(fn).__name__}")
    for name in wrt if isinstance(wrt, (tuple, list)) else (wrt,):
        if type(name) not in (int, str):
            raise ArgumentError(
                f"wrt={wrt!r} must be a position or a name, or a tuple of these", hint="wrt=0, wrt='w', wrt=(0, 'b')"
            )
    # To read a signature takes longer than all else here.
    if options and (unknown := sorted(options.keys() - inspect.signature(jit).parameters.keys())):
        raise ArgumentError(
            f"{what} has no option {', '.join(unknown)}",
            hint="wrt= has the positions or names of arguments to differentiate by; other options are those of pf.jit",
        )
    is_plain = not options
    places = tuple(wrt) if isinstance(wrt, list) else wrt
    key = (fn, places, has_aux, with_value, knobs.changed)
    # Methods are equal only where their objects are the same one; what equality of others means is theirs to say.
    is_found_again = is_plain and type(fn) in (FunctionType, MethodType, GraphFunction)
    if is_found_again and (function := _alive.get(key)) is not None:
        return function
    _note_made(fn, what)
    derivative = ValueAndGrad(fn, wrt, has_aux, with_value)
    derivative.is_plain = is_plain
    options.setdefault("unsupported", "raise")  # Python has no gradients to run
    options.setdefault("name", f"{what}_{getattr(fn, '__name__', type(fn).__name__)}")
    function = jit(derivative, **options)
    if is_found_again:
        _alive[key] = function
        _keep_next(fn, key[1:], function)
    return function


def _keep_next(fn: Any, which: tuple, function: GraphFunction) -> None:
    """Keep the gradient of a function of which the same one has been asked for before, and nobody has kept it."""
    if type(fn) is MethodType:  # it lives for the call
        return
    asked_for = _asked_for.setdefault(fn, set())
    if which not in asked_for:
        asked_for.add(which)
        return
    base, _ = _behind(fn)
    with suppress(TypeError):  # not hashed
        _kept_with(base)[(fn, *which)] = function
