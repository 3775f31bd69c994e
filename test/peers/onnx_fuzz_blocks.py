"""More kinds of nodes for `onnx_fuzz`: scans, sequences, optional values, trees and tables of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np

Shape = tuple[int, ...]
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_DEPTH = 4
_MOST_ROWS = 40


def scanned(m: Any, x: str, shape: Shape) -> None:
    """A scan over the first axis, with a state and an output for each step."""
    if len(shape) < 2:
        return
    element = shape[1:]
    info = m.helper.make_tensor_value_info
    nodes = [
        m.helper.make_node(m.choice(["Add", "Sub", "Max"]), ["s", "e"], ["joined"]),
        m.helper.make_node(m.choice(["Tanh", "Sigmoid", "Relu"]), ["joined"], ["t"]),
        m.helper.make_node(m.choice(["Mul", "Add", "Min"]), ["t", "e"], ["o"]),
    ]
    kind = m.types.FLOAT
    body = m.helper.make_graph(
        nodes,
        "step",
        [info("s", kind, list(element)), info("e", kind, list(element))],
        [info("t", kind, list(element)), info("o", kind, list(element))],
    )
    first = m.node("ReduceMean", [x, m.weight([0])], keepdims=0)
    last, rows = m.name(), f"{m.name()}_rows"
    m.nodes.append(m.helper.make_node("Scan", [first, x], [last, rows], num_scan_inputs=1, body=body))
    m.floats |= {last: element, rows: shape}


def sequenced(m: Any, x: str, shape: Shape) -> None:
    """Parts in a sequence, which grows, shrinks and is joined; or one of them."""
    if not shape:
        return
    axis = int(m.rng.integers(len(shape)))
    parts, count = m.node("SplitToSequence", [x], axis=axis, keepdims=1), shape[axis]
    for _ in range(int(m.rng.integers(3))):
        at = int(m.rng.integers(-count, count))
        if m.rng.random() < 0.5:
            part = m.node("SequenceAt", [parts, m.weight(at)])
            # The package's evaluator inserts in front what is to be inserted behind all.
            where = m.weight(int(m.rng.integers(count)))
            parts, count = m.node("SequenceInsert", [parts, part, where]), count + 1
        elif count > 1:
            parts, count = m.node("SequenceErase", [parts, m.weight(at)]), count - 1
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    if m.rng.random() < 0.3:
        m.floats[m.node("SequenceAt", [parts, m.weight(int(m.rng.integers(count)))])] = one
    else:
        y = m.node("ConcatFromSequence", [parts], axis=axis)
        m.floats[y] = (*shape[:axis], count, *shape[axis + 1 :])


def optional(m: Any, x: str, shape: Shape) -> None:
    """An optional value that is there, asked whether it is, and taken out."""
    value = m.node("Optional", [x])
    there = m.node("OptionalHasElement", [value])
    taken = m.node("OptionalGetElement", [value])
    m.floats[m.node("Where", [there, taken, x])] = shape


def trees(m: Any, x: str, shape: Shape) -> None:
    """A few random trees of one or several targets, or of classes."""
    if len(shape) != 2 or shape[0] > _MOST_ROWS:
        return
    is_classifier = m.rng.random() < 0.4
    # The package's evaluator takes several classes of which one has weights for two.
    targets, forest = int(m.rng.integers(3 if is_classifier else 1, 4)), _Forest(m, shape[1], m.choice([1, 1, 6]))
    for _ in range(int(m.rng.integers(1, 4))):
        forest.tree(targets)
    rows = shape[0]
    if not is_classifier:
        how = "SUM" if targets > 1 else m.choice(["SUM", "AVERAGE", "MIN", "MAX"])
        y = m.name()
        attributes = forest.attributes("target") | {"n_targets": targets, "aggregate_function": how}
        m.nodes.append(m.helper.make_node("TreeEnsembleRegressor", [x], [y], domain="ai.onnx.ml", **attributes))
        m.floats[y] = (rows, targets)
        return
    labels = [int(n) for n in m.rng.permutation(9)[:targets]]
    names = m.name(), f"{m.name()}_scores"
    attributes = forest.attributes("class") | {"classlabels_int64s": labels}
    attributes["post_transform"] = m.choice(["NONE", "SOFTMAX", "LOGISTIC"])
    m.nodes.append(m.helper.make_node("TreeEnsembleClassifier", [x], [*names], domain="ai.onnx.ml", **attributes))
    m.floats[names[1]] = (rows, len(labels))


class _Forest:
    """Random trees as attributes of a node.

    Args:
        model: draws numbers.
        features: of a row.
        kinds: how many comparisons there are among the nodes.
    """

    def __init__(self, model: Any, features: int, kinds: int) -> None:
        self._m, self._features = model, features
        self._modes = [str(mode) for mode in model.rng.permutation(_MODES)[:kinds]]
        self._nodes: list[dict[str, Any]] = []
        self._leaves: list[tuple[int, int, int, float]] = []
        self._trees = 0
        self._tracks = bool(model.rng.random() < 0.3)

    def tree(self, targets: int) -> None:
        """Add a tree, whose leaves have a weight for each target."""
        self._size = 0
        self._grow(0, targets)
        self._trees += 1

    def _grow(self, depth: int, targets: int) -> int:
        rng, number = self._m.rng, self._size
        self._size += 1
        is_leaf = depth == _DEPTH or (depth > 0 and rng.random() < 0.3)
        node = {"tree": self._trees, "node": number, "mode": "LEAF", "feature": 0, "value": 0.0, "yes": 0, "no": 0}
        node["tracks"] = int(self._tracks and rng.random() < 0.5)
        self._nodes.append(node)
        if is_leaf:
            self._leaves += [
                (self._trees, number, target, float(np.float32(rng.normal()))) for target in range(targets)
            ]
            return number
        node["mode"], node["feature"] = self._m.choice(self._modes), int(rng.integers(self._features))
        node["value"] = float(np.float32(rng.choice([rng.normal(), 0.0])))
        node["yes"] = self._grow(depth + 1, targets)
        node["no"] = self._grow(depth + 1, targets)
        return number

    def attributes(self, prefix: str) -> dict[str, Any]:
        """The attributes of the operators whose leaves are listed with this prefix."""

        def column(key: str) -> list[Any]:
            return [node[key] for node in self._nodes]

        ids = [*map(list, zip(*self._leaves, strict=True))]
        return {
            "nodes_treeids": column("tree"),
            "nodes_nodeids": column("node"),
            "nodes_modes": column("mode"),
            "nodes_featureids": column("feature"),
            "nodes_values": column("value"),
            "nodes_truenodeids": column("yes"),
            "nodes_falsenodeids": column("no"),
            "nodes_missing_value_tracks_true": column("tracks"),
            f"{prefix}_treeids": ids[0],
            f"{prefix}_nodeids": ids[1],
            f"{prefix}_ids": ids[2],
            f"{prefix}_weights": ids[3],
        }


def table(m: Any, x: str, shape: Shape) -> None:
    """Integers, looked up in a table of integers, of floats, or of texts and then of these."""
    n = m.choice(m.integers)
    keys = [int(k) for k in m.rng.permutation(np.arange(-9, 10))[: int(m.rng.integers(1, 12))]]
    if m.rng.random() < 0.3:
        keys = [1000 * k for k in keys]
    values = [float(np.float32(v)) for v in m.rng.normal(size=len(keys))]
    if m.rng.random() < 0.5:
        y = _encoder(m, n, keys_int64s=keys, values_floats=values, default_float=0.5)
    else:
        words = [f"word {k % 3}" for k in keys]
        text = _encoder(m, n, keys_int64s=keys, values_strings=words, default_string="none")
        text = m.node("Identity", [text]) if m.rng.random() < 0.5 else text
        y = _encoder(
            m, text, keys_strings=["word 0", "word 2", "none"], values_floats=[1.0, 2.0, 3.0], default_float=0.0
        )
    m.floats[y] = m.integers[n]


def _encoder(m: Any, x: str, **attributes: Any) -> str:
    result = m.name()
    m.nodes.append(m.helper.make_node("LabelEncoder", [x], [result], domain="ai.onnx.ml", **attributes))
    return result


def evaluator_of(model: Any) -> Any:
    """The package's evaluator, whose optional values are lists, and are not taken out of these."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Optional(OpRun):
        def _run(self, x: Any = None, type: Any = None) -> Any:
            return (x,)

    return ReferenceEvaluator(model, new_ops=[Optional])


KINDS = (scanned, sequenced, optional, trees, trees, table)

__all__ = ["KINDS", "evaluator_of"]
