"""Sizes in FX graphs: known ones, computed ones, and gradients that stop; no torch is needed."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.fx.fx_sizes import FX
from profuse.dialect.importers.foreign.imported_function import ImportedFunction


def graph(*nodes, outputs):
    steps = [ForeignNode(op, operands, {}, (number,)) for number, (op, operands) in enumerate(nodes, 1)]
    return ForeignGraph("sizes", ForeignBlock((0,), steps, outputs), ("x",), {}, "a graph of sizes")


def jitted(built):
    return pf.jit(ImportedFunction(built, FX, single=False), unsupported="raise", background=False)


def test_one_trace_computes_with_sizes():
    ref = ValueRef
    built = graph(
        ("profuse::input", (ref(0), (None, 4), False)),
        ("sym_size.int", (ref(1), 0)),
        ("python.mul", (ref(2), 2)),
        ("view", (ref(1), (ref(3), 2))),
        ("python.floordiv", (ref(3), 2)),
        outputs=(ref(4), ref(5)),
    )
    f = jitted(built)
    for rows in (3, 5, 2, 7):
        x = np.random.default_rng(rows).random((rows, 4))
        for _ in range(2):
            values, size = f(x)
            np.testing.assert_array_equal(values, x.reshape(rows * 2, 2))
            assert size == rows
    assert f.state().counters["traces"] == 1
    with pytest.raises(TraceError, match="has got another size"):
        f(np.ones((3, 5)))


def test_gradients_stop():
    ref = ValueRef
    built = graph(
        ("profuse::stop_gradient", (ref(0),)), ("mul.Tensor", (ref(0), ref(1))), ("sum", (ref(2),)), outputs=(ref(3),)
    )
    f = jitted(built)
    x = np.arange(3.0)
    np.testing.assert_array_equal(pf.grad(lambda x: f(x)[0])(x), x)


def test_operators_of_python_and_of_aten_are_found():
    assert "python.add" in FX and "addmm" in FX and "add.Tensor" in FX and "warp" not in FX
    assert len(FX) == len(list(FX))
