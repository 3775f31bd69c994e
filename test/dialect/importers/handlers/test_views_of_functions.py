"""Which functions of NumPy give views, and which copies: what is written to one shows it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import profuse as pf
import pytest

ARRAYS = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([3, 1, 2]), np.array(0.5)
FUNCTIONS = {
    "asarray": np.asarray,
    "ascontiguousarray": np.ascontiguousarray,
    "atleast_1d": np.atleast_1d,
    "atleast_3d": np.atleast_3d,
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, a)[0],
    "copy": np.copy,
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "flatten": lambda a: a.flatten(),
    "flip": np.flip,
    "histogram": lambda a: np.histogram(np.ones(3), bins=np.arange(3.0) * a.size)[1],
    "histogram of bins": lambda a: np.histogram(np.ones(3), bins=a)[1],
    "ix_": lambda a: np.ix_(a)[0],
    "ix_ of two": lambda a: np.ix_(a, a)[1],
    "mask without axes": lambda a: a[a.sum() > 0],
    "moveaxis": lambda a: np.moveaxis(a, 0, -1),
    "nothing but an ellipsis": lambda a: a[...],
    "nothing": lambda a: a[()],
    "pad": lambda a: np.pad(a, 0, mode="edge"),
    "pad with a constant": lambda a: np.pad(a, 0),
    "polyder": lambda a: np.polyder(a, 0),
    "polyint": lambda a: np.polyint(a, 0),
    "ravel": np.ravel,
    "real": np.real,
    "reshape": lambda a: a.reshape(-1),
    "roll": lambda a: np.roll(a, 0),
    "rot90": lambda a: np.rot90(a, 0),
    "select by a number": lambda a: a[..., np.argmax(a)],
    "squeeze": np.squeeze,
    "tile": lambda a: np.tile(a, 1),
    "transpose": np.transpose,
    "trim_zeros": np.trim_zeros,
}


def writes_to_the_result(make):
    def f(a):
        own = np.array(a * 1)
        made = make(own)
        made[...] = made * 2 + 1
        return made, own

    return f


def writes_to_the_operand(make):
    def f(a):
        own = np.array(a * 1)
        made = make(own)
        own[...] = own * 2 + 1
        return made, own

    return f


def outcome(function, a):
    try:
        return repr(function(a))
    except (ValueError, TypeError, IndexError) as error:
        return next(c for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy"))


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize("writes", [writes_to_the_result, writes_to_the_operand])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_writes_are_seen_where_numpy_has_a_view(name, writes):
    function = writes(FUNCTIONS[name])
    for array in ARRAYS:
        jitted = pf.jit(function, unsupported="python")
        wanted = outcome(function, array)
        for _ in range(4):
            found = outcome(jitted, array)
            assert found == wanted or (isinstance(found, type) and issubclass(found, wanted))


def test_numbers_of_other_libraries_are_copied_by_conj():
    def f(a):
        made = a.conj()
        made += 1
        return made, a

    jitted, x = pf.jit(f, unsupported="python"), np.arange(3).astype(ml_dtypes.bfloat16)
    for _ in range(3):
        assert repr(jitted(x)) == repr(f(x))
