"""What packages and Python keep in their modules, and classes in metaclasses, is compared."""

from __future__ import annotations

import colorsys
import concurrent.futures.thread
import logging
import sys
from xml.etree import ElementTree

import numpy as np
import profuse as pf
import pytest


class Counting(type):
    @property
    def rate(cls):
        return cls.count * 2


class Model(metaclass=Counting):
    count = 1


def append_argument(k):
    sys.argv.append(str(k))


def toggle(k):
    logging.raiseExceptions = k % 2 == 0


def register(k):
    ElementTree._namespace_map[f"profuse {k}"] = "p"


def replace(k):
    colorsys.rgb_to_yiq = lambda *colour: (colour[0] - k,)


def replace_inner(k):
    concurrent.futures.thread.cpu_count = lambda: k


def count(k):
    Model.count += 1


CASES = {
    "list": (lambda x: x * len(sys.argv), append_argument),
    "number": (lambda x: x * 2 if logging.raiseExceptions else x, toggle),
    "dict": (lambda x: x * len(ElementTree._namespace_map), register),
    "function": (lambda x: colorsys.rgb_to_yiq(x, x, x)[0], replace),
    "function of an inner module": (lambda x: x * concurrent.futures.thread.cpu_count(), replace_inner),
    "metaclass": (lambda x: x * Model.rate, count),
}


@pytest.mark.parametrize("case", CASES)
def test_changes_are_seen(case, monkeypatch):
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(colorsys, "rgb_to_yiq", colorsys.rgb_to_yiq)
    monkeypatch.setattr(concurrent.futures.thread, "cpu_count", lambda: 7, raising=False)
    monkeypatch.setattr(ElementTree, "_namespace_map", dict(ElementTree._namespace_map))
    function, change = CASES[case]
    jitted, x = pf.jit(function, unsupported="python"), np.arange(3.0)
    for k in range(5):
        np.testing.assert_array_equal(jitted(x), function(x))
        change(k)


def test_constants_of_modules_cost_no_trace():
    jitted = pf.jit(lambda x: x * sys.float_info.max if sys.maxsize else x)
    for _ in range(4):
        jitted(np.zeros(3))
    assert jitted.state().counters["traces"] == 1
