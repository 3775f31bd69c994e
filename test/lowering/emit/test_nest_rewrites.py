"""Rewrites of nests run where a nest holds what they look for, and nowhere else."""

from __future__ import annotations

import pytest
from graphs import Graph, tensor
from native import built
from profuse.dialect.ir.dtypes import F32
from profuse.lowering.emit import module

REWRITES = (
    "split_loops",
    "compare_squares",
    "sum_in_blocks",
    "settle_sums",
    "hoist_reciprocals",
    "version_loops",
    "unroll_short_loops",
    "strip_short_rows",
)


@pytest.fixture
def ran(monkeypatch):
    """The names of the rewrites that run."""
    names: list[str] = []
    for name in REWRITES:
        rewrite = getattr(module, name)

        def noted(*args, name=name, rewrite=rewrite):
            names.append(name)
            return rewrite(*args)

        monkeypatch.setattr(module, name, noted)
    return names


@pytest.mark.compiles
def test_a_nest_of_sums_and_products_alone_is_not_searched_again(ran):
    g = Graph(tensor(9, 40), tensor(9, 40))
    x, y = g.inputs
    built(g.returning(g.add(g.mul(x, y), x)))
    assert ran == ["unroll_short_loops", "strip_short_rows"]


@pytest.mark.compiles
def test_divisions_by_what_is_constant_in_a_loop_are_found(ran):
    g = Graph(tensor(9, 40), tensor(9))
    x, w = g.inputs
    built(g.returning(g.div(x, g.expand_dims(w, axes=(1,)))))
    assert "hoist_reciprocals" in ran


@pytest.mark.compiles
def test_values_that_are_rarely_needed_are_found(ran):
    g = Graph(tensor(9, 40, dtype=F32))
    (x,) = g.inputs
    built(g.returning(g.sin(x)))
    assert "version_loops" in ran


@pytest.mark.compiles
def test_comparisons_of_indices_are_found(ran):
    g = Graph(tensor(9, 40), tensor(9, 8))
    built(g.returning(g.mul(g.concatenate(*g.inputs, axis=1), g.number(2.0))))
    assert "split_loops" in ran
