"""Bounds of slices, and indices: constants of a captured run until they change, then inputs."""

from __future__ import annotations

import contextlib

import numpy as np
import profuse as pf
import pytest
from captured_programs import captured
from profuse.dialect.errors import TraceError
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ops.indexing.slicing import ABSENT, Pick, Slice
from profuse.executor.tape import plans
from profuse.executor.tape.bounds import bounds_of, with_bounds

RNG = np.random.default_rng(11)
W = RNG.standard_normal((3, 4))
SIZES = (4, 7, 10, 5, 12, 9, 4, 6)


def hidden(x, w):
    return np.tanh(x @ w)


def two_halves(x, w):
    h, middle = hidden(x, w), len(x) // 2
    return (h[:middle] * h[-middle:]).sum()


def last_but_one(x, w):
    return hidden(x, w)[len(x) - 2].sum()


def behind_a_copy(x, w):
    both = np.concatenate([hidden(x, w), x @ w])
    return (both[len(x) :] ** 2).sum() + both[: len(x), 1:3].mean()


def backwards(x, w):
    return (hidden(x, w)[len(x) // 2 :: -1] ** 2).sum()


def inside(x, w):
    return (hidden(x, w)[1 : len(x) - 1, -2:] ** 2).mean()


def rolled(x, w):
    h = hidden(x, w)
    return (np.roll(h, len(x) // 3, axis=0) * h).sum()


def diagonal(x, w):
    """A reshape to a size that is an operand."""
    h = hidden(x, w)
    return np.trace(h @ h.T)


PROGRAMS = [two_halves, last_but_one, behind_a_copy, backwards, inside, rolled, diagonal]


def gradient(program, x, scope=contextlib.nullcontext):
    w = pf.array(W, requires_grad=True)
    value = program(x, w)
    with scope():
        value.backward()
    return w.grad


def captures_of(program, batches, scope=captured):
    """The captures after each batch; the gradients must be those of the eager tape."""
    pf.compiled_autograd.reset()
    found = []
    for x in batches:
        got = gradient(program, x, scope)
        np.testing.assert_allclose(got, gradient(program, x), rtol=1e-12, atol=1e-14)
        found.append(pf.compiled_autograd.state().captures)
    return found


def batches(sizes):
    return [RNG.standard_normal((n, 3)) for n in sizes]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("compiles", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_bounds_that_the_batch_decides_are_captured_like_its_size(program, compiles):
    with pf.knobs.override(background=False):
        scope = pf.compiled_autograd if compiles else captured
        found = captures_of(program, batches(SIZES), scope)
    assert found[:2] == [1, 2] and found[-1] <= 3
    state = pf.compiled_autograd.state()
    assert state.captures + state.hits == len(SIZES)
    assert "call_backward" not in state.runs[-1].ir()


def test_what_has_changed_is_told():
    captures_of(last_but_one, batches((4, 6)))
    run = pf.compiled_autograd.state().runs[-1]
    assert any("of pick_backward, changed and became an input" in r for r in run.reasons)
    assert [label.partition(" ")[2] for _, label in run.scalars] == ["pick_backward"]


def test_bounds_that_never_change_stay_attributes():
    captures_of(inside, batches(SIZES))
    text = pf.compiled_autograd.state().runs[-1].ir()
    assert f"starts = array<i64: 1, -2>, stops = array<i64: {DYNAMIC}, " in text


@pytest.mark.parametrize(
    "bounds",
    [
        [slice(0, 2), slice(1, 3), slice(-3, -1), slice(-2, 40), slice(3, 2), slice(-40, 5)],
        [slice(2, 0, -1), slice(4, 1, -1), slice(-1, -4, -1), slice(40, 2, -1)],
        [slice(1, 5, 2), slice(0, 4, 2), slice(-5, -1, 2)],
        [1, 4, -1, 0, -5],
    ],
    ids=["forward", "backward", "strided", "index"],
)
def test_bounds_are_those_of_the_run_whatever_their_signs(bounds):
    """They are clamped, or count from the end, as at the first run."""
    x = RNG.standard_normal((5, 3))
    pf.compiled_autograd.reset()
    for key in bounds * 2:

        def program(x, w, key=key):
            return (hidden(x, w)[key] ** 2).sum()

        np.testing.assert_allclose(gradient(program, x, captured), gradient(program, x), rtol=1e-13, err_msg=str(key))
    state = pf.compiled_autograd.state()
    # Sizes of what is taken change with some of the bounds.
    assert state.captures <= 5 and state.captures + state.hits == 2 * len(bounds)


def test_steps_and_bounds_that_are_left_out_are_part_of_the_key():
    x = RNG.standard_normal((6, 3))
    keys = [slice(1, 4), slice(1, None), slice(None, 3), slice(1, 4, 2), slice(2, 5)]
    pf.compiled_autograd.reset()
    found = []
    for key in keys:
        gradient(lambda x, w, key=key: hidden(x, w)[key].sum(), x, captured)
        found.append(pf.compiled_autograd.state().captures)
    assert found == [1, 2, 3, 4, 5]
    assert "became an input" in pf.compiled_autograd.state().runs[-1].reasons[0]


def test_runs_are_gathered_without_a_walk(monkeypatch):
    captures_of(two_halves, batches(SIZES))
    from profuse.executor.backward import captured_run as run

    def walked(*_):
        raise AssertionError("a run that was met before is walked")

    monkeypatch.setattr(run, "Walk", walked)
    for x in batches(SIZES):
        np.testing.assert_allclose(gradient(two_halves, x, captured), gradient(two_halves, x), rtol=1e-12)


def test_dynamic_scopes_have_bounds_as_constants_until_they_change():
    def scope():
        return captured(dynamic=True)

    def fixed(x, w):
        return (hidden(x, w)[1:3] ** 2).sum()

    sizes = (7, 10, 5, 12)  # others than that of the second axis
    assert captures_of(fixed, batches(sizes), scope) == [1] * len(sizes)
    assert pf.compiled_autograd.state().runs[-1].scalars == ()
    assert captures_of(last_but_one, batches(sizes), scope) == [1, 2, 2, 2]


@pytest.mark.parametrize("op", [Slice, Pick])
def test_a_rule_that_asks_for_its_bounds_has_them_as_constants(monkeypatch, request, op):
    transpose = op.transpose.__func__

    def refusing(cls, b, attrs, *rest):
        if DYNAMIC in (attrs.get("index"), *attrs.get("starts", ()), *attrs.get("stops", ())):
            raise TraceError("which elements are asked for")
        return transpose(cls, b, attrs, *rest)

    monkeypatch.setattr(op, "transpose", classmethod(refusing))
    monkeypatch.setattr(plans, "_BY_VALUE", set(plans._BY_VALUE))
    plans.forget()
    request.addfinalizer(plans.forget)
    program = two_halves if op is Slice else last_but_one
    assert captures_of(program, batches((4, 6, 8, 6, 8))) == [1, 2, 3, 3, 3]
    assert "call_backward" not in pf.compiled_autograd.state().runs[-1].ir()
    assert op in plans._BY_VALUE


def test_bounds_and_attributes():
    """Of what operands can give, and of what they give already."""
    attrs = Slice.full_attrs({"starts": (1, 0), "stops": (ABSENT, -2), "axes": (0, 2)})
    assert bounds_of(Slice, attrs) == (1, 0, -2)
    changed = with_bounds(Slice, attrs, [True, False, True])
    assert changed["starts"] == (DYNAMIC, 0) and changed["stops"] == (ABSENT, DYNAMIC)
    assert with_bounds(Slice, attrs, [False] * 3) is attrs
    assert bounds_of(Slice, changed) == ()
    assert bounds_of(Pick, {"axis": 1, "index": -1}) == (-1,)
    assert with_bounds(Pick, {"axis": 1, "index": -1}, [True]) == {"axis": 1, "index": DYNAMIC}
