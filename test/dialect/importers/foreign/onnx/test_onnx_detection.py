"""ONNX's operators for finding objects, of runs of words, and support vectors, by their meaning in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from every_case import EVERY_CASE
from profuse.dialect.errors import DTypeError, TraceError
from test_onnx_operators import of_one

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return sides[0] * sides[1] / (sum(areas) - sides[0] * sides[1])


def best_boxes(boxes: np.ndarray, scores: np.ndarray, most: int, share: float, least: float) -> list[list[int]]:
    rows = []
    for image, class_ in np.ndindex(*scores.shape[:2]):
        taken: list[int] = []
        for k in np.argsort(-scores[image, class_], kind="stable"):
            alone = all(overlap(boxes[image, k], boxes[image, t]) <= share for t in taken)
            if scores[image, class_, k] > least and len(taken) < most and alone:
                taken.append(int(k))
        rows += [[image, class_, k] for k in taken]
    return rows


@pytest.mark.parametrize("most", [2, 20])
def test_boxes_that_overlap_none_before(most):
    corners = RNG.uniform(0, 5, (2, 12, 2))
    boxes = np.concatenate([corners, corners + RNG.uniform(1, 4, (2, 12, 2))], -1).astype(np.float32)
    scores = RNG.uniform(0, 1, (2, 3, 12)).astype(np.float32)
    wanted = best_boxes(boxes, scores, most, 0.3, 0.2)
    limits = np.array([most]), np.array([0.3], np.float32), np.array([0.2], np.float32)
    found = of_one("NonMaxSuppression", boxes, scores, *limits)
    assert found.dtype == np.int64 and found.tolist() == wanted
    if most == 2 and not EVERY_CASE:
        return
    flipped = boxes[..., [2, 1, 0, 3]]  # the other diagonal
    assert of_one("NonMaxSuppression", flipped, scores, *limits).tolist() == wanted
    middles = [(boxes[..., k] + boxes[..., k + 2]) / 2 for k in (1, 0)]
    centred = np.stack([*middles, *(boxes[..., k + 2] - boxes[..., k] for k in (1, 0))], -1)
    assert of_one("NonMaxSuppression", centred, scores, *limits, center_point_box=1).tolist() == wanted


def test_parts_of_images_in_boxes():
    rows, columns = np.meshgrid(np.arange(8.0), np.arange(9.0), indexing="ij")
    plane = (2 * rows - columns).astype(np.float32)[None, None]  # whose means are its values in the middle
    boxes = np.array([[1.0, 2.0, 5.0, 6.0]], np.float32)
    options = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    y = of_one("RoiAlign", plane, boxes, np.array([0]), **options)
    middles = [2 * r - c for r, c in itertools.product((2.5, 4.5), (1.5, 3.5))]
    np.testing.assert_allclose(y.ravel(), middles, rtol=1e-6)
    shifted = of_one("RoiAlign-1", plane, boxes, np.array([0]), **options)
    np.testing.assert_allclose(shifted, y + np.float32(0.5), rtol=1e-6)
    with pytest.raises(TraceError, match="as many points as the boxes are large"):
        of_one("RoiAlign", plane, boxes, np.array([0]))


def test_moved_windows_that_do_not_move_are_windows():
    x, w, b = floats(2, 4, 6, 5), floats(6, 2, 3, 2), floats(6)
    options = {"group": 2, "pads": (1, 0, 1, 1), "strides": (2, 1)}
    wanted = of_one("Conv", x, w, b, **options)
    offset = np.zeros((2, 2 * 2 * 6, *wanted.shape[2:]), np.float32)
    mask = np.full((2, 2 * 6, *wanted.shape[2:]), 1, np.float32)
    still = of_one("DeformConv", x, w, offset, b, mask, offset_group=2, **options)
    np.testing.assert_allclose(still, wanted, rtol=1e-4, atol=1e-5)
    # All elements moved down by one: those of the image moved up.
    offset.reshape(2, 2, 6, 2, *wanted.shape[2:])[:, :, :, 0] = 1
    up = np.concatenate([x[:, :, 1:], np.zeros_like(x[:, :, :1])], 2)
    moved = of_one("DeformConv", x, w, offset, b, mask, offset_group=2, group=2, strides=(2, 1), pads=(0, 0, 2, 1))
    assert moved.shape == wanted.shape
    kept = of_one("Conv", up, w, b, group=2, strides=(2, 1), pads=(0, 0, 2, 1))
    np.testing.assert_allclose(moved, kept, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_runs_of_words_are_counted(mode):
    rows = np.array([[1, 2, 1, 2, 3], [3, 3, 2, 1, 1]])
    pool = {"ngram_counts": (0, 2), "pool_int64s": (2, 3, 1, 2, 1, 1), "ngram_indexes": (2, 0, 1, 3)}
    y = of_one("TfIdfVectorizer", rows, max_gram_length=2, min_gram_length=1, max_skip_count=1, mode=mode,
               weights=(2.0, 3.0, 4.0, 5.0), **pool)  # fmt: skip
    counts = np.zeros((2, 4), np.float32)
    for r, row in enumerate(rows.tolist()):
        counts[r, 2], counts[r, 0] = row.count(2), row.count(3)
        pairs = [*itertools.pairwise(row), *zip(row, row[2:], strict=False)]
        counts[r, 1], counts[r, 3] = pairs.count((1, 2)), pairs.count((1, 1))
    factors = np.array([3, 4, 2, 5], np.float32)
    wanted = {"TF": counts, "IDF": np.minimum(counts, 1) * factors, "TFIDF": counts * factors}[mode]
    np.testing.assert_array_equal(y, wanted)


def test_support_vectors_of_two_classes():
    x, vectors = floats(5, 3), floats(4, 3)
    attributes = {
        "coefficients": (1.0, 0.5, -0.75, -0.25), "kernel_type": "RBF", "kernel_params": (0.5, 0.0, 3.0),
        "vectors_per_class": (2, 2), "support_vectors": tuple(map(float, vectors.ravel())), "rho": (0.1,),
    }  # fmt: skip
    kernel = np.exp(-0.5 * ((x[:, None] - vectors) ** 2).sum(-1))
    scores = kernel @ np.array(attributes["coefficients"]) + 0.1
    options = {**attributes, "classlabels_ints": (7, 9)}
    labels = of_one("ai.onnx.ml.SVMClassifier", x, prob_a=(-2.0,), prob_b=(0.3,), **options)
    assert labels.tolist() == np.where(scores > 0, 7, 9).tolist()
    assert of_one("ai.onnx.ml.SVMClassifier", x, **options).tolist() == labels.tolist()
    del attributes["vectors_per_class"]
    y = of_one("ai.onnx.ml.SVMRegressor", x, n_supports=4, **attributes)
    np.testing.assert_allclose(y[:, 0], scores, rtol=1e-4, atol=1e-5)


def test_trees_of_version_5():
    attributes = {
        "nodes_featureids": (0, 1), "nodes_modes": np.array([0, 6], np.uint8), "tree_roots": (0,),
        "nodes_splits": np.array([0.0, 9.0], np.float32), "membership_values": np.array([2, 5, np.nan], np.float32),
        "nodes_truenodeids": (0, 1), "nodes_trueleafs": (1, 1),
        "nodes_falsenodeids": (1, 2), "nodes_falseleafs": (0, 1),
        "leaf_targetids": (0, 1, 0), "leaf_weights": np.array([10, 20, 30], np.float32), "n_targets": 2,
    }  # fmt: skip
    x = np.array([[-1, 2], [1, 5], [1, 3]], np.float32)
    y = of_one("ai.onnx.ml.TreeEnsemble", x, **attributes)
    assert y.tolist() == [[10, 0], [0, 20], [30, 0]]
    with pytest.raises(TraceError, match="several targets combined by 'MAX'"):
        of_one("ai.onnx.ml.TreeEnsemble", x, aggregate_function=3, **attributes)


def test_operands_before_version_7_lie_along_axes():
    x, y = floats(2, 3, 4), floats(3)
    np.testing.assert_array_equal(of_one("profuse.Aligned", x, y, axis=1), y[:, None])
    np.testing.assert_array_equal(of_one("profuse.Aligned", x, y, axis=-2), y[:, None])
    np.testing.assert_array_equal(of_one("PRelu-1", x, y), np.where(x < 0, x * y[:, None], x))


def test_bits_are_read_as_another_dtype():
    x = floats(3, 2)
    np.testing.assert_array_equal(of_one("BitCast", x, to=6), x.view(np.int32))
    assert of_one("BitCast", np.array([True, False]), to=2).tolist() == [1, 0]
    with pytest.raises(DTypeError, match="other widths"):
        of_one("BitCast", x, to=7)
