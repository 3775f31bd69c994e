"""Functions whose loops run in kernels, beside what Python does."""

from __future__ import annotations

import numpy as np
import profuse as pf
from internals import executor_of


def called(function, args):
    """What a function gives or raises, and what its arguments hold then."""
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        try:
            return function(*args), None, args
        except Exception as error:
            return None, error, args


def close(found, expected, tolerance):
    if isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, tolerance, tolerance)
    else:
        assert found == expected


def same(jitted, function, args, tolerance=1e-12):
    found, error, held = called(jitted, args)
    expected, wanted, kept = called(function, args)
    assert (error is None) == (wanted is None), (error, wanted)
    if wanted is not None:
        assert isinstance(error, type(wanted))
    else:
        assert type(found) is type(expected)
        for f, e in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            close(f, e, tolerance)
    for a, b in zip(held, kept, strict=True):
        close(a, b, tolerance)


def native(function, *args, tolerance=1e-12):
    """A jitted function whose calls with these arguments run in the kernel of a loop."""
    jitted = pf.jit(function)
    for _ in range(3):
        same(jitted, function, args, tolerance)
        jitted.wait()
    kernels = executor_of(jitted).result.kernels
    assert any("fusion_loop" in name for name in kernels), jitted.explain()
    before = jitted.state().counters["kernel_launches"]
    same(jitted, function, args, tolerance)
    assert jitted.state().counters["kernel_launches"] > before
    assert jitted.state().counters["voided_launches"] == 0
    return jitted


def equal_results(one, two):
    """Equal types, lengths and, up to rounding, values; arrays have memory of their own."""
    assert type(one) is type(two)
    if isinstance(two, (list, tuple)):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            equal_results(a, b)
    elif isinstance(two, dict):
        assert list(one) == list(two)
        equal_results([*one.values()], [*two.values()])
    elif type(two) in (int, str) or two is None:
        assert one == two
    else:
        np.testing.assert_allclose(one, two, rtol=1e-12)
        if isinstance(two, np.ndarray):
            assert one.dtype == two.dtype and one.base is None
