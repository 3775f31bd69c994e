"""Factors of matrices, losses of sequences, draws and bins: ATen's operators against NumPy, SciPy and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import profuse as pf
import pytest
import scipy.linalg
from profuse.dialect.importers.foreign.aten.all_aten import ATEN
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.imported_function import ImportedFunction

RNG = np.random.default_rng(5)
A = RNG.standard_normal((2, 4, 4))
TALL, RIGHT = RNG.standard_normal((5, 3)), RNG.standard_normal((5, 2))


def function_of(op, *operands, **named):
    """An operator as a function of its arrays."""
    count = sum(isinstance(x, np.ndarray) for x in operands)
    numbers = iter(range(count))
    refs = tuple(ValueRef(next(numbers)) if isinstance(x, np.ndarray) else x for x in operands)
    block = ForeignBlock(tuple(range(count)), [ForeignNode(op, refs, named, (count,))], (ValueRef(count),))
    graph = ForeignGraph("f", block, tuple(f"x{k}" for k in range(count)), {}, "a graph of ATen")
    return ImportedFunction(graph, ATEN)


def results(op, *operands, **named):
    """What an operator gives computed by NumPy, and compiled, which is the same."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    function = function_of(op, *operands, **named)
    plain = function(*arrays)
    compiled = pf.jit(function, unsupported="raise", background=False)
    for _ in range(3):
        again = compiled(*arrays)
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (plain, again)), strict=True):
            if x is not None:
                assert np.asarray(x).dtype == np.asarray(y).dtype
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    assert compiled.state().tier == "optimized"
    return plain


@pytest.mark.sampled(8, each=("dtype",))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5), (1, 1)])
def test_rows_are_exchanged_as_lapack_does(shape, dtype):
    x = RNG.standard_normal(shape).astype(dtype)
    if x.dtype.kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    both, exchanges, info = results("linalg_lu_factor_ex", x)
    for k in np.ndindex(*shape[:-2]):
        (factor,) = scipy.linalg.lapack.get_lapack_funcs(("getrf",), (x[k],))
        wanted, places, _ = factor(x[k])
        np.testing.assert_allclose(both[k], wanted, rtol=1e-4 if dtype == np.float32 else 1e-9)
        assert np.array_equal(exchanges[k], places + 1) and exchanges.dtype == np.int32
    assert not info.any()
    rows, lower, upper = results("lu_unpack", both, exchanges)
    np.testing.assert_allclose(rows @ lower @ upper, x, rtol=1e-4, atol=1e-5)
    assert [y.dtype for y in results("linalg_lu", x)] == [x.dtype] * 3


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions_by_factors(left, adjoint):
    a = A + 1j * A[::-1]
    b = RNG.standard_normal((2, 4, 4)) * (1 - 2j)
    both, exchanges, _ = function_of("linalg_lu_factor_ex", a)(a)
    x = results("linalg_lu_solve", both, exchanges, b, left=left, adjoint=adjoint)
    matrix = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
    np.testing.assert_allclose(matrix @ x if left else x @ matrix, b, rtol=1e-9, atol=1e-9)


def test_a_singular_matrix_has_no_factors_in_silence():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(pf.ProfuseError, match="singular"):
        function_of("linalg_lu_factor", singular)(singular)
    assert results("linalg_lu_factor_ex", np.stack([singular, np.eye(2)]))[2].tolist() == [2, 0]


@pytest.mark.parametrize("driver", ["gelsy", "gels", "gelsd"])
def test_least_squares(driver):
    solution, residuals, rank, sizes = results("linalg_lstsq", TALL, RIGHT, None, driver=driver)
    wanted, squares, _, values = np.linalg.lstsq(TALL, RIGHT)
    np.testing.assert_allclose(solution, wanted, rtol=1e-9)
    assert (rank.size == 0) if driver == "gels" else rank == 3
    if driver != "gelsy":
        np.testing.assert_allclose(residuals, squares, rtol=1e-9)
    assert sizes.size == (3 if driver == "gelsd" else 0) and (not sizes.size or np.allclose(sizes, values))
    doubtful = np.concatenate([TALL[:, :2], TALL[:, :1]], axis=1)
    with pytest.raises(pf.ProfuseError, match="in doubt"):
        function_of("linalg_lstsq", doubtful, RIGHT)(doubtful, RIGHT)


