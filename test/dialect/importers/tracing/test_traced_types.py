"""Arrays of traces and of the tape are `Traced`; those of traces alone are `TracedArray`."""

from __future__ import annotations

import re
from pathlib import Path

import profuse as pf

ROOT = Path(pf.__file__).parent
# What is exactly of a class, or made of it, is an array of a trace.
EXACT = re.compile(r"\bis (not )?Traced\b|[=!]= Traced\b|\btype\(.*\bin [({].*\bTraced\b|\bTraced\(")


def test_exact_types_are_those_of_traced_arrays():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("dialect", "executor")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if EXACT.search(line) and not line.lstrip().startswith(("class ", "#"))
    ]
    assert not found, "ask for TracedArray, or isinstance(x, Traced)"
