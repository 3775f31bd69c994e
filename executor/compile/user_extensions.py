"""Finds passes, pipelines and ops that users have registered in this process, in requests.

Workers do not have these extensions, and no key of the disk cache would change with them.
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
    """One user extension in a request, such as ``"pass mine"``; "" = there is none."""
    # These modules are not imported here: a process that has not loaded them has no extensions.
    passes = sys.modules.get(f"{_PACKAGE}.dialect.passes.base")
    pipeline = sys.modules.get(f"{_PACKAGE}.dialect.pipeline.execution")
    foreign = dict.fromkeys(_foreign(passes.PASSES), "pass") if passes else {}
    if pipeline:
        foreign |= dict.fromkeys(set(pipeline.PIPELINES) - set(STANDARD), "pipeline")
    for name in re.findall(r"[\w.-]+", request.pipeline):
        if name in foreign:
            return f"{foreign[name]} {name}"
    return users_op(request.ir)


def users_op(ir: str) -> str:
    """One user-defined op of a graph, such as ``"op my.op"``; "" = there is none."""
    for name in _foreign(OPS):
        if f'"{name}"' in ir:
            return f"op {name}"
    return ""


def _foreign(table: dict[str, Any]) -> list[str]:
    return [n for n, cls in table.items() if cls.__module__.partition(".")[0] != _PACKAGE]
