"""What is no part of a captured graph: guards, arrays of rules, states, moves to a device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import profuse as pf
import pytest
from captured_programs import captured, compiled
from profuse.dialect.ir.op import OPS
from profuse.dialect.ops.speculation import Guard

SIZES = (3, 4, 5, 9, 2)


def leaf(*shape):
    return pf.array(np.random.default_rng(2).standard_normal(shape), requires_grad=True)


@pytest.fixture
def rule(monkeypatch):
    """Gives the gradient of ``mean`` by another function of sizes and of its gradient."""

    def given(scaled):
        def transpose(b, attrs, xs, y, g, k):
            return b.spread(b.expanded(attrs, scaled(xs[0], g), xs[0]), xs[0])

        monkeypatch.setattr(OPS["profuse.mean"], "transpose", transpose)
        monkeypatch.setattr(OPS["profuse.mean"], "linear", ((0,),))

    return given


def in_all_sizes(wanted):
    """Run with sizes that change, comparing gradients; the graph of the last capture."""
    for n in SIZES:
        x = leaf(n)
        with captured():
            (x * 1.0).mean().backward()
        np.testing.assert_allclose(x.grad, np.full(n, wanted(n)))
    return pf.compiled_autograd.state().runs[-1]


def test_r4_15_a_branch_on_a_symbol_adds_no_guard(rule):
    """A rule that would need one is called in each run instead, with the sizes of the run."""
    rule(lambda x, g: g * 2.0 if x.shape[0] > 4 else g)
    made = in_all_sizes(lambda n: 2.0 if n > 4 else 1.0)
    assert not any(instr.op is Guard for instr in made.module.main.body.walk())
    assert [call.kind for call in made.calls] == ["backward"]
    told = [e.function for e in pf.events() if e.kind == "backward-opaque"]
    assert "mean_backward" in told


def test_r4_15_computing_with_a_symbol_makes_no_constant_of_it(rule):
    rule(lambda x, g: g * x.shape[0])
    made = in_all_sizes(lambda n: n)
    assert made.calls == () and pf.compiled_autograd.state().captures == 2


def test_r4_16_an_array_that_nobody_tracks_is_no_constant_of_the_graph(rule):
    """The rule reads an array of its own: it is called in each run, and sees what is in it."""
    own = np.array(2.0)
    rule(lambda x, g: g * own)
    for factor in (2.0, 2.0, 5.0):
        own[...] = factor
        x = leaf(4)
        with captured():
            (x * 1.0).mean().backward()
        np.testing.assert_array_equal(x.grad, np.full(4, factor))
    (made,) = pf.compiled_autograd.state().runs[-1:]
    assert [call.kind for call in made.calls] == ["backward"]


def test_r4_24_a_pasted_subgraph_takes_gradients_and_captures_alone():
    x = leaf(3, 5)
    f = compiled(lambda f: f(x).sum())
    given = []

    def compiler(made):
        def run(*lists):
            given.append(list(map(len, lists)))
            return made.interpret(*lists)

        return run

    with captured(compiler):
        f(x).sum().backward()
    ((_, sizes, scalars, hooks, packed),) = given
    assert (sizes, scalars, hooks, packed) == (0, 0, 0, 0)
    assert pf.compiled_autograd.state().runs[-1].calls == ()


HALVES = """
import numpy as np, profuse as pf
from profuse.dialect.ops.backward import CallBackward
pf.knobs.background = False
@pf.jit
def f(x):
    return np.tanh(x * 2) + np.exp(x) * x
x = pf.array(np.linspace(-1, 1, 15).reshape(3, 5), requires_grad=True)
for _ in range(4):
    x.grad = None
    with pf.compiled_autograd():
        f(x).sum().backward()
made = pf.compiled_autograd.state().runs[-1]
ops = [instr.op.name for instr in made.module.main.body.instrs]
print(f.state().counters["profiled_runs"], "call_backward" in ops, ops.count("mul"))
print(repr(np.asarray(x.grad).sum()))
"""


def test_r4_25_a_reverse_half_from_the_disk_is_pasted_as_one_that_was_just_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PROFUSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PROFUSE_CACHE", "on")
    (cold, cold_sum), (warm, warm_sum) = (
        subprocess.run([sys.executable, "-c", HALVES], capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    )
    runs, opaque, muls = cold.split()
    assert int(runs) > 0 and opaque == "False" and int(muls) > 0
    assert warm == f"0 {opaque} {muls}" and warm_sum == cold_sum


def test_r4_30_arrays_without_axes_stay_where_they_are_in_the_inputs():
    given = []

    def compiler(made):
        def run(inputs, *lists):
            given.append(list(inputs))
            return made.interpret(inputs, *lists)

        return run

    scale = pf.array(np.array(3.0))
    for _ in range(2):
        x = leaf(4)
        with captured(compiler):
            (np.tanh(x) * scale).sum().backward()
        np.testing.assert_allclose(x.grad, 3.0 / np.cosh(x.data) ** 2)
    for inputs in given:
        # Behind the gradient of the root: no copy, and no place of its own.
        assert any(array is scale.data for array in inputs[1:-1])
