"""Python's complex numbers in loops: Python's own arithmetic, natively."""

from __future__ import annotations

import cmath
import math

import numpy as np
import profuse as pf
import pytest
from profuse.lowering.linalg import complexes

pytestmark = pytest.mark.optimised


def rounds_until_it_leaves(x, y, most):
    c = complex(x, y)
    z = 0.0j
    for k in range(most):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return k
    return most


def mandelbrot(image, most):
    height, width = image.shape
    for column in range(width):
        for row in range(height):
            x, y = -2.0 + column * (3.0 / width), -1.0 + row * (2.0 / height)
            image[row, column] = rounds_until_it_leaves(x, y, most)
    return image


def julia(n, c, most):
    out = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            z = complex(-1.5 + 3 * i / n, -1.5 + 3 * j / n)
            k = 0
            while abs(z) <= 2 and k < most:
                z = z * z + c
                k += 1
            out[i, j] = k
    return out


def newton_basins(n, most):
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            z = complex(-1.5 + 3 * i / n, -1.5 + 3 * j / n)
            rounds = 0
            while abs(z**3 - 1) > 1e-9 and abs(z) > 0 and rounds < most:
                z -= (z**3 - 1) / (3 * z**2)
                rounds += 1
            out[i, j] = rounds + cmath.phase(z)
    return out


def fourier(x):
    n = len(x)
    out = np.zeros(n, dtype=complex)
    for k in range(n):
        total = 0j
        for t in range(n):
            total += x[t] * cmath.exp(-2j * cmath.pi * k * t / n)
        out[k] = total
    return out


def roots(a, b, c):
    out = np.zeros((len(a), 2), complex)
    for i in range(len(a)):
        d = cmath.sqrt(b[i] * b[i] - 4 * a[i] * c[i])
        out[i, 0], out[i, 1] = (-b[i] + d) / (2 * a[i]), (-b[i] - d) / (2 * a[i])
    return out


def turned(z, n):
    w, total = cmath.exp(2j * math.pi / n), 0j
    for k in range(n):
        total += z * k
        z *= w
    return total


def horner(coefficients, z):
    total = 0
    for a in coefficients[::-1]:
        total = total * z + a
    return total


def quotients(x, z):
    total = z
    for k in range(x.shape[0]):
        total = (1 - total) / complex(x[k], 1) - total.conjugate() * 2.5 + k
    return total, -total, total == z, abs(total)


RANDOM = np.random.default_rng(5)
CALLS = [
    (mandelbrot, (np.zeros((13, 17), np.uint8), 25)),
    (julia, (15, -0.7 + 0.27j, 40)),
    (newton_basins, (9, 20)),
    (fourier, (RANDOM.random(24),)),
    (roots, tuple(RANDOM.random((3, 20)))),
    (turned, (1 + 0.5j, 40)),
    (horner, (RANDOM.random(30) * (1 - 1j), 0.3 + 0.2j)),
    (quotients, (RANDOM.random(12), 0.5 - 0.1j)),
]


def own(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "args"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_loops_of_complex_numbers_are_native_and_pythons(function, args):
    f = pf.jit(function, unsupported="python")
    expected = function(*own(args))
    for _ in range(5):
        found = f(*own(args))
        f.wait()
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, two in pairs:
            assert type(one) is type(two)
            np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-13)
    state = f.state()
    assert state.tier == "optimized" and state.emitted
    launches = state.counters["kernel_launches"]
    f(*own(args))
    after = f.state().counters
    assert after["kernel_launches"] == launches + 1
    assert after["voided_launches"] == 0


def iterate(x, z):
    for k in range(x.shape[0]):
        z = (z * z + x[k]) * (2 - 1j) / (z + 2.5) + complex(x[k], k) ** 3 - 1
    return z


def test_arithmetic_is_pythons_to_the_last_bit():
    f = pf.jit(iterate)
    for seed in range(40):
        x = np.random.default_rng(seed).random(9).tolist()
        assert f(np.array(x), 0.1 + 0.2j) == pytest.approx(iterate(np.array(x), 0.1 + 0.2j), 1e-12)

    def of_numbers(n, z):
        for k in range(n):
            z = (z * z + k) * (2 - 1j) / (z + 2.5) + complex(0.5, k) ** 3 - 1
        return z

    f = pf.jit(of_numbers)
    for n in (5, 5, 5, 30, 30, 30, 300):
        assert f(n, 0.1 + 0.2j) == of_numbers(n, 0.1 + 0.2j)
    assert f.state().counters["kernel_launches"] > 0


