"""Sums of matrix products as one op, which may compute one wide product (R1.36, R1.47)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TensorType
from ...mlir.aliases import WrittenMemory
from ...mlir.rewrite import attrs_of, create, defining_op, functions, op_class, ops_in, replace, type_of, types_of, walk
from ...ops.elementwise.binary import Add
from ...ops.linalg.contract import Matmul
from ...ops.linalg.mm_tree import MMTree
from ...ops.manipulation.permute import Transpose
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class BatchMatmul(Pass):
    """``a@b + c@d + …`` of at least ``min-products`` single-use products as one ``mm_tree``.

    Products may be transposed as a whole. Whether they become one wide product the op decides
    when it runs, or is compiled, by the shapes that it then has.
    """

    name: ClassVar[str] = "batch-matmul"
    counts_changes: ClassVar[bool] = True
    min_products: int = 4
    exact: bool = False

    def run(self, module: ir.Module) -> None:
        if self.exact:
            return
        for func in functions(module):
            memory = WrittenMemory(func)
            for region in [r for op in (func, *walk(func)) for r in op.regions]:
                for block in region.blocks:
                    self._block(block, memory)

    def _block(self, block: ir.Block, memory: WrittenMemory) -> None:
        summands = _summands(block)
        members: set[ir.Value] = set()
        chosen: list[_Tree] = []
        # Backwards: the root of a tree is met before what it adds.
        for op in reversed(ops_in(block)):
            if op_class(op) is not Add or op.results[0] not in summands or op.results[0] in members:
                continue
            tree = _tree(op, summands)
            members.update(member.results[0] for member in tree.members)
            if any(memory.is_touched(member) for member in tree.members):
                continue  # a product of memory that is written later cannot wait for the others
            if len(tree.products) >= self.min_products and _of_one_dtype(tree):
                chosen.append(tree)
        for tree in chosen:
            _replace(tree)
            self.count("sums-batched")


class _BatchProduct(NamedTuple):
    op: ir.Operation
    transposed: bool


@dataclass(frozen=True)
class _Tree:
    """A sum of products.

    Attributes:
        products: in the order in which they are added.
        adds: how many additions follow each product.
        members: the ops of the sum, users before makers.
    """

    products: list[_BatchProduct]
    adds: list[int]
    members: list[ir.Operation]


def _summands(block: ir.Block) -> dict[ir.Value, _BatchProduct | None]:
    """Results that are products (of which op, turned or not), or sums (None) of nothing else."""
    summands: dict[ir.Value, _BatchProduct | None] = {}
    for op in ops_in(block):
        cls = op_class(op)
        if cls is Matmul:
            summands[op.results[0]] = _BatchProduct(op, False)
        elif cls is Transpose and attrs_of(op)["perm"] is None:
            product = _only_used_here(op.operands[0], block)
            if product is not None and op_class(product) is Matmul:
                summands[op.results[0]] = _BatchProduct(product, True)
        elif cls is Add and all(v in summands and _only_used_here(v, block) is not None for v in op.operands):
            summands[op.results[0]] = None
    return summands


def _tree(root: ir.Operation, summands: Mapping[ir.Value, _BatchProduct | None]) -> _Tree:
    """The tree of sums and products below a sum."""
    tree = _Tree([], [], [])
    stack = [(root, False)]
    while stack:
        op, is_added = stack.pop()
        product = summands[op.results[0]]
        if is_added:
            tree.adds[-1] += 1
            continue
        tree.members.append(op)
        if product is None:
            makers = [v.owner.operation for v in op.operands]
            stack += [(op, True), *((maker, False) for maker in reversed(makers))]
            continue
        if product.transposed:
            tree.members.append(product.op)
        tree.products.append(product)
        tree.adds.append(0)
    return tree


def _only_used_here(value: ir.Value, block: ir.Block) -> ir.Operation | None:
    source = defining_op(value)
    if source is None or source.block != block:
        return None
    return source if len(list(islice(value.uses, 2))) == 1 else None


def _of_one_dtype(tree: _Tree) -> bool:
    """False if products certainly differ in dtype: the sum then promotes step by step."""
    dtypes = set()
    for product, _ in tree.products:
        try:
            (type_,) = Matmul.infer(types_of(product.operands), {})
        except ProfuseError:
            return False  # it is for the product itself to raise
        dtypes.add(type_.dtype if isinstance(type_, TensorType) else None)
    return len(dtypes - {None}) <= 1


def _replace(tree: _Tree) -> None:
    root, *others = tree.members
    flags = tuple(transposed for _, transposed in tree.products)
    attrs = {"adds": tuple(tree.adds), "transposed": flags if any(flags) else ()}
    factors = [product.operands[side] for side in (0, 1) for product, _ in tree.products]
    mm_tree = create(MMTree, factors, attrs, [type_of(root.results[0])], root)
    replace(root, list(mm_tree.results))
    for member in others:
        member.erase()
