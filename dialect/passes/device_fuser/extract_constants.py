"""Constants that stand for what observers of values have seen: step 1 of R3.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.context import loc_of
from ...mlir.rewrite import attrs_of, create, erase, functions, is_a, is_used, replace, type_of, walk
from ...ops.create import Constant
from ...ops.speculation import ProfileValue
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ExtractConstants(Pass):
    """Put a conditional constant behind each observer of a value that has recorded one (R3.4, R3.6).

    What reads the observed value reads the constant from then on, which depends on the observer. An
    observer without a value is removed, with a reason if it was there to be speculated on.
    """

    name: ClassVar[str] = "extract-constants"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in [op for op in walk(func) if is_a(op, ProfileValue)]:
                self._extract(op)

    def _extract(self, observer: ir.Operation) -> None:
        attrs = attrs_of(observer)
        profiled = ProfileValue.profiled(attrs)
        if profiled is None:
            if attrs["kind"]:
                self.note(_reason(attrs, observer))
            replace(observer, list(observer.operands))
            self.count("observers-removed")
            return
        kind, stored = profiled
        result = observer.results[0]
        if not is_used(observer):
            erase(observer)
            self.count("observers-removed")
            return
        uses = [(use.owner.operation, use.operand_number) for use in result.uses]
        ip = ir.InsertionPoint.after(observer)
        constant = create(
            Constant, [result], {"value": kind.constant(stored)}, [type_of(result)], ip, observer.location
        )
        for user, number in uses:
            user.operands[number] = constant.results[0]
        self.count("constants-extracted")


def _reason(attrs: dict, observer: ir.Operation) -> Reason:
    if attrs["failed"]:
        detail = f"a value of kind {attrs['kind']} was None, differed from run to run, or is longer than a record holds"
    else:
        detail = f"a value of kind {attrs['kind']} was never seen"
    return Reason(Kind.UNPROFILED_VALUE, detail=detail, loc=loc_of(observer.location), effect=Effect.NONE)
