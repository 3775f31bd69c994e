"""Long tests: a whole run takes turns in those that no deliberate fault needs.

A twentieth of the tests take more than a third of the time. Their ids are in ``long_tests.txt``, which
`Stopwatch` writes (``make long-tests``). Where nothing is chosen by hand, one in `TURNS` of them runs,
others at another commit. Those by which `mutations.MUTATIONS` are caught run at each, and so do those that
are marked ``each_run``.
"""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

TURNS = 4
LIST = Path(__file__).with_name("long_tests.txt")
_SECONDS = 0.3  # of the processor, that of processes which the test has waited for included
_KEY = "seconds of the processor"


def waiting(items: Iterable[pytest.Item], of: str, long: Iterable[str] | None = None) -> set[pytest.Item]:
    """The tests whose turn is at another commit; ``of`` tells commits apart.

    ``long``: the ids of long tests; None = those that are listed.
    """
    ids = frozenset(LIST.read_text("utf-8").split("\n") if long is None else long) - {""}
    return {
        item
        for item in items
        if item.nodeid in ids
        and not _is_needed(item.nodeid)
        and item.get_closest_marker("each_run") is None
        and zlib.crc32(f"{of} {item.nodeid}".encode()) % TURNS
    }


def _is_needed(nodeid: str) -> bool:
    """True for a test that a deliberate fault is caught by: a case, or all of a function, a class or a file."""
    parts = nodeid.partition("[")[0].split("::")
    return not _needed().isdisjoint((nodeid, *("::".join(parts[: k + 1]) for k in range(len(parts)))))


@functools.cache
def _needed() -> frozenset[str]:
    from mutations import MUTATIONS

    return frozenset(f"test/{test}" for mutation in MUTATIONS for test in mutation.tests)


class Stopwatch:
    """A plugin that writes the ids of the tests which have taken long: each process reports to the first."""

    def __init__(self) -> None:
        self._long: set[str] = set()
        self._begin = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._begin = _processor()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterable[None]:
        if call.when == "teardown":
            item.user_properties.append((_KEY, _processor() - self._begin))
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if dict(report.user_properties).get(_KEY, 0.0) > _SECONDS:
            self._long.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            LIST.write_text("".join(f"{nodeid}\n" for nodeid in sorted(self._long)), "utf-8")


def _processor() -> float:
    """Seconds of the processor that this process and its children have taken."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
