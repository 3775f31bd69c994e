"""ONNX's counts of runs of words, or of numbers that words are: `TfIdfVectorizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ...array_values import captured, constant_or_created, item_of, owned
from ...on_host import on_host
from ..onnx_table import onnx_op
from ..onnx_texts import Texts, by_place, places_of
from .onnx_categories import by_number

_LARGEST_TABLE = 1 << 22  # of what follows a run, in elements


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
    if mode not in ("TF", "IDF", "TFIDF"):
        raise TraceError(f"TfIdfVectorizer of mode {mode!r} is not known")
    pool = places_of(call, pool_strings) if pool_int64s is None else np.array(pool_int64s, np.int64)
    # Words are numbered from 1 on; 0 is any that no run has, and what lies behind a row.
    words, numbers = np.unique(pool, return_inverse=True)
    count = np.arange(1, len(words) + 1)
    if isinstance(x, Texts):
        listed = [call.interpreter.graph.texts.words[place] for place in words]
        row = by_place(call, x, listed, count, 0)
    else:
        row = by_number(captured(x), words, count, 0)
    rows = row if row.ndim == 2 else np.expand_dims(row, 0)
    size, starts = max(ngram_indexes) + 1, [*ngram_counts, len(pool)]
    columns: list[Any] = []
    seen = 0
    for length in range(1, len(ngram_counts) + 1):
        runs = numbers[starts[length - 1] : starts[length]].reshape(-1, length) + 1
        first, seen = seen, seen + len(runs)
        if len(runs) and min_gram_length <= length <= max_gram_length:
            skips = 1 if length == 1 else max_skip_count + 1
            columns += _columns(rows, runs, len(words) + 1, np.append(ngram_indexes[first:seen], size), skips)
    totals = owned(constant_or_created("zeros", (rows.shape[0], size + 1), np.float32))
    if columns:
        places = np.reshape(constant_or_created("arange", rows.shape[0]), (-1, 1))
        np.add.at(totals, (places, np.concatenate(columns, 1)), np.float32(1))
    totals = totals[:, :size]
    totals = totals if row.ndim == 2 else np.squeeze(totals, 0)
    if mode == "TF":
        return totals
    factors = np.ones(size, np.float32)
    if weights is not None:
        factors[list(ngram_indexes)] = np.array(weights, np.float32)
    return (np.minimum(totals, np.float32(1)) if mode == "IDF" else totals) * factors


def _columns(rows: Any, runs: np.ndarray, base: int, indexes: np.ndarray, skips: int) -> list[Any]:
    """For each way of leaving elements out, the column of the run that begins at each element.

    Args:
        rows: of numbers of words.
        runs: one a row.
        base: all numbers are less.
        indexes: the column of each run, and of what is none.
        skips: so many ways.
    """
    length, width = runs.shape[1], rows.shape[1]
    behind = (length - 1) * skips
    rows = np.pad(rows, ((0, 0), (0, behind))) if behind else rows
    columns = []
    for skip in range(skips):
        run: Any = None
        prefixes = np.zeros(len(runs), np.int64)
        for k in range(length):
            part = rows[:, k * (skip + 1) : k * (skip + 1) + width]
            keys = prefixes * base + runs[:, k]
            listed, prefixes = np.unique(keys, return_inverse=True)
            prefixes = prefixes + 1
            run = _known(part if run is None else run * base + part, listed)
        if len(listed) != len(runs):
            raise TraceError("TfIdfVectorizer has a run twice")
        column = np.full(len(runs) + 1, indexes[-1], np.int64)
        column[prefixes] = indexes[:-1]
        columns.append(item_of(column, run))
    return columns


def _known(keys: Any, listed: np.ndarray) -> Any:
    """The place of each key among those that are listed in order, from 1 on; 0 = it is none of them."""
    most = int(listed[-1])
    if most < _LARGEST_TABLE:
        table = np.zeros(most + 2, np.int64)
        table[listed] = np.arange(1, len(listed) + 1)
        return item_of(table, np.minimum(keys, most + 1))
    places = np.minimum(on_host("numpy.searchsorted", listed, keys), len(listed) - 1)
    return np.where(item_of(listed, places) == keys, places + 1, 0)
