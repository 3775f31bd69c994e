"""Operators of ai.onnx.ml: trees, linear models and what comes before and behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.neural.activation_functions import softmax
from ...interpreter import NodeContext
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_elementwise import sigmoid
from .forest import COMPARISONS, MEMBER, Forest
from .onnx_categories import label_count, labels_of

# By their numbers in the version 5 of trees.
_NUMBERED = (*COMPARISONS, MEMBER)
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _forest(attributes: dict[str, Any], dtype: Any) -> tuple[Forest, dict[tuple[int, int], int]]:
    """The trees that a node's attributes list, and the numbers of nodes by tree and own number."""
    trees, own = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    number = {pair: k for k, pair in enumerate(zip(trees, own, strict=True))}
    modes = tuple(attributes["nodes_modes"])
    unknown = {*modes} - {*COMPARISONS, "LEAF"}
    if unknown:
        raise TraceError(f"trees with nodes of {', '.join(sorted(unknown))} are not supported")

    def children(name: str) -> np.ndarray:
        listed = attributes[name]
        return np.array(
            [k if modes[k] == "LEAF" else number[tree, listed[k]] for k, tree in enumerate(trees)], np.int64
        )

    yes, no = children("nodes_truenodeids"), children("nodes_falsenodeids")
    inner = {int(c) for k in range(len(modes)) if modes[k] != "LEAF" for c in (yes[k], no[k])}
    roots = np.array([k for k in range(len(modes)) if k not in inner], np.int64)
    values = attributes.get("nodes_values_as_tensor")
    thresholds = np.array(attributes["nodes_values"] if values is None else values, dtype)
    tracks = np.array(attributes.get("nodes_missing_value_tracks_true") or [0] * len(modes), bool)
    features = np.array([0 if m == "LEAF" else f for f, m in zip(attributes["nodes_featureids"], modes, strict=True)])
    forest = Forest(roots, features.astype(np.int64), thresholds, yes, no, tracks, modes)
    return forest, number


def _weights(
    number: dict[tuple[int, int], int], attributes: dict[str, Any], prefix: str, count: int, dtype: Any
) -> np.ndarray:
    """What each node adds to each target, as (nodes, targets)."""
    table = np.zeros((len(number), count), dtype)
    tensor = attributes.get(f"{prefix}_weights_as_tensor")
    weights = attributes[f"{prefix}_weights"] if tensor is None else np.ravel(tensor).tolist()
    keys = (attributes[f"{prefix}_treeids"], attributes[f"{prefix}_nodeids"], attributes[f"{prefix}_ids"])
    for tree, node, target, weight in zip(*keys, weights, strict=True):
        table[number[tree, node], target] += weight
    return table


def transformed(scores: Any, how: str) -> Any:
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return sigmoid(scores)
    if how == "SOFTMAX":
        return softmax(scores, -1)
    raise TraceError(f"the transform {how!r} behind a model is not supported")


def _operators(call: NodeContext) -> int:
    """How many operators of the graph have trees."""
    counts = call.interpreter.counts
    return sum(count for name, count in counts.items() if name.startswith("ai.onnx.ml.TreeEnsemble"))


