"""Switching captures on and off: scopes, nesting, threads, errors (R4.1 - R4.6, R4.41)."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED, captured
from profuse.dialect.errors import ArgumentError, GradientError, ProfuseError
from profuse.dialect.ir.op import OPS
from profuse.executor.backward.capture_state import STATE
from profuse.executor.tape.node import TAPE


def loss():
    x = pf.array([1.0, 2.0], requires_grad=True)
    return x, (x * x).sum()


def captures_of_a_step():
    before = pf.compiled_autograd.state().captures + pf.compiled_autograd.state().hits
    x, y = loss()
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])
    return pf.compiled_autograd.state().captures + pf.compiled_autograd.state().hits - before


def test_r4_1_on_inside_and_off_outside_also_after_an_exception():
    assert TAPE.captured is None
    with captured():
        assert TAPE.captured is not None
        assert captures_of_a_step() == 1
    assert TAPE.captured is None and captures_of_a_step() == 0
    with pytest.raises(ZeroDivisionError), captured():
        1 / 0  # noqa: B018
    assert TAPE.captured is None and STATE.compiler is None


@pytest.mark.parametrize("dynamic", [1, "yes", None])
def test_r4_1_dynamic_is_true_or_false(dynamic):
    with pytest.raises(ArgumentError, match="dynamic"):
        pf.compiled_autograd(dynamic=dynamic)


def test_a_compiler_is_a_function():
    with pytest.raises(ArgumentError, match="as its compiler"):
        pf.compiled_autograd("eager")


def test_r4_2_forced_to_be_eager_nothing_is_captured():
    with pf.compiled_autograd.force_eager(), captured():
        assert STATE.eager
        assert captures_of_a_step() == 0
    assert not STATE.eager
    with captured():
        assert captures_of_a_step() == 1


def test_r4_3_leaving_an_inner_scope_brings_the_outer_one_back():
    other = lambda made: made.interpret  # noqa: E731
    with captured(dynamic=True):
        with captured(other):
            assert STATE.compiler is other and not STATE.dynamic
        assert STATE.compiler is INTERPRETED and STATE.dynamic
        assert captures_of_a_step() == 1
    assert captures_of_a_step() == 0


def test_r4_4_disabling_is_a_scope_as_well():
    with captured():
        with pf.compiled_autograd.disable():
            assert captures_of_a_step() == 0
        assert captures_of_a_step() == 1
    with pf.compiled_autograd.disable():
        assert captures_of_a_step() == 0
    assert TAPE.captured is None


def test_r4_5_after_a_reset_numbers_start_at_0():
    for _ in range(2):
        with captured():
            captures_of_a_step()
            (pf.array(1.0, requires_grad=True) * 3.0).backward()
        assert [made.name for made in pf.compiled_autograd.state().runs] == ["CompiledAutograd0", "CompiledAutograd1"]
        pf.compiled_autograd.reset()
        assert pf.compiled_autograd.state().runs == () and pf.compiled_autograd.state().captures == 0


def test_r4_5_a_reset_in_a_hook_raises():
    x, y = loss()
    x.register_hook(lambda g: pf.compiled_autograd.reset())
    with captured(), pytest.raises(GradientError, match="reset is called in a backward run"):
        y.backward()
    assert STATE.running == 0


def test_r4_6_a_scope_is_not_entered_within_a_capture(monkeypatch):
    refused = []

    def transpose(b, attrs, xs, y, g, k):
        if STATE.capturing:
            with pytest.raises(GradientError, match="while another one is captured") as error:
                captured().__enter__()
            refused.append(error)
        return b.spread(b.expanded(attrs, g, xs[0]), xs[0])

    monkeypatch.setattr(OPS["profuse.sum"], "transpose", transpose)
    with captured():
        assert captures_of_a_step() == 1
    assert len(refused) == 1 and not STATE.capturing


def mean_of_squares(monkeypatch, transpose):
    """A captured step whose mean has this rule; its gradient is right, whatever that does."""
    monkeypatch.setattr(OPS["profuse.mean"], "transpose", transpose)
    monkeypatch.setattr(OPS["profuse.mean"], "linear", ((0,),))
    x = pf.array([1.0, 2.0], requires_grad=True)
    with captured():
        (x * x).mean().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])
    assert not STATE.capturing


def test_r4_6_a_rule_that_runs_backwards_is_not_captured_and_runs_eagerly(monkeypatch):
    ran = []

    def transpose(b, attrs, xs, y, g, k):
        if STATE.capturing or STATE.running:
            with pf.enable_grad():
                z = pf.array([1.0], requires_grad=True)
                (z * 2.0).sum().backward()
            ran.append(STATE.running)
        return b.spread(b.expanded(attrs, g, xs[0]), xs[0])

    mean_of_squares(monkeypatch, transpose)
    assert ran == [1]
    assert "call_backward" in pf.compiled_autograd.state().runs[-1].ir()


def test_r4_6_a_run_that_a_rule_asks_for_is_not_captured_within_the_capture(monkeypatch):
    """One of a graph that was there before, so that nothing of it is traced."""
    z, told = pf.array([1.0], requires_grad=True), []
    other = (z * 2.0).sum()

    def transpose(b, attrs, xs, y, g, k):
        if STATE.capturing:
            try:
                other.backward(retain_graph=True)
            except ProfuseError as error:
                told.append(error.hint)
                raise
        return b.spread(b.expanded(attrs, g, xs[0]), xs[0])

    mean_of_squares(monkeypatch, transpose)
    assert len(told) == 1 and "pf.grad" in told[0]
    assert z.grad is None and pf.compiled_autograd.state().captures == 1


def test_r4_6_arrays_that_retain_their_gradient_are_refused():
    x = pf.array([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.retain_grad()
    with captured(), pytest.raises(GradientError, match="retains its gradient"):
        y.sum().backward()
    y.sum().backward()
    np.testing.assert_array_equal(y.grad, [1.0, 1.0])


def test_r4_41_runs_in_hooks_are_eager_and_nothing_stays_set_after_an_exception():
    seen = []

    def hook(g):
        with pf.enable_grad():
            before = pf.compiled_autograd.state().captures + pf.compiled_autograd.state().hits
            z = pf.array([1.0], requires_grad=True)
            (z * 2.0).sum().backward()
            seen.append(
                (pf.compiled_autograd.state().captures + pf.compiled_autograd.state().hits - before, STATE.running)
            )

    x, y = loss()
    x.register_hook(hook)
    with captured():
        y.backward()
    assert seen == [(0, 1)]

    def fails(g):
        raise KeyError("from a hook")

    x, y = loss()
    x.register_hook(fails)
    with captured():
        with pytest.raises(KeyError):
            y.backward()
        assert STATE.running == 0 and TAPE.captured is not None
        assert captures_of_a_step() == 1


def test_scopes_belong_to_their_thread():
    seen = []

    def other():
        seen.append((TAPE.captured is None, captures_of_a_step()))

    with captured():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert captures_of_a_step() == 1
    assert seen == [(True, 0)]


def test_two_threads_capture_and_hit_at_once():
    barrier, errors = threading.Barrier(4), []

    def work(k):
        try:
            for step in range(20):
                x = pf.array(np.arange(3.0) + k, requires_grad=True)
                y = (x ** (2 + (step + k) % 3)).sum() * 1.0
                if step == 0:
                    barrier.wait(20)
                with captured():
                    y.backward()
                n = 2 + (step + k) % 3
                np.testing.assert_allclose(x.grad, n * x.data ** (n - 1))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert pf.compiled_autograd.state().captures + pf.compiled_autograd.state().hits == 80


def test_the_state_tells_captures_hits_reasons_and_calls_of_hooks():
    x = pf.array(np.ones(3), requires_grad=True)
    x.register_hook(lambda g: g * 2.0)
    for size in (3.0, 3.0, 4.0):
        with captured():
            (np.tanh(x) * size).sum().backward()
    state = pf.compiled_autograd.state()
    assert (state.captures, state.hits) == (2, 1)
    assert [run.name for run in state.runs] == ["CompiledAutograd0", "CompiledAutograd1"]
    first, second = (run.reasons for run in state.runs)
    assert "new autograd node" in first[0]
    assert second == ("number 0, of mul_backward, changed and became an input",)
    made = state.runs[-1]
    (call,) = made.calls
    assert (call.kind, call.origin) == ("tensor_pre_hook", "accumulate_grad (NodeCall 3)")
    ops = [line for line in made.ir().splitlines() if '"profuse.' in line]
    assert "call_hook" in ops[call.position] and "validate_grads" not in made.ir()
    assert "validate_grads" in made.ir("captured")
    text = pf.compiled_autograd.explain()
    assert text.startswith("Backward runs: 2 captured, 1 served by such graphs.")
    assert text.count("calls tensor_pre_hook, of accumulate_grad (NodeCall 3)") == 2
