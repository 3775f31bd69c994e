"""Loops with independent rounds on several threads: what is shared, with the bits of one thread."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import profuse as pf
import pytest
import shared_programs
from internals import executor_of
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.pool_block import block, set_chunk_work
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import CHECKED, CHUNK, GENERATION, LAUNCH, supports
from shared_programs import ARGUMENTS, DEPENDENT

THREADS = (1, 2, 3, 7)
SIZES = (6, 7, 8, 9, 10)  # after which kernels serve all sizes
pytestmark = [
    pytest.mark.optimised,
    pytest.mark.skipif(not supports(host_target().triple), reason="no pool of threads on this system"),
]


@pytest.fixture(autouse=True)
def small_chunks():
    """Loops that are long enough for two chunks have many."""
    set_chunk_work(CHECKED)
    yield
    set_chunk_work(CHUNK)
    kernel_threads.use_threads(1)


def _jitted(name, *sizes):
    """A program that has been called with arguments of these sizes until it runs in kernels."""
    function = getattr(shared_programs, name)
    jitted = pf.jit(function)
    for size in sizes:
        args = _args(name, size)
        for _ in range(3):
            jitted(*args)
            jitted.wait()
    return jitted


def _args(name, size):
    rng = np.random.default_rng(size)
    return (rng.random((size, size)),) if name in DEPENDENT else ARGUMENTS[name](rng, size)


def _launches(jitted, args):
    """How many launches of the pool a call makes on two threads."""
    assert kernel_threads.use_threads(2)
    before = block()[GENERATION]
    jitted(*args)
    return block()[GENERATION] - before


def _on_threads(jitted, args):
    found = []
    for count in THREADS:
        assert kernel_threads.use_threads(count)
        found.append(np.asarray(jitted(*args)))
    return found


_PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
def _backwards(_pool, part, array, count, _grain):
    """A launch in place of the pool's: each round is a chunk, and the last one is the first."""
    for number in reversed(range(count)):
        _PART(part)(array, number, number + 1)


def _backward(jitted, args):
    kernel_threads.use_threads(1)
    block()[LAUNCH] = ctypes.cast(_backwards, ctypes.c_void_p).value
    try:
        return np.asarray(jitted(*args))
    finally:
        block()[LAUNCH] = 0


def _check(jitted, name, size):
    args = _args(name, size)
    counters = jitted.state().counters
    before = counters["kernel_launches"], counters["evaluated_ops"]
    found = [*_on_threads(jitted, args), _backward(jitted, args)]
    counters = jitted.state().counters
    assert counters["kernel_launches"] == before[0] + len(found)
    assert counters["evaluated_ops"] == before[1]
    assert counters["voided_launches"] == 0
    assert len({result.tobytes() for result in found}) == 1
    expected = getattr(shared_programs, name)(*args)
    np.testing.assert_allclose(found[0], expected, rtol=1e-11, atol=1e-12)
    assert _launches(jitted, args)


@pytest.mark.parametrize("name", ["stencil", "softmax"])
def test_known_sizes(name):
    jitted = _jitted(name, 300)
    (artifact,) = executor_of(jitted).result.kernels.values()
    assert artifact.shared_steps
    _check(jitted, name, 300)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_same_bits_on_any_number_of_threads(name):
    jitted = _jitted(name, *SIZES)
    _check(jitted, name, 40)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["stencil", "distances", "softmax", "symmetric"])
def test_arguments_with_gaps(name):
    jitted = pf.jit(getattr(shared_programs, name))
    for size in (*SIZES, 40):
        (x,) = _args(name, size)
        x = np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
        for _ in range(3):
            found = jitted(x)
            jitted.wait()
    assert _launches(jitted, (x,))
    expected = getattr(shared_programs, name)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_array_equal(_backward(jitted, (x,)), found)


@pytest.mark.parametrize("name", DEPENDENT)
def test_rounds_that_depend_on_others(name):
    jitted = _jitted(name, *SIZES)
    args = _args(name, 90)
    assert f"a loop runs on one thread: {DEPENDENT[name]}" in jitted.explain()
    assert _launches(jitted, args) <= 1  # the array of zeros
    expected = getattr(shared_programs, name)(*args)
    for found in (jitted(*args), _backward(jitted, args)):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [0, 3000, -1])
@pytest.mark.parametrize("name", ["gathered", "sparse"])
def test_a_forbidden_round_voids_the_run(name, place):
    jitted = _jitted(name, *SIZES)
    args = _args(name, 40)
    assert _launches(jitted, args)
    where = args[1]
    where[place] = 40
    for count in THREADS:
        assert kernel_threads.use_threads(count)
        voided = jitted.state().counters["voided_launches"]
        with pytest.raises(IndexError):
            jitted(*args)
        assert jitted.state().counters["voided_launches"] == voided + 1
    where[place] = 0
    np.testing.assert_allclose(jitted(*args), getattr(shared_programs, name)(*args), rtol=1e-12)


def test_no_round_of_a_void_run_goes_on_for_ever():
    jitted = pf.jit(shared_programs.unending)
    table = np.array([0.25, 1.0])
    for size in (*SIZES, 4000):
        where = np.zeros(size, np.int64)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(table, where), np.full(size, 0.25))
            jitted.wait()
    assert _launches(jitted, (table, where))
    where[:] = 1
    where[0] = 2  # Python raises here
    for count in THREADS:
        assert kernel_threads.use_threads(count)
        voided = jitted.state().counters["voided_launches"]
        with pytest.raises(IndexError):
            jitted(table, where)
        assert jitted.state().counters["voided_launches"] == voided + 1


def test_calls_from_several_threads():
    jitted = _jitted("forces", *SIZES)
    args = _args("forces", 90)
    assert _launches(jitted, args)
    assert kernel_threads.use_threads(3)
    expected = jitted(*args)
    found = []

    def call():
        found.extend(jitted(*args) for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for result in found:
        np.testing.assert_array_equal(result, expected)


def test_short_loops_stay_whole():
    set_chunk_work(CHUNK)
    jitted = _jitted("distances", 9)
    (artifact,) = executor_of(jitted).result.kernels.values()
    assert artifact.shared_steps == 0
    assert not _launches(jitted, _args("distances", 9))
    jitted = _jitted("distances", *SIZES)
    assert not _launches(jitted, _args("distances", 9))
    assert _launches(jitted, _args("distances", 100))
