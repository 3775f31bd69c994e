"""float16: what overflows on the way; and powers by a number argument: NumPy's on every tier."""

import numpy as np
import profuse as pf
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
COLUMNS = np.array(
    [
        [60000, 1, 300, -60000, 0.1, np.inf, 5],
        [60000, 2, -300, 60000, 0.2, 1, np.nan],
        [60000, 3, 300, 60000, 0.3, 2, 1],
        [-60000, 4, -300, -60000, 0.7, 3, 1],
    ],
    np.float16,
)
MANY = np.resize(np.array([1, 2], np.float16), 70000)  # a count beyond 65504


@pytest.mark.parametrize("strategy", [[("static", 1)], [("dynamic", 1)]], ids=str)
def test_moments_overflow_where_numpys_do(strategy):
    def plain(x, y):
        return (
            x.var(axis=0),
            x.std(axis=0),
            x.mean(axis=0),
            x[:, :1].var(),
            x.var(axis=0, ddof=1),
            x.std(axis=0, ddof=4),
            x.T.var(axis=1),
            x.var(axis=0, dtype=np.float32),
            y.mean(),
            y.var(),
            y.std(),
        )

    f = pf.jit(plain, strategy=strategy)
    want = plain(COLUMNS, MANY)
    assert np.isinf(want[1][0]) and np.isinf(want[3]) and want[8] == 1.5
    for _ in range(3):
        for got, expected in zip(f(COLUMNS, MANY), want, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))
            np.testing.assert_allclose(got, expected, rtol=2e-3)
    assert f.state().counters["kernel_launches"] >= 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("power", [lambda x, k: x**k, np.power], ids=["**", "power"])
def test_powers_by_a_number_argument(power, dtype):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1, -1, 2, -2, 0.5, 3, -3], dtype)
    f = pf.jit(lambda x, k: power(x, k))
    for k in (0.5, 2.0, -1.0, -0.5, 3.0, 0.0, np.inf, -0.0, np.nan, 0.3, 1.0, 0.5):
        want, got = power(x, k), f(x, k)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5 if dtype != np.float16 else 2e-3)
        there = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want[there]), str(k))
    counters = f.state().counters
    assert (counters["traces"], counters["kernel_launches"]) == (1, 11)
