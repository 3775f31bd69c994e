"""Numbers among the operands: constants of a captured run until they change, then inputs (R4.8)."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import numpy as np
import profuse as pf
import pytest
from captured_programs import captured
from every_case import fewer
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.dialect.ir.op import OPS
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)
from profuse.dialect.ops.elementwise.binary import Hypot
from profuse.dialect.ops.elementwise.families import Elementwise
from profuse.dialect.ops.elementwise.powers import Pow
from profuse.executor.backward import captured_run
from profuse.executor.tape import plans

RNG = np.random.default_rng(8)


def leaf(*shape, dtype=np.float64):
    return pf.array(RNG.standard_normal(shape).astype(dtype), requires_grad=True)


def counts():
    state = pf.compiled_autograd.state()
    return state.captures, state.hits


def gradients(program, values, leaves, scope):
    """The bits of the gradients of each run, with captures after it."""
    found = []
    for value in values:
        for x in leaves:
            x.grad = None
        y = program(value)
        with scope():
            y.backward()
        found.append([None if x.grad is None else x.grad.tobytes() for x in leaves])
    return found


def same(program, values, leaves, scope=captured):
    """The captures after each run of a program, whose gradients have the bits of the eager tape."""
    pf.compiled_autograd.reset()
    wanted = gradients(program, values, leaves, contextlib.nullcontext)
    found, captures = [], []
    for value in values:
        found += gradients(program, [value], leaves, scope)
        captures.append(pf.compiled_autograd.state().captures)
    assert found == wanted
    return captures


RATES = [0.1 * k for k in range(1, 9)]


def test_a_factor_that_changes_in_each_step_is_captured_twice():
    """R4.8, R4.9: as a size that changes; R4.10 tells which."""
    x = leaf(3, dtype=np.float32)
    assert same(lambda k: (np.tanh(x) * 2.0).sum() * k, RATES, [x]) == [1] + [2] * 7
    first, second = pf.compiled_autograd.state().runs
    assert first.captured.numbers == [] and second.captured.numbers == [0]
    assert second.reasons == ("number 0, of mul_backward, changed and became an input",)
    assert first.scalars == () and [k for k, _ in second.scalars] == [0]
    assert "A number of 1 mul_backward is an input, scalar 0." in second.explain()


def test_with_dynamic_it_is_captured_once():
    x = leaf(3)
    scope = lambda: captured(dynamic=True)  # noqa: E731
    assert same(lambda k: (np.tanh(x) * 2.0).sum() * k, RATES, [x], scope) == [1] * 8


def test_runs_that_hit_are_not_walked(monkeypatch):
    x, walks, walk = leaf(3), [], captured_run.Walk
    monkeypatch.setattr(captured_run, "Walk", lambda *args: walks.append(1) or walk(*args))
    assert same(lambda k: ((np.tanh(x) * k) / (k + 1)).sum(), RATES, [x]) == [1] + [2] * 7
    assert len(walks) == 2


def test_integers_and_sizes_among_the_operands_are_passed_as_well():
    w = leaf(3)

    def mean(rows):
        x = np.random.default_rng(rows).standard_normal((rows, 3))
        return (np.tanh(x * w) / x.shape[0]).sum() * rows

    assert same(mean, [4, 4, 5, 6, 7, 4], [w]) == [1, 1, 2, 2, 2, 2]


def test_each_number_is_a_constant_until_it_changes():
    x = leaf(3)

    def program(pair):
        return np.clip(x * 3.0, *pair).sum()

    bounds = [(-1.0, 0.5), (-1.0, 0.75), (-1.0, 0.9), (-2.0, 0.5), (-3.0, 0.2)]
    assert same(program, bounds, [x]) == [1, 2, 2, 3, 3]
    numbers = [made.captured.numbers for made in pf.compiled_autograd.state().runs]
    assert numbers == [[], [1], [0, 1]]


def test_types_of_numbers_are_part_of_the_key():
    x = leaf(3, dtype=np.float32)
    assert same(lambda k: (np.sin(x) * k).sum(), [2, 2.0, 3, 3.0, 4.0, 5], [x]) == [1, 2, 3, 4, 4, 4]


def test_what_does_not_compare_or_fit_like_other_numbers_is_kept_as_a_constant():
    x = leaf(3)
    inf, nan = float("inf"), float("nan")
    values = [0.0, -0.0, 0, inf, nan, nan, 1.0, 0.0, -0.0, 2.0, 2**70, 0.0, 5, -(2**63)]
    with np.errstate(all="ignore"):
        found = same(lambda k: (np.sin(x) * k).sum(), values, [x])
    assert found == [1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 8, 8]


def test_exponents_bases_and_axes_stay_in_the_key():
    """R4.8."""
    x = leaf(3, 3)
    assert same(lambda k: (np.abs(x) ** k).sum(), [2.5, 3.5, 4.5, 3.5], [x]) == [1, 2, 3, 3]
    assert same(lambda k: (k**x).sum(), [2.5, 3.5, 4.5], [x]) == [1, 2, 3]
    assert same(lambda k: (x.sum(k) ** 2).sum(), [0, 1, 0], [x]) == [1, 2, 2]
    assert same(lambda k: np.var(x, ddof=k), [0, 1, 2], [x]) == [1, 2, 3]
    assert same(lambda k: x[:: k + 1].sum(), [0, 1, 2], [x]) == [1, 2, 3]


def test_a_rule_that_asks_for_a_number_has_it_as_a_constant(monkeypatch, request):
    def partials(a, b, y):
        return (a / y if b > 1 else a / y + 0 * a), None

    monkeypatch.setattr(Hypot, "partials", staticmethod(partials))
    monkeypatch.setattr(plans, "_BY_VALUE", set(plans._BY_VALUE))
    plans.forget()
    request.addfinalizer(plans.forget)
    x = leaf(3)
    values = [0.5, 2.0, 0.5, 3.0, 2.0, 0.5]
    assert same(lambda k: (np.hypot(x, k) * k).sum(), values, [x]) == [1, 2, 3, 4, 4, 4]
    assert all("call_backward" not in made.ir() for made in pf.compiled_autograd.state().runs)
    told = [e for e in pf.events() if e.kind == "backward-number"]
    assert told[-1].function == "hypot_backward" and "numbers stay constants" in told[-1].reason


def test_numbers_of_a_function_with_a_gradient_of_its_own_are_inputs_from_the_first_run():
    """R4.8, R4.14."""

    @pf.custom_vjp
    class scaled:
        def forward(x, rate, rest):
            return x * rate, (rate, {"rest": rest})

        def backward(saved, g):
            return g * saved[0] + saved[1]["rest"], None, None

    x = leaf(3)
    assert same(lambda k: scaled(np.tanh(x), k, 3.0 * k).sum(), RATES, [x]) == [1] * 8
    assert len(pf.compiled_autograd.state().runs[0].scalars) == 4


def test_floats_that_a_jitted_function_was_given():
    @pf.jit
    def f(x, k):
        return np.tanh(x * k) * x / k

    x = leaf(4)
    with pf.knobs.override(background=False, exact=True):
        for _ in range(4):
            f(x, 0.5).sum().backward()
        assert same(lambda k: f(x, k).sum(), RATES, [x]) == [1] + [2] * 7
        for _ in range(3):
            assert same(lambda k: f(x, k).sum(), RATES, [x], pf.compiled_autograd)[-1] == 2
    counters = pf.compiled_autograd.state().runs[-1].function.state().counters
    assert counters["kernel_launches"] >= 4 and counters["guard_misses"] == 0


ELEMENTWISE = [
    op
    for op in OPS.values()
    if issubclass(op, Elementwise)
    and not issubclass(op, Pow)
    and op.partials is not None
    and len(op.operands) == 2
    and isinstance(op.numpy, np.ufunc)
    and not op.of_numbers
]
VALUES = [0.3, 1.0, -2.0, 7.0, 0.0, -1.0, 1e-3, 3.0, 1e30, -0.0, 0.7, float("inf"), 1e-310]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_elementwise_op_has_the_bits_of_the_eager_tape(op, dtype):
    """On either side of an array, some elements of which are 0; no node is called as it is."""
    x = pf.array(np.array([0.5, -1.5, 0.0, 7.0, -0.0, 1.0]).astype(dtype), requires_grad=True)
    weights = np.array([1.0, -2.0, 0.0, -0.0, 3.0, -1.0]).astype(dtype)
    try:
        op.numpy(x.data, 0.3)
    except TypeError:
        return  # no loop for complex numbers
    with np.errstate(all="ignore"):
        for program in (
            lambda k: np.real((op.numpy(x, k) * weights).sum()),
            lambda k: np.real((op.numpy(k, x) * weights).sum()),
        ):
            captures = same(program, VALUES, [x])
            # The first, those that are passed, -0.0, and inf; of complex ones also 1 and -1.
            assert captures[-1] == (6 if x.dtype.kind == "c" else 4)
            for made in pf.compiled_autograd.state().runs:
                assert "call_backward" not in made.ir()


@settings(max_examples=fewer(40), deadline=None)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.5, 2.0, -1.0, 0.0, 3, 1.25]) for _ in range(3)], st.sampled_from([3, 3, 4])),
        min_size=2,
        max_size=8,
    )
)
def test_random_numbers_and_sizes_in_turn(runs):
    w = pf.array(np.array([0.1, -0.7], np.float32), requires_grad=True)

    def program(values):
        a, b, c, rows = values
        x = np.random.default_rng(rows).standard_normal((rows, 2)).astype(np.float32)
        return (np.maximum(np.tanh(x * w) * a + b, -c) * np.float32(0.5)).mean() * a

    same(program, runs, [w])


@pytest.mark.parametrize("background", [False, True])
def test_compiled_where_kernels_are_exact(background):
    """Whatever runs eagerly meanwhile, is profiled, or has kernels."""
    w, x = leaf(5, 2, dtype=np.float32), RNG.standard_normal((4, 5)).astype(np.float32)

    def program(k):
        pf.compiled_autograd.wait(60)
        return (np.tanh(x @ w) ** 2).mean() * k + np.clip(w, -k, k).sum() / (1 + k)

    with pf.knobs.override(exact=True, background=background):
        captures = same(program, [0.03 * k for k in range(1, 31)], [w], pf.compiled_autograd)
        assert pf.compiled_autograd.wait(60)
    assert captures[-1] == 2 and captures[4:] == [2] * 26
    made = pf.compiled_autograd.state().runs[-1]
    counters = made.function.state().counters
    assert counters["kernel_launches"] >= 20 and counters["guard_misses"] == 0
    assert counters["compiles"] == 1 and len(made.scalars) == 4


def test_runs_that_are_captured_beside_the_program_while_the_number_changes():
    x = leaf(3)
    with pf.knobs.override(background=True):
        captures = same(lambda k: (np.tanh(x) * k).sum(), RATES * 4, [x], pf.compiled_autograd)
        assert pf.compiled_autograd.wait(60)
    assert max(captures) <= 2 and sum(counts()) >= 1


PROGRAM = """
import numpy as np, profuse as pf
w = pf.array(np.linspace(-1, 1, 6, dtype=np.float32), requires_grad=True)
for k in range(1, 9):
    with pf.compiled_autograd():
        ((np.tanh(w) ** 2).sum() * (0.1 * k)).backward()
