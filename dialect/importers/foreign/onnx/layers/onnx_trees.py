"""Operators of ai.onnx.ml: trees, linear models and what comes before and behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....dataclass import dataclass
from .....errors import TraceError
from ....numpy.capture import user_functions
from ....numpy.neural.activation_functions import softmax
from ...array_values import item_of
from ..onnx_table import NodeResults, onnx_op

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}
_MEMBER = "BRANCH_MEMBER"
# By their numbers in the version 5 of trees.
_NUMBERED = (*_COMPARISONS, _MEMBER)
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_SUMS: dict[str, Callable] = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}


@dataclass(frozen=True)
class Forest:
    """Trees as arrays over their nodes; leaves are their own children.

    Attributes:
        roots: the first node of each tree.
        features, thresholds, yes, no, tracks: by node; ``tracks``: NaN goes where the comparison holds.
        modes: the comparison of each node.
        depth: of the deepest tree.
        members: (nodes, any number), for each node the numbers that it looks for, then NaN; None = no node does so.
    """

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    tracks: np.ndarray
    modes: tuple[str, ...]
    depth: int
    members: np.ndarray | None = None

    def leaves(self, x: Any) -> Any:
        """The leaf of each row of ``x`` (N, F) in each tree, as (N, T) numbers of nodes."""
        rows = np.reshape(np.arange(int(x.shape[0])), (-1, 1))
        at: Any = np.broadcast_to(self.roots, (int(x.shape[0]), len(self.roots)))
        kinds = sorted({mode for mode in self.modes if mode != "LEAF"})
        for _ in range(self.depth):
            values = item_of(x, (rows, item_of(self.features, at)))
            thresholds = item_of(self.thresholds, at)
            holds: Any = None
            for kind in kinds:
                if kind == _MEMBER:
                    here = np.any(values[..., None] == item_of(self.members, at), axis=-1)
                else:
                    here = _COMPARISONS[kind](values, thresholds)
                if holds is None:
                    holds = here
                else:
                    is_kind = np.array([mode == kind for mode in self.modes])
                    holds = np.where(item_of(is_kind, at), here, holds)
            if self.tracks.any():
                holds = holds | (np.isnan(values) & item_of(self.tracks, at))
            at = np.where(holds, item_of(self.yes, at), item_of(self.no, at))
        return at


def _forest(attributes: dict[str, Any], dtype: Any) -> tuple[Forest, dict[tuple[int, int], int]]:
    """The trees that a node's attributes list, and the numbers of nodes by tree and own number."""
    trees, own = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    number = {pair: k for k, pair in enumerate(zip(trees, own, strict=True))}
    modes = tuple(attributes["nodes_modes"])
    unknown = {*modes} - {*_COMPARISONS, "LEAF"}
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
    depth, level = 0, [int(k) for k in roots if modes[k] != "LEAF"]
    while level:
        depth += 1
        level = [int(c) for k in level for c in (yes[k], no[k]) if modes[c] != "LEAF"]
    values = attributes.get("nodes_values_as_tensor")
    thresholds = np.array(attributes["nodes_values"] if values is None else values, dtype)
    tracks = np.array(attributes.get("nodes_missing_value_tracks_true") or [0] * len(modes), bool)
    features = np.array([0 if m == "LEAF" else f for f, m in zip(attributes["nodes_featureids"], modes, strict=True)])
    forest = Forest(roots, features.astype(np.int64), thresholds, yes, no, tracks, modes, depth)
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
        return user_functions.sigmoid(scores)
    if how == "SOFTMAX":
        return softmax(scores, -1)
    raise TraceError(f"the transform {how!r} behind a model is not supported")


