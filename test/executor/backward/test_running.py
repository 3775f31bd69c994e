"""How captured runs run: by executors, with events and reports (R4.12, R4.29, R4.42)."""

from __future__ import annotations

import subprocess
import sys
import weakref

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED, captured
from every_case import EVERY_CASE
from profuse.dialect.analysis.backward_order import STEPS
from profuse.dialect.errors import ArgumentError, GradientError
from profuse.executor.settings import events


@pytest.fixture(autouse=True)
def _foreground():
    with pf.knobs.override(background=False):
        yield


def leaf(*shape):
    return pf.array(np.random.default_rng(1).standard_normal(shape), requires_grad=True)


def loss(w, v, x):
    return ((np.tanh(x @ w) @ v) ** 2).mean()


def steps(count, batch=lambda k: 6):
    w, v = leaf(3, 5), leaf(5, 2)
    for k in range(count):
        x = np.random.default_rng(k).standard_normal((batch(k), 3))
        with pf.compiled_autograd():
            loss(w, v, x).backward()
    return w.grad, v.grad


def eager_steps(count, batch=lambda k: 6):
    with pf.compiled_autograd.force_eager():
        return steps(count, batch)


def test_profiled_fused_and_run_as_kernels():
    for a, b in zip(steps(5), eager_steps(5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    (made,) = pf.compiled_autograd.state().runs
    counters = made.function.state().counters
    assert (counters["calls"], counters["profiled_runs"], counters["compiles"]) == (5, 1, 1)
    assert counters["kernel_launches"] >= 4 and counters["guard_misses"] == 0
    assert made.function.state().tier == "optimized"


def test_sizes_that_change_are_served_by_the_same_executor():
    sizes = (6, 6, 7, 8, 9, 10, 11, 6, 9).__getitem__
    for a, b in zip(steps(9, sizes), eager_steps(9, sizes), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert pf.compiled_autograd.state().captures == 2


def test_r4_12_a_number_and_one_event_for_start_and_end_each():
    events.clear()
    steps(3)
    found = [e for e in pf.events() if e.kind.startswith("backward")]
    kinds = [e.kind for e in found]
    assert kinds == ["backward-start", "backward-miss", "backward-graph", "backward-end"]
    start = found[0]
    assert start.function == "CompiledAutograd0" and start.details["graph"] == 0
    assert start.details["start"] > 0


def test_r4_29_before_and_after_finishing_differ_for_a_graph_with_hooks():
    x = leaf(4)
    x.register_hook(lambda g: None)
    with captured():
        (np.tanh(x) * 2.0).sum().backward()
    (made,) = pf.compiled_autograd.state().runs
    before, after = made.ir("captured"), made.ir("finished")
    assert before != after and made.module.main.name == "CompiledAutograd0"
    assert '"profuse.validate_grads"' in before and '"profuse.validate_grads"' not in after
    assert '"profuse.final_callbacks"' in after
    with pytest.raises(ArgumentError, match="no stage"):
        made.ir("linalg")


def test_r4_29_the_steps_run_in_the_order_of_the_requirement(monkeypatch):
    """How many ops each has moved or removed is told with the graph."""
    ran = []
    for name, step in dict(STEPS).items():
        monkeypatch.setitem(STEPS, name, lambda p, keep, name=name, step=step: (ran.append(name), step(p, keep))[1])
    events.clear()
    x, y = leaf(4), leaf(4)
    x.register_hook(lambda g: None)
    z = np.exp(x) * y
    with captured():
        pf.gradients(z.sum() * 1.0, [y])
        (np.tanh(x) * 2.0).sum().backward()
    order = [
        "fold-validation",
        "move-unpack-hooks",
        "move-tensor-pre-hooks",
        "move-pre-hooks",
        "move-accumulations",
        "move-pre-hooks-late",
        "move-post-accumulate-hooks",
        "move-post-hooks",
        "remove-unused-gradients",
    ]
    assert ran == order * 2
    told = [e.details["changed"] for e in pf.events() if e.kind == "backward-graph"]
    assert told == [made.changed for made in pf.compiled_autograd.state().runs]
    assert told[1]["fold-validation"] == 3 and told[1]["move-tensor-pre-hooks"] == 1


def test_r4_34_a_hook_moves_with_its_element_of_the_list():
    x = leaf(4)
    x.register_hook(lambda g: None)
    with captured():
        (np.tanh(x) * 2.0).sum().backward()
    main = pf.compiled_autograd.state().runs[0].module.main
    names = [instr.op.name for instr in main.body.instrs]
    at = names.index("call_hook")
    taken = main.body.instrs[at - 1]
    assert taken.op.name == "list_get" and taken.operands[0] == main.inputs[3]
    assert names[at + 1] == "accumulate_grad"


def test_r4_19_checks_of_known_types_are_folded_and_others_run():
    @pf.custom_vjp
    class widened:
        def forward(x):
            return x * 2, ()

        def backward(saved, g):
            return (np.stack([g, g]),)  # the sum over what was broadcast is the gradient

    @pf.custom_vjp
    class wrong:
        def forward(x):
            return x * 2, ()

        def backward(saved, g):
            return (np.ones(7),)

    x = leaf(3)
    with pf.compiled_autograd():
        widened(x).sum().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 2.0, 2.0])
    with pf.compiled_autograd(), pytest.raises(GradientError, match="gives a gradient of shape"):
        wrong(x).sum().backward()


def test_r4_42_a_missing_gradient_is_set_and_another_one_is_added():
    x = leaf(3)
    for k in range(1, 4):
        with pf.compiled_autograd():
            (x * 2.0).sum().backward()
        np.testing.assert_array_equal(x.grad, np.full(3, 2.0 * k))


def test_leaves_do_not_share_a_gradient():
    x, y = leaf(3), leaf(3)
    for _ in range(3):
        x.grad = y.grad = None
        with pf.compiled_autograd():
            (x + y).sum().backward()
        assert not np.shares_memory(x.grad, y.grad)
        x.grad += 1
        np.testing.assert_array_equal(y.grad, np.ones(3))


def test_gradients_are_not_memory_that_later_runs_use():
    w, v = leaf(3, 5), leaf(5, 2)
    x = np.ones((6, 3))
    kept = []
    for _ in range(6):
        w.grad = None
        with pf.compiled_autograd():
            loss(w, v, x).backward()
        kept.append(w.grad)
    for g in kept:
        np.testing.assert_allclose(g, kept[0])
    kept[0][...] = 7
    assert not any(np.shares_memory(a, b) for k, a in enumerate(kept) for b in kept[:k])


def test_saved_arrays_are_freed_by_the_run():
    x = leaf(100)
    for _ in range(4):
        y = np.exp(x)
        saved = weakref.ref(y.data)
        z = y.sum()
        del y
        assert saved() is not None
        with pf.compiled_autograd():
            z.backward()
        assert saved() is None


def test_hooks_split_the_graph_into_groups_of_their_own():
    x = leaf(50)
    for _ in range(4):
        y = np.tanh(x) * 2.0
        y.register_hook(lambda g: g * 1.0)
        with pf.compiled_autograd():
            np.exp(y).sum().backward()
    state = pf.compiled_autograd.state().runs[0].function.state()
    assert state.counters["kernels_compiled"] == 2


def test_a_compiler_is_given_the_graph_and_runs_it():
    given, calls = [], []

    def compiler(made):
        given.append(made)

        def run(inputs, sizes, scalars, hooks, packed_data):
            calls.append((len(inputs), sizes, scalars, len(hooks), len(packed_data)))
            return made.interpret(inputs, sizes, scalars, hooks, packed_data)

        return run

    x = leaf(3)
    for _ in range(3):
        with pf.compiled_autograd(compiler):
            np.tanh(x).sum().backward()
    (made,) = given
    assert made.name == "CompiledAutograd0" and calls == [(3, [], [], 0, 0)] * 3
    with pytest.raises(ArgumentError, match="a compiler of your own"):
        made.function  # noqa: B018


def test_explain_tells_captures_misses_and_hooks():
    x = leaf(4)
    x.register_hook(lambda g: None)
    for _ in range(3):
        with pf.compiled_autograd():
            (np.tanh(x) * 2.0).sum().backward()
    text = pf.compiled_autograd.state().runs[0].explain()
    assert "new autograd node" in text and "calls tensor_pre_hook, of accumulate_grad" in text
    assert "CompiledAutograd0" in text


@pytest.mark.usefixtures("own_functions")
def test_reports_show_captured_runs(tmp_path):
    steps(3)
    path = tmp_path / "report.html"
    pf.report(path)
    text = path.read_text(encoding="utf-8")
    assert "CompiledAutograd0" in text and "new autograd node" in text


WARM = """
import numpy as np, profuse as pf
pf.knobs.background = False
w = pf.array(np.ones((3, 5)), requires_grad=True)
for _ in range(3):
    with pf.compiled_autograd():
        np.tanh(w * 2.0).sum().backward()
c = pf.compiled_autograd.state().runs[0].function.state().counters
print(c["profiled_runs"], c["disk_hits"], c["disk_misses"])
"""


def test_a_second_process_is_warm(tmp_path, monkeypatch):
    monkeypatch.setenv("PROFUSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PROFUSE_CACHE", "on")
    found = [subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [f.stdout.split() for f in found] == [["1", "0", "1"], ["0", "1", "0"]]


def test_random_graphs_give_the_gradients_of_the_eager_tape():
    unary = [np.tanh, np.exp, np.sin, lambda a: a * 0.5, lambda a: a.T.copy().T, np.abs]
    binary = [np.add, np.multiply, np.subtract, np.maximum]
    for seed in range(25 if EVERY_CASE else 5):
        rng = np.random.default_rng(seed)
        x, y = (pf.array(rng.standard_normal((3, 4)), requires_grad=True) for _ in range(2))
        picks = rng.integers(0, 1000, 40)

        def program(x=x, y=y, picks=picks):
            values = [x, y, x[:1], y[:, 1:2]]
            for k in range(0, 40, 4):
                a, b = values[picks[k] % len(values)], values[picks[k + 1] % len(values)]
                if picks[k + 2] % 3:
                    values.append(binary[picks[k + 3] % 4](a, b))
                else:
                    values.append(unary[picks[k + 3] % 6](np.clip(a, -2, 2)))
            return sum(v.mean() for v in values[-4:])

        wanted = pf.gradients(program(), [x, y], allow_unused=True)
        for _ in range(3):
            with pf.compiled_autograd():
                found = pf.gradients(program(), [x, y], allow_unused=True)
            for a, b in zip(found, wanted, strict=True):
                if b is None:
                    assert a is None
                else:
                    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("compiler", [INTERPRETED, None])
def test_r4_19_gradients_of_another_dtype_are_cast_to_that_of_the_edge(compiler):
    @pf.custom_vjp
    class wide:
        def forward(x):
            return x * np.float32(2), ()

        def backward(saved, g):
            return g.astype(np.float64) * 2

    with pf.knobs.override(background=False):
        for _ in range(4):
            x = pf.array(np.ones(3, np.float32), requires_grad=True)
            seen = []
            y = x + x
            y.register_hook(lambda g, seen=seen: seen.append(g.dtype))
            with pf.compiled_autograd(compiler):
                wide(y).sum().backward()
            assert (seen, x.grad.dtype) == ([np.float32], np.float32)
            np.testing.assert_array_equal(x.grad, [4.0] * 3)
