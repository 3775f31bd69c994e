"""Trees of ai.onnx.ml: small ones by words of bits, large ones step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock
from profuse.dialect.importers.foreign.onnx.layers.tree_masks import ordered
from test_onnx_operators import Writer, jitted

_COMPARE: dict[str, Any] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


class RandomTrees:
    """Trees with random numbers of leaves, as attributes, and by plain steps.

    Args:
        seed: of everything random.
        leaves: of each tree.
        modes: the comparisons of nodes.
    """

    def __init__(self, seed: int, leaves: tuple[int, ...], modes: tuple[str, ...], targets: int = 2) -> None:
        self.rng, self.modes, self.targets = np.random.default_rng(seed), modes, targets
        self.nodes: list[dict[str, Any]] = []
        self.roots = [self._grow(tree, count) for tree, count in enumerate(leaves)]

    def _grow(self, tree: int, leaves: int) -> dict[str, Any]:
        rng = self.rng
        node = {"tree": tree, "node": len(self.nodes), "mode": "LEAF", "feature": 0, "value": 0.0, "children": None}
        node |= {"tracks": int(rng.integers(2)), "weights": rng.normal(size=self.targets).astype(np.float32)}
        self.nodes.append(node)
        if leaves > 1:
            first = int(rng.integers(1, leaves))
            node |= {"mode": str(rng.choice(self.modes)), "feature": int(rng.integers(3))}
            node["value"] = float(np.float32(rng.choice([0.0, rng.normal()])))
            node["children"] = self._grow(tree, first), self._grow(tree, leaves - first)
        return node

    def attributes(self) -> dict[str, Any]:
        column = {key: [n[key] for n in self.nodes] for key in ("tree", "node", "mode", "feature", "value", "tracks")}
        children = [n["children"] or (n, n) for n in self.nodes]
        leaves = [(n, k) for n in self.nodes if n["children"] is None for k in range(self.targets)]
        return {
            "nodes_treeids": column["tree"],
            "nodes_nodeids": column["node"],
            "nodes_modes": column["mode"],
            "nodes_featureids": column["feature"],
            "nodes_values": column["value"],
            "nodes_missing_value_tracks_true": column["tracks"],
            "nodes_truenodeids": [yes["node"] for yes, _ in children],
            "nodes_falsenodeids": [no["node"] for _, no in children],
            "target_treeids": [n["tree"] for n, _ in leaves],
            "target_nodeids": [n["node"] for n, _ in leaves],
            "target_ids": [k for _, k in leaves],
            "target_weights": [float(n["weights"][k]) for n, k in leaves],
            "n_targets": self.targets,
        }

    def reached(self, row: np.ndarray) -> list[np.ndarray]:
        found = []
        for node in self.roots:
            while node["children"] is not None:
                value = row[node["feature"]]
                holds = _COMPARE[node["mode"]](value, np.float32(node["value"]))
                holds = holds or (np.isnan(value) and bool(node["tracks"]))
                node = node["children"][0 if holds else 1]
            found.append(node["weights"])
        return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("modes", [("BRANCH_LEQ",), tuple(_COMPARE)], ids=["one", "all"])
@pytest.mark.parametrize(
    "leaves",
    [(1, 5, 31), (2, 40, 63), (66, 3), (200,), (1,)],
    ids=["32 bits", "64 bits", "several words", "steps", "leaf"],
)
def test_rows_reach_the_leaves_that_steps_reach(leaves, modes):
    trees = RandomTrees(sum(leaves), leaves, modes)
    w = Writer("x")
    w.node("ai.onnx.ml.TreeEnsembleRegressor", "x", "y", **trees.attributes())
    f = jitted(w.function("y"), strategy=[("dynamic", 2)])
    for rows in (5, 9, 6):
        x = trees.rng.choice([0.0, 1.0, -1.0, np.nan, *trees.rng.normal(size=8)], (rows, 3)).astype(np.float32)
        wanted = [np.sum(trees.reached(row), axis=0, dtype=np.float64) for row in x]
        for _ in range(2):
            np.testing.assert_allclose(f(x), wanted, rtol=1e-5, atol=1e-5)
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("how", "function"), [("MIN", np.min), ("MAX", np.max), ("AVERAGE", np.mean)])
def test_small_and_large_trees_are_combined(how, function):
    trees = RandomTrees(3, (4, 70, 12), ("BRANCH_LT",), targets=1)
    w = Writer("x")
    w.node("ai.onnx.ml.TreeEnsembleRegressor", "x", "y", **trees.attributes(), aggregate_function=how)
    f, x = jitted(w.function("y")), trees.rng.normal(size=(7, 3)).astype(np.float32)
    for _ in range(3):
        np.testing.assert_allclose(f(x), [function(trees.reached(row), axis=0) for row in x], rtol=1e-5)


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
def test_nan_goes_where_a_node_sends_it(mode):
    """With one kind of comparison no node asks for it: a second feature holds what it stands for."""
    trees = RandomTrees(5, (4, 9), (mode,))
    w = Writer("x")
    w.node("ai.onnx.ml.TreeEnsembleRegressor", "x", "y", **trees.attributes())
    f = jitted(w.function("y"))
    x = np.array([[a, b, 0.5] for a in (np.nan, -np.inf, 0.0) for b in (np.nan, np.inf, 1.0)], np.float32)
    for _ in range(3):
        wanted = [np.sum(trees.reached(row), axis=0, dtype=np.float64) for row in x]
        np.testing.assert_allclose(f(x), wanted, rtol=1e-5, atol=1e-5)
    assert f.ir("graph").count("isnan") == 1


@pytest.mark.parametrize(("operators", "are_steps"), [(2, False), (30, True)])
def test_many_operators_with_trees_have_little_code_each(operators, are_steps):
    """Of a forest that is an operator for each tree, code that asks all nodes would be that of thousands of nodes."""
    trees, w = RandomTrees(7, (12,), ("BRANCH_LEQ",)), Writer("x")
    names = [f"y{k}" for k in range(operators)]
    for name in names:
        w.node("ai.onnx.ml.TreeEnsembleRegressor", "x", name, **trees.attributes())
    w.node("Sum", " ".join(names), "y")
    f, x = jitted(w.function("y")), trees.rng.normal(size=(5, 3)).astype(np.float32)
    wanted = [operators * trees.reached(row)[0] for row in x]
    np.testing.assert_allclose(f(x), wanted, rtol=1e-5)
    assert ("scf.for" in f.ir("graph")) == are_steps


def test_operators_with_trees_are_counted_once(monkeypatch):
    walks = []
    walk = ForeignBlock.walk
    monkeypatch.setattr(ForeignBlock, "walk", lambda block: walks.append(block) or walk(block))

    def walked(operators: int) -> int:
        trees, w = RandomTrees(7, (2,), ("BRANCH_LEQ",)), Writer("x")
        for k in range(operators):
            w.node("ai.onnx.ml.TreeEnsembleRegressor", "x", f"y{k}", **trees.attributes())
        w.node("Sum", " ".join(f"y{k}" for k in range(operators)), "y")
        f = jitted(w.function("y"))
        walks.clear()
        f(np.zeros((5, 3), np.float32))
        return len(walks)

    assert walked(2) == walked(9) > 0


def test_leaves_are_in_the_order_of_answers():
    nodes, leaves = ordered(0, [1, 1, 3, 3, 4], [2, 1, 4, 3, 4])
    assert leaves == [1, 3, 4]
    assert [(n.number, n.first, n.middle, n.last) for n in nodes] == [(2, 1, 2, 3), (0, 0, 1, 3)]
