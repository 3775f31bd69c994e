"""Random graphs agree between plain NumPy and the spec-keyed executor, whatever the sizes."""

from __future__ import annotations

import os

import numpy as np
import profuse as pf
from every_case import EVERY_CASE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_random_graphs import SIZES, agree, graphs, inputs_for, run

ODD_SIZES = [*SIZES, {"n": 1, "m": 5}, {"n": 6, "m": 6}, {"n": 1, "m": 1}]


@settings(
    max_examples=int(os.environ.get("PROFUSE_RANDOM_GRAPHS", "25" if EVERY_CASE else "12")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(graphs(most=25), st.permutations(ODD_SIZES), st.booleans())
def test_keyed_plans_agree(graph, sizes, in_a_loop):
    """R2.6, R2.7, R2.12: one compile serves every size, and every result is NumPy's."""
    steps, outputs = graph

    def plain(*inputs):
        return run(steps, outputs, inputs)

    def fn(*inputs):
        if not in_a_loop:
            return plain(*inputs)
        last = pf.fori_loop(0, 2, lambda i, x: np.tanh(x + inputs[1]), inputs[0])
        return plain(last, *inputs[1:])

    pf.set_profiling_mode(False)
    try:
        f = pf.jit(fn)
        with np.errstate(all="ignore"):
            for seed, size in enumerate(sizes[:4]):
                inputs = inputs_for(size, seed)
                exact = fn(*[x.astype(np.float64) for x in inputs])
                for ours, numpy, true in zip(f(*inputs), fn(*inputs), exact, strict=True):
                    agree(ours, numpy, true)
    finally:
        pf.set_profiling_mode(True)
    counters = f.state().counters
    assert counters["compile_failures"] == 0, f.explain()
    assert counters["compiles"] == counters["cache_misses"] == counters["traces"]
    assert counters["compiles"] + counters["cache_hits"] == 4
