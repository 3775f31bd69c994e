"""Guards of a trace as one function: the same answers as each guard by itself, without work per guard."""

from __future__ import annotations

import itertools

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.tracing.quick_guards import QuickGuards
from profuse.dialect.importers.numpy.tracing.trace_guards import Computed, NumberConstant, TraceGuard, constant, passed
from profuse.dialect.ir.size_algebra import sym_max, sym_min
from profuse.dialect.ir.symbolic import Dimension, symbol

N, M = symbol(Dimension(0, 0)), symbol(Dimension(0, 1))
SIZES = {
    "a sum": (TraceGuard(N * -2 + M + 3, 1), True),
    "a quotient": (TraceGuard((sym_max(N - 3, 0) + 127) // 128, 1), True),
    "a remainder by a size": (TraceGuard(M % N, 0), True),
    "a minimum": (TraceGuard(sym_min(N, M - 2), 2), True),
    "a comparison": (TraceGuard(Computed("lt", (N, M)), True), True),
    "none": (TraceGuard(Computed("ge", (N + 1, 4)), False), True),
    "a number": (TraceGuard(passed(1, int), 2), False),
    "a float": (TraceGuard(passed(1, float), 2.0), False),
    "a float in a comparison": (TraceGuard(Computed("lt", (passed(1, float), NumberConstant(3.0))), True), False),
    "a size that became a float": (TraceGuard(Computed("div", (N, constant(2))), 1.0), False),
}


@pytest.mark.parametrize("name", SIZES)
def test_guards_say_what_each_says_by_itself(name):
    guard, is_written = SIZES[name]
    quick = QuickGuards.of([guard])
    assert (quick.sizes_fit is not None, len(quick.others)) == (is_written, 1 - is_written)
    for rows, columns, number in itertools.product((0, 1, 2, 3, 130), (0, 1, 4, 5), (2, True, 2.0, 5)):
        leaves = [np.zeros((rows, columns), np.int8), number]
        assert quick.hold(leaves) == guard.holds(leaves), (rows, columns, number)


def test_all_guards_have_to_hold():
    sizes, number = SIZES["a minimum"][0], SIZES["a number"][0]
    quick = QuickGuards.of([sizes, number])
    fits, other = np.zeros((2, 4)), np.zeros((3, 5))
    assert quick.hold([fits, 2]) and not quick.hold([fits, 3]) and not quick.hold([other, 2])
    assert QuickGuards.of([]).hold([])


def test_calls_that_python_dispatches_find_their_graph_by_compiled_guards():
    def f(x, n):
        return x * 2 if x.shape[0] % 3 == 1 and len(x) < 2**40 else x + 1

    jitted = pf.jit(f, background=False)
    for _ in range(4):
        for rows in (3, 4, 5, 7):
            x = np.ones((rows, 2))
            np.testing.assert_array_equal(jitted(x, n=rows), f(x, rows))
    assert jitted.state().counters["traces"] == 2
