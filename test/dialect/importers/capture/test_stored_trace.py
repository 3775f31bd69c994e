"""Traces kept as JSON data: they come back equal, and nothing but what was written is read."""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.inline import inline_trace
from profuse.dialect.importers.numpy.capture.stored_trace import (
    trace_from_json,
    trace_to_json,
    tree_from_json,
    tree_to_json,
)
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.trees.pytree import flatten

W = np.arange(6.0).reshape(2, 3)
Pair = namedtuple("Pair", "x y")


def mixed(p, *, mode, n):
    out = {"y": np.tanh(p["x"]) @ W * n, "rest": (mode, None, [p["b"] + 1])}
    for _ in range(p["x"].shape[0]):
        out["y"] = out["y"] + 1
    return out


def stored(made):
    data = json.loads(json.dumps(trace_to_json(made)))
    return trace_from_json(data, made.captured)


def mixed_trace():
    p = OrderedDict(x=np.ones((4, 2)), b=np.float32(2))
    return trace(mixed, (p,), {"mode": "fast", "n": 3})


def test_a_trace_comes_back_equal():
    made = mixed_trace()
    back = stored(made)
    assert back.module.to_mlir() == made.module.to_mlir()
    for name in ("in_tree", "out_tree", "guards", "kinds", "names", "strict"):
        assert getattr(back, name) == getattr(made, name), name
    assert [g.explain() for g in back.guards] == [g.explain() for g in made.guards]
    assert made.guards, "the loop bakes a size in"


def test_guards_hold_for_the_same_arguments():
    back = stored(mixed_trace())
    for rows, accepted in ((4, True), (5, False)):
        leaves, _ = flatten(((OrderedDict(x=np.ones((rows, 2)), b=np.float32(2)),), {"n": 3}))
        assert back.accepts(leaves) is accepted


def integers(x, n, scale):
    chosen = [n // -3 % 4, max(n, 0) - 7, -(x.shape[0] // 2), x.shape[1] // n]
    return x + sum(len(range(k)) for k in chosen) if n * scale < 2.5 else x


@pytest.mark.parametrize("n", [-5, 3])
def test_integers_come_back_equal(n):
    """A number may be negative, which its name in the data must not forget."""
    made = trace(integers, (np.ones((5, 3)), n, 0.5), {})
    back = stored(made)
    assert back.guards == made.guards and len(made.guards) > 4, made.explain()
    for other in range(-9, 9):
        for rows in (4, 5, 6):
            leaves = [np.ones((rows, 3)), other, 0.5]
            assert back.accepts(leaves) is made.accepts(leaves)


@pytest.mark.parametrize("n", [-5, 3])
def test_guards_hold_where_the_graph_joins_another_trace(n):
    def outer(x, n, scale):
        return inline_trace(made, [x, n, scale])

    made = stored(trace(integers, (np.ones((5, 3)), n, 0.5)))
    joined = trace(outer, (np.ones((5, 3)), n, 0.5))
    for other in range(-9, 9):
        for rows in (1, 4, 5):
            leaves = [np.ones((rows, 3)), other, 0.5]
            assert joined.accepts(leaves) is made.accepts(leaves)


@pytest.mark.parametrize(
    "tree", [1.5, (1, [2.0, ()]), {"a": {2: True, None: (1j,)}}, OrderedDict(b=1, a=("text", None))]
)
def test_structures(tree):
    leaves, found = flatten(tree)
    back = tree_from_json(json.loads(json.dumps(tree_to_json(found))))
    assert back == found and hash(back) == hash(found)
    assert repr(back.unflatten(leaves)) == repr(tree)


@pytest.mark.parametrize("argument", [Pair(np.ones(2), np.ones(2)), np.sin])
def test_what_only_code_can_find_is_refused(argument):
    made = trace(lambda a: np.ones(3), (argument,))
    with pytest.raises(pf.ArgumentError, match="cannot be saved"):
        trace_to_json(made)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda d: d["names"].clear() or d.update(kinds=[]),
        lambda d: d.update(in_tree=["leaf"]),
        lambda d: d.update(out_tree=["pair", None, []]),
        lambda d: d["in_tree"].__setitem__(0, "namedtuple"),
        lambda d: d["guards"][0].__setitem__(0, ["call", "os.system"]),
        lambda d: d["guards"][0].__setitem__(0, ["integer", "9**9"]),
        lambda d: d["guards"][0].__setitem__(0, ["integer", "x0 + 1"]),
        lambda d: d["guards"][0].__setitem__(0, ["dim", 0, 0]),
        lambda d: d["kinds"].__setitem__(0, ["array", "!llvm.ptr", 2]),
        lambda d: d.pop("module"),
    ],
)
def test_other_data_are_refused(break_it):
    data = json.loads(json.dumps(trace_to_json(mixed_trace())))
    break_it(data)
    with pytest.raises((pf.ProfuseError, LookupError, TypeError, ValueError)):
        trace_from_json(data, [W])
