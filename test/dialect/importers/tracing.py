"""Helpers of the importer tests: trace a function, run its graph, compare with NumPy."""

import numpy as np
from profuse.dialect.importers.numpy.capture.trace import Trace
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.trees.pytree import flatten
from profuse.executor.interpret.evaluate import evaluate


def call(traced: Trace, *args, **kwargs):
    """The traced function on other arguments of the same kinds; guards must hold."""
    leaves, tree = flatten((args, kwargs))
    assert tree == traced.in_tree
    assert traced.accepts(leaves)
    outputs = evaluate(traced.module, [*leaves, *traced.captured])
    return traced.out_tree.unflatten(outputs)


def check(fn, *args, again=(), exact=True, guards=0, **kwargs):
    """Trace, evaluate on the example and on each of ``again``; results must be NumPy's."""
    traced = trace(fn, args, kwargs)
    assert len(traced.guards) == guards, traced.explain()
    for given in (args, *again):
        same(call(traced, *given, **kwargs), fn(*given, **kwargs), exact)
    return traced


def same(got, want, exact=True):
    """Equal structure, dtype, shape and values; Python numbers stay Python numbers."""
    got_leaves, got_tree = flatten(got)
    want_leaves, want_tree = flatten(want)
    assert got_tree == want_tree
    for a, b in zip(got_leaves, want_leaves, strict=True):
        if not isinstance(b, (np.ndarray, np.generic)):
            assert type(a) is type(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.shape(a) == np.shape(b)
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def line_of(fn, text):
    """The number of the only source line of ``fn`` with ``text`` in it."""
    import inspect

    lines, first = inspect.getsourcelines(fn)
    (found,) = [k for k, line in enumerate(lines) if text in line]
    return first + found
