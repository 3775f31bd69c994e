"""Functions that raise where contents decide, and their arguments of an array.

They are here as pytest writes the assertions of test modules anew.
"""

from __future__ import annotations

import types

import numpy as np


def negative(x):
    if (x < 0).any():
        raise ValueError(f"negative: {x.min()}")
    return np.sqrt(x) * 2 + 1


def negative_sum(x):
    if (x < 0).any():
        raise ValueError("negative")
    return (x * x).sum()


def asserted(x):
    assert np.all(x > 0), ("positive", x[9])
    return x * 2


def asserted_without_a_text(x):
    assert not (x < 0).any()
    return x * 2


def parts(x):
    if np.isnan(x).any() or x.min() < 0 or not x.max() < 1e9:
        raise ValueError("out of range")
    assert x[0] > 0 and x[9] > 0
    return x * 3


def otherwise(x):
    y = x * 2
    if y.min() > 0:
        y = y + 1
    else:
        raise LookupError("else")
    return y


def chain(x):
    if x.sum() > 1e9:
        return x
    elif x.min() < 0:
        raise ValueError("chain")
    else:
        return x + 1


def chained(x):
    assert 0.0 <= x[9] <= 2.0
    return x * 2


def checked(x, name):
    if not np.isfinite(x).all():
        raise FloatingPointError(name)
    if x.min() < 0:
        raise ValueError(name)
    return x


def of_a_helper(x):
    return checked(x, "x") + checked(x * 2, "twice")


def writes_first(x, out):
    out[:] = x
    assert (out > 0).all(), out.min()
    np.sqrt(out, out=out)


def items(d):
    d["w"] -= d["g"] * 0.1
    d["steps"] = d["steps"] + 1
    if d["w"].min() < 0:
        raise ArithmeticError(d["steps"])
    return d["w"].sum()


def attributes(o, x):
    o.n += 1
    o.w = o.w + x
    if o.w.min() < 0.5:
        raise ValueError(f"step {o.n}")
    o.n += 1
    return o.w.sum()


def unrolled(x):
    parts = [v * 2 for v in (x, x + 1)]
    for k, part in enumerate(parts):
        if part[9] < 0:
            raise ValueError(k)
    return parts


def views(x):
    if x.min() < 0:
        raise ValueError("views")
    y = x * 2
    return y, y[1:], x.T


def itself(x):
    assert (x > 0).all()
    return x


def bare(x):
    if x[9] < 0:
        raise
    return x * 2


def caught(x):
    try:
        if (x < 0).any():
            raise ValueError("caught")
        return x * 2
    except ValueError:
        return x * 0


def _alone(x):
    return (x.copy(),)


FORMS = {
    "negative": (negative, _alone),
    "asserted": (asserted, _alone),
    "without a text": (asserted_without_a_text, _alone),
    "parts": (parts, _alone),
    "else": (otherwise, _alone),
    "elif": (chain, _alone),
    "chained": (chained, _alone),
    "helper": (of_a_helper, _alone),
    "writes first": (writes_first, lambda x: (x.copy(), np.zeros(50))),
    "items": (items, lambda x: ({"w": x.copy(), "g": x * 0.5, "steps": 1},)),
    "attributes": (attributes, lambda x: (types.SimpleNamespace(n=0, w=np.ones(50)), x.copy())),
    "unrolled": (unrolled, _alone),
    "views": (views, _alone),
    "itself": (itself, _alone),
}
