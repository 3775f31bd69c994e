"""Run the linalg form of a graph with stock MLIR passes only: slow, and independent of our own
scheduler and code generation, so that `to_linalg` is judged on its own.
"""

import ctypes

import numpy as np
from profuse.dialect.ir.dtypes import BOOL, dtype_of
from profuse.dialect.ir.op import Op, op_named
from profuse.dialect.ir.op import result as OpResult
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.symbolic import evaluate
from profuse.dialect.ir.types import ScalarType, TensorType, type_of
from profuse.lowering.linalg.to_linalg import to_linalg

PIPELINE = (
    "builtin.module(canonicalize,"
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map},"
    "func.func(convert-linalg-to-loops),expand-strided-metadata,lower-affine,canonicalize,"
    "convert-scf-to-cf,func.func(llvm-request-c-wrappers),"
    "arith-expand{include-bf16=1},convert-math-to-funcs,convert-math-to-llvm,convert-math-to-libm,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def _descriptor(address, shape, strides):
    rank = len(shape)

    class MemRef(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("data", ctypes.c_void_p)]
        _fields_ += [("offset", ctypes.c_int64)]
        if rank:
            _fields_ += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]

    if rank:
        arrays = (ctypes.c_int64 * rank)(*shape), (ctypes.c_int64 * rank)(*strides)
        return MemRef(address, address, 0, *arrays)
    return MemRef(address, address, 0)


def _memref(array):
    strides = [s // array.itemsize for s in array.strides]
    return _descriptor(array.ctypes.data, array.shape, strides)


def _result(descriptor, shape, dtype):
    array = np.empty(shape, dtype.numpy)
    count = array.size
    if count:
        raw = ctypes.string_at(descriptor.data + descriptor.offset * dtype.itemsize, array.nbytes)
        array = np.frombuffer(raw, dtype.numpy).reshape(shape).copy()
    return array


def run(function, args, symbols=None, violates=False):
    """Results of a `Program` on arrays and Python numbers.

    Args:
        symbols: the sizes' values.
        violates: whether the function must report that something forbidden happened.
    """
    from mlir import ir
    from mlir.execution_engine import ExecutionEngine
    from mlir.passmanager import PassManager

    symbols = dict(symbols or {})
    module = to_linalg(function)
    func = module.body.operations[0].operation
    names = [ir.StringAttr(s).value for s in ir.ArrayAttr(func.attributes["profuse.symbols"])]
    shapes = _result_shapes(function, symbols)
    results = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).results
    may_violate = len(results) > len(shapes)
    assert may_violate or not violates
    if may_violate:
        shapes.append(((), BOOL))
    with module.context:
        PassManager.parse(PIPELINE).run(module.operation)
        engine = ExecutionEngine(module, opt_level=0)
    # Functions may write into their arguments after bufferization: give them copies.
    arrays = [np.array(a, order="C", copy=True) for a in args]
    inputs = [_memref(a) for a in arrays]
    outputs = [_descriptor(0, s, s) for s, _ in shapes]
    if len(outputs) == 1:
        block = outputs[0]
    else:
        fields = [(f"r{k}", type(d)) for k, d in enumerate(outputs)]
        block = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    pointers = [ctypes.pointer(block), *map(ctypes.pointer, inputs)]
    packed = [ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in pointers]
    numbers = [ctypes.c_int64(symbols[n]) for n in names]
    packed += [ctypes.cast(ctypes.pointer(n), ctypes.c_void_p) for n in numbers]
    call = engine.lookup(function.name)
    call((ctypes.c_void_p * len(packed))(*packed))
    if len(outputs) == 1:
        return _result(block, *shapes[0])
    found = [_result(getattr(block, f"r{k}"), *s) for k, s in enumerate(shapes)]
    if may_violate:
        assert bool(found.pop()) == violates
    return found[0] if len(found) == 1 else tuple(found)


def _result_shapes(function, symbols):
    """Shape and dtype of each result, by inference."""
    types = {v: function.type_of(v) for v in function.inputs}
    for instr in function.body.instrs:
        found = instr.op.infer([types[v] for v in instr.operands], instr.op.full_attrs(instr.attrs))
        types.update(zip(instr.results, found, strict=True))
    out = []
    for value in function.outputs:
        type_ = types[value]
        if isinstance(type_, ScalarType):
            type_ = TensorType(type_.dtype, ())
        out.append((tuple(evaluate(d, symbols) for d in type_.shape), type_.dtype))
    return out


def run_op(op, *args, types=None, symbols=None, violates=False, **attrs):
    """One op on arrays and Python numbers, with the casts that `insert-casts` would insert."""
    p = Program("kernel")
    types = types or [type_of(a) for a in args]
    p.body.args = operands = tuple(p.new_value(t) for t in types)
    cls = op if isinstance(op, type) else op_named(op)
    wanted = cls.operand_dtypes(types, cls.full_attrs(attrs)) or (None,) * len(types)
    cast, cast_types = [], []
    for value, type_, dtype in zip(operands, types, wanted, strict=True):
        # A Python number becomes a 0-d array even if it has the dtype already.
        if dtype is not None and (dtype is not type_.dtype or isinstance(type_, ScalarType)):
            result = p.new_value()
            p.body.instrs.append(Instr(op_named("cast"), (value,), (result,), {"dtype": dtype}))
            value, type_ = result, TensorType(dtype, getattr(type_, "shape", ()))
        cast.append(value)
        cast_types.append(type_)
    results = tuple(p.new_value() for _ in cls.infer(cast_types, cls.full_attrs(attrs)))
    p.body.instrs.append(Instr(cls, tuple(cast), results, attrs))
    p.body.outputs = results
    return run(p, args, symbols, violates)


def run_lowering(lower, result, *args, types=None, symbols=None):
    """``lower(b, *tensors)`` on arrays; ``result``: the type it gives."""
    types = types or [type_of(a) for a in args]
    result = result if isinstance(result, TensorType) else TensorType(dtype_of(np.dtype(result[0])), result[1])

    class Lowered(Op):
        out = OpResult()

        @classmethod
        def infer(cls, types, attrs):
            return (result,)

        @classmethod
        def lower(cls, b, attrs, types, *tensors):
            return lower(b, *tensors)

    return run_op(Lowered, *args, types=types, symbols=symbols)


def run_scalar(fn, dtype, *args):
    """``fn`` elementwise on 1-d arrays."""
    result = TensorType(dtype_of(np.dtype(dtype)), args[0].shape)
    return run_lowering(lambda b, *xs: b.pointwise(fn, xs, result), result, *args)
