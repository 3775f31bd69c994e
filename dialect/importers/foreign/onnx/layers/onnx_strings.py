"""ONNX's operators that look into texts: Python runs them ahead of a graph, on arrays of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....errors import ShapeError, TraceError
from ..onnx_table import NodeResults, onnx_op

_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
_START, _END = "\x02", "\x03"  # the marks of a text's ends


def _rows(lists: Sequence[Sequence[str]], shape: tuple[int, ...], fill: str) -> np.ndarray:
    """Lists of texts as an array, filled up to the longest one."""
    width = max(map(len, lists), default=0)
    table = np.full((len(lists), width), fill, object)
    for row, texts in zip(table, lists, strict=True):
        row[: len(texts)] = texts
    return table.reshape(*shape, width)


@onnx_op("StringNormalizer")
def _string_normalizer(
    call: Any,
    x: Any,
    /,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Any:
    """Texts without stop words, in one case; the locale is Python's own."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ShapeError(f"StringNormalizer takes a vector, or one row, and no array of shape {x.shape}")
    if case_change_action not in _CASES:
        raise TraceError(f"StringNormalizer has no case {case_change_action!r}")
    compared = str if is_case_sensitive else str.lower
    dropped = {compared(word) for word in stopwords}
    kept = [_CASES[case_change_action](text) for text in np.ravel(x).tolist() if compared(text) not in dropped]
    result = np.array(kept or [""], object)
    return result if x.ndim == 1 else result[None]


@onnx_op("StringConcat")
def _string_concat(call: Any, a: Any, b: Any, /) -> Any:
    return np.asarray(np.add(np.asarray(a, object), np.asarray(b, object)), object)


@onnx_op("StringSplit")
def _string_split(call: Any, x: Any, /, *, delimiter: str | None = None, maxsplit: int | None = None) -> Any:
    x = np.asarray(x, object)
    most = -1 if maxsplit is None else maxsplit
    lists = [text.split(delimiter or None, most) for text in x.ravel().tolist()]
    counts = np.array([len(parts) for parts in lists], np.int64).reshape(x.shape)
    return NodeResults((_rows(lists, x.shape, ""), counts))


@onnx_op("RegexFullMatch")
def _regex_full_match(call: Any, x: Any, /, *, pattern: str) -> Any:
    expression, x = _expression(pattern), np.asarray(x, object)
    return np.array([expression.fullmatch(text) is not None for text in x.ravel().tolist()], bool).reshape(x.shape)


def _expression(pattern: str) -> re.Pattern[str]:
    """A regular expression of RE2, whose classes of characters are ASCII's; raises TraceError where Python has none."""
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise TraceError(f"the expression {pattern!r} is none of Python's: {error}") from None


@onnx_op("com.microsoft.Tokenizer")
def _tokenizer(
    call: Any,
    x: Any,
    /,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] | None = None,
    stopwords: Sequence[str] = (),
    tokenexp: str | None = None,
) -> Any:
    """The words of texts, by an expression that words match, or that lies between them; or single characters."""
    if stopwords or (separators is None) == (tokenexp is None):
        raise TraceError("a Tokenizer has stop words, or not one of separators and an expression of words")
    lists = []
    for text in np.ravel(x).tolist():
        if tokenexp is not None:
            words = [match.group() for match in _expression(tokenexp).finditer(text)]
        elif separators and any(separators):
            words = [text]
            for separator in map(_expression, separators):
                words = [part for word in words for part in separator.split(word)]
        else:
            words = list(text)
        words = [word for word in words if len(word) >= max(mincharnum, 1)]
        lists.append([_START, *words, _END] if mark else words)
    return _rows(lists, x.shape, pad_value)
