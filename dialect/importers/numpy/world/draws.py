"""Random draws of a traced function: host calls that each call of its graph begins with.

A draw is an effect: its order, and that it happens once, decide what all later draws give. So none
is an op, which passes might drop, merge or run again. What a method of `np.random.Generator` gives
is an input of the graph, and `Drawing` calls the methods, in the order of the program, before the
graph runs. That is the same as where they stand, because what a draw is given is known at the start
of the call: sizes and numbers that follow from the arguments, constants, arrays that are arguments
or are captured, results of earlier draws. Nothing is drawn while tracing: dtypes and shapes are
those of the same call on a generator made for it. What the rounds of a loop draw is one draw for
all of them (`round_draws`). All other draws are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ....errors import DTypeError, TraceError
from ....ir.dtypes import NUMBERS, dtype_of
from ....ir.symbolic import Sym
from ....ir.types import ScalarType, TensorType, type_of
from ..python.generators import is_own_generator, is_plain_generator
from ..tracing.current import trace_error
from ..tracing.trace_guards import Computed, Expr, NumberConstant, PassedNumber

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

# The methods that become draws, and the position of ``size`` among their arguments.
METHODS: dict[str, int] = {
    "random": 0,
    "standard_normal": 0,
    "standard_exponential": 0,
    "normal": 2,
    "uniform": 2,
    "integers": 2,
    "exponential": 1,
    "gamma": 2,
    "beta": 2,
    "poisson": 1,
    "binomial": 2,
    "choice": 1,
    "permutation": -1,
}
BEFORE_OUT = {"random": 2, "standard_normal": 2, "standard_exponential": 3}
_OF_ARRAYS = frozenset({"choice", "permutation"})  # a number in place of an array is a size
HINT = "draw them outside and pass them as an argument"
_CONSTANTS = (bool, int, float, complex, str, type(None), np.dtype, np.generic)
# What these compute of Python's numbers is what Python computes.
_EXACT = frozenset({"add", "sub", "mul", "neg"})
_READ = frozenset({"bit_generator", "_bit_generator", "__getstate__", "__reduce__", "__dict__", "deepcopy", "dumps"})


@dataclass(frozen=True)
class Input:
    """The value of an input of the graph in the place of an argument of a draw.

    That is an argument of the call, a captured array, or what an earlier draw has given.
    """

    value: int


@dataclass(frozen=True)
class Number:
    """A Python number that follows from the leaves of the call."""

    expr: Expr
    kind: type


@dataclass(eq=False)
class Draw:
    """One call of a generator's method.

    Attributes:
        generator: the generator.
        method: name of the method.
        args: what it is given, with `Input` and `Number` where calls differ.
        kwargs: the same, by name.
        value: the input of the graph that the result is.
        kind: of the result, as of `leaves.leaf_kind`.
        argument: position or name of the argument that the generator is; None = it is the same
            object in all calls.
        of_rounds: it is what all rounds of a loop draw, which may be more than memory has.
    """

    generator: Any
    method: str
    args: tuple
    kwargs: dict[str, Any]
    value: int
    kind: Any
    argument: int | str | None = None
    of_rounds: bool = False


def record(rec: Recorder, owner: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> int:
    """Record a draw; returns the input of the graph that has its result."""
    what = f"Generator.{name}"
    pairs = [_place(rec, x, what) for x in args]
    keywords = {k: _place(rec, x, what) for k, x in kwargs.items()}
    _check_shape(name, pairs, keywords, what)
    rec.draws.has_drawn = True
    # An example of the result: nothing is drawn from the user's generator.
    apart = np.random.Generator(np.random.PCG64(0))
    examples = [x for _, x in pairs], {k: x for k, (_, x) in keywords.items()}
    result = getattr(apart, name)(*examples[0], **examples[1])
    value, kind = _result(rec, result, what, (*examples[0], *examples[1].values()))
    places = tuple(p for p, _ in pairs), {k: p for k, (p, _) in keywords.items()}
    rec.draws.made.append(Draw(owner, name, *places, value, kind))
    rec.draws.examples[value] = result
    size = keywords.get("size", pairs[METHODS[name]] if 0 <= METHODS[name] < len(pairs) else None)
    shape = None if size is None else _sizes(size[0])
    if shape is not None and len(shape) == np.ndim(result):
        rec.draws.shapes[value] = shape
    return value


def _sizes(size: Any) -> tuple[int | Sym, ...] | None:
    """The shape that ``size`` asks for, if it follows from sizes and integers of the call."""
    items = [x.expr if type(x) is Number else x for x in (size if _is_list(size) else (size,))]
    sizes = tuple(x for x in items if isinstance(x, Sym) or type(x) is int)
    return sizes if len(sizes) == len(items) else None


def _is_list(x: Any) -> bool:
    return isinstance(x, (tuple, list))


def _check_shape(name: str, args: Sequence[tuple[Any, Any]], kwargs: dict[str, tuple[Any, Any]], what: str) -> None:
    """Raise TraceError where the contents of an array, or a draw, decide the shape of a result.

    Shapes that follow from the sizes and numbers of the call are what the graph is guarded for.
    """
    arguments = dict(enumerate(args)) | kwargs
    decide = [arguments.get("size"), arguments.get(METHODS[name])]
    if name in _OF_ARRAYS:
        decide += [x for key, x in arguments.items() if key not in (0, "a", "x", "p", 3)]
        first = next((arguments[key] for key in (0, "a", "x") if key in arguments), None)
        if first is not None and np.ndim(first[1]) == 0:
            decide.append(first)
    if any(x is not None and _holds_contents(x[0]) for x in decide):
        raise trace_error(f"{what} is given a size that is known only at run time", HINT)


def _holds_contents(place: Any) -> bool:
    if _is_list(place):
        return any(map(_holds_contents, place))
    return isinstance(place, Input)


def _result(rec: Recorder, result: Any, what: str, given: Sequence[Any]) -> tuple[int, Any]:
    """A new input of the graph for the result of a draw, and its kind."""
    if type(result) in NUMBERS:
        number: Any = type_of(result)
        return rec.new_value(ScalarType(number.dtype), home=rec.program.body), type(result)
    if isinstance(result, np.generic):
        value = rec.new_value(TensorType(dtype_of(result.dtype), ()), home=rec.program.body)
        rec.scalars.add(value)
        return value, type(result)
    if type(result) is not np.ndarray or not result.flags.c_contiguous or not result.flags.owndata:
        raise trace_error(f"{what} returns no array of its own", HINT)
    if any(isinstance(x, np.ndarray) and np.may_share_memory(result, x) for x in given):
        raise trace_error(f"{what} returns a part of its argument", HINT)
    try:
        dtype = dtype_of(result.dtype)
    except DTypeError as error:
        raise trace_error(f"{what}: {error.what}", HINT) from None
    if not result.dtype.isnative:
        raise trace_error(f"{what} returns an array of foreign byte order", HINT)
    value = rec.new_value(TensorType(dtype, result.shape), home=rec.program.body)
    return value, (result.dtype, result.ndim)


def places_of(rec: Recorder, args: Any, what: str) -> Any:
    """The places where calls find the arguments of a draw, in a tuple or dict as these are."""
    if isinstance(args, dict):
        return {key: _place(rec, x, what)[0] for key, x in args.items()}
    return tuple(_place(rec, x, what)[0] for x in args)


def _place(rec: Recorder, x: Any, what: str) -> tuple[Any, Any]:
    """An argument of a draw as calls find it, and as it is in the call that is traced."""
    from ..tracing.traced import TracedArray
    from ..tracing.traced_scalar import TracedScalar

    kind = type(x)
    if kind is TracedScalar:
        return _number(rec, x, what)
    if kind is TracedArray:
        return _array(rec, x, what)
    if kind in (tuple, list):
        pairs = [_place(rec, item, what) for item in x]
        return kind(p for p, _ in pairs), kind(e for _, e in pairs)
    if isinstance(x, _CONSTANTS) or (isinstance(x, type) and issubclass(x, (np.generic, *NUMBERS))):
        return x, x
    if kind is np.ndarray and id(x) in rec.captures.created:
        copy = x.copy()
        return copy, copy
    raise trace_error(f"{what} is given an object of type {kind.__name__}", HINT)


def _number(rec: Recorder, x: Any, what: str) -> tuple[Any, Any]:
    value = x.value
    if rec.draws.has(value):
        return Input(value), rec.draws.examples[value]
    number = rec.known.get(value)
    expr = rec.derivation.expr(value) if value in rec.known else None
    if expr is None or type(number) not in NUMBERS or not _is_exact(expr):
        raise _computed(what)
    if isinstance(expr, int):
        return expr, expr
    return Number(expr, type(number)), number


def _is_exact(expr: Expr) -> bool:
    if isinstance(expr, Computed):
        return expr.op in _EXACT and not expr.attrs and all(map(_is_exact, expr.args))
    return isinstance(expr, (int, Sym, PassedNumber, NumberConstant))


def _array(rec: Recorder, x: Any, what: str) -> tuple[Any, Any]:
    value = x.value
    if any(instr.op.writes for block in rec.blocks for instr in block.walk()):
        raise trace_error(f"{what} is given an array after the function has written to one", HINT)
    if value in rec.leaf_of:
        return Input(value), rec.leaves[rec.leaf_of[value]]
    for array, captured, _ in rec.captures.known.values():
        if captured == value and isinstance(array, np.ndarray):
            rec.draws.arrays.add(value)
            return Input(value), array
    draw = rec.draws.copies.get(value)
    if draw is not None and rec.draws.has(draw):
        return Input(draw), rec.draws.examples[draw]
    raise _computed(what)


def _computed(what: str) -> TraceError:
    return trace_error(f"{what} is given what the function has computed: draws come before the graph", HINT)


# --- after the trace ----------------------------------------------------------------------------


def settle(
    draws: Sequence[Draw], args: tuple, kwargs: dict[str, Any], held: Iterable[Any], names: set[str]
) -> tuple[Any, ...]:
    """Note where calls find the generators; returns those that no argument may be.

    Args:
        draws: those of a trace.
        args: the arguments of the call that was traced.
        kwargs: the same, by name.
        held: what the graph holds for, by identity.
        names: all names and texts in the code that was traced.

    Raises TraceError where that is not known.
    """
    places: dict[int, int | str] = {}
    for place, value in (*enumerate(args), *kwargs.items()):
        if is_plain_generator(value):
            places.setdefault(id(value), place)  # type: ignore[arg-type]
    fixed: dict[int, Any] = {}
    for value in held:
        # Tuples are compared item by item; the defaults of a function are one.
        for item in value if type(value) is tuple else (value,):
            if is_plain_generator(item):
                fixed[id(item)] = item
    if (places or draws) and names & _READ:
        raise TraceError("the function may read the state of a random generator", hint=HINT)
    for place in places.keys() & fixed.keys():
        raise TraceError(
            f"the random generator of argument {places[place]!r} is also one that the function reads by another name",
            hint="pass it under one name",
        )
    for draw in draws:
        draw.argument = places.get(id(draw.generator))
        if draw.argument is None and id(draw.generator) not in fixed and not is_own_generator(draw.generator):
            raise TraceError(
                f"Generator.{draw.method} is called on a generator that is neither an argument nor read by name",
                hint="pass the generator as an argument",
            )
        if draw.argument is not None:
            draw.generator = None
    return tuple(fixed.values()) if places else ()
