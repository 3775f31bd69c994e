"""The pass lists of both executors as named pipelines (R1.24 - R1.27, R1.36, R1.45, R2.9 - R2.12).

`pre-fusion` and `post-fusion` are empty places for passes of users, and `left-over` is one for the
executor's: an option of that name fills them, as `general-fuser=no-fuser` chooses another fuser.
"""

from __future__ import annotations

_REQUIRED = "lower-grad-blocks,clear-undefinedness,remove-expand,canonicalize-profuse,dce"

STANDARD: dict[str, str] = {
    # R1.24: right for whatever a graph will be given.
    "profile-insensitive": (
        f"inline-calls,clear-profile-types,{_REQUIRED},decompose,fold,dce,cse-profuse,"
        "pool-constants,peephole,dce,lower-lists,in-place-check"
    ),
    # R1.24 with optimisation off: calls stay, and it stops after the first clean-up.
    "profile-insensitive-plain": f"clear-profile-types,{_REQUIRED}",
    # R1.25: what R1.27 becomes with optimisation off.
    "no-opt": "inline-calls,lower-grad-blocks,remove-expand,canonicalize-profuse,dce",
    # R1.26. Kernels of more ops than that take longer to compile than they save.
    "pre-autodiff": (
        "lower-grad-blocks,specialize-autograd-zero{speculate=true},remove-expand,"
        "canonicalize-profuse,dce,peephole,fold,dce,cse-profuse,peephole,fold,pool-constants,"
        "unroll-loops{factor=1 max-ops=64},remove-list-mutation,peephole,fold,cse-profuse,"
        "in-place-check"
    ),
    # R1.36: types are written into values, products batched, and groups fused and guarded.
    "general-fuser": (
        "specialize,fuse-loops,unroll-loops{max-ops=64},functionalize,batch-matmul,form-fusions,"
        "insert-guards,keep-layouts"
    ),
    "no-fuser": "specialize,unroll-loops{max-ops=64},functionalize,batch-matmul",
    "pre-fusion": "",
    "post-fusion": "",
    # R3.1: stands in `post-fusion` where it is switched on. Kernels are made of its groups later, by the lowering.
    "device-fuser": (
        "extract-constants,specialize,functionalize,split-linear,split-conv,views-to-copies,"
        "partition-device-groups,insert-device-guards,repair-batch-norm,remove-value-observers,"
        "drop-unprofiled-groups,dtype-only-results,join-views,copies-to-views,export-fallbacks,"
        "cse-profuse,dce,shape-peephole,left-over,erase-types,dedupe-device-groups"
    ),
    # What is in no device group: an executor has the general fuser take it, while there are types.
    "left-over": "",
    "no-grad": "pre-fusion,lower-lists,general-fuser,post-fusion,erase-types",
    # R1.29 - R1.34: what a graph that needs gradients gets in the place of `no-grad`. Halves of
    # subgraphs are fused by executors of their own, which evaluate no gradient blocks.
    "grad": (
        "form-diff-graphs{observed=true},guard-diff-graphs,differentiate-diff-graphs,dce,"
        "inline-diff-graphs,lower-grad-blocks,convert-fallbacks,remove-profiling"
    ),
    # R1.27, for a graph that has been profiled and needs no gradient.
    "profile-driven": "pre-autodiff,no-grad,dce",
    # R2.9: what every graph of the spec-keyed executor goes through.
    "required": "specialize-autograd-zero,lower-grad-blocks,remove-expand,canonicalize-profuse,dce",
    # R2.10, second phase: what follows from the input types that a spec has fixed.
    "propagate": "fold,propagate-shapes,propagate-requires-grad",
    # R2.11
    "differentiable-optimization": (
        "dce,cse-profuse,pool-constants,peephole,fold,unroll-loops{factor=1},cse-profuse,in-place-check"
    ),
    # R2.12: every size is a symbol, and what groups ask of sizes is guarded.
    "rank-fuser": (
        "functionalize,assume-sizes,fuse-loops{dynamic=true},unroll-loops,form-fusions{dynamic=true},"
        "insert-guards{dynamic=true given-sizes=true},keep-layouts"
    ),
    "non-differentiable-optimization": "pre-fusion,decompose,batch-matmul,rank-fuser,post-fusion",
    # R2.10, for a graph that needs no gradient.
    "spec-driven": ("required,propagate,differentiable-optimization,non-differentiable-optimization,dce"),
    # R2.10, R2.15, for one that does: halves of subgraphs are compiled by executors of their own.
    "spec-driven-grad": (
        "required,propagate,differentiable-optimization,functionalize,propagate,form-diff-graphs,"
        "differentiate-diff-graphs,dce,inline-subgraphs,lower-grad-blocks,dce"
    ),
    "inline-subgraphs": "inline-diff-graphs{threshold=5}",
    # R1.41, R1.45
    "final": "convert-fallbacks,if-then-else",
    # Rewrites that need types, for which no value had one before `specialize`: in fusion functions,
    # whose guards make facts of them. Fallback bodies, copied by then, stay as they were written.
    "typed-rewrites": "remove-expand,canonicalize-profuse{numbers=true},decompose,peephole",
    # What the lowering expects of fusion functions.
    "prepare-kernels": ("free-group-sizes,typed-rewrites,insert-casts,canonicalize-profuse,fold,cse-profuse,dce"),
}


def differentiates(pipeline: str) -> bool:
    """True if a pipeline may name passes of `dialect.autodiff`, which must be loaded."""
    return "grad" in pipeline or "differentiate" in pipeline
