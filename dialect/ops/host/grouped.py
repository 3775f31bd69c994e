"""Products of groups of rows, each with a matrix of its own, as mixtures of experts have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rule import BoundCall, Rule, Shapes


def grouped_product(rows: Any, matrices: Any, ends: Any) -> Any:
    """``rows[start:end] @ matrices[k]`` for each group; zeros for rows behind all groups.

    Args:
        rows: (S, I).
        matrices: (E, I, O).
        ends: where each group ends, in order: integers (E,).
    """
    out = np.zeros((rows.shape[0], matrices.shape[2]), np.result_type(rows, matrices))
    start = 0
    for matrix, end in zip(matrices, ends.tolist(), strict=True):
        out[start:end] = rows[start:end] @ matrix
        start = end
    return out


def grouped_outer(rows: Any, others: Any, ends: Any) -> Any:
    """``rows[start:end].T @ others[start:end]`` for each group: (E, I, O) of rows (S, I) and (S, O)."""
    out = np.zeros((ends.shape[0], rows.shape[1], others.shape[1]), np.result_type(rows, others))
    start = 0
    for k, end in enumerate(ends.tolist()):
        out[k] = rows[start:end].T @ others[start:end]
        start = end
    return out


def _product(call: BoundCall) -> Shapes | None:
    rows, matrices = call.shape("rows"), call.shape("matrices")
    return None if rows is None or matrices is None else [(rows[0], matrices[2])]


def _outer(call: BoundCall) -> Shapes | None:
    rows, others, ends = call.shape("rows"), call.shape("others"), call.shape("ends")
    return None if rows is None or others is None or ends is None else [(ends[0], rows[1], others[1])]


RULES = (
    Rule("profuse.grouped_product", _product, own=grouped_product, gradient="grouped_product"),
    Rule("profuse.grouped_outer", _outer, own=grouped_outer, gradient="grouped_outer"),
)