def test_eigenvalues_are_complex_and_exponentials_of_their_dtype():
    values, vectors = results("linalg_eig", A)
    assert values.dtype == vectors.dtype == np.complex128
    np.testing.assert_allclose(A @ vectors, vectors * values[:, None, :], atol=1e-9)
    symmetric = A + np.swapaxes(A, -1, -2)
    assert results("linalg_eigvals", symmetric.astype(np.float32)).dtype == np.complex64
    exponential = results("linalg_matrix_exp", A.astype(np.float32))
    assert exponential.dtype == np.float32
    np.testing.assert_allclose(exponential, scipy.linalg.expm(A), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["linalg_matrix_exp", "linalg_lu", "linalg_eigvals"])
def test_gradients_are_differences(op):
    weights = RNG.standard_normal((4, 4))

    def total(x):
        y = function_of(op, A)(x)
        if isinstance(y, tuple):
            y = y[1] * weights + y[2]
        else:
            y = np.abs(y) * weights[0] if op.endswith("vals") else y * weights
        return np.sum(y * y)

    gradient = pf.grad(total)(A)
    for k in ((0, 0, 0), (1, 2, 1), (0, 3, 2)):
        step = np.zeros_like(A)
        step[k] = 1e-6
        np.testing.assert_allclose(gradient[k], (total(A + step) - total(A - step)) / 2e-6, rtol=1e-4, atol=1e-6)


