"""``axis`` arguments: what NumPy takes, and what it raises TypeError or ValueError for."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call

X = np.arange(24.0).reshape(2, 3, 4)
AXES = [
    [0],
    True,
    False,
    np.True_,
    np.int64(1),
    (0, 1),
    [0, 1],
    (),
    [],
    -1,
    1.0,
    (0, 0),
    None,
    "0",
    np.array(1),
    np.array([1]),
    (True,),
    (np.int8(1),),
    5,
    (0, 7),
]
FUNCTIONS = (
    {
        name: lambda x, a, f=name: getattr(np, f)(x, axis=a)
        for name in (
            "sum",
            "prod",
            "max",
            "min",
            "mean",
            "std",
            "var",
            "any",
            "all",
            "argmax",
            "argmin",
            "cumsum",
            "cumprod",
            "ptp",
            "count_nonzero",
            "flip",
            "expand_dims",
            "average",
            "diff",
            "amax",
        )
    }
    | {
        f"ndarray.{name}": lambda x, a, f=name: getattr(x, f)(axis=a)
        for name in ("sum", "max", "mean", "argmax", "cumsum", "any")
    }
    | {
        "squeeze": lambda x, a: np.squeeze(x[:1, :, :1], axis=a),
        "roll": lambda x, a: np.roll(x, 1, axis=a),
        "concatenate": lambda x, a: np.concatenate([x, x], axis=a),
        "stack": lambda x, a: np.stack([x, x], axis=a),
        "take": lambda x, a: np.take(x, [0, 1], axis=a),
        "repeat": lambda x, a: np.repeat(x, 2, axis=a),
        "moveaxis": lambda x, a: np.moveaxis(x, a, 0),
        "swapaxes": lambda x, a: np.swapaxes(x, a, 0),
        "transpose": lambda x, a: np.transpose(x, a),
        "norm": lambda x, a: np.linalg.norm(x, axis=a),
        "append": lambda x, a: np.append(x, x, axis=a),
        "rot90": lambda x, a: np.rot90(x, axes=a),
        "tensordot": lambda x, a: np.tensordot(x, x, axes=a),
    }
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_numpy_takes_for_an_axis(name):
    fn = FUNCTIONS[name]
    for axis in AXES:
        try:
            want = fn(X, axis)
        except (TypeError, ValueError, IndexError):
            with pytest.raises((TypeError, ValueError)):
                trace(lambda x, a=axis: fn(x, a), (X,))
            continue
        got = call(trace(lambda x, a=axis: fn(x, a), (X,)), X)
        assert np.shape(got) == np.shape(want), axis
        np.testing.assert_allclose(got, want, err_msg=str(axis))


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("profiling", [True, False])
def test_what_divides_by_a_count_needs_its_axis(name, profiling):
    function, before = getattr(np, name), pf.set_profiling_mode(profiling)
    try:
        f = pf.jit(lambda x: function(x, axis=0), background=False)
        for _ in range(2):
            with pytest.raises(IndexError):  # an AxisError is both
                f(np.float32(2))
    finally:
        pf.set_profiling_mode(before)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "max", "min", "count_nonzero"])
@pytest.mark.parametrize("profiling", [True, False])
def test_numbers_have_an_axis_0_but_no_axes(name, profiling):
    """A ufunc reduces a number over 0, not over ``(0,)``; compiled plans say so, too."""
    function, before = getattr(np, name), pf.set_profiling_mode(profiling)
    try:
        x = np.array(3.0)
        one = pf.jit(lambda x: function(x + 0, axis=0), background=False)
        several = pf.jit(lambda x: function(x + 0, axis=(0,)), background=False)
        for _ in range(3):
            assert one(x) == function(x, axis=0)
            with pytest.raises(IndexError):  # an AxisError is both
                several(x)
    finally:
        pf.set_profiling_mode(before)
