"""What the tests of device calls share."""

from __future__ import annotations

import numpy as np
import profuse as pf

rng = np.random.default_rng(3)


def host(*shape, dtype=np.float32):
    """A host array of random numbers."""
    return rng.standard_normal(shape).astype(dtype)


def warmed(fn, *args, **options):
    """The function after its profiled and its first optimised call."""
    f = pf.jit(fn, **options)
    f(*args)
    f(*args)
    return f


def counts(f, *names):
    """Counters of a function, by name."""
    counters = f.state().counters
    return [counters[name] for name in names]


def modulus(x):
    """Computed through complex numbers, for which there are no kernels."""
    return np.abs(x.astype(np.complex64))
