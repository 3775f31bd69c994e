"""In a real Jupyter kernel: functions defined in cells, interrupts, restarts, an event loop that is
already running, streams that belong to cells, and the processes that are left at the end."""

from __future__ import annotations

import json
import time

import pytest
from notebooks import Notebook
from processes import is_gone

DEFINED = """
@pf.jit
def wave(x):
    y = np.tanh(x) * 2
    return y + x.sum()

def wanted(x):
    return np.tanh(x) * 2 + x.sum()
"""
# Polls, as a notebook's user would call again; `wait` is for scripts.
TO_THE_TOP = """
end = time.monotonic() + 30
while {0}.state().tier != "optimized":
    assert time.monotonic() < end, {0}.explain()
    {0}(x)
    time.sleep(0.005)
"""
IN_EMITTED_CODE = """
while {0}.native is None:
    assert time.monotonic() < end, {0}.explain()
    {0}(x)
    time.sleep(0.005)
"""
COUNTS = "import json; print(json.dumps(dict({0}.state().counters)))"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A kernel for the tests that leave it as it was, each with functions of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    with Notebook(folder, PROFUSE_WORKER_FAULT="exit@loud,slow@slow") as made:
        yield made


def counts(notebook: Notebook, function: str) -> dict[str, int]:
    return json.loads(notebook.prints(COUNTS.format(function)))


def test_a_function_of_a_cell_reaches_its_last_tier(notebook):
    """With default settings, and without loading the compiler into the kernel."""
    notebook.prints(DEFINED)
    notebook.prints(TO_THE_TOP.format("wave"))
    before = counts(notebook, "wave")
    assert (before["profiled_runs"], before["kernels_compiled"]) == (1, 1)
    assert before["in_process_compiles"] == 0
    notebook.prints("np.testing.assert_allclose(wave(x), wanted(x), rtol=1e-6)")
    after = counts(notebook, "wave")
    assert after["kernel_launches"] == before["kernel_launches"] + 1
    assert after["evaluated_ops"] == before["evaluated_ops"]
    assert notebook.prints("print('mlir' in sys.modules)") == "False\n"


def test_places_are_lines_of_cells(notebook):
    """In what IR says, in errors, and in the traceback that IPython prints of them."""
    notebook.prints("""
        @pf.jit
        def added(x):
            y = x + 1
            return y + np.ones((3, 3))
    """)
    shown = notebook.run("added(np.ones((2, 2)))")
    assert shown.raised == "ShapeError"
    assert "----> 4     return y + np.ones((3, 3))" in shown.traceback
    assert (
        notebook.prints("""
        try:
            added(np.ones((2, 2)))
        except pf.ShapeError as error:
            place = error.loc
        print(place.line, linecache.getline(place.file, place.line).strip())
    """)
        == "4 return y + np.ones((3, 3))\n"
    )
    assert "4: operands could not be broadcast together" in shown.value
    assert (
        notebook.prints("""
        added(np.ones((3, 3)))
        print(f'loc("{place.file}":3:0)' in added.ir("graph"))
    """)
        == "True\n"
    )


def test_what_a_worker_says_is_in_no_cell(notebook):
    """It becomes an event; so does its loss."""
    seen = notebook.run("""
        loud = pf.jit(lambda x: np.tanh(x) * 5, name="loud")
        began = len(pf.events())
        for _ in range(3):
            loud(x)
            loud.wait()
        np.testing.assert_allclose(loud(x), np.tanh(x) * 5, rtol=1e-6)
    """)
    assert (seen.raised, seen.stdout, seen.stderr) == ("", "", "")
    kinds = notebook.prints("""
        time.sleep(0.2)  # for what would come late
        print(*(event.kind for event in pf.events()[began:]))
    """).split()
    assert "worker-lost" in kinds
    assert "gave up" in notebook.prints("print(*(e.reason for e in pf.events()[began:] if e.kind == 'worker-lost'))")


def test_under_the_kernels_event_loop(notebook):
    """Cells that await while a worker compiles; calls in coroutines, executors and threads."""
    notebook.prints("""
        loop = asyncio.get_running_loop()
        awaited = pf.jit(lambda x: np.exp(x) * 3, name="awaited")
        async def until_optimised():
            rounds = 0
            while awaited.state().tier != "optimized":
                awaited(x)
                rounds += 1
                await asyncio.sleep(0.005)
            return rounds
        alone, beside = await asyncio.gather(
            asyncio.wait_for(until_optimised(), 30), asyncio.wait_for(until_optimised(), 30)
        )
        assert alone > 1 and beside > 1
        there = await asyncio.to_thread(awaited, x)
        np.testing.assert_allclose(there, np.exp(x) * 3, rtol=1e-6)
        np.testing.assert_array_equal(there, await loop.run_in_executor(None, awaited, x))
        assert asyncio.get_running_loop() is loop
    """)
    found = counts(notebook, "awaited")
    assert (found["compiles"], found["kernel_launches"] >= 2) == (1, True)


