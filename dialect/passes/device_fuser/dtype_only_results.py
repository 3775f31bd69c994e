"""Have a guarded group give a dtype where nothing else is asked of a result (R3.47)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import readers
from ...ir.program import Block, Instr, Program
from ...ir.types import INT_SCALAR, TensorType
from ...mlir.decoded_module import DecodedModule
from ...ops.control_flow.control import If
from ...ops.queries import DTypeCode, DTypeConstant
from ...ops.speculation import CudaGroup
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from .group_calls import drop_results


@register_pass
@dataclass(frozen=True)
class DtypeOnlyResults(Pass):
    """Yield the dtype of a group's result instead of the result where all who read it query its dtype.

    On the side of the group the dtype is known; on the side of the fallback it is queried there.
    Results of groups that nothing reads any more go. A result whose dtype is not known stays.
    """

    name: ClassVar[str] = "dtype-only-results"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(CudaGroup)):
            program = graphs[name]
            for branch in [i for i in program.body.walk() if i.op is If]:
                groups = [i for i in branch.blocks[0].instrs if issubclass(i.op, CudaGroup)]
                if len(groups) != 1:
                    continue
                callee = groups[0].attrs["callee"]
                if self._branch(program, branch, groups[0], graphs[callee]):
                    graphs.mark(name)
                    if graphs.count_calls(callee) == 1 and drop_results(program, groups[0], graphs[callee]):
                        graphs.mark(callee)
                        self.count("results-dropped")
        graphs.store()

    def _branch(self, program: Program, branch: Instr, group: Instr, body: Program) -> bool:
        """Replace results of one ``if``, last to first; True if any was."""
        changed = False
        fused, fallback = branch.blocks
        for k in reversed(range(len(branch.results))):
            result, source = branch.results[k], fused.outputs[k]
            queries = readers(program.body).get(result, [])
            if source not in group.results or not queries:
                continue
            if not all(isinstance(q, Instr) and q.op is DTypeCode for q in queries):
                continue
            type_ = body.type_of(body.outputs[group.results.index(source)])
            if not isinstance(type_, TensorType) or type_.dtype is None:
                self.note(Reason(Kind.UNKNOWN_TYPE, "cuda_group", k, effect=Effect.RESULT_KEPT, loc=group.loc))
                continue
            dtype = Instr(DTypeConstant, (), (program.new_value(INT_SCALAR),), {"dtype": type_.dtype}, loc=group.loc)
            _yield_instead(fused, k, dtype)
            query = Instr(DTypeCode, (fallback.outputs[k],), (program.new_value(INT_SCALAR),), loc=group.loc)
            _yield_instead(fallback, k, query)
            program.types[result] = INT_SCALAR
            for asked in queries:
                assert isinstance(asked, Instr)
                _forward(program.body, asked, result)
            self.count("dtypes-yielded")
            changed = True
        return changed


def _yield_instead(block: Block, index: int, instr: Instr) -> None:
    block.instrs.append(instr)
    block.outputs = (*block.outputs[:index], instr.results[0], *block.outputs[index + 1 :])


def _forward(body: Block, query: Instr, value: int) -> None:
    """Read a value in the place of a query, which goes."""
    body.replace({query.results[0]: value})
    for block in (body, *(b for i in body.walk() for b in i.blocks)):
        block.instrs[:] = [i for i in block.instrs if i is not query]
