"""What one spec is compiled to: phases, and kernels for all sizes (R2.9 - R2.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import profuse as pf
import pytest
from kernels import FUNCTIONS, arguments
from keyed_graphs import add_executor, f32
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.passes.base import Pass, register_pass
from profuse.executor.settings.events import events
from profuse.executor.settings.user_passes import register_pass_before_fusion
from profuse.executor.tiers import keyed
from profuse.executor.tiers.keyed import KeyedExecutor
from profuse.executor.tiers.profiling import Options

pytestmark = pytest.mark.usefixtures("profiling_off")

REQUIRED = ["specialize-autograd-zero", "lower-grad-blocks", "remove-expand", "canonicalize-profuse", "dce"]
PROPAGATE = ["fold", "propagate-shapes", "propagate-requires-grad"]
DIFFERENTIABLE = [
    "dce",
    "cse-profuse",
    "pool-constants",
    "peephole",
    "fold",
    "unroll-loops",
    "cse-profuse",
    "in-place-check",
]
FUSING = [
    "decompose",
    "batch-matmul",
    "functionalize",
    "assume-sizes",
    "fuse-loops",
    "unroll-loops",
    "form-fusions",
    "insert-guards",
    "keep-layouts",
]


def test_pass_trace():
    """R2.9, R2.10, R2.11, R2.12: every pass of one compile, in order."""
    executor = add_executor()
    executor.run([f32(2), f32(2)])
    (made,) = executor.compiled()
    trace = made.result.trace
    expected = [*REQUIRED, *PROPAGATE, *DIFFERENTIABLE, *FUSING, "dce"]
    assert trace[: len(expected)] == expected
    # What turns groups into kernels follows.
    assert trace[len(expected) :][:2] == ["convert-fallbacks", "if-then-else"]


def test_undefined_input_folds_its_autograd_add():
    """R2.9: without guard, fallback or branch, since the key fixes definedness."""
    program = Program("main")
    g, x, s, t = (program.new_value() for _ in range(4))
    body = [Instr(op_named("autograd_add"), (g, x), (s,)), Instr(op_named("exp"), (s,), (t,))]
    program.body = Block((g, x), body, (t,))
    executor = KeyedExecutor(Module(program), Options())
    np.testing.assert_allclose(executor.run([None, f32(3)])[0], np.exp(f32(3)), rtol=1e-6)
    np.testing.assert_allclose(executor.run([f32(3), f32(3)])[0], np.exp(f32(3) * 2), rtol=1e-6)
    undefined, defined = (made.result.ir for made in executor.compiled())
    for text in (undefined, defined):
        assert "autograd_add" not in text
    assert "profuse.add" not in undefined
    assert "profuse.add" in defined
    assert executor.counters.evaluated_ops == 0


@register_pass
@dataclass(frozen=True)
class Spy(Pass):
    """Counts how often it runs, and on what."""

    name: ClassVar[str] = "test-keyed-spy"
    seen: ClassVar[list[str]] = []

    def run(self, module) -> None:
        self.seen.append(str(module))


def test_custom_passes_run_first():
    """R2.12: a registered spy runs once, before anything is decomposed or fused."""
    Spy.seen.clear()
    registration = register_pass_before_fusion("test-keyed-spy")
    try:
        executor = add_executor()
        for _ in range(2):
            executor.run([f32(2), f32(2)])
    finally:
        registration.remove()
    (made,) = executor.compiled()
    at = made.result.trace.index("test-keyed-spy")
    assert made.result.trace[at - 1 : at + 2] == ["in-place-check", "test-keyed-spy", "decompose"]
    (text,) = Spy.seen
    assert "fusion" not in text
    assert "profuse.tanh" in text
    assert "tensor<?xf32" in text, "types are known by then"


def test_needing_gradients_takes_the_differentiable_path(monkeypatch):
    """R2.10, R2.13, R2.15: subgraphs are differentiated after the differentiable optimisation."""
    monkeypatch.setattr(keyed, "needs_gradient", lambda module, types: True)
    executor = add_executor()
    np.testing.assert_allclose(executor.run([f32(2), f32(2)])[0], np.tanh(f32(2) * 2), rtol=1e-6)
    (made,) = executor.compiled()
    path = ["functionalize", *PROPAGATE, "form-diff-graphs", "differentiate-diff-graphs", "dce", "inline-diff-graphs"]
    ends = ["lower-grad-blocks", "dce", "convert-fallbacks", "if-then-else", "dce"]
    assert made.result.trace == [*REQUIRED, *PROPAGATE, *DIFFERENTIABLE, *path, *ends]
    assert executor.counters.kernels_compiled == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_kernel_serves_all_sizes(name):
    """R2.7, R2.12: one compile, and every size after that runs natively."""
    fn = FUNCTIONS[name]
    f = pf.jit(fn)
    for rows, columns in ((33, 48), (5, 7), (1, 9), (64, 128)):
        args = arguments(name, rows, columns)
        ours, plain = f(*args), fn(*args)
        for a, b in zip(np.atleast_1d(ours), np.atleast_1d(plain), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    counters = f.state().counters
    assert counters["compiles"] == counters["cache_misses"] == 1
    assert counters["cache_hits"] == 3
    assert counters["guard_misses"] == counters["evaluated_ops"] == 0
    assert counters["compile_failures"] == 0


def test_every_pass_leaves_valid_ir():
    """R2.10: the IR verifies between any two passes, with inputs that loops carry, too."""

    def fn(x, b, n):
        grown = pf.fori_loop(0, n, lambda i, v: np.concatenate([v, v]), x)
        turned = pf.cond(n > 1, lambda: x + b, lambda: x)
        halved = pf.while_loop(lambda v: v.max() > 0.25, lambda v: v * 0.5, turned)
        return grown, halved, x @ b[:, None]

    f = pf.jit(fn)
    with pf.knobs.override(verify_each=True):
        for x, n in ((f32(2, 3), 2), (f32(4, 5), 1)):
            b = f32(x.shape[1])
            for ours, numpy in zip(f(x, b, n), fn(x, b, n), strict=True):
                np.testing.assert_allclose(ours, numpy, rtol=1e-5)
    assert f.state().counters["compile_failures"] == 0, f.explain()
    assert f.state().counters["compiles"] == 1


@pytest.mark.parametrize(
    "first, then, misses",
    [
        (((4, 6), (4, 6)), ((4, 6), (1, 6)), 1),
        (((4, 6), (1, 6)), ((4, 6), (1, 6)), 0),
        (((4, 6), (1, 6)), ((4, 6), (4, 6)), 1),
        (((1, 6), (1, 6)), ((5, 6), (5, 6)), 0),
        (((4, 6), (4, 6)), ((0, 6), (0, 6)), 1),
        (((4, 4), (4, 4)), ((5, 9), (5, 9)), 0),
    ],
)
def test_broadcasting_stays_right(first, then, misses):
    """R2.12: what a kernel takes for equal or for 1 is guarded; the other side is evaluated."""
    executor = add_executor()
    for shapes in (first, then):
        x, y = (f32(*shape) for shape in shapes)
        np.testing.assert_allclose(executor.run([x, y])[0], np.tanh(x + y), rtol=1e-6)
    counters = executor.counters
    assert counters.compiles == 1
    assert counters.guard_misses == misses
    assert counters.evaluated_ops == 2 * misses


def test_sizes_that_do_not_fit_raise():
    """R2.12: the guard fails and NumPy's own complaint reaches the caller."""
    executor = add_executor()
    executor.run([f32(4), f32(4)])
    with pytest.raises(pf.ShapeError, match="could not be broadcast"):
        executor.run([f32(4), f32(5)])


