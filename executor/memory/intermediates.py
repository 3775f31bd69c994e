"""Finds the intermediates of a plan that can lie in the thread's block.

These are the arrays that only kernels read. Any other reader may keep an array or a view of it: an
evaluated op, an interpreted group (also after a violation), or the caller. Guards keep nothing. A
fallback may keep an array, but fallbacks are rare: if one runs, the plan gives up its block
(`thread_block.forfeit`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from ...dialect.analysis.alias import uses
from ...dialect.dataclass import dataclass
from ...dialect.errors import ShapeError
from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.dtypes import dtype_named
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.size_algebra import multiple_of, parse_dim, substitute
from ...dialect.ir.symbolic import Dim, Dimension, Sym, symbol
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.sizes import is_nonnegative
from ...dialect.ops.speculation import CallFallback, FusionGroup
from ...dialect.ops.speculation import Guard as GuardOp
from ...lowering.abi import KernelABI
from .output_pool import ALIGN_FROM
from .placement import Moment, Placement, Refused, bytes_of, lay_out, size_of

Described = tuple[int, list[tuple[tuple[int, ...], np.dtype, int]]]


@dataclass(eq=False)
class Intermediates:
    """The arrays of one plan that lie in the block, numbered in the order of `index`.

    Attributes:
        index: value -> number of its array.
        shapes: the shape of each array, as size expressions.
        dtypes: the dtype of each array.
        placement: the places of the arrays in the block.
        reads: (input, axis) of each size on which shapes and places depend.
        shared: all values that may lie in the block, including aliases.
        pauses: number of further calls that may not use the block (`thread_block.forfeit`).
        last_pause: length of the latest pause, in calls.
    """

    index: Mapping[int, int]
    shapes: tuple[tuple[Dim, ...], ...]
    dtypes: tuple[np.dtype, ...]
    placement: Placement
    reads: tuple[tuple[int, int], ...]
    shared: frozenset[int]
    pauses: int = 0
    last_pause: int = 0

    @cached_property
    def nowhere(self) -> tuple[None, ...]:
        """A frame without arrays: the kernels then take memory from the pool."""
        return (None,) * len(self.index)

    @cached_property
    def described(self) -> Callable[[tuple[int, ...]], Described]:
        """A function: sizes in the order of `reads` -> (bytes of the block, array descriptions).

        A description is (shape, dtype, byte offset in the block).
        """
        names = {Dimension(*read): symbol(f"s{k}") for k, read in enumerate(self.reads)}
        lines = ["def described(sizes):"]
        if names:
            lines.append(f"    ({', '.join(map(str, names.values()))},) = sizes")
        lines.append("    t0 = 0")
        for k, room in enumerate(self.placement.rooms):
            lines.append(f"    t{k + 1} = t{k} + {substitute(room, names)}")
        found = []
        for k, place in enumerate(self.placement.where[v] for v in self.index):
            shape = "".join(f"{substitute(size, names)}, " for size in self.shapes[k])
            found.append(f"(({shape}), d[{k}], t{place})")
        lines.append(f"    return t{len(self.placement.rooms)}, [{', '.join(found)}]")
        scope: dict[str, Any] = {"d": self.dtypes}
        exec(compile("\n".join(lines), generated_file("arrays between kernels"), "exec"), scope)
        return scope["described"]


def intermediates(main: Program, abis: Mapping[str, KernelABI]) -> Intermediates | None:
    """The arrays of a plan that can lie in the block; None = there are none.

    Args:
        main: the plan's graph.
        abis: fusion function name -> ABI of its native kernel; other groups are interpreted.
    """
    groups = sum(instr.op is FusionGroup for instr in main.body.walk())
    return _Finder(main, abis).found() if groups > 1 else None


class _Finder:
    """Finds the arrays.

    All values that may be the same array form a *web* (a union-find set). A place becomes free when
    no value of the web is read any more.
    """

    def __init__(self, main: Program, abis: Mapping[str, KernelABI]) -> None:
        self.abis = abis
        self.parents: dict[int, int] = {}
        self.seen_by_others: set[int] = set()
        self.moments: list[tuple[tuple[int, ...], set[int]]] = []  # made, touched
        self.inputs: dict[int, int] = {v: v for v in main.inputs}  # input or its alias -> input
        self.shapes: dict[int, tuple[Dim, ...]] = {}  # predicted; the kernel call compares them
        self.dtypes: dict[int, np.dtype] = {}
        self.nbytes: dict[int, Dim] = {}
        self.expose((*main.inputs, *main.outputs))
        self.block(main.body)

    def found(self) -> Intermediates | None:
        seen = {self.web(v) for v in self.seen_by_others}
        last: dict[int, int] = {}
        for k, (_, touched) in enumerate(self.moments):
            last |= dict.fromkeys(map(self.web, touched), k)
        inner = {v: n for v, n in self.nbytes.items() if self.web(v) not in seen}
        if not inner:
            return None
        dead: dict[int, list[int]] = defaultdict(list)
        for value in inner:
            dead[last[self.web(value)]].append(value)
        moments = [Moment(made, dead[k]) for k, (made, _) in enumerate(self.moments)]
        shapes = tuple(self.shapes[v] for v in inner)
        webs = {self.web(v) for v in inner}
        sizes = [size for shape in shapes for size in shape if isinstance(size, Sym)]
        try:
            placement = lay_out(moments, inner)
        except ShapeError:
            return None
        return Intermediates(
            index={v: k for k, v in enumerate(inner)},
            shapes=shapes,
            dtypes=tuple(self.dtypes[v] for v in inner),
            placement=placement,
            reads=tuple(sorted({(leaf.array, leaf.axis) for s in sizes for leaf in s.symbols})),
            shared=frozenset(v for v in self.parents if self.web(v) in webs),
        )

    # --- webs -------------------------------------------------------------------------------

    def web(self, value: int) -> int:
        """The representative of all values that may be the same array as this one."""
        parents = self.parents
        while (parent := parents.setdefault(value, value)) != value:
            parents[value] = value = parents[parent]  # path halving
        return value

    def join(self, one: int, two: int) -> None:
        self.parents[self.web(one)] = self.web(two)

    def expose(self, values: Iterable[int]) -> None:
        """Note that a reader other than a kernel may keep these arrays."""
        self.seen_by_others.update(values)

    def touch(self, instr: Instr, made: tuple[int, ...] = ()) -> None:
        self.moments.append((made, {*instr.operands, *instr.results}))

    # --- instructions -----------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for instr in block.instrs:
            if instr.op is If:
                self.branch(instr)
            elif issubclass(instr.op, GuardOp):
                self.guard(instr)
            elif instr.op is FusionGroup:
                self.group(instr)
            elif instr.op is CallFallback:
                self.touch(instr)
            elif instr.op.dialect == "scf":
                self.loop(instr)
            else:
                self.expose((*instr.operands, *instr.results))

    def guard(self, instr: Instr) -> None:
        self.touch(instr)
        checked = list(zip(instr.results, instr.operands, instr.attrs["types"], strict=False))
        for alias, value, _ in checked:
            self.same(alias, value)
        # A symbol has one value in a guard: if an argument has the size, so have evaluated ops.
        symbols: dict[str, Dim] = {}
        for _, value, type_ in checked:
            for axis, dim in enumerate(type_.shape or ()):
                found, size = multiple_of(dim), self.size(value, axis)
                if found is not None and size is not None:
                    symbols.setdefault(found[0], size // found[1])
        for alias, value, type_ in checked:
            if value not in self.inputs and value not in self.shapes and type_.shape is not None:
                with suppress(Refused):
                    self.shapes[alias] = tuple(size_of(dim, symbols) for dim in type_.shape)

    def branch(self, instr: Instr) -> None:
        self.touch(instr)
        for side in instr.blocks:
            self.block(side)
        for result, *made in zip(instr.results, *(b.outputs for b in instr.blocks), strict=True):
            for value in reversed(made):  # the first side is last, since its sizes shall win
                self.same(result, value)

    def loop(self, instr: Instr) -> None:
        """Treat arrays from outside as read until the loop's end; expose all carried values."""
        self.expose((*instr.operands, *instr.results))
        for block in instr.blocks:
            self.expose((*block.args, *block.outputs))
            self.block(block)
        inside = {r for block in instr.blocks for i in block.walk() for r in i.results}
        self.moments.append(((), uses(instr) - inside))

    def same(self, alias: int, value: int) -> None:
        """Note that two values may be the same array, and that the alias has the value's sizes."""
        self.join(alias, value)
        if value in self.inputs:
            self.inputs[alias] = self.inputs[value]
        if value in self.shapes:
            self.shapes[alias] = self.shapes[value]

    def group(self, instr: Instr) -> None:
        abi = self.abis.get(instr.attrs["callee"])
        if abi is None or abi.can_violate:
            self.expose(instr.operands)
        if abi is None:
            return self.touch(instr)
        sizes = {
            name: size // times for name, (index, axis, times) in abi.symbols.items()
            if (size := self.size(instr.operands[index], axis)) is not None
        }  # fmt: skip
        for result, spec in zip(instr.results, abi.results, strict=True):
            dtype = dtype_named(spec.dtype).numpy
            try:
                shape = tuple(size_of(parse_dim(dim), sizes) for dim in spec.dims)
                nbytes = bytes_of(dtype.itemsize, shape)
            except (Refused, ShapeError):
                continue  # the size is unknown before the call
            if not all(is_nonnegative(parse_dim(dim)) for dim in spec.dims):
                continue  # NumPy refuses negative sizes, and places would overlap
            self.shapes[result], self.dtypes[result] = shape, dtype
            if shape and not (isinstance(nbytes, int) and nbytes < ALIGN_FROM):
                self.nbytes[result] = nbytes
        return self.touch(instr, instr.results)

    def size(self, value: int, axis: int) -> Dim | None:
        if value in self.inputs:
            return symbol(Dimension(self.inputs[value], axis))
        shape = self.shapes.get(value)
        return None if shape is None or axis >= len(shape) else shape[axis]
