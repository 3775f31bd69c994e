"""Gradients of a run against those of the joint graph, for every op and for random programs."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from differential import OnTape
from gradient_cases import TAPED
from profuse.dialect.trees.pytree import flatten, unflatten
from published_programs import PROGRAMS
from random_functions import function

EACH = pytest.mark.parametrize("case", TAPED, ids=str)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False):
        yield


def floats(args):
    return tuple(k for k, x in enumerate(args) if np.asarray(x).dtype.kind in "fc")


def weighed(case):
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(np.shape(case.fn(*case.args)))
    return lambda *args: (case.fn(*args) * weights).sum()


def leaves_of(args):
    return [pf.array(x, requires_grad=True) if k in floats(args) else x for k, x in enumerate(args)]


def agree(found, wanted, **how):
    for g, w in zip(found, wanted, strict=True):
        assert np.shape(g) == np.shape(w)
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-10, **how)


@pytest.mark.sampled(5)
@EACH
def test_every_op(case):
    fn, wrt = weighed(case), floats(case.args)
    args = leaves_of(case.args)
    value = fn(*args)
    np.testing.assert_allclose(value.data, fn(*case.args), rtol=1e-12)
    found = pf.gradients(value, [args[k] for k in wrt], allow_unused=True)
    wanted = pf.grad(fn, wrt=wrt)(*case.args)
    filled = [np.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
    agree(filled, wanted)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", [c for c in TAPED if c.second], ids=str)
def test_every_op_twice(case):
    fn, wrt = weighed(case), floats(case.args)
    args = leaves_of(case.args)
    rng = np.random.default_rng(4)
    directions = [rng.standard_normal(np.shape(case.args[k])) for k in wrt]

    def slope(gs):
        return sum((g * d).sum() for g, d in zip(gs, directions, strict=True) if g is not None)

    inputs = [args[k] for k in wrt]
    first = pf.gradients(fn(*args), inputs, create_graph=True, allow_unused=True)
    along = slope(first)
    if not isinstance(along, pf.Array) or not along.requires_grad:
        found = [None] * len(inputs)
    else:
        found = pf.gradients(along, inputs, allow_unused=True)
    once = pf.grad(fn, wrt=wrt)
    wanted = pf.grad(lambda *args: slope(once(*args)), wrt=wrt)(*case.args)
    filled = [np.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
    for g, w in zip(filled, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    made = function(seed, flow=seed % 2 == 1)
    fn = made.compiled()
    args = [pf.array(x, requires_grad=True) for x in made.args]
    value = fn(OnTape(), pf, *args)
    found = pf.gradients(value, args, allow_unused=True)
    wrt = tuple(range(len(args)))
    want, wanted = pf.value_and_grad(lambda *args: fn(np, pf, *args), wrt=wrt)(*made.args)
    np.testing.assert_allclose(value.data, want, rtol=1e-9)
    for g, w in zip(found, wanted, strict=True):
        g = np.zeros_like(w) if g is None else g
        np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9, err_msg=made.text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_published_programs(name):
    program = PROGRAMS[name]
    leaves, tree = flatten(program.args[0])
    given = [pf.array(x, requires_grad=True) if np.asarray(x).dtype.kind == "f" else x for x in leaves]
    value = program.fn(np, pf, unflatten(tree, given), *program.args[1:])
    inputs = [x for x in given if type(x) is pf.Array]
    if name == "power_iteration":  # it divides an array in place by its own norm, as torch refuses
        with pytest.raises(pf.GradientError, match="square needs was written to"):
            value.backward()
        return
    found = pf.gradients(value, inputs, allow_unused=True)
    grads = pf.grad(lambda *args: program.fn(np, pf, *args))(*program.args)
    wanted = [g for g in flatten(grads)[0] if g is not None]
    for g, w in zip(found, wanted, strict=True):
        g = np.zeros_like(w) if g is None else g
        np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)
