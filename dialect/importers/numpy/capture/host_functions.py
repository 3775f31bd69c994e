"""`host`: functions of users that graphs call as they are, between kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, overload

import numpy as np

from ....errors import ArgumentError
from ....ops.host.call_text import CallTemplate, arguments_text
from ....ops.host.probing import Kind, ProbeOutcome, kinds_of, mapped, tried
from ....ops.host.rule import Rule, bound
from ....ops.host.users import enter
from ..handlers.host import RecordedCall
from ..python.users_code import JITTED, wraps
from ..tracing.current import current, trace_error
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.outputs import note_copy

_KEPT = 64  # kinds of arguments of which a function remembers what it gives


class HostFunction:
    """A function that traces do not look into: a graph calls it with real arrays.

    Args:
        function: the function.
        like: what tells the types of its results.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_name",
        "_outcomes",
        "_rule",
        "function",
    )  # what its dict holds is the user's

    def __init__(self, function: Callable[..., Any], like: Callable[..., Any]) -> None:
        wraps(self, function)
        self.function = function
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
        self._name = enter(self, ".".join(filter(None, (module, name or type(function).__name__))))
        self._rule = Rule(self._name, own=like)
        self._outcomes: dict[tuple[str, tuple[Kind, ...]], ProbeOutcome] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            return self._record(args, kwargs)
        # As in graphs, so that nobody can tell who has run a call.
        return mapped(_own, self.function(*args, **kwargs))

    def _record(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            names = [*bound(self._rule.function, args, named)]
        except TypeError as error:
            raise trace_error(str(error)) from None
        call = RecordedCall(self._rule)
        arguments = call.collected(args, named, names)
        outcome = self._outcome(arguments, call)
        results = op(
            "python_call",
            *call.operands,
            function=self._name,
            types=outcome.types,
            arguments=arguments_text(arguments),
            count=len(outcome.types),
        )
        parts = results if isinstance(results, tuple) else (results,)
        outs = [in_memory(x) if k in outcome.arrays else x for k, x in enumerate(parts)]
        for k, index in outcome.views:
            note_copy(outs[k], call.operands[index])
        return mapped(outs.__getitem__, outcome.structure)

    def _outcome(self, arguments: CallTemplate, call: RecordedCall) -> ProbeOutcome:
        kinds = kinds_of(self._rule, arguments, call.types)
        if kinds is None:
            raise trace_error(f"{self._name}: too little is known of what it is given")
        key = arguments_text(arguments), kinds
        outcome = self._outcomes.get(key)
        if outcome is None:
            try:
                outcome = tried(self._rule, arguments, kinds)
            except Exception as error:
                raise trace_error(
                    f"{self._name} raises {type(error).__name__} for small arrays of ones: {error}",
                    "give pf.host a function `like` with results of the dtypes and numbers of axes that this one has",
                ) from None
            if len(self._outcomes) < _KEPT:
                self._outcomes[key] = outcome
        return outcome

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<profuse.host of {self.function!r}>"


JITTED.add(HostFunction)


def _own(leaf: Any) -> Any:
    return leaf.copy() if type(leaf) is np.ndarray else leaf


@overload
def host(function: Callable[..., Any], *, like: Callable[..., Any] | None = ...) -> HostFunction: ...
@overload
def host(*, like: Callable[..., Any] | None = ...) -> Callable[[Callable], HostFunction]: ...
def host(function: Callable[..., Any] | None = None, *, like: Callable[..., Any] | None = None) -> Any:
    """Have graphs call a function as it is: Python runs it with real arrays, between kernels.

    For what a trace cannot see through, such as a function of a C library, that would make its
    caller Python's. Used as a decorator, bare or with ``like``. Outside of a trace a call is one of
    the function, too. Its results have to follow from its arguments, which it must not change: a
    graph calls it only if something needs the results, and may do so again with the same arguments.
    It gets arrays that cannot be written to, and its results are copied. Where it raises an
    exception, Python repeats the whole call. It has no gradient; `custom_vjp` states one.

    Args:
        function: takes arrays, numbers, and sequences of these; returns arrays and numbers, or
            tuples and lists of them. What it reads from elsewhere, it reads at each call.
        like: a function of the same parameters that returns what has the dtypes and the numbers of
            axes of the results; it is called with small arrays of ones in place of arrays. None =
            the function itself is, once for each kind of arguments.

    Raises ArgumentError for what cannot be called.
    """
    if function is None:
        return functools.partial(host, like=like)
    for fn in (function, like):
        if fn is not None and not callable(fn):
            raise ArgumentError(f"host takes a function, not {type(fn).__name__}")
    return HostFunction(function, like or function)
