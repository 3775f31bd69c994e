"""The spec-keyed executor: construction, running, its cache (R2.1 - R2.8)."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from internals import executors, forget_usage, lock_of
from keyed_graphs import add_executor, f32, optional_bias, scaled
from profuse.executor.compile import compiler as compile_module
from profuse.executor.settings.events import events
from profuse.executor.tiers.keyed import KeyedExecutor
from profuse.executor.tiers.profiling import Executor, Options
from small_executors import settle

pytestmark = pytest.mark.usefixtures("profiling_off")


def test_profiling_mode_picks_the_executor_for_good():
    """R2.1: the class follows the switch at construction and stays."""
    f = pf.jit(scaled)
    f(f32(2, 3), f32(3))
    pf.set_profiling_mode(True)
    g = pf.jit(scaled)
    try:
        for fn in (f, g):
            fn(f32(2, 3), f32(3))
        assert f.state().counters["profiled_runs"] == 0
    finally:
        pf.set_profiling_mode(False)
    for _ in range(2):
        g(f32(2, 3), f32(3))
    assert [type(e) for e in executors(f)] == [KeyedExecutor]
    assert [type(e) for e in executors(g)] == [Executor]
    assert f.state().counters["invocations"] == 2
    assert g.state().counters["invocations"] == 0


def test_construction_is_counted():
    """R2.2: one more executor constructed; its recipe is there before any call."""
    before = pf.counters()["executors_constructed"]
    executor = add_executor()
    assert pf.counters()["executors_constructed"] == before + 1
    assert [step.what for step in executor.recipe.steps] == ["tensor", "tensor"]


def test_too_few_inputs():
    """R2.3: both numbers are named, and the failed run is not counted."""
    executor = add_executor()
    with pytest.raises(pf.ArgumentError, match="needs 2 inputs, 1 given"):
        executor.run([f32(2)])
    assert executor.counters.invocations == 0
    assert executor.counters.cache_misses == 0


def test_more_inputs_than_needed():
    """R2.3: unrelated values may come first; the last ones count."""
    executor = add_executor()
    (out,) = executor.run(["unrelated", f32(2), f32(2)])
    np.testing.assert_allclose(out, np.tanh(f32(2) * 2), rtol=1e-6)


def test_usage_is_logged_once(monkeypatch):
    """R2.3: once per process, whatever runs."""
    forget_usage(monkeypatch)
    before = sum(e.kind == "api-usage" for e in events())
    for executor in (add_executor(), add_executor()):
        for _ in range(2):
            executor.run([f32(2), f32(2)])
    assert sum(e.kind == "api-usage" for e in events()) == before + 1


def test_invocations_count_every_kind_of_run():
    """R2.3: cached, fallback and traced runs alike."""
    f = pf.jit(scaled)
    args = f32(2, 3), f32(3)
    f(*args)
    with pf.knobs.override(optimize=False):
        g = pf.jit(scaled)
        g(*args), g(*args)
    pf.jit(lambda x, b: f(x, b) + 1)(*args)
    assert [h.state().counters["invocations"] for h in (f, g)] == [2, 2]


def test_a3_optimize_is_copied_at_construction():
    """R2.3, A3: flipping it afterwards changes new executors only, a flush included."""
    f, g = pf.jit(scaled), pf.jit(scaled)
    args = f32(2, 3), f32(3)
    f(*args)
    with pf.knobs.override(optimize=False):
        f.flush()
        f(*args), f(*args), g(*args)
    g.flush()
    g(*args), g(*args)
    names = "compiles", "cache_misses", "cache_hits", "evaluated_ops"
    counts = [[h.state().counters[n] for n in names] for h in (f, g)]
    assert counts == [[2, 2, 1, 0], [0, 0, 0, 9]]


def test_fallback_plan_is_built_once(background):
    """R2.5: with optimise off one plan of the required passes alone; no cache counter moves."""
    with pf.knobs.override(optimize=False):
        executor = add_executor(background=background)
    for shape in ((2, 3), (4,)):
        (out,) = executor.run([f32(*shape), f32(*shape)])
        np.testing.assert_array_equal(out, np.tanh(f32(*shape) + f32(*shape)))
    plan = executor.fallback_plan()
    assert executor.fallback_plan() is plan
    assert plan.kind == "no-opt"
    assert executor.tier == "no-opt"
    counters = executor.counters
    assert (counters.cache_hits, counters.cache_misses, counters.compiles) == (0, 0, 0)
    assert counters.evaluated_ops == 4


def test_fallback_plan_runs_the_required_passes(monkeypatch):
    """R2.5: required passes only, and only once."""
    requests = []

    def spied(request):
        requests.append(request.pipeline)
        return compile_graph(request)

    compile_graph = compile_module.compile_graph
    monkeypatch.setattr("profuse.executor.compile.compiler.compile_graph", spied)
    with pf.knobs.override(optimize=False):
        executor = add_executor()
    for _ in range(2):
        executor.run([f32(2), f32(2)])
    assert requests == ["required"]


def test_same_spec_twice(background):
    """R2.6: one miss, one hit, one compile; nothing is evaluated op by op but while it compiles."""
    executor = add_executor(background=background)
    for shape in ((2, 3), (5, 7)):
        x = f32(*shape)
        (out,) = executor.run([x, x])
        settle(executor)
        np.testing.assert_allclose(out, np.tanh(x + x), rtol=1e-6)
    counters = executor.counters
    assert (counters.cache_misses, counters.cache_hits, counters.compiles) == (1, 1, 1)
    assert (counters.kernel_launches, counters.evaluated_ops) == (2 - background, 2 * background)


def test_rank_and_dtype_miss(background):
    """R2.7: a new rank or dtype is a new plan; those that were there still serve."""
    executor = add_executor(background=background)
    for x in (f32(2, 3), f32(6), f32(2, 3).astype(np.float64), f32(9, 9), f32(4)):
        (out,) = executor.run([x, x])
        settle(executor)
        np.testing.assert_allclose(out, np.tanh(x + x), rtol=1e-6)
        assert out.dtype == x.dtype
    assert (executor.counters.cache_misses, executor.counters.cache_hits) == (3, 2)


def test_the_spec_is_made_outside_of_the_lock():
    """R2.6: another thread may hold the lock while the spec is computed and hashed."""
    executor = add_executor()
    executor.run([f32(2), f32(2)])
    specs: list[int] = []

    class Spied:
        def spec(self, values):
            made = recipe.spec(values)
            specs.append(hash(made))
            computed.set()
            return made

    recipe, computed = executor.recipe, threading.Event()
    executor.recipe = Spied()
    with lock_of(executor):
        thread = threading.Thread(target=executor.run, args=([f32(3), f32(3)],))
        thread.start()
        assert computed.wait(10), "the spec waits for the lock"
        assert executor.counters.cache_hits == 0
    thread.join()
    assert executor.counters.cache_hits == 1
    assert len(specs) == 1


def test_threads_on_one_new_spec():
    """R2.6: N threads, one compile; the others wait and hit."""
    executor = add_executor()
    threads, start, errors = [], threading.Barrier(8), []

    def call(k: int) -> None:
        try:
            start.wait()
            x = f32(k + 2, 3)
            (out,) = executor.run([x, x])
            np.testing.assert_allclose(out, np.tanh(x + x), rtol=1e-6)
        except BaseException as error:
            errors.append(error)

    for k in range(8):
        threads.append(threading.Thread(target=call, args=(k,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert errors == []
    counters = executor.counters
    assert (counters.compiles, counters.cache_misses, counters.cache_hits) == (1, 1, 7)


def test_a_compile_that_throws_leaves_nothing(monkeypatch):
    """R2.6: neither entry nor miss; the call runs on the fallback plan and the spec is pinned."""
    executor = add_executor()
    attempts = []

    def failing(request):
        if request.pipeline != "required":
            attempts.append(request)
            raise pf.PipelineError("no")
        return compile_graph(request)

    compile_graph = compile_module.compile_graph
    monkeypatch.setattr("profuse.executor.compile.compiler.compile_graph", failing)
    for _ in range(2):
        (out,) = executor.run([f32(2), f32(2)])
        np.testing.assert_array_equal(out, np.tanh(f32(2) * 2))
    assert len(attempts) == 1
    counters = executor.counters
    assert (counters.cache_misses, counters.cache_hits, counters.compile_failures) == (0, 0, 1)
    assert executor.debug_state().plans == {}
    assert [str(r) for r in executor.reasons] == ["not compiled for f32[?], f32[?]: no"]


def test_a_compile_that_fails_in_the_background_leaves_nothing(failing_compiles):
    """R2.6: as on the call: one attempt, neither entry nor miss, one reason."""
    executor = add_executor(background=True)
    for _ in range(3):
        (out,) = executor.run([f32(2), f32(2)])
        np.testing.assert_array_equal(out, np.tanh(f32(2) * 2))
        settle(executor)
    assert len(failing_compiles) == 1
    counters = executor.counters
    assert (counters.cache_misses, counters.cache_hits, counters.compile_failures) == (0, 0, 1)
    assert [str(r) for r in executor.reasons] == ["not compiled for f32[?], f32[?]: no"]


def test_a_spec_that_compiles_is_asked_for_once():
    """R2.6: other calls of the spec run op by op meanwhile; neither a hit nor a second compile."""
    executor = add_executor(background=True)
    with lock_of(executor):  # so that the plan cannot be swapped in yet
        for _ in range(3):
            executor.run([f32(2), f32(2)])
        counters = executor.counters
        assert (counters.cache_misses, counters.cache_hits, counters.evaluated_ops) == (0, 0, 6)
        assert len(executor.under_way()) == 1
    settle(executor)
    executor.run([f32(2), f32(2)])
    assert (counters.cache_misses, counters.cache_hits, counters.compiles) == (1, 1, 1)


def test_an_interrupted_compile_leaves_nothing(monkeypatch):
    """R2.6: what is no error of ours reaches the caller, and the next call compiles."""
    executor = add_executor()

    def interrupted(request):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("profuse.executor.compile.compiler.compile_graph", interrupted)
        with pytest.raises(KeyboardInterrupt):
            executor.run([f32(2), f32(2)])
    assert (len(executor.cache), executor.counters.cache_misses) == (0, 0)
    executor.run([f32(2), f32(2)])
    assert (len(executor.cache), executor.counters.cache_misses) == (1, 1)


def test_optional_input_folds_its_branch():
    """R2.8: None and a tensor are two plans, each with its branch alone."""
    executor = KeyedExecutor(optional_bias(), Options())
    x, b = f32(2, 3), f32(3)
    np.testing.assert_allclose(executor.run([x, None])[0], np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(executor.run([x, b])[0], np.tanh(x + b), rtol=1e-6)
    absent, present = (made.result for made in executor.compiled())
    for result, op in ((absent, "exp"), (present, "tanh")):
        assert "any_nonzero" not in result.ir
        assert result.ir.count(f"profuse.{op}") == 2, "once in the kernel, once in its fallback"
    assert "profuse.tanh" not in absent.ir
    assert "profuse.exp" not in present.ir
    executor.run([f32(4, 5), None])
    assert (executor.counters.cache_misses, executor.counters.cache_hits) == (2, 1)


def test_none_and_array_of_a_jitted_function():
    """R2.8: Python's own test for None takes one branch in each graph."""
    f = pf.jit(lambda x, b=None: np.exp(x) if b is None else np.tanh(x + b))
    x, b = f32(2, 3), f32(3)
    np.testing.assert_allclose(f(x, None), np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(f(x, b), np.tanh(x + b), rtol=1e-6)
    f(x, None)
    assert f.state().counters["cache_misses"] == 2
    assert f.state().counters["cache_hits"] == 1


def test_loaded_function_takes_none(tmp_path):
    """R2.7: to a spec-keyed executor None is an undefined tensor."""
    path = tmp_path / "optional.mlir"
    path.write_text(optional_bias().to_mlir(locations=False))
    f = pf.load(str(path))
    np.testing.assert_allclose(f(f32(4), None), np.exp(f32(4)), rtol=1e-6)
    with pytest.raises(pf.ArgumentError, match="arg1 is of type tuple"):
        f(f32(4), (f32(4), f32(4)))
    pf.set_profiling_mode(True)
    try:
        profiling = pf.load(str(path))
    finally:
        pf.set_profiling_mode(False)
    with pytest.raises(pf.ArgumentError, match="takes arrays and numbers"):
        profiling(f32(4), None)


def test_number_in_the_place_of_a_tensor():
    """R2.7: it is a spec of its own and promotes as a Python number does."""
    executor = add_executor()
    (out,) = executor.run([f32(3), 2.0])
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, np.tanh(f32(3) + 2.0), rtol=1e-6)
    (out,) = executor.run([f32(3), 1e-3])
    np.testing.assert_allclose(out, np.tanh(f32(3) + 1e-3), rtol=1e-6)
    executor.run([f32(3), np.float64(2)])
    assert (executor.counters.cache_misses, executor.counters.cache_hits) == (2, 1)


def test_types_that_a_graph_was_written_with_are_no_promise(tmp_path):
    """R2.8: input types are those of the spec, whatever the file says, and ties to them hold."""
    path = tmp_path / "typed.mlir"
    path.write_text(
        """
func.func @main(%x: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<4xf32>) : i64 {
    %w = "profuse.add"(%v, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""
    )
    f = pf.load(str(path))
    with pf.knobs.override(optimize=False):
        plain = pf.load(str(path))
        plain(f32(4), 2)
    for x in (f32(4), f32(7), f32(2, 3).astype(np.float64)):
        np.testing.assert_allclose(f(x, 2), x * 3, rtol=1e-6)
        np.testing.assert_allclose(plain(x, 2), x * 3, rtol=1e-6)
    assert plain.state().counters["compiles"] == 0
    counters = f.state().counters
    assert (counters["cache_misses"], counters["compile_failures"]) == (2, 0), f.explain()
    assert counters["guard_misses"] == 0