def chance(logs, target, blank):
    """The probability of a target: the sum over all paths that give it."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=logs.shape[0]):
        merged = [c for k, c in enumerate(path) if c != blank and (k == 0 or path[k - 1] != c)]
        if merged == list(target):
            total += math.exp(sum(logs[k, c] for k, c in enumerate(path)))
    return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("blank", [0, 2])
def test_the_loss_of_sequences_is_the_sum_over_all_paths(blank):
    raw = RNG.standard_normal((4, 3, 3))
    logs = raw - np.log(np.exp(raw).sum(-1, keepdims=True))
    labels = [k for k in range(3) if k != blank]
    targets = np.array([[labels[0], labels[0]], [labels[1], -7], [labels[0], labels[1]]])
    have, wanted = (4, 3, 4), (2, 1, 0)
    (loss, _) = results("_ctc_loss", logs, targets, have, wanted, blank)
    for k in range(3):
        np.testing.assert_allclose(math.exp(-loss[k]), chance(logs[: have[k], k], targets[k, : wanted[k]], blank))
    flat = np.array([*targets[0], targets[1, 0]])
    again = results("_ctc_loss", logs, flat, np.array(have), np.array(wanted), blank)[0]
    np.testing.assert_allclose(again, loss)


def test_lengths_of_sequences_are_looked_at():
    logs, targets = np.zeros((3, 1, 4)), np.array([[1, 2]])
    for have, wanted in ((4, 2), (-1, 2), (3, 3)):
        with pytest.raises(pf.ProfuseError, match="length"):
            function_of("_ctc_loss", logs, targets, (have,), (wanted,))(logs, targets)
    impossible = results("_ctc_loss", logs, np.array([[1, 1]]), (2,), (2,))[0]
    assert impossible.tolist() == [math.inf]


def test_draws_by_weights():
    weights = np.array([0.0, 1.0, 3.0, 0.0, 4.0], np.float32)
    pf.manual_seed(3)
    drawn = function_of("multinomial", weights, 8000, True)(weights)
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 8000, weights / 8, atol=0.03)
    both = np.stack([weights, weights[::-1]])
    for _ in range(20):
        order = function_of("multinomial", both, 3)(both)
        assert sorted(order[0]) == [1, 2, 4] and sorted(order[1]) == [0, 2, 3]
    firsts = [int(function_of("multinomial", weights, 1)(weights)[0]) for _ in range(400)]
    assert abs(firsts.count(4) / 400 - 0.5) < 0.1 and firsts.count(0) == 0
    for wrong in (np.array([1.0, -1.0]), np.array([0.0, 0.0]), np.array([1.0, np.nan])):
        with pytest.raises(pf.ProfuseError, match="probabilities"):
            function_of("multinomial", wrong, 1)(wrong)
    with pytest.raises(pf.ProfuseError, match="not as many"):
        function_of("multinomial", weights, 4)(weights)


def test_bins():
    x = np.array([-1.0, 0.0, 0.1, 0.5, 0.99, 1.0, 1.5, np.nan], np.float32)
    assert results("histc", x, 4, 0, 1).tolist() == [2, 0, 1, 2]
    assert results("histc", x[:7], 2).tolist() == [3, 4]
    assert results("histc", np.full(3, 2.0), 2).tolist() == [0, 3]
    counts, edges = results("histogram.bin_ct", x[:7], 4, range=(0.0, 1.0), density=True)
    np.testing.assert_allclose(counts, np.histogram(x[:7], 4, (0, 1), density=True)[0])
    np.testing.assert_allclose(edges, np.linspace(0, 1, 5))
    with pytest.raises(pf.ProfuseError, match="not finite"):
        function_of("histc", x, 2)(x)


def test_memory_is_read_by_places():
    x = np.arange(12.0).reshape(3, 4)
    read = results("profuse::as_strided", x, (3, 2), (4, 1), 1, memory_order=(0, 1))
    assert read.tolist() == [[1, 2], [5, 6], [9, 10]]
    turned = results("profuse::as_strided", x, (2, 2), (1, 3), None, memory_order=(1, 0))
    assert turned.tolist() == [[0, 1], [4, 5]]
    assert results("profuse::as_strided", x, (4, 3), (1, 4), None, memory_order=(0, 1)).tolist() == x.T.tolist()
    rows = function_of("profuse::as_strided", x, (3, 3), (2, 1), 1, memory_order=(0, 1))
    gradient = pf.grad(lambda x: np.sum(rows(x) * np.arange(9.0).reshape(3, 3)))(x)
    wanted = np.zeros(12)
    np.add.at(wanted, [1, 2, 3, 3, 4, 5, 5, 6, 7], np.arange(9.0))
    assert gradient.ravel().tolist() == wanted.tolist()
    new = results("profuse::as_strided_scatter", x, np.array([7.0, 8.0]), (2,), (5,), 2, memory_order=(1, 0))
    assert new.T.ravel()[[2, 7]].tolist() == [7, 8] and new.shape == (3, 4)


def test_groups_of_rows_have_matrices_of_their_own():
    rows, matrices, ends = RNG.standard_normal((6, 3)), RNG.standard_normal((3, 3, 2)), np.array([2, 2, 5])
    wanted = np.concatenate([rows[:2] @ matrices[0], rows[2:5] @ matrices[2], np.zeros((1, 2))])
    product = function_of("transformers::grouped_mm_fallback", rows, matrices, ends)
    np.testing.assert_allclose(results("transformers::grouped_mm_fallback", rows, matrices, ends), wanted)
    np.testing.assert_allclose(results("_grouped_mm", rows, matrices, ends)[:5], wanted[:5])
    outer = results("_grouped_mm", np.ascontiguousarray(rows.T), rows, np.array([2, 6]))
    np.testing.assert_allclose(outer, np.stack([rows[:2].T @ rows[:2], rows[2:].T @ rows[2:]]))
    weights = RNG.standard_normal((6, 2))

    def total(x, w):
        return np.sum(product(x, w, ends) ** 2 * weights)

    def slope(x, w):  # of a gradient, so that the gradients of gradients are looked at, too
        return sum(np.sum(g * g) for g in pf.grad(total, wrt=(0, 1))(x, w))

    for function in (total, slope):
        of_rows, of_matrices = pf.grad(function, wrt=(0, 1))(rows, matrices)
        for array, gradient, k in ((rows, of_rows, (3, 1)), (matrices, of_matrices, (2, 0, 1))):
            step = np.zeros_like(array)
            step[k] = 1e-6
            pairs = [(rows + s * step, matrices) if array is rows else (rows, matrices + s * step) for s in (1, -1)]
            difference = (function(*pairs[0]) - function(*pairs[1])) / 2e-6
            np.testing.assert_allclose(gradient[k], difference, rtol=1e-5)
