"""What a compile uses of the user's own: passes, pipelines and ops of this process alone.

Workers do not have them, and no key of the disk cache would tell that they have changed.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from ...dialect.ir.op import OPS
from ...dialect.pipeline.standard import STANDARD

if TYPE_CHECKING:
    from .request import CompileRequest

_PACKAGE = __name__.partition(".")[0]


def users_own(request: CompileRequest) -> str:
    """One such thing that the request uses, such as ``"pass mine"``; "" = there is none."""
    # Not imported here: in a process that has not loaded these, users have added nothing to them.
    passes = sys.modules.get(f"{_PACKAGE}.dialect.passes.base")
    pipeline = sys.modules.get(f"{_PACKAGE}.dialect.pipeline.run")
    foreign = dict.fromkeys(_foreign(passes.PASSES), "pass") if passes else {}
    if pipeline:
        foreign |= dict.fromkeys(set(pipeline.PIPELINES) - set(STANDARD), "pipeline")
    for name in re.findall(r"[\w.-]+", request.pipeline):
        if name in foreign:
            return f"{foreign[name]} {name}"
    return users_op(request.ir)


def users_op(ir: str) -> str:
    """One op of the user's that a graph uses, such as ``"op my.op"``; "" = there is none."""
    for name in _foreign(OPS):
        if f'"{name}"' in ir:
            return f"op {name}"
    return ""


def _foreign(table: dict[str, Any]) -> list[str]:
    return [n for n, cls in table.items() if cls.__module__.partition(".")[0] != _PACKAGE]
