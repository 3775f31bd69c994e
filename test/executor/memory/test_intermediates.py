"""What kernels of plans in the Python dispatcher hand to each other lies in the thread's block."""

from __future__ import annotations

import gc

import numpy as np
import profuse as pf
import pytest
from internals import MOST_KEPT_ARRAYS, kept_frames
from placed import WAYS, N, W, X, address, chain, placed, plan_of, ready
from profuse.executor.memory import output_pool, thread_block
from profuse.executor.settings.knobs import knobs

pytestmark = pytest.mark.usefixtures("small_groups_in_python")


@pytest.mark.parametrize("way", WAYS)
def test_places_are_used_again(way, frames):
    f = ready(chain, X, W, way=way)
    inner = plan_of(f).steps.intermediates
    groups = f.state().counters["kernels_compiled"]
    assert len(inner.index) == groups - 1 >= 6
    assert len(inner.placement.rooms) <= 4
    frames.clear()
    got = f(X, W)
    np.testing.assert_allclose(got, chain(X, W), rtol=1e-5)
    (made,) = frames
    assert all(array.shape == X.shape for array in made)
    places = {address(array) for array in made}
    assert len(places) == len(inner.placement.rooms) < len(made)
    assert all(place % output_pool.ALIGNMENT == 0 for place in places)
    assert not any(np.shares_memory(got, array) for array in made)
    f(X, W)
    assert frames[1] is made  # nothing is made anew


@pytest.mark.parametrize("way", WAYS)
def test_a_call_takes_only_its_result_from_the_pool(way, monkeypatch):
    n = 256  # arrays of which the pool has the memory
    x, w = np.resize(X, (n, n)), np.resize(W, (n, n))
    f = ready(chain, x, w, way=way)
    kept, lent, lend = f(x, w), [], output_pool.pool.lend
    held = thread_block.held()
    assert 2 * x.nbytes <= held <= 5 * x.nbytes
    monkeypatch.setattr(output_pool.pool, "lend", lambda size: lent.append(size) or lend(size))
    for count in range(1, 4):
        np.testing.assert_array_equal(f(x, w), kept)
        assert len(lent) == count
    assert thread_block.held() == held


def test_explain_tells_what_is_placed():
    f = ready(chain, X, W)
    inner = plan_of(f).steps.intermediates
    told = f"{len(inner.index)} arrays between kernels, placed in a block of "
    assert f"{told}{inner.placement.total} bytes" in f.explain()
    assert f"{told}a size that the arguments decide" in ready(chain, X, W, way="keyed").explain()
    assert "between kernels" not in ready(lambda x: np.tanh(x) + 1, X).explain()


def test_little_arrays_cost_less_from_malloc():
    f = ready(chain, X[:8, :8].copy(), W[:8, :8].copy())
    assert plan_of(f).steps.intermediates is None
    assert thread_block.held() == 0


@pytest.mark.parametrize("limit", ["arena_bytes", "MOST_BYTES"])
def test_big_blocks_are_left_to_the_pool(limit, frames, monkeypatch):
    f = ready(chain, X, W)
    thread_block.release()
    frames.clear()
    arena = X.nbytes if limit == "arena_bytes" else knobs.arena_bytes
    with monkeypatch.context() as patch, knobs.override(arena_bytes=arena):
        if limit == "MOST_BYTES":
            patch.setattr(thread_block, limit, X.nbytes)
        f(X, W)
    assert not placed(frames.pop())
    assert thread_block.held() == 0
    np.testing.assert_allclose(f(X, W), chain(X, W), rtol=1e-5)
    assert placed(frames.pop())


def test_sizes_that_come_once_are_left_to_the_pool(frames):
    calls = [(X[:n, :m].copy(), W[:n, :m].copy()) for n in (30, 64) for m in (50, 64, 128)]
    f = ready(chain, *calls[0], way="dynamic")
    for args in calls * 3:
        np.testing.assert_allclose(f(*args), chain(*args), rtol=1e-5)
    found = [placed(made) for made in frames[-len(calls) * 3 :]]
    assert found == [True] + [False] * 5 + [True] * 12
    many = [(X[:n].copy(), W[:n].copy()) for n in range(2, 124)]
    for args in [args for args in many for _ in range(3)]:
        f(*args)
    kept = kept_frames()
    count = sum(made is not None and len(made) for made in kept.frames.values())
    assert 0 < count <= kept.arrays <= MOST_KEPT_ARRAYS


def test_predicted_sizes_that_are_wrong(frames):
    """They follow from the first argument, unless a fallback has made something bigger of it."""

    def fn(x, w):
        a = np.tanh(x * w)
        b = np.exp(a) - 0.5
        return np.sin(b) * b

    f = ready(fn, X, W, way="dynamic")
    row = X[:1].copy()
    for _ in range(6):
        np.testing.assert_allclose(f(row, W), fn(row, W), rtol=1e-5)
    assert f.state().counters["fallback_calls"] >= 6
    assert any(placed(made) and made[1].shape == (1, 1) for made in frames)  # W is square
    np.testing.assert_allclose(f(X, W), fn(X, W), rtol=1e-5)


