"""Every function that runs on the host, in a jitted function, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import profuse as pf
import pytest
from host_cases import CASES
from profuse.dialect.ops.host.rule import rules
from profuse.dialect.trees.pytree import flatten

DTYPES = ("f8", "f4", "i8", "c16", "?")
# Gradients and importers ask for them only.
INNER = {"profuse.add_at", "profuse.eig", "profuse.expm", "profuse.grouped_product", "profuse.grouped_outer"}
REFUSED = {"numpy.roots"}
# Whether their results are complex depends on contents.
REFUSED_DTYPES = {("numpy.poly", "c16")}


def vector(dtype: str, size: int = 6) -> np.ndarray:
    rng = np.random.default_rng(size)
    if dtype == "?":
        return np.arange(size) % 3 != 1
    values = rng.permutation(np.arange(1, size + 1)) - 2
    if dtype == "c16":
        return values + 1j * rng.integers(-2, 3, size)
    return values.astype(dtype)


def leaves(x):
    found, _ = flatten(x)
    return found


def test_each_function_of_the_table_has_a_case():
    assert set(rules()) - INNER - REFUSED <= set(CASES)


@pytest.mark.sampled(16, each=())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numpy_at_each_tier(name, dtype):
    case = CASES[name]
    v = vector(dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = case(v)
        except (TypeError, ValueError) as error:
            with pytest.raises((TypeError, ValueError)):
                pf.jit(case)(v)
            assert error is not None
            return
        f = pf.jit(case)
        if (name, dtype) in REFUSED_DTYPES:
            with pytest.raises(TypeError, match="real"):
                f(v)
            return
        for _ in range(4):
            found = f(v)
            f.wait()
            assert len(leaves(found)) == len(leaves(expected))
            for a, b in zip(leaves(found), leaves(expected), strict=True):
                assert type(a) is type(b) or (np.ndim(a) == 0 == np.ndim(b))
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
