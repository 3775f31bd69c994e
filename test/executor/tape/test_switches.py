"""Switches of gradient mode as decorators: each call, and each step of a generator, has its own scope."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError

X = pf.array(np.ones(3), requires_grad=True)


def is_on():
    return (X * 2).requires_grad


def test_calls_in_several_threads_leave_each_its_own_mode():
    """The one that comes first leaves last, or first, beside one of a thread whose mode is off."""
    entered, may_leave = [threading.Event() for _ in "ab"], [threading.Event() for _ in "ab"]
    modes = {}

    @pf.no_grad()
    def evaluated(number):
        entered[number].set()
        assert may_leave[number].wait(10)
        return is_on()

    def run(number, outer):
        with pf.enable_grad() if outer else pf.no_grad():
            inside = evaluated(number)
            modes[number] = inside, is_on()

    for order in ((0, 1), (1, 0)):
        for event in (*entered, *may_leave):
            event.clear()
        threads = [threading.Thread(target=run, args=(k, k == 0)) for k in range(2)]
        for number, thread in enumerate(threads):
            thread.start()
            assert entered[number].wait(10)
        for number in order:
            may_leave[number].set()
            threads[number].join(10)
        assert modes == {0: (False, True), 1: (False, False)}


@pytest.mark.parametrize(("scope", "inside"), [(pf.no_grad, False), (pf.no_grad(), False), (pf.enable_grad, True)])
def test_what_a_generator_runs_is_in_the_scope_and_what_runs_between_is_not(scope, inside):
    @scope
    def steps(first):
        """Text."""
        modes = [is_on()]
        sent = yield first
        modes.append((sent, is_on()))
        try:
            yield modes
        except KeyError:
            modes.append(is_on())
        try:
            yield 3
        finally:
            modes.append(is_on())
        return "the end"

    with pf.no_grad() if inside else pf.enable_grad():
        run = steps(7)
        assert next(run) == 7 and is_on() is not inside
        modes = run.send("sent")
        assert modes == [inside, ("sent", inside)] and is_on() is not inside
        assert run.throw(KeyError()) == 3 and is_on() is not inside
        with pytest.raises(StopIteration) as end:
            next(run)
        assert end.value.value == "the end" and is_on() is not inside
        closed = steps(7)
        next(closed), (modes := closed.send("")), closed.throw(KeyError())
        closed.close()
        assert modes[-1] is inside and is_on() is not inside
    assert steps.__name__ == "steps" and steps.__doc__ == "Text."


def test_an_error_in_a_generator_ends_the_scope():
    @pf.no_grad
    def fails():
        yield 1
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        list(fails())
    assert is_on()


def test_coroutine_functions_are_refused():
    async def waits():
        """Nothing."""

    async def yields():
        yield 1

    for function in (waits, yields):
        with pytest.raises(ArgumentError, match=r"with pf.no_grad\(\): in it"):
            pf.no_grad(function)
