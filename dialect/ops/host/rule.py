"""The rule of a library's function that runs on the host, and the table of such functions.

A rule names the function. Dtypes, ranks and the number of results are those that the function gives
for tiny arrays (`probing`), so that they are the library's own. A rule adds what tiny arrays do not
tell: sizes of results, and which arguments have no part in dtypes and ranks.
"""

from __future__ import annotations

import importlib
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import IRError
from ...ir.types import MaybeDim, ScalarType, Shape, TensorType
from ..broadcast import broadcast_types
from .call_text import CallTemplate, OperandPlace, filled

# The sizes of each result; None for a result of which none is known.
Shapes = Sequence[Shape | None]
_MODULES = ("lapack", "fft", "grouped", "sorting", "statistics", "polynomials", "sets", "elements")
SCIPY = "scipy.special."


class BoundCall:
    """A call's arguments by the names of the function's parameters, defaults included.

    An operand is what is known of its type: a `TensorType` or a `ScalarType`.
    """

    def __init__(self, rule: Rule, arguments: CallTemplate, types: Sequence[Any]) -> None:
        self.rule, self.arguments, self.types = rule, arguments, types
        args, kwargs = arguments.filled(lambda index: types[index])
        self.given: Mapping[str, Any] = bound(rule.function, args, kwargs)

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    def shape(self, name: str) -> Shape | None:
        """Sizes of an argument that is an array or a number; None if the rank is not known."""
        return shape_of(self.given[name])

    def rank(self, name: str) -> int | None:
        """Number of axes of an argument."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def number(self, name: str) -> MaybeDim:
        """An argument that is an integer; None if it is not known."""
        value = self.given[name]
        if isinstance(value, ScalarType):
            return value.value  # type: ignore[return-value]
        return None if value is None else operator.index(value)


def shape_of(x: Any) -> Shape | None:
    """Sizes of an argument: of an operand's type, or of a plain value."""
    if isinstance(x, TensorType):
        return x.shape
    if isinstance(x, ScalarType):
        return ()
    if isinstance(x, (list, tuple)):
        inner = [shape_of(item) for item in x]
        if not inner:
            return (0,)
        return None if inner[0] is None else (len(inner), *inner[0])
    return np.shape(x)


@dataclass(frozen=True)
class Rule:
    """One function.

    Attributes:
        name: as graphs have it: ``numpy.linalg.inv``.
        shapes: sizes of the results, from the call; None = none are known.
        fill: what tiny arrays hold: ``ones``, ``eye`` (regular matrices), ``ramp`` (0, 1, 2), or
            ``tensor`` (arrays that are regular as operators on arrays).
        neutral: parameters whose numbers say nothing about dtypes and ranks, and a number that
            every tiny array admits. Numbers of a run may be given there.
        sized: names and axes of arguments whose sizes decide ranks or the number of results.
        refuse: why the dtype of results depends on contents, and what to do; None = it does not.
        gradient: its name in `gradients`; "" = there is none yet.
        own: the function itself, where the name is not where it is found.
    """

    name: str
    shapes: Callable[[BoundCall], Shapes | None] | None = None
    fill: str = "ones"
    neutral: Mapping[str, Any] | None = None
    sized: Callable[[Mapping[str, Any]], Iterable[tuple[str, int]]] | None = None
    refuse: Callable[[BoundCall], tuple[str, str] | None] | None = None
    gradient: str = ""
    own: Callable[..., Any] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function of the library that is installed; raises IRError if it has none."""
        return self.own or found_function(self.name)

    @property
    def shown(self) -> str:
        """The name by which users write it: ``np.linalg.inv``."""
        return self.name.replace("numpy.", "np.", 1)


@lru_cache(maxsize=1024)
def found_function(name: str) -> Callable[..., Any]:
    """The function of a dotted name; raises IRError if the library is missing, or has none."""
    library, _, path = name.partition(".")
    if name.startswith(SCIPY):
        library, path = SCIPY[:-1], name.removeprefix(SCIPY)
    try:
        target: Any = importlib.import_module(library)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise IRError(
            f"a graph calls {name}, which cannot be found: {error}",
            hint="install the library with which the graph was made",
        ) from None
    return target


@lru_cache(maxsize=1024)
def parameters(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None if it tells none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def bound(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of parameters, with defaults; TypeError if they do not fit.

    Those of a function without a signature are named ``x0``, ``x1``, ….
    """
    signature = parameters(function)
    if signature is None:
        return {f"x{k}": x for k, x in enumerate(args)} | dict(named)
    binding = signature.bind(*args, **named)
    binding.apply_defaults()
    return dict(binding.arguments)


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule of the tables by the function's name."""
    by_name: dict[str, Rule] = {}
    for name in _MODULES:
        module = importlib.import_module(f"{__package__}.{name}")
        by_name.update((rule.name, rule) for rule in module.RULES)
    return by_name


@lru_cache(maxsize=1024)
def rule_named(name: str) -> Rule:
    """The rule of a function; raises IRError for one that has none, which is never called.

    Ufuncs of NumPy and of ``scipy.special`` have the rule of elementwise functions.
    """
    rule = rules().get(name)
    if rule is not None:
        return rule
    if name.startswith(SCIPY) or name.count(".") == 1:
        function = found_function(name)
        if isinstance(function, np.ufunc) and function.signature is None:
            return _elementwise(name, function.nout)
    ufunc, _, method = name.rpartition(".")
    if method in _METHODS and ufunc.startswith("numpy."):
        own = found_function(ufunc)
        if isinstance(own, np.ufunc) and own.nin == 2 and own.nout == 1:
            return Rule(name, _METHODS[method])
    raise IRError(f"{name} is no function that a graph may call", hint="dialect/ops/host has the table of functions")


# Methods of ufuncs, with the sizes of their results.
_METHODS: Mapping[str, Callable[[BoundCall], Shapes | None] | None] = {
    "accumulate": lambda call: [shape_of(call.types[0])],
    "reduce": None,
    "reduceat": None,
}


def _elementwise(name: str, results: int) -> Rule:
    """The rule of a ufunc: each result has the shape that the operands are broadcast to."""
    return Rule(name, lambda call: [broadcast_types(call.types)] * results)


@cache
def _by_function() -> dict[Any, str]:
    names = {}
    for name, rule in rules().items():
        try:
            names[rule.function] = name
        except IRError:
            continue  # this version of the library does not have it
    return names


def name_of_function(function: Any) -> str | None:
    """The name by which graphs call a function; None if it has no rule."""
    if isinstance(function, np.ufunc):
        return _name_of_ufunc(function)
    try:
        return _by_function().get(function)
    except TypeError:
        return None  # unhashable: no function


def _name_of_ufunc(ufunc: np.ufunc) -> str | None:
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        full_name = f"numpy.{name}"
        return full_name if ufunc.signature is None or full_name in rules() else None
    if ufunc.signature is not None:
        return None
    import sys

    special = sys.modules.get(SCIPY[:-1])  # whoever has one of its ufuncs has loaded it
    return f"{SCIPY}{name}" if getattr(special, name, None) is ufunc else None


__all__ = [
    "BoundCall",
    "CallTemplate",
    "OperandPlace",
    "Rule",
    "bound",
    "filled",
    "name_of_function",
    "rule_named",
    "rules",
    "shape_of",
]
