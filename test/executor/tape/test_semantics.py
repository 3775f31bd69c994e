"""What the tape promises beyond gradients: memory, saved arrays, threads, rules of users."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
import weakref

import numpy as np
import profuse as pf
import pytest
from profuse.executor.tape.node import Node


def leaf(*values):
    return pf.array(np.array(values, float), requires_grad=True)


# --- grad and memory ------------------------------------------------------------------------------


class Source(Node):
    """Gives an array of its own as the gradient of its one edge."""

    __slots__ = ("made",)

    def backward(self, gradients):
        made = np.ones(3)
        self.made = made.ctypes.data
        return [made]


@pytest.mark.parametrize("hooked", [False, True])
def test_a_gradient_that_nobody_holds_is_not_copied(hooked):
    x = leaf(1, 2, 3)
    if hooked:
        x.register_hook(lambda g: None)
    node = Source([x.edge()], [((), np.dtype(float))])
    pf.Array(np.float64(1), node).backward()
    assert (x.grad.ctypes.data == node.made) or hooked
    np.testing.assert_array_equal(x.grad, [1, 1, 1])


def test_accumulation_overwrites_what_nobody_else_holds():
    """R4.42."""
    x = leaf(1, 2, 3)
    (x * 2).sum().backward()
    address = x.grad.ctypes.data
    (x * 2).sum().backward()
    assert x.grad.ctypes.data == address
    kept = x.grad
    (x * 2).sum().backward()
    np.testing.assert_array_equal(kept, [4, 4, 4])
    np.testing.assert_array_equal(x.grad, [6, 6, 6])


def test_what_an_op_does_not_read_is_not_kept():
    x = leaf(*np.linspace(0, 1, 1000))
    h = x * 2.0
    alive = weakref.ref(h.data)
    y = h + 1.0
    del h
    assert alive() is None
    z = np.exp(y)
    alive = weakref.ref(y.data)
    del y
    assert alive() is None  # of exp the result is kept
    z.sum().backward()
    np.testing.assert_allclose(x.grad, 2 * np.exp(2 * x.data + 1))


def test_a_run_leaves_no_cycles():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1, 2)
        y = np.exp(np.tanh(x * x))
        nodes = weakref.ref(y.node)
        del y
        assert nodes() is None
        z = np.exp(x).sum()
        z.backward()
        nodes = weakref.ref(z.node)
        del z
        assert nodes() is None
    finally:
        gc.enable()


def test_a_leaf_that_is_gone_gets_nothing():
    x, y = leaf(1, 2), leaf(3, 4)
    z = (x * y).sum()
    gone = weakref.ref(x)
    del x
    assert gone() is None
    z.backward()
    np.testing.assert_array_equal(y.grad, [1, 2])


def test_numpy_operands_may_be_written_to_afterwards():
    x, batch = leaf(1, 2), np.array([3.0, 4.0])
    z = (x * batch).sum()
    batch[...] = 0
    z.backward()
    np.testing.assert_array_equal(x.grad, [3, 4])


def test_long_graphs_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1.0
    y.sum().backward()
    del y
    np.testing.assert_array_equal(x.grad, [1])


# --- writes ---------------------------------------------------------------------------------------


def test_a_write_that_breaks_a_gradient_names_both_lines():
    x = leaf(1, 2)
    y = x * 1
    z = np.sin(y)  # line of the op
    y[0] = 5  # line of the write
    with pytest.raises(pf.GradientError) as error:
        z.sum().backward()
    text = str(error.value)
    lines = [int(part.split(":")[1].split(" ")[0]) for part in text.split("test_semantics.py")[1:3]]
    here = test_a_write_that_breaks_a_gradient_names_both_lines.__code__.co_firstlineno
    assert [line - here for line in lines] == [3, 4]
    assert "the gradient of sin needs" in text and "y = x.copy()" in text


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.sort(),
        lambda y: y.fill(3),
        lambda y: np.copyto(y, 0),
        lambda y: y.put(0, 5),
        lambda y: np.add(y, 1, out=y),
        lambda y: np.put(y, [0], 3),
        lambda y: np.add.at(y, [0], 1),
        lambda y: y.__setitem__(0, 1),
        lambda y: y.__iadd__(1),
        lambda y: np.fill_diagonal(y, 1),
    ],
)
def test_all_ways_to_write_are_counted(write):
    x = pf.array(np.ones((2, 2)), requires_grad=True)
    y = pf.array(np.ones((2, 2)))
    z = (x * y).sum()
    write(y)
    with pytest.raises(pf.GradientError, match="was written to afterwards"):
        z.backward()


def test_what_is_stored_in_an_ndarray_would_be_lost():
    x = leaf(1, 2)
    z = np.zeros(2)
    for filled in (lambda: np.full(2, x), lambda: np.full(3, x[0])):
        with pytest.raises(pf.GradientError, match="broadcast_to"):
            filled()
    with pytest.raises(pf.GradientError, match=r"written to an ndarray(.|\n)*pf\.array"):
        z[...] = x
    with pytest.raises(ValueError) as error:  # NumPy's, of an element
        z[0] = x[0]
    assert isinstance(error.value.__cause__, pf.GradientError)
    with pf.no_grad():
        z[...] = x
    with pytest.raises((pf.GradientError, TypeError)):
        z += x


def test_views_made_without_gradients_refuse_writes_with_gradients():
    x = leaf(1, 2)
    y = x * 1
    for view in (y.detach(), pf.no_grad()(lambda: y[:1])()):
        with pytest.raises(pf.GradientError, match="detach"):
            view *= x[: len(view)]


def test_assignment_by_indices_that_repeat():
    x = leaf(1, 2, 3)
    y = x * 1
    y[[0, 0, 2]] = x * 10  # the last one counts
    np.testing.assert_array_equal(y.data, [20, 2, 30])
    np.testing.assert_array_equal(pf.gradients(y.sum(), x), [0, 1 + 10, 10])


def test_memory_orders_of_views():
    x = leaf(*range(6)).reshape(2, 3)
    y = pf.array(np.asfortranarray(np.zeros((2, 3))))
    y[...] = x
    y.T[1:] *= x.T[:2]
    flipped = y[::-1, ::-1]
    flipped[0, 0] = x[0, 1] * 7
    g = pf.gradients((y * np.arange(6.0).reshape(2, 3)).sum(), x)

    def plain(x):
        y = np.zeros((2, 3))
        y[...] = x
        y.T[1:] *= x.T[:2]
        y[::-1, ::-1][0, 0] = x[0, 1] * 7
        return (y * np.arange(6.0).reshape(2, 3)).sum()

    h = 1e-6
    wanted = np.zeros((2, 3))
    for k in np.ndindex(2, 3):
        d = np.zeros((2, 3))
        d[k] = h
        wanted[k] = (plain(x.data + d) - plain(x.data - d)) / (2 * h)
    np.testing.assert_allclose(g, wanted, atol=1e-7)


# --- saved arrays, anomalies ----------------------------------------------------------------------


def test_saved_arrays_hooks_see_all_that_is_saved_and_nothing_else():
    x, packed = leaf(1, 2), []
    with pf.saved_arrays_hooks(lambda a: packed.append(a) or len(packed) - 1, packed.__getitem__):
        y = np.exp(x * 2.0 + 1.0)
        z = y @ y
    assert len(packed) == 3  # the result of exp, and both operands of the product
    z.backward()
    np.testing.assert_allclose(x.grad, 2 * 2 * np.exp(2 * x.data + 1) ** 2)
    with pf.saved_arrays_hooks(lambda a: a, lambda a: a[:1]):
        z = (x * x).sum()
    with pytest.raises(pf.GradientError, match="unpacking gives"):
        z.backward()
    with pytest.raises(pf.ArgumentError):
        pf.saved_arrays_hooks(1, 2).__enter__()


def test_anomalies_are_told_at_the_forward_line():
    x = leaf(1.0, 0.0)
    with pf.detect_anomaly():
        y = np.sqrt(x) * np.array([1.0, 0.0])
        y = np.sqrt(y * y)  # 0 times infinity in the gradient of the product
        with pytest.raises(pf.GradientError, match=r"test_semantics.*mul_backward.*NaN"):
            y.sum().backward()


def test_anomaly_detection_sees_writes_that_nothing_counts():
    x = leaf(1.0, 2.0)
    with pf.detect_anomaly():
        y = np.exp(x)
        y.data[0] = 7
        with pytest.raises(pf.GradientError, match="exp needs was written to"):
            y.sum().backward()
        (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 4])


# --- hooks ----------------------------------------------------------------------------------------


def test_a_post_accumulate_hook_returns_nothing():
    """R4.27."""
    x = leaf(1, 2)
    handle = x.register_post_accumulate_grad_hook(lambda x: x)
    with handle, pytest.raises(pf.GradientError, match=r"post-accumulate hook.*returns something"):
        (x * 2).sum().backward()
    (x * 2).sum().backward()


def test_hooks_return_gradients_of_the_same_shape():
    x = leaf(1, 2)
    x.register_hook(lambda g: g[:1])
    with pytest.raises(pf.GradientError, match=r"shape \(1,\) for one of shape \(2,\)"):
        (x * 2).sum().backward()


def test_hooks_registered_in_a_run_count_from_the_next():
    x, calls = leaf(1, 2), []
    y = x * 2
    z = y * 3
    z.register_hook(lambda g: (y.register_hook(lambda g: calls.append(1)), None)[1])
    z.sum().backward(retain_graph=True)
    assert not calls
    z.sum().backward()
    assert calls == [1]


# --- threads --------------------------------------------------------------------------------------


def test_one_graph_from_two_threads_is_not_corrupted():
    """Either thread gets the right gradient or an error that says what was freed."""
    for _ in range(30):
        x = leaf(*np.linspace(0, 1, 50))
        y = x
        for _ in range(30):
            y = np.sin(y) * y + x
        z = y.sum()
        wanted = pf.gradients(z, x, retain_graph=True)
        found, start = [], threading.Barrier(2)

        def work(z=z, x=x, found=found, start=start):
            start.wait()
            try:
                found.append(pf.gradients(z, x))
            except pf.GradientError as error:
                assert "was freed" in str(error)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for g in found:
            np.testing.assert_array_equal(g, wanted)


# --- functions with gradients of their own, and jitted ones ---------------------------------------


@pf.custom_vjp
class clipped_exp:
    """The exponential, the gradient of which is at most 1."""

    def forward(x, scale):
        y = np.exp(x) * scale
        return {"y": y, "n": 3}, (y, scale)

    def backward(saved, gradient):
        y, _ = saved
        return np.minimum(y, 1.0) * gradient["y"], None


def test_custom_vjp_on_the_tape():
    x = leaf(-1, 2)
    y = clipped_exp(x, 2.0)["y"]
    assert y.requires_grad
    (y * 3).sum().backward()
    np.testing.assert_allclose(x.grad, np.minimum(2 * np.exp(x.data), 1) * 3)
    (g,) = pf.gradients(clipped_exp(x, 2.0)["y"].sum(), [x], create_graph=True)
    np.testing.assert_allclose(pf.gradients(g.sum(), x), np.where(2 * np.exp(x.data) < 1, 2 * np.exp(x.data), 0))
    with pf.no_grad():
        assert not clipped_exp(x, 2.0)["y"].requires_grad
    assert type(clipped_exp(x.data, 2.0)["y"]) is np.ndarray


@pf.custom_vjp
class unmoved:
    """The sine, with a rule that leaves out the gradient."""

    def forward(x):
        return np.sin(x), (x,)

    def backward(saved, gradient):
        return (None,)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_none_from_a_rule_is_zeros_at_each_step(jitted, captured):
    """R2.27: also where the rule is recorded after some runs, and in captured runs."""
    f = pf.jit(lambda x: unmoved(x) * 2) if jitted else lambda x: unmoved(x) * 2
    for _ in range(12):
        x = leaf(1, 2)
        with pf.compiled_autograd() if captured else contextlib.nullcontext():
            (g,) = pf.gradients(f(x).sum(), [x], allow_unused=True)
        np.testing.assert_array_equal(g, [0, 0])


def test_custom_vjp_must_be_given_what_it_reads():
    w = leaf(1, 2)

    @pf.custom_vjp
    class scaled:
        def forward(x):
            return x * w, None

        def backward(saved, gradient):
            return (gradient,)

    with pytest.raises(pf.GradientError, match="was not given it"):
        scaled(leaf(1, 2))


def test_checkpoint_keeps_the_arguments_alone():
    packed = []

    def f(x):
        for _ in range(5):
            x = np.sin(x) * x
        return x

    x = leaf(1, 2)
    y = pf.checkpoint(f)(x)
    g = pf.gradients(y.sum(), x)
    np.testing.assert_allclose(g, pf.gradients(f(x).sum(), x))
    with pf.saved_arrays_hooks(packed.append, packed.pop):
        pf.checkpoint(f)(x)
    assert len(packed) == 1


@pytest.mark.parametrize("way", ["operand", "result", "plain", "out"])
def test_checkpoint_computes_what_was_saved_before_it_was_written_to(way):
    def f(x):
        y, c = np.exp(x), np.full(2, 3.0)
        if way == "operand":
            z = y * x
            y[...] = 5
        elif way == "result":
            z = y * 2
            y += z
        elif way == "plain":
            z = y * c
            c[...] = 5
        else:
            z = np.multiply(y, x, out=y)
        return (z * z).sum()

    x = leaf(1, 2)
    pf.checkpoint(f)(x).backward()
    np.testing.assert_allclose(x.grad, pf.grad(f)(x.data))


def test_what_is_packed_as_it_is_must_not_be_written_to():
    x = leaf(1, 2)
    with pf.saved_arrays_hooks(lambda array: array, lambda array: array):
        y = np.exp(x)
        z = y * x
    y[...] = 5
    with pytest.raises(pf.GradientError, match="was written to afterwards"):
        z.sum().backward()


def test_checkpoint_tells_functions_that_change():
    rng = np.random.default_rng(0)
    x = leaf(1, 2)
    y = pf.checkpoint(lambda x: np.sin(x) * rng.standard_normal(2))(x)
    with pytest.raises(pf.GradientError, match="does not compute the same"):
        y.sum().backward()


def test_stop_gradient_and_control_flow_on_the_tape():
    x = leaf(1, 2)
    y = (pf.stop_gradient({"a": x})["a"] * x).sum()
    np.testing.assert_array_equal(pf.gradients(y, x), x.data)
    y = pf.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, x)
    y = pf.fori_loop(0, 3, lambda i, c: c * x, y)
    y = pf.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, y)
    assert pf.gradients(y.sum(), x).shape == (2,)


def test_jitted_functions_are_one_node():
    w, x = pf.array(np.eye(3) * 0.5, requires_grad=True), np.arange(12.0).reshape(4, 3) / 10

    @pf.jit
    def layer(w, x, *, scale):
        return {"y": np.tanh(x @ w) * scale, "n": x.sum()}

    def plain(w):
        return ((np.tanh(x @ w) * 2.0) ** 2).sum()

    for call in range(4):  # profiled op by op, then by a plan
        y = layer(w, x, scale=2.0)["y"]
        if call:
            assert y.node.name == "layer/gradients/diff_0_backward" and len(y.node.edges) == 1
        np.testing.assert_allclose(pf.gradients((y**2).sum(), w), pf.grad(plain)(w.data), rtol=1e-9)
    y = layer(w, x, scale=2.0)["y"]
    (g,) = pf.gradients((y**2).sum(), [w], create_graph=True)
    once = pf.grad(plain)
    np.testing.assert_allclose(
        pf.gradients((g**2).sum(), w), pf.grad(lambda w: (once(w) ** 2).sum())(w.data), rtol=1e-9
    )
    with pf.no_grad():
        y = layer(w, x, scale=2.0)["y"]
    assert type(y) is pf.Array and not y.requires_grad
    assert type(layer(w.data, x, scale=2.0)["y"]) is np.ndarray


def test_grad_of_functions_called_on_the_tape():
    x = leaf(0.5, 1.5)

    def f(x):
        return (np.sin(x) ** 2).sum()

    g = pf.grad(f)(x)
    np.testing.assert_allclose(g.data, np.sin(2 * x.data))
    np.testing.assert_allclose(pf.gradients(g.sum(), x), 2 * np.cos(2 * x.data))
    with pytest.raises(pf.ArgumentError, match=r"pf\.vjp is given an array of the tape"):
        pf.vjp(np.sin, x)
    _, pull = pf.vjp(np.sin, x.detach())
    np.testing.assert_allclose(pull(np.ones(2))[0], np.cos(x.data))


def test_traces_refuse_arrays_of_the_tape_that_they_are_not_given():
    w = leaf(1, 2)

    @pf.jit(unsupported="raise")
    def f(x):
        return x * w

    with pytest.raises(pf.TraceError, match="pass it as an argument"):
        f(np.ones(2))

    @pf.jit(unsupported="raise")
    def g(x):
        (w * 2).sum().backward()
        return x

    with pytest.raises(pf.TraceError, match=r"pf\.grad|pass it as an argument"):
        g(np.ones(2))


# --- what NumPy users expect of arrays ------------------------------------------------------------


def test_arrays_behave_as_arrays():
    x = leaf(1.5, 2.5)
    assert len(x) == 2 and x.shape == (2,) and x.ndim == 1 and x.size == 2 and x.nbytes == 16
    assert isinstance(x, np.ndarray) and isinstance(x, pf.Array) and isinstance(x[0], np.float64)
    assert x.strides == (8,) and x.flags.c_contiguous
    assert x.dtype == np.float64 and float(x[0]) == 1.5 and int(x[1]) == 2 and bool(x[0] > 1)
    assert f"{x[0]:.2f}" == "1.50" and str(x) == "[1.5 2.5]"
    assert repr(x) == "array([1.5, 2.5], requires_grad=True)"
    assert repr(x * 2) == "array([3., 5.], node=mul_backward)"
    assert x.tolist() == [1.5, 2.5] and x[1].item() == 2.5 and 1.5 in x
    assert [float(v) for v in x] == [1.5, 2.5]
    assert {x: 1}[x] == 1
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError):
        len(x[0])
    np.testing.assert_array_equal(np.argsort(-x), [1, 0])
    np.testing.assert_array_equal(x[x > 2].data, [2.5])
    a, b = x
    assert a.requires_grad and b.requires_grad
    np.testing.assert_array_equal(pf.gradients((a * b).sum(), x), [2.5, 1.5])


def test_functions_without_gradients_work_where_none_are_asked_for():
    x = leaf(3, 1, 2)
    with pf.no_grad():
        np.testing.assert_array_equal(np.sort(x), [1, 2, 3])
    assert type(np.sort(x.detach())) is pf.Array
    np.testing.assert_array_equal(np.unique(x.detach()), [1, 2, 3])
    with pytest.raises(pf.GradientError, match=r"np\.real_if_close has no gradient"):
        np.real_if_close(pf.array(np.eye(2), requires_grad=True))
    with pytest.raises(pf.GradientError, match="called like this"):
        np.add(x, 1, where=np.array([True, False, True]))


def test_numpy_scalars_and_weak_numbers_keep_their_dtypes():
    x = pf.array(np.ones(2, np.float32), requires_grad=True)
    assert (x * 2.0).dtype == np.float32 and (x * np.float64(2)).dtype == np.float64
    y = (x * np.ones(2)).sum()
    y.backward()
    assert x.grad.dtype == np.float32
    z = pf.array(np.array([1 + 2j, 3.0]), requires_grad=True)
    w = (np.abs(z) ** 2).sum()
    w.backward()
    np.testing.assert_allclose(z.grad, 2 * z.data)


def test_views_follow_what_is_written_to_their_base():
    x = leaf(1, 2, 3, 4)
    y = x * 1
    v, u = y[1:3], y[::2]
    y *= x
    u *= 10
    np.testing.assert_array_equal(v.data, [4, 90])
    np.testing.assert_array_equal(pf.gradients(v.sum(), x), [0, 4, 60, 0])


def test_leaves_do_not_share_gradients():
    x, y = leaf(1, 2), leaf(3, 4)
    np.exp(x + y).sum().backward()
    x.grad += 100
    np.testing.assert_allclose(y.grad, np.exp([4.0, 6.0]))


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("function", [lambda x, y: x + y, lambda x, y: np.tanh(x + y.T), lambda x, y: np.stack([x, y])])
def test_gradients_that_are_returned_share_no_memory(function, is_jitted):
    f = pf.jit(function) if is_jitted else function
    for _ in range(4):
        x, y = (pf.array(np.eye(2) + k, requires_grad=True) for k in range(2))
        result = f(x, y)
        given = np.ones(result.shape)
        first, second = pf.gradients(result, (x, y), given)
        expected = second.copy()
        first *= 100
        np.testing.assert_array_equal(second, expected)
        np.testing.assert_array_equal(given, np.ones(result.shape))
        assert not np.shares_memory(second, given)


def by_a_number(w, x):
    h = x @ w
    if float(h.sum()) > 0:
        h = h * 2
    return h.max() * float(h.sum())


def by_a_function_of_math(w, x):
    return (x @ w).max() * math.sqrt(float((x @ w)[0, 0]))


@pytest.mark.parametrize("function", [by_a_number, by_a_function_of_math])
def test_a_jitted_function_takes_python_numbers_for_constants_as_the_tape_does(function):
    x, f = np.arange(6.0).reshape(3, 2), pf.jit(function, unsupported="python")
    for k in range(4):
        ours, theirs = (pf.array(np.full((2, 2), k + 1.0), requires_grad=True) for _ in range(2))
        f(ours, x).backward()
        function(theirs, x).backward()
        np.testing.assert_array_equal(ours.grad, theirs.grad)


def test_functions_of_math_lose_no_gradient_unnoticed_jitted_or_not():
    def f(x):
        return x * math.sqrt(x[0])

    jitted = pf.jit(f, unsupported="python")
    for _ in range(4):
        for call in (f, jitted):
            with pytest.raises(pf.GradientError, match=r"math\.sqrt takes the number"):
                call(leaf(4, 1))
        with pf.no_grad():
            np.testing.assert_array_equal(jitted(leaf(4, 1)), [8, 2])
