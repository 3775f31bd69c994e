"""Modules of the user's that a function reads or imports, and classes: what they hold may change, and be changed."""

from __future__ import annotations

import collections
import importlib
import sys
import types

import numpy as np
import profuse as pf
import pytest

CALLS = 6


class Kept:
    """A class that keeps what its objects share."""

    class Inner:
        kept: list = []

    pair = ([], [])
    queue = collections.deque()

    def method(self):
        pass

    @property
    def of_a_queue(self):
        self.queue.append(1)
        return len(self.queue)

    @property
    def of_a_module(self):
        settings.kept.append(1)
        return len(settings.kept)

    @property
    def of_an_import(self):
        from profuse_test_settings import gain

        return gain

    @property
    def of_an_imported_list(self):
        import profuse_test_settings

        profuse_test_settings.kept.append(1)
        return len(profuse_test_settings.kept)

    @property
    def of_the_table(self):
        return sys.modules["profuse_test_settings"].gain


settings = types.ModuleType("profuse_test_settings")
kept = Kept()


@pytest.fixture(autouse=True)
def start(monkeypatch):
    """A module and a class as they are before a program, and the default that the other tests turn off."""

    def begin():
        vars(settings).update(gain=2.0, kept=[], table={"n": 0}, weights=np.zeros(3), inner=types.SimpleNamespace(n=0))
        vars(settings).pop("late", None)
        for held in (*Kept.pair, Kept.queue, Kept.Inner.kept):
            held.clear()
        Kept.method.kept = {}

    monkeypatch.setitem(sys.modules, "profuse_test_settings", settings)
    with pf.knobs.override(unsupported="python"):
        yield begin


def observed():
    """What programs may have changed."""
    held = {k: v for k, v in vars(settings).items() if not k.startswith("__")}
    return repr((held, Kept.pair, Kept.queue, Kept.Inner.kept, Kept.method.kept))


def outcomes(function, begin, change):
    """What calls give, and leave."""
    begin()
    texts = []
    for k in range(CALLS):
        if k == CALLS // 2:
            change()
        texts.append(f"{function(np.arange(3.0))!r} {observed()}")
    return texts


def check(function, begin, change=lambda: None, is_native=False):
    """Compare calls with and without `jit`."""
    jitted = pf.jit(function, background=False)
    assert outcomes(jitted, begin, change) == outcomes(function, begin, change)
    if is_native:
        assert not jitted.state().counters["python_calls"], jitted.explain()


def appends(x):
    settings.kept.append(1)
    return x * len(settings.kept)


def counts(x):
    settings.table["n"] += 1
    settings.inner.n += 1
    return x * settings.table["n"]


def enters(x):
    settings.table[len(settings.table)] = 1
    return x * len(settings.table)


def adds(x):
    settings.weights[0] += 1
    return x * settings.weights


def asks_by_text(x):
    getattr(settings, "ke" + "pt").append(1)
    return x


def asks_the_table(x):
    vars(settings)["kept"].append(1)
    return x


def in_a_function_that_begins_later(x):
    y = x * settings.gain
    appends(x)
    return y


def evaluates(x):
    eval("settings.kept.append(1)")
    return x * len(settings.kept)


def executes(x):
    exec("settings.inner.n += 1; settings.weights[0] += 1")
    return x * settings.inner.n + settings.weights


def evaluates_a_method(x):
    eval("settings.kept.append")(1)
    return x * len(settings.kept)


def evaluates_what_it_has_written(x):
    settings.weights[0] += 1
    return eval("x * settings.weights.sum()")


@pytest.mark.parametrize(
    "function",
    [
        appends,
        counts,
        enters,
        adds,
        asks_by_text,
        asks_the_table,
        in_a_function_that_begins_later,
        evaluates,
        executes,
        evaluates_a_method,
        evaluates_what_it_has_written,
        lambda x: x * kept.of_a_module,
        lambda x: x * kept.of_an_imported_list,
    ],
)
def test_what_modules_hold_is_changed_by_each_call(function, start):
    check(function, start)


def test_numbers_and_arrays_of_modules_are_inputs_and_results(start):
    check(counts, start, is_native=True)
    check(adds, start, is_native=True)


def appends_to_a_queue(x):
    Kept.queue.append(1)
    return x * len(Kept.queue)