def test_layout_is_guarded():
    """R2.7: strides are not in the spec; another layout is evaluated, and logged."""
    executor = add_executor()
    executor.run([f32(4, 6), f32(4, 6)])
    x = f32(6, 4).T
    np.testing.assert_allclose(executor.run([x, x])[0], np.tanh(x + x), rtol=1e-6)
    assert (executor.counters.cache_hits, executor.counters.guard_misses) == (1, 1)
    assert executor.counters.evaluated_ops == 2
    assert any(e.kind == "guard-miss" and "layout" in e.reason for e in events())
    first = add_executor()
    for _ in range(2):
        first.run([x, x])
    assert first.counters.guard_misses == 0


def test_refusal_has_a_reason():
    """R2.12: an op that does not fit under symbolic sizes is evaluated, counted and named."""
    f = pf.jit(lambda x: np.tanh(x.reshape(2, -1)) + 1)
    for shape in ((2, 3), (4, 5)):
        x = f32(*shape)
        np.testing.assert_allclose(f(x), np.tanh(x.reshape(2, -1)) + 1, rtol=1e-6)
    state = f.state()
    assert state.counters["refusals"] == 1
    assert state.counters["evaluated_ops"] == 2
    assert state.counters["kernel_launches"] == 2, "the rest is fused all the same"
    assert any("reshape" in reason for reason in state.reasons)


def test_literal_sizes_are_guarded():
    """R2.12: a size that has to be a certain number is taken for that, and checked."""
    f = pf.jit(lambda x: np.tanh(x.reshape(2, 3)) + 1)
    for _ in range(2):
        np.testing.assert_allclose(f(f32(6)), np.tanh(f32(2, 3)) + 1, rtol=1e-6)
    assert f.state().counters["evaluated_ops"] == 0
    with pytest.raises(ValueError, match="reshape"):
        f(f32(8))
    assert f.state().counters["guard_misses"] == 1


def test_results_do_not_share_memory():
    """R2.3: what leaves is nobody else's memory."""
    f = pf.jit(lambda x: (x, x[1:], x + 1))
    x = f32(5)
    for out in (*f(x), *f(x)):
        assert not np.shares_memory(out, x)
