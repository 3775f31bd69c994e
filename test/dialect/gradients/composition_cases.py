"""A function of one array for each composition, and in other forms of its arguments."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(11)
V = RNG.normal(size=6)
A = RNG.normal(size=(3, 4))
S = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
W = RNG.normal(size=(4, 4))
U = RNG.normal(size=24)
HOLES = np.array([[1.0, np.nan, 0.5, 1.0], [np.nan, 1, 1, 1], [2, 1, 1, np.nan]])
X = np.linspace(0, 1, 6) ** 2


def holed(a):
    """An array with holes that no gradient reaches."""
    return np.where(np.isnan(HOLES), HOLES, a * np.nan_to_num(HOLES))


def weighed(y):
    """One number of an array, in which each element counts in a way of its own."""
    flat = np.reshape(y, (-1,))
    return (flat * U[: flat.shape[0]]).sum()


def all_weighed(*ys):
    return sum(weighed(y) * (k + 1) for k, y in enumerate(ys))


CASES = {
    "nansum": (lambda a: weighed(np.nansum(holed(a), axis=0)), A),
    "nansum of all": (lambda a: np.nansum(holed(a)) ** 2, A),
    "nanprod": (lambda a: weighed(np.nanprod(holed(a), axis=1, keepdims=True)), A),
    "nancumsum": (lambda a: weighed(np.nancumsum(holed(a), axis=1)), A),
    "nancumprod": (lambda a: weighed(np.nancumprod(holed(a), axis=0)), A),
    "nanmax": (lambda a: weighed(np.nanmax(holed(a), axis=1)), A),
    "nanmin": (lambda a: np.nanmin(holed(a)), A),
    "nanmean": (lambda a: weighed(np.nanmean(holed(a), axis=0)), A),
    "nanvar": (lambda a: weighed(np.nanvar(holed(a), axis=1, ddof=1)), A),
    "nanstd": (lambda a: weighed(np.nanstd(holed(a), axis=1)), A),
    "cbrt": (lambda v: weighed(np.cbrt(v)), V),
    "logaddexp2": (lambda v: weighed(np.logaddexp2(v, 2 * v[::-1])), V),
    "ldexp": (lambda v: weighed(np.ldexp(v, np.array([0, 1, 2, -1, 3, 0]))), V),
    "select": (lambda v: weighed(np.select([v > 0.5, v > 0], [v**2, 3 * v], -v)), V),
    "select of numbers": (lambda v: weighed(np.select([v > 0.5, v > 0], [v**2, 0.0])), V),
    "choose": (lambda v: weighed(np.choose(np.array([0, 2, 1, 0, 1, 2]), [v, v**2, 2 * v])), V),
    "meshgrid": (lambda v: all_weighed(*np.meshgrid(v[:3], v[3:], indexing="ij")), V),
    "meshgrid, two ways": (lambda v: all_weighed(*np.meshgrid(v[:2], v[:4], v[:1] ** 2)), V),
    "trapezoid": (lambda v: np.trapezoid(v**2, dx=0.3), V),
    "trapezoid of rows": (lambda a: weighed(np.trapezoid(a, np.arange(3.0) ** 2, axis=0)), A),
    "trapezoid, of places": (lambda v: np.trapezoid(np.arange(6.0) ** 2, v), V),
    "gradient": (lambda v: weighed(np.gradient(v)), V),
    "gradient of matrices": (lambda a: all_weighed(*np.gradient(a, 0.5, 2.0)), A),
    "gradient, places": (lambda v: weighed(np.gradient(v, X, edge_order=2)), V),
    "gradient, of places": (lambda v: weighed(np.gradient(np.sin(X), v)), X + 0.1 * V),
    "gradient along an axis": (lambda a: weighed(np.gradient(a, axis=1, edge_order=2)), A),
    "interp, of values": (lambda v: weighed(np.interp([-1, 0.1, 0.5, 2], X, v)), V),
    "interp": (lambda v: weighed(np.interp(v, X, V)), 0.5 * V),
    "interp, of places": (lambda x: weighed(np.interp([0.1, 0.2, 0.5], x, V)), X),
    "interp, beyond": (lambda v: weighed(np.interp([-1, 0.3, 7], X, v, left=2, right=-1)), V),
    "median": (lambda v: np.median(v) ** 2, V),
    "median of rows": (lambda a: weighed(np.median(a, axis=1, keepdims=True)), A),
    "median of columns": (lambda a: weighed(np.median(a, axis=0)), A),
    "nanmedian": (lambda a: weighed(np.nanmedian(holed(a), axis=1)), A),
    "quantile": (lambda v: weighed(np.quantile(v, [0.1, 0.5, 0.77])), V),
    "quantile of rows": (lambda a: weighed(np.quantile(a, 0.3, axis=1)), A),
    "quantile, of it": (lambda q: weighed(np.quantile(V, q)), np.array([0.13, 0.55])),
    "percentile": (lambda a: weighed(np.percentile(a, [25, 60], axis=(0, 1))), A),
    "percentile, lower": (lambda v: np.percentile(v, 33, method="lower"), V),
    "cov": (lambda a: weighed(np.cov(a)), A),
    "cov of columns": (lambda a: weighed(np.cov(a, rowvar=False, bias=True)), A),
    "cov of two": (lambda v: weighed(np.cov(v[:3], v[3:], ddof=0)), V),
    "cov, weighted": (lambda a: weighed(np.cov(a, fweights=[1, 2, 1, 3], aweights=V[:4] ** 2)), A),
    "corrcoef": (lambda a: weighed(np.corrcoef(a)), A),
    "polyval": (lambda v: weighed(np.polyval(v[:4], v)), V),
    "vander": (lambda v: weighed(np.vander(v, 4)), V),
    "vander, increasing": (lambda v: weighed(np.vander(v[:4], increasing=True)), V),
    "convolve": (lambda v: weighed(np.convolve(v, [1.0, 0.5, -2])), V),
    "convolve, of both": (lambda v: weighed(np.convolve(v[:2], v, "same")), V),
    "convolve, valid": (lambda v: weighed(np.convolve(v, v[:4], mode="valid")), V),
    "correlate": (lambda v: weighed(np.correlate(v, v[:3] ** 2)), V),
    "correlate, full": (lambda v: weighed(np.correlate(v[:2], v, "full")), V),
    "correlate, same": (lambda v: weighed(np.correlate(v[:4], v, "same")), V),
    "correlate, same, longer": (lambda v: weighed(np.correlate(v, v[:3], "same")), V),
    "insert": (lambda v: weighed(np.insert(v, 2, v[0] ** 2)), V),
    "insert a row": (lambda a: weighed(np.insert(a, 1, a[0] * 2, axis=0)), A),
    "delete": (lambda v: weighed(np.delete(v, [1, 3])), V),
    "delete a column": (lambda a: weighed(np.delete(a, 2, axis=1)), A),
    "resize": (lambda v: weighed(np.resize(v, (2, 5))), V),
    "repeat": (lambda v: weighed(np.repeat(v, np.arange(len(V)))), V),
    "repeat rows": (lambda a: weighed(np.repeat(a, [2, 0, 1], axis=0)), A),
    "add.reduceat": (lambda v: weighed(np.add.reduceat(v, [0, 2, 3])), V),
    "add.reduceat, of columns": (lambda a: weighed(np.add.reduceat(a, [1, 3], axis=1)), A),
    "add.reduceat, overlapping": (lambda v: weighed(np.add.reduceat(v, [1, 4, 0, 3, 3])), V),
    "compress": (lambda a: weighed(np.compress([True, False, True], a, axis=0)), A),
    "extract": (lambda v: weighed(np.extract(V > 0, v)), V),
    "cumulative_sum": (lambda v: weighed(np.cumulative_sum(v, include_initial=True)), V),
    "cumulative_sum of rows": (lambda a: weighed(np.cumulative_sum(a, axis=1)), A),
    "cumulative_prod": (lambda v: weighed(np.cumulative_prod(v, include_initial=True)), V),
    "maximum.accumulate": (lambda v: weighed(np.maximum.accumulate(v)), V),
    "minimum.accumulate": (lambda a: weighed(np.minimum.accumulate(a, axis=1)), A),
    "ediff1d": (lambda v: weighed(np.ediff1d(v, to_begin=v[:2] ** 2)), V),
    "diagflat": (lambda v: weighed(np.diagflat(v[:4] ** 2)), V),
    "unwrap": (lambda v: weighed(np.unwrap(9 * v)), V),
    "bincount": (lambda v: weighed(np.bincount([0, 3, 1, 3, 3, 0], weights=v)), V),
    "multi_dot": (lambda a: weighed(np.linalg.multi_dot([a, a.T, a])), A),
    "matrix_power": (lambda s: weighed(np.linalg.matrix_power(s, 3)), S),
    "matrix_power, inverse": (lambda s: weighed(np.linalg.matrix_power(s, -2)), S),
    "vecdot": (lambda a: weighed(np.linalg.vecdot(a, a * A)), A),
    "vecdot of ufuncs": (lambda a: weighed(np.vecdot(a, A * 2)), A),
    "tensorsolve": (lambda s: weighed(np.linalg.tensorsolve(s, V[:3])), S),
    "qr": (lambda a: all_weighed(*np.linalg.qr(a.T)), A),
    "qr, r": (lambda a: weighed(np.linalg.qr(a.T, mode="r")), A),
    "svd, values": (lambda a: weighed(np.linalg.svd(a, compute_uv=False)), A),
    "svd": (
        lambda a: (
            weighed(np.linalg.svd(a, full_matrices=False)[0] ** 2)
            + weighed(np.linalg.svd(a, full_matrices=False)[2] ** 2)
        ),
        A,
    ),
    "svd, tall": (lambda a: all_weighed(*(x**2 for x in np.linalg.svd(a.T, full_matrices=False))), A),
    "svd, square": (lambda s: weighed(np.linalg.svd(s)[0] ** 2), S),
    "svdvals": (lambda a: weighed(np.linalg.svdvals(a)), A),
    "pinv": (lambda a: weighed(np.linalg.pinv(a)), A),
    "pinv, tall": (lambda a: weighed(np.linalg.pinv(a.T)), A),
    "lstsq": (lambda a: weighed(np.linalg.lstsq(a.T, V[:4])[0]), A),
    "lstsq, of the right side": (lambda v: weighed(np.linalg.lstsq(A.T, v[:4])[0]), V),
    "lstsq, what is left": (lambda a: np.linalg.lstsq(a.T, W)[1].sum(), A),
    "norm of 2": (lambda a: np.linalg.norm(a, 2) ** 2, A),
    "nuclear norm": (lambda s: np.linalg.norm(s, "nuc"), S),
}
"""By a name: the function of one array, and the array."""
