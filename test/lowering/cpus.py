"""Targets for tests of lowering: CPUs, by LLVM's names, whose code this host can run."""

from __future__ import annotations

import functools

import every_case
import pytest
from profuse.lowering.libllvm import LLVMModule, host
from profuse.lowering.target import Target

_SAMPLE = ("x86-64-v3", "skylake-avx512", "znver4")
_OTHERS = ("haswell", "znver3", "x86-64-v4", "icelake-server", "sapphirerapids", "znver5")
NAMES = (*_SAMPLE, *_OTHERS) if every_case.EVERY_CASE else _SAMPLE
"""Three of different vectors and makers in usual runs, and all in ``make test-all``."""

_VECTORS = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq")
_LEAST = "x86-64"  # every x86-64 CPU


@functools.cache
def target(cpu: str) -> Target | None:
    """Code for a CPU, by LLVM's name for it; None = this host has no vectors like that CPU's.

    What the CPU has and this host lacks beside that (system calls, keys of pages) is left out.
    """
    triple, _, features = host()
    if not triple.startswith("x86_64"):
        return None
    here = {f[1:] for f in features.split(",") if f[0] == "+"}
    there = _features(cpu, [f[1:] for f in features.split(",")])
    if not (there & set(_VECTORS) <= here):
        return None
    signed = (("+" if f[1:] in there & here else "-") + f[1:] for f in features.split(","))
    return Target(triple, cpu, ",".join(signed)).without_slow_gathers().preferring(0)


def needed(cpu: str) -> Target:
    """`target`; skips the test if there is none."""
    found = target(cpu)
    if found is None:
        pytest.skip(f"this host cannot run code for {cpu}")
    return found


def _features(cpu: str, known: list[str]) -> set[str]:
    """Which of these features LLVM counts among a CPU's.

    No function of the C API tells. But LLVM inlines a function into another one only if that has
    all of its features.
    """
    count = range(len(known))
    lines = [f"define i32 @f{k}() #{k + 1} {{\n ret i32 {k}\n}}" for k in count]
    calls = "\n".join(f"%v{k} = call i32 @f{k}()" for k in count)
    lines.append(f"define void @all() #0 {{\n{calls}\nret void\n}}")
    lines.append(f'attributes #0 = {{ "target-cpu"="{cpu}" }}')
    lines += [f'attributes #{k + 1} = {{ "target-cpu"="{_LEAST}" "target-features"="+{known[k]}" }}' for k in count]
    with LLVMModule("\n".join(lines), Target(host()[0], cpu)) as module:
        module.run("cgscc(inline)")
        left = str(module)
    return {known[k] for k in count if f"call i32 @f{k}()" not in left}
