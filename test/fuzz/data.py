"""Arrays of every dtype and layout, named by text: what the calls of random programs pass.

A failing program is printed with the source of `arr`, so that it runs by itself.
"""

import ml_dtypes  # noqa: F401  (gives NumPy the name 'bfloat16')
import numpy as np


def arr(dtype, shape, layout="C", seed=0, kind="eighths"):
    """An array of this dtype and shape.

    ``layout``: C, F, T (transposed), slice (every second element), neg (negative strides), ro
    (read-only), odd (misaligned), bcast (stride 0; read-only).
    ``kind`` of floats: eighths (exact in all dtypes), normal, special (with nan, inf, -0.0).
    """
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    native = dtype.newbyteorder("=")
    full = (1, *shape[1:]) if layout == "bcast" and shape and shape[0] else shape
    if native.kind in "fV":
        data = rng.integers(-16, 17, full) / 8
        if kind != "eighths":
            data = rng.standard_normal(full).astype("f2").astype("f8")
        if kind == "special" and data.size:
            odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, 6e4, 6e-8]
            data.flat[rng.integers(0, data.size, 3)] = rng.choice(odd, 3)
    elif native.kind == "b":
        data = rng.integers(0, 2, full)
    else:
        data = rng.integers(0 if native.kind == "u" else -5, 6, full)
        if kind == "special" and data.size:
            data = data.astype(native)
            data.flat[0], data.flat[-1] = np.iinfo(native).min, np.iinfo(native).max
    a = np.asarray(data).astype(dtype)
    if layout == "F":
        return np.asfortranarray(a)
    if layout == "T":
        return np.ascontiguousarray(a.T).T
    if layout == "slice" and a.ndim:
        return np.repeat(a, 2, axis=-1)[..., ::2]
    if layout == "neg":
        every = (slice(None, None, -1),) * a.ndim
        return np.ascontiguousarray(a[every])[every]
    if layout == "ro":
        a.flags.writeable = False
    if layout == "odd":
        raw = np.zeros(a.nbytes + 1, "u1")[1:].view(dtype).reshape(shape)
        raw[...] = a
        return raw
    return np.broadcast_to(a, shape) if layout == "bcast" else a


def given(*args, **kwargs):
    """The arguments of a call."""
    return args, kwargs
