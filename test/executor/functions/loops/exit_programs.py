"""Programs that raise where contents decide, with calls that do not and calls that do.

They are here as pytest writes the assertions of test modules anew.
"""

from __future__ import annotations

import numpy as np


def roots(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError(f"x[{i}] is {x[i]:.2f}")
        total += x[i] ** 0.5
    return total


def asserted(x, out):
    for i in range(x.shape[0]):
        assert x[i] >= 0, ("negative", i)
        out[i] = x[i] * 2.0
    return out


def nested(m):
    total = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] < 0:
                if i == j:
                    message = "on the diagonal"
                else:
                    message = f"at {i}, {j}"
                raise ArithmeticError(message)
            total += m[i, j]
    return total


def otherwise(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            total += x[i]
        elif x[i] >= 0.0:
            total -= 1.0
        else:
            raise LookupError(i)
    return total


def until(x, tol):
    k, v = 0, x[0]
    while v > tol:
        if x[k % x.shape[0]] < 0:
            raise RuntimeError(f"after {k} rounds")
        v = v * 0.5
        k += 1
    return k


def converges(x, most):
    v = x.sum()
    for k in range(most):  # noqa: B007  (it is read behind the loop)
        v = v / 2.0
        if v < 1e-3:
            break
    else:
        raise RuntimeError(f"{v} after {most} rounds")
    return k, v


def check(v, low):
    if v < low:
        raise ValueError(v)
    return v


def of_a_helper(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += check(x[i], 0.0)
    return total


def first_of(x):
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError("negative")
        if x[i] > 0.75:
            return i
    return -1


def in_a_branch(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        if y[i] > 0:
            assert x[i] >= 0, i
            total += x[i]
        else:
            total += 1.0
    return total


def guarded_while(x):
    if x.min() <= 0:
        raise ValueError("this would never end")
    v, k = 0.0, 0
    while v < 4.0:
        v += x[k % x.shape[0]]
        k += 1
    return k


def alone(x):
    for i in range(1, x.shape[0]):
        if x[i] < x[i - 1] - 1.0:
            raise ValueError(i)
    return x * 2.0


X = np.random.default_rng(1).random(40)
BAD = X.copy()
BAD[7] = -1.0
M = np.random.default_rng(2).random((6, 5))
OFF, ON = M.copy(), M.copy()
OFF[3, 4] = ON[2, 2] = -1.0
FORMS = {
    roots: ((X,), [(BAD,)]),
    asserted: ((X, np.zeros(40)), [(BAD, np.zeros(40))]),
    nested: ((M,), [(OFF,), (ON,)]),
    otherwise: ((X,), [(BAD,)]),
    until: ((X, 1e-6), [(BAD, 1e-6)]),
    converges: ((X, 100), [(X * 1e30, 100)]),
    of_a_helper: ((X,), [(BAD,)]),
    first_of: ((X,), [(np.where(X > 0.75, -1.0, X),)]),
    in_a_branch: ((X, X - 0.5), [(-X, X - 0.5)]),
    guarded_while: ((X + 0.1,), [(BAD,), (X * 0.0,)]),
    alone: ((X,), [(BAD * 2.0,)]),
}
