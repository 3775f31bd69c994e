"""Artifacts as plain values, and loading them."""

import gc
import subprocess
import sys

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.dialect.errors import InternalError
from profuse.lowering.abi import KernelABI, KernelArtifact, TensorSpec
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.cpu.loader import load, set_library_threads
from profuse.lowering.target import Target, host_target


def doubled(name="kernel"):
    g = Graph(tensor("n", 8), name=name)
    (x,) = g.inputs
    return compile_program(g.returning(g.add(x, x)), host_target())


def test_json_round_trip():
    artifact = doubled()
    again = KernelArtifact.from_json(artifact.to_json())
    assert again == artifact
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_array_equal(Kernel(again)(x)[0], x + x)


def test_abi():
    g = Graph(tensor("n", 8), tensor(8, "m", strides=(None, 1)))
    x, y = g.inputs
    abi = compile_program(g.returning(g.matmul(g.tanh(x), y)), host_target()).abi
    assert abi.symbols == {"n": (0, 0, 1), "m": (1, 1, 1)}
    assert abi.strides == ((1, 0),)
    assert [o.dims for o in abi.outputs] == [("n", "m")]
    assert abi.inputs[1].strides == ("?", "1")
    assert abi.workspace_size({"n": 3, "m": 5}) >= 3 * 8 * 4


def test_kernels_of_the_same_name_live_side_by_side():
    kernels = [Kernel(doubled()) for _ in range(3)]
    x = np.ones((2, 8), np.float32)
    for _ in range(2):
        for kernel in kernels:
            np.testing.assert_array_equal(kernel(x)[0], 2 * x)
        kernels.pop()
        gc.collect()


def test_missing_symbols_are_reported():
    artifact = doubled()
    wrong = KernelArtifact("k", artifact.object, "no_such_entry", artifact.abi)
    with pytest.raises(InternalError, match="does not link"):
        load(wrong)


def test_loading_imports_no_compiler():
    """A cached kernel runs without MLIR."""
    g = Graph(tensor(4, 4), tensor(4, 4))
    artifact = compile_program(g.returning(g.matmul(*g.inputs)), host_target())
    program = """
import sys, ctypes
import numpy as np
from profuse.lowering.abi import KernelArtifact
from profuse.lowering.cpu.loader import load
loaded = load(KernelArtifact.from_json(sys.stdin.read()))
a = np.arange(16, dtype=np.float32).reshape(4, 4)
out = np.empty_like(a)
slots = np.array([a.ctypes.data, a.ctypes.data, out.ctypes.data, 0], np.uint64)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address)(slots.ctypes.data)
assert (out == a @ a).all()
assert not any(m == "mlir" or m.startswith("mlir.") for m in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], input=artifact.to_json(), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_library_threads():
    set_library_threads(2)
    set_library_threads(1)


def test_values_are_hashable_and_plain():
    target = host_target()
    assert hash(Target(target.triple, target.cpu, target.features)) == hash(target)
    spec = TensorSpec("tensor", "f32", ("n",))
    assert KernelABI((spec,), (spec,), {"n": (0, 0)}, (), "4*n").workspace_size({"n": 3}) == 12
