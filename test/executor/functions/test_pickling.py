"""Jitted functions in pickles: by name as functions are, by value where cloudpickle wants them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import profuse as pf
import pytest
from internals import FOLDER

PARENT = str(Path(pf.__file__).parents[1])
MAIN = '''
import multiprocessing, pickle, sys
import cloudpickle, numpy as np, profuse as pf

W = np.arange(4.0)

@pf.jit(strategy=[("dynamic", 3)], background=False, name="mine", donate="x")
def layer(x, *, times: float = 2.0):
    """Told."""
    return np.tanh(x) * W + times

@pf.jit
def again(x, n):
    return x if n == 0 else again(x, n - 1) * 2 + layer(x)

class Model:
    @pf.jit
    def method(self, x):
        return x * 3

def local(k):
    @pf.jit(background=False)
    def inner(x):
        return layer(x) * k
    return inner

squared = pf.jit(lambda x: x * x, name="squared")
plain = pf.jit(np.tanh)
EVERY = [layer, again, Model.method, local(2.0), squared, plain, Model().method]
'''
DUMP = MAIN + "\nwith open(sys.argv[1], 'wb') as file:\n    cloudpickle.dump(EVERY, file)\n"
LOAD = """
import pickle, sys, numpy as np, profuse as pf
with open(sys.argv[1], "rb") as file:
    layer, again, method, inner, squared, plain, bound = pickle.load(file)
x, w = np.ones(4), np.arange(4.0)
want = np.tanh(x) * w + 2
for _ in range(3):
    np.testing.assert_allclose(layer(x.copy()), want)
    np.testing.assert_allclose(layer(x.copy(), times=3.0), want + 1)
    np.testing.assert_allclose(again(x, 1), x * 2 + want)
    np.testing.assert_allclose(method(None, x), x * 3)
    np.testing.assert_allclose(inner(x), want * 2)
    np.testing.assert_allclose(squared(x * 3), x * 9)
    np.testing.assert_allclose(plain(x), np.tanh(x))
    np.testing.assert_allclose(bound(x), x * 3)
from internals import options_of
o = options_of(layer)
print(o.strategy, o.background, o.name, o.donate)
print(layer.__name__, layer.__qualname__, layer.__module__, layer.__doc__, again.__qualname__)
print(layer.state().counters["compiles"], again.__wrapped__.__globals__["again"].__qualname__)
"""


def run(*command, folder):
    env = {**os.environ, "PYTHONPATH": f"{PARENT}:{FOLDER}"}
    done = subprocess.run([sys.executable, *command], env=env, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_functions_of_main_are_pickled_by_value(tmp_path):
    """Loaded by a process that has no such main; options are those of the original."""
    (tmp_path / "script.py").write_text(DUMP)
    run("script.py", "it", folder=tmp_path)
    (tmp_path / "script.py").unlink()
    options, names, state = run("-c", LOAD, "it", folder=tmp_path)
    assert options == "(('dynamic', 3),) False mine ('x',)"
    assert names == "layer layer __main__ Told. again"
    assert state == "2 again"


SPAWN = (
    MAIN
    + """
if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(EVERY[:3])) == EVERY[:3]
    for protocol in range(6):
        assert pickle.loads(pickle.dumps(layer, protocol)) is layer
    assert b"tanh" not in pickle.dumps(layer)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(layer, [np.ones(4), np.zeros(4)])
    np.testing.assert_allclose(found, [layer(np.ones(4)), layer(np.zeros(4))])
    print("done")
"""
)


def test_plain_pickles_and_spawned_processes_find_functions_by_name(tmp_path):
    (tmp_path / "script.py").write_text(SPAWN)
    assert run("script.py", folder=tmp_path) == ["done"]


REGISTERED = """
import sys, cloudpickle, mine
if len(sys.argv) > 2:
    cloudpickle.register_pickle_by_value(mine)
assert cloudpickle.loads(cloudpickle.dumps(mine.f)) is mine.f or len(sys.argv) > 2
with open(sys.argv[1], "wb") as file:
    cloudpickle.dump(mine.f, file)
"""
FOUND = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    try:
        f = pickle.load(file)
        print(f(2.0), f.__qualname__, f.__module__)
    except ModuleNotFoundError:
        print("not found")
"""


def test_functions_of_modules_are_pickled_by_name_unless_registered_by_value(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text("import profuse as pf\n@pf.jit\ndef f(x):\n    return x * 2\n")
    run("-c", REGISTERED, "name", folder=tmp_path)
    run("-c", REGISTERED, "value", "registered", folder=tmp_path)
    assert run("-c", FOUND, "name", folder=tmp_path) == ["4.0 f mine"]
    module.unlink()
    assert run("-c", FOUND, "name", folder=tmp_path) == ["not found"]
    assert run("-c", FOUND, "value", folder=tmp_path) == ["4.0 f mine"]


def test_functions_without_a_name_are_no_plain_pickles():
    f = pf.jit(lambda x: x * 2)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(f)
    np.testing.assert_array_equal(cloudpickle.loads(cloudpickle.dumps(f))(np.ones(2)), [2.0, 2.0])
