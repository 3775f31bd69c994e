"""Arrays that whole-array statements write: kernels write there themselves where they may."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from dispatched import hits


@pytest.fixture(autouse=True)
def _effects():
    with pf.knobs.override(unsupported="python", demote="off", cache=False):
        yield


def heat(u, work, other):
    work[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    u[1:-1, 1:-1] += 0.1 * work[1:-1, 1:-1]
    other += u


def masks(z, w, count):
    inside = z * z + w * w < 1
    z[inside] = z[inside] * 2 - 0.5
    count[inside] += 1
    w[~inside] -= z[~inside]


def exchanged(a, b, c):
    t = a.copy()
    a[:] = b
    b[:] = t
    c -= a


def mixed(a, b, c):
    t = a + b
    a -= b
    b[:] = t * a
    c += t


def from_others(a, b, c):
    a[:] = b * c
    c[:] = b - c


def rows(a, b, c):
    b[1:] -= a[1:] - a[:-1]
    c[:-1] += 2 * b[:-1] * a[1:]
    b[:-1] *= 3
    a *= 0.5


def mirrored(a, b, c):
    a[:] = a[::-1]
    b += b.T
    c[1:] += c[:-1]


HERE = [heat, masks, mixed, from_others, rows]


def _arrays(shape=(13, 13)):
    return list(np.random.default_rng(0).random((3, *shape)) * 2 - 1)


def _ready(function):
    jitted = pf.jit(function, background=False)
    for _ in range(4):
        jitted(*_arrays())
    return jitted


def _same_as_python(jitted, function, make):
    given, wanted = make(), make()
    function(*wanted)
    jitted(*given)
    for a, b in zip(given, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def _refuse(*_, **__):
    raise AssertionError("an argument is copied")


@pytest.mark.parametrize("function", HERE, ids=lambda f: f.__name__)
def test_they_are_written_where_they_are(function, monkeypatch):
    jitted = _ready(function)
    assert jitted.state().emitted, jitted.explain()
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", _refuse)
        before = hits(jitted)
        for _ in range(3):
            _same_as_python(jitted, function, _arrays)
        assert hits(jitted) == before + 3


def test_they_are_copied_where_others_places_are_read():
    jitted = _ready(mirrored)
    before = hits(jitted)
    for _ in range(3):
        _same_as_python(jitted, mirrored, _arrays)
    assert hits(jitted) == before + 3


def _one_array(at):
    def made():
        found = _arrays()
        found[at] = found[0]
        return found

    return made


def _overlapping():
    whole = np.random.default_rng(1).random((14, 13))
    return [whole[1:], whole[:-1], _arrays()[2]]


def _views():
    a, b, c = _arrays()
    return [np.repeat(a, 2, axis=1)[:, ::2], b[::-1], np.asfortranarray(c)]


LAYOUTS = {"a is b": _one_array(1), "a is c": _one_array(2), "parts": _overlapping, "views": _views}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", [*HERE, exchanged, mirrored], ids=lambda f: f.__name__)
def test_arrays_that_overlap_and_views_are_as_in_python(function, layout):
    jitted = _ready(function)
    for _ in range(3):
        _same_as_python(jitted, function, LAYOUTS[layout])
        _same_as_python(jitted, function, _arrays)
