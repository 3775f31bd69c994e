"""What captures anew and what hits: the key of a backward run (R4.7 - R4.11)."""

from __future__ import annotations

import re

import numpy as np
import profuse as pf
import pytest
from captured_programs import captured, register, two_results
from profuse.dialect.errors import GradientError, InternalError
from profuse.executor.backward import key
from profuse.executor.plans.differentiable import DiffNode

RNG = np.random.default_rng(2)
FACTORS = np.array([0.5, 1.5, -2.0])


def leaf(*shape, dtype=np.float64):
    return pf.array(RNG.standard_normal(shape).astype(dtype), requires_grad=True)


def captures(*programs, dynamic=False):
    """How many captures there are after each program has run."""
    found = []
    for program in programs:
        y = program()
        with captured(dynamic=dynamic):
            y.backward()
        found.append(pf.compiled_autograd.state().captures)
    return found


def test_r4_7_a_second_step_that_is_the_same_traces_nothing():
    x = leaf(3, 4)
    assert captures(*[lambda: (np.tanh(x) * x).sum()] * 3) == [1, 1, 1]
    assert pf.compiled_autograd.state().hits == 2


def net(batch, w, v):
    x = RNG.standard_normal((batch, 3))
    return ((np.maximum(x @ w, 0) @ v).reshape(-1) ** 2).mean()


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("dynamic", [False, True])
def test_r4_9_batches_of_4_4_5_6(kept, dynamic):
    w, v = leaf(3, 7), leaf(7, 2)  # no size is the batch's by chance

    def step(batch):
        def run():
            if not kept:
                w.grad = v.grad = None
            return net(batch, w, v)

        return run

    wanted = [1, 1, 1, 1] if dynamic else [1, 1, 2, 2]
    assert captures(*map(step, (4, 4, 5, 6)), dynamic=dynamic) == wanted


def test_r4_9_only_sizes_that_change_are_passed():
    w, v = leaf(3, 8), leaf(8, 2)
    captures(*[lambda b=b: net(b, w, v) for b in (4, 5, 7)])
    first, second = pf.compiled_autograd.state().runs
    assert first.captured.sizes == []
    assert len(second.captured.sizes) == 2  # the batch, wherever it is met, and twice the batch
    assert any("became dynamic" in reason for reason in second.reasons)
    assert "square" in " ".join(second.reasons)


def test_r4_9_sizes_that_were_equal_and_are_no_longer_are_told_apart():
    def program(m, n):
        a, b = leaf(m, 3), leaf(n, 3)
        return lambda: np.tanh(a).sum() + np.tanh(b).sum()

    assert captures(program(4, 4), program(5, 5), program(6, 6)) == [1, 2, 2]
    assert captures(program(6, 7), program(8, 9), program(3, 3)) == [3, 3, 3]
    assert any("equals others no longer" in reason for reason in pf.compiled_autograd.state().runs[-1].reasons)


def test_sizes_that_become_1_give_the_gradients_of_the_eager_tape():
    def program(m, n):
        def run(x, y):
            return (np.tanh(x) * y + x).sum()

        return run, (leaf(m, 3), leaf(n, 3))

    for m, n in [(4, 4), (5, 5), (5, 1), (1, 5), (1, 1), (7, 7), (1, 6)]:
        run, args = program(m, n)
        wanted = pf.gradients(run(*args), args)
        with captured():
            found = pf.gradients(run(*args), args)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


