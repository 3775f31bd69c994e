"""ONNX's support vector machines, as onnxruntime computes them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.tracing.traced_control import while_loop
from ...array_values import captured
from ..onnx_table import NodeResults, onnx_op
from .onnx_categories import labels_of
from .onnx_trees import transformed

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
    """One machine for each pair of classes.

    The scores are the probabilities that fit those of all pairs; without any, they are those of the pairs.
    """
    count, total = len(vectors_per_class), sum(vectors_per_class)
    if not total:
        raise TraceError("support vector machines without vectors are not supported")
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
    # The class is the one that most machines choose, which need not be the most probable one.
    votes = np.stack([_votes(scores, pairs, k) for k in range(count)], 1)
    label = labels_of(call, attributes, np.argmax(votes, axis=1))
    if not prob_a or prob_b is None:
        return NodeResults((label, _of_pairs(scores, post_transform)))
    logits = scores * np.array(prob_a, np.float32) + np.array(prob_b, np.float32)
    shares = np.minimum(np.maximum(1.0 / (1.0 + np.exp(logits)), np.float32(_LEAST)), np.float32(1 - _LEAST))
    chances = _of_classes(shares, pairs, count)
    return NodeResults((label, transformed(chances, post_transform)))


def _of_pairs(scores: Any, post_transform: str) -> Any:
    """Scores of machines without probabilities: two for the one machine of two classes."""
    if scores.shape[1] != 1:
        return transformed(scores, post_transform)
    if post_transform != "NONE":
        raise TraceError(f"the score of two classes by support vectors as {post_transform} is not supported")
    return np.concatenate([-scores, scores], 1)


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

    def measured(p: Sequence[Any]) -> tuple[tuple[Any, ...], Any, Any]:
        """What the search looks at: a sum for each class, that of all, and whether rows are far from the end."""
        parts = tuple(sum(q[i][j] * p[j] for j in range(count)) for i in range(count))
        total = sum(p[i] * parts[i] for i in range(count))
        errors = functools.reduce(np.maximum, [np.abs(part - total) for part in parts])
        return parts, total, errors >= np.float32(0.005 / count)

    def goes_on(state: tuple) -> Any:
        done, going, *_ = state
        return np.logical_and(done < _ROUNDS, going)

    def nearer(state: tuple) -> tuple:
        done, _, columns, rests, total, is_far = state
        columns, rests = [*columns], [*rests]
        before = tuple(columns)
        for k in range(count):
            more = (total - rests[k]) / q[k][k]
            columns[k] = columns[k] + more
            total = (total + more * (more * q[k][k] + 2.0 * rests[k])) / (1.0 + more) / (1.0 + more)
            for m in range(count):
                rests[m] = (rests[m] + more * q[k][m]) / (1.0 + more)
                columns[m] = columns[m] / (1.0 + more)
        p = tuple(np.where(is_far, new, old) for new, old in zip(columns, before, strict=True))
        parts, total, is_far = measured(p)
        return done + 1, np.any(is_far), p, parts, total, is_far

    first = (np.zeros_like(shares[:, 0]) + np.float32(1.0 / count),) * count
    parts, total, is_far = measured(first)
    state = (captured(np.int64(0)), np.any(is_far), first, parts, total, is_far)
    return np.stack(while_loop(goes_on, nearer, state)[2], 1)
