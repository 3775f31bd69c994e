"""Launches one kernel: buffers of its arguments, and waves of blocks one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from mlir import ir

from .actions import action_of
from .device import local_memory
from .faults import Coordinates, KernelFault, SimtError
from .grid import Wave
from .machine import Machine
from .memory import WIDEST, Buffer, MemRef
from .program import Program, decode, instructions
from .types import dtype_of, part_of, storage_dtype

WAVE_THREADS = 1 << 15  # bounds the memory of a run: every value has a row per thread
MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_SHARED, MOST_SHARED_IN_ALL = 48 << 10, 227 << 10  # bytes per block: static, with dynamic


def empty(shape: Sequence[int], dtype: Any, name: str = "output", unit: int = 0) -> MemRef:
    """Global memory that nothing has written yet, as a 1-D memref.

    Args:
        shape, dtype: of the array it holds, C-contiguous. A complex number is its two parts.
        name: for messages.
        unit: bytes tracked together; 0 = an element.
    """
    dtype, shape = np.dtype(dtype), tuple(shape)
    if dtype.kind == "c":
        dtype, shape = part_of(dtype), (*shape, 2)
    dtype = storage_dtype(dtype)
    count = int(np.prod(tuple(shape), dtype=int))
    buffer = Buffer(name, "global", count * dtype.itemsize, unit=unit or dtype.itemsize)
    return MemRef(buffer, dtype, (count,))


def holding(array: np.ndarray, name: str = "input", writable: bool = False) -> MemRef:
    """Global memory with the elements of ``array`` where its strides put them.

    Element 0 is the array's; what lies between strided elements counts as never written.  The
    address is as far from a multiple of 16 as the array's own.
    """
    if array.dtype.kind == "c":
        part = part_of(array.dtype)
        strides = (*array.strides, part.itemsize)
        array = np.lib.stride_tricks.as_strided(array.real, (*array.shape, 2), strides)
    dtype = storage_dtype(array.dtype)
    steps = [(n - 1) * s if n else 0 for n, s in zip(array.shape, array.strides, strict=True)]
    before = -sum(s for s in steps if s < 0)
    span = before + sum(s for s in steps if s > 0) + array.itemsize if array.size else 0
    start = (array.ctypes.data - before) % WIDEST
    buffer = Buffer(name, "global", span, unit=array.itemsize, misalignment=start)
    offsets = np.full(array.shape, before, np.int64)
    for axis, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        offsets += (np.arange(n) * stride).reshape(n, *(1,) * (array.ndim - axis - 1))
    places = offsets.reshape(-1) // array.itemsize
    buffer.raw.view(dtype)[places] = np.ascontiguousarray(array).reshape(-1).view(dtype)
    buffer.defined[places] = True
    buffer.wholly_defined = places.size * array.itemsize == span
    buffer.writable = writable
    if before:
        return MemRef(buffer, dtype, offset=before)
    return MemRef(buffer, dtype, (span // array.itemsize,))


def contents(ref: MemRef, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """The array that global memory holds; raises KernelFault if an element was never written."""
    buffer, dtype = ref.buffer, np.dtype(dtype)
    size = int(np.prod(tuple(shape), dtype=int)) * dtype.itemsize
    known = buffer.defined[ref.offset // buffer.unit : (ref.offset + size) // buffer.unit]
    if not known.all():
        first = int(np.argmin(known)) * buffer.unit // dtype.itemsize
        missing = int((~known).sum()) * buffer.unit // dtype.itemsize
        what = f"{missing} of {size // dtype.itemsize} elements of {buffer.name} were never written"
        raise KernelFault("uninitialised", f"{what}, the first at index {first}")
    data = buffer.raw[ref.offset : ref.offset + size].copy()
    return data.view(dtype).reshape(tuple(shape))


def run_kernel(
    func: ir.Operation | Program,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[MemRef | np.ndarray | int | float | bool],
    shared_bytes: int = 0,
) -> None:
    """Run a ``gpu.func`` over a grid of blocks.

    Args:
        func: the function, or what `decode` made of it.
        grid, block: up to three sizes each, x first.
        args: for memrefs, global memory (`empty`, `holding`) or an array that is only read; for
            scalars, numbers.
        shared_bytes: dynamic workgroup memory per block.

    Raises:
        KernelFault: at the first thing that the device leaves undefined.
        SimtError: an op is not emulated, or the arguments do not fit.
    """
    program = func if isinstance(func, Program) else decode(func)
    grid, block = _three(grid), _three(block)
    _check_launch(program, grid, block, shared_bytes)
    if len(args) != program.inputs:
        raise SimtError(f"@{program.name} takes {program.inputs} arguments, not {len(args)}")
    given = [
        _argument(arg, type_, f"argument {number} of @{program.name}")
        for number, (arg, type_) in enumerate(zip(args, program.argument_types, strict=False))
    ]
    memory = {id(a.buffer): a.buffer for a in given if isinstance(a, MemRef)}
    written = {id(given[k].buffer) for k in program.written if k < program.inputs}
    for key in written:
        memory[key].track_races()
    blocks = int(np.prod(grid))
    at_once = max(WAVE_THREADS // int(np.prod(block)), 1)
    try:
        for first in range(0, blocks, at_once):
            wave = Wave(grid, block, first, min(at_once, blocks - first))
            shared = _shared(program, wave, shared_bytes) if shared_bytes else None
            local = [_local(type_, wave) for type_ in program.argument_types[program.inputs :]]
            Machine(program, wave, [*given, *local], shared, action_of).run()
    finally:
        for buffer in memory.values():
            buffer.ledger = None


def _check_launch(program: Program, grid: Coordinates, block: Coordinates, shared_bytes: int) -> None:
    """Raise SimtError for a launch that the driver would refuse."""
    where = f"@{program.name}"
    if min(block) < 1 or int(np.prod(block)) > 1024:
        raise SimtError(f"{where}: a block of {block} threads; 1 to 1024 are possible")
    if program.block is not None and program.block != block:
        raise SimtError(f"{where}: a block of {block} threads, compiled for {program.block}")
    if min(grid) < 1 or any(n > most for n, most in zip(grid, MOST_BLOCKS, strict=True)):
        raise SimtError(f"{where}: a grid of {grid} blocks; 1 to {MOST_BLOCKS} are possible")
    shared = sum(
        int(np.prod(type_.shape)) * dtype_of(type_).itemsize
        for type_ in program.argument_types[program.inputs :]
        if "workgroup" in str(type_.memory_space)
    )
    if shared > MOST_SHARED or shared + shared_bytes > MOST_SHARED_IN_ALL:
        raise SimtError(f"{where}: {shared} bytes of workgroup memory and {shared_bytes} dynamic")


def _three(sizes: Sequence[int]) -> Coordinates:
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def _argument(arg: Any, type_: ir.Type, where: str) -> MemRef | np.ndarray:
    if not isinstance(type_, ir.MemRefType):
        if isinstance(arg, MemRef | np.ndarray):
            raise SimtError(f"{where} is {type_}, but memory was passed")
        return np.array([arg]).astype(dtype_of(type_))
    ref = holding(arg, where) if isinstance(arg, np.ndarray) else arg
    if not isinstance(ref, MemRef):
        raise SimtError(f"{where} is {type_}, but {arg!r} was passed")
    stored = dtype_of(type_)
    # Integers may stand for the bits of anything, such as bf16 where it is converted by hand.
    same_bits = stored.kind == "i" and stored.itemsize == ref.dtype.itemsize
    if type_.rank != 1 or (stored != ref.dtype and not same_bits):
        raise SimtError(f"{where} is {type_}, but {ref} was passed")
    return replace(ref, dtype=stored)


def _local(type_: ir.Type, wave: Wave) -> MemRef:
    if "workgroup" in str(type_.memory_space):
        return local_memory(wave, type_, "workgroup", "workgroup memory")
    return local_memory(wave, type_, "private", "private memory")


def _shared(program: Program, wave: Wave, size: int) -> Buffer:
    """Dynamic workgroup memory, tracked in units of the smallest element that views of it have."""
    sizes = [
        dtype_of(each.op.results[0].type).itemsize for each in instructions(program.code) if each.name == "memref.view"
    ]
    buffer = Buffer("dynamic workgroup memory", "workgroup", size, wave.count, min(sizes, default=1))
    buffer.track_races()
    return buffer
