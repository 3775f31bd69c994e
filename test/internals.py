"""The private attributes that tests read: each is named here, and nowhere else in the tests.

What users can ask for they get from `state()`; a test that needs no more should ask there, too.
Scripts that tests start find this module in `FOLDER`.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from profuse.dialect.importers.numpy.python import purity
from profuse.dialect.ops.control_flow import effect_ops
from profuse.executor.compile import worker
from profuse.executor.compile.proof import measure
from profuse.executor.cuda.exchange import libraries
from profuse.executor.cuda.nvidia import cublaslt
from profuse.executor.dispatch import layout
from profuse.executor.dispatch import loaded_dispatcher as entries
from profuse.executor.interpret.record import Record
from profuse.executor.memory import thread_block
from profuse.executor.observe import perfetto
from profuse.executor.settings import events, fingerprint, strategy
from profuse.executor.tiers import keyed
from profuse.lowering.cpu import loader, pool_block

FOLDER = str(Path(__file__).parent)

# --- what traces may call -----------------------------------------------------------------------


@contextlib.contextmanager
def taken_for_pure(*targets: Any) -> Iterator[None]:
    """Have traces call what they would leave to Python, such as queues that leak traced values."""
    before = set(purity._pure)
    for target in targets:
        purity.pure(target)
    try:
        yield
    finally:
        purity._pure.clear()
        purity._pure.update(before)
        purity.forget()


# --- functions and their graphs ----------------------------------------------------------------


def executors(f: Any) -> list[Any]:
    """The outermost executor of each graph of a function."""
    return f._executors()


def executor_of(f: Any) -> Any:
    """The outermost executor of a function that has one graph."""
    (executor,) = f._executors()
    return executor


def noted_executor_of(f: Any) -> Any:
    """The executor of the calls of a graph that are noted on the tape; None before the first.

    Such calls must all have had gradients of the same arguments.
    """
    found = tuple(executor_of(f).noted.values())
    assert len(found) <= 1
    return found[0] if found else None


def last_executor(f: Any) -> Any:
    """The outermost executor of the last call."""
    return f._current


def name_of(f: Any) -> str:
    """What graphs, events and reports call a function."""
    return f._name


def options_of(f: Any) -> Any:
    """What a function was made with."""
    return f._options


def locks(f: Any) -> tuple[Any, ...]:
    """The locks of a function of one graph: that of its executor, and its own."""
    return executor_of(f)._lock, f._graphs.lock


def graph_count(f: Any) -> int:
    """Graphs that a function keeps."""
    return len(f._graphs.variants)


def variants_of(f: Any) -> list[Any]:
    """The graphs of a function, with their executors."""
    return [variant for variants in f._graphs.variants.values() for variant in variants]


def plain_graph_count(f: Any) -> int:
    """Of these, the ones whose arguments are their own leaves."""
    return len(f._graphs.flat)


# --- executors ---------------------------------------------------------------------------------


def lock_of(executor: Any) -> Any:
    """Held while an executor changes its plans."""
    return executor._lock


def keeps_graphs(executor: Any) -> tuple[bool, bool]:
    """Whether an executor has its profiling graph, and the one that runs unguarded."""
    return executor._profiling is not None, executor._plain is not None


def make_unguarded_plan(executor: Any) -> None:
    """What a call makes an executor do while optimisation is off."""
    executor._no_opt_plan()


def set_clock(executor: Any, clock: Callable[[], float], created: int) -> None:
    """Have the plan be made at ``created``, by another clock."""
    executor._timer._clock = clock
    executor._timer.created = created


def types_seen(executor: Any) -> int:
    """Combinations of argument types that an executor remembers."""
    return len(executor._seen)


# --- emitted code ------------------------------------------------------------------------------


def emitted_call(f: Any) -> Callable[..., Any]:
    """The builtin that calls run in, past `__call__`."""
    assert f.native is not None, f.explain()
    return f.native


def entry_of(f: Any, *, into: bool = False) -> Any:
    """The emitted code of a function's calls, or of those of `into`."""
    return (f._emission.writer if into else f._emission.dispatcher).entry


def emitted_hits(f: Any, *, into: bool = False) -> int:
    """Calls that emitted code has answered so far."""
    entry = entry_of(f, into=into)
    return sum(entry.read(cells.hits) for cells in entry.cells)


def reverse_hits(f: Any) -> int:
    """Runs of reverse halves that emitted code has answered so far."""
    entries = [pull.dispatcher.entry for pull in f._emission.pulls()]
    return sum(e.read(cells.hits) for e in entries if e is not None for cells in e.cells)


def entries_alive() -> int:
    """Pieces of emitted code that some function or call still holds."""
    return len(entries._live)


# --- memory ------------------------------------------------------------------------------------


def kept_frames() -> Any:
    """The intermediates that this thread keeps for later calls."""
    return thread_block._local.arena.kept


MOST_KEPT_ARRAYS = thread_block._MOST_ARRAYS


def size_classes(pool: Any) -> int:
    """Size classes of an output pool that hold memory."""
    return len(pool._classes)


def counters_alive() -> int:
    """Objects whose counts are summed up by `pf.counters`."""
    return len(events._live)


# --- compiles in worker processes --------------------------------------------------------------


def worker_process(pool: Any) -> Any:
    """The process of a pool's first worker."""
    return pool._lanes[0].process


def worker_processes(pool: Any) -> list[Any]:
    """The processes of those of a pool's workers that have one."""
    return [process for lane in list(pool._lanes) if (process := lane.process) is not None]


def worker_count(pool: Any) -> int:
    """Workers of a pool, idle ones included."""
    return len(pool._lanes)


def is_running(ticket: Any) -> bool:
    """Whether a worker is at what was submitted, rather than that it waits."""
    return ticket._job.running


