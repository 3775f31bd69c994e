"""Ops on sizes in emitted code give what they give op by op, for all sizes that their tests let pass."""

import random
from itertools import chain

import profuse.dialect.ops.seldom  # noqa: F401
import pytest
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr
from profuse.dialect.ir.size_algebra import substitute
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType
from profuse.executor.dispatch.derived_sizes import DerivedSizes
from profuse.executor.dispatch.leaf_values import MadeValue
from profuse.executor.dispatch.number_values import KnownNumber, SizeNumber


def random_op(rng, rank):
    axis = rng.randrange(-rank, rank)
    return rng.choice(
        [
            ("broadcast_sizes", 2, {}),
            ("chunk_sizes", 1, {"axis": axis, "chunks": rng.randint(1, 3)}),
            ("reduction_sizes", 1, {"axes": (axis,), "keepdims": rng.random() < 0.5}),
            ("unsqueeze_sizes", 1, {"axes": (axis,)}),
            ("squeeze_sizes", 1, {"axes": (axis,)}),
            ("transpose_sizes", 1, {}),
            ("matmul_sizes", 2, {}),
            ("linear_sizes", 2, {}),
            ("concatenate_sizes", 2, {"axis": axis}),
            ("reshape_sizes", 1, {"shape": (-1,)}),
            ("dim_of", 1, {"axis": axis}),
            ("rank_of", 1, {}),
            ("size_of", 1, {}),
        ]
    )


def number(value, symbols):
    if isinstance(value, KnownNumber):
        return value.value
    assert isinstance(value, SizeNumber)
    return substitute(value.size, symbols)


def holds(test, symbols):
    kind, *sizes = test.field
    sizes = [substitute(size, symbols) for size in sizes]
    assert kind in ("same", "positive") and test.value == 1
    return sizes[0] == sizes[1] if kind == "same" else sizes[0] > 0


@pytest.mark.parametrize("seed", range(300))
def test_r3_29_sizes_of_symbols_are_those_of_numbers(seed):
    rng = random.Random(seed)
    rank = rng.randint(1, 3)
    name, count, attrs = random_op(rng, rank)
    op = op_named(name)
    names = [[f"s{k}_{axis}" for axis in range(rank)] for k in range(count)]
    derived, values = DerivedSizes(), {}
    ones = [[rng.random() < 0.2 for _ in range(rank)] for _ in range(count)]
    arrays = [MadeValue(None, tuple(map(symbol, own))) for own in names]
    derived.note_guard([TensorType(None, tuple(1 if one else None for one in own)) for own in ones], arrays)
    sizes = {k: array.sizes for k, array in enumerate(arrays)}
    results = tuple(range(10, 10 + len(op.results)))
    tests = derived.takes(Instr(op, tuple(range(count)), results, attrs), range(count), values, sizes)
    if tests is None:
        return  # op by op
    for _ in range(20):
        shapes = [tuple(1 if one else rng.randint(2, 4) for one in own) for own in ones]
        symbols = dict(zip(chain(*names), chain(*shapes), strict=True))
        if not all(holds(test, symbols) for test in tests):
            continue
        expected = op.evaluate(op.full_attrs(attrs), *shapes)
        expected = expected if len(op.results) > 1 else (expected,)
        for result, value in zip(results, expected, strict=True):
            if result in values:
                assert number(values[result], symbols) == value
            else:
                assert tuple(substitute(size, symbols) for size in sizes[result]) == value


def test_random_ops_are_taken():
    """What the test above compares is not nothing."""
    count = 0
    for seed in range(100):
        rng = random.Random(seed)
        name, operands, attrs = random_op(rng, 2)
        sizes = {k: (symbol(f"a{k}"), symbol(f"b{k}")) for k in range(operands)}
        results = (10, 11)[: len(op_named(name).results)]
        instr = Instr(op_named(name), tuple(range(operands)), results, attrs)
        count += DerivedSizes().takes(instr, range(operands), {}, sizes) is not None
    assert count > 60


def test_errors_are_left_to_python():
    instr = Instr(op_named("matmul_sizes"), (0, 1), (2,))
    assert DerivedSizes().takes(instr, (0, 1), {}, {0: (2, 3), 1: (4, 5)}) is None
    assert DerivedSizes().takes(Instr(op_named("dim_of"), (0,), (1,), {"axis": 4}), (0,), {}, {0: (2, 3)}) is None
