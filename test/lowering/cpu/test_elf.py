"""Objects placed in memory without LLVM's linker, and which of them are left to it."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import subprocess
import sys

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.lowering.cpu import elf, loader
from profuse.lowering.cpu.codegen import object_code
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target


def compiled(text):
    return object_code(text, host_target(), "verify")


def refuse(name):
    raise elf.Unsupported(name)


def test_calls_addresses_constants_and_data():
    """Each kind of relocation and of section that is placed; data is written to, and zero."""
    code = compiled(
        """
        @zero = dso_local global [3 x i64] zeroinitializer
        @seven = dso_local global i64 7
        @where = dso_local global ptr @seven
        declare double @cos(double)
        define dso_local double @f(double %x) nounwind {
          %p = load ptr, ptr @where
          store i64 9, ptr %p
          %n = load i64, ptr @seven
          %m = load i64, ptr @zero
          %s = add i64 %n, %m
          %d = sitofp i64 %s to double
          %c = call double @cos(double %x)
          %y = fadd double %c, 0.125
          %r = fadd double %y, %d
          ret double %r
        }
        """
    )
    mapped = elf.map_object(code, ("f", "zero"), loader._outside)
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(mapped.symbols["f"])
    assert f(0.5) == np.cos(0.5) + 0.125 + 9
    (ctypes.c_int64 * 3).from_address(mapped.symbols["zero"])[0] = 5
    assert f(0.0) == 1.125 + 14


@pytest.mark.parametrize("op", ["exp", "matmul"])
def test_kernels_do_not_need_llvms_linker(monkeypatch, op):
    monkeypatch.setattr(loader, "_link", refuse)
    a, b = np.ones((2, 8), np.float32), np.ones((8, 8), np.float32)
    g = Graph(tensor("n", 8), tensor(8, 8))
    x, y = g.inputs
    result = g.exp(g.add(x, x)) if op == "exp" else g.matmul(x, y)
    kernel = Kernel(compile_program(g.returning(result), host_target()))
    expected = np.exp(a + a) if op == "exp" else a @ b
    np.testing.assert_allclose(kernel(a, b)[0], expected, rtol=1e-6)


def test_what_it_cannot_place_is_for_llvm():
    code = compiled("@x = thread_local global i32 3\ndefine i32 @f() { %x = load i32, ptr @x ret i32 %x }")
    with pytest.raises(elf.Unsupported):
        elf.map_object(code, ("f",), lambda name: 8)
    with pytest.raises(elf.Unsupported, match="no symbol h"):
        elf.map_object(compiled("define void @f() { ret void }"), ("h",), refuse)
    with pytest.raises(elf.Unsupported, match="g"):
        elf.map_object(compiled("declare void @g()\ndefine void @f() { call void @g() ret void }"), ("f",), refuse)


def test_the_stack_can_be_unwound_through_code():
    code = compiled("define i32 @f(i32 %x) { %y = mul i32 %x, %x ret i32 %y }")
    function_of = ctypes.CDLL("libgcc_s.so.1")._Unwind_FindEnclosingFunction
    function_of.argtypes, function_of.restype = (ctypes.c_void_p,), ctypes.c_void_p
    first, second = (elf.map_object(code, ("f",), refuse, unwind=True) for _ in range(2))
    for mapped in (first, second):
        assert function_of(mapped.symbols["f"] + 2) == mapped.symbols["f"]
    at = first.symbols["f"]
    del first, mapped
    assert function_of(at + 2) is None
    assert function_of(second.symbols["f"] + 2) == second.symbols["f"]
    plain = elf.map_object(code, ("f",), refuse)
    assert function_of(plain.symbols["f"] + 2) is None


def test_damaged_objects_are_refused():
    code = compiled("define i32 @f(i32 %x) nounwind { %y = mul i32 %x, %x ret i32 %y }")
    for cut in range(0, len(code), 7):
        with pytest.raises(elf.Unsupported):
            elf.map_object(code[:cut], ("f",), refuse)
    for at in range(64, len(code) - 8, 8):  # damage may go unnoticed, but does not crash here
        spoilt = code[:at] + struct.pack("<Q", 0x7FFFFFFF7FFFFFFF) + code[at + 8 :]
        with contextlib.suppress(elf.Unsupported, OSError):
            elf.map_object(spoilt, ("f",), refuse)


def test_memory_is_given_back():
    script = """
import re, sys
from profuse.lowering.cpu import elf
code = sys.stdin.buffer.read()
def size(): return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1])
for k in range(3000):
    elf.map_object(code, ("f",), lambda name: 0)
    if k == 100: before = size()
assert size() - before < 2000
"""
    code = compiled("define i32 @f(i32 %x) nounwind { %y = mul i32 %x, %x ret i32 %y }")
    subprocess.run([sys.executable, "-c", script], input=code, check=True)
