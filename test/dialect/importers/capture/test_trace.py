"""Traces: sizes stay symbolic, forced numbers are baked and guarded, misuse is refused."""

import threading
from queue import SimpleQueue

import numpy as np
import pytest
from profuse.dialect.errors import BoundsError, DTypeError, ProfuseError, ShapeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import is_tracing, trace
from profuse.dialect.importers.numpy.tracing.trace_guards import text
from profuse.dialect.trees.pytree import flatten
from tracing import call, check, line_of, same

A, B = np.arange(6.0).reshape(2, 3), np.arange(15.0).reshape(5, 3)


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x / x.shape[0],
        lambda x: x.sum(axis=0) / len(x.shape),
        lambda x: x.reshape(x.shape[0] * x.shape[1]),
        lambda x: x.reshape(-1, 1) + x.size,
        lambda x: np.zeros((x.shape[0], 2)) + x[:, :1],
        lambda x: np.ones(x.shape, np.float32),
        lambda x: np.full((x.shape[1], x.shape[0] + 1), x.shape[0]),
        lambda x: np.arange(x.shape[0]),
        lambda x: np.arange(1, x.shape[0] * 2, 2) * 1.5,
        lambda x: np.eye(x.shape[0]) @ x,
        lambda x: np.eye(x.shape[0], k=1, dtype=np.int8),
        lambda x: np.tri(x.shape[0]),
        lambda x: np.linspace(0.0, 1.0, x.shape[0]),
        lambda x: np.zeros_like(x) + np.full_like(x, 3),
        lambda x: x[: x.shape[0] // 2],
        lambda x: x[x.shape[0] - 1],
        lambda x: x.shape,
        lambda x: x.shape[0] ** 2 - x.shape[1] % 2,
        lambda x: np.prod(x.shape),
        lambda x: (np.shape(x), np.size(x), np.ndim(x), x.nbytes),
        lambda x: np.array([x.shape[0], 7]),
        lambda x: x.astype(np.float32).mean(axis=0, keepdims=True) * x.shape[0],
    ],
)
def test_sizes_stay_symbolic(fn):
    check(fn, A, again=[(B,)], exact=False)


def test_python_integer_arguments_are_sizes_too():
    check(lambda x, n: np.zeros((n, 2)) + x[:n, :1], A, 1, again=[(B, 4)])


# --- baked numbers ----------------------------------------------------------------------------


def unrolled(x):
    total = x[0]
    for k in range(1, x.shape[0]):  # the loop
        total = total + x[k]
    return total


def test_forced_sizes_are_baked_with_a_guard():
    traced = trace(unrolled, (A,))
    (guard,) = traced.guards
    assert guard.expected == 2 and guard.loc.line == line_of(unrolled, "# the loop")
    assert text(guard.expr) == "a0.shape[0]"
    assert "x.shape[0] = 2 was baked into the graph at" in guard.explain()
    assert "for k in range(1, x.shape[0])" in guard.explain()
    assert traced.accepts([np.ones((2, 7))]) and not traced.accepts([B])
    same(call(traced, np.ones((2, 7))), np.full(7, 2.0))


@pytest.mark.parametrize(
    "fn, expr",
    [
        (lambda x: x + (1 if x.shape[0] > 3 else 2), "a0.shape[0] > 3"),
        (lambda x: x + (1 if x.shape[0] == x.shape[1] else 2), "a0.shape[0] == a0.shape[1]"),
        (lambda x: x * float(x.shape[1]), "a0.shape[1]"),
        (lambda x: [row.sum() for row in x], "a0.shape[0]"),
        (lambda x: x * float(len(x)), "a0.shape[0]"),
        (lambda x: x + int(np.sqrt(x.shape[0])), "sqrt(a0.shape[0])"),
        (lambda x: x + {2: 1.0}.get(x.shape[0], 2.0), "a0.shape[0]"),
        (lambda x: [0] * x.T[1:].shape[0], "a0.shape[1] + -1"),
        (lambda x: x.squeeze(), "a0.shape[0] == 1"),
    ],
)
def test_guard_expressions(fn, expr):
    traced = trace(fn, (A,))
    assert expr in [text(g.expr).replace("max(", "").replace(", 0)", "") for g in traced.guards]
    same(call(traced, A), fn(A))
    if not traced.accepts([B]):
        same(call(trace(fn, (B,)), B), fn(B))


