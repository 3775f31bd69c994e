"""What a check may hold against a kernel: how far tier 0 itself leaves results open."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from profuse.executor.compile.proof.check import Budget, check_kernel
from profuse.executor.compile.proof.comparison import Result
from profuse.executor.compile.proof.reference import Reference
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from graphs import Graph, tensor

ALL = Budget("all")


def compiled(program):
    return compile_program(program, host_target())


@pytest.mark.parametrize("behavior", ["static", "dynamic"])
@pytest.mark.parametrize("shapes", [((4, 0), (0,)), ((0,), (0, 4)), ((2, 3, 0), (0,))])
def test_products_over_no_elements_are_written(shapes, behavior):
    """Libraries leave a result as it was that has nothing to add."""
    f = pf.jit(lambda x, y: x @ y, background=False, strategy=[(behavior, 2)])
    for _ in range(3):
        assert not f(*(np.ones(s, np.float32) for s in shapes)).any()
    assert (f.state().counters["kernel_launches"], f.state().reasons) == (2, ())


@pytest.mark.parametrize("behavior", ["static", "dynamic"])
def test_the_sign_of_a_nan_that_an_operation_makes_decides_nothing(behavior):
    f = pf.jit(lambda x: np.signbit(x.std(axis=-1)), background=False, strategy=[(behavior, 2)])
    for _ in range(2):
        f(np.ones((4, 0)))
    assert f.state().counters["check_failures"] == 0


def test_the_mean_of_one_product_may_be_rounded_where_the_product_is_not(monkeypatch):
    """A kernel may fuse a product into a difference: that is not 0 then, but what rounding cost."""
    monkeypatch.setenv("PROFUSE_CHECK", "all")
    f = pf.jit(lambda x, y: (x * y).std(), background=False, strategy=[("static", 2)])
    for _ in range(3):
        f(np.float32([[0.3]]), np.float32([0.7]))
    assert (f.state().counters["check_failures"], f.state().reasons) == (0, ())


@pytest.mark.parametrize("axes", [3, "s0"])
def test_what_is_decided_by_the_variance_of_equal_numbers(axes):
    """It is 0, or nearly so, as their mean is rounded: in NumPy that of three times π/4 in f32."""
    g = Graph(tensor(axes))
    (x,) = g.inputs
    turned = g.atan2(x, x)
    program = g.returning(g.any(g.std(turned, axes=(0,), keepdims=True)), turned)
    assert check_kernel(program, compiled(program), ALL).outcome == "checked"


def test_indices_into_what_becomes_empty_may_be_reported():
    """NumPy does not look at an index into no elements, though results are made of their number."""

    def f(x):
        return (np.ones_like(x[2::3, [1, 0, -1]]) * 2).sum(axis=(0, 1))

    with pf.knobs.override(profiling_mode=False, check="all"):
        compiled = pf.jit(f, background=False)
        for rows in (5, 6, 3):
            assert compiled(np.ones((rows, 2))) == f(np.ones((rows, 2)))
    assert (compiled.state().counters["check_failures"], compiled.state().reasons) == (0, ())


@pytest.mark.parametrize("behavior", ["static", "dynamic"])
def test_what_is_decided_by_whether_the_smallest_number_is_zero(behavior):
    """NumPy's exp2 of f32 gives 0 where the smallest number is the nearest: 0 % 0 is NaN."""
    g = Graph(tensor(*([4099] if behavior == "static" else ["s0"])))
    (x,) = g.inputs
    power = g.exp2(x)
    program = g.returning(g.remainder(power, power))
    assert check_kernel(program, compiled(program), ALL).outcome == "checked"


def test_what_is_decided_at_single_points():
    """(1 - 2**-24)**(the same) is NaN of its negative, but not where a kernel rounds that to -1."""
    values = np.array([-17.041847], np.float32)
    g = Graph(tensor(1))
    (x,) = g.inputs
    off = g.expm1(x)
    reference = Reference(g.returning(g.pow(off, off)))
    assert np.isnan(reference([values])[0]).all()
    result = Result(np.float32([-1]), reference([values])[0], rounds=True, moves=False)
    assert result.judge([n[0] for n in reference.nearby([values], 64, 1, 1)]).wrong == 0
    assert result.judge([]).wrong == 1


