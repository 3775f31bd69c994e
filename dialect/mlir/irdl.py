"""The dialect as an IRDL module, printed from the op table by ``profuse-opt --emit-irdl``.

With it, stock ``mlir-opt --irdl-file=`` parses and checks our IR.  IRDL says less than op classes:

* an attribute listed there is required, so optional ones are left out;
* values of one variadic field must all have one type there, which ours need not.  Such IR goes
  through stock tools with ``--allow-unregistered-dialect`` instead.
"""

from __future__ import annotations

from ..ir.op import DIALECT, OPS, Op
from ..ir.types import LISTED

TYPES = ("tensor", "list", *(listed.kind for listed in LISTED.values()))


def irdl_text() -> str:
    """IRDL text of the whole dialect: its types, and every op that is not upstream's."""
    from ..ops import backward, seldom  # noqa: F401  (defining the classes fills the table)

    lines = [f"irdl.dialect @{DIALECT} {{"]
    lines += [f"  irdl.type @{name}" for name in TYPES]
    for _, cls in sorted(OPS.items()):
        if cls.dialect == DIALECT:
            lines += _operation(cls)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _operation(cls: type[Op]) -> list[str]:
    body: list[str] = []

    def constraint(text: str, prefix: str) -> str:
        # A variable holds one value per operation: sharing one would force types to be equal.
        name = f"%{prefix}{len(body)}"
        body.append(f"    {name} = {text}")
        return name

    clauses = []
    for word, prefix, fields in (("operands", "o", cls.operands), ("results", "r", cls.results)):
        if not fields:
            continue
        shown = []
        for field in fields:
            variadic = "variadic " if field.variadic else ""
            shown.append(f"{field.name}: {variadic}{constraint('irdl.any', prefix)}")
        clauses.append(f"    irdl.{word}({', '.join(shown)})")
    required = [
        f'"{name}" = {constraint(definition.kind.irdl, "a")}'
        for name, definition in cls.attrs.items()
        if not definition.optional
    ]
    if required:
        clauses.append(f"    irdl.attributes {{{', '.join(required)}}}")
    if cls.regions:
        regions = [f"body{k}: {constraint('irdl.region', 'b')}" for k in range(cls.regions)]
        clauses.append(f"    irdl.regions({', '.join(regions)})")
    return [f"  irdl.operation @{cls.name} {{", *body, *clauses, "  }"]