state = pf.compiled_autograd.state()
c = state.runs[-1].function.state().counters
print(w.grad.tobytes().hex(), state.captures, c["profiled_runs"], c["disk_hits"], c["disk_misses"])
"""


def test_a_second_process_finds_the_kernels_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PROFUSE_CACHE_DIR", str(tmp_path))
    for name, value in (("CACHE", "on"), ("BACKGROUND", "0"), ("EXACT", "1")):
        monkeypatch.setenv(f"PROFUSE_{name}", value)

    def process():
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    w = pf.array(np.linspace(-1, 1, 6, dtype=np.float32), requires_grad=True)
    for k in range(1, 9):
        ((np.tanh(w) ** 2).sum() * (0.1 * k)).backward()
    wanted = w.grad.tobytes().hex()
    assert process() == [wanted, "2", "1", "0", "1"]
    assert process() == [wanted, "2", "0", "1", "0"]


# --- numbers that share a plan --------------------------------------------------------------------


@pytest.fixture
def shared():
    """An array whose products with new numbers have one plan."""
    plans.forget()
    x = leaf(3, 2)
    for k in range(2 * plans.MANY):
        y = x * (k + 0.5)
    assert y.node.plan.any_number
    yield x
    plans.forget()


def test_r4_8_numbers_of_one_plan_are_constants_until_they_change(shared):
    def program(c):
        return (np.tanh(shared * c) * shared).sum()

    assert same(program, [100.1, 100.1, 200.2, 300.3, 200.2], [shared]) == [1, 1, 2, 2, 2]
    assert counts() == (2, 3)


def test_numbers_of_one_plan_that_do_not_change_are_compared_without_a_walk(shared, monkeypatch):
    def program(c):
        return (np.tanh(shared * c) * shared).sum()

    same(program, [100.1], [shared])
    monkeypatch.setattr(captured_run, "Walk", None)
    found = gradients(program, [100.1, 100.1], [shared], captured)
    monkeypatch.undo()
    assert found == gradients(program, [100.1] * 2, [shared], contextlib.nullcontext)


def test_numbers_of_one_plan_are_told_by_value_once_their_op_is(shared, monkeypatch):
    monkeypatch.setattr(plans, "_BY_VALUE", set(plans._BY_VALUE))

    def program(c):
        return (np.tanh(shared * c) * shared).sum()

    assert (shared * 100.1).node.plan.any_number
    losses = {c: program(c) for c in (100.1, 200.2)}
    assert plans.told_by_value((shared * 1.0).node.plan.op)
    captures = []
    for _ in range(2):
        for c in (100.1, 200.2):
            shared.grad = None
            losses[c].backward(retain_graph=True)
            wanted = shared.grad.tobytes()
            shared.grad = None
            with captured():
                losses[c].backward(retain_graph=True)
            assert shared.grad.tobytes() == wanted
            captures.append(counts()[0])
    assert captures == [1, 2, 2, 2]
