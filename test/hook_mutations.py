"""Faults in what hooks and rules of users are given, and in what they may do in a backward run."""

from __future__ import annotations

from mutation_runner import Mutation

_CONTRACT = "executor/backward/test_one_contract.py"
_CALLS = "executor/tape/hook_calls.py"
_ORDER = "dialect/analysis/backward_order.py"
_ORDERED = "dialect/test_backward_order.py"
_WATCH = "executor/backward/watch.py"
_SECTIONS = "dialect/analysis/sections.py"
_CUT = "dialect/test_sections.py"

HOOK_MUTATIONS = (
    Mutation(
        "leaves share gradients that captured runs have found",
        "dialect/ops/backward.py",
        "_UNKNOWN = -1 << 30",
        "_UNKNOWN = 1 << 30",
        (_CONTRACT,),
    ),
    Mutation(
        "retained gradients are those that flow on",
        "executor/tape/array.py",
        "UNKNOWN = -1 << 30",
        "UNKNOWN = 1 << 30",
        (_CONTRACT + "::test_retained_gradients_are_no_others_array",),
    ),
    Mutation(
        "hooks may write to gradients",
        _CALLS,
        "        view.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long\n",
        "",
        (_CONTRACT + "::test_what_hooks_are_given_cannot_be_written_to",),
    ),
    Mutation(
        "a hook that is removed in a run is called",
        _CALLS,
        "    if key not in table:\n        return g\n",
        "",
        (_CONTRACT,),
    ),
    Mutation(
        "arrays of the tape that hooks return flow on",
        _CALLS,
        "if type(new) is Array and type(view) is not Array:",
        "if False:",
        (_CONTRACT,),
    ),
    Mutation(
        "None from a rule is no gradient on the tape",
        "executor/tape/custom_functions.py",
        "_zeros(e) if g is None else _as_array(g)",
        "None if g is None else _as_array(g)",
        (_CONTRACT,),
    ),
    Mutation(
        "None from a rule is no gradient in functions that run op by op",
        "executor/tape/eager_builder.py",
        "return np.zeros(x.shape, x.dtype)[()] if self.wanted[index] else None",
        "return None",
        ("executor/tape/test_fuzzed.py",),
    ),
    Mutation(
        "checkpoints in functions that run op by op need a trace",
        "dialect/autodiff/custom.py",
        "if tape is not None:  # a trace that is run op by op there",
        "if False:",
        ("executor/tape/test_fuzzed.py",),
    ),
    Mutation(
        "hooks move in front of ops that read what they write to",
        _ORDER,
        "            return self.is_head(before)\n",
        "            return before.op not in _USERS_CODE\n",
        (_CONTRACT,),
    ),
    Mutation(
        "hooks write to what later nodes need",
        _WATCH,
        "        start = self._starts[hook]\n",
        "        return\n",
        (_CONTRACT,),
    ),
    Mutation("hooks may not write to what nobody needs any more", _WATCH, "k >= start and ", "", (_CONTRACT,)),
    Mutation(
        "scopes in hooks have an effect while a run is eager",
        "executor/backward/captured_run.py",
        "    STATE.running += 1\n    try:\n        return run(",
        "    try:\n        return run(",
        (_CONTRACT,),
    ),
    Mutation(
        "compilers have their backward runs captured",
        "executor/backward/making.py",
        "    with _apart():\n        run = compiler(graph)\n",
        "    run = compiler(graph)\n",
        (_CONTRACT + "::test_a_compiler_that_runs_backwards_has_its_run_eager",),
    ),
    Mutation(
        "nodes that are called as they are capture for no reason",
        "executor/backward/making.py",
        "if (variant := cache.find(walk, pattern)) is not None:",
        "if (variant := None) is not None:",
        ("executor/backward/test_compilers.py",),
    ),
    Mutation(
        "a forked child waits for captures of its parent",
        "executor/backward/key.py",
        "if self._awaited and self._awaited[0].era is not BESIDE.era:",
        "if False:",
        ("executor/backward/test_beside.py::test_a_forked_child_captures_by_itself",),
    ),
    Mutation(
        "captures of all compilers are kept",
        "executor/backward/making.py",
        "if len(self.caches) > _COMPILERS:",
        "if False:",
        ("executor/backward/test_compilers.py",),
    ),
    Mutation(
        "compilers that close over others are the same",
        "executor/backward/compilers.py",
        "*map(_contents, compiler.__closure__ or ())",
        "",
        ("executor/backward/test_compilers.py",),
    ),
    Mutation(
        "of results without gradient mode the temporaries are among them",
        "executor/plans/differentiable.py",
        "return outputs[0] if self.real == 1 else outputs[: self.real]",
        "return outputs[0] if self.real == 1 else outputs",
        (
            "executor/plans/test_differentiable.py::"
            "test_without_gradient_mode_there_are_as_many_results_as_the_function_has",
        ),
    ),
    Mutation(
        "which result a hook is of is no part of the key",
        "executor/backward/snapshot.py",
        "self.outputs = [index for",
        "self.outputs = [0 for",
        ("executor/backward/test_key.py::test_r4_8_hooks_of_other_results_of_a_node_capture",),
    ),
    Mutation(
        "gradients of another dtype are not cast",
        "dialect/ops/backward.py",
        "    return g if g.dtype == dtype else g.astype(dtype)",
        "    return g",
        ("executor/backward/test_running.py",),
    ),
    Mutation(
        "leaves that are ready together run in another order",
        "executor/backward/capture.py",
        "heappush(ready, (-target.seq, pushed, target))",
        "heappush(ready, (-target.seq, -pushed, target))",
        (_CONTRACT,),
    ),
    Mutation(
        "unpack hooks stand in front of their last user",
        _ORDER,
        "next(iter(order.users(call.results)), None)",
        "next(iter(order.users(call.results)[::-1]), None)",
        (_ORDERED,),
    ),
    Mutation(
        "two hooks of a leaf change their order",
        _ORDER,
        "    for call in reversed(calls):\n        leaf = call",
        "    for call in calls:\n        leaf = call",
        (_ORDERED,),
    ),
    Mutation(
        "posthooks stand in front of post-accumulate hooks",
        _ORDER,
        "            anchor = max([anchor, *hooks], key=order.at)",
        "            pass",
        (_ORDERED,),
    ),
    Mutation(
        "calls whose results other ops read are put at the end",
        _SECTIONS,
        "        elif not needed.isdisjoint(instr.results):\n            break\n",
        "",
        (_CUT,),
    ),
    Mutation(
        "calls at the end read what may be undefined across a cut",
        _SECTIONS,
        "if not rest or any(v in uncut for i in calls for v in i.operands):",
        "if not rest:",
        (_CUT,),
    ),
    Mutation(
        "calls at the end find hooks by the numbers of a section",
        _SECTIONS,
        "{} if calls else _own_slots(part), calls)",
        "_own_slots(part), calls)",
        (_CUT,),
    ),
    Mutation(
        "plans of calls keep the gradients that they are given",
        "executor/backward/runner.py",
        "counters, taken=True).run",
        "counters).run",
        ("executor/backward/test_memory_of_gradients.py::test_gradients_behind_hooks_are_not_copied",),
    ),
    Mutation(
        "errors of hooks name no line",
        "executor/plans/python_source.py",
        "self.places[len(self.lines) - 1] = instr.loc",
        "self.places[len(self.lines)] = instr.loc",
        ("executor/backward/test_emitted.py::test_errors_of_hooks_between_kernels_name_the_line_of_the_operation",),
    ),
    Mutation(
        "captured runs whose leaves have other hooks hit",
        "executor/backward/gather.py",
        "if k != H{name} or h.retained: return None",
        "if h.retained: return None",
        ("executor/backward/test_key.py",),
    ),
    Mutation(
        "captured runs call the hooks that leaves had before",
        "executor/tape/hooks.py",
        "        self.calls = None\n",
        "",
        ("executor/backward/test_captured_hooks.py::test_r4_8_hooks_that_are_added_to_a_leaf_between_runs_are_called",),
    ),
)

__all__ = ["HOOK_MUTATIONS"]
