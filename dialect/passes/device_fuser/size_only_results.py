"""Sizes of a group's results from the sizes of its operands, where nothing else is asked of them (R3.33)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import readers
from ...ir.op import Op
from ...ir.program import Block, Instr, Program
from ...mlir.decoded_module import DecodedModule
from ...ops.queries import Dim, DTypeCode, Rank, Size
from ...ops.size_items import DimOf, RankOf, SizeOf
from ...ops.size_lists import SizesOf
from ...ops.speculation import CudaGroup
from ...reasons import Reason
from ..base import Pass, register_pass
from .group_calls import drop_results
from .shape_expressions import ShapeExpressions

_ASKED_OF_SIZES: dict[type[Op], type[Op] | None] = {SizesOf: None, Dim: DimOf, Rank: RankOf, Size: SizeOf}
"""Queries of the sizes of a tensor, and the op that asks the same of the sizes themselves; None = it is these."""


@register_pass
@dataclass(frozen=True)
class SizeOnlyResults(Pass):
    """Work sizes of a group's results out from its operands where only sizes or dtypes are asked for.

    A result that nothing reads then is no result any more. One whose sizes cannot be worked out
    stays, with the reason. The partitioner of device groups does the same.
    """

    name: ClassVar[str] = "size-only-results"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        drop_size_only_results(self, module, lambda graphs, name: graphs.count_calls(name) == 1)


def drop_size_only_results(pass_: Pass, module: ir.Module, is_chosen: Callable[[DecodedModule, str], bool]) -> None:
    """`replace_size_queries` in each function of a module, counted and noted as what a pass has done.

    ``is_chosen``: of a group's function, by name, whether its results may go.
    """
    graphs = DecodedModule(module)
    for name in list(graphs.with_ops(CudaGroup)):
        callees = {c: graphs[c] for c in graphs[name].callees(CudaGroup) if is_chosen(graphs, c)}
        changes = replace_size_queries(graphs[name], callees)
        for reason in changes.reasons:
            pass_.note(reason)
        if changes.functions:
            pass_.count("size-queries-replaced", changes.queries)
            pass_.count("results-dropped", changes.results)
            for changed in (name, *changes.functions):
                graphs.mark(changed)
    graphs.store()


@dataclass
class SizeQueryChanges:
    """What `replace_size_queries` has changed.

    Attributes:
        functions: names of the functions of groups whose calls or bodies have changed.
        queries: how many queries are not of results any more.
        results: how many results are gone.
        reasons: why results that only sizes are asked of have stayed.
    """

    functions: set[str]
    queries: int
    results: int
    reasons: list[Reason]


def replace_size_queries(program: Program, functions: Mapping[str, Program]) -> SizeQueryChanges:
    """Rewrite a program and the functions of its groups so that no result is there for its sizes alone (R3.33).

    ``functions``: those of the groups, each of which is called once, by name; other groups stay.
    """
    changes = SizeQueryChanges(set(), 0, 0, [])
    blocks = [program.body, *(block for instr in program.body.walk() for block in instr.blocks)]
    for block in blocks:
        for call in [i for i in block.instrs if issubclass(i.op, CudaGroup) and i.attrs["callee"] in functions]:
            _of_group(program, block, call, functions[call.attrs["callee"]], changes)
    return changes


def _of_group(program: Program, block: Block, call: Instr, body: Program, changes: SizeQueryChanges) -> None:
    users = readers(program.body)
    queries = {k: users.get(r, []) for k, r in enumerate(call.results) if _is_only_asked(users.get(r, []))}
    if not queries:
        return
    materialised = [k for k in range(len(call.results)) if k not in queries]
    expressions = ShapeExpressions.after(program, call, body, materialised)
    used: list[int] = []
    replaced = 0
    for k in sorted(queries, reverse=True):
        asked = [q for q in queries[k] if isinstance(q, Instr) and q.op in _ASKED_OF_SIZES]
        sizes = expressions.of(body.outputs[k])
        if asked and sizes is None:
            changes.reasons.append(expressions.reason(body.outputs[k]))
            continue
        for query in asked:
            assert sizes is not None
            used.append(sizes)
            _ask_instead(program, query, sizes)
            replaced += 1
    at = next(n for n, instr in enumerate(block.instrs) if instr is call)
    block.instrs[at + 1 : at + 1] = expressions.instrs(used)
    dropped = drop_results(program, call, body, queries)
    if replaced or dropped:
        changes.functions.add(body.name)
        changes.queries += replaced
        changes.results += dropped


def _is_only_asked(users: list[Instr | Block]) -> bool:
    """True for the readers of a value of which only sizes or the dtype are asked, if anything is."""
    return all(isinstance(u, Instr) and (u.op is DTypeCode or u.op in _ASKED_OF_SIZES) for u in users)


def _ask_instead(program: Program, query: Instr, sizes: int) -> None:
    """Have a query of a tensor's sizes ask these sizes."""
    op = _ASKED_OF_SIZES[query.op]
    if op is not None:
        query.op, query.operands = op, (sizes,)
        return
    program.body.replace({query.results[0]: sizes})
    for block in (program.body, *(b for instr in program.body.walk() for b in instr.blocks)):
        block.instrs[:] = [i for i in block.instrs if i is not query]