def _comparable(x: Any) -> Any:
    """Trees compare f32, and f64 where the input is that."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


@onnx_op("ai.onnx.ml.TreeEnsembleRegressor")
def _tree_regressor(call: Any, x: Any, /, **attributes: Any) -> Any:
    x = _comparable(x)
    forest, number = _forest(attributes, x.dtype)
    count = attributes.get("n_targets", 1)
    table = _weights(number, attributes, "target", count, np.float32)
    scores = forest.combined(table, x, attributes.get("aggregate_function", "SUM"), _operators(call))
    base = attributes.get("base_values")
    if base:
        scores = scores + np.array(base, np.float32)
    return transformed(scores, attributes.get("post_transform", "NONE"))


@onnx_op("ai.onnx.ml.TreeEnsemble")
def _trees(
    call: Any,
    x: Any,
    /,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Any,
    membership_values: Any = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Any = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Any,
    nodes_splits: Any,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Any:
    """Trees of version 5, whose leaves are listed apart; here they are nodes behind the others."""
    count, ends, dtype = len(nodes_featureids), len(leaf_targetids), x.dtype
    leaves = np.arange(count, count + ends)

    def children(numbers: Sequence[int], are_leaves: Sequence[int]) -> np.ndarray:
        inner = np.array(numbers) + count * np.array(are_leaves)
        return np.concatenate([inner, leaves]).astype(np.int64)

    yes, no = children(nodes_truenodeids, nodes_trueleafs), children(nodes_falsenodeids, nodes_falseleafs)
    modes = (*(_NUMBERED[int(n)] for n in np.ravel(nodes_modes)), *("LEAF",) * ends)
    roots = np.array(tree_roots, np.int64)
    forest = Forest(
        roots,
        np.concatenate([nodes_featureids, np.zeros(ends)]).astype(np.int64),
        np.concatenate([np.ravel(nodes_splits), np.zeros(ends)]).astype(dtype),
        yes,
        no,
        np.array([*(nodes_missing_value_tracks_true or (0,) * count), *(0,) * ends], bool),
        modes,
        _sets(modes, membership_values, dtype),
    )
    table = np.zeros((count + ends, n_targets), dtype)
    table[leaves, list(leaf_targetids)] = np.ravel(leaf_weights)
    scores = forest.combined(table, x, _AGGREGATES[aggregate_function], _operators(call))
    return transformed(scores, _TRANSFORMS[post_transform])


def _sets(modes: Sequence[str], values: Any, dtype: Any) -> np.ndarray | None:
    """The numbers that nodes look for, by node: they are listed one node after the other, with NaN behind each."""
    if MEMBER not in modes:
        return None
    flat = np.ravel(values)
    lists = [part[~np.isnan(part)] for part in np.split(flat, np.flatnonzero(np.isnan(flat)))]
    table = np.full((len(modes), max(map(len, lists), default=0)), np.nan, dtype)
    for node, members in zip((k for k, mode in enumerate(modes) if mode == MEMBER), lists, strict=False):
        table[node, : len(members)] = members
    return table


@onnx_op("ai.onnx.ml.TreeEnsembleClassifier")
def _tree_classifier(call: Any, x: Any, /, **attributes: Any) -> Any:
    x = _comparable(x)
    count = label_count(attributes)
    forest, number = _forest(attributes, x.dtype)
    table = _weights(number, attributes, "class", count, np.float32)
    scores = forest.combined(table, x, "SUM", _operators(call))
    base, how = attributes.get("base_values"), attributes.get("post_transform", "NONE")
    targets = set(attributes["class_ids"])
    if count != 2 or len(targets) != 1:
        if base:
            scores = scores + np.array(base, np.float32)
        return NodeResults((labels_of(call, attributes, np.argmax(scores, axis=1)), transformed(scores, how)))
    # Of two classes, one alone has weights: its score is a share, or a logit if there are negative weights.
    if base and len(base) != 1:
        raise TraceError("trees with two classes, weights of one, and base values of both are not supported")
    score = scores[:, next(iter(targets))]
    if base:
        score = score + np.float32(base[0])
    if min(attributes.get("class_weights") or [0.0]) >= 0 and attributes.get("class_weights_as_tensor") is None:
        positive, pair = score > 0.5, np.stack([1.0 - score, score], 1)
    else:
        positive, pair = score > 0, np.stack([-score, score], 1)
        pair = transformed(pair, how)
    return NodeResults((labels_of(call, attributes, positive.astype(np.int64)), pair))


@onnx_op("ai.onnx.ml.LinearRegressor")
def _linear_regressor(
    call: Any,
    x: Any,
    /,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Any:
    scores = np.matmul(x.astype(np.float32), np.array(coefficients, np.float32).reshape(targets, -1).T)
    return transformed(scores if not intercepts else scores + np.array(intercepts, np.float32), post_transform)


@onnx_op("ai.onnx.ml.LinearClassifier")
def _linear_classifier(
    call: Any,
    x: Any,
    /,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
    **attributes: Any,
) -> Any:
    labels = label_count(attributes)
    count = len(intercepts) if intercepts else labels
    scores = np.matmul(x.astype(np.float32), np.array(coefficients, np.float32).reshape(count, -1).T)
    if intercepts:
        scores = scores + np.array(intercepts, np.float32)
    if count == 1 and labels == 2:
        pair = np.concatenate([-scores, scores], 1)
        chosen = (scores[:, 0] > 0).astype(np.int64)
        return NodeResults((labels_of(call, attributes, chosen), transformed(pair, post_transform)))
    chosen = np.argmax(scores, axis=1)
    return NodeResults((labels_of(call, attributes, chosen), transformed(scores, post_transform)))


@onnx_op("ai.onnx.ml.Scaler")
def _scaler(
    call: Any, x: Any, /, *, offset: Sequence[float] | None = None, scale: Sequence[float] | None = None
) -> Any:
    y = x.astype(np.float32)
    if offset:
        y = y - np.array(offset, np.float32)
    return y * np.array(scale, np.float32) if scale else y


@onnx_op("ai.onnx.ml.Normalizer")
def _normalizer(call: Any, x: Any, /, *, norm: str = "MAX") -> Any:
    y = x.astype(np.float32)
    if norm == "L2":
        length = np.sqrt(np.sum(y * y, axis=-1, keepdims=True))
    else:
        length = (np.max if norm == "MAX" else np.sum)(np.abs(y), axis=-1, keepdims=True)
    return y / np.where(length == 0, np.float32(1), length)


@onnx_op("ai.onnx.ml.Binarizer")
def _binarizer(call: Any, x: Any, /, *, threshold: float = 0.0) -> Any:
    return (x > threshold).astype(x.dtype)


@onnx_op("ai.onnx.ml.FeatureVectorizer")
def _feature_vectorizer(call: Any, /, *parts: Any, inputdimensions: Sequence[int] | None = None) -> Any:
    columns = [np.reshape(x, (x.shape[0], -1)).astype(np.float32) for x in parts]
    return np.concatenate(columns, 1)


@onnx_op("ai.onnx.ml.Imputer")
def _imputer(
    call: Any,
    x: Any,
    /,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Any:
    values = imputed_value_floats or imputed_value_int64s
    missing: Any = replaced_value_float if imputed_value_floats else replaced_value_int64
    is_missing = np.isnan(x) if missing != missing else np.equal(x, missing)
    return np.where(is_missing, np.array(values, x.dtype), x)