class TestR48:
    """R4.8: what is part of the key."""

    def test_r4_8_values_are_not(self):
        assert captures(*[lambda: np.tanh(leaf(3)).sum() for _ in range(3)]) == [1, 1, 1]

    def test_r4_8_ops_and_their_order_are(self):
        x = leaf(3)
        assert captures(
            lambda: np.tanh(np.exp(x)).sum(), lambda: np.exp(np.tanh(x)).sum(), lambda: np.tanh(np.exp(x)).sum()
        ) == [1, 2, 2]

    def test_r4_8_exponents_are(self):
        x = leaf(3)
        assert captures(*[lambda n=n: (np.abs(x) ** n).sum() for n in (2.5, 3.5, 2.5)]) == [1, 2, 2]

    def test_r4_8_numbers_are_told_apart_by_their_bits(self):
        x = leaf(3)
        assert captures(*[lambda n=n: (x * n).sum() for n in (0.0, -0.0, 0, 0.0)]) == [1, 2, 3, 3]

    def test_r4_8_a_number_is_no_array_of_float64(self):
        """NumPy says that the dtype of float64 equals None and the name of float."""
        x, y = leaf(3), leaf(3)

        @pf.custom_vjp
        class scaled:
            def forward(x, s):
                return x * s, (x, s)

            def backward(saved, g):
                return g * saved[1], None

        assert captures(
            lambda: scaled(x, 2.0).sum(),
            lambda: scaled(x, np.full(3, 2.0)).sum(),
            lambda: (np.tanh(x) / y).sum(),
            lambda: (np.tanh(x) / y.data).sum(),
        ) == [1, 2, 3, 4]

    def test_r4_8_dtypes_are(self):
        assert captures(*[lambda d=d: np.tanh(leaf(3, dtype=d)).sum() for d in (np.float64, np.float32)]) == [1, 2]

    def test_r4_8_ranks_are(self):
        assert captures(*[lambda s=s: np.tanh(leaf(*s)).sum() for s in ((3,), (3, 3))]) == [1, 2]

    def test_r4_8_which_operands_require_gradients_is(self):
        x, y, z = leaf(3), leaf(3), np.ones(3)
        assert captures(lambda: (x * y).sum(), lambda: (x * z).sum(), lambda: (x * y).sum()) == [1, 2, 2]

    def test_r4_8_what_is_shared_is(self):
        x, y = leaf(3), leaf(3)
        assert captures(lambda: (x * y).sum(), lambda: (x * x).sum()) == [1, 2]

    def test_r4_8_hooks_are_by_their_number_and_place(self):
        def program(count, place="x"):
            def run():
                x = leaf(3)
                y = np.tanh(x)
                for _ in range(count):
                    (x if place == "x" else y).register_hook(lambda g: g * 1.0)
                return y.sum()

            return run

        # Each registers functions of its own.
        assert captures(program(0), program(1), program(1), program(2), program(1, "y")) == [1, 2, 2, 3, 4]

    @pytest.mark.parametrize("kind", ["tensor", "pre", "post", "accumulated"])
    def test_r4_8_hooks_of_each_kind_are_by_their_number(self, kind):
        def program(count):
            def run():
                x = leaf(3)
                y = np.tanh(x) * 2.0
                for _ in range(count):
                    register(kind, x, y)
                return y.sum()

            return run

        assert captures(*map(program, (0, 1, 2, 1, 3, 2))) == [1, 2, 3, 3, 4, 4]

    @pytest.mark.parametrize("times", [lambda y: y * FACTORS, lambda y: -y])
    def test_r4_8_which_result_of_a_node_is_read_is(self, times):
        x = leaf(3)

        @pf.jit
        def both(x):
            y = np.tanh(x * 2)
            return y * x, y * y + x

        def program(k):
            return lambda: times(both(x)[k]).sum()

        for k in (0, 1):
            for _ in range(4):
                program(k)().backward()
                both.wait()
        assert type(program(0)().node.edges[0][0].edges[0][0]) is DiffNode
        found = []
        for k in (0, 1, 0, 1):
            x.grad = None
            found += captures(program(k))
            y = np.tanh(x.data * 2)
            slope = 2 * (1 - y * y)
            wanted = times((slope * x.data + y, 2 * y * slope + 1.0)[k])
            np.testing.assert_allclose(x.grad, wanted, rtol=1e-12)
        assert found == [1, 2, 2, 2]

    def test_r4_8_axes_and_other_attributes_are(self):
        x = leaf(3, 3)
        assert captures(
            lambda: (x.sum(0) ** 2).sum(),
            lambda: (x.sum(1) ** 2).sum(),
            lambda: x[1:].sum(),
            lambda: x[2:].sum(),
            lambda: x[1:].sum(),
        ) == [1, 2, 3, 4, 4]

    def test_r4_8_which_gradients_are_wanted_is(self):
        x, y = leaf(3), leaf(3)
        for wanted in ([x], [x, y], [y], [x]):
            with captured():
                pf.gradients((x * y).sum(), wanted)
        assert pf.compiled_autograd.state().captures == 3

    def test_r4_8_gradients_that_are_given_are_not(self):
        x = leaf(3)
        for _ in range(3):
            with captured():
                (x * 2.0).backward(RNG.standard_normal(3))
        assert pf.compiled_autograd.state().captures == 1


