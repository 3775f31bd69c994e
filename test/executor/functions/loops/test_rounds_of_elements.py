"""Loops whose rounds compute whole arrays: one walk for what a round computes, by blocks."""

from __future__ import annotations

import re

import numpy as np
import profuse as pf
import pytest
from native_loops import native

pytestmark = pytest.mark.optimised

RNG = np.random.default_rng(5)


def by_masks(x, y, rounds):
    zx, zy = np.zeros((len(y), len(x))), np.zeros((len(y), len(x)))
    count = np.zeros(zx.shape, dtype=np.int64)
    for _ in range(rounds):
        xx, yy = zx * zx, zy * zy
        inside = xx + yy < 4
        zy = np.where(inside, 2 * zx * zy + y[:, None], zy)
        zx = np.where(inside, xx - yy + x[None, :], zx)
        count += inside
    return count


def escape_times(c, rounds):
    z = np.zeros(c.shape, dtype=complex)
    count = np.zeros(c.shape, dtype=int)
    for k in range(rounds):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] = k
    return count


def newton_roots(a, rounds):
    x = a.copy()
    for _ in range(rounds):
        x = 0.5 * (x + a / x)
    return x


def two_results(a, b, rounds):
    """The one that is read by two others is a result, too."""
    for _ in range(rounds):
        m = np.sin(a)
        a, b = m * b, m + b
    return a, b, m


def with_largest(a, rounds):
    """What all elements say of one another ends a walk."""
    for _ in range(rounds):
        b = np.abs(a)
        a = a / b.max() + b
    return a


def with_neighbours(a, rounds):
    for _ in range(rounds):
        b = a * 0.5
        a = b + np.roll(b, 1)
    return a


def with_edges(a, rounds):
    """Parts that are written stay where they are."""
    for _ in range(rounds):
        b = a * a
        c = b + 1
        a = c / (b + 2)
        a[0] = 1
    return a


def sum_of_both(a, b, rounds):
    s = 0.0
    for k in range(rounds):
        c = a * k
        d = c + b
        s += float((c * d).sum())
    return s


def loops_of(jitted):
    return jitted.ir("loops")


def depth_of_rounds(jitted):
    """How many loops stand around the one over rounds, and how many within it."""
    text, opened, found = loops_of(jitted), [], None
    for line in text.splitlines():
        if re.search(r"\bscf\.for\b", line):
            opened.append(line)
            if found is None and "%c" not in line.split(" to ")[1].split(" step ")[0]:
                found = len(opened) - 1
        elif line.strip().startswith("}") and opened:
            opened.pop()
    return found


@pytest.mark.parametrize(("size", "around"), [((3, 5), 0), ((40, 70), 1), ((4, 1300), 2)])
def test_masks_of_pairs(size, around):
    x, y = np.linspace(-2, 0.6, size[1]), np.linspace(-1.2, 1.2, size[0])
    jitted = native(by_masks, x, y, 9)
    assert loops_of(jitted).count("cmpf") == 1, "the mask is a number"
    assert depth_of_rounds(jitted) == around


@pytest.mark.parametrize("dtype", [complex, np.complex64])
def test_escape_times(dtype):
    x, y = np.linspace(-2, 0.6, 60), np.linspace(-1.2, 1.2, 50)
    c = (x[None, :] + 1j * y[:, None]).astype(dtype)
    jitted = native(escape_times, c, 12)
    assert depth_of_rounds(jitted) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [1, 511, 513, 5000])
@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
def test_roots(size, rounds):
    jitted = native(newton_roots, RNG.random(size) + 0.5, rounds)
    assert rounds == 0 or depth_of_rounds(jitted) == (0 if size <= 512 else 1)


def test_threads_share_blocks():
    jitted = native(newton_roots, RNG.random(400_000) + 0.5, 20)
    assert "profuse.independent" in loops_of(jitted).split("arith.divf")[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("function", "count"),
    [(two_results, 2), (with_largest, 1), (with_neighbours, 1), (with_edges, 1), (sum_of_both, 2)],
)
@pytest.mark.parametrize("shape", [(7,), (1500,), (30, 40)])
def test_programs(function, count, shape):
    arrays = [RNG.standard_normal(shape) for _ in range(count)]
    native(function, *arrays, 6, tolerance=1e-9)


