"""Rules of users for gradients, and the numbers by which graphs know them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..dataclass import dataclass


@dataclass(frozen=True)
class CustomRule:
    """A function that computes gradients, for calls of one structure.

    Attributes:
        name: of the user's rule; for the key, and for messages.
        pull: (saved leaves, gradients of the results) -> gradients of the inputs, None for 0.
        structure: whatever else tells rules apart, comparable.
        forward_mode: tangents may pass through the function that computes the results.
    """

    name: str
    pull: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
    structure: Any
    forward_mode: bool = False


class RuleKey(int):
    """The number that stands for a rule in a graph, which keeps the rule by it.

    Attributes:
        rule: the rule; None = this process does not know it.
    """

    rule: CustomRule | None

    def __new__(cls, number: int, rule: CustomRule | None = None) -> RuleKey:
        """The key of a rule; without one, of that which other graphs of this process have under the number."""
        key = super().__new__(cls, number)
        key.rule = _rules.get(number) if rule is None else rule
        return key

    def __reduce__(self) -> Any:
        return RuleKey, (int(self),)


_rules: WeakValueDictionary[int, CustomRule] = WeakValueDictionary()
_keys: WeakKeyDictionary[CustomRule, int] = WeakKeyDictionary()
_counts: dict[int, int] = {}  # how many rules there have been whose name and structure give a number
_lock = threading.Lock()


def key_of(rule: CustomRule) -> RuleKey:
    """The number that stands for a rule in graphs: the same in every process, as far as may be.

    It is that of no other rule of this process, also of none that has gone: text of its graph may have outlived it.
    """
    text = f"{rule.name}\0{rule.structure}".encode()
    import hashlib

    first = int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")
    with _lock:
        number = _keys.get(rule)
        equal = None if number is None else _rules.get(number)
        if number is not None and equal is not None:
            return RuleKey(number, equal)
        count = _counts.get(first, 0)
        while first + count in _rules:
            count += 1
        _counts[first] = count + 1
        _keys[rule], _rules[first + count] = first + count, rule
        return RuleKey(first + count, rule)
