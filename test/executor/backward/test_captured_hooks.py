"""Hooks are recorded, run in the order of the eager tape, and replace what they return (R4.26)."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED, WEIGHTS, both, captured
from profuse.dialect.errors import GradientError
from profuse.dialect.ops.backward import HOOK_TYPES
from profuse.executor.backward.compile import compiled

COMPILERS = pytest.mark.parametrize("compiler", [INTERPRETED, compiled])


def all_kinds(w, log, k):
    y = np.tanh(w) * w
    z = np.exp(w) + y
    y.register_hook(lambda g: (log.append("y"), g * 2)[1])
    z.register_hook(lambda g: log.append("z"))
    y.node.register_prehook(lambda gs: log.append("pre y"))
    z.node.register_prehook(lambda gs: (log.append("pre z"), tuple(g * 3 for g in gs))[1])
    y.node.register_hook(lambda found, gs: log.append(("post y", len(found), len(gs))))
    z.node.register_hook(lambda found, gs: [f * 2 for f in found])
    if k == 0:
        w.register_post_accumulate_grad_hook(lambda x: log.append(round(float(x.grad.sum()), 6)))
        w.register_post_accumulate_grad_hook(lambda x: log.append("second"))
        w.register_hook(lambda g: log.append("leaf"))
        w.node.register_prehook(lambda gs: log.append("pre leaf"))
        w.node.register_hook(lambda found, gs: log.append("post leaf"))
    with pf.saved_arrays_hooks(np.copy, lambda x: (log.append("unpack"), x)[1]):
        return (z * z).sum()


@COMPILERS
def test_r4_26_all_kinds_in_the_order_of_the_eager_tape(compiler):
    with pf.knobs.override(background=False):
        assert both(all_kinds, 4, compiler) == 1
    text = pf.compiled_autograd.state().runs[-1].ir()
    for kind in HOOK_TYPES:
        assert f'hook_type = "{kind}"' in text


def test_r4_26_no_hook_runs_while_a_run_is_captured():
    x, seen = pf.array(WEIGHTS, requires_grad=True), []
    x.register_hook(lambda g: seen.append(1))

    def compiler(made):
        assert seen == []
        return made.interpret

    with pf.compiled_autograd(compiler):
        (x * 2.0).sum().backward()
    assert seen == [1]


def test_r4_8_another_function_as_a_hook_hits():
    for factor in (1.0, 2.0, 3.0):
        x = pf.array(WEIGHTS, requires_grad=True)
        x.register_hook(lambda g, factor=factor: g * factor)
        with captured():
            x.sum().backward()
        np.testing.assert_array_equal(x.grad, np.full_like(WEIGHTS, factor))
    assert pf.compiled_autograd.state().captures == 1


@COMPILERS
@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_r4_8_a_leaf_whose_hook_is_replaced_between_runs_hits_and_calls_the_new_one(compiler, register):
    x, log = pf.array(WEIGHTS, requires_grad=True), []
    for name in "abc":
        handle = getattr(x, register)(lambda g, name=name: log.append(name))
        for _ in range(2):  # the second run has the hooks of the first
            with captured(compiler):
                (x * 2.0).sum().backward()
        handle.remove()
    assert log == list("aabbcc") and pf.compiled_autograd.state().captures == 1
    with captured(compiler):
        (x * 2.0).sum().backward()
    assert log == list("aabbcc")


@COMPILERS
def test_r4_8_hooks_that_are_added_to_a_leaf_between_runs_are_called(compiler):
    x, log = pf.array(WEIGHTS, requires_grad=True), []
    for count in range(1, 4):
        x.register_hook(lambda g, count=count: log.append(count))
        for _ in range(2):
            with captured(compiler):
                (x * 2.0).sum().backward()
            assert log == list(range(1, count + 1))
            log.clear()
    assert pf.compiled_autograd.state().captures == 3


def test_a_hook_that_is_removed_is_not_kept_alive_by_what_captured_runs_call():
    class Hook:
        def __call__(self, g):
            pass

    x, hook = pf.array(WEIGHTS, requires_grad=True), Hook()
    handle, reference = x.register_hook(hook), weakref.ref(hook)
    for _ in range(2):
        with captured():
            (x * 2.0).sum().backward()
    del hook
    handle.remove()
    gc.collect()
    assert reference() is None


def test_a_hook_that_appends_to_a_list_captures_once():
    seen = []
    for _ in range(12):
        x = pf.array(WEIGHTS, requires_grad=True)
        x.register_hook(lambda g: seen.append(g.copy()))
        with captured():
            (x * 2.0).sum().backward()
    assert len(seen) == 12 and pf.compiled_autograd.state().captures == 1


@COMPILERS
def test_r4_27_a_post_accumulate_hook_returns_nothing(compiler):
    x = pf.array(WEIGHTS, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda x: 1)
    with captured(compiler), pytest.raises(GradientError, match="returns something"):
        (x * 2.0).sum().backward()


@COMPILERS
def test_r4_27_a_hook_that_returns_none_means_its_first_argument(compiler):
    def program(w, log, k):
        y, seen = w * 2.0, []
        y.register_hook(lambda g: seen.append(g))
        y.node.register_prehook(lambda gs: seen.append(gs[0]))
        y.node.register_hook(lambda found, gs: log.append(float(found[0].sum() / gs[0].sum())))
        y.register_hook(lambda g: log.append(np.array_equal(seen[0], g)))
        return (y * y).sum()

    with pf.knobs.override(background=False):
        assert both(program, 4, compiler) == 1


@COMPILERS
def test_gradients_of_other_shapes_are_refused(compiler):
    x = pf.array(WEIGHTS, requires_grad=True)
    x.register_hook(lambda g: g[0])
    with captured(compiler), pytest.raises(GradientError, match="returns a gradient of shape"):
        (x * 2.0).sum().backward()


@COMPILERS
@pytest.mark.parametrize("kind", ["tensor", "pre", "accumulated", "unpack", "custom"])
def test_errors_of_users_code_pass_as_they_are(compiler, kind):
    """Also those of which NumPy's would be told in our words."""

    class Own(ValueError):
        pass

    error = Own("of the user's")

    def fails(*_):
        raise error

    @pf.custom_vjp
    class custom:
        def forward(x):
            return x * 2, ()

        def backward(saved, g):
            return fails()

    with pf.knobs.override(background=False):
        for _ in range(4):
            x = pf.array(WEIGHTS, requires_grad=True)
            with pf.saved_arrays_hooks(np.copy, fails if kind == "unpack" else np.copy):
                y = np.tanh(custom(x) if kind == "custom" else x)
            if kind == "tensor":
                x.register_hook(fails)
            elif kind == "pre":
                y.node.register_prehook(fails)
            elif kind == "accumulated":
                x.register_post_accumulate_grad_hook(fails)
            with captured(compiler), pytest.raises(Own) as caught:
                y.sum().backward()
            assert caught.value is error


