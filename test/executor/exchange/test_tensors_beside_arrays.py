"""Functions that close over tensors, called with tensors: NumPy does not compute with these beside arrays."""

from __future__ import annotations

import bdb
import sys
import time
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions import tensor_reads

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")  # NumPy's functions on tensors

X = torch.linspace(-1, 1, 24).reshape(4, 6)
W = torch.linspace(0, 1, 12).reshape(6, 2)
TABLE = {"w": W}


class Layer:
    def __init__(self) -> None:
        self.w = W.clone()

    def __call__(self, x):
        time.perf_counter_ns()  # no graph holds it
        return np.tanh(x @ self.w)


def helper(x, w=W):
    return x @ w


def product(x):
    return np.tanh(x @ W)


def timed(x):
    time.perf_counter_ns()
    return np.tanh(x @ TABLE["w"])


def of_helper(x):
    time.perf_counter_ns()
    return np.tanh(helper(x))


def shifted(x, y):
    x += y
    return x @ W


def counted(f, *names):
    return [f.state().counters[name] for name in names]


@contextmanager
def debugging():
    debugger, before = bdb.Bdb(), sys.gettrace()
    debugger.reset()
    sys.settrace(debugger.trace_dispatch)
    try:
        yield
    finally:
        sys.settrace(before)


def test_overlapping_arguments_are_the_graph_s():
    f = pf.jit(product, unsupported="python")
    for x in (X, X[:1].expand(5, 6), X[:, :1].expand(4, 6)):
        for _ in range(3):
            result = f(x)
            assert type(result) is torch.Tensor
            np.testing.assert_allclose(result.numpy(), np.tanh(x.numpy() @ W.numpy()), rtol=1e-6)
    assert counted(f, "python_calls") == [0]


def test_views_and_errors_are_the_graph_s():
    f = pf.jit(lambda x, k: (x.T, W if k is None else W[k]), unsupported="python")
    for _ in range(3):
        turned, same = f(X, None)
        assert same is W and torch.equal(turned, X.T)
    inverse = pf.jit(lambda x: np.linalg.inv(x + W[:2]), unsupported="python")
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            inverse(-W[:2])
    torch.testing.assert_close(inverse(torch.eye(2)), torch.linalg.inv(torch.eye(2) + W[:2]))
    assert counted(inverse, "python_calls") == [0]


@pytest.mark.parametrize(
    ("function", "within"),
    [
        (timed, nullcontext),
        (of_helper, nullcontext),
        (Layer(), nullcontext),
        (product, pf.disable_jit),
        (product, debugging),
        (product, lambda: np.errstate(all="raise")),
    ],
    ids=["dict", "default", "attribute", "disabled", "debugged", "float-errors"],
)
def test_python_gets_what_the_caller_gives(function, within):
    f = pf.jit(function, unsupported="python")
    wanted = torch.tanh(X @ W)
    for runs in (1, 3):  # before there is a graph, if any, and behind it
        for x in (X, X[:1].expand(4, 6)):
            with within():
                result = f(x)
            assert type(result) is torch.Tensor
            torch.testing.assert_close(result, torch.tanh(x @ W))
        out = torch.zeros(4, 2)
        with within():
            assert f.into(out, X) is out
        torch.testing.assert_close(out, wanted)
        for _ in range(runs):
            torch.testing.assert_close(f(X), wanted)


def test_writes_to_overlapping_arguments_are_pythons():
    f = pf.jit(shifted, unsupported="python")
    x = X.clone()
    for _ in range(3):
        torch.testing.assert_close(f(x, X), x @ W)
    for _ in range(2):
        version, y = x._version, x.clone()
        wanted = shifted(y, y)
        torch.testing.assert_close(f(x, x), wanted)
        assert torch.equal(x, y) and x._version > version
    assert counted(f, "python_calls") == [2]


def test_python_gets_arrays_where_no_tensor_is_read():
    """So that its results do not depend on who runs it: `std` of torch is another one."""

    def spread(x):
        time.perf_counter_ns()
        return x.std()

    f = pf.jit(spread, unsupported="python")
    for _ in range(3):
        np.testing.assert_allclose(f(X).numpy(), X.numpy().std(), rtol=1e-6)


SCALE: Any = 2.0
ROWS: list = []
LATER: dict = {"w": W.numpy()}


def of_variable(weight):
    def weighed(x):
        time.perf_counter_ns()
        return np.tanh(x @ weight)

    def change():
        nonlocal weight
        weight = W

    return weighed, change


def of_global(x):
    time.perf_counter_ns()
    return np.tanh(x @ W.numpy()) * SCALE


def of_items(x):
    time.perf_counter_ns()
    return np.tanh(x @ LATER["w"]) + len(ROWS)


def of_default(x, weight=LATER["w"]):
    time.perf_counter_ns()
    return np.tanh(x @ weight)


def none_yet(x):
    time.perf_counter_ns()
    return np.tanh(x @ W.numpy()) if ROWS == [] else x @ ROWS[0]


def of_helper_to_come(x):
    time.perf_counter_ns()
    return np.tanh(x @ W.numpy()) * (helper_to_come if "helper_to_come" in globals() else 1.0)  # noqa: F821


def comes(place, name, value):
    return lambda patch: patch.setitem(place, name, value)


LATE = {
    "global": (of_global, comes(globals(), "SCALE", torch.tensor(3.0))),
    "new-global": (of_helper_to_come, comes(globals(), "helper_to_come", torch.tensor(3.0))),
    "item": (of_items, comes(LATER, "w", W)),
    "default": (of_default, lambda patch: patch.setattr(of_default, "__defaults__", (W,))),
    "list": (none_yet, lambda patch: patch.setitem(globals(), "ROWS", [W])),
    "another-function": (of_default, lambda patch: patch.setattr(of_default, "__code__", timed.__code__)),
}


@pytest.mark.parametrize("where", ["variable", *LATE])
def test_tensors_that_come_later_are_found(monkeypatch, where):
    function, change = of_variable(W.numpy()) if where == "variable" else LATE[where]
    f = pf.jit(function, unsupported="python")
    for _ in range(3):
        np.testing.assert_allclose(f(X).numpy(), function(X.numpy()), rtol=1e-6)
    with monkeypatch.context() as patch:
        change(patch) if where != "variable" else change()
        for _ in range(3):
            torch.testing.assert_close(f(X), torch.as_tensor(function(X)))


def test_a_search_in_vain_holds_while_nothing_else_is_there(monkeypatch):
    f, searches = pf.jit(of_items, unsupported="python"), []
    finds = tensor_reads._Search.finds
    monkeypatch.setattr(tensor_reads._Search, "finds", lambda *args: searches.append(args) or finds(*args))
    for k in range(5):
        LATER["w"] = W.numpy() + k  # another array is no tensor
        f(X)
    LATER["w"] = W.numpy()
    assert len(searches) == 1


def test_results_of_into_may_be_tensors_of_torch():
    f = pf.jit(lambda x: torch.softmax(x, -1), unsupported="python")
    out = torch.zeros(4, 6)
    for _ in range(3):
        assert f.into(out, X) is out
        torch.testing.assert_close(out, torch.softmax(X, -1))
        out.zero_()
        f(X)
