"""Random sequences of views and in-place writes against NumPy: tier 0, functionalised, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import profuse as pf
from every_case import fewer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from profuse.dialect.analysis.alias import Aliases
from profuse.dialect.analysis.functional import functionalize
from profuse.dialect.errors import TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.reasons import Kind
from profuse.executor.interpret.evaluate import evaluate

X = np.arange(1.0, 25.0).reshape(4, 6)
BOUND = st.one_of(st.none(), st.integers(-5, 5))
SLICE = st.builds(slice, BOUND, BOUND, st.sampled_from([None, 1, 2, -1, -2]))

# A step picks earlier arrays by number, modulo how many there are.
WHICH = st.integers(0, 30)
VIEW = st.one_of(
    st.tuples(st.just("slice"), WHICH, SLICE, SLICE),
    st.tuples(st.just("row"), WHICH, st.integers(0, 3)),
    st.tuples(st.sampled_from(["transpose", "flip", "expand", "swap", "split"]), WHICH),
    st.tuples(st.sampled_from(["reshape", "ravel", "copy", "fresh"]), WHICH),
)
WRITE = st.one_of(
    st.tuples(st.sampled_from(["add", "mul", "sub"]), WHICH, WHICH),
    st.tuples(st.sampled_from(["assign", "out", "number"]), WHICH, WHICH),
    st.tuples(st.sampled_from(["element", "mask"]), WHICH, st.integers(0, 3)),
    st.tuples(st.sampled_from(["loop", "branch", "rows"]), WHICH, WHICH),
)
STEPS = st.lists(st.one_of(VIEW, WRITE, WRITE), min_size=2, max_size=7)


def view(step: tuple, x: Any) -> Any:
    kind = step[0]
    if kind == "slice":
        return x[step[2], step[3]] if x.ndim > 1 else x[step[2]]
    if kind == "row":
        return x[step[2] % x.shape[0]] if x.ndim > 1 and x.shape[0] else x
    if kind == "split":
        return np.array_split(x, 2)[1]
    if kind in ("reshape", "ravel"):
        return x.reshape(-1) if kind == "reshape" else x.ravel()
    return {
        "transpose": lambda: x.T,
        "flip": lambda: np.flip(x),
        "expand": lambda: x[..., None],
        "swap": lambda: np.swapaxes(x, 0, -1),
        "copy": lambda: x.copy(),
        "fresh": lambda: x * 2,
    }[kind]()


def write(step: tuple, x: Any, other: Any) -> None:
    """One write to ``x``; nothing where the shapes do not fit, which is the same on every tier."""
    kind = step[0]
    fits = x.shape == other.shape
    if kind in ("add", "mul", "sub"):
        value = other if fits else 2
        if kind == "add":
            x += value
        elif kind == "mul":
            x *= value
        else:
            x -= value
    elif kind == "assign":
        x[...] = other if fits else 3
    elif kind == "out" and fits:
        np.minimum(x, other[::-1], out=x)
    elif kind == "number":
        x[1:] = x[:-1]
    elif kind == "element" and all(x.shape):
        x[(0,) * (x.ndim - 1) + (-1,)] = step[2]
    elif kind == "mask":
        x[x > step[2]] = 0
    elif kind == "loop":

        def body(i: Any, v: Any) -> Any:
            v += i
            x[:1] *= 2
            return v

        pf.fori_loop(0, 3, body, other if step[1] % 2 else x)
    elif kind == "rows" and x.ndim > 1 and all(x.shape):

        def body(i: Any, v: Any) -> Any:
            row = x[i]
            row += v
            x[i] *= 2
            x[0, :1] = i  # which the row of the first round sees
            return v + row.sum()

        pf.fori_loop(0, x.shape[0], body, 1.0)
    elif kind == "branch":

        def then(v: Any) -> Any:
            x[...] = x + 1
            return v * 2

        def otherwise(v: Any) -> Any:
            return v

        pf.cond(x.sum() > 20, then, otherwise, other)


def program(steps: list[tuple]) -> Any:
    """The function of a sequence of steps; it returns every array that it made."""

    def run(x: Any) -> tuple:
        arrays = [x * 1, x + 1]
        for step in steps:
            target = arrays[step[1] % len(arrays)]
            if step[0] in (
                "slice",
                "row",
                "transpose",
                "flip",
                "expand",
                "swap",
                "split",
                "reshape",
                "ravel",
                "copy",
                "fresh",
            ):
                arrays.append(view(step, target))
            else:
                write(step, target, arrays[step[2] % len(arrays)])
        return tuple(arrays)

    return run


def same(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@given(steps=STEPS, turned=st.booleans())
@settings(max_examples=fewer(60), deadline=None, suppress_health_check=list(HealthCheck))
@example(steps=[("slice", 0, slice(None, None, -1), slice(1, None, 2)), ("add", 2, 2)], turned=True)
def test_random_writes(steps: list[tuple], turned: bool) -> None:
    """R3.8: every array, views included, is what NumPy makes of it, on tier 0 and as pure ops."""
    x = np.asfortranarray(X) if turned else X
    run = program(steps)
    with np.errstate(all="ignore"):
        wanted = run(x)
        try:
            graph = trace(run, (x,))
        except TraceError as error:
            assert "memory order" in error.what
            assert any(step[0] in ("reshape", "ravel") for step in steps)
            return
        same(evaluate(graph.module, [x]), wanted)
        for at_run_time in (False, True):
            graph = trace(run, (x,))
            main = graph.module.main
            _, kept = functionalize(main, at_run_time=(lambda write: True) if at_run_time else None)
            same(evaluate(graph.module, [x]), wanted)
            if not kept:
                assert not Aliases(main.body, main.type_of).written()
            if at_run_time:
                assert all(reason.kind is not Kind.RUN_TIME_INDEX for reason in kept)


@given(steps=STEPS)
@settings(max_examples=fewer(8, 2), deadline=None, suppress_health_check=list(HealthCheck))
def test_random_writes_compiled(steps: list[tuple]) -> None:
    """R3.8: the optimised plan gives what NumPy gives."""
    run = program(steps)
    compiled = pf.jit(run)
    with np.errstate(all="ignore"):
        for x in (X, X, np.asfortranarray(X), X[:3]):
            wanted = run(x)
            try:
                found = compiled(x)
            except TraceError as error:
                assert "memory order" in error.what
                return
            same(found, wanted)