@pytest.mark.usefixtures("loops_in_plans")
@pytest.mark.parametrize("way", WAYS)
def test_loops(way, frames):
    """What is made in a round is gone in the next, what is made before stays for all."""

    def fn(x, w, n, loop=pf.fori_loop):
        a = np.tanh(x * w)

        def body(k, y):
            b = np.exp(y * a)
            c = np.sin(b - w)
            return np.cos(c + b) * 0.5

        return loop(0, n, body, x) + w

    def plain_loop(start, stop, body, y):
        for k in range(start, stop):
            y = body(k, y)
        return y

    f = ready(fn, X, W, 3, way=way)
    inner, main = plan_of(f).steps.intermediates, plan_of(f).graph.main
    loops = [i for i in main.body.walk() if i.op.full_name() == "scf.for"]
    made = {r for loop in loops for i in loop.blocks[0].walk() for r in i.results}
    assert made & set(inner.index)
    assert set(inner.index) - made
    for n in (3, 1, 0, 7):
        np.testing.assert_allclose(f(X, W, n), fn(X, W, n, plain_loop), rtol=1e-4, atol=1e-5)
    assert f.state().counters["compile_failures"] == 0
    assert any(map(placed, frames))


# --- what may leave ------------------------------------------------------------------------------


def test_results_are_never_placed(frames):
    def fn(x, w):
        a = np.tanh(x * w)
        b = np.exp(a + w)
        c = np.sin(b - x)
        return a, np.cos(c * w), b

    f = ready(fn, X, W)
    assert len(plan_of(f).steps.intermediates.index) == 1
    got = f(X, W)
    kept = [r.copy() for r in got]
    for k in range(3):
        f(X + k, W)
    for result, was, want in zip(got, kept, fn(X, W), strict=True):
        np.testing.assert_array_equal(result, was)
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-6)


def test_what_evaluated_ops_read_is_not_placed(frames):
    """They may return views."""

    def fn(x, w):
        a = np.tanh(x) * w
        view = np.arcsinh(a + 1j).imag + a  # arcsinh of complex numbers is not fused
        b = np.exp(a - w)
        return view, np.sin(b * w)

    f = ready(fn, X, W)
    made = {r for i in plan_of(f).graph.main.body.walk() for r in i.results}
    inner = plan_of(f).steps.intermediates
    evaluated = [
        i
        for i in plan_of(f).graph.main.body.walk()
        if i.op.dialect == "profuse"
        and i.op.name not in ("fusion_group", "call_fallback", "type_check", "dynamic_guard")
    ]
    assert evaluated
    assert f.state().counters["evaluated_ops"] > 0
    seen = {o for i in evaluated for o in i.operands}
    assert inner is None or (set(inner.index) <= made and not seen & inner.shared)
    for k in range(3):
        for got, want in zip(f(X + k, W), fn(X + k, W), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_transposed_intermediate_that_is_returned(frames):
    def fn(x, w):
        a = np.tanh(x * w)
        return np.exp(a + w).T

    f = ready(fn, X, W)
    got = f(X, W)
    was = got.copy()
    f(X * 2, W)
    np.testing.assert_array_equal(got, was)
    np.testing.assert_allclose(got, fn(X, W), rtol=1e-5)


def test_operands_of_groups_that_may_be_interpreted(frames):
    """After a violation the group runs op by op on the same arrays."""

    def fn(x, i):
        return np.tanh(np.tanh(x + 1) * x)[i] + 1

    good, bad = np.array([0, 3]), np.array([0, N])
    f = ready(fn, X, good)
    made, read = plan_of(f), set()
    for instr in made.graph.main.body.walk():
        if instr.op.name == "fusion_group":
            outputs = made.kernels[instr.attrs["callee"]].kernel[0].abi.outputs
            read |= {o for o in instr.operands if any(s.kind == "violation" for s in outputs)}
    assert read
    assert not read & made.steps.intermediates.shared
    errors = []
    for _ in range(20):
        with pytest.raises(IndexError) as error:
            f(X, bad)
        errors.append(error)  # with its traceback, whose frames hold what the call held
    np.testing.assert_allclose(f(X, good), fn(X, good), rtol=1e-5)
    assert f.state().counters["voided_launches"] == 20
    del errors, error
    gc.collect()
    frames.clear()
    f(X, good)
    assert all(map(placed, frames))


def test_fallbacks_may_keep_what_they_are_given(frames):
    """A plan that comes to one gives up the block, which nobody gets again."""

    def fn(x, w, u):
        a = np.tanh(x * w)
        b = np.exp(a + u)
        return np.sin(b - 0.5) * b

    f = ready(fn, X, W, X)
    row = X[:1].copy()  # the group that reads it misses its guard, after one that hit
    scope = plan_of(f).run.__globals__
    kept = []
    for name, runs in list(scope.items()):
        if getattr(runs, "__name__", "") == "run" and hasattr(runs, "__self__"):

            def keeping(inputs, runs=runs):
                kept.extend((x, x.copy()) for x in inputs)
                return runs(inputs)

            scope[name] = keeping
    for k in range(6):
        for u in (row, X):
            np.testing.assert_allclose(f(X + k, W, u), fn(X + k, W, u), rtol=1e-4, atol=1e-4)
    assert f.state().counters["fallback_calls"] >= 6
    blocks = {address(a) for made in frames for a in made if a is not None}
    assert any(address(x) in blocks for x, _ in kept)  # it was not copied
    for array, was in kept:
        np.testing.assert_array_equal(array, was)


def test_a_guard_that_always_misses_costs_few_blocks(frames):
    f = ready(lambda x, w, u: np.sin(np.exp(np.tanh(x * w) + u) - 0.5) * x, X, W, X)
    row = X[:1].copy()
    for _ in range(4):
        f(X, W, row)
    frames.clear()
    for _ in range(600):
        f(X, W, row)
    assert 2 <= sum(map(placed, frames)) <= 9  # of 600: after 1, 3, 7, ... 255 others each time
    for _ in range(thread_block._LONGEST_PAUSE + 1):
        f(X, W, X)
    assert placed(frames[-1])
