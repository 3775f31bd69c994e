"""Arrays made from traced sizes are those that NumPy makes: of no, one and more elements."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call, same

BIG_ENDIAN = np.arange(4, dtype=">i4")
FAMILY = {
    "linspace": lambda x, k: np.linspace(0.0, 1.0, x.shape[0]),
    "linspace without end": lambda x, k: np.linspace(2, -5, x.shape[0], endpoint=False),
    "linspace of ints": lambda x, k: np.linspace(-3, 4, x.shape[0], dtype=int),
    "linspace of arrays": lambda x, k: np.linspace(x[:2], x[:2] * 3, 4, axis=-1),
    "linspace from an array": lambda x, k: np.linspace(x[:2], 7, x.shape[0]),
    "linspace to a value": lambda x, k: np.linspace(0, x.sum(), 5),
    "the step of linspace": lambda x, k: x[:1] + np.linspace(0, k, x.shape[0], retstep=True)[1],
    "linspace to a number": lambda x, k: np.linspace(0, k, 4),
    "linspace of f32": lambda x, k: np.linspace(np.float32(0), np.float32(1), x.shape[0]),
    "linspace of f32 and a number": lambda x, k: np.linspace(np.float32(0.1), k, x.shape[0]),
    "linspace of one": lambda x, k: np.linspace(3, k, x.shape[0] * 0 + 1),
    "linspace below all steps": lambda x, k: np.linspace(0, 5e-324, x.shape[0]),
    "logspace": lambda x, k: np.logspace(0.0, 1.0, x.shape[0]),
    "geomspace": lambda x, k: np.geomspace(1.0, 10.0, x.shape[0]),
    "arange": lambda x, k: np.arange(x.shape[0]),
    "arange by tenths": lambda x, k: np.arange(0.1, x.shape[0], 0.1),
    "arange of cut steps": lambda x, k: np.arange(0, x.shape[0], 0.5, dtype=int),
    "arange of f32": lambda x, k: np.arange(x.shape[0], dtype=np.float32),
    "arange down": lambda x, k: np.arange(x.shape[0], -1, -1),
    "arange from a number": lambda x, k: np.arange(k, x.shape[0]),
    "arange down to a number": lambda x, k: np.arange(x.shape[0], k, -2, dtype=np.int8),
    "arange by a number": lambda x, k: np.arange(1, x.shape[0] * 2, k + 1),
    "arange by step": lambda x, k: np.arange(x.shape[0], step=2),
    "arange of halves": lambda x, k: np.arange(x.shape[0] / 2),
    "arange of NumPy's ints": lambda x, k: np.arange(np.int32(0), x.shape[0], np.int8(1)),
    "arange of rounded steps": lambda x, k: np.arange(0.3 * k, x.shape[0], 0.7, dtype=np.float32),
    "eye": lambda x, k: np.eye(x.shape[0], x.shape[0] + 2, k=-1, dtype=int),
    "eye on a diagonal": lambda x, k: np.eye(x.shape[0], k=k, dtype=None),
    "identity": lambda x, k: np.identity(x.shape[0]),
    "tri": lambda x, k: np.tri(x.shape[0], k=-1),
    "tri of no rows": lambda x, k: np.tri(x.shape[0] - 2, x.shape[0]),
    "zeros": lambda x, k: np.zeros(x.shape[0], dtype=None),
    "empty": lambda x, k: np.empty((x.shape[0], 0), dtype=None),
    "full": lambda x, k: (np.full(x.shape[0], k), np.full(x.shape[0], -0.0)),
    "full of cut values": lambda x, k: np.full((x.shape[0], 2), 1.5, dtype=int),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FAMILY)
def test_numpys_values_and_dtypes(name):
    fn = FAMILY[name]
    traced = {}
    for k in (3, -2):
        for n in (5, 1, 2, 0, 3, 7):
            args = np.arange(1.0, n + 1), k
            try:
                want = fn(*args)
            except Exception as error:
                with pytest.raises(type(error)):
                    call(trace(fn, args), *args)
                continue
            found = next((t for t in traced.values() if t.accepts(args)), None)
            if found is None:
                found = traced[n, k] = trace(fn, args)
            same(call(found, *args), want)


def test_a_count_that_is_no_int_is_refused_as_in_numpy():
    with pytest.raises(TypeError):
        trace(lambda x: np.linspace(0, 1, x.shape[0] / 2), (np.ones(4),))
    with pytest.raises(ValueError):
        trace(lambda x: np.linspace(0, x.shape[0], -1), (np.ones(4),))


def test_arrays_made_while_tracing_are_of_native_byte_order_in_every_call():
    f = pf.jit(lambda x: (np.asarray([1, 2], ">i4"), np.pad(BIG_ENDIAN, 1)), background=False)
    for _ in range(3):
        assert [a.dtype for a in f(np.ones(3))] == [np.dtype("i4")] * 2


def test_progressions_of_bools_are_numpys():
    """Which takes two elements at most."""
    with pf.knobs.override(unsupported="python"):
        f = pf.jit(lambda x, n: np.arange(n, dtype=x.dtype))
        for n in (2, 2, 1, 0):
            np.testing.assert_array_equal(f(np.ones(1, bool), n), np.arange(n, dtype=bool))
        with pytest.raises(TypeError, match="booleans"):
            f(np.ones(1, bool), 3)
