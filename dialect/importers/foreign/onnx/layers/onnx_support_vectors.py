"""ONNX's support vector machines, as onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.tracing.traced_control import while_loop
from ...array_values import captured, item_of
from ..onnx_table import NodeResults, onnx_op
from .onnx_trees import labels_of, transformed

_LEAST = 1e-7  # of a probability of one class beside another
_ROUNDS = 100  # of the search for probabilities of several classes


def _kernel(kind: str, parameters: Sequence[float], x: Any, vectors: np.ndarray) -> Any:
    """The kernel of each row of ``x`` and each vector; the parameters are gamma, an offset and a degree."""
    gamma, offset, degree = (*parameters, 0.0, 0.0, 3.0)[:3] if parameters else (0.0, 0.0, 3.0)
    if kind == "RBF":
        differences = x[:, None, :] - vectors[None, :, :]
        return np.exp(np.sum(differences * differences, -1) * np.float32(-gamma))
    products = np.matmul(x, vectors.T)
    if kind == "LINEAR":
        return products
    scaled = products * np.float32(gamma) + np.float32(offset)
    if kind == "POLY":
        return np.power(scaled, np.float32(degree))
    if kind == "SIGMOID":
        return np.tanh(scaled)
    raise TraceError(f"support vectors with the kernel {kind!r} are not supported")


@onnx_op("ai.onnx.ml.SVMRegressor")
def _regressor(
    call: Any,
    x: Any,
    /,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
) -> Any:
    wide, factors = captured(x.astype(np.float32)), np.array(coefficients, np.float32)
    if n_supports:
        vectors = np.array(support_vectors, np.float32).reshape(n_supports, -1)
        scores = np.matmul(_kernel(kernel_type, kernel_params, wide, vectors), factors[:, None])
    else:
        scores = np.matmul(wide, factors[:, None])
    scores = scores + np.float32(rho[0])
    if one_class:
        return np.where(scores > 0, np.float32(1), np.float32(-1))
    return transformed(scores, post_transform)


@onnx_op("ai.onnx.ml.SVMClassifier")
def _classifier(
    call: Any,
    x: Any,
    /,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    **attributes: Any,
) -> Any:
    """One machine for each pair of classes; probabilities are those that fit those of all pairs."""
    labels = labels_of(attributes)
    count, total = len(vectors_per_class), sum(vectors_per_class)
    if not total or not prob_a or prob_b is None:
        raise TraceError(
            "support vectors whose scores are no probabilities are not supported", hint="train with probability=True"
        )
    vectors = np.array(support_vectors, np.float32).reshape(total, -1)
    factors = np.array(coefficients, np.float32).reshape(count - 1, total)
    ends = np.cumsum(vectors_per_class)
    of_class = [slice(end - n, end) for n, end in zip(vectors_per_class, ends, strict=True)]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    machines = np.zeros((total, len(pairs)), np.float32)
    for number, (i, j) in enumerate(pairs):
        machines[of_class[i], number] = factors[j - 1, of_class[i]]
        machines[of_class[j], number] = factors[i, of_class[j]]
    kernels = _kernel(kernel_type, kernel_params, captured(x.astype(np.float32)), vectors)
    scores = np.matmul(kernels, machines) + np.array(rho, np.float32)
    logits = scores * np.array(prob_a, np.float32) + np.array(prob_b, np.float32)
    shares = np.minimum(np.maximum(1.0 / (1.0 + np.exp(logits)), np.float32(_LEAST)), np.float32(1 - _LEAST))
    chances = _of_classes(shares, pairs, count)
    # The class is the one that most machines choose, which need not be the most probable one.
    votes = np.stack([_votes(scores, pairs, k) for k in range(count)], 1)
    return NodeResults((item_of(labels, np.argmax(votes, axis=1)), transformed(chances, post_transform)))


def _votes(scores: Any, pairs: list[tuple[int, int]], number: int) -> Any:
    """How many machines choose a class: the first of a pair where the score is positive, else the second."""
    chosen = [(scores[:, k] > 0) == (pair[0] == number) for k, pair in enumerate(pairs) if number in pair]
    return sum(choice.astype(np.int64) for choice in chosen)


def _of_classes(shares: Any, pairs: list[tuple[int, int]], count: int) -> Any:
    """Probabilities of all classes from those of pairs, by the second method of Wu, Lin and Weng (2004).

    The search ends as early as libsvm's, also for two classes, whose probabilities are then up to 2e-3 away.
    """
    between: list[list[Any]] = [[None] * count for _ in range(count)]
    for number, (i, j) in enumerate(pairs):
        between[i][j] = shares[:, number]
        between[j][i] = 1.0 - shares[:, number]
    q = [
        [
            sum(between[k][i] * between[k][i] for k in range(count) if k != i)
            if i == j
            else -between[j][i] * between[i][j]
            for j in range(count)
        ]
        for i in range(count)
    ]
    products = np.stack([np.stack(row, 1) for row in q], 1)  # (rows, classes, classes)

    def measured(p: Any) -> tuple[Any, Any, Any]:
        parts = np.matmul(products, p[:, :, None])[:, :, 0]
        quadratic = np.sum(p * parts, 1, keepdims=True)
        is_near = np.max(np.abs(parts - quadratic), axis=1, keepdims=True) < 0.005 / count
        return parts, quadratic, is_near

    def goes_on(state: tuple[Any, Any]) -> Any:
        done, p = state
        return np.logical_and(done < _ROUNDS, np.logical_not(np.all(measured(p)[2])))

    def nearer(state: tuple[Any, Any]) -> tuple[Any, Any]:
        done, p = state
        parts, quadratic, is_near = measured(p)
        columns = [p[:, k] for k in range(count)]
        rests = [parts[:, k] for k in range(count)]
        sum_of = quadratic[:, 0]
        for k in range(count):
            more = (sum_of - rests[k]) / q[k][k]
            columns[k] = columns[k] + more
            sum_of = (sum_of + more * (more * q[k][k] + 2.0 * rests[k])) / (1.0 + more) / (1.0 + more)
            for m in range(count):
                rests[m] = (rests[m] + more * q[k][m]) / (1.0 + more)
                columns[m] = columns[m] / (1.0 + more)
        return done + 1, np.where(is_near, p, np.stack(columns, 1))

    first = np.zeros_like(products[:, :, 0]) + np.float32(1.0 / count)
    return while_loop(goes_on, nearer, (captured(np.int64(0)), first))[1]
