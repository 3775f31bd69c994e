"""The helpers that the benchmarks share: a timed call, and what figures depend on besides the code."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

# Results are no code: a run that writes them there may be gone on with.
CODE = (".", ":(exclude)bench/results")
# What of the environment has to be the same for rows to stand in one table.
SAME = ("processor", "profuse", "revision", "numpy", "jax", "torch", "numba", "numexpr", "autograd")


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def timed_by_cpu(call: Callable[[], object]) -> float:
    """Seconds of this thread, in which those of other programs do not count."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def block(lib, x, b):
    """Bias, tanh-GELU and layer norm, in what NumPy, JAX and torch have in common."""
    y = x + b
    y = 0.5 * y * (1.0 + lib.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
    m = y.mean(-1)[:, None]
    v = ((y - m) * (y - m)).mean(-1)[:, None]
    return (y - m) / lib.sqrt(v + 1e-5)


def processor() -> str:
    """The processor's name, where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2].strip() for line in file if "model name" in line)
            return next(names, platform.machine())
    except OSError:
        return platform.machine()


def revision() -> str:
    """The commit of the checkout, with a digest of what differs from it; "" without git."""

    def git(*command: str) -> str:
        return subprocess.run(
            ["git", *command], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
        ).stdout

    commit, changes = git("rev-parse", "--short", "HEAD").strip(), git("diff", "HEAD", "--", *CODE)
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else commit


def _command() -> str:
    """The script that runs, below the root of the checkout."""
    path = Path(sys.argv[0]).resolve()
    root = Path(__file__).parents[1]
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def environment() -> dict[str, str]:
    """The environment on which the figures depend besides the code."""
    versions = {}
    for name in ("profuse", "numpy", "numexpr", "numba", "autograd", "jax", "torch"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", _command(), *sys.argv[1:]]),
        "python": platform.python_version(),
        "revision": revision(),
        **versions,
    }


def rows_so_far(path: str | Path | None, again: bool = False) -> dict[str, Any]:
    """The rows that a file of results has, to go on with; ``again``: those of another environment count as none.

    Raises ValueError if they are of another environment.
    """
    if path is None or not Path(path).exists():
        return {}
    found = json.loads(Path(path).read_text("utf-8"))
    here = environment()
    differs = [name for name in SAME if found["environment"].get(name) != here.get(name)]
    if differs and not again:
        raise ValueError(f"{path} was measured with another {', '.join(differs)}: name another file, or give --again")
    return {} if differs else found["rows"]


def write_results(path: str | None, **found: object) -> None:
    """Write what was measured, and with what, as JSON; None = nowhere."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"environment": environment(), **found}, file, indent=1)
            file.write("\n")