def test_a_sum_of_products_may_be_the_integer_that_decides():
    """The remainder of x @ y by -1 is 0, and its quotient by itself NaN, at integers alone."""
    rng = np.random.default_rng(2)
    values = [(300 * rng.standard_normal((32, 64))).astype(np.float32) for _ in range(2)]
    values[1] = values[1].T.copy()
    g = Graph(tensor(32, 64), tensor(64, 32))
    rest = g.remainder(g.matmul(*g.inputs), g.number(-1.0))
    reference = Reference(g.returning(g.div(rest, rest)))
    whole = values[0].astype("f8") @ values[1]
    # Of the elements, the one that is nearest to an integer, but is none.
    off = np.where(reference(values)[0] == 1, np.abs(whole - np.rint(whole)), 1)
    nearest = np.unravel_index(off.argmin(), off.shape)
    nearby = [n[0] for n in reference.nearby(values, 64, 1, 1)]
    assert any(np.isnan(n[nearest]) for n in nearby)


def test_a_divisor_may_vanish_of_which_rounding_decides_the_size():
    """1 / (tanh(x) - x) is infinite wherever tanh(x) is rounded to x."""
    values = np.full(1, 3e-3, np.float32)
    g = Graph(tensor(1))
    (x,) = g.inputs
    reference = Reference(g.returning(g.div(g.number(1.0), g.sub(g.tanh(x), x))))
    expected = reference([values])[0]
    nearby = [n[0] for n in reference.nearby([values], 16, 1)]
    finite = [n for n in nearby if np.isfinite(n).all()]
    for found in (np.inf, -np.inf):
        result = Result(np.full_like(expected, found), expected, rounds=True, moves=False)
        assert result.judge(finite).wrong == 0
        assert result.judge([]).wrong == 1


def test_products_that_overflow_may_be_fused_with_the_sum():
    """inf - inf is NaN; without the rounding of one product it is an infinity."""
    most = np.finfo(np.float32).max
    g = Graph(tensor(1, 2), tensor(2, 1))
    x, y = g.inputs
    reference = Reference(g.returning(g.matmul(x, y)))
    values = [np.float32([[most, most]]), np.float32([[most], [-most]])]
    expected = reference(values)[0]
    assert np.isnan(expected).all()
    result = Result(np.float32([[np.inf]]), expected, rounds=True, moves=False)
    assert result.judge([n[0] for n in reference.nearby(values, 64, 1, 1)]).wrong == 1
    assert result.judge([n[0] for n in reference.widened(values, [expected])]).wrong == 0


@pytest.mark.parametrize("axes", [(1,), None, (0, -1)])
def test_partial_sums_may_overflow_in_any_order(axes):
    """The largest number twice, then its negative twice: infinite, or 0, as sums are grouped."""
    most = np.finfo(np.float32).max
    g = Graph(tensor(1, 4))
    (x,) = g.inputs
    reference = Reference(g.returning(g.sum(x, axes=axes)))
    values = [np.float32([[most, most, -most, -most]])]
    expected = reference(values)[0]
    for found in (np.inf, -np.inf, np.nan, 0):
        result = Result(np.full_like(expected, found), expected, rounds=True, moves=False)
        assert result.judge([n[0] for n in reference.nearby(values, 16, 1, 1)]).wrong == 0
    reference = Reference(g.returning(g.max(x, axes=axes)))
    result = Result(np.full_like(expected, np.nan), reference(values)[0], rounds=True, moves=False)
    assert result.judge([n[0] for n in reference.nearby(values, 16, 1, 1)]).wrong == 1


@pytest.mark.parametrize("name", ["min", "minimum", "maximum", "clip"])
def test_the_sign_of_a_zero_that_is_as_large_as_another_is_not_judged(name):
    def build(g):
        _, x, y = g.inputs
        if name == "min":
            return g.min(g.stack(x, y, axis=0), axes=(0,))
        return g.clip(x, y, y) if name == "clip" else getattr(g, name)(x, y)

    g = Graph(tensor(2), tensor(2), tensor(2))
    reference = Reference(g.returning(g.copysign(g.inputs[0], build(g))))
    values = [np.float32([1.0, 1.0]), np.float32([0.0, 2.0]), np.float32([-0.0, 2.0])]
    signed = reference(values)[0]
    for other, wrong in ((np.float32([-1, 1]), 0), (np.float32([1, -1]), 1)):
        result = Result(other * signed, signed, rounds=reference.rounds[0], moves=False)
        assert result.judge([n[0] for n in reference.nearby(values, 16, 1, 1)]).wrong == wrong
