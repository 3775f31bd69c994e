"""The loss of connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import detached
from ....numpy.neural.projections import in_range
from ...array_values import item_of
from ...time_steps import steps
from ..aten_table import aten, refuse
from ..demands import demanded
from ..promotion import INT64, cast, is_tensor


@aten("_ctc_loss")
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False
) -> tuple[Any, None]:
    """The negative logarithm of the probability of each target; what torch keeps for its own gradients is left out.

    Args:
        log_probs: (T, N, C), or (T, C) for one target.
        targets: (N, S), or all behind each other.
        input_lengths: how many of the T steps count, (N,).
        target_lengths: (N,).
        blank: the class that stands for none.
        zero_infinity: a target that cannot be has no gradient, as it has none here in any case.
    """
    is_single = log_probs.ndim == 2
    logs = log_probs[:, None, :] if is_single else log_probs
    span, batch, classes = map(int, logs.shape)
    if not span or not batch:
        raise refuse("_ctc_loss", "of sequences without elements")
    most = _longest(targets, target_lengths)
    have, wanted = (_lengths(x, batch) for x in (input_lengths, target_lengths))
    have = demanded(have, (have >= 0) & (have <= span), "input_lengths must be at most the number of steps")
    wanted = demanded(wanted, (wanted >= 0) & (wanted <= most), "target_lengths must be at most the size of targets")
    labels = in_range("ctc_loss", "targets", _labels(targets, wanted, most, blank), classes)

    # The states of a target: a blank, the first label, a blank, and so on.
    count = 2 * most + 1
    states = np.arange(count)
    at = np.where(states % 2 == 1, np.take(labels, np.minimum(states // 2, max(most - 1, 0)), axis=1), blank)
    chances = np.take_along_axis(logs, np.broadcast_to(at[None], (span, batch, count)), 2)
    never = cast(-math.inf, logs.dtype)
    before = np.concatenate([np.full((batch, 2), blank, np.int64), at[:, :-2]], axis=1)[:, :count]
    may_skip = (states % 2 == 1) & (states > 1) & (at != before)

    def behind(x: Any, number: int) -> Any:
        front = np.full((batch, min(number, count)), -math.inf, logs.dtype)
        return np.concatenate([front, x[:, : max(count - number, 0)]], axis=1)

    def step(number: Any, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        (alpha,) = values
        skipped = np.where(may_skip, behind(alpha, 2), never)
        new = _sum_of_logs(alpha, behind(alpha, 1), skipped) + item_of(chances, number)
        return (np.where((have > number)[:, None], new, alpha),), ()

    first = np.where(states < 2, chances[0], never)
    alpha = first
    if span > 1:
        (alpha,), _ = steps(span - 1, (first,), lambda number, values: step(number + 1, values))
    last = 2 * wanted[:, None]
    ends = np.take_along_axis(alpha, last, 1), np.take_along_axis(alpha, np.maximum(last - 1, 0), 1)
    loss = -_sum_of_logs(ends[0], np.where(last > 0, ends[1], never), never)[:, 0]
    nothing = np.where(wanted == 0, cast(0, logs.dtype), cast(math.inf, logs.dtype))
    loss = np.where(have == 0, nothing, loss + _as_of_softmax(logs, have, np.isfinite(loss)))
    return np.reshape(loss, ()) if is_single else loss, None


def _as_of_softmax(logs: Any, have: Any, is_possible: Any) -> Any:
    """Zeros with the gradient of the sums of probabilities: torch's gradients are those of logarithms of a softmax."""
    counts = (np.arange(int(logs.shape[0]))[:, None] < have) & is_possible
    total = np.sum(np.where(counts[..., None], np.exp(logs), cast(0, logs.dtype)), axis=(0, 2))
    total = np.where(np.isfinite(total), total, cast(0, logs.dtype))
    return total - detached(total)


def _longest(targets: Any, lengths: Any) -> int:
    """The number of labels that there is room for."""
    if targets.ndim == 2:
        return int(targets.shape[1])
    if is_tensor(lengths):  # what they are, a run tells
        return int(targets.shape[0])
    return max((int(n) for n in _sequence(lengths)), default=0)


def _sequence(x: Any) -> Sequence[Any]:
    return x if isinstance(x, Sequence) else (x,)


def _lengths(x: Any, batch: int) -> Any:
    return np.reshape(cast(x if is_tensor(x) else np.asarray(_sequence(x)), INT64), (batch,))


def _labels(targets: Any, lengths: Any, most: int, blank: int) -> Any:
    """The labels (N, S) of each target, with blanks behind its end."""
    places = np.arange(most)
    batch = int(lengths.shape[0])
    if not most:
        return np.full((batch, 1), blank, np.int64)
    labels = cast(targets, INT64)
    if targets.ndim == 1:
        starts = np.cumsum(lengths) - lengths
        size = int(targets.shape[0])
        starts = demanded(starts, starts + lengths <= size, "target_lengths are more than there are targets")
        labels = np.take(labels, np.minimum(starts[:, None] + places, size - 1))
    return np.where(places < lengths[:, None], labels, blank)


def _sum_of_logs(a: Any, b: Any, c: Any) -> Any:
    """The logarithm of a sum of exponentials, with the gradient 0 where all of them are 0."""
    top = detached(np.maximum(np.maximum(a, b), c))
    top = np.where(np.isfinite(top), top, cast(0, top.dtype))
    total = np.exp(a - top) + np.exp(b - top) + np.exp(c - top)
    is_any = total > 0
    return np.where(is_any, np.log(np.where(is_any, total, cast(1, total.dtype))) + top, cast(-math.inf, total.dtype))
