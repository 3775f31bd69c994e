"""Places of temporaries in the workspace: which of them share memory, and how much of it there is."""

import itertools
from types import SimpleNamespace

import pytest
from profuse.dialect.errors import LoweringError
from profuse.dialect.ir.symbolic import evaluate, symbol
from profuse.lowering.schedule.graph import Buffer, Tensor
from profuse.lowering.schedule.workspace import Life, place_buffers

A, B, C = map(symbol, "abc")
NOTHING = SimpleNamespace(opaque={}, strides={})


def placed(*buffers, graph=NOTHING):
    """The offsets of temporaries, given as elements of f32, first and last step, and the bytes of all."""
    lives = {}
    for number, (elements, first, last) in enumerate(buffers):
        owner = Tensor((elements,), "f32")
        owner.buffer = Buffer("workspace", number, "f32", (elements,), (1,))
        lives[owner] = Life(first, last)
    offsets, total = place_buffers(lives, graph)
    return [offsets[owner.buffer] for owner in lives], total


def test_incomparable_sizes_share_memory_one_after_the_other():
    (one, other), total = placed((A, 0, 1), (B, 2, 3))
    assert (one, other) == (0, 0)
    for a, b in itertools.product((1, 15, 16, 17, 400), repeat=2):
        assert evaluate(total, {"a": a, "b": b}) == -(-4 * max(a, b) // 64) * 64


def test_what_lives_at_once_lies_apart():
    buffers = ((A * B, 0, 2), (B * C, 1, 3), (A * C, 3, 4), (A, 4, 5), (C + 5, 2, 6))
    offsets, total = placed(*buffers)
    for sizes in itertools.product((1, 3, 16, 50), repeat=3):
        values = dict(zip("abc", sizes, strict=True))
        spans = [
            (evaluate(start, values), evaluate(start, values) + 4 * evaluate(elements, values))
            for start, (elements, _, _) in zip(offsets, buffers, strict=True)
        ]
        assert max(end for _, end in spans) <= evaluate(total, values)
        assert all(start % 64 == 0 for start, _ in spans)
        for one, other in itertools.combinations(range(len(buffers)), 2):
            if buffers[one][1] <= buffers[other][2] and buffers[other][1] <= buffers[one][2]:
                (low, high), (begin, end) = spans[one], spans[other]
                assert high <= begin or end <= low, (values, one, other)


def test_of_known_sizes_the_smallest_that_suffices_is_used_again():
    offsets, total = placed((1000, 0, 1), (100, 0, 1), (90, 2, 3), (1000, 2, 3))
    assert offsets[2] == offsets[1] and offsets[3] == offsets[0]
    assert total == 4032 + 448


def test_a_size_known_to_be_smaller_adds_nothing():
    _, total = placed((A * B * 2, 0, 1), (A * B, 2, 3))
    assert total == (8 * A * B + 63) // 64 * 64


def test_many_sizes_make_a_flat_expression():
    names = [symbol(f"n{k}") for k in range(40)]
    offsets, total = placed(*((name, 2 * k, 2 * k + 1) for k, name in enumerate(names)))
    assert set(offsets) == {0}
    values = {f"n{k}": 7 * k + 1 for k in range(40)}
    assert evaluate(total, values) == -(-4 * 274 // 64) * 64


def test_sizes_that_only_a_run_tells_are_refused():
    with pytest.raises(LoweringError, match="no closed form"):
        placed((A, 0, 1), graph=SimpleNamespace(opaque={"a": None}, strides={}))