def _comparable(x: Any) -> Any:
    """Trees compare f32, and f64 where the input is that."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


@onnx_op("ai.onnx.ml.TreeEnsembleRegressor")
def _tree_regressor(call: Any, x: Any, /, **attributes: Any) -> Any:
    x = _comparable(x)
    forest, number = _forest(attributes, x.dtype)
    count = attributes.get("n_targets", 1)
    table = _weights(number, attributes, "target", count, np.float32)
    scores = _combined(forest, table, x, attributes.get("aggregate_function", "SUM"))
    base = attributes.get("base_values")
    if base:
        scores = scores + np.array(base, np.float32)
    return transformed(scores, attributes.get("post_transform", "NONE"))


def _combined(forest: Forest, table: np.ndarray, x: Any, how: str) -> Any:
    """What the leaves of all trees give for each row and target; ``table`` is by node and target.

    Raises TraceError for extremes of trees whose leaves have some of the targets: the others are no zeros.
    """
    if how not in _SUMS:
        raise TraceError(f"trees combined by {how!r} are not supported")
    if how in ("MIN", "MAX") and table.shape[1] > 1:
        raise TraceError(f"trees of several targets combined by {how!r} are not supported")
    return _SUMS[how](item_of(table, forest.leaves(x)), axis=1)


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
    depth, level = 0, [int(k) for k in roots]
    while level:
        depth += 1
        level = [int(c) for k in level for c in (yes[k], no[k]) if c < count]
    forest = Forest(
        roots,
        np.concatenate([nodes_featureids, np.zeros(ends)]).astype(np.int64),
        np.concatenate([np.ravel(nodes_splits), np.zeros(ends)]).astype(dtype),
        yes,
        no,
        np.array([*(nodes_missing_value_tracks_true or (0,) * count), *(0,) * ends], bool),
        modes,
        depth,
        _sets(modes, membership_values, dtype),
    )
    table = np.zeros((count + ends, n_targets), dtype)
    table[leaves, list(leaf_targetids)] = np.ravel(leaf_weights)
    scores = _combined(forest, table, x, _AGGREGATES[aggregate_function])
    return transformed(scores, _TRANSFORMS[post_transform])


def _sets(modes: Sequence[str], values: Any, dtype: Any) -> np.ndarray | None:
    """The numbers that nodes look for, by node: they are listed one node after the other, with NaN behind each."""
    if _MEMBER not in modes:
        return None
    flat = np.ravel(values)
    lists = [part[~np.isnan(part)] for part in np.split(flat, np.flatnonzero(np.isnan(flat)))]
    table = np.full((len(modes), max(map(len, lists), default=0)), np.nan, dtype)
    for node, members in zip((k for k, mode in enumerate(modes) if mode == _MEMBER), lists, strict=False):
        table[node, : len(members)] = members
    return table


@onnx_op("ai.onnx.ml.TreeEnsembleClassifier")
def _tree_classifier(call: Any, x: Any, /, **attributes: Any) -> Any:
    x = _comparable(x)
    labels = labels_of(attributes)
    forest, number = _forest(attributes, x.dtype)
    table = _weights(number, attributes, "class", len(labels), np.float32)
    scores = np.sum(item_of(table, forest.leaves(x)), axis=1)
    base, how = attributes.get("base_values"), attributes.get("post_transform", "NONE")
    targets = set(attributes["class_ids"])
    if len(labels) != 2 or len(targets) != 1:
        if base:
            scores = scores + np.array(base, np.float32)
        return NodeResults((item_of(labels, np.argmax(scores, axis=1)), transformed(scores, how)))
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
    return NodeResults((item_of(labels, positive.astype(np.int64)), pair))


def labels_of(attributes: dict[str, Any]) -> np.ndarray:
    listed = next((attributes[k] for k in ("classlabels_int64s", "classlabels_ints") if attributes.get(k)), None)
    if listed is None:
        raise TraceError("classes that are texts are not supported", hint="train with classes that are integers")
    return np.array(listed, np.int64)


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
    labels = labels_of(attributes)
    count = len(intercepts) if intercepts else len(labels)
    scores = np.matmul(x.astype(np.float32), np.array(coefficients, np.float32).reshape(count, -1).T)
    if intercepts:
        scores = scores + np.array(intercepts, np.float32)
    if count == 1 and len(labels) == 2:
        pair = np.concatenate([-scores, scores], 1)
        chosen = (scores[:, 0] > 0).astype(np.int64)
        return NodeResults((item_of(labels, chosen), transformed(pair, post_transform)))
    return NodeResults((item_of(labels, np.argmax(scores, axis=1)), transformed(scores, post_transform)))


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
