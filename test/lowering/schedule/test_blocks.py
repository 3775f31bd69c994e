"""Products in blocks of rows: which ones, with how much memory, and the same results as without."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.ir.dtypes import F32, F64
from profuse.lowering.schedule.blocks import LEAST, ROWS


def softmax(g, x):
    last = (len(g.shape(x)) - 1,)
    e = g.exp(g.sub(x, g.max(x, axes=last, keepdims=True)))
    return g.div(e, g.sum(e, axes=last, keepdims=True))


def scores_of(g, q, k):
    rank = len(g.shape(q))
    return g.matmul(q, g.transpose(k, perm=(*range(rank - 2), rank - 1, rank - 2)))


def attention(queries, keys, mask=None, dtype=F32, between=None):
    """softmax(q @ k.T * 0.25 + mask) @ v; ``between``: another function of graph and scores."""
    shapes = [queries, keys, keys] + ([] if mask is None else [mask])
    g = Graph(*(tensor(*shape, dtype=dtype) for shape in shapes))
    q, k, v, *more = g.inputs
    scores = scores_of(g, q, k)
    if between is not None:
        return g.returning(g.matmul(between(g, scores), v))
    scores = g.mul(scores, g.number(0.25, dtype.numpy))
    for one in more:
        scores = g.add(scores, one)
    return g.returning(g.matmul(softmax(g, scores), v))


def numpy_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_attention(q, k, v, mask=0.0):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    return numpy_softmax(q @ np.swapaxes(k, -1, -2) * 0.25 + mask) @ v


def random(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def blocks(kernel):
    """The functions that run blocks of rows."""
    return set(re.findall(r"func.func @(\w+_blocks\d+)\(", kernel.stages["loops"]))


def calls(kernel):
    return len(re.findall(r"call @scipy_cblas_[sd]gem[mv]", kernel.stages["loops"]))


def symbols(shape, names):
    return [n if d != 1 else 1 for n, d in zip(names, shape, strict=True)]


BATCHES = {"one head": (), "heads": (6,), "batch": (2, 3), "batch of one": (1, 6)}


@pytest.mark.sampled(9, each=())
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 5])
def test_attention(rows, batch, symbolic):
    batch = BATCHES[batch]
    columns = 2200 if batch == () else 400
    queries, keys = (*batch, rows, 16), (*batch, columns, 16)
    names = ["a", "b"][: len(batch)]
    given = (queries, keys, (rows, columns))
    if symbolic:
        given = symbols(queries, [*names, "n", "d"]), symbols(keys, [*names, "m", "d"])
        given = (*given, symbols((rows, columns), "nm"))
    kernel = built(attention(*given))
    args = random(queries, keys, keys, (rows, columns))
    np.testing.assert_allclose(kernel(*args)[0], numpy_attention(*args), rtol=2e-4, atol=2e-6)
    assert kernel.artifact.library_calls == calls(kernel) == (2 if rows > 1 else calls(kernel))
    assert len(blocks(kernel)) == int(rows > 1)


def test_memory_is_that_of_the_blocks_of_all_chunks():
    """Without blocks, there would be all scores and all weights: 2 * 8 * 512 * 512 floats."""
    shape = (8, 512, 64)
    kernel = built(attention(shape, shape))
    assert kernel.artifact.abi.workspace == str(16 * ROWS * 512 * 4)
    assert kernel.artifact.shared_steps == 1
    dynamic = built(attention("bnd", "bnd")).artifact.abi
    sizes = {"b": 32, "n": 2048, "d": 64}
    by_name = dict(zip(dynamic.symbols, sizes.values(), strict=True))
    rows_of_weights = 16 * 2048 * 4  # one per chunk, for what does not fit on the stack for sure
    assert dynamic.workspace_size(by_name) == 16 * ROWS * 2048 * 4 + rows_of_weights


@pytest.mark.sampled(3)
@needs_pool
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("queries", [(5, 2 * ROWS + 1, 32), (1500, 32)])
def test_same_bits_on_any_number_of_threads(queries, symbolic):
    keys = (*queries[:-2], 700, 32)
    given = (["h", "n", "d"][-len(queries) :], ["h", "m", "d"][-len(queries) :])
    kernel = built(attention(*(given if symbolic else (queries, keys))))
    assert kernel.artifact.shared_steps and blocks(kernel)
    args = random(queries, keys, keys)
    found = on_threads(kernel, *args)
    assert same_bits(found)
    np.testing.assert_allclose(found[0][0], numpy_attention(*args), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("hidden", [-np.inf, -1e9])
def test_masks_and_rows_without_a_number(hidden):
    """A row that is masked as a whole, and one with a NaN; they leave all others alone."""
    rows = 2 * ROWS + 3
    shape = (4, rows, 16)
    q, k, v = random(shape, shape, shape)
    mask = np.where(np.tri(rows) > 0, 0.0, hidden).astype(np.float32)
    mask[ROWS] = hidden
    q[1, ROWS - 1, 3] = np.nan
    kernel = built(attention(shape, shape, (rows, rows)))
    assert blocks(kernel)
    with np.errstate(invalid="ignore"):
        # In float32, as the kernel adds: -1e9 leaves nothing of a score.
        wanted = numpy_softmax(q @ np.swapaxes(k, -1, -2) * np.float32(0.25) + mask) @ v
        found = kernel(q, k, v, mask)[0]
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-6)
    assert np.isnan(wanted[1, ROWS - 1]).all() and np.isfinite(wanted[0, 0]).all()
    assert np.isnan(wanted[0, ROWS]).all() == np.isinf(hidden)


def test_doubles():
    shape = (3, 300, 32)
    kernel = built(attention(shape, shape, dtype=F64))
    assert blocks(kernel)
    args = random(shape, shape, shape, dtype=np.float64)
    np.testing.assert_allclose(kernel(*args)[0], numpy_attention(*args), rtol=1e-11)


# What stands between the products, on NumPy arrays and in graphs; and how many arrays of scores
# the workspace has for a block.
def _reversed(g, s):
    return g.flip(s, axes=(len(g.shape(s)) - 1,))


BETWEEN = {
    "nothing": (lambda g, s: s, lambda s: s, 1),
    "elementwise": (lambda g, s: g.tanh(s), np.tanh, 1),
    "softmax times scores": (lambda g, s: g.mul(softmax(g, s), s), lambda s: numpy_softmax(s) * s, 1),
    "softmax and scores of other columns": (
        lambda g, s: g.add(softmax(g, s), _reversed(g, s)),
        lambda s: numpy_softmax(s) + s[..., ::-1],
        2,
    ),
    "softmax and the first score": (
        lambda g, s: g.add(softmax(g, s), g.slice(s, starts=(0,), stops=(1,), axes=(2,))),
        lambda s: numpy_softmax(s) + s[..., :1],
        2,
    ),
    "running sums": (lambda g, s: g.cumsum(s, axis=2), lambda s: np.cumsum(s, axis=2), 2),
    "fewer columns": (
        lambda g, s: softmax(g, g.maximum(s, _reversed(g, s))),
        lambda s: numpy_softmax(np.maximum(s, s[..., ::-1])),
        1,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BETWEEN)
def test_rows_of_what_stands_between(name):
    make, expected, arrays = BETWEEN[name]
    shape = (6, 300, 32)
    kernel = built(attention(shape, shape, between=make))
    q, k, v = random(shape, shape, shape)
    wanted = expected(q @ np.swapaxes(k, -1, -2)) @ v
    np.testing.assert_allclose(kernel(q, k, v)[0], wanted, rtol=2e-3, atol=2e-2)
    assert len(blocks(kernel)) == 1
    window = min(16, 6 * 3) * ROWS * 300 * 4
    assert int(kernel.artifact.abi.workspace) // window == arrays


REFUSED = {
    "columns": lambda g, s: g.div(s, g.sum(s, axes=(1,), keepdims=True)),
    "columns of weights": lambda g, s: g.mul(softmax(g, s), g.max(s, axes=(1,), keepdims=True)),
    "all": lambda g, s: g.sub(s, g.max(s, axes=(0, 1, 2), keepdims=True)),
    "transposed": lambda g, s: g.transpose(softmax(g, s), perm=(0, 2, 1)),
    "other rows": lambda g, s: g.flip(softmax(g, s), axes=(1,)),
    "other heads": lambda g, s: g.flip(softmax(g, s), axes=(0,)),
    "running sums of columns": lambda g, s: g.cumsum(s, axis=1),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REFUSED)
def test_more_than_rows_is_needed(name):
    shape = (6, 300, 32)
    program = attention(shape, shape, between=REFUSED[name])
    kernel = built(program)
    assert not blocks(kernel) and kernel.artifact.library_calls == 2
    assert kernel(*random(shape, shape, shape))[0].shape == shape


def _with_results(*names):
    shape = (6, 300, 32)
    g = Graph(*[tensor(*shape)] * 3)
    q, k, v = g.inputs
    scores = scores_of(g, q, k)
    weights = softmax(g, scores)
    found = {"scores": scores, "weights": weights, "result": g.matmul(weights, v)}
    arrays = random(shape, shape, shape)
    wanted = arrays[0] @ np.swapaxes(arrays[1], -1, -2)
    expected = {"scores": wanted, "weights": numpy_softmax(wanted)}
    expected["result"] = expected["weights"] @ arrays[2]
    kernel = built(g.returning(*(found[n] for n in names)))
    for name, array in zip(names, kernel(*arrays), strict=True):
        np.testing.assert_allclose(array, expected[name], rtol=2e-3, atol=1e-4)
    return kernel


def test_weights_that_are_a_result_are_stored_as_a_whole_and_scores_are_not():
    kernel = _with_results("weights", "result")
    assert blocks(kernel) and int(kernel.artifact.abi.workspace) == 16 * ROWS * 300 * 4


def test_scores_that_are_a_result_are_stored_as_a_whole():
    assert not blocks(_with_results("scores", "result"))


def test_values_made_of_the_scores_wait_for_all_of_them():
    shape = (6, 300, 32)
    g = Graph(*[tensor(*shape)] * 2)
    q, k = g.inputs
    weights = softmax(g, scores_of(g, q, k))
    kernel = built(g.returning(g.matmul(weights, g.add(weights, g.number(1.0)))))
    assert not blocks(kernel)


def test_small_scores_and_wide_layers_stay_as_they_are():
    few = (LEAST // (100 * 100 * 4), 100, 32)
    assert not blocks(built(attention(few, few)))
    more = (few[0] + 1, 100, 32)
    assert blocks(built(attention(more, more)))
    g = Graph(tensor(1024, 256), tensor(256, 1024), tensor(1024, 256))
    x, w, v = g.inputs
    assert not blocks(built(g.returning(g.matmul(g.tanh(g.matmul(x, w)), v))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("width", "rows"), [(32, 128), (64, 128), (128, 256), (192, 384)])
def test_blocks_of_wide_heads_have_more_rows(width, rows):
    shape = (4, 700, width)
    kernel = built(attention(shape, shape))
    chunks = 4 * -(-700 // rows)
    assert kernel.artifact.abi.workspace == str(min(16, chunks) * rows * 700 * 4)
    args = random(shape, shape, shape)
    np.testing.assert_allclose(kernel(*args)[0], numpy_attention(*args), rtol=2e-3, atol=1e-5)


def test_blocks_that_take_little_time_are_one_chunk():
    shapes = (512, 1), (1, 520), (520, 1)
    g = Graph(*(tensor(*shape) for shape in shapes))
    x, y, z = g.inputs
    kernel = built(g.returning(g.matmul(g.matmul(x, y), z)))
    assert blocks(kernel) and not kernel.artifact.shared_steps
    assert kernel.artifact.abi.workspace == str(ROWS * 520 * 4)
    x, y, z = random(*shapes)
    np.testing.assert_allclose(kernel(x, y, z)[0], x @ y @ z, rtol=1e-4, atol=1e-3)


def test_three_products_in_a_row_join_once():
    g = Graph(tensor("n", 64), tensor(64, "m"), tensor("m", 64), tensor(64, 64))
    x, a, b, c = g.inputs
    kernel = built(g.returning(g.matmul(g.tanh(g.matmul(g.tanh(g.matmul(x, a)), b)), c)))
    assert len(blocks(kernel)) == 1 and kernel.artifact.library_calls == 3
    for rows, columns in ((1, 1), (129, 5), (300, 40)):
        args = random((rows, 64), (64, columns), (columns, 64), (64, 64))
        y, *rest = args
        for w in rest[:-1]:
            y = np.tanh(y @ w)
        np.testing.assert_allclose(kernel(*args)[0], y @ rest[-1], rtol=1e-3, atol=1e-3)


def test_the_product_of_a_vector_has_no_rows():
    shapes = (300, 64), (64,), (300, 200), (200, 32)
    g = Graph(*(tensor(*shape, dtype=F64) for shape in shapes))
    a, v, m, z = g.inputs
    scale = g.expand_dims(g.matmul(a, v), axes=(1,))
    kernel = built(g.returning(g.matmul(g.mul(m, scale), z)))
    assert not blocks(kernel)
    a, v, m, z = random(*shapes, dtype=np.float64)
    np.testing.assert_allclose(kernel(a, v, m, z)[0], (m * (a @ v)[:, None]) @ z, rtol=1e-10, atol=1e-9)
