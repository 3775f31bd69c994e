"""Gradients and tangents belong to their caller: writes to one are seen in no other, and pullbacks see no writes."""

import numpy as np
import profuse as pf
import pytest

A = np.linspace(0, 1, 9).reshape(3, 3)
B = np.arange(9.0).reshape(3, 3) + 1
ONES = np.ones((3, 3))


@pf.custom_vjp
class times:
    """A product whose gradient is what it has saved, and for both operands the same."""

    def forward(a, c):
        return a * c, c

    def backward(saved, gradient):
        return saved, saved


def of_a_sum(a, b):
    first, second = pf.grad(lambda a, b: np.tanh(a + b).sum(), wrt=(0, 1))(a, b)
    first *= 2
    return first, second


def of_a_view(a, b):
    (first, second) = pf.value_and_grad(lambda a, b: np.tanh(a + b.T).sum(), wrt=(0, 1))(a, b)[1]
    first[0] = 7
    return first, second


def of_a_total(a, b):
    gradient = pf.grad(lambda a: a.sum())(a)
    gradient *= 3
    gradient[0] = 1
    return (gradient,)


def pulled_back(a, b):
    _, pull = pf.vjp(lambda a, b: a + b.T, a, b)
    given = np.cos(a)
    first, second = pull(given)
    first[0] = 7
    return first, second, given


def of_a_rule(a, b):
    first, second = pf.grad(lambda a, b: times(a, b).sum(), wrt=(0, 1))(a, b)
    first[0] = 7
    return first, second


def along(a, b):
    (_, _), (first, second) = pf.jvp(lambda a: (a + 1, a.T), (a,), (b * 1,))
    first *= 2
    return first, second


_SECH2 = 1 / np.cosh(A + B) ** 2
_SECH2_T = 1 / np.cosh(A + B.T) ** 2


def _with_row(x, value):
    x = x.copy()
    x[0] = value
    return x


CASES = {
    of_a_sum: (2 * _SECH2, _SECH2),
    of_a_view: (_with_row(_SECH2_T, 7), _SECH2_T.T),
    of_a_total: (_with_row(3 * ONES, 1),),
    pulled_back: (_with_row(np.cos(A), 7), np.cos(A).T, np.cos(A)),
    of_a_rule: (_with_row(B, 7), B),
    along: (2 * B, B.T),
}


@pytest.mark.parametrize("program", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_writes_to_one_derivative_are_seen_in_no_other(program, is_jitted):
    function = pf.jit(program) if is_jitted else program
    for _ in range(3):
        a, b = A.copy(), B.copy()
        for result, expected in zip(function(a, b), CASES[program], strict=True):
            np.testing.assert_allclose(result, expected, atol=1e-9)
        np.testing.assert_array_equal(a, A)
        np.testing.assert_array_equal(b, B)


def test_results_share_no_memory_and_may_be_written_to():
    @pf.jit
    def gradients(a, b):
        return pf.grad(lambda a, b: (a + b.reshape(-1).reshape(3, 3)).sum(), wrt=(0, 1))(a, b)

    for _ in range(3):
        first, second = gradients(A, B)
        assert first.flags.writeable and second.flags.writeable
        assert not np.shares_memory(first, second)


def result_written(a, b):
    y, pull = pf.vjp(np.exp, a)
    y *= 0
    return pull(ONES)[0]


def operand_written(a, b):
    c = np.tanh(a)
    _, pull = pf.vjp(lambda b: c * b, b)
    c[0] = 9
    return pull(ONES)[0]


def part_written(a, b):
    y, pull = pf.vjp(lambda a: np.exp(a), a)
    part = y[1:]
    part *= 0
    return pull(ONES)[0]


def saved_written(a, b):
    c = np.tanh(a)
    _, pull = pf.vjp(lambda a: times(a, c), a)
    c[0] = 9
    return pull(ONES)[0]


def written_by_rounds(a, b):
    y, pull = pf.vjp(np.exp, a)
    total = np.zeros((3, 3))
    for _ in range(int(b[0, 0]) + 1):
        total = total + pull(ONES)[0]
        y *= 0
    return total / 2


def two_pullbacks(a, b):
    y, pull = pf.vjp(np.exp, a)
    _, later = pf.vjp(lambda b: b * y, b)
    y *= 0
    return later(ONES)[0] + pull(ONES)[0] - np.exp(a)


def differentiated(a, b):
    def slope(a):
        y, pull = pf.vjp(np.exp, a)
        y *= 0
        return pull(ONES)[0].sum()

    return pf.grad(slope)(a)


WRITTEN = {
    result_written: np.exp(A),
    operand_written: np.tanh(A),
    part_written: np.exp(A),
    saved_written: np.tanh(A),
    written_by_rounds: np.exp(A),
    two_pullbacks: np.exp(A),
    differentiated: np.exp(A),
}


@pytest.mark.parametrize("program", WRITTEN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_pullbacks_see_no_later_writes(program, is_jitted):
    function = pf.jit(program) if is_jitted else program
    for _ in range(3):
        np.testing.assert_allclose(function(A.copy(), B.copy()), WRITTEN[program], atol=1e-9)


@pf.custom_vjp
class reversed_gradient:
    """Its argument, through which gradients flow the other way."""

    def forward(x):
        return x, None

    def backward(saved, gradient):
        return -gradient


def result_of_rule(x):
    h = x * 2
    y = reversed_gradient(h)
    y += 1
    return h + 0, y


def argument_of_rule(x):
    h = x * 2
    y = reversed_gradient(h)
    h[0] = 5
    return h, y + 0


def view_from_checkpoint(x):
    h = x * 2
    y = pf.checkpoint(lambda h: h[1:])(h)
    y += 1
    return h + 0, y


def caller_sees(x):
    y = pf.checkpoint(lambda x: x)(x)
    y += 1
    return y + 0, x + 0


@pytest.mark.parametrize("program", [result_of_rule, argument_of_rule, view_from_checkpoint, caller_sees])
def test_what_a_rule_returns_of_its_arguments_is_these_arrays_when_they_are_written_to(program):
    f = pf.jit(program, unsupported="python")
    for _ in range(3):
        x, y = np.arange(3.0), np.arange(3.0)
        for result, expected in zip(f(x), program(y), strict=True):
            np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(x, y)


def test_numbers_that_a_rule_returns_stay_numbers():
    @pf.jit
    def f(x):
        y = reversed_gradient(x)
        y += 1
        return y, x

    for _ in range(3):
        assert f(2.0) == (3.0, 2.0)
        assert f(np.float64(2)) == (3.0, 2.0)
