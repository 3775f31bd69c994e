"""The probe accepts this interpreter and NumPy, and refuses any that differ, with the reason."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from dataclasses import fields, replace

import numpy as np
import profuse as pf
import pytest
from internals import (
    check_dtypes,
    check_errors,
    check_fields,
    check_scalars,
    other_function_table,
    other_python_functions,
)
from profuse.executor.dispatch import attach, layout
from profuse.executor.dispatch.layout import LAYOUT, StructLayout, Unknown

X = np.ones((4, 4), np.float32)


def test_this_process_is_known():
    assert layout.refusal() is None


@pytest.mark.parametrize("name", [f.name for f in fields(StructLayout)])
@pytest.mark.parametrize("by", [-8, 8, 16])
def test_wrong_offsets_are_refused(name, by):
    moved = replace(LAYOUT, **{name: getattr(LAYOUT, name) + by})
    with pytest.raises(Unknown, match="offset"):
        check_fields(moved)
        check_dtypes(moved)
        check_scalars(moved)
        check_errors(moved)


def _refused(monkeypatch) -> str:
    """The reason of a fresh probe, and that a jitted function then runs in Python, as ever."""
    reason = layout.refusal.__wrapped__()
    assert reason is not None
    monkeypatch.setattr(attach, "refusal", lambda: reason)
    f = pf.jit(lambda x: x * 2 + 1)
    for _ in range(4):
        assert np.array_equal(f(X), X * 2 + 1)
    assert not f.state().emitted
    assert f.state().counters["guard_hits"] == 3
    assert any(e.kind == "dispatch-refused" and e.reason == reason for e in pf.events())
    assert f"dispatched in Python: {reason}" in f.explain()
    return reason


def test_free_threaded_builds_are_refused(monkeypatch):
    read = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda n: 1 if n == "Py_GIL_DISABLED" else read(n))
    assert "free-threaded" in _refused(monkeypatch)


def test_debug_builds_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
    assert "debug build" in _refused(monkeypatch)


def test_other_byte_orders_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "byteorder", "big")
    assert "little-endian" in _refused(monkeypatch)


def test_another_function_table_is_refused(monkeypatch):
    other_function_table(monkeypatch)
    monkeypatch.setattr(layout, "addresses", layout.addresses.__wrapped__)
    assert "C ABI" in _refused(monkeypatch)


def test_moved_fields_are_refused(monkeypatch):
    monkeypatch.setattr(layout, "LAYOUT", replace(LAYOUT, descr=48))
    assert "PyArrayObject.descr" in _refused(monkeypatch)


def test_a_missing_function_is_refused(monkeypatch):
    other_python_functions(monkeypatch, "Py_NoSuchFunction")
    assert "Py_NoSuchFunction" in _refused(monkeypatch)


def test_a_probe_that_fails_is_a_refusal(monkeypatch):
    def broken(*_):
        raise OSError("no library")

    monkeypatch.setattr(ctypes, "CDLL", broken)
    monkeypatch.setattr(layout, "addresses", layout.addresses.__wrapped__)
    assert "no library" in _refused(monkeypatch)
