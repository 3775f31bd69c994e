"""Ops that move behind the chunks of their results (R3.23 to R3.26), on programs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from profuse.dialect.analysis.chunk_motion import broadcast_strides, lower_broadcasting_chunks
from profuse.dialect.ir.dtypes import F32, F64
from profuse.dialect.ir.program import Instr
from profuse.dialect.ir.types import FLOAT_SCALAR, INTS, TensorType, type_of
from profuse.dialect.ops.manipulation.split import Chunk
from profuse.dialect.ops.nn.copies import BroadcastingChunk
from test_device_partition import CUDA, Graph, valid

HALF = TensorType(F32, (4, 4), (8, 1), "cuda:0")
ROW = TensorType(F32, (8,), "contiguous", "cuda:0")
COLUMN = TensorType(F32, (4, 1), "contiguous", "cuda:0")


def chunked(*types: TensorType, op: str = "mul") -> tuple[Graph, int, int]:
    """op(x, y) of arguments of these types, cut in halves, the halves added up; the graph, product and sum."""
    g = Graph(*types)
    p = g(op, *g.block.args, type=CUDA, label="p")
    a, b = g("chunk", p, type=(HALF, HALF), axis=1, chunks=2)
    return g, p, g("add", a, b, type=HALF, label="sum")


def names(g: Graph) -> list[str]:
    return [instr.op.name for instr in g.block.instrs]


def run(g: Graph, *arrays: Any) -> list[Any]:
    env = dict(zip(g.block.args, arrays, strict=True))
    for instr in g.block.instrs:
        out = instr.op.evaluate(instr.op.full_attrs(instr.attrs), *(env[v] for v in instr.operands))
        env.update(
            zip(instr.results, out if isinstance(out, tuple) and len(instr.results) > 1 else (out,), strict=True)
        )
    return [env[v] for v in g.block.outputs]


def test_r3_23_a_product_is_computed_chunk_by_chunk():
    g, _, total = chunked(CUDA, ROW)
    g.returns(total)
    arrays = np.arange(32, dtype=np.float32).reshape(4, 8), np.arange(8, dtype=np.float32)
    (before,) = run(g, *arrays)
    partition = g.partition()
    assert partition.chunks_moved == 1
    assert names(g) == ["broadcasting_chunk", "mul", "mul", "add"]
    assert [len(node.members) for node in partition.nodes] == [1, 3], "one group"
    np.testing.assert_array_equal(run(g, *arrays)[0], before)
    assert lower_broadcasting_chunks(g.program, g.block) == 1
    valid(g.program)
    assert "broadcasting_chunk" not in names(g)
    np.testing.assert_array_equal(run(g, *arrays)[0], before)


def test_r3_23_nothing_moves_with_the_option_off():
    g, _, total = chunked(CUDA, ROW)
    assert g.returns(total).partition(chunks=False).chunks_moved == 0
    assert names(g) == ["mul", "chunk", "add"]


def test_r3_23_a_foreign_use_of_a_chunk_keeps_it():
    g = Graph(CUDA, ROW)
    a, b = g("chunk", g("mul", *g.block.args), type=(HALF, HALF), axis=1, chunks=2)
    c = g("add", a, b, type=HALF)
    wide = g("concatenate", b, type=HALF, axis=0)
    assert g.returns(c, wide).partition().chunks_moved == 0
    g, _, total = chunked(CUDA, ROW)
    assert g.returns(total, g.block.instrs[1].results[0]).partition().chunks_moved == 0, "the caller reads it"


def test_r3_23_a_foreign_use_of_the_producer_keeps_it():
    g, p, total = chunked(CUDA, ROW)
    assert g.returns(total, p).partition().chunks_moved == 0


def test_r3_23_ops_that_are_not_elementwise_stay():
    g = Graph(CUDA)
    a, b = g("chunk", g("cumsum", *g.block.args, axis=1), type=(HALF, HALF), axis=1, chunks=2)
    assert g.returns(g("add", a, b, type=HALF)).partition().chunks_moved == 0


def test_r3_23_operands_that_are_written_keep_it():
    g = Graph(CUDA, ROW)
    x, y = g.block.args
    own = g("neg", x)
    a, b = g("chunk", g("mul", own, y), type=(HALF, HALF), axis=1, chunks=2)
    g("add_", own, x)
    assert g.returns(g("add", a, b, type=HALF), own).partition().chunks_moved == 0


def test_r3_23_producers_on_other_devices_stay():
    there = replace(CUDA, device="cuda:1")
    g = Graph(there)
    (x,) = g.block.args
    a, b = g("chunk", g("tanh", x, type=there), type=(HALF, HALF), axis=1, chunks=2)
    assert g.returns(g("add", a, b, type=HALF)).partition().chunks_moved == 0


def test_r3_24_operands_take_the_place_of_the_slot_and_are_not_repeated():
    """chunk(x · (x + y)): x is an operand already when the sum moves; results come operand by operand."""
    g = Graph(CUDA, ROW)
    x, y = g.block.args
    p = g("mul", g("add", x, y, label="s"), x)
    a, b = g("chunk", p, type=(HALF, HALF), axis=1, chunks=2)
    g.returns(g("sub", a, b, type=HALF))
    arrays = np.arange(32, dtype=np.float32).reshape(4, 8), np.arange(8, dtype=np.float32)
    (before,) = run(g, *arrays)
    assert g.partition().chunks_moved == 2
    assert names(g) == ["broadcasting_chunk", "add", "add", "mul", "mul", "sub"]
    pieces = g.block.instrs[0]
    assert set(pieces.operands) == {x, y} and len(pieces.operands) == 2 and len(pieces.results) == 4
    shapes = [g.program.type_of(r).shape for r in pieces.results]
    assert shapes == [(4, 4)] * 4
    np.testing.assert_array_equal(run(g, *arrays)[0], before)


def test_r3_24_numbers_are_shared_by_all_copies():
    g = Graph(CUDA, FLOAT_SCALAR)
    x, s = g.block.args
    a, b = g("chunk", g("mul", x, s), type=(HALF, HALF), axis=-1, chunks=2)
    g.returns(g("add", a, b, type=HALF))
    assert g.partition().chunks_moved == 1
    assert [i.operands[1] for i in g.block.instrs if i.op.name == "mul"] == [s, s]
    assert g.block.instrs[0].operands == (x,)


def test_r3_24_queries_of_sizes_ask_the_operands():
    g, p, total = chunked(CUDA, ROW)
    sizes = g("sizes", p, type=INTS)
    g.returns(total, sizes)
    assert g.partition().chunks_moved == 1
    assert names(g)[:4] == ["sizes", "sizes", "broadcast_sizes", "broadcasting_chunk"]
    assert run(g, np.ones((4, 8), np.float32), np.ones(8, np.float32))[1] == (4, 8)
    g = Graph(CUDA)
    p = g("tanh", *g.block.args)
    sizes = g("sizes", p, type=INTS)
    a, b = g("chunk", p, type=(HALF, HALF), axis=1, chunks=2)
    g.returns(g("add", a, b, type=HALF), sizes)
    assert g.partition().chunks_moved == 1
    assert names(g) == ["sizes", "broadcasting_chunk", "tanh", "tanh", "add"], "the only operand has the same sizes"
    assert g.block.instrs[0].operands == g.block.args


def test_r3_24_one_size_that_is_asked_for_keeps_it():
    g, p, total = chunked(CUDA, ROW)
    one = g("dim", p, type=type_of(1), axis=0)
    assert g.returns(total, one).partition().chunks_moved == 0


def test_r3_25_types_of_new_chunks():
    g, _, total = chunked(CUDA, ROW)
    g.returns(total).partition()
    of_x, _, of_row, _ = (g.program.type_of(r) for r in g.block.instrs[0].results)
    assert of_x == TensorType(F32, (4, 4), (8, 1), "cuda:0")
    assert of_row == TensorType(F32, (4, 4), (0, 1), "cuda:0")
    copies = [g.program.type_of(i.results[0]) for i in g.block.instrs if i.op.name == "mul"]
    assert [t.strides for t in copies] == [None, None], "results of ops, no views any more"


def test_r3_25_the_example():
    assert broadcast_strides(TensorType(F32, (3, 1), (1, 1)), (4, 1, 3, 3)) == (0, 1, 1, 0)
    assert broadcast_strides(TensorType(F32, (3, 1)), (4, 1, 3, 3)) is None, "strides are not known"
    assert broadcast_strides(TensorType(F32, (3, 1), (1, 1)), None) is None


@given(st.data())
def test_r3_25_strides_are_those_of_numpy(data):
    """Those of chunks of what is broadcast, at full rank, wherever an axis has more than one element."""
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=4, min_side=1, max_side=4))
    shape, result = shapes.input_shapes[0], shapes.result_shape
    x = np.zeros(tuple(2 * n for n in shape), np.float64)[tuple(slice(None, None, 2) for _ in shape)]
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    try:
        wide = np.broadcast_to(x, result)
    except ValueError:
        assume(False)
    axis = data.draw(st.integers(0, len(result) - 1))
    chunks = data.draw(st.integers(1, result[axis]))
    assume(-(-result[axis] // chunks) * (chunks - 1) < result[axis])
    steps = broadcast_strides(type_of(x), result)
    assert steps is not None and len(steps) == len(result)
    pieces = Chunk.evaluate(Chunk.full_attrs({"axis": axis, "chunks": chunks}), wide)
    for piece in pieces if isinstance(pieces, tuple) else (pieces,):
        assert [s for s, n in zip(steps, piece.shape, strict=True) if n > 1] == [
            s // 8 for s, n in zip(piece.strides, piece.shape, strict=True) if n > 1
        ]


@pytest.mark.parametrize("shapes", [[(4, 8)], [(4, 8), (8,)], [(1, 8), (4, 1), (3, 1, 1)]])
@pytest.mark.parametrize(("axis", "chunks"), [(-1, 2), (-1, 3), (-2, 2)])
def test_r3_26_leftover_chunks_are_broadcast_and_cut_one_by_one(shapes, axis, chunks):
    arrays = [np.random.default_rng(k).standard_normal(shape) for k, shape in enumerate(shapes)]
    expected = [
        piece
        for wide in np.broadcast_arrays(*arrays)
        for piece in Chunk.evaluate(Chunk.full_attrs({"axis": axis, "chunks": chunks}), wide)
    ]
    g = Graph(*[TensorType(F64)] * len(arrays))
    results = tuple(g.program.new_value(TensorType(F64)) for _ in expected)
    g.block.instrs.append(Instr(BroadcastingChunk, g.block.args, results, {"axis": axis, "chunks": chunks}))
    g.returns(*results)
    assert lower_broadcasting_chunks(g.program, g.block) == 1
    valid(g.program)
    assert {i.op for i in g.block.instrs} & {BroadcastingChunk, Chunk} == {Chunk}
    for a, b in itertools.zip_longest(run(g, *arrays), expected):
        np.testing.assert_array_equal(a, b)


def test_r3_26_what_stays_is_left_alone():
    g = Graph(CUDA)
    results = tuple(g.program.new_value(HALF) for _ in range(2))
    kept = Instr(BroadcastingChunk, g.block.args, results, {"axis": 1, "chunks": 2})
    g.block.instrs.append(kept)
    assert lower_broadcasting_chunks(g.program, g.block, {id(kept)}) == 0
    assert g.block.instrs == [kept]
