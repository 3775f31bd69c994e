"""Converted code does what Python does where nothing is traced: results, effects, errors, lines."""

import inspect
import traceback

import pytest
import source_styles as styles
from profuse.dialect.importers.numpy.capture.method_calls import CALLEE, asks_source, with_callees
from profuse.dialect.importers.numpy.capture.scope import TraceScope
from profuse.dialect.importers.numpy.python.users_code import SOURCE
from profuse.dialect.importers.numpy.source.source import ConvertedSource
from profuse.dialect.importers.numpy.tracing.recorder import Policy, Recorder

ARGUMENTS = {"f_bool": [(1, 0), (0, 0)], "f_match": [([1, 2],), (0,)], "f_posonly": [(1, 2)]}
STYLES = [name for name in vars(styles) if name.startswith("f_")]


def converted(fn, branches=False):
    """The function with converted code, and what that asks."""
    rec = Recorder("test", [], fn)
    rec.policy = Policy()
    rec.scope = TraceScope(rec, fn)
    code = with_callees(fn, loops=True, branches=branches)
    space = {**fn.__globals__, SOURCE: ConvertedSource(rec), CALLEE: lambda x: x}
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    made = type(fn)(code, space, fn.__name__, fn.__defaults__, tuple(cells[v] for v in code.co_freevars))
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def outcome(fn, args):
    fn.__globals__["G"] = 3
    for cell in fn.__closure__ or ():
        cell.cell_contents = 10
    try:
        found = fn(*args)
        return repr(list(found) if inspect.isgenerator(found) else found)
    except Exception as error:
        return repr(error)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("name", STYLES)
def test_converted_functions_do_what_python_does(name, branches):
    fn = getattr(styles, name)
    made = converted(fn, branches)
    for args in ARGUMENTS.get(name, [(-1,), (0,), (2,), (5,)]):
        assert outcome(made, args) == outcome(fn, args)


def test_most_functions_with_loops_are_converted():
    loops = [n for n in STYLES if asks_source(with_callees(getattr(styles, n), loops=True))]
    assert len(loops) >= 11 and "f_for" in loops and "f_while_else" in loops
    # Generators, and functions without loops, are left alone.
    assert not {"f_gen", "f_elif", "f_ifexp", "f_lambda"} & {*loops}
    assert with_callees(styles.f_elif, loops=True) is styles.f_elif.__code__


def test_tracebacks_name_the_lines_of_the_source():
    def places(fn):
        try:
            fn(1)
        except ZeroDivisionError as error:
            return [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)]

    want, got = places(styles.f_error), places(converted(styles.f_error))
    assert want[-1] == got[-1] and len(want) == len(got)


def test_conversion_happens_once_per_code():
    assert with_callees(styles.f_for, loops=True) is with_callees(styles.f_for, loops=True)


def test_code_that_asks_for_its_variables_is_left_alone():
    def f(n):
        for _ in range(n):
            pass
        return sorted(locals())

    assert not asks_source(with_callees(f, loops=True))


def test_break_and_continue_at_the_end_of_branches():
    def f(x, n):
        out = []
        for i in range(n):
            if i == x:
                out.append("a")
                continue
            if i == x + 2:
                out.append("b")
                break
            out.append("c")
            out.append(i)
        else:
            out.append("else")
        k = 0
        while k < n:
            k += 1
            if k == x:
                if n > 4:
                    continue
                break
            out.append(k)
        return out, k

    made = converted(f)
    assert "stop1" in " ".join(made.__code__.co_varnames)
    for x in range(-2, 6):
        for n in range(7):
            assert made(x, n) == f(x, n)


def test_jumps_on_some_paths_of_a_branch():
    def f(n):
        out = []
        for i in range(n):
            if i % 7 == 0:
                out.append("a")
            elif i % 3 == 0:
                continue
            else:
                out.append("b")
            if i % 5 == 0:
                if i == 10:
                    break
            elif i % 5 == 1:
                continue
            out.append("c")
            if i % 2:
                out.append("d")
                continue
            out.append(i)
        return out

    made = converted(f)
    assert "stop1" in " ".join(made.__code__.co_varnames)
    assert [made(n) for n in range(16)] == [f(n) for n in range(16)]


def test_many_such_branches_stay_as_they_are():
    def f(n):
        total = 0
        for i in range(n):
            if i < 1:
                pass
            elif i == 2:
                continue
            if i < 2:
                pass
            elif i == 3:
                continue
            if i < 3:
                pass
            elif i == 4:
                continue
            if i < 4:
                pass
            elif i == 5:
                continue
            if i < 5:
                pass
            elif i == 6:
                break
            total += i
        return total

    made = converted(f)
    assert [made(n) for n in range(10)] == [f(n) for n in range(10)]
    assert not any("stop" in name for name in made.__code__.co_varnames)


def test_jumps_that_are_left_as_they_are():
    def f(n):
        total = 0
        for i in range(n):
            try:
                if i == 2:
                    continue
                if i == 5:
                    break
            finally:
                total += 1
            if i % 2:
                if i == 3:
                    break
                total += 10
            total += 100
        return total

    made = converted(f)
    assert [made(n) for n in range(8)] == [f(n) for n in range(8)]
    assert not any("stop" in name for name in made.__code__.co_varnames)
