"""Time until there is code: Profuse, JAX and torch.compile, with nothing on disk and with all.

In each process the system compiles something small first. Then, for each kernel, the seconds that
its first calls take longer than later ones: of Profuse tracing, the profiled run, the compile with
its check, and linking. Cold processes begin with an empty folder for compiled code, warm ones with
that of the cold one before. Systems take turns; the table has medians over rounds, then the
stages of Profuse's own compiles as `f.explain()` tells them.

--stages compiles in one process again and again instead, and tells the processor's milliseconds of
each stage, without the check of kernels unless --checked is given; --against compares these with
another checkout, which the folder has as ``profuse``.

    python bench/compile.py [--rounds 3] [--only REGEX] [--systems …] [--json out.json]
    python bench/compile.py --stages [--checked] [--rounds 10] [--against FOLDER] [--json out.json]
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import processor, write_results
from harness import stages, systems, tables
from harness.worker import Worker, WorkerError
from suite import KERNELS, SELECTION

COMPARED = ("ours", "ours-dynamic", *systems.COMPILERS)
MORE = ("softmax_axis0", "layernorm_backward", "black_scholes", "attention", "transformer_forward")
SIZE = ("small", 64, 128)
FIRST = "triad"  # what loads the compiler
KINDS = ("cold", "warm")


def environment(folder: Path) -> dict[str, str]:
    """One thread, and compiled code in a folder."""
    return systems.environment([min(os.sched_getaffinity(0))]) | {
        "PROFUSE_CACHE": "on",
        "XDG_CACHE_HOME": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder),
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def one_process(system: str, names: list[str], folder: Path) -> dict[str, Any]:
    """By kernel, the seconds until there is code, and Profuse's stages; or why there are none."""
    worker = Worker(system, environment(folder))
    found: dict[str, Any] = {}
    try:
        for name in (FIRST, *names):
            try:
                answer = worker.ask("prepare", kernel=name, dtype="f32", size=list(SIZE), exact=None)
            except WorkerError as error:
                found[name] = {"skipped": str(error)}
                continue
            made = answer["steady"].get("stages", [])
            found[name] = {"seconds": answer["compile_seconds"], "stages": made}
    finally:
        worker.close()
    del found[FIRST]
    return found


def measure(names: list[str], used: list[str], rounds: int) -> list[dict[str, Any]]:
    """One entry for each round, system, kind of process and kernel."""
    rows = []
    for number in range(rounds):
        for system in used:
            with tempfile.TemporaryDirectory() as folder:
                for kind in KINDS:
                    for name, row in one_process(system, names, Path(folder)).items():
                        rows.append({"round": number, "system": system, "kind": kind, "kernel": name, **row})
    return rows


def milliseconds(rows: list[dict[str, Any]], **wanted: str) -> float | None:
    """The median over rounds; None where there is none."""
    of = [r for r in rows if all(r[k] == v for k, v in wanted.items()) and "seconds" in r]
    return median(r["seconds"] for r in of) * 1e3 if of else None


def show(rows: list[dict[str, Any]], names: list[str], used: list[str]) -> None:
    """Print a table for each kind of process, geomeans, and the stages of ours."""
    for kind in KINDS:
        print(f"\n{kind}, ms" + " " * 20 + "".join(f"{s:>16}" for s in used))
        ratios: dict[str, list[float]] = {}
        for name in names:
            cells = {s: milliseconds(rows, kernel=name, system=s, kind=kind) for s in used}
            shown = "".join(f"{'-' if c is None else f'{c:.1f}':>16}" for c in cells.values())
            print(f"{name:<28}{shown}")
            mine = cells.get("ours")
            for system, cell in cells.items():
                if mine and cell and mine > 0 and cell > 0 and system != "ours":
                    ratios.setdefault(system, []).append(cell / mine)
        for system, of in ratios.items():
            print(f"{system} / ours: geomean {tables.geomean(of):.2f} of {len(of)}")
    for system in (s for s in used if s in systems.OURS):
        for kind in KINDS:
            of = [r for r in rows if r["system"] == system and r["kind"] == kind and "stages" in r]
            sums: Counter[str] = Counter()
            for made in (stage for r in of for stage in r["stages"]):
                sums.update(made)
            text = ", ".join(f"{k} {v / len(of) * 1e3:.1f}" for k, v in sums.items())
            print(f"{system}, {kind}, ms a kernel by stage: {text}")
            each = [sum(stage.values()) * 1e3 for r in of for stage in r["stages"]]
            if each:
                low, middle, high = np.percentile(each, [25, 50, 75])
                print(
                    f"{system}, {kind}, all stages with the check: median {middle:.1f} ms "
                    f"[{low:.1f}-{high:.1f}] of {len(each)} compiles"
                )
    for name, reason in sorted({(f"{r['system']}, {r['kernel']}", r["skipped"]) for r in rows if "skipped" in r}):
        print(f"{name}: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--systems", nargs="+", default=list(COMPARED), choices=COMPARED)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="one round of three kernels")
    parser.add_argument("--stages", action="store_true", help="stages alone, in one process")
    parser.add_argument("--checked", action="store_true", help="stages with the check of kernels")
    parser.add_argument("--against", help="folder that holds another checkout as `profuse`")
    parser.add_argument("--json")
    options = parser.parse_args()
    if (options.against or options.checked) and not options.stages:
        parser.error("--against and --checked go with --stages")
    if options.stages:
        rounds = options.rounds or (2 if options.quick else 10)
        stages.compare(rounds, options.against, options.json, checked=options.checked)
        return
    names = [n for n in (*SELECTION, *MORE) if re.search(options.only, KERNELS[n].name)]
    names = names[:3] if options.quick else names
    missing = {s: why for s in options.systems if (why := systems.missing(s))}
    for system, why in missing.items():
        print(f"{system} is left out: {why}")
    used = [s for s in options.systems if s not in missing]
    rounds = options.rounds or (1 if options.quick else 3)
    print(f"{processor()}, one core, {SIZE[1]}x{SIZE[2]} f32, {rounds} rounds")
    rows = measure(names, used, rounds)
    show(rows, names, used)
    write_results(options.json, size=SIZE, missing=missing, rows=rows)


if __name__ == "__main__":
    main()
