"""For every test: what earlier runs have compiled must not answer for this checkout's compiler,
and most count what each call does, so that they wait for compiles; see test_background.py."""

import gc
import os
import sys

import pytest

# In the environment, so that it holds for the processes that tests start, too.
os.environ["PROFUSE_CACHE"] = "off"
os.environ["PROFUSE_BACKGROUND"] = "off"
# Tests of graphs must not pass because Python ran the function; see test_in_python.py.
os.environ["PROFUSE_UNSUPPORTED"] = "raise"
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


def pytest_collection_finish() -> None:
    """A full collection of garbage walks all that lives, and the tests themselves are millions of
    objects: it takes more than half a second with them, and some tests ask for hundreds."""
    gc.collect()
    gc.freeze()


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
