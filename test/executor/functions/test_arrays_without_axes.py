"""Results without axes are arrays where NumPy's are, and scalars where its are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest

X, D = np.arange(6.0).reshape(2, 3), np.array(2.5)

ARRAYS = {
    "where": lambda x, d: np.where(x[0, 0] > 0, d, 1.0),
    "array": lambda x, d: np.array(x.sum()),
    "zeros": lambda x, d: np.zeros(()),
    "reshape": lambda x, d: x[:1, :1].reshape(()),
    "squeeze": lambda x, d: (x[:1, :1] * 2).squeeze(),
    "ellipsis": lambda x, d: (x + 1)[0, 0, ...],
    "index": lambda x, d: x[0][..., np.array(1)],
    "number and ellipsis": lambda x, d: x[0][..., np.argmax(x[1])],
    "copy": lambda x, d: d.copy(),
    "astype": lambda x, d: d.astype(np.float32),
    "real": lambda x, d: d.real,
    "zeros_like": lambda x, d: np.zeros_like(x.sum()),
    "out": lambda x, d: np.add(d, 1, out=np.zeros(())),
    "constant": lambda x, d: np.asarray(np.sqrt(3)),
    "tensordot": lambda x, d: np.tensordot(x, x),
    "broadcast_to": lambda x, d: np.broadcast_to(d, ()),
    "covariance": lambda x, d: np.cov(x[0]),
    "select": lambda x, d: np.select([d < 1, d > 2], [d, d * 2]),
}
SCALARS = {
    "sum": lambda x, d: x.sum(),
    "product": lambda x, d: d * 2,
    "copied and doubled": lambda x, d: d.copy() * 2,
    "dot": lambda x, d: x[0] @ x[1],
    "maximum": lambda x, d: np.maximum(d, 1),
    "real of a scalar": lambda x, d: x.sum().real,
    "element": lambda x, d: x[1, 1],
    "median": lambda x, d: np.median(x),
    "correlation": lambda x, d: np.corrcoef(x[0]),
    "scalar that was transposed": lambda x, d: (s := x.sum(), s.T)[0],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unsupported", ["python", "raise"])
@pytest.mark.parametrize("name", [*ARRAYS, *SCALARS])
def test_types_of_results(name, unsupported):
    function = (ARRAYS | SCALARS)[name]
    jitted = pf.jit(function, unsupported=unsupported)
    wanted = function(X, D)
    assert isinstance(wanted, np.ndarray) == (name in ARRAYS)
    for _ in range(5):
        found = jitted(X, D)
        assert (type(found), found.dtype) == (type(wanted), wanted.dtype)
        np.testing.assert_allclose(found, wanted)
        jitted.wait()


def norms(x):
    a, square = np.linalg, x[:, :2] + np.eye(2)
    return (
        *(a.norm(x, ord) for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        *(a.norm(x[0], ord) for ord in (None, 0, 1, 2, 3, np.inf, -np.inf)),
        *(a.norm(x, ord, axis=(0, 1)) for ord in (1, np.inf)),
        *(a.norm(x, ord, axis=(1, 0), keepdims=True) for ord in (1, -np.inf)),
        *(a.matrix_norm(x, ord=ord) for ord in (1, np.inf, "fro")),
        *(a.vector_norm(x), a.det(square), a.cond(square), a.slogdet(square).logabsdet, a.trace(square)),
    )


def folds(x):
    one, other = x
    return (
        *(x.max(), x.argmax(), np.ptp(x), x.trace(), x.prod(), x.all(), x.std(ddof=1)),
        *(np.nansum(x), np.nanmean(x), np.nanstd(x), np.nanmax(x), np.nanargmax(x), np.count_nonzero(x)),
        *(np.percentile(x, 30), np.quantile(x, 0.3), np.average(x), np.average(x, weights=x), np.trapezoid(one)),
        *(np.add.reduce(x, axis=None), np.maximum.reduce(x, axis=(0, 1)), np.logaddexp.reduce(one)),
        *(np.vdot(x, x), np.inner(one, other), np.dot(one, other), np.einsum("ij,ij->", x, x), np.vecdot(one, other)),
        *(np.cumsum(x.sum()), np.searchsorted(one, 1.5), np.interp(1.5, one, other), np.digitize(1.5, one)),
    )


def of_numbers(x):
    e, other = x[0, 1], x[0, 2]
    return (
        *(e.sum(), e.max(), e.mean(), e.reshape(()), e.squeeze(), e.copy(), e.astype(np.float32), e.T, e.clip(0, 1)),
        *(e.round(), e.real, np.real(e), np.imag(e), np.angle(e), np.conj(e), np.round(e, 1), np.clip(e, 0, 2)),
        *(-e, abs(e), np.maximum(e, other), np.sqrt(e), np.isfinite(e), np.sinc(e), np.nan_to_num(e)),
        *(np.expand_dims(e, 0), np.ravel(e), np.transpose(e), np.atleast_1d(e), np.copy(e), np.full_like(e, 3)),
        *(*np.divmod(e, 2), *np.frexp(e), *np.modf(e / 2), np.add.outer(e, e)),
        *(np.polyval([1, 2], e), np.take(x, 3), np.full((), e), np.heaviside(e, 0.5)),
    )


@pytest.mark.parametrize("function", [norms, folds, of_numbers])
def test_each_of_many_functions_gives_what_numpy_gives(function):
    for one, other in zip(pf.jit(function)(X), function(X), strict=True):
        assert (type(one), one.dtype, one.shape) == (type(other), other.dtype, other.shape)
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_within_containers_and_beside_effects():
    @pf.jit(unsupported="python")
    def step(x, d):
        x += 1
        return {"sum": x.sum(), "mean": np.array(x.mean())}, (np.zeros(()), x * 2)

    x, y = X.copy(), X.copy()
    for _ in range(5):
        (found, (zero, double)), (wanted, _) = step(x, D), step.__wrapped__(y, D)
        assert [type(v) for v in found.values()] == [np.float64, np.ndarray]
        assert type(zero) is np.ndarray
        np.testing.assert_allclose(found["mean"], wanted["mean"])
        np.testing.assert_allclose(double, y * 2)
        step.wait()


def test_results_may_be_written_to():
    total = pf.jit(lambda x: np.array(x.sum()))
    for _ in range(4):
        found = total(X)
        found += 1
        assert found == X.sum() + 1
        total.wait()


def test_emitted_code_makes_them():
    total = pf.jit(lambda x: np.array(x.sum()))
    for _ in range(4):
        total(X)
        total.wait()
    assert total.state().emitted and type(total(X)) is np.ndarray


def test_in_attributes_and_items():
    held, plain = (SimpleNamespace(loss=0.0, log={"last": 0.0}) for _ in range(2))

    def step(held, x):
        held.loss = np.array(x.sum()) + 0
        held.log["last"] = np.array(x.max())
        held.log["first"] = x[0, 0] * 2
        return x.sum()

    jitted = pf.jit(step, unsupported="python")
    for _ in range(5):
        assert jitted(held, X) == step(plain, X)
        for found, wanted in ((held, plain), (held.log, plain.log)):
            found, wanted = (v if isinstance(v, dict) else vars(v) for v in (found, wanted))
            assert {k: type(v) for k, v in found.items()} == {k: type(v) for k, v in wanted.items()}
        assert held.log == plain.log
        jitted.wait()
    assert jitted.state().tier == "optimized"


def test_on_the_tape():
    total = pf.jit(lambda x: (np.array(x.sum()) * 1, np.array(x.max())))
    x = pf.array(X, requires_grad=True)
    for mode in (True, False):
        with pf.knobs.override(profiling_mode=mode):
            for found in total(x):
                assert type(found) is pf.Array and found.requires_grad
