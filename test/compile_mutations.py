"""Deliberate faults in what spares compiles work."""

from __future__ import annotations

from mutation_runner import Mutation

_PASSES = ("dialect/test_pass_work.py",)
_NESTS = ("lowering/emit/test_nest_rewrites.py",)

COMPILE_MUTATIONS = (
    Mutation(
        "blocks of all regions but the first are forgotten",
        "dialect/mlir/rewrite.py",
        "    return [b for k in range(len(regions)) for blocks",
        "    return [b for k in range(min(len(regions), 1)) for blocks",
        _PASSES,
    ),
    Mutation(
        "types are inferred of all ops that might be folded",
        "dialect/passes/cleanup/fold.py",
        "if not (_may_fold(m.cls) and _may_be_known(op)):",
        "if not _may_fold(m.cls):",
        _PASSES,
    ),
    Mutation(
        "what types tell of results is not folded",
        "dialect/passes/cleanup/fold.py",
        "isinstance(type_of(r), (ScalarType, ListedType)) for r in op.results",
        "False for r in op.results",
        _PASSES,
    ),
    Mutation(
        "nests are searched for divisions that they do not hold",
        "lowering/emit/module.py",
        'if "arith.divf" in operations and not self.exact:',
        "if not self.exact:",
        _NESTS,
    ),
    Mutation(
        "rare values are not looked for in nests that hold them",
        "lowering/emit/module.py",
        "        if RARE in marks:\n",
        "        if False:\n",
        _NESTS,
    ),
    Mutation(
        "collections in workers go through all that is loaded",
        "executor/compile/worker/__main__.py",
        "    gc.freeze()\n",
        "",
        ("executor/compile/test_worker.py::test_collections_in_workers_leave_out_what_is_loaded",),
        slow=True,
    ),
    Mutation(
        "each operator with trees counts them all",
        "dialect/importers/foreign/interpreter.py",
        "    @cached_property\n    def counts(",
        "    @property\n    def counts(",
        ("dialect/importers/foreign/onnx/test_onnx_trees.py::test_operators_with_trees_are_counted_once",),
    ),
)
