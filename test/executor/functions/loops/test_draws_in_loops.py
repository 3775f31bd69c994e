"""What the rounds of a loop draw is drawn before the graph, as Python would have drawn it."""

import threading

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions import drawing

BITS = (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64)


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


def check(f, calls, tolerance=0.0, bits=np.random.PCG64):
    """Results and states of calls, beside Python's; returns the jitted function."""
    jitted = pf.jit(f)
    for k, args in enumerate(calls):
        ours, theirs = (np.random.Generator(bits(k)) for _ in range(2))
        for _ in range(2):  # the second one begins where the first has ended
            found, wanted = jitted(ours, *args), f(theirs, *args)
            assert repr(ours.bit_generator.state) == repr(theirs.bit_generator.state)
            if not isinstance(wanted, tuple):
                found, wanted = (found,), (wanted,)
            for a, b in zip(found, wanted, strict=True):
                assert type(a) is type(b)
                np.testing.assert_allclose(a, b, tolerance)
    return jitted


def native(f, calls, tolerance=1e-12, bits=np.random.PCG64):
    """The same, all in native code."""
    jitted = check(f, calls, tolerance, bits)
    counters = jitted.state().counters
    assert jitted.state().tier == "optimized" and counters["kernel_launches"] >= len(calls)
    # The profile is a sample of rounds, and Python runs its call.
    assert counters["python_calls"] <= 2 and not counters["voided_launches"]
    assert "recorded one by one" not in jitted.explain()
    return jitted


METHODS = [  # no dict: no line of one could be compiled alone
    ("random", lambda g: g.random()),
    ("standard_normal", lambda g: g.standard_normal()),
    ("standard_exponential", lambda g: g.standard_exponential()),
    ("normal", lambda g: g.normal(0.5, 2.0)),
    ("uniform", lambda g: g.uniform(-1.0, high=3.0)),
    ("integers", lambda g: g.integers(0, 10)),
    ("many integers", lambda g: g.integers(2**40)),
    ("exponential", lambda g: g.exponential(2.0)),
    ("gamma", lambda g: g.gamma(0.7, 2.0)),
    ("beta", lambda g: g.beta(0.5, 0.3)),
    ("poisson", lambda g: g.poisson(3.0)),
    ("binomial", lambda g: g.binomial(100, 0.3)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "draw"), METHODS, ids=[name for name, _ in METHODS])
def test_methods(name, draw):
    def f(rng, n):
        total, out = 0.0, np.zeros(n)
        for i in range(n):
            total = 0.5 * total + draw(rng)
            out[i] = total
        return total, out

    native(f, [(40,), (40,), (41,), (17,), (0,)])


@pytest.mark.parametrize("bits", BITS, ids=lambda bits: bits.__name__)
def test_bit_generators(bits):
    def f(rng, n):
        inside = 0
        for _ in range(n):
            x = rng.random()
            y = rng.random()
            if x * x + y * y < 1:
                inside += 1
        return 4 * inside / n, rng.normal()

    native(f, [(300,), (300,), (100,)], bits=bits)


def test_arrays_and_sizes_of_arguments():
    def f(rng, n, m):
        x, y = np.zeros(m), np.ones((3, 4))
        first = rng.random()
        for _ in range(n):
            x = x * 0.9 + 0.1 * rng.standard_normal(m)
        for _ in range(1, n):
            step = rng.normal(first, 1.0, (3, 4))
            step[0] = 0.0
            y = y * 0.5 + step
        return x, y, rng.random(2)

    native(f, [(30, 5), (30, 5), (40, 3), (20, 1)])


def test_loops_in_loops():
    def f(rng, n, m):
        t = np.zeros((n, m))
        for i in range(n):
            for j in range(1, m):
                t[i, j] = t[i, j - 1] + rng.exponential(2.0)
        return t

    native(f, [(20, 30), (20, 30), (21, 9), (17, 1)])