def test_number_arguments_are_guarded_by_value():
    def f(x, n, rate):
        for _ in range(n):
            x = x * 2
        return x if rate > 0.5 else -x

    traced = trace(f, (A, 3, 0.7))
    assert [text(g.expr) for g in traced.guards] == ["a1", "a2 > 0.5"]
    assert traced.accepts([A, 3, 0.9]) and not traced.accepts([A, 4, 0.9])
    assert not traced.accepts([A, 3, 0.1])
    same(call(traced, A, 3, 0.6), f(A, 3, 0.6))


def test_sizes_that_cannot_be_told_are_guarded_by_all_sizes():
    traced = trace(lambda x, y: [0] * (x + y).shape[0], (np.ones(3), np.ones(1)))
    assert {text(g.expr) for g in traced.guards} == {"a0.shape[0]", "a1.shape[0]"}


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x / (x.shape[1] // 2) ** 0.5,
        lambda x: x * (3 * x.size + 1) ** -0.5,
        lambda x: x * (x + x[:1]).shape[0] ** 1.5,  # no expression of sizes of arguments
        lambda x: x * 2 ** x.shape[0] * x.shape[1] ** x.shape[0],
    ],
)
def test_powers_of_sizes_bake_no_sign(fn):
    """Sizes are not negative: such a power, as in attention, holds for all of them."""
    traced = trace(fn, (A,))
    assert not traced.guards
    for x in (A, B, np.ones((6, 8))):
        same(call(traced, x), fn(x))


@pytest.mark.parametrize(
    "fn, expr",
    [
        (lambda x: x * abs((x.shape[0] - 3) ** 0.5), "(a0.shape[0] + -3) < 0"),
        (lambda x: x * abs((x.shape[0] * -2) ** 0.5), "-2*a0.shape[0] < 0"),
        (lambda x: x * 2 ** (3 - x.shape[0]), "(-1*a0.shape[0] + 3) < 0"),
    ],
)
def test_powers_of_what_may_be_negative_bake_the_sign(fn, expr):
    traced = trace(fn, (A,))
    assert expr in [text(g.expr) for g in traced.guards]
    same(call(traced, A), fn(A))
    for x in (B, np.ones((6, 3))):
        if not traced.accepts([x]):
            same(call(trace(fn, (x,)), x), fn(x))


