"""Donated arguments (``jit(donate=…)``): decides which results reuse their memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import KnobError
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.speculation import CallFallback, FusionGroup, Guard
from .destinations import is_plain
from .holders import is_sole

if TYPE_CHECKING:
    from ...lowering.abi import KernelABI

_HARMLESS = (Guard, FusionGroup, CallFallback)  # ops that return no view of an operand
Pair = tuple[int, int]


def parameter_names(fn: Callable[..., Any], donate: Any) -> tuple[str, ...]:
    """Names of donated parameters, given by name or position; raises KnobError."""
    if donate is None:
        return ()
    given = (donate,) if isinstance(donate, (str, int)) else donate
    try:
        known = list(inspect.signature(fn).parameters)
        return tuple(
            dict.fromkeys(known[d] if isinstance(d, int) else known[known.index(d)] for d in given)
        )
    except (TypeError, ValueError, IndexError):
        raise KnobError(
            f"donate={donate!r}: expected names or positions of parameters of "
            f"{getattr(fn, '__name__', fn)}"
        ) from None


def positions(names: Sequence[str], donate: Sequence[str]) -> tuple[int, ...]:
    """Indices of the argument leaves, named like ``'x'[1]``, that belong to donated parameters."""
    return tuple(k for k, name in enumerate(names) if name.split("'")[1] in donate)


def donations(
    main: Program,
    destined: Mapping[int, int],
    abis: Mapping[str, KernelABI],
    donated: Sequence[int],
) -> tuple[Pair, ...]:
    """Pairs (output, input): the output may be written into the input's memory.

    Each output and each input is in at most one pair. The fusion group that makes the output must
    be the last reader of the input, and its kernel must be able to write in place.

    Args:
        main: the graph of an optimised plan.
        destined: result of `destinations.destined` for the graph.
        abis: fusion function name -> ABI of its kernel.
        donated: indices of inputs that may be overwritten if they overlap no other input.
    """  # fmt: skip
    found: dict[int, int] = {}
    readers = _readers(main, donated)
    for group, siblings in _groups(main.body):
        abi = abis.get(group.attrs["callee"])
        read = [k for k in donated if (r := readers.get(k)) and not r[0].isdisjoint(group.operands)]
        for number, result in enumerate(group.results):
            output = destined.get(result)
            if abi is None or output is None or output in found.values():
                continue
            for k in read:
                if k not in found and _is_last(group, number, readers[k], siblings, abi):
                    found[k] = output
                    break
    return tuple((output, given) for given, output in found.items())


_Readers = tuple[set[int], list[Instr]]


def _readers(main: Program, donated: Sequence[int]) -> dict[int, _Readers]:
    """Of each input its names and the instructions that use them, in order; without views."""
    found: dict[int, _Readers] = {k: ({main.inputs[k]}, []) for k in donated}
    named = {main.inputs[k]: k for k in donated}

    def drop(values: Iterable[int]) -> None:
        for k in {named[v] for v in values if v in named}:
            found.pop(k, None)

    for instr in main.body.walk():
        for block in instr.blocks:
            drop(block.outputs)
        if not issubclass(instr.op, _HARMLESS):
            drop(instr.operands)
            continue
        for k in {named[v] for v in instr.operands if v in named} & found.keys():
            found[k][1].append(instr)
        if issubclass(instr.op, Guard):
            for alias, given in zip(instr.results, instr.operands, strict=False):
                k = named.get(given, -1)
                if k in found:
                    found[k][0].add(alias)
                    named[alias] = k
    drop(main.outputs)
    return found


def _groups(body: Block) -> Iterator[tuple[Instr, list[Instr]]]:
    """Groups that run at most once, each with the instructions of the branch's other side."""
    for instr in body.instrs:
        if instr.op is FusionGroup:
            yield instr, []
        elif instr.op is If:
            for side, other in (instr.blocks, instr.blocks[::-1]):
                for inner in side.instrs:
                    if inner.op is FusionGroup:
                        yield inner, list(other.walk())


def _is_last(
    group: Instr, number: int, readers: _Readers, siblings: list[Instr], abi: KernelABI
) -> bool:
    names, used = readers
    others = {id(i) for i in siblings}
    after = False
    for instr in used:
        if instr is group:
            after = True
        elif after and id(instr) not in others:
            return False
    if not after or abi.can_violate:
        return False  # after a violation, the group is evaluated again from the same arguments
    read = [k for k, operand in enumerate(group.operands) if operand in names]
    return all((number, k) in abi.in_place for k in read)


def given_memory(pairs: Sequence[Pair], inputs: Sequence[Any], count: int) -> list:
    """Per output, the donated array into which it is written in this call, or None."""
    found: list[np.ndarray | None] = [None] * count
    for output, k in pairs:
        array = inputs[k]
        if isinstance(array, np.ndarray) and is_plain(array) and array.flags.writeable:
            rest = (x for n, x in enumerate(inputs) if n != k and isinstance(x, np.ndarray))
            is_view = type(array.base) is np.ndarray
            if not is_view and not any(np.may_share_memory(array, x) for x in rest):
                found[output] = array
    return found


def sole_memory(pairs: Sequence[Pair], inputs: list, count: int) -> list:
    """As `given_memory`, of the donated arrays that nobody holds but the list of inputs.

    No other input is such an array or shares its memory, and nobody can see that it is written to.
    """
    found: list[np.ndarray | None] = [None] * count
    for output, k in pairs:
        if is_sole(inputs, k):
            array = inputs[k]
            if isinstance(array, np.ndarray) and array.flags.owndata and is_plain(array):
                found[output] = array if array.flags.writeable else None
    return found