def test_hooks_of_another_dtype_are_cast():
    x = pf.array(WEIGHTS.astype(np.float32), requires_grad=True)
    x.register_hook(lambda g: g.astype(np.float64))
    with captured():
        (x * np.float32(2)).sum().backward()
    assert x.grad.dtype == np.float32


def test_hooks_that_add_and_remove_hooks():
    def program(w, log, k):
        y = w * 2.0

        def adds(g):
            w.register_hook(lambda g: log.append("added"))

        handle = y.register_hook(lambda g: log.append("removed"))
        y.node.register_prehook(lambda gs: None)

        def removes(g):
            handle.remove()

        z = y * 3.0
        z.register_hook(adds)
        z.register_hook(removes)
        return z.sum()

    both(program, 3)


def test_hooks_of_two_branches_do_not_pass_each_other():
    def program(w, log, k):
        left, right = np.exp(w), np.tanh(w)
        for name, y in (("left", left), ("right", right)):
            y.register_hook(lambda g, name=name: log.append(name))
            y.node.register_prehook(lambda gs, name=name: log.append(f"before {name}"))
            y.node.register_hook(lambda found, gs, name=name: log.append(f"after {name}"))
        return (left + right).sum()

    assert both(program) == 1


@COMPILERS
def test_several_hooks_see_what_those_before_have_left(compiler):
    def program(w, log, k):
        y = w * 2.0
        for n in (2.0, 3.0):
            y.register_hook(lambda g, n=n: (log.append(float(g[0, 0])), g * n)[1])
        return y.sum()

    both(program, 4, compiler)


def test_clipping_by_hook():
    def program(w, log, k):
        y = np.exp(w)
        y.register_hook(lambda g: g / max(1.0, float(np.linalg.norm(g))))
        return (y**2).sum()

    with pf.knobs.override(background=False):
        assert both(program, 5, compiled) == 1
