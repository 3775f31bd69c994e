"""Shared rows: groups that work on the same rows of memory become one group.

The gradient of a layer norm takes means of rows, then a row of the result and terms of two sums
over all rows. In groups of their own these would read the arrays from memory three times. Three
kinds of work on rows share a nest: reductions along rows, results of the shape of rows, and
reductions over the rows, whose accumulators are a row themselves. Within a nest, members that read
the same elements get the same loops, so that members that do not depend on one another share a walk
(`nests`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Union

from ...dialect.ir.symbolic import Dim
from .access import Access
from .affine import AffineIndex
from .chunks import starts_neutral
from .graph import Compute, Tensor
from .groups import Group, Grouper, Loop, stored_roots

_WIDEST = 1 << 14  # columns: so many accumulators stay in the L2 cache, beside a few rows

Site = tuple[Union[Loop, None], ...]  # by axis of a tensor, the loop that alone is its index


def share_rows(grouper: Grouper) -> None:
    """Merge groups that work on the same rows, and then loops within each group."""
    groups = [step for step in grouper.steps if isinstance(step, Group)]
    for earlier, later in sorted(combinations(range(len(groups)), 2), key=lambda p: (p[1], -p[0])):
        pair = groups[earlier], groups[later]
        if all(group in grouper.steps for group in pair):
            _merge(grouper, *pair)
    for group in groups:
        if group in grouper.steps and group.lane is None:
            _share_loops(grouper, group)


# --- groups ------------------------------------------------------------------------------------


def _merge(grouper: Grouper, earlier: Group, later: Group) -> None:
    """Make one group of two that work on the same rows."""
    if not _sizes(earlier) & _sizes(later):
        return
    if any(op.is_scan or op.placed or op.partial for op in (*earlier.members, *later.members)):
        return  # a nest that is one scan runs in tiles, and what writes at places runs by itself
    for rows, group in ((earlier, later), (later, earlier)):
        if rows.lane is not None or not _is_rowwise(rows) or grouper.reaches(rows, group):
            continue
        loops, outer = _same_loops(grouper, rows, group), _long(rows.outer)
        if group.lane is not None:
            fits = _are_column_sums(group, loops, outer)
        else:
            mine = [loops.get(g) for g in _long(group.outer)]
            fits = _is_rowwise(group) and len(mine) == len(outer) and set(mine) == set(outer)
        if fits and _reads_rows(grouper, group, rows, loops) and not _between(grouper, rows, group):
            grouper.absorb(rows, group, {g: h for g, h in loops.items() if h in outer})
            return


def _sizes(group: Group) -> set[Dim]:
    return {g.extent for op in group.members for g in _long(group.loops[op])}


def _long(loops: Sequence[Loop]) -> list[Loop]:
    return [loop for loop in loops if loop.extent != 1]


def _is_rowwise(group: Group) -> bool:
    """True if there are outer loops, and a member that walks along rows inside them."""
    outer = _long(group.outer)
    inner = (g for op in group.members for g in _long(group.loops[op]) if g not in outer)
    return bool(outer) and any(True for _ in inner)


def _are_column_sums(group: Group, loops: dict[Loop, Loop], outer: list[Loop]) -> bool:
    """True if all members of a group reduce over ``outer``, and over nothing else."""
    for op in group.members:
        mine = _long(group.loops[op])
        if op.is_scan or op.extremum or any(g not in loops for g in mine):
            return False
        if {loops[g] for g in group.reduced(op) if g in mine} != set(outer):
            return False
        columns = [g.extent for g in mine if loops[g] not in outer]
        if not columns or any(isinstance(n, int) and n > _WIDEST for n in columns):
            return False
        # Otherwise, threads could not share the nest.
        for init, combiner in zip(op.inits, op.combiners, strict=True):
            if combiner is None or combiner.ordered or not starts_neutral(init, combiner):
                return False
    return True


def _reads_rows(grouper: Grouper, group: Group, rows: Group, loops: dict[Loop, Loop]) -> bool:
    """True if each outer iteration of a group reads only results of the same one of ``rows``."""
    for op in group.members:
        for access in grouper.accesses[op]:
            if not any(grouper.home.get(t) is rows for t in stored_roots(access.tensor)):
                continue
            tensor = access.tensor
            if access.index is None or access.reinterpreted or tensor not in grouper.home:
                return False
            read = [None if g is None else loops.get(g) for g in _site(group, op, access.index)]
            written = _stored(rows, tensor)
            aligned = [g for g, h in zip(written, read, strict=True) if g is h]
            if any(g not in aligned for g in _long(rows.outer)):
                return False
    return True


def _between(grouper: Grouper, one: Group, other: Group) -> bool:
    """True if a third step has to run between two groups."""
    return any(
        step is not goal and grouper.reaches(step, goal)
        for start, goal in ((one, other), (other, one))
        for step in grouper.before(start)
    )


# --- loops -------------------------------------------------------------------------------------


def _site(group: Group, op: Compute, index: Sequence[AffineIndex] | None) -> Site:
    singles = [i.single for i in index or ()]
    return tuple(group.loops[op][k] if isinstance(k, int) else None for k in singles)


def _stored(group: Group, tensor: Tensor) -> Site:
    """The loops that are the index at which a member stores a result."""
    op = tensor.producer
    assert isinstance(op, Compute)
    return tuple(group.loops[op][k] for k in op.axes[tensor.number])


def _known(grouper: Grouper, group: Group) -> Iterator[tuple[Compute, Access]]:
    """The reads of members at known indices."""
    for op in group.members:
        for access in grouper.accesses[op]:
            if access.index is not None and not access.reinterpreted:
                yield op, access


def _same_loops(grouper: Grouper, rows: Group, group: Group) -> dict[Loop, Loop]:
    """Loops of ``group`` -> loops of ``rows`` along which both access the same elements."""
    sites: dict[Tensor, list[Site]] = {t: [_stored(rows, t)] for t in rows.outputs}
    for op, access in _known(grouper, rows):
        sites.setdefault(access.tensor, []).append(_site(rows, op, access.index))
    loops: dict[Loop, Loop] = {}
    # Results of one group that the other reads come first: they leave no choice.
    reads = sorted(_known(grouper, group), key=lambda r: grouper.home.get(r[1].tensor) is not rows)
    for op, access in reads:
        site = _site(group, op, access.index)
        for other in sites.get(access.tensor, ()):
            for mine, theirs in zip(site, other, strict=True):
                is_new = mine not in loops and theirs not in loops.values()
                if mine and theirs and is_new and mine.extent == theirs.extent:
                    loops[mine] = theirs
    return loops


def _share_loops(grouper: Grouper, group: Group) -> None:
    """Give members that read the same elements in the same outer iteration the same loops."""
    outer = set(group.outer)
    kept = {g for op in group.members if op.is_scan or op.extremum for g in group.loops[op]}
    first: dict[tuple[Tensor, Site], tuple[Compute, Access]] = {}
    for op, access in _known(grouper, group):
        site = _site(group, op, access.index)
        key = access.tensor, tuple(g if g in outer else None for g in site)
        like, same = first.setdefault(key, (op, access))
        for mine, theirs in zip(site, _site(group, like, same.index), strict=True):
            if mine and theirs and not {mine, theirs} & (outer | kept):
                _replace(group, mine, theirs)


def _replace(group: Group, old: Loop, new: Loop) -> None:
    """Use one loop in place of another, unless they differ in size or one member has both."""
    if old is new or old.extent != new.extent:
        return
    loops = group.loops
    if not any(old in loops[op] and new in loops[op] for op in group.members):
        for op in group.members:
            loops[op] = [new if g is old else g for g in loops[op]]
