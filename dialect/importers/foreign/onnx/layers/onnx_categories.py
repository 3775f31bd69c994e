"""Operators of ai.onnx.ml on categories, which are integers, floats or texts: tables and one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.tracing.traced_control import required
from ...array_values import item_of
from ..onnx_table import onnx_op
from ..onnx_texts import UNKNOWN, Texts, by_place, chosen_texts, places_of
from ..tensors.onnx_casts import cast

_WIDEST_TABLE = 1 << 18  # of integers that are looked up by what they are, in elements


def labels_of(call: Any, attributes: dict[str, Any], indices: Any) -> Any:
    """The labels of a classifier's classes by their indices: integers, or texts."""
    listed = next((attributes[k] for k in ("classlabels_int64s", "classlabels_ints") if attributes.get(k)), None)
    if listed is not None:
        return item_of(np.array(listed, np.int64), indices)
    return chosen_texts(call, attributes["classlabels_strings"], indices)


def label_count(attributes: dict[str, Any]) -> int:
    """The number of a classifier's classes; raises TraceError where they are not listed."""
    names = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
    count = next((len(attributes[name]) for name in names if attributes.get(name)), 0)
    if not count:
        raise TraceError("a classifier does not say what its classes are")
    return count


def by_number(x: Any, keys: np.ndarray, values: np.ndarray, other: Any) -> Any:
    """The value of the first key that each element of ``x`` is; NaN is NaN."""
    if keys.dtype.kind in "iu" and len(keys) and int(keys.max()) - int(keys.min()) < _WIDEST_TABLE:
        x = cast(x, np.dtype(np.int64))
        first, span = int(keys.min()), int(keys.max()) - int(keys.min()) + 1
        table = np.full(span + 1, other, values.dtype)
        table[(keys - first)[::-1]] = values[::-1]
        is_inside = (x >= first) & (x < first + span)
        return item_of(table, np.where(is_inside, x - first, span))
    wide = np.expand_dims(x, -1)
    hits = wide == keys
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        hits = hits | (np.isnan(wide) & np.isnan(keys))
    table = np.append(values, np.array(other, values.dtype))
    return item_of(table, np.where(np.any(hits, axis=-1), np.argmax(hits, axis=-1), len(keys)))


def _mapped(call: Any, x: Any, keys: Any, values: Any, other: Any) -> Any:
    """The value of each element of ``x``; keys and values are texts or numbers, each in order."""
    gives_texts = np.asarray(values).dtype.kind in "OU"
    table = places_of(call, values) if gives_texts else np.asarray(values)
    rest = places_of(call, [other])[0] if gives_texts else other
    takes_texts = np.asarray(keys).dtype.kind in "OU"
    if isinstance(x, Texts) != takes_texts:
        raise TraceError(f"a table of {'texts' if takes_texts else 'numbers'} is given others")
    results = by_place(call, x, keys, table, rest) if takes_texts else by_number(x, np.asarray(keys), table, rest)
    return Texts(results) if gives_texts else results


@onnx_op("ai.onnx.ml.LabelEncoder", texts=True)
def _label_encoder(
    call: Any,
    x: Any,
    /,
    *,
    classes_strings: Sequence[str] | None = None,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = UNKNOWN,
    default_tensor: Any = None,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: Any = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: Any = None,
) -> Any:
    if classes_strings is not None:  # of version 1: texts and their numbers, in the direction that the operand tells
        numbers = np.arange(len(classes_strings))
        if isinstance(x, Texts):
            return _mapped(call, x, classes_strings, numbers, default_int64)
        return _mapped(call, x, numbers, classes_strings, default_string)
    keys = _listed(keys_strings, keys_int64s, keys_floats, keys_tensor)
    values = _listed(values_strings, values_int64s, values_floats, values_tensor)
    other = {"i": default_int64, "f": default_float}.get(values.dtype.kind, default_string)
    if default_tensor is not None:
        other = np.ravel(default_tensor)[0]
    if len(keys) != len(values):
        raise TraceError(f"LabelEncoder has {len(keys)} keys and {len(values)} values")
    return _mapped(call, x, keys, values, other)


def _listed(texts: Any, integers: Any, floats: Any, tensor: Any) -> np.ndarray:
    """Keys or values, of whichever kind they are given; raises TraceError for none."""
    for listed, dtype in ((texts, object), (integers, np.int64), (floats, np.float32)):
        if listed is not None:
            return np.array(listed, dtype)
    if tensor is None:
        raise TraceError("LabelEncoder has no keys or no values")
    return np.ravel(tensor)


@onnx_op("ai.onnx.ml.CategoryMapper", texts=True)
def _category_mapper(
    call: Any,
    x: Any,
    /,
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = UNKNOWN,
) -> Any:
    if isinstance(x, Texts):
        return _mapped(call, x, cats_strings, np.array(cats_int64s, np.int64), default_int64)
    return _mapped(call, x, np.array(cats_int64s, np.int64), cats_strings, default_string)


@onnx_op("ai.onnx.ml.OneHotEncoder", texts=True)
def _one_hot_encoder(
    call: Any,
    x: Any,
    /,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Any:
    listed = cats_int64s or cats_strings or ()
    if len({*listed}) != len(listed) or isinstance(x, Texts) != (not cats_int64s):
        raise TraceError("OneHotEncoder has categories twice, or of another type than what it is given")
    if isinstance(x, Texts):
        elements, categories = x.places, places_of(call, cats_strings or ())
    else:
        elements, categories = cast(x, np.dtype(np.int64)), np.array(listed, np.int64)
    hits = np.expand_dims(elements, -1) == categories
    y = hits.astype(np.float32)
    return y if zeros else required(y, np.all(np.any(hits, axis=-1)), "OneHotEncoder is given an unknown category")
