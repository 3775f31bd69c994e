"""What only an object's own code tells of its state is no constant of a graph."""

from __future__ import annotations

import argparse
import array
import contextvars
import ctypes
import io
import itertools
import multiprocessing
import os
import queue
import re
import threading
from configparser import ConfigParser
from fractions import Fraction
from os import getenv
from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest

X = np.arange(4.0)
QUEUE, EVENT, NUMBERS, BYTES = (queue.Queue(), threading.Event(), array.array("d", [1.0]), bytearray(1))
VARIABLE, TEXT, CONFIG = contextvars.ContextVar("v", default=1), io.StringIO(), ConfigParser()
FIELD = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
NUMBER, SHARED = ctypes.c_double(1.0), multiprocessing.Value("d", 1.0)
CONFIG["s"] = {"v": "1"}
COUNTS = [itertools.count(), itertools.count()]


class Graph:
    """As packages have it: a container whose nodes its methods count."""

    def __init__(self):
        self.nodes, self.scale = {}, 1.0

    def __len__(self):
        return len(self.nodes)

    def __contains__(self, node):
        return node in self.nodes

    def add(self):
        self.nodes[len(self.nodes)] = None


class Solver:
    def __init__(self):
        self.steps, self.rate = [], 0.5

    def count_steps(self):
        return len(self.steps)

    def add(self):
        self.steps.append(1)


Graph.__module__ = Solver.__module__ = "numpy.models"
GRAPH, SOLVER, HOLDER = Graph(), Solver(), SimpleNamespace(solver=Solver())


def change_environment():
    os.environ["PROFUSE_TEST_NUMBER"] = str(float(os.environ["PROFUSE_TEST_NUMBER"]) + 1)


def change_variable():
    VARIABLE.set(VARIABLE.get() + 1)


def change_number(numbers):
    numbers[0] += 1


def change_value(number):
    number.value += 1


def change_field(field):
    field[1] += 1


def toggle():
    EVENT.clear() if EVENT.is_set() else EVENT.set()


CASES = {
    "length": (lambda x: x * len(GRAPH), GRAPH.add),
    "contains": (lambda x: x * (3 in GRAPH), GRAPH.add),
    "method": (lambda x: x * SOLVER.count_steps(), SOLVER.add),
    "method of an attribute": (lambda x: x * HOLDER.solver.count_steps(), HOLDER.solver.add),
    "queue": (lambda x: x * QUEUE.qsize(), lambda: QUEUE.put(1)),
    "event": (lambda x: x * EVENT.is_set(), toggle),
    "variable": (lambda x: x * VARIABLE.get(), change_variable),
    "configuration": (lambda x: x * CONFIG.getint("s", "v"), lambda: CONFIG.set("s", "v", "3")),
    "array": (lambda x: x * NUMBERS[0], lambda: change_number(NUMBERS)),
    "bytes": (lambda x: x + sum(BYTES), lambda: change_number(BYTES)),
    "environment": (lambda x: x * float(os.environ["PROFUSE_TEST_NUMBER"]), change_environment),
    "getenv": (lambda x: x * float(getenv("PROFUSE_TEST_NUMBER")), change_environment),
    "folder": (lambda x: x * os.path.exists(os.getcwd()), lambda: None),
    "number of C": (lambda x: x * NUMBER.value, lambda: change_value(NUMBER)),
    "array of C": (lambda x: x * FIELD[1], lambda: change_field(FIELD)),
    "shared number": (lambda x: x * SHARED.value, lambda: change_value(SHARED)),
    "text": (lambda x: x * TEXT.tell(), lambda: TEXT.write("a")),
}


# What Python code computes is compared by what it reads, with its lines seen to run.
COMPARED = frozenset(
    {"length", "contains", "method", "method of an attribute", "configuration", "environment", "getenv", "event"}
)


@pytest.mark.parametrize("case", CASES)
def test_it_is_read_at_each_call(case, monkeypatch):
    monkeypatch.setenv("PROFUSE_TEST_NUMBER", "1")
    function, change = CASES[case]
    jitted = pf.jit(function, unsupported="python")
    for _ in range(5):
        np.testing.assert_array_equal(jitted(X), function(X))
        jitted.wait()
        change()
    if case in COMPARED:
        assert jitted.state().counters["traces"] > 1
    else:
        assert jitted.state().tier == "python"
        assert re.search("nobody can compare|not known to be pure", jitted.explain())


def test_iterators_go_on():
    def next_of(count):
        return lambda x: x * next(count)

    jitted, plain = pf.jit(next_of(COUNTS[0]), unsupported="python"), next_of(COUNTS[1])
    for _ in range(5):
        np.testing.assert_array_equal(jitted(X), plain(X))


def test_arguments_too():
    def scaled(x, graph):
        return x * len(graph)

    jitted, graph = pf.jit(scaled, unsupported="python"), Graph()
    for _ in range(4):
        np.testing.assert_array_equal(jitted(X, graph), scaled(X, graph))
        graph.add()


def test_graphs_are_refused_with_a_sentence():
    with pytest.raises(pf.TraceError, match=r"NUMBERS, a array, whose state nobody can compare"):
        pf.jit(CASES["array"][0], unsupported="raise")(X)


def test_attributes_of_settings():
    settings = argparse.Namespace(rate=0.5)
    by_name = pf.jit(lambda x: x * settings.rate, unsupported="python")
    as_argument = pf.jit(lambda x, settings: x * settings.rate, unsupported="python")
    for _ in range(4):
        for _ in range(3):
            np.testing.assert_array_equal(by_name(X), X * settings.rate)
            np.testing.assert_array_equal(as_argument(X, settings), X * settings.rate)
            by_name.wait(), as_argument.wait()
        settings.rate += 1
    assert by_name.state().tier == as_argument.state().tier == "optimized"
    assert as_argument.state().counters["traces"] == 1


def test_what_stays_the_same_is_a_constant():
    half = Fraction(1, 2)

    @pf.jit(unsupported="python")
    def scaled(x):
        return x * float(half.limit_denominator(5)) * SOLVER.rate

    for _ in range(4):
        np.testing.assert_array_equal(scaled(X), X * 0.25)
        scaled.wait()
    assert scaled.state().tier == "optimized"