def any_running(pool: Any) -> bool:
    """Whether a worker of the pool is at something."""
    return any(job.running for job in pool._jobs.values())


def shared_pool_now() -> Any:
    """The pool of this process, without making one."""
    return worker._pool


def share_pool(monkeypatch: Any, pool: Any) -> None:
    """Have this process compile in ``pool``."""
    monkeypatch.setattr(worker, "_pool", pool)


# --- checks of kernels -------------------------------------------------------------------------


def break_kernel(check: Any, fault: Callable[[int], None]) -> None:
    """Have ``fault`` called, with the address of the argument slots, behind the kernel."""
    kernel = check.launcher._function

    def faulty(address: int) -> None:
        kernel(address)
        fault(address)

    check.launcher._function = faulty


def chunk_work() -> float:
    """The work of a chunk of kernels of symbolic sizes, in picoseconds."""
    return ctypes.c_double.from_buffer(pool_block.block(), pool_block.WORK * 8).value


def library_symbols() -> dict[str, int]:
    """Addresses of the library's functions, as kernels are linked to them."""
    return loader._library_symbols


def slow_kernels(
    monkeypatch: Any, seconds: float, of: str = "", launched: Callable[[], object] = int
) -> list[list[tuple[int, ...]]]:
    """Have kernels take so much longer while they are measured; the shapes of what is measured.

    ``of``: the fusion function whose kernel is slow; "" = all are. ``launched`` is called behind
    each launch.
    """
    shapes: list[list[tuple[int, ...]]] = []
    placed = measure.Launcher.place

    class Slow(measure.Launcher):
        def __init__(self, artifact: Any) -> None:
            super().__init__(artifact)
            self.name = artifact.name

        def place(self, args: Any, *rest: Any, **more: Any) -> Any:
            found = placed(self, args, *rest, **more)
            shapes.append([np.shape(x) for x in args])

            def launch() -> None:
                found.launch()
                launched()
                end = time.thread_time() + (seconds if of in ("", self.name) else 0.0)
                while time.thread_time() < end:
                    pass

            return replace(found, launch=launch)

    monkeypatch.setattr(measure, "Launcher", Slow)
    return shapes


# --- what a process does once ------------------------------------------------------------------


def forget_libraries(monkeypatch: Any) -> None:
    """As if no array library had been seen yet."""
    monkeypatch.setattr(libraries, "_known", {})


def forget_printed(monkeypatch: Any) -> None:
    """As if nothing that prints once had printed yet."""
    monkeypatch.setattr(effect_ops, "_printed", set())


def forget_strategy(monkeypatch: Any) -> None:
    """As if nobody had asked for the process-wide strategy yet."""
    monkeypatch.setattr(strategy, "_current", None)


def forget_usage(monkeypatch: Any) -> None:
    """As if the first run without profiling had not been logged yet."""
    monkeypatch.setattr(keyed, "_usage_logged", threading.Event())


def new_event_ring(monkeypatch: Any) -> None:
    """Events go to a ring of the test's own."""
    monkeypatch.setattr(events, "_ring", None)


# --- steps of a module's work that are tested by themselves ------------------------------------

check_fields, check_dtypes = layout._check_fields, layout._check_dtypes
check_scalars = layout._check_scalars
check_errors = layout._check_errors
save_trace = perfetto._save
version_of = fingerprint._version
NAMED_DISTRIBUTIONS = fingerprint._DISTRIBUTIONS


def split_arguments(arguments: list[str]) -> Any:
    """The options of `profuse-report`, and the script's arguments."""
    from profuse.tools.report import cli

    return cli._split(arguments)


def largest_error(found: Any, expected: Any) -> float:
    """The largest relative error that `profuse-run` tells."""
    from profuse.tools import run

    return run._error(found, expected)


def no_installed_folders(monkeypatch: Any) -> None:
    """As if no folder of `sys.path` named the versions of what is in it."""
    monkeypatch.setattr(fingerprint, "_installed", dict)


def other_function_table(monkeypatch: Any) -> None:
    """As if NumPy's table of functions were of another ABI."""
    monkeypatch.setattr(layout, "_ABI_VERSION", 0x03000000)


def other_python_functions(monkeypatch: Any, *names: str) -> None:
    """As if emitted code called these functions of CPython."""
    monkeypatch.setattr(layout, "_PYTHON_API", names)


def few_product_plans(monkeypatch: Any, most: int) -> None:
    """Have fewer plans of cuBLASLt be kept."""
    monkeypatch.setattr(cublaslt, "_MOST_PLANS", most)


def spy_on_writes(monkeypatch: Any, spy: Callable[[Record], None]) -> None:
    """Have ``spy`` called with a record whenever types are about to be written into it."""
    write = Record._write

    def spied(record: Record, *args: Any) -> None:
        spy(record)
        write(record, *args)

    monkeypatch.setattr(Record, "_write", spied)


def same(ours, theirs, seen=None):
    """Equal values, of objects all that they hold; cycles end."""
    seen = {} if seen is None else seen
    if id(ours) in seen:
        return
    seen[id(ours)] = ours
    assert type(ours) is type(theirs)
    if isinstance(ours, (np.ndarray, np.generic, float)):
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    elif isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, seen)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            same(ours[key], theirs[key], seen)
    elif hasattr(ours, "__dict__"):
        same(vars(ours), vars(theirs), seen)
    elif type(ours).__dict__.get("__slots__"):
        for name in type(ours).__slots__:
            same(getattr(ours, name), getattr(theirs, name), seen)
    else:
        assert ours == theirs


def is_known(compiled, *args):
    """True if a call of a compiled model of torch is served without a look at what makes its key."""
    return compiled.calls._known_calls.find(args) is not None
