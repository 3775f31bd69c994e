"""The table of constructs in docs/tracing.md says what becomes of them: it is read and tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from constructs import PROGRAMS

DOCS = Path(__file__).parents[3] / "docs" / "tracing.md"
HEAD = "| construct | becomes |"
KINDS = ("native", "host", "Python's", "error")


def _table():
    """What the table says: construct -> native, host, Python's or error."""
    lines = iter(DOCS.read_text().splitlines())
    next(line for line in lines if line.startswith(HEAD))
    assert set(next(lines)) <= set("|-")
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        construct, becomes = (cell.strip() for cell in line.strip("|").split(" | ", 1))
        (kind,) = [k for k in KINDS if becomes.startswith(k)]
        assert construct not in found, construct
        found[construct] = kind
    return found


TABLE = _table()


@pytest.fixture(autouse=True)
def _python():
    """What no graph holds is Python's, and nothing is for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def test_each_row_has_a_program():
    assert set(TABLE) == set(PROGRAMS)
    assert set(TABLE.values()) == set(KINDS)


def _same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    np.testing.assert_allclose(found, expected, 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("construct", [c for c, kind in TABLE.items() if kind != "error"])
def test_a_row(construct):
    plain, arguments = PROGRAMS[construct]()
    function, _ = PROGRAMS[construct]()
    f = pf.jit(function)
    for turn in range(4):
        before = f.state().counters
        args, same = arguments(turn), arguments(turn)
        _same(f(*args), plain(*same))
        for a, b in zip(args, same, strict=True):
            _same(a, b)
        f.wait()
    after = f.state().counters
    launches = after["kernel_launches"] - before["kernel_launches"]
    python = after["python_calls"] - before["python_calls"]
    if TABLE[construct] == "Python's":
        assert (launches, python) == (0, 1), f.explain()
        assert " runs in Python, as " in f.explain()
        return
    assert launches > 0, f.explain()
    assert python == 0, f.explain()
    is_hosts = " runs on the host, between kernels" in f.explain()
    assert is_hosts == (TABLE[construct] == "host"), f.explain()


@pytest.mark.parametrize("construct", [c for c, kind in TABLE.items() if kind == "error"])
def test_a_row_of_an_error(construct):
    function, arguments = PROGRAMS[construct]()
    made = pf.grad(function) if "pf.grad" in construct else pf.jit(function, unsupported="raise")
    with pytest.raises(pf.TraceError, match=r"constructs\.py:\d+"):
        made(*arguments(0))
