"""Functions whose loops run on a device, beside what Python does."""

from __future__ import annotations

import sys
from pathlib import Path

import fakelib as xp
import numpy as np
import profuse as pf

sys.path.insert(0, str(Path(__file__).parents[1] / "functions" / "loops"))
import shared_programs

SIZES = (6, 7, 8, 9)  # after which kernels serve all sizes


def on_device(args):
    return [xp.array(a) if isinstance(a, np.ndarray) else a for a in args]


def results(found):
    found = found if isinstance(found, tuple) else (found,)
    return [f.get() if isinstance(f, xp.Array) else np.asarray(f) for f in found]


def check(jitted, function, args, given=None, ulps=0):
    """The results on a device are Python's, but for so many units in the last place.

    None: whatever rounding may make of them, as NumPy rounds whole arrays otherwise than elements.
    """
    given = on_device(args) if given is None else given
    expected = function(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, wanted in zip(results(jitted(*given)), expected, strict=True):
        wanted = np.asarray(wanted)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        if ulps is None:
            np.testing.assert_allclose(found, wanted, 1e-9)
        elif ulps:
            np.testing.assert_array_max_ulp(found, wanted, ulps)
        else:
            assert found.tobytes() == wanted.tobytes()


def native(function, *several, ulps=0):
    """A jitted function that has been called with these arguments until it runs in kernels."""
    jitted = pf.jit(function)
    for args in several:
        for _ in range(3):
            check(jitted, function, args, ulps=None)
            jitted.wait()
    counters = jitted.state().counters
    before = [counters[n] for n in ("evaluated_ops", "voided_launches", "device_fallbacks")]
    launches = counters["kernel_launches"]
    check(jitted, function, several[-1], ulps=ulps)
    counters = jitted.state().counters
    assert [counters[n] for n in ("evaluated_ops", "voided_launches", "device_fallbacks")] == before, jitted.explain()
    assert counters["kernel_launches"] > launches, jitted.explain()
    return jitted


__all__ = ["SIZES", "check", "native", "on_device", "results", "shared_programs"]
