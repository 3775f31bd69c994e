"""Compiles one expansion into a loop over arrays, runs it and measures its error in ulp."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.dialects import math as math_dialect
from mlir.passmanager import PassManager
from profuse.lowering import math
from profuse.lowering.cpu.codegen import KERNEL
from profuse.lowering.cpu.loader import load_code
from profuse.lowering.emit.loop_ops import Ops
from profuse.lowering.emit.rare import version_loops
from profuse.lowering.libllvm import LLVMModule
from profuse.lowering.target import host_target

LOWER = (
    "builtin.module(convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,"
    "convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)
_LOADED: list[object] = []  # dropping one unmaps its code


@dataclass
class Kernel:
    """A compiled `out[i] = f(in0[i], …)`, with what it was compiled to."""

    llvm_ir: str
    assembly: str
    address: int
    dtype: np.dtype
    arity: int

    def __post_init__(self) -> None:
        pointers = [ctypes.c_void_p] * (self.arity + 1)
        self.call = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(self.address)

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        arrays = tuple(np.ascontiguousarray(a, self.dtype) for a in arrays)
        out = np.empty_like(arrays[0])
        self.call(*[a.ctypes.data for a in (*arrays, out)], out.size)
        return out


def loop(name: str, element: str, arity: int, emit: Callable[..., ir.Value]) -> ir.Module:
    arguments = "".join(f"%p{i}: !llvm.ptr {{llvm.noalias}}, " for i in range(arity))
    loads = "".join(
        f"%q{i} = llvm.getelementptr %p{i}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {element}\n"
        f"%v{i} = llvm.load %q{i} : !llvm.ptr -> {element}\n"
        for i in range(arity)
    )
    inputs = ", ".join(f"%v{i}" for i in range(arity))
    types = ", ".join([element] * arity)
    module = ir.Module.parse(f"""
        func.func private @body({types}) -> {element}
        func.func @kernel({arguments}%out: !llvm.ptr {{llvm.noalias}}, %n: i64) {{
          %c0 = arith.constant 0 : i64
          %c1 = arith.constant 1 : i64
          scf.for %i = %c0 to %n step %c1 : i64 {{
            {loads}
            %r = func.call @body({inputs}) : ({types}) -> {element}
            %q = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
            llvm.store %r, %q : {element}, !llvm.ptr
          }}
          return
        }}""")
    calls: list[ir.Operation] = []

    def find(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            calls.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(find)
    (call,) = calls
    with ir.InsertionPoint(call), call.location:
        value = emit(*call.operands)
    call.results[0].replace_all_uses_with(value)
    call.erase()
    module.body.operations[0].erase()
    return module


@cache
def compile_function(
    name: str,
    dtype: object,
    arity: int = 1,
    inline: bool = True,
    slow_subnormals: bool = False,
    fused: bool | None = None,
) -> Kernel:
    """The expansion of `math.<name>`, or with `inline=False` the operation itself (libm).

    ``fused``: None = as for this machine.
    """
    dtype = np.dtype(dtype)
    element = {4: "f32", 8: "f64"}[dtype.itemsize]

    def emit(*values: ir.Value) -> ir.Value:
        if not inline:
            return getattr(math_dialect, name)(*values)
        value = math.expand(
            name, list(values), slow_subnormals=slow_subnormals, fused=host_target().fused if fused is None else fused
        )
        assert value is not None, f"no expansion of {name} for {element}"
        return value

    with ir.Context(), ir.Location.unknown():
        module = loop(name, element, arity, emit)
        version_loops(Ops(), module.body.operations[0].operation)
        module.operation.verify()
        PassManager.parse(LOWER).run(module.operation)
        text = llvm_dialect.translate_module_to_llvmir(module.operation)
    with LLVMModule(text, host_target()) as compiled:
        compiled.run(KERNEL)
        optimised = str(compiled)
        code, assembly = compiled.object_code(), compiled.assembly()
    loaded = load_code(code, "kernel")
    _LOADED.append(loaded)
    return Kernel(optimised, assembly, loaded.address, dtype, arity)


def ulp_error(result: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|result - reference| in units of the result format at the reference; inf on a wrong kind.

    `reference` is in a wider format. A value beyond the largest finite number by less than a unit
    may round either way; NaN must meet NaN.
    """
    info = np.finfo(result.dtype)
    wide = reference.dtype.type
    limit = wide(2) * wide(2) ** (info.maxexp - 1)
    with np.errstate(all="ignore"):
        exponent = np.frexp(reference)[1]
        unit = np.ldexp(wide(1), np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
        close = np.abs(
            np.where(np.isinf(result), np.copysign(limit, result), result.astype(wide))
            - np.clip(reference, -limit, limit)
        )
        error = np.where(np.isinf(reference) & np.isinf(result), 0, close / unit)
        error = np.where(np.isinf(reference) & (result == np.copysign(limit, reference)), 0, error)
        error = np.where(np.signbit(result) != np.signbit(reference), np.inf, error)
    nans = np.isnan(reference) | np.isnan(result)
    return np.where(nans, np.where(np.isnan(reference) & np.isnan(result), 0, np.inf), error)