def test_short_loops_in_a_round_draw_as_often_as_they_are_long():
    def f(rng, n):
        total = 0.0
        for _ in range(n):
            total = total * 0.5 + rng.random()
            for _ in range(3):
                total += rng.random()
        return total

    native(f, [(50,), (50,), (70,)])


def test_several_generators():
    def f(rng, other, n):
        x, accepted = 0.0, 0
        for _ in range(n):
            y = x + rng.uniform(-1, 1)
            if other.random() < np.exp(0.5 * (x * x - y * y)):
                x, accepted = y, accepted + 1
        return x, accepted

    jitted = pf.jit(f)
    a, b, c, d = (np.random.default_rng(k % 2) for k in range(4))
    for n in (200, 200, 300, 300):
        assert jitted(a, b, n) == pytest.approx(f(c, d, n), 1e-9)
        assert (a.random(), b.random()) == (c.random(), d.random())
    assert jitted.state().tier == "optimized"


def in_a_branch(rng, n):
    x = 0.0
    for _ in range(n):
        if x < 1:
            x += rng.random()
        else:
            x -= 1
    return x


def until_a_break(rng, n):
    total = 0.0
    for _ in range(n):
        total += rng.random()
        if total > 20:
            break
    return total


def of_two_kinds(rng, n):
    total = 0.0
    for _ in range(n):
        total += rng.random() * rng.normal()
    return total


def of_few_bits(rng, n):
    total = 0
    for _ in range(n):
        total += int(rng.integers(0, 10, dtype=np.uint8))
    return total


def as_many_as_were_drawn(rng, n):
    total = 0.0
    for _ in range(n):
        for _ in range(int(rng.integers(1, 40))):
            total += rng.random()
    return total


def in_two_loops_of_a_round(rng, n):
    total = 0.0
    for _ in range(n):
        for _ in range(n):
            total += rng.random()
        for _ in range(n):
            total -= rng.random()
    return total


def of_changing_arguments(rng, n):
    x = 0.5
    for _ in range(n):
        x = rng.normal(x, 1.0)
    return x


@pytest.mark.parametrize(
    "f",
    [
        in_a_branch,
        until_a_break,
        of_two_kinds,
        of_few_bits,
        as_many_as_were_drawn,
        in_two_loops_of_a_round,
        of_changing_arguments,
    ],
    ids=lambda f: f.__name__,
)
def test_other_draws_are_pythons(f):
    # Of two loops in a round, the rounds of which are recorded, so few that it does not take seconds.
    counts = (24, 24, 20, 0) if f is in_two_loops_of_a_round else (60, 60, 30, 0)
    check(f, [(n,) for n in counts])


def test_more_than_memory_should_hold_is_pythons(monkeypatch):
    monkeypatch.setattr(drawing, "_MOST", 8 * 40)

    def f(rng, n):
        total = 0.0
        for _ in range(n):
            total += rng.random()
        return total

    jitted = check(f, [(40,), (40,), (41,), (41,)], 1e-12)
    counters = jitted.state().counters
    assert counters["python_calls"] >= 4 and counters["kernel_launches"] >= 3


def test_a_round_that_raises_leaves_the_generator_as_python_does():
    def f(rng, x, n):
        total = 0.0
        for i in range(n):
            total += x[i] * rng.random()
        return total

    jitted, x = pf.jit(f), np.ones(50)
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for n in (50, 50, 60, 50, 60):
        try:
            wanted = f(theirs, x, n)
        except IndexError:
            with pytest.raises(IndexError):
                jitted(ours, x, n)
        else:
            assert jitted(ours, x, n) == pytest.approx(wanted, 1e-12)
        assert ours.bit_generator.state == theirs.bit_generator.state


def test_threads_with_a_generator_of_their_own():
    def f(rng, n):
        x, out = 0.0, np.zeros(n)
        for i in range(n):
            x = 0.9 * x + rng.normal()
            out[i] = x
        return out

    jitted, right = pf.jit(f), []

    def run(seed):
        ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        right.append([np.allclose(jitted(ours, n), f(theirs, n), 1e-12) for n in (30, 40, 50, 30)])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert right == [[True] * 4] * 6
