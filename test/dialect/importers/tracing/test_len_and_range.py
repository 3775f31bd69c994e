"""``len`` and ``range`` of traced arrays: sizes stay symbolic, and types are what Python says."""

from collections.abc import Sequence

import numpy as np
import profuse as pf
import pytest

TABLE = np.arange(40.0).reshape(20, 2)
KINDS = {range: 7, int: 3}
SIZES = (4, 4, 5, 6, 7, 4)


def embedded(x):
    return TABLE[x.astype(int)] + TABLE[range(len(x))] + TABLE[range(1, len(x) + 1)]


def averaged(x):
    return x.sum() / len(x) + len(x) // 2


def made(x):
    return np.zeros(len(x)) + np.ones((len(x), 2)).sum(axis=1) + np.arange(len(x))


def returned(x):
    return len(x), len(x) + 1, x[: len(x) // 2]


def unrolled(x):
    return sum(x[k] * k for k in range(len(x))) + x[len(x) - 1]


def of_ranges(x):
    r = range(1, len(x), 2)
    return (
        len(r),
        list(r),
        3 in r,
        r == range(1, len(x), 2),
        isinstance(r, range),
        r[0],
        max(r),
        type(r) is range,
        type(range(3)) is range,
        KINDS.get(type(r)),
        KINDS[type(range(3))],
        {type(r): 4}.get(range),
        issubclass(range, Sequence),
        list(reversed(r)),
        r.stop,
        [k * v for k, v in enumerate(range(len(x)))],
        len(x) in range(5),
        isinstance(3, range),
    )


def of_arrays(x):
    return x[np.array(range(len(x)))] + x[list(range(len(x)))] + np.asarray(range(len(x)))


def of_other_things(x):
    return len(f"{len(x)}"), len([0] * len(x)), len("ab"), len([x, x]), len({1: x}), [len(x)] * 2


def compared(x):
    return isinstance(len(x), int), len(x) == 4, min(len(x), 5), len(x) > 5 or len(x) < 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fn", "traces"),
    [
        (embedded, 1),
        (averaged, 1),
        (made, 1),
        (returned, 1),
        (unrolled, 4),
        (of_ranges, 4),
        (of_arrays, 4),
        (of_other_things, 4),
        (compared, None),
    ],
)
@pytest.mark.parametrize("options", [{}, {"strategy": []}], ids=["compiled", "evaluated"])
def test_results_and_types_are_pythons(fn, traces, options):
    f = pf.jit(fn, background=False, **options)
    for n in SIZES:
        x = np.arange(float(n)) % 3
        found, expected = f(x), fn(x)
        assert type(found) is type(expected)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for a, b in zip(found, expected, strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b)
    assert traces is None or f.state().counters["traces"] == traces


def test_ranges_are_returned_as_such():
    with pf.knobs.override(unsupported="python"):
        f = pf.jit(lambda x: (range(len(x)), x * 2), background=False)
        for n in (3, 4, 3):
            found, _ = f(np.ones(n))
            assert type(found) is range and found == range(n)


def test_errors_are_pythons():
    def of_scalars(x):
        try:
            return len(x[0])
        except TypeError:
            return -1

    assert pf.jit(of_scalars)(np.ones(3)) == -1
    for wrong in (lambda x: range(x[0]), lambda x: range(len(x) * 1.0), lambda x: range()):
        with pf.knobs.override(unsupported="python"), pytest.raises(TypeError):
            pf.jit(wrong)(np.ones(3))


def counted(k):
    """Bounds and indices ``k`` before the end of an axis."""
    return [
        lambda x: x[: len(x) - k] * 2,
        lambda x: x[len(x) - k :] * 2,
        lambda x: x[1 : x.shape[0] - k] + 0,
        lambda x: x[len(x) - k] * 2,
        lambda x: x[len(x) - k : len(x) - 1] * 3,
        lambda x: x[: len(x) - k : 2] * 1,
        lambda x: x[len(x) - 1 : 0 : -1] * 1,
        lambda x: (x[None, :, None] * 1)[0, x.shape[0] - k :, 0],
        lambda x: x.reshape(1, -1)[..., len(x) - k] + 0,
    ]


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize("options", [{}, {"strategy": []}], ids=["compiled", "evaluated"])
@pytest.mark.parametrize("k", [0, 1, 2, 3, 5])
def test_bounds_count_from_the_end_as_in_numpy(k, options):
    """Also where the axis has fewer elements, and a negative bound counts from the end."""
    for fn in counted(k):
        f = pf.jit(fn, background=False, **options)
        for n in (6, 6, 7, 4, 3, 2, 1, 0, 8, 9):
            x = np.arange(float(n))
            try:
                expected = fn(x)
            except IndexError:
                with pytest.raises(IndexError):
                    f(x)
                continue
            np.testing.assert_array_equal(f(x), expected)


def test_slices_that_end_before_the_end_are_kernels_for_all_sizes():
    f = pf.jit(lambda x: x[1 : len(x) - 1] * 2 + x[: x.shape[0] - 2], background=False)
    for n in (60, 62, 64, 66, 68) * 2:
        f(np.arange(float(n)))
    counters = f.state().counters
    assert (counters["traces"], counters["compiles"]) == (1, 3)
    before = counters["evaluated_ops"]
    f(np.arange(70.0)), f(np.arange(72.0))
    assert f.state().counters["evaluated_ops"] == before


def test_functions_that_need_numbers_get_them():
    """A trace with plain sizes follows one that fails with symbolic ones."""
    f = pf.jit(lambda x: np.tile(x, len(x)) + 1.0, background=False)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(f(np.ones(n)), np.full(n * n, 2.0))
    assert f.state().counters["traces"] == 2