def divided(x):
    z = 1 + 1j
    for k in range(x.shape[0]):
        z = z / complex(x[k], 0)
    return z


def length(x):
    longest = 0.0
    for k in range(x.shape[0]):
        longest = max(longest, abs(complex(x[k], x[k])))
    return longest


def powers(x):
    z = 1 + 0j
    for k in range(x.shape[0]):
        z = complex(x[k], 0) ** 2 + z / 2
    return z


@pytest.mark.parametrize(
    ("function", "value", "error"),
    [(divided, 0.0, ZeroDivisionError), (length, 1.5e308, OverflowError), (powers, 1e200, OverflowError)],
)
def test_what_python_raises(function, value, error):
    f = pf.jit(function, unsupported="python")
    x = np.linspace(0.5, 1.5, 9)
    for _ in range(5):
        assert f(x) == pytest.approx(function(x), 1e-13)
        f.wait()
    assert f.state().tier == "optimized"
    x[4] = value
    with pytest.raises(error):
        function(x)
    with pytest.raises(error):
        f(x)
    assert f.state().counters["voided_launches"] == 1


def test_a_complex_argument_is_read_by_emitted_code():
    f = pf.jit(lambda x, z: x * z + 1)
    x = np.arange(5.0)
    for z in (1j, 2 - 1j, 3 + 0j, -0.5j):
        np.testing.assert_array_equal(f(x, z), x * z + 1)
    state = f.state()
    assert state.emitted and state.counters["traces"] == 1
    calls = state.counters["kernel_launches"]
    np.testing.assert_array_equal(f(x, 1 + 1j), x * (1 + 1j) + 1)
    assert f.state().counters["kernel_launches"] == calls + 1
    np.testing.assert_array_equal(f(x, 2.0), x * 2.0 + 1)  # a float has a graph of its own


def test_mixed_arithmetic_of_later_pythons(monkeypatch):
    # Since 3.14, a real operand is no complex number with a zero imaginary part.
    monkeypatch.setattr(complexes, "MIXED", True)

    def mixed(n, z):
        for k in range(n):
            z = (2.0 * z + k) / 1.0 - k
        return -0.0 - (0.0 - z)

    f = pf.jit(mixed)
    z = complex(0.25, -0.0)
    for _ in range(5):
        found = f(6, z)
    assert f.state().counters["kernel_launches"] > 0
    assert found == complex(16.0, 0.0) and math.copysign(1, found.imag) == -1


def test_mixed_arithmetic_of_this_python():
    def mixed(n, z):
        for k in range(n):
            z = (2.0 * z + k) / 1.0 - k
        return -0.0 - (0.0 - z)

    f = pf.jit(mixed)
    for z in (complex(0.25, -0.0), complex(-0.0, 1.5), complex(-0.0, -0.0), -1 - 2j):
        for _ in range(4):
            assert repr(f(6, z)) == repr(mixed(6, z))
    assert f.state().counters["kernel_launches"] > 0


def largest_length(x):
    z, most = complex(0, 0), 0
    for v in x:
        z = z * 1j + v
        if abs(z) > most:
            most = abs(z)
    return z, most, z.real > 1


def sum_of_quotients(x):
    total = 0
    for v in x:
        total += 1 / (1 + 1j * v)
    return total


def squares(x):
    z = 1j
    for v in x:
        z = z**2 / abs(z) + v
    return z


def of_one(x, z):
    return z + x[0], x[0] + z, z * x[1], x[1] ** z, z ** x[1], z == x[0], 2j - x[0], x[0] / 1j


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (largest_length, (RANDOM.random(20),)),
        (sum_of_quotients, (RANDOM.random(20),)),
        (squares, (RANDOM.random(20),)),
        (of_one, (RANDOM.random(3), 0.5 - 1j)),
        (of_one, (RANDOM.random(3).astype(np.float32), 0.5 - 1j)),
    ],
)
def test_a_complex_number_takes_an_element_on_its_right_for_a_float(function, args):
    f = pf.jit(function, unsupported="python")
    expected = function(*args)
    for _ in range(5):
        found = f(*args)
        f.wait()
        for one, two in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6 if args[0].dtype == np.float32 else 1e-13)
        kinds = [[type(x) for x in made] if type(made) is tuple else type(made) for made in (found, expected)]
        assert kinds[0] == kinds[1]
