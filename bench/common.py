"""What the benchmarks share: a timed call, and what figures depend on besides the code."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def processor() -> str:
    """The processor's name, where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2].strip() for line in file if "model name" in line)
            return next(names, platform.machine())
    except OSError:
        return platform.machine()


def environment() -> dict[str, str]:
    """What the figures depend on besides the code."""
    versions = {}
    for name in ("profuse", "numpy", "jax", "torch"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", *sys.argv]),
        "python": platform.python_version(),
        **versions,
    }


def write_results(path: str | None, **found: object) -> None:
    """Write what was measured, and with what, as JSON; None = nowhere."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"environment": environment(), **found}, file, indent=1)
            file.write("\n")