def test_sizes_of_the_call():
    jitted = pf.jit(by_masks)
    for n in (3, 600, 17, 40, 3, 900, 2, 31, 700, 5):
        x, y = np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n // 2 + 1)
        np.testing.assert_array_equal(jitted(x, y, 6), by_masks(x, y, 6))
        jitted.wait()


LIMITS = {
    "<": lambda r: r < 2.0,
    "<=": lambda r: r <= 2.0,
    ">": lambda r: r > 2.0,
    ">=": lambda r: r >= 2.0,
    "from the left": lambda r: np.greater(2.0, r),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("how", LIMITS)
def test_lengths_that_are_compared_need_no_root(how, dtype):
    part = np.dtype(dtype).type(0).real.dtype.type
    edges = [
        0,
        2,
        np.nextafter(part(2), part(0)),
        np.nextafter(part(2), part(3)),
        np.nan,
        np.inf,
        np.sqrt(part(2)),
        np.sqrt(part(3)),
        1e-200,
        1e300,
        -np.inf,
        1.2,
        -1.6,
    ]
    with np.errstate(all="ignore"):
        edges = np.array(edges, part)
    z = np.empty((len(edges), len(edges)), dtype)
    z.real, z.imag = edges[:, None], edges[None, :]
    length, compared = pf.jit(np.abs), pf.jit(lambda z: LIMITS[how](np.abs(z)))
    for _ in range(3):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(length(z), np.abs(z), rtol=2e-7)
            found, wanted = compared(z), LIMITS[how](length(z))
        compared.wait()
        length.wait()
    np.testing.assert_array_equal(found, wanted)
    assert compared.state().tier == "optimized"
    assert not re.search(r"sqrt[sp][sd]", compared.ir("asm"))


def test_lengths_that_are_used_otherwise_have_their_roots():
    @pf.jit
    def clipped(z):
        r = np.abs(z)
        return np.where(r < 2.0, r, 0.0)

    z = RNG.standard_normal(50) * 2 + 1j
    for _ in range(3):
        np.testing.assert_allclose(clipped(z), np.where(np.abs(z) < 2, np.abs(z), 0), rtol=1e-15)
        clipped.wait()
    assert re.search(r"sqrt[sp][sd]", clipped.ir("asm"))


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_lengths_of_what_lengths_have_chosen(dtype):
    @pf.jit
    def rounds(c, n):
        z = np.zeros_like(c)
        count = np.zeros(c.shape, np.int32)
        for _ in range(n):
            z = np.where(np.abs(z) < 2, z * z + c, z)
            count += np.abs(z) < 2
        return count

    c = (np.linspace(-2, 0.6, 40)[None, :] + 1j * np.linspace(-1.2, 1.2, 40)[:, None]).astype(dtype)
    wanted = rounds.__wrapped__(c, 12)
    for _ in range(4):
        np.testing.assert_array_equal(rounds(c, 12), wanted)
        rounds.wait()
    assert rounds.state().tier == "optimized"
    assert not re.search(r"sqrt[sp][sd]", rounds.ir("asm"))


def halved(x, y, n):
    for k in range(n):
        x = 0.5 * (x + y / x) + k
    return x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(2, 300, 8), (700, 2), (1, 1030, 1), (5, 9, 4, 3), (63,)])
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_blocks_of_short_rows_are_numpys(shape, strategy):
    """Blocks of rows go through all rounds, the last of them with fewer rows."""
    x, y = (1.0 + np.random.default_rng(k).random(shape) for k in range(2))
    jitted = pf.jit(halved, background=False, strategy=[(strategy, 4)])
    for n in (3, 4, 5, 17, 17):
        np.testing.assert_allclose(jitted(x, y, n), halved(x, y, n), rtol=1e-14)
    before = jitted.state().counters["kernel_launches"]
    jitted(x, y, 17)
    assert jitted.state().counters["kernel_launches"] == before + 1
