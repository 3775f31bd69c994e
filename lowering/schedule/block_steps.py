"""Steps that run in blocks: products and nests, of which a block of rows at a time is computed.

What stands between the parts of such a step is stored for one block alone, in a `Window`. `blocks`
and `panels` find such steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.ir.size_algebra import sym_min
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .graph import Buffer, Element, Product, Tensor, WindowLayout
from .groups import Group, Grouper, Step

if TYPE_CHECKING:
    from .chunks import Chunks
    from .nests import Nest, Scratch


@dataclass(eq=False)
class Window:
    """Memory for the rows of one block of a result that is nowhere stored as a whole.

    Attributes:
        tensors: the result, and those that take its place in memory.
        height: rows of a block.
        layout: where elements are; None = rows of a matrix follow each other.
        sizes: sizes of the memory of one chunk; None = those of the rows of a matrix.
    """

    tensors: list[Tensor]
    height: Dim
    layout: WindowLayout | None = None
    sizes: tuple[Dim, ...] | None = None

    @property
    def buffer(self) -> Buffer | None:
        """The rows of one block, for each chunk; None = not decided."""
        return self.tensors[0].buffer

    @buffer.setter
    def buffer(self, buffer: Buffer) -> None:
        buffer.windowed, buffer.layout = True, self.layout
        for tensor in self.tensors:
            tensor.buffer = buffer

    @property
    def element(self) -> Element:
        return self.tensors[0].element

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Sizes of the memory of one chunk."""
        if self.sizes is not None:
            return self.sizes
        *_, rows, columns = self.tensors[0].dims
        return (sym_min(self.height, rows), columns)


@dataclass(eq=False, kw_only=True)
class BlockStep:
    """Products and nests as one step, in a loop over blocks.

    Attributes:
        windows: the results of which only one block is stored.
        after: steps that must run before this one.
        nests: the loops of each group among the parts.
        temporaries: what needs memory for a block: windows, and temporary arrays of the nests.
        chunks: how threads share the blocks; None = they run on one.
    """

    windows: list[Window] = field(default_factory=list)
    after: set[Step] = field(default_factory=set)
    nests: dict[Group, Nest] = field(default_factory=dict)
    temporaries: list[Window | Scratch] = field(default_factory=list)
    chunks: Chunks | None = None

    @property
    def parts(self) -> list[Group | Product]:
        """The steps that run for each block, in order."""
        raise NotImplementedError

    @property
    def block_rows(self) -> Dim:
        """Rows of a block."""
        raise NotImplementedError

    @property
    def rows(self) -> Dim:
        """Rows of a matrix."""
        raise NotImplementedError

    @property
    def matrices(self) -> Dim:
        """Matrices of the batch."""
        raise NotImplementedError

    @property
    def steps(self) -> list[Nest | Product]:
        """The parts, each group as its nest."""
        return [self.nests[part] if isinstance(part, Group) else part for part in self.parts]

    @property
    def products(self) -> list[Product]:
        """The products among the parts."""
        return [part for part in self.parts if isinstance(part, Product)]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that the parts define."""
        return [t for part in self.parts for t in ([part.output] if isinstance(part, Product) else part.outputs)]

    @property
    def windowed(self) -> list[Tensor]:
        """The results of which only the rows of a block are stored."""
        return [tensor for window in self.windows for tensor in window.tensors]

    @property
    def per_matrix(self) -> Dim:
        """Blocks of a matrix."""
        return ix.ceil_div(self.rows, self.block_rows)

    @property
    def extent(self) -> Dim:
        """Blocks of all matrices."""
        return self.matrices * self.per_matrix


def is_read_outside(tensor: Tensor, steps: Sequence[Step], grouper: Grouper) -> bool:
    """True if a tensor is a result of the function, or read by another step than these."""
    if tensor.buffer is not None:
        return True
    return any(tensor in grouper.reads(step) for step in grouper.steps if step not in steps)


def must_wait(step: BlockStep, grouper: Grouper) -> bool:
    """True if a part needs a step that needs another part: it would have to run between blocks.

    What a part needs of other steps has to exist before the first block.
    """
    parts = step.parts
    others = set().union(*map(grouper.before, parts)) - set(parts)
    return any(grouper.reaches(other, part) for other in others for part in parts[:-1])
