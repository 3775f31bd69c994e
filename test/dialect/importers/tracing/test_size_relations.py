"""What traces ask of sizes: how they fit, and whether there are elements, in place of the sizes themselves."""

import numpy as np
import profuse as pf
import pytest

nn = pf.nn


def ones(*shape):
    return np.ones(shape, np.float32)


def halved_if_any(x):
    return x * 0.5 if x.shape[0] else x


def test_the_truth_of_a_size_is_whether_it_is_0():
    f = pf.jit(halved_if_any)
    for n in (3, 4, 0, 7, 0):
        np.testing.assert_array_equal(f(ones(n)), halved_if_any(ones(n)))
    assert len(f._executors()) == 2
    assert "x.shape[0] != 0 = True was baked" in str(f.explain())


def countdown(x):
    n = x.shape[0]
    while n:
        x = x + n
        n -= 1
    return x


def test_a_countdown_of_a_size_is_of_that_size():
    """Else there would be a guard for each round."""
    f = pf.jit(countdown)
    np.testing.assert_array_equal(f(ones(5)), countdown(ones(5)))
    assert str(f.explain()).count("was baked") <= 2


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_softmaxes_have_one_graph_for_all_sizes(function):
    f = pf.jit(lambda x: function(x, dim=-1))
    for shape in ((3, 5), (4, 6), (2, 9), (3, 1), (0, 4)):
        np.testing.assert_allclose(f(ones(*shape)), function(ones(*shape), dim=-1), rtol=1e-6)
    assert len(f._executors()) == 1
    assert f(ones(3, 0)).shape == (3, 0)
    assert len(f._executors()) == 2


def residual(x, w):
    y = x + x @ w
    return y * 2 if y.shape[1] == 8 else y


def test_a_broadcast_that_a_size_depends_on_is_guarded_alone():
    """Whether ``y`` has 8 columns follows once it is known that the product has as many as ``x``."""
    f = pf.jit(residual)
    calls = [(ones(n, 8), ones(8, 8)) for n in (3, 4, 9)]
    for args in calls:
        np.testing.assert_array_equal(f(*args), residual(*args))
    assert len(f._executors()) == 1
    for args in (
        (ones(3, 6), ones(6, 6)),
        (ones(5, 8), ones(8, 1)),
        (ones(2, 1), ones(1, 8)),
        (ones(2, 8), ones(8, 8)),
    ):
        np.testing.assert_array_equal(f(*args), residual(*args))
    with pytest.raises(ValueError, match="broadcast"):
        f(ones(5, 8), ones(8, 3))


def test_an_axis_that_is_as_long_as_several_others_is_guarded_alone():
    """A table of positions has a row for each patch and one for the class; ``scale`` has as many again."""

    def embedded(first, x, table, scale):
        y = np.concatenate([first, x]) + table
        y = y * 2 if y.shape[1] == 8 else y
        return np.concatenate([y, y * scale]) if y.shape[0] > 3 else y

    f = pf.jit(embedded)
    for n in (3, 4, 9):
        args = ones(2, 8), ones(n, 8), ones(n + 2, 8), ones(n + 2, 1)
        np.testing.assert_array_equal(f(*args), embedded(*args))
    assert len(f._executors()) == 1
    assert "first.shape[0] + x.shape[0] == table.shape[0]" in f.explain().replace("(", "").replace(")", "")
    for rows in ((2, 2, 4, 1), (1, 1, 2, 2), (2, 3, 1, 5), (3, 3, 6, 6)):
        args = tuple(ones(n, 8) for n in rows)
        np.testing.assert_array_equal(f(*args), embedded(*args))
    with pytest.raises(ValueError, match="broadcast"):
        f(ones(2, 8), ones(3, 8), ones(4, 8), ones(4, 1))


def test_a_size_of_1_that_is_broadcast_is_guarded_as_such():
    def shaped(x, y):
        z = x + y
        return z / z.shape[0] if z.shape[0] > 2 else z

    f = pf.jit(shaped)
    for n, m in ((3, 1), (5, 1), (1, 4), (4, 4), (1, 1), (2, 1)):
        np.testing.assert_allclose(f(ones(n, 8), ones(m, 8)), shaped(ones(n, 8), ones(m, 8)), rtol=1e-6)
    assert len(f._executors()) <= 5


def test_dropout_in_a_residual_block_has_one_graph():
    def block(x, w, g):
        x = x + nn.dropout(nn.softmax(x @ w, dim=-1) @ w, 0.25)
        return nn.layer_norm(x, 8, g)

    f = pf.jit(block)
    for n in (3, 5, 6):
        args = ones(n, 8), ones(8, 8), ones(8)
        pf.manual_seed(1)
        expected = block(*args)
        pf.manual_seed(1)
        np.testing.assert_allclose(f(*args), expected, rtol=1e-5, atol=1e-6)
    assert len(f._executors()) == 1


def test_attention_with_a_mask_has_one_graph_for_all_lengths():
    def attended(q, mask):
        return nn.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    f = pf.jit(attended)
    for batch, n in ((2, 3), (3, 5), (2, 6)):
        q, mask = ones(batch, n, 4), np.tri(n, dtype=bool)
        np.testing.assert_allclose(f(q, mask), attended(q, mask), rtol=1e-6)
    assert len(f._executors()) == 1
    with pytest.raises(pf.ShapeError, match="attn_mask"):
        f(ones(2, 3, 4), np.tri(4, dtype=bool))
