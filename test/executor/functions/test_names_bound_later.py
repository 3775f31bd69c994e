"""What code finds under a name may become another object: attributes that hide those of classes, modules."""

import importlib
import sys
import types

import numpy as np
import profuse as pf
import pytest

X = np.arange(3.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


class Anew:
    """A descriptor that gives another object at each look-up."""

    def __get__(self, instance, owner):
        return [5.0]


class Filter:
    rate = 2.0
    parts = Anew()

    @staticmethod
    def static(x):
        return x * 2

    @classmethod
    def of_class(cls, x):
        return x * cls.rate

    def method(self, x):
        return x * self.rate


HIDING = {
    "static": (lambda f, x: f.static(x), lambda x: x - 1),
    "of_class": (lambda f, x: f.of_class(x), lambda x: x - 1),
    "method": (lambda f, x: f.method(x), lambda x: x - 1),
    "rate": (lambda f, x: f.method(x), 7.0),
    "parts": (lambda f, x: f.parts[0] * x, [3.0]),
}


@pytest.mark.parametrize("is_argument", [True, False])
@pytest.mark.parametrize("name", HIDING)
def test_attributes_that_hide_those_of_the_class(name, is_argument):
    function, hides = HIDING[name]
    holder = Filter()
    call = function if is_argument else (lambda _, x: function(holder, x))
    jitted = pf.jit(call)
    for is_hidden in (False, True, False):
        if is_hidden:
            setattr(holder, name, hides)
        elif name in vars(holder):
            delattr(holder, name)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(holder, X), function(holder, X))
            jitted.wait()
    assert jitted.state().counters["python_calls"] == 0
    assert jitted.state().counters["traces"] in (2, 3)


def checked(function, module):
    """Compare calls before and after what the module holds is bound anew."""
    jitted = pf.jit(function)
    for name, value in ((None, None), ("scaled", lambda x: x - module.rate), ("rate", 9.0)):
        if name:
            setattr(module, name, value)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(X), function(X))
            jitted.wait()
    assert jitted.state().counters["python_calls"] == 0


SOURCE = "rate = 2.0\ndef scaled(x): return x * rate\n"


def test_modules_without_a_file():
    module = types.ModuleType("made_by_hand")
    exec(SOURCE, vars(module))
    checked(lambda x: module.scaled(x) + module.rate, module)


def test_modules_in_folders_without_init(tmp_path, monkeypatch):
    (tmp_path / "outer_folder").mkdir()
    (tmp_path / "outer_folder" / "inner_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    outer = importlib.import_module("outer_folder")
    module = importlib.import_module("outer_folder.inner_module")
    monkeypatch.setattr(sys, "path", sys.path)
    checked(lambda x: outer.inner_module.scaled(x) + outer.inner_module.rate, module)
