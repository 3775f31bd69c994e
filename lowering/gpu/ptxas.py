"""Finding and running ptxas, NVIDIA's assembler."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...dialect.errors import LoweringError


def run_ptxas(arguments: Sequence[str]) -> str:
    """Run ptxas and return its report; raises LoweringError if it fails or is missing."""
    process = subprocess.run([find_ptxas(), *arguments], capture_output=True, text=True, check=False)
    report = process.stdout + process.stderr
    if process.returncode:
        raise LoweringError(f"ptxas refuses a kernel: {report.strip()[:500]}")
    return report


@functools.cache
def find_ptxas() -> str:
    """The path of ptxas: from the installed wheel, a CUDA toolkit (``CUDA_HOME``), or PATH.

    Raises LoweringError if there is none.
    """
    for folder in _folders():
        path = folder / "ptxas"
        if path.exists():
            return str(path)
    executable = shutil.which("ptxas")
    if executable is None:
        raise LoweringError("there is no ptxas", hint="install profuse[cuda]")
    return executable


def _folders() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    folders = []
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folders += [Path(root, "cu13", "bin"), Path(root, "cuda_nvcc", "bin")]
    if "CUDA_HOME" in os.environ:
        folders.append(Path(os.environ["CUDA_HOME"], "bin"))
    return folders
