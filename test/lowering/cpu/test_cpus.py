"""Bits that do not depend on the CPU: docs/cpu-lowering.md says which.

Kernels for other CPUs run here, as far as the host has their instructions (`cpus`).
"""

import dataclasses
import functools

import cpus
import numpy as np
import pytest
from every_case import spread
from graphs import Graph, tensor
from native import built, same_bits
from profuse.dialect.ir.dtypes import F32, F64, dtype_named
from profuse.lowering.target import host_target

DTYPES = [F32, F64, *map(dtype_named, ("f16", "bf16", "c64"))]


def drawn(*shape, dtype=F32, seed=0):
    """Numbers of such different sizes that another order of additions has other bits."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3, shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.is_complex else x).astype(dtype.numpy)


@pytest.fixture(params=cpus.NAMES)
def cpu(request):
    """A target that this host can run."""
    return cpus.needed(request.param)


def reduced(op, *sizes, dtype=F32, axis=0, of=None):
    g = Graph(tensor(*sizes, dtype=dtype))
    (x,) = g.inputs
    x = x if of is None else of(g, x)
    return g.returning(getattr(g, op)(x, axes=(axis,), keepdims=False))


def squares(g, x):
    return g.mul(x, x)


def of_unit_length(g, x):
    return g.div(x, g.sqrt(g.sum(g.mul(x, x), axes=(1,), keepdims=True)))


# --- the order is NumPy's ------------------------------------------------------------------------

ROWS = [2, 3, 4, 5, 7, 8, 13, 16, 31]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 40])
def test_up_to_31_rows_are_added_in_order(columns, dtype, cpu):
    """Of more columns than seven any number of rows, and of any number if they are not known."""
    anywhere = built(reduced("sum", "n", "m", dtype=dtype), target=cpu)
    for rows in [*ROWS, 200] if columns > 7 else ROWS:
        program = reduced("sum", rows, columns, dtype=dtype)
        x = drawn(rows, columns, dtype=dtype, seed=rows)
        same_bits(program, x, target=cpu)
        same_bits(program, x, kernel=anywhere)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [31, 200, 1000])
def test_rows_of_unknown_columns_are_added_in_order(rows, cpu):
    program = reduced("sum", "n", "m")
    kernel = built(program, target=cpu)
    for columns in (2, 3, 7, 70):
        same_bits(program, drawn(rows, columns), kernel=kernel)


# --- the order is that of every CPU --------------------------------------------------------------


def bounded(g, x):
    """Exponentials, without infinities."""
    return g.exp(g.neg(g.abs(x)))


def sums():
    """Programs whose sums have orders that no vectors change, by name, with shapes of arrays."""
    for dtype in DTYPES:
        sizes = [(40, 2), (300, 3)]
        if dtype in (F32, F64):
            sizes += [(3, 2), (16, 3), (1000, 7), (90, 64)]
        for rows, columns in sizes:
            name, shape = f"{rows}x{columns}-{dtype}", (rows, columns)
            yield name, reduced("sum", rows, columns, dtype=dtype), [shape]
            if dtype is F32:
                yield f"any-{name}", reduced("sum", "n", columns), [shape]
    for dtype in (F32, F64):
        for of in (squares, bounded, of_unit_length):
            for shape in [(31, 5), (40, 2), (300, 3), (1000, 7)]:
                name = f"{of.__name__}-{shape}-{dtype}"
                yield name, reduced("sum", *shape, dtype=dtype, of=of), [shape]
        g = Graph(tensor(40, 3, dtype=dtype))
        y = squares(g, *g.inputs)
        yield f"stored-{dtype}", g.returning(y, g.sum(y, axes=(0,), keepdims=False)), [(40, 3)]
        g = Graph(tensor(30, 50, 3, dtype=dtype))
        program = g.returning(g.sum(*g.inputs, axes=(1,), keepdims=False))
        yield f"middle-{dtype}", program, [(30, 50, 3)]
        program = reduced("sum", 33, 7, dtype=dtype, axis=1, of=squares)
        yield f"short-rows-{dtype}", program, [(33, 7)]


def others():
    """Scans, products and extrema, in the same way."""
    shape = (33, 50)
    for dtype in (F32, F64):
        for axis in (0, 1):
            g = Graph(tensor(*shape, dtype=dtype))
            scan = g.returning(g.cumsum(*g.inputs, axis=axis))
            yield f"scan-{axis}-{dtype}", scan, [shape]
            for op in ("prod", "max", "min"):
                yield f"{op}-{axis}-{dtype}", reduced(op, *shape, dtype=dtype, axis=axis), [shape]
        for size in (3, 8):
            matrices = (9, size, size)
            g = Graph(tensor(*matrices, dtype=dtype), tensor(*matrices, dtype=dtype))
            yield f"matrices-{size}-{dtype}", g.returning(g.matmul(*g.inputs)), [matrices] * 2


def rows():
    """Sums along rows, whose order follows from the vectors."""
    for dtype in (F32, F64):
        for columns in (8, 12, 100, 1000):
            shape = (5, columns)
            for sizes in (shape, ("n", "m")):
                name = f"{sizes}-{columns}-{dtype}"
                yield name, reduced("sum", *sizes, dtype=dtype, axis=1, of=squares), [shape]


def bits(programs, target):
    """The bits of each program's results, by its name."""
    found = {}
    for name, program, shapes in programs:
        kernel = built(program, target=target)
        types = [dtype_named(spec.dtype) for spec in kernel.artifact.abi.inputs]
        found[name] = []
        for seed in range(2):
            args = [
                drawn(*shape, dtype=dtype, seed=seed + 10 * k)
                for k, (shape, dtype) in enumerate(zip(shapes, types, strict=True))
            ]
            found[name] += [result.tobytes() for result in kernel(*args)]
    return found


def different(some, others):
    return [name for name in some if some[name] != others[name]]


@functools.cache
def on_cpu(programs, target):
    """`bits` of a family of programs; of others than sums by default every second one."""
    return bits(programs() if programs is sums else spread(list(programs()), 2), target)


def on_the_first_cpu(programs):
    return on_cpu(programs, next(filter(None, map(cpus.target, cpus.NAMES))))


@pytest.mark.parametrize("programs", [sums, others])
def test_each_cpu_has_the_bits_of_the_others(programs, cpu):
    """All of these CPUs fuse products with sums; their vectors differ."""
    assert cpu.fused
    assert different(on_cpu(programs, cpu), on_the_first_cpu(programs)) == []


def test_rows_have_the_same_bits_with_the_same_instructions(cpu):
    """What LLVM knows of a CPU beside its instructions, as how long they take, changes nothing."""
    other = dataclasses.replace(host_target(), cpu=cpu.cpu)
    assert different(on_cpu(rows, other), on_cpu(rows, host_target())) == []
