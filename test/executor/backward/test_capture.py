"""What is captured: the gradients of all kinds of nodes, node by node, without running any."""

from __future__ import annotations

import re

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED, both, captured, compiled, two_results
from every_case import EVERY_CASE

RNG = np.random.default_rng(5)


def leaf(*shape):
    return pf.array(RNG.standard_normal(shape), requires_grad=True)


def head(text):
    """The instructions of the main function of a captured graph, in order."""
    lines = text.split("func.func")[1].splitlines()[1:]
    return [line.strip() for line in lines if '"profuse.' in line]


def test_r4_13_five_lists_whose_elements_are_taken_at_the_head():
    x = leaf(4)
    x.register_hook(lambda g: None)
    with captured():
        (np.tanh(x) * 3.0).sum().backward()
    made = pf.compiled_autograd.state().runs[-1]
    assert made.name == "CompiledAutograd0"
    assert len(made.module.main.inputs) == 5
    names = [instr.op.name for instr in made.module.main.body.instrs]
    taken = names.count("list_get")
    assert names[0] == "list_get" and taken >= 4
    assert made.ir("captured").count("!profuse.list,") >= 4


def test_r4_14_index_ops_say_where_elements_come_from():
    x = leaf(4)
    with captured():
        np.tanh(x).sum().backward()
    text = pf.compiled_autograd.state().runs[-1].ir("captured")
    assert 'origin = "root"' in text
    assert 'origin = "2 tanh_backward"' in text
    assert 'origin = "0 accumulate_grad"' in text


def test_r4_17_nodes_in_the_order_of_the_engine():
    x = leaf(4)
    with captured():
        (np.tanh(x) * np.exp(x)).sum().backward()
    calls = [line for line in head(pf.compiled_autograd.state().runs[-1].ir("captured")) if "call_gradient" in line]
    assert [line.split("callee = @")[1].split(",")[0] for line in calls] == [
        "SumBackward0",
        "MulBackward0",
        "ExpBackward0",
        "TanhBackward0",
    ]
    assert "(NodeCall 0)" in calls[0]


def test_r4_18_a_value_used_twice_has_one_sum():
    x = leaf(4)
    with captured():
        y = np.tanh(x)
        (y * 2.0 + np.exp(y)).sum().backward()
    lines = head(pf.compiled_autograd.state().runs[-1].ir("captured"))
    (add,) = [line for line in lines if '"profuse.add"' in line]
    # The old one first, as the eager run adds them: exp was made last, and runs first.
    old, new = re.search(r"\(%(\d+), %(\d+)\)", add).groups()
    checks = {line.split(" =")[0].strip(): line for line in lines if "validate_grads" in line}
    assert "exp_backward" in checks[f"%{old}"] and "mul_backward" in checks[f"%{new}"]


def test_r4_21_private_functions_are_shared_by_equal_nodes():
    x = leaf(4)
    with captured():
        np.tanh(np.tanh(np.tanh(x))).sum().backward()
    module = pf.compiled_autograd.state().runs[-1].stages["captured"]
    assert [n for n in module.functions if n.startswith("Tanh")] == ["TanhBackward0"]


def test_elementwise_matrix_and_indexing_programs():
    def program(w, log, k):
        a = np.concatenate([w, w * 2], 0)
        b = np.einsum("ij,kj->ik", a, a)
        c = np.where(b > 0, b, 0.1 * b)
        mixed = (c.max(1) / (1 + np.abs(c).sum(1))).sum()
        return mixed + w[[0, 1, 0]].mean() + w.reshape(5, 3).T[1].sum()

    assert both(program) == 1


def test_r4_28_writes_into_views():
    def program(w, log, k):
        y = w * 1.0
        y[0] *= 3.0
        y[:, 1] = np.exp(w[:, 2])
        return (y * y).sum()

    assert both(program) == 1


def test_r4_22_functions_with_their_own_gradient():
    @pf.custom_vjp
    class scaled_sine:
        def forward(x, s):
            return np.sin(x) * s, (x, s)

        def backward(saved, g):
            x, s = saved
            return g * np.cos(x) * s, None

    # The factor is a number that is lifted: others are no reason to capture again.
    assert both(lambda w, log, k: scaled_sine(w, 2.0 + k).sum()) == 1
    text = pf.compiled_autograd.state().runs[-1].ir("captured")
    assert "CppNodescaled_sine0" in text and text.count('"profuse.call_backward"') == 1


def test_r4_20_calls_of_one_name_are_numbered():
    @pf.custom_vjp
    class F:
        def forward(x):
            return x * 2, ()

        def backward(saved, g):
            return (g * 2,)

    both(lambda w, log, k: (F(F(w))).sum(), 1)
    text = pf.compiled_autograd.state().runs[-1].ir("captured")
    assert "CppNodeF0" in text and "CppNodeF1" in text