def test_divisions_by_zero_are_not_cancelled():
    traced = trace(lambda x, n: x + (1 if x.shape[0] * n // n == 2 else 2), (A, 4))
    assert traced.accepts([A, 5]) and not traced.accepts([A, 0])


def test_numbers_from_arrays_that_are_written_to_later():
    def f(x):
        z = np.zeros(())
        y = z + 1
        z += 5
        return x if y > 0 else -x

    same(call(trace(f, (A,)), A), A)


def test_long_sums_of_sizes_are_told():
    def f(x):
        n = x.shape[0]
        for _ in range(200):
            n = n + 1
        return [0] * n

    (guard,) = trace(f, (A,)).guards
    assert text(guard.expr) == "a0.shape[0] + 200"


def test_known_sizes_need_no_guard():
    check(lambda x: list(x.reshape(-1, 3).T), A)


@pytest.mark.parametrize(
    "fn, hint",
    [
        (lambda x: x if x.sum() > 0 else -x, "pf.cond"),
        (lambda x: x * float(f"{x[0, 0]}"), "texts"),
        (lambda x: x * len(str(x)), "texts"),
        (lambda x: [x] * int(x.max()), "pf.cond"),
        (lambda x: [0, 1, 2][x.argmax()], "np.where"),
        (lambda x: x.item(0) > 1 and x, "pf.cond"),
    ],
)
def test_contents_cannot_be_forced(fn, hint):
    with pytest.raises(TraceError) as info:
        trace(fn, (A,))
    assert hint in info.value.hint
    assert info.value.loc.file == __file__ and info.value.loc.line == fn.__code__.co_firstlineno


def test_truth_of_larger_arrays_is_ambiguous_as_in_numpy():
    with pytest.raises(ValueError, match="ambiguous"):
        trace(lambda x: x if x > 0 else -x, (A,))


# --- captured arrays and results --------------------------------------------------------------


def test_closed_over_arrays_become_inputs_by_reference():
    w = np.arange(3.0)
    traced = trace(lambda x: x * w + w, (A,))
    assert [c is w for c in traced.captured] == [True]
    assert len(traced.module.main.inputs) == 2
    w += 1
    same(call(traced, A), A * w + w)


def test_small_arrays_made_while_tracing_become_constants():
    traced = trace(lambda x: x + np.arange(3.0) + np.array([1, 2, 3]), (A,))
    assert not traced.captured
    assert len(trace(lambda x: x + np.arange(100.0), (np.ones(100),)).captured) == 1


def test_filled_arrays_are_part_of_the_graph():
    traced = trace(lambda x: x + np.zeros((100, 3)), (np.ones((100, 3)),))
    assert not traced.captured
    assert [i.op.name for i in traced.module.main.body.instrs][-2:] == ["full", "add"]


def test_small_arrays_from_outside_stay_references():
    w = np.ones(3)
    traced = trace(lambda x: x + np.asarray(w) + [1.0, 2.0, 3.0], (A,))
    assert [c is w for c in traced.captured] == [True]


def test_functions_imported_by_name_are_substituted_by_value():
    from numpy import array, zeros

    traced = trace(lambda x: x + zeros((x.shape[0], 1)), (A,))
    assert not traced.guards
    check(lambda x: array([x[0], x[1]]), A)


def test_changing_a_captured_array_is_refused():
    def f(x):
        buffer = np.arange(100.0)
        y = x + buffer
        buffer[0] = 1
        return y + buffer

    with pytest.raises(TraceError, match="changed in place"):
        trace(f, (np.ones(100),))


def test_results_of_all_kinds():
    w = np.arange(3.0)
    check(
        lambda x, n: {"x": x, "n": n, "w": w, "c": 3, "t": (1.5, None, "s"), "s": np.float32(2), "y": [x + 1, x.T]},
        A,
        5,
    )


def test_nested_arguments_and_keywords():
    check(lambda p, *, k: p["w"] * p["b"][0] + k, {"w": A, "b": [2.0, None]}, k=np.float32(3))


def test_every_instruction_knows_its_line():
    def f(x):
        y = x + 1  # first
        return np.sum(y)  # second

    traced = trace(f, (A,))
    lines = {i.op.name: i.loc.line for i in traced.module.main.body.instrs}
    assert lines["add"] == line_of(f, "# first") and lines["sum"] == line_of(f, "# second")


# --- in place ---------------------------------------------------------------------------------


def test_in_place_operators_on_locals():
    def f(x):
        y = x * 2
        z = y
        y += 1
        y *= x
        return y, z

    check(f, A)


def test_in_place_on_dead_views_is_fine():
    def f(x):
        y = x * 2
        first = y[0].sum()
        y -= first
        return y

    check(f, A)


def _argument(x):
    x += 1
    return x


def _argument_view(x):
    y = x.reshape(-1)
    y *= 2
    return x


def _outside(x):
    y = np.flip([1.0, 2.0, 3.0])
    y += x[0]
    return y


@pytest.mark.parametrize(
    "fn, message",
    [
        (_argument, "would change argument 'x'"),
        (_argument_view, "would change argument 'x'"),
        (_outside, "existing array"),
    ],
)
def test_mutation_is_refused_with_a_way_out(fn, message):
    with pytest.raises(TraceError, match=message) as info:
        trace(fn, (A.copy(),))
    assert info.value.hint and info.value.loc.file == __file__


def test_in_place_casting_and_shapes_are_numpys():
    def f(x):
        y = x * 2
        y += 0.5
        return y

    with pytest.raises(DTypeError, match="same_kind"):
        trace(f, (np.ones(3, np.int32),))
    check(f, np.ones(3, np.float32))

    def g(x):
        y = x[0] * 1
        y += x
        return y

    with pytest.raises(ShapeError, match="non-broadcastable"):
        trace(g, (A,))


def test_numpy_scalars_are_immutable():
    def f(x):
        s = x.sum()
        t = s
        s += 1
        return s, t

    check(f, A)


# --- refusals ---------------------------------------------------------------------------------


def helper(x):
    return np.real_if_close(x)  # helper


def unsupported(x):
    y = np.einsum_path("ij->i", x)  # path
    return np.array_str(y) + helper(x)  # text


def test_unsupported_calls_are_listed_at_once():
    with pytest.raises(TraceError) as info:
        trace(unsupported, (A,))
    text = str(info.value)
    assert info.value.what.startswith("np.einsum_path is not supported")
    assert info.value.loc.line == line_of(unsupported, "# path")
    assert f"np.array_str ({__file__}:{line_of(unsupported, '# text')})" in text
    assert f"np.real_if_close ({__file__}:{line_of(helper, '# helper')})" in text


@pytest.mark.parametrize(
    "fn, message",
    [
        (lambda x: x.tolist(), "ndarray.tolist is not supported"),
        (lambda x: x.tobytes(), "ndarray.tobytes is not supported"),
        (lambda x: np.array_str(x), "np.array_str is not supported"),
        (lambda x: np.log(x, where=x > 0), "where="),
        (lambda x: np.random.rand(3) + x, "np.random.rand is called while tracing"),
        (lambda x: memoryview(x), "bytes-like object"),
    ],
)
def test_other_refusals(fn, message):
    with pytest.raises((TraceError, TypeError), match=message):
        trace(fn, (A,))


def test_unknown_attributes_are_attribute_errors():
    with pytest.raises(AttributeError):
        trace(lambda x: x.no_such_thing, (A,))


def test_index_errors_are_numpys():
    with pytest.raises(BoundsError, match="too many indices"):
        trace(lambda x: x[0, 0, 0], (A,))
    with pytest.raises(IndexError):
        trace(lambda x: x[5], (A,))


@pytest.mark.usefixtures("queues_are_pure")
def test_leaked_values_are_refused():
    queue = SimpleQueue()  # of C: what is put into it is not undone
    trace(lambda x: queue.put(x) or x, (A,))
    leaked = [queue.get()]
    assert is_tracing(leaked)
    with pytest.raises(TraceError, match="outside of the trace"):
        leaked[0] + 1
    with pytest.raises(TraceError, match="outside of the trace"):
        trace(lambda x: x + leaked[0], (A,))


# --- patching ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("queues_are_pure")
def test_numpy_is_as_before_after_a_trace_even_a_failing_one():
    zeros, rand = np.zeros, np.random.rand
    seen = SimpleQueue()
    with pytest.raises(ProfuseError):
        trace(lambda x: seen.put(np.zeros) or np.array_str(x), (A,))
    assert seen.get() is not zeros
    assert np.zeros is zeros and np.random.rand is rand


@pytest.mark.usefixtures("queues_are_pure")
def test_concurrent_traces_and_untraced_threads():
    zeros, failures = np.zeros, []
    inside = SimpleQueue()

    def work(k):
        def f(x):
            inside.put(None)
            y = x
            for _ in range(50):
                y = y + np.zeros(x.shape) + np.ones(3)
            return y

        try:
            check(f, np.full((k + 1, 3), float(k)), exact=False)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    inside.get(timeout=10)
    assert type(np.zeros(3)) is np.ndarray and np.random.rand(2).shape == (2,)
    for t in threads:
        t.join()
    assert not failures and np.zeros is zeros


def test_leaves_come_in_the_order_of_the_inputs():
    traced = trace(lambda a, b, *, c: (c, b, a), (A, 2), {"c": 1.5})
    leaves, _ = flatten(((A, 2), {"c": 1.5}))
    assert len(traced.module.main.inputs) == len(leaves)
    assert list(traced.module.main.outputs) == list(traced.module.main.inputs)[::-1]


def test_methods_of_arrays_have_names():
    def f(x):
        method = x.T.max
        return method() * len(method.__name__), x.sum.__qualname__ == "ndarray.sum"

    check(f, A, again=[(B,)])
