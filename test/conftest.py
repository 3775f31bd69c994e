"""For every test: what earlier runs have compiled must not answer for this checkout's compiler,
and most count what each call does, so that they wait for compiles; see test_background.py."""

import contextlib
import functools
import gc
import os
import queue
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from every_case import EVERY_CASE, named_cases, sampled
from long_tests import Stopwatch, waiting

# In the environment, so that it holds for the processes that tests start, too.
os.environ["PROFUSE_CACHE"] = "off"
os.environ["PROFUSE_BACKGROUND"] = "off"
# Tests of graphs must not pass because Python ran the function; see test_in_python.py. Those of
# training pass under the setting that users have, too (make test-defaults).
os.environ["PROFUSE_UNSUPPORTED"] = os.environ.get("TEST_UNSUPPORTED", "raise")
# Which of two times is the shorter one depends on the machine; see test_demotion.py.
os.environ["PROFUSE_DEMOTE"] = "off"
# Few sets of inputs. PROFUSE_CHECK=all, which has no budget, is for the table of ops, see
# docs/testing.md.
os.environ.setdefault("PROFUSE_CHECK_MS", "4")
# Tests start hundreds of processes: without bytecode on disk each of them, and each worker of
# theirs, compiles 300 modules for 0.7 seconds, and this one all of the tests. Trees of which a file
# changes from run to run are left without (mutation_runner.py).
if os.environ.get("PYTHONDONTWRITEBYTECODE") != "mutated":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

_MEMO = "PYTEST_PROFUSE_MEMO"  # the folder of the session, for xdist's workers
_PATCHES = pytest.StashKey[pytest.MonkeyPatch]()  # what a test has replaced

# How long drawing examples takes depends on the machine, and on what else it does.
hypothesis.settings.register_profile("profuse", suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("profuse")


@pytest.fixture
def queues_are_pure() -> Iterator[None]:
    """Traces put values into queues, which are of C: that is not undone."""
    from internals import taken_for_pure  # with the package, for which the environment is set above

    with taken_for_pure(queue.SimpleQueue):
        yield


@pytest.fixture
def monkeypatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """That of pytest, which tells the memo of compiles what a test has replaced."""
    request.node.stash[_PATCHES] = monkeypatch
    return monkeypatch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--list-long", action="store_true", help="run all long tests, and list them anew")
    parser.addoption("--part", metavar="SEED/N", help="run an N-th of the tests, another one by another seed")
    parser.addoption("--turns", action="store_true", help="of long tests run those whose turn it is, as of all tests")


def pytest_configure(config: pytest.Config) -> None:
    """The first process of a session makes the folder of its memo of compiles, and removes it."""
    if not EVERY_CASE and _MEMO not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="profuse-memo-")
        os.environ[_MEMO] = folder.name
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(lambda: os.environ.pop(_MEMO))
    if config.getoption("--list-long"):
        config.pluginmanager.register(Stopwatch())


# Folders of which all tests are marked so, those inside included; see compiling.py.
_MARKED = {
    "lowering": ("optimised",),
    "fuzz": ("optimised",),
    "executor/dispatch": ("optimised",),  # code of calls as users get it
    "executor/compile": ("compiles",),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests of folders, takes samples, or the part that is asked for, and begins with long tests.

    A process that has a long test left when the others have run out of tests is waited for.
    """
    for item in items:
        for mark in _marks_of(item.path):
            item.add_marker(mark)
    if not EVERY_CASE:
        chosen = sampled(items, named_cases())
        _keep(config, items, lambda item: item in chosen)
        if config.getoption("--turns") or _is_whole(config):
            from mutation_runner import revision  # with the package, for which the environment is set above

            later = waiting(items, revision())
            _keep(config, items, lambda item: item not in later)
    if part := config.getoption("--part"):
        seed, _, parts = part.rpartition("/")
        _keep(config, items, lambda item: zlib.crc32(f"{seed} {item.nodeid}".encode()) % int(parts) == 0)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _is_whole(config: pytest.Config) -> bool:
    """True for a run of all tests, of which nobody has chosen some."""
    options = ("--list-long", "--part", "-k", "-m")
    folders = {(config.rootpath / path).resolve() for path in config.args}
    return folders == {Path(__file__).parent} and not any(map(config.getoption, options))


@functools.cache
def _marks_of(file: Path) -> tuple[str, ...]:
    """The marks of the folders that a file is in."""
    folders = [path.as_posix() for path in file.relative_to(Path(__file__).parent).parents]
    return tuple(mark for folder in folders for mark in _MARKED.get(folder, ()))


def _keep(config: pytest.Config, items: list[pytest.Item], is_kept: Callable[[pytest.Item], bool]) -> None:
    """Leave out other tests, and have pytest tell how many."""
    kept, others = [], []
    for item in items:
        (kept if is_kept(item) else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = kept


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting tests makes millions of objects that live on: looking for garbage in them took half of its time."""
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """How the test and its fixtures compile, see compiling.py; and what garbage is looked for in.

    Where every case runs (make test-all), everything is compiled as users get it.

    Collections walk all that lives, which grows from file to file: a sixth of the time of some.
    """
    from compiling import Memo, compiles_as_ever, quick_code

    with contextlib.ExitStack() as stack:
        stack.enter_context(quick_code(not EVERY_CASE and not item.get_closest_marker("optimised")))
        if not EVERY_CASE and not item.get_closest_marker("compiles"):
            memo = Memo(Path(os.environ[_MEMO]), lambda: compiles_as_ever(item.stash.get(_PATCHES, None)))
            stack.enter_context(memo.used())
        yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_finish() -> None:
    """A full collection of garbage walks all that lives, and the tests themselves are millions of
    objects: it takes more than half a second with them, and some tests ask for hundreds."""
    gc.collect()
    gc.freeze()
    # Compiles make many objects and hardly any cycle: collections were a tenth of the time of all tests.
    gc.set_threshold(20_000, 20, 50)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that need a GPU are skipped where there is none, with the reason."""
    if item.get_closest_marker("cuda") is not None:
        from profuse.executor.cuda.nvidia.driver import unavailable

        reason = unavailable("cuda:0")
        if reason:
            pytest.skip(f"needs an NVIDIA GPU: {reason}")


@pytest.fixture(autouse=True)
def no_earlier_events():
    """Tests look at the events behind those that were there: the ring has to have room for them."""
    from profuse.executor.settings import events

    events.clear()


@pytest.fixture(autouse=True)
def no_failed_check(request: pytest.FixtureRequest, no_earlier_events: None):
    """No kernel that a test compiles is found to be wrong, unless the test says so."""
    yield
    if request.node.get_closest_marker("wrong_kernels") is None:
        from profuse.executor.settings import events

        failed = [str(e) for e in events.events() if e.kind == "check-failed"]
        assert not failed, "\n".join(failed)


@pytest.fixture
def own_functions(monkeypatch: pytest.MonkeyPatch):
    """Reports show the functions of this test alone: thousands of earlier ones may be alive."""
    from profuse.executor.observe import live_functions

    functions = live_functions.functions
    last = max(map(live_functions.number_of, functions()), default=0)
    monkeypatch.setattr(
        live_functions, "functions", lambda: [f for f in functions() if live_functions.number_of(f) > last]
    )
