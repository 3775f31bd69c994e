"""One contract of hooks, rules and gradients: on the tape, interpreted, and captured."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED
from every_case import EVERY_CASE
from hook_scenarios import SCENARIOS, leaf
from profuse.dialect.analysis.sections import sections
from profuse.dialect.errors import GradientError
from profuse.executor.backward import compile as compiling

STEPS = 8
WAYS = ("interpreted", "at once", "background", "dynamic")
QUICK = (
    "gradients_of_leaves_are_scaled_in_place",
    "a_hook_in_the_middle_returns_its_own_buffer",
    "hooks_write_to_what_they_are_given",
    "hooks_keep_what_they_are_given",
    "an_optimizer_in_hooks_behind_jitted_layers",
    "a_hook_writes_to_what_a_later_node_needs",
    "a_rule_returns_none",
    "hooks_remove_hooks",
    "scopes_and_runs_in_hooks",
)


def cases():
    """All scenarios in all ways; else each in one way, and those of `QUICK` in two or three."""
    for n, name in enumerate(SCENARIOS):
        for k, way in enumerate(WAYS):
            if EVERY_CASE or k == n % 3 or (name in QUICK and way in ("at once", "background")):
                yield name, way


def watched(name, scope, background, wait=()):
    """What each step of a scenario has computed, and what its hooks have logged in it."""
    log, seen = [], []
    with pf.knobs.override(background=background):
        step = SCENARIOS[name](log)

        def run(y, *args, **options):
            with scope():
                y.backward(*args, **options)

        for k in range(STEPS):
            log.clear()
            seen.append((step(k, run), list(log)))
            if k in wait:
                assert pf.compiled_autograd.wait(60)
    return seen


def check_same(found, wanted, where):
    assert type(found) is type(wanted) or np.isscalar(found), (where, found, wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for k, value in wanted.items():
            check_same(found[k], value, (*where, k))
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), (where, found, wanted)
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            check_same(a, b, (*where, k))
    elif isinstance(wanted, (np.ndarray, float)):
        assert np.shape(found) == np.shape(wanted), where
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=str(where))
    else:
        assert found == wanted, where


@pytest.mark.parametrize("name, way", list(cases()))
def test_steps_are_those_of_the_tape(name, way):
    wanted = watched(name, contextlib.nullcontext, False)
    pf.compiled_autograd.reset()
    if way == "interpreted":
        found = watched(name, lambda: pf.compiled_autograd(INTERPRETED), False)
    elif way == "background":  # two steps on the tape, then one that is profiled, and kernels
        found = watched(name, pf.compiled_autograd, True, wait=range(2, STEPS))
    else:
        dynamic = way == "dynamic"
        found = watched(name, lambda: pf.compiled_autograd(dynamic=dynamic), False)
    state = pf.compiled_autograd.state()
    assert state.captures > 0 and (state.hits > 0 or name == "hooks_remove_hooks")
    assert (state.waiting > 0) == (way == "background")
    check_same(found, wanted, ())


@pytest.mark.parametrize("background", [False, True])
def test_arrays_that_retain_their_gradient_are_refused_at_each_step(background):
    with pf.knobs.override(background=background):
        for k in range(6):
            x = leaf(3)
            y = x * 2.0
            y.register_hook(lambda g: None)
            if k % 2:
                y.retain_grad()
            with pf.compiled_autograd():
                if k % 2:
                    with pytest.raises(GradientError, match="retains its gradient"):
                        y.sum().backward()
                else:
                    y.sum().backward()
            pf.compiled_autograd.wait()


def test_retained_gradients_are_no_others_array():
    x = leaf(3)
    y, z = x * 2.0, x * 3.0
    y.retain_grad()
    z.retain_grad()
    ((y + z) ** 2).sum().backward()
    wanted = y.grad.copy()
    y.grad *= 0.5
    np.testing.assert_array_equal(z.grad, wanted)


SCOPES = pytest.mark.parametrize("scope", [contextlib.nullcontext, lambda: pf.compiled_autograd(INTERPRETED)])


@SCOPES
def test_what_hooks_are_given_cannot_be_written_to(scope):
    """Nor is it a copy: it shares memory with what goes on."""
    a, given = leaf(3), []
    a.register_hook(given.append)
    a.node.register_prehook(lambda gs: given.extend(gs))
    y = np.tanh(a)
    y.node.register_hook(lambda found, gs: given.extend((*found, *gs)))
    with scope():
        (y * y).sum().backward()
    assert [g.flags.writeable for g in given] == [False] * 4
    assert np.shares_memory(given[0], given[2]) and np.shares_memory(given[0], given[3])
    assert a.grad.flags.writeable and not np.shares_memory(a.grad, given[0])


def test_hooks_of_differentiable_gradients_cannot_write_to_them():
    a, seen = leaf(3), []

    def hook(g):
        with pytest.raises(ValueError, match="read-only"):
            g += 1.0
        seen.append(g)

    y = a**3
    y.register_hook(hook)
    (g,) = pf.gradients(y.sum(), [a], create_graph=True)
    assert type(seen[0]) is pf.Array
    (h,) = pf.gradients(g.sum(), [a])
    np.testing.assert_allclose(h, 6 * a.data)


@pytest.mark.parametrize("background", [False, True])
def test_a_reset_in_a_hook_is_refused_at_each_step(background):
    with pf.knobs.override(background=background):
        for _ in range(5):
            x = leaf(3)
            x.register_hook(lambda g: pf.compiled_autograd.reset())
            with pf.compiled_autograd(), pytest.raises(GradientError, match="reset is called"):
                (x * 2.0).sum().backward()
            pf.compiled_autograd.wait()


@pytest.mark.parametrize("background", [False, True])
def test_scopes_in_hooks_have_no_effect_at_any_step(background):
    counts = []

    def inner(g):
        with pf.enable_grad(), pf.compiled_autograd.disable(), pf.compiled_autograd():
            (leaf(2) * 2.0).sum().backward()
        with pf.enable_grad():
            (leaf(2) * 2.0).sum().backward()

    with pf.knobs.override(background=background):
        for _ in range(5):
            y = np.tanh(leaf(3))
            y.register_hook(inner)
            with pf.compiled_autograd():
                y.sum().backward()
            pf.compiled_autograd.wait()
            state = pf.compiled_autograd.state()
            counts.append((state.captures, state.hits, state.waiting))
    assert counts == [(1, k, background) for k in range(5)]


def test_a_compiler_that_runs_backwards_has_its_run_eager():
    seen = []

    def compiler(made):
        x = leaf(3)
        (x * x).sum().backward()
        seen.append(x.grad / x.data)
        with pytest.raises(GradientError, match="while another one is captured"):
            pf.compiled_autograd().__enter__()
        return made.interpret

    for _ in range(3):
        y = leaf(4)
        with pf.compiled_autograd(compiler):
            np.tanh(y).sum().backward()
        np.testing.assert_allclose(y.grad, 1 - np.tanh(y.data) ** 2)
    np.testing.assert_allclose(seen, [[2.0] * 3])
    state = pf.compiled_autograd.state()
    assert (state.captures, state.hits) == (1, 2)


def test_writes_are_seen_in_each_section_of_a_long_run(monkeypatch):
    """Hooks are numbered within their section, and what they write to is needed in another."""
    monkeypatch.setattr(compiling, "sections", functools.partial(sections, least=24))
    b = leaf(3)

    def step(at, scope):
        y = leaf(3)
        z = y * b  # which is needed last
        for k in range(240):
            z = np.tanh(z) if k % 2 else z * 1.5
            if k % 40 == 20:
                z.register_hook(lambda g, k=k: write(k == at))
        with scope():
            z.sum().backward()

    def write(now):
        if now:
            with pf.no_grad():
                b[0] = 1.0

    with pf.knobs.override(background=False):
        for at in (None, None, None, None, 220, 20):
            for scope in (contextlib.nullcontext, pf.compiled_autograd):
                if at is None:
                    step(at, scope)
                else:
                    with pytest.raises(GradientError, match="written to afterwards"):
                        step(at, scope)
    assert pf.compiled_autograd.state().captures == 1
    assert len(pf.compiled_autograd.state().runs[-1].function._parts) > 1
