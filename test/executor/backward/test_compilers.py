"""Which compilers and nodes are told apart: what is made anew in each step captures once."""

from __future__ import annotations

from functools import partial

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED
from hook_scenarios import leaf
from profuse.dialect.ir.op import OPS


def counts():
    state = pf.compiled_autograd.state()
    return state.captures, state.hits


def run(compiler, program=lambda x: (np.tanh(x) * x).sum()):
    """A captured step, which computes what the tape does."""
    x, y = leaf(3), leaf(3)
    with pf.compiled_autograd(compiler):
        program(x).backward()
    program(y).backward()
    np.testing.assert_array_equal(x.grad, y.grad)


def test_a_compiler_that_is_made_anew_in_each_step_is_the_same_one():
    named = {"a": 1}
    for k in range(10):
        run(lambda made, named=named: made.interpret)
        run(partial(lambda named, made: made.interpret, named))
        assert counts() == (2, 2 * k)


def test_compilers_that_close_over_others_are_others():
    def compiler(seen):
        return lambda made: seen.append(made.name) or made.interpret

    first, second = [], []
    for seen in (first, second, first, second):
        run(compiler(seen))
    assert counts() == (2, 2) and len(first) == len(second) == 1


def test_compilers_with_other_defaults_code_or_methods_are_others():
    class Compiler:
        def compile(self, made):
            return made.interpret

    one, other = Compiler(), Compiler()
    for _ in range(2):
        run(one.compile)
        run(other.compile)
        run(lambda made, k=1: made.interpret)
        run(lambda made, k="1": made.interpret)
        run(lambda made, *, k=1: made.interpret)
    assert counts() == (5, 5)


def test_captures_of_too_many_compilers_are_dropped():
    def compiler(k):
        return lambda made: (k, made.interpret)[1]

    for k in range(40):
        run(compiler(k))
    state = pf.compiled_autograd.state()
    assert (state.captures, state.hits) == (40, 0)
    assert 10 < len(state.runs) < 20 and state.runs[-1].name == "CompiledAutograd39"
    assert any(e.kind == "backward-limit" for e in pf.events())
    run(compiler(39))
    assert counts() == (40, 1)


@pytest.mark.parametrize("numbers", [[2**64, 2**70, 2**64, 2**65], [-(2**63) - 1, 3, 2**64, 2**90]])
def test_numbers_that_no_kernel_takes_run_by_one_capture(numbers):
    for n in numbers:
        run(INTERPRETED, lambda x, n=n: (np.tanh(x) * n).sum())
    made, hits = counts()
    assert made + hits == 4 and made == (2 if 3 in numbers else 1)


def test_ops_that_branch_on_sizes_share_a_capture(monkeypatch):
    """Nodes that cannot be recorded are called as they are, and are not told apart by their ops."""

    def transpose(b, attrs, xs, y, g, k):
        if xs[0].shape[0] > 2:
            g = g * 3.0
        return b.spread(b.expanded(attrs, g, xs[0]), xs[0])

    for name in ("mean", "sum"):
        monkeypatch.setattr(OPS[f"profuse.{name}"], "transpose", transpose)
        monkeypatch.setattr(OPS[f"profuse.{name}"], "linear", ((0,),))
    for program in (np.mean, np.sum, np.mean, np.sum):
        x, y = leaf(3), leaf(3)
        with pf.compiled_autograd(INTERPRETED, dynamic=True):
            program(x).backward()
        program(y).backward()
        np.testing.assert_array_equal(x.grad, y.grad)
    assert counts() == (1, 3)
