"""The time that a new process waits for: cold, and with what earlier processes have left on disk.

Each run is a process of its own, timed from its start: until the system is imported, until the
first call has returned, and until calls run the best code there will be, with the first call's own
time beside it. Cold runs get an empty folder for compiled code, warm ones that of the cold run
before. Runs of all systems are interleaved; ratios are of medians, peer / ours. Systems that are
not installed are left out.

    python bench/start.py [--runs 7] [--json out.json] [systems …]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from common import block, processor, write_results

SHAPE = (256, 512)
WARM_UP = 60.0  # seconds that a cold process may take until its last tier

# Until which moment, as seconds since the process was started.
MOMENTS = ("imported", "first call", "top tier")


def profuse(marks: Callable[[str], None]) -> None:
    import numpy as np
    import profuse as pf

    marks("imported")
    f = pf.jit(lambda x, b: block(np, x, b))
    x, b = np.ones(SHAPE, np.float32), np.ones(SHAPE[1], np.float32)
    f(x, b)
    marks("first call")
    deadline = time.monotonic() + WARM_UP
    while f.state().tier != "optimized" and time.monotonic() < deadline:
        time.sleep(0.005)  # as of a program that does other things, too
        f(x, b)
    marks("top tier")
    if f.state().tier != "optimized":
        raise SystemExit(f.explain())
    if "mlir" in sys.modules:
        raise SystemExit("MLIR was imported into the calling process")


def numpy(marks: Callable[[str], None]) -> None:
    import numpy as np

    marks("imported")
    block(np, np.ones(SHAPE, np.float32), np.ones(SHAPE[1], np.float32))
    marks("first call")
    marks("top tier")


def jax(marks: Callable[[str], None]) -> None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_compilation_cache_dir", os.environ["BENCH_FOLDER"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    marks("imported")
    f = jax.jit(lambda x, b: block(jnp, x, b))
    f(jnp.ones(SHAPE), jnp.ones(SHAPE[1])).block_until_ready()
    marks("first call")
    marks("top tier")


def torch(marks: Callable[[str], None]) -> None:
    import torch

    marks("imported")
    f = torch.compile(lambda x, b: block(torch, x, b))
    f(torch.ones(SHAPE), torch.ones(SHAPE[1]))
    marks("first call")
    marks("top tier")


SYSTEMS = {"profuse": profuse, "jax.jit": jax, "torch.compile": torch, "numpy": numpy}
_MODULE = {"jax.jit": "jax", "torch.compile": "torch"}


def child(system: str) -> None:
    """Run a system in a child process, and print when each moment came, by the clock of its parent."""
    found = {}
    SYSTEMS[system](lambda moment: found.__setitem__(moment, time.monotonic()))
    print(json.dumps(found))


def run(system: str, folder: Path) -> dict[str, float]:
    env = os.environ | {
        "BENCH_FOLDER": str(folder),
        "PROFUSE_CACHE": "on",
        "XDG_CACHE_HOME": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder),
        "JAX_PLATFORMS": "cpu",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their bytecode beside them
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, "--child", system], env=env, check=True, capture_output=True, text=True
    )
    marks = json.loads(done.stdout.splitlines()[-1])
    seconds = {moment: marks[moment] - begun for moment in MOMENTS}
    return seconds | {"the first call itself": marks["first call"] - marks["imported"]}


def measure(systems: list[str], runs: int) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Per system, for cold and warm processes, per moment the seconds of each run."""
    times: dict[str, dict[str, dict[str, list[float]]]] = {}
    with tempfile.TemporaryDirectory() as root:
        for number in range(runs + 1):
            for system in systems:
                folder = Path(root, f"{system}.{number}")
                folder.mkdir()
                for kind in ("cold", "warm"):
                    found = run(system, folder)
                    if number:  # the first round fills the system's file cache
                        of_kind = times.setdefault(system, {}).setdefault(kind, {})
                        for moment, seconds in found.items():
                            of_kind.setdefault(moment, []).append(seconds)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    wanted = args.systems or list(SYSTEMS)
    systems = [name for name in wanted if find_spec(_MODULE.get(name, name))]
    print(f"{processor()}, seconds since the process was started, median of {args.runs}")
    times = measure(systems, args.runs)
    for kind in ("cold", "warm"):
        print(kind)
        for system in systems:
            found = {moment: median(values) for moment, values in times[system][kind].items()}
            shown = "  ".join(f"{moment} {seconds:6.3f}" for moment, seconds in found.items())
            ratio = ""
            if system != "profuse" and "profuse" in systems:
                mine = times["profuse"][kind]
                ratios = (found[m] / median(mine[m]) for m in found)
                ratio = "  peer / ours " + " ".join(f"{r:.1f}x" for r in ratios)
            print(f"  {system:<14} {shown}{ratio}")
    write_results(args.json, shape=SHAPE, seconds=times)


if __name__ == "__main__":
    main()