def test_r4_10_the_first_new_node_is_told_with_the_sizes_of_keys():
    x = leaf(3)
    captures(lambda: np.tanh(x).sum(), lambda: np.exp(x).sum())
    (reason,) = pf.compiled_autograd.state().runs[-1].reasons
    assert reason.startswith("new autograd node exp_backward")
    # Keys of both are made of as much; each part of them counts.
    size, known = re.search(r"key size (\d+); known there: \[(\d+)\]", reason).groups()
    assert size == known and int(size) > 5
    told = [e for e in pf.events() if e.kind == "backward-miss"]
    assert told[-1].details["reasons"] == [reason]


def test_r4_10_the_size_that_became_dynamic_is_told_with_its_node():
    captures(*[lambda n=n: np.tanh(leaf(n, 3)).sum() for n in (4, 5)])
    reasons = pf.compiled_autograd.state().runs[-1].reasons
    assert reasons and all("became dynamic" in reason for reason in reasons)
    assert any(re.fullmatch(r"size 0 of shape \d+, of tanh_backward, .*", r) for r in reasons)
    told = [e for e in pf.events() if e.kind == "backward-miss"]
    assert told[-1].details["reasons"] == list(reasons)


def test_r4_10_other_arrays_that_are_the_same_are_told():
    x, y = leaf(3), np.ones(3)
    captures(lambda: (x * y + x * y).sum(), lambda: (x * y + x * y.copy()).sum())
    for constants in ([y, y], [y, y.copy()]):
        a, b = map(pf.array, constants)
        b = a if constants[0] is constants[1] else b
        captures(lambda a=a, b=b: (x / a + x / b).sum())
    reasons = [made.reasons for made in pf.compiled_autograd.state().runs]
    assert reasons[-1] == ("other lifted arrays are the same, or have other ranks",)


def test_r4_10_no_reason_is_an_error():
    with pytest.raises(InternalError, match="for no reason"):
        key._told([])


def test_r4_11_what_was_saved_is_freed_after_captures_and_hits():
    for _ in range(2):
        x = leaf(3)
        y = np.tanh(x).sum()
        with captured():
            y.backward()
            with pytest.raises(GradientError, match="freed by an earlier backward"):
                y.backward()
    assert (pf.compiled_autograd.state().captures, pf.compiled_autograd.state().hits) == (1, 1)


def test_r4_11_unless_the_graph_is_retained():
    x = leaf(3)
    y = np.tanh(x).sum()
    with captured():
        y.backward(retain_graph=True)
        y.backward()
    eager = pf.array(x.data.copy(), requires_grad=True)
    for _ in range(2):
        np.tanh(eager).sum().backward()
    np.testing.assert_allclose(x.grad, eager.grad)


def test_what_was_written_to_is_refused():
    x = leaf(3)
    y = x * 1.0
    z = (y * y).sum()
    y += 1.0
    with captured(), pytest.raises(GradientError, match="written to afterwards"):
        z.backward()


def test_leaves_that_are_gone_do_not_count():
    def loss():
        return (leaf(3) * 2.0).sum()

    with captured():
        loss().backward()
    assert pf.compiled_autograd.state().captures == 1


def test_exponents_that_change_in_each_step_do_not_capture_forever(monkeypatch):
    monkeypatch.setattr("profuse.executor.backward.captured_run._MOST", 5)
    x = leaf(3)
    found = captures(*[lambda k=k: (x ** (2.0 + k)).sum() for k in range(9)])
    assert found == [1, 2, 3, 4, 5, 5, 5, 5, 5]
    wanted = sum((2.0 + k) * x.data ** (1.0 + k) for k in range(9))
    np.testing.assert_allclose(x.grad, wanted)
    assert captures(lambda: (x**3.0).sum()) == [5] and pf.compiled_autograd.state().hits == 1
    assert sum(e.kind == "backward-limit" for e in pf.events()) == 1


def test_r4_8_hooks_of_other_results_of_a_node_capture():
    """As many hooks in other places: each is called with the gradient of its own result."""
    w = leaf(3)
    both = two_results(leaf(3), leaf(3))
    seen = []

    def program(which):
        results = both(w, w)
        results[which].register_hook(lambda g: seen.append(np.array(g)))
        return (results[0] * 2.0 + results[1] * 3.0).sum()

    assert captures(*[lambda k=k: program(k) for k in (0, 1, 0, 1)]) == [1, 2, 2, 2]
    for k, g in enumerate(seen):
        np.testing.assert_array_equal(g, np.full(3, 3.0 if k % 2 else 2.0))