def test_a_gradient_none_of_a_custom_function_counts_as_zeros():
    @pf.custom_vjp
    class first:
        def forward(x, y):
            return x + y, ()

        def backward(saved, g):
            return g, None

    x, y = leaf(3), leaf(3)
    with captured():
        first(x, y * 2.0).sum().backward()
    np.testing.assert_array_equal(x.grad, np.ones(3))
    np.testing.assert_array_equal(y.grad, np.zeros(3))


def test_r4_23_reverse_halves_are_pasted_op_by_op():
    x = leaf(3, 5)
    f = compiled(lambda f: f(x).sum())
    eager = pf.gradients(f(x).sum(), x)
    with captured():
        found = pf.gradients(f(x).sum(), x)
    np.testing.assert_allclose(found, eager, rtol=1e-12)
    text = pf.compiled_autograd.state().runs[-1].ir("captured")
    assert "call_backward" not in text
    assert any('"profuse.mul"' in line for line in head(text))


@pytest.mark.parametrize("compiler", [INTERPRETED, None])
def test_r4_23_zeros_stand_for_what_a_pasted_half_leaves_undefined(compiler):
    """Of an operand that no result depends on whose gradient there is."""
    x, w = leaf(4), leaf(4)

    both = two_results(x, w)

    def gradients():
        x.grad = w.grad = None
        y, _ = both(x, w)
        (y * y).sum().backward()
        return x.grad, w.grad

    wanted = gradients()
    np.testing.assert_array_equal(wanted[1], np.zeros(4))
    for _ in range(3):
        with pf.compiled_autograd(compiler):
            found = gradients()
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_r4_19_what_a_pasted_half_gives_is_not_checked():
    """Its types follow from the capture; what an op's rule gives is checked before folding."""
    x = leaf(3, 5)
    f = compiled(lambda f: f(x))
    with captured():
        f(x).backward(np.ones((3, 5)))
        (np.tanh(x) * 2.0).backward(np.ones((3, 5)))
    pasted, by_rules = (made.ir("captured") for made in pf.compiled_autograd.state().runs)
    assert "call_gradient" not in pasted and "validate_grads" not in pasted
    assert by_rules.count('"profuse.validate_grads"') == 2


def test_r4_32_values_of_pasted_subgraphs_are_named_by_them():
    x = leaf(3, 5)
    f = compiled(lambda f: f(f(x)).sum())
    with captured():
        f(f(x)).sum().backward()
    names = set(pf.compiled_autograd.state().runs[-1].captured.origins.values())
    assert "aot0_mul" in names and "aot0_1_mul" in names


def test_several_results_of_a_jitted_function_of_which_some_have_gradients():
    @pf.jit
    def f(x):
        return np.tanh(x * 2) * x, np.exp(x) * x + x

    x = leaf(3, 5)
    for _ in range(4):
        sum(y.sum() for y in f(x))
        f.wait()
    for which in (0, 1):
        eager = pf.gradients(f(x)[which].sum(), x)
        with captured():
            found = pf.gradients(f(x)[which].sum(), x)
        np.testing.assert_allclose(found, eager, rtol=1e-12)


def test_saved_arrays_hooks_and_checkpoints_unpack_when_the_run_needs_it():
    def packed(w, log, k):
        def unpack(x):
            log.append("unpack")
            return x

        with pf.saved_arrays_hooks(np.copy, unpack):
            return (np.tanh(w) * w).sum()

    def again(w, log, k):
        def f(x):
            log.append("run")
            return np.tanh(x) * x

        return pf.checkpoint(f)(w).sum()

    assert both(packed) == 1
    assert both(again) == 0  # what is captured for the other serves this one


def test_gradients_of_arrays_on_the_way():
    x = leaf(3)
    y = np.tanh(x)
    z = (y * x).sum()
    wanted = pf.gradients(z, [y, x], retain_graph=True)
    with captured():
        found = pf.gradients(z, [y, x])
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert x.grad is None


def test_long_chains_need_no_recursion():
    x = leaf(3)
    y = x
    nodes = 10_000 if EVERY_CASE else 3_000
    for _ in range(nodes):
        y = y * 1.0001
    with captured():
        y.sum().backward()
    np.testing.assert_allclose(x.grad, 1.0001**nodes, rtol=1e-9)
    assert pf.compiled_autograd.state().captures == 1


def test_gradients_of_gradients_run_on_the_eager_tape():
    x = leaf(3)
    with captured():
        (g,) = pf.gradients((x**3).sum(), [x], create_graph=True)
        assert pf.compiled_autograd.state().captures == 0
        (g**2).sum().backward()
    assert pf.compiled_autograd.state().captures == 1
    np.testing.assert_allclose(x.grad, 2 * 3 * x.data**2 * 6 * x.data)