def appends_in_a_tuple(x):
    Kept.pair[1].append(1)
    return x * len(Kept.pair[1])


def appends_to_an_inner_class(x):
    Kept.Inner.kept.append(1)
    return x * len(Kept.Inner.kept)


def enters_into_a_method(x):
    Kept.method.kept[len(Kept.method.kept)] = 1
    return x


@pytest.mark.parametrize(
    "function",
    [
        appends_to_a_queue,
        appends_in_a_tuple,
        appends_to_an_inner_class,
        enters_into_a_method,
        lambda x: x * kept.of_a_queue,
    ],
)
def test_what_classes_hold_is_changed_by_each_call(function, start):
    check(function, start)


def imports(x):
    import profuse_test_settings

    return x * profuse_test_settings.gain


def imports_a_name(x):
    from profuse_test_settings import gain

    return x * gain


def imports_an_array(x):
    from profuse_test_settings import weights

    return x + weights


def imports_by_text(x):
    return x * importlib.import_module("profuse_test_settings").gain


def calls_the_import(x):
    return x * __import__("profuse_test_settings").gain


def imports_what_may_be_absent(x):
    try:
        from profuse_test_settings import late
    except ImportError:
        late = 1.0
    return x * late


def imports_and_counts(x):
    import profuse_test_settings as settings

    settings.gain += 1
    return x * settings.gain


def bind():
    settings.gain, settings.weights, settings.late = 5.0, np.ones(3), 7.0


IMPORTS = (
    imports,
    imports_a_name,
    imports_an_array,
    imports_by_text,
    calls_the_import,
    imports_what_may_be_absent,
    imports_and_counts,
    lambda x: x * kept.of_an_import,
)


@pytest.mark.parametrize("function", IMPORTS)
def test_imported_names_are_bound_anew(function, start):
    check(function, start, bind, is_native=True)


@pytest.mark.parametrize("function", [imports, imports_a_name, lambda x: x * kept.of_an_import])
def test_another_module_takes_the_place(function, start, monkeypatch):
    def change():
        monkeypatch.setitem(sys.modules, "profuse_test_settings", types.SimpleNamespace(gain=9.0))

    plain = outcomes(function, start, change)
    monkeypatch.setitem(sys.modules, "profuse_test_settings", settings)
    assert outcomes(pf.jit(function, background=False), start, change) == plain


def imports_what_is_not_there(x):
    try:
        import profuse_test_absent
    except ImportError:
        return x
    return x * profuse_test_absent.gain


def test_a_module_that_is_not_there_may_come(start, monkeypatch):
    def change():
        monkeypatch.setitem(sys.modules, "profuse_test_absent", types.SimpleNamespace(gain=3.0))

    plain = outcomes(imports_what_is_not_there, start, change)
    monkeypatch.delitem(sys.modules, "profuse_test_absent")
    jitted = pf.jit(imports_what_is_not_there, background=False)
    assert outcomes(jitted, start, change) == plain
    assert "import of profuse_test_absent fails" in jitted.explain()


def test_modules_are_run_by_python(tmp_path, monkeypatch):
    """What a module does when it is imported first would be undone with the trace."""
    package = tmp_path / "profuse_test_package"
    package.mkdir()
    (package / "__init__.py").write_text("registry = []\n")
    (package / "part.py").write_text("from . import registry\nregistry.append('part')\nGAIN = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import profuse_test_package as outer

    def f(x):
        from profuse_test_package import part

        return x * part.GAIN + len(outer.registry)

    jitted = pf.jit(f, background=False)
    for _ in range(CALLS):
        assert jitted(np.ones(1)) == 3
    assert outer.registry == ["part"]
    assert "profuse_test_package.part is imported for the first time" in jitted.explain()
    later = pf.jit(f, background=False)
    for gain in range(CALLS):
        sys.modules["profuse_test_package.part"].GAIN = gain
        assert later(np.ones(1)) == jitted(np.ones(1)) == gain + 1
    assert not later.state().counters["python_calls"]


@pytest.mark.parametrize(
    "function", [lambda x: x * sys.modules["profuse_test_settings"].gain, lambda x: x * kept.of_the_table]
)
def test_the_table_of_modules_is_pythons(function, start):
    check(function, start, bind)
    jitted = pf.jit(function)
    jitted(np.ones(3))
    assert "sys.modules is read" in jitted.explain()