def test_threads_outlive_the_cell_that_starts_them(notebook):
    notebook.prints("""
        threaded = pf.jit(lambda x: np.sin(x) - 1, name="threaded")
        results = []
        def work():
            while threaded.state().tier != "optimized":
                threaded(x)
                time.sleep(0.005)
            results.append(threaded(x))
        thread = threading.Thread(target=work)
        thread.start()
    """)
    notebook.prints("""
        thread.join(30)
        np.testing.assert_allclose(results[0], np.sin(x) - 1, rtol=1e-6)
    """)
    assert counts(notebook, "threaded")["kernel_launches"] >= 1


def check_interrupted(notebook: Notebook, code: str) -> None:
    """A cell that would run for a minute ends with KeyboardInterrupt, at once."""
    began = time.monotonic()
    assert notebook.run(code, interrupted=True).raised == "KeyboardInterrupt"
    assert time.monotonic() - began < 10


def test_an_interrupt_ends_a_loop_of_native_calls(notebook):
    """Which are too short to look at signals, and run no Python; the function goes on after it."""
    notebook.prints("looped = pf.jit(lambda x: np.tanh(x) - 2, name='looped')")
    notebook.prints(TO_THE_TOP.format("looped") + IN_EMITTED_CODE.format("looped"))
    check_interrupted(
        notebook,
        """
        import collections, itertools
        print("looping", flush=True)
        collections.deque(map(looped, itertools.repeat(x)), maxlen=0)
    """,
    )
    before = counts(notebook, "looped")
    notebook.prints("np.testing.assert_allclose(looped(x), np.tanh(x) - 2, rtol=1e-6)")
    after = counts(notebook, "looped")
    assert after["kernel_launches"] == before["kernel_launches"] + 1


def test_an_interrupt_ends_a_wait_for_a_compile_and_not_the_compile(notebook):
    notebook.prints("pf.jit(lambda x: x * 2 - 1).warmup(x)")
    notebook.prints("slow = pf.jit(lambda x: np.tanh(x) + 7, name='slow')")
    pid = notebook.prints("print(worker())")
    check_interrupted(
        notebook,
        """
        slow(x), slow(x)
        print("waiting", flush=True)
        slow.wait(), time.sleep(60)
    """,
    )
    notebook.prints(TO_THE_TOP.format("slow"))
    notebook.prints("np.testing.assert_allclose(slow(x), np.tanh(x) + 7, rtol=1e-6)")
    assert counts(notebook, "slow")["compiles"] == 1
    assert notebook.prints("print(worker())") == pid


def test_a_cell_that_is_changed_and_run_again(notebook):
    """The function's new source counts; the old one's graphs are dropped, as is what they hold."""
    define = """
        @pf.jit
        def again(x):
            return np.tanh(x) * {0}
    """
    for factor in (2, 3):
        notebook.prints(define.format(factor))
        notebook.prints(TO_THE_TOP.format("again"))
        notebook.prints(f"np.testing.assert_allclose(again(x), np.tanh(x) * {factor}, rtol=1e-6)")
        if factor == 2:
            notebook.prints("old = [weakref.ref(again), *map(weakref.ref, executors(again))]")
    assert (
        notebook.prints("""
        gc.collect()
        print([r() for r in old], sum(name_of(f) == "again" for f in live_functions.functions()))
    """)
        == "[None, None] 1\n"
    )


@pytest.mark.slow
def test_a_restarted_kernel_is_warm(tmp_path):
    """Its first call is native, though files are called otherwise and lines are others."""
    with Notebook(tmp_path) as notebook:
        notebook.prints(DEFINED)
        notebook.prints(TO_THE_TOP.format("wave"))
        first, file = notebook.pid, notebook.prints("print(wanted.__code__.co_filename)")
        worker = int(notebook.prints("print(worker())"))
        notebook.restart()
        assert notebook.pid != first
        assert is_gone(first, 5)
        assert is_gone(worker, 5)
        notebook.prints(f"# Lines have moved.\n{DEFINED}")
        assert notebook.prints("print(wanted.__code__.co_filename)") != file
        notebook.prints("np.testing.assert_allclose(wave(x), wanted(x), rtol=1e-6)")
        notebook.prints("wave.wait()")
        found = counts(notebook, "wave")
        assert found["disk_hits"] >= 1
        assert (found["disk_misses"], found["profiled_runs"], found["evaluated_ops"]) == (0, 0, 0)
        assert found["kernel_launches"] == 1
        kinds = notebook.prints("print(*(event.kind for event in pf.events()))").split()
        assert "worker-started" not in kinds
        assert "from the disk cache" in notebook.prints("print(wave.explain())")


@pytest.mark.parametrize("graph", ["wave", "stuck"])
def test_a_kernel_leaves_no_process_behind(tmp_path, graph):
    """Nor in the middle of a compile."""
    with Notebook(tmp_path, PROFUSE_WORKER_FAULT="hang@stuck") as notebook:
        notebook.prints(DEFINED)
        notebook.prints("wave.warmup(x)")
        notebook.prints(f"{graph} = pf.jit(lambda x: np.exp(x) + 1, name='{graph}')")
        notebook.prints(f"{graph}(x), {graph}(x); time.sleep(0.2)")
        kernel, worker = notebook.pid, int(notebook.prints("print(worker())"))
        assert not is_gone(worker, 0)
    assert is_gone(kernel, 5)
    assert is_gone(worker, 5)
