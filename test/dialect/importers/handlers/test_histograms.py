"""`np.histogram` of equal bins between numbers: native, with NumPy's counts to the last one."""

import numpy as np
import profuse as pf
import pytest

RNG = np.random.default_rng(2)


def beside_edges(count, bins, ends, dtype):
    """Numbers of which many lie on an edge, or next to one; some are outside."""
    first, last = ends
    edges = np.linspace(first, last, bins + 1)
    x = RNG.normal((first + last) / 2, (last - first) / 2, count)
    near = np.nextafter(RNG.choice(edges, count), RNG.choice([-1e9, 0, 1e9], count))
    x = np.where(RNG.random(count) < 0.5, near, x)
    if np.dtype(dtype).kind == "f":
        x[: min(3, count)] = [np.nan, np.inf, -np.inf][: min(3, count)]
    elif np.dtype(dtype).kind == "u":
        x = abs(x)
    return x.astype(dtype)


def same(found, wanted):
    for f, w in zip(found, wanted, strict=True):
        assert f.dtype == w.dtype
        np.testing.assert_array_equal(f, w)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "i8"])
@pytest.mark.parametrize(("bins", "ends"), [(10, (0, 10)), (256, [0, 256]), (7, (-3.3, 0.7))])
def test_counts(dtype, bins, ends):
    histogram = pf.jit(lambda x: np.histogram(x, bins=bins, range=ends))
    for _ in range(3):
        x = beside_edges(600, bins, ends, dtype).reshape(20, 30)
        same(histogram(x), np.histogram(x, bins=bins, range=ends))
        histogram.wait()
    state = histogram.state()
    before, launched = state.counters["evaluated_ops"], state.counters["kernel_launches"]
    same(histogram(x), np.histogram(x, bins=bins, range=ends))
    counters = histogram.state().counters
    assert counters["evaluated_ops"] == before and counters["kernel_launches"] > launched


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_numbers(count):
    histogram = pf.jit(lambda x: np.histogram(x, 4, (0.0, 1.0)))
    for _ in range(3):
        x = RNG.random(count)
        same(histogram(x), np.histogram(x, 4, (0.0, 1.0)))
        histogram.wait()


def test_edges_are_the_callers():
    histogram = pf.jit(lambda x: np.histogram(x, 4, (0.0, 1.0)))
    for _ in range(4):
        edges = histogram(RNG.random(50))[1]
        np.testing.assert_array_equal(edges, np.linspace(0, 1, 5))
        edges[:] = 0
        histogram.wait()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bins": "auto"},
        {"bins": [0, 1, 3]},
        {"bins": 5, "range": (0, 2), "density": True},
        {"range": (0, 1), "weights": np.arange(50.0)},
        {"range": (1, 1)},
    ],
)
def test_others_are_numpys(given):
    histogram = pf.jit(lambda x: np.histogram(x, **given))
    x = RNG.random(50)
    for _ in range(3):
        same(histogram(x), np.histogram(x, **given))
        histogram.wait()
    assert "host_call" in histogram.ir("graph")


@pytest.mark.parametrize("given", [{"bins": 0}, {"range": (2, 1)}, {"range": (0, np.inf)}])
def test_errors_are_numpys(given):
    histogram = pf.jit(lambda x: np.histogram(x, **{"range": (0, 1), **given}))
    with pytest.raises(ValueError):
        histogram(RNG.random(50))
