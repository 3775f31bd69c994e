"""ONNX's counts of runs of numbers that words are: `TfIdfVectorizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ...array_values import captured
from ..onnx_table import onnx_op
from ..texts import Texts, places_of


@onnx_op("TfIdfVectorizer", texts=True)
def _tf_idf_vectorizer(
    call: Any,
    x: Any,
    /,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] | None = None,
) -> Any:
    """How often each row has each run of the pool, with up to so many numbers left out between its elements."""
    if isinstance(x, Texts) != (pool_int64s is None):
        raise TraceError("TfIdfVectorizer counts runs of texts or of integers, and is given the others")
    if isinstance(x, Texts):
        x, pool_int64s = x.places, places_of(call, pool_strings).tolist()
    if mode not in ("TF", "IDF", "TFIDF"):
        raise TraceError(f"TfIdfVectorizer of mode {mode!r} is not known")
    x = captured(x)
    width, pool, starts = int(x.shape[-1]), np.array(pool_int64s, np.int64), [*ngram_counts, len(pool_int64s)]
    counts: list[Any] = []
    columns: list[int] = []
    seen = 0
    for length in range(1, len(ngram_counts) + 1):
        runs = pool[starts[length - 1] : starts[length]].reshape(-1, length)
        seen += len(runs)
        if not len(runs) or not min_gram_length <= length <= max_gram_length:
            continue
        columns += ngram_indexes[seen - len(runs) : seen]
        total: Any = np.zeros((*x.shape[:-1], len(runs)), np.float32)
        for skip in range(1 if length == 1 else max_skip_count + 1):
            places = width - (length - 1) * (skip + 1)
            if places <= 0:
                break
            equal: Any = True
            for k in range(length):
                part = x[..., k * (skip + 1) : k * (skip + 1) + places]
                equal = equal & (part[..., None] == runs[:, k].astype(x.dtype))
            total = total + np.sum(equal.astype(np.float32), axis=-2)
        counts.append(total)
    size = max(ngram_indexes) + 1
    if not counts:
        return np.zeros((*x.shape[:-1], size), np.float32)
    # Runs have columns of their own, in any order.
    placed = np.zeros((len(columns), size), np.float32)
    placed[np.arange(len(columns)), columns] = 1.0
    numbers = np.concatenate(counts, -1) @ placed
    if mode == "TF":
        return numbers
    factors = np.ones(size, np.float32)
    if weights is not None:
        factors[list(ngram_indexes)] = np.array(weights, np.float32)
    return (np.minimum(numbers, np.float32(1)) if mode == "IDF" else numbers) * factors
