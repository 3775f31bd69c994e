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
        len(r), list(r), 3 in r, r == range(1, len(x), 2), isinstance(r, range), r[0], max(r),
        type(r) is range, type(range(3)) is range, KINDS.get(type(r)), KINDS[type(range(3))],
        {type(r): 4}.get(range), issubclass(range, Sequence), list(reversed(r)), r.stop,
        [k * v for k, v in enumerate(range(len(x)))], len(x) in range(5), isinstance(3, range),
    )  # fmt: skip


def of_arrays(x):
    return x[np.array(range(len(x)))] + x[list(range(len(x)))] + np.asarray(range(len(x)))


def of_other_things(x):
    return len(f"{len(x)}"), len([0] * len(x)), len("ab"), len([x, x]), len({1: x}), [len(x)] * 2


def compared(x):
    return isinstance(len(x), int), len(x) == 4, min(len(x), 5), len(x) > 5 or len(x) < 2


@pytest.mark.parametrize(
    ("fn", "traces"),
    [
        (embedded, 1), (averaged, 1), (made, 1), (returned, 1), (unrolled, 4), (of_ranges, 4),
        (of_arrays, 4), (of_other_things, 4), (compared, None),
    ],
)  # fmt: skip
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
