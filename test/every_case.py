"""Which cases of a sweep run: all of them, pairs of a product of three, or a sample."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest

# All of them take many minutes; without it, cases that repeat what others test are left out.
EVERY_CASE = os.environ.get("EVERY_CASE") == "1"


def pairs(first: Sequence[Any], second: Sequence[Any], ways: Sequence[Any]) -> list[tuple]:
    """(one of the first, one of the second, a way): each pair in ways that take turns.

    So each of either meets each way, as long as the other has as many as there are ways.
    """
    if EVERY_CASE:
        return list(product(first, second, ways))
    return [(a, b, ways[(i + k) % len(ways)]) for i, a in enumerate(first) for k, b in enumerate(second)]


def spread(cases: Sequence[Any], step: int = 3) -> Sequence[Any]:
    """All of the cases, or one in so many; of a product, each row has others than the one before.

    The length of a row and ``step`` have no common divisor.
    """
    return cases if EVERY_CASE else cases[::step]


def fewer(count: int, by: int = 3) -> int:
    """So many random examples, or by default one of them in ``by``."""
    return count if EVERY_CASE else -(-count // by)


def sampled(items: Iterable[pytest.Item], always: Container[str] = ()) -> set[pytest.Item]:
    """The tests that run by default: of functions marked ``sampled(n)``, one case in n.

    ``always``: ids of cases that run, such as those that catch deliberate faults (`named_cases`).

    Which, a hash of the names decides, so that cases that are added or removed leave others as they are.
    Of each value of a parameter that several cases share (an op, a dtype, a mode) one case runs at least; of
    functions marked ``sampled(n, each=names)`` that holds for the parameters of these names alone.
    A case that is asked for by its name is the only one of its function, and runs.
    """
    chosen, sweeps = set(), {}
    for item in items:
        if item.get_closest_marker("sampled") is None or item.get_closest_marker("cuda") is not None:
            chosen.add(item)  # those that need a GPU are skipped without: they represent no other
        else:
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in sweeps.values():
        cases.sort(key=lambda case: zlib.crc32(case.nodeid.encode()))
        mark = cases[0].get_closest_marker("sampled")
        (n,), each = mark.args, mark.kwargs.get("each")
        of_case = {case: [value for value in _values(case) if each is None or value[0] in each] for case in cases}
        times = Counter(value for values in of_case.values() for value in values)
        missing = {value for value, count in times.items() if count > 1}
        some = set()
        for case in cases:
            if case.nodeid in always or not missing.isdisjoint(of_case[case]):
                missing.difference_update(of_case[case])
                some.add(case)
        others = [case for case in cases if case not in some]
        chosen |= some | set(others[: max(0, -(-len(cases) // n) - len(some))])
    return chosen


def named_cases() -> set[str]:
    """The ids of the cases that deliberate faults are caught by, where these name single ones."""
    from mutations import MUTATIONS

    return {f"test/{test}" for mutation in MUTATIONS for test in mutation.tests if "[" in test}


def _values(case: Any) -> Iterator[tuple[str, Hashable]]:
    """The values of the parameters of a case: of cases of ops (`Case`) the op, of other objects their identity."""
    for name, value in case.callspec.params.items():
        value = getattr(value, "op", value)
        plain = value is None or isinstance(value, (str, int, float, tuple))
        yield name, repr(value) if plain else id(value)
