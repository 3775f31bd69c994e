"""Deliberate faults in what is recorded and speculated of values that are no tensors; see mutations.py."""

from __future__ import annotations

from mutation_runner import Mutation

_RECORD = "executor/interpret/test_value_record.py"
_CALLS = "executor/functions/test_late_graphs.py"
_SPECULATED = "executor/functions/test_speculated_arguments.py"
_SIZES = "dialect/ops/test_size_lists.py"
_DISPATCH = "executor/dispatch/test_dispatch_relaxed.py"
_CONDITIONAL = "dialect/test_conditional_constants.py"

VALUE_MUTATIONS = (
    Mutation(
        "emitted code returns parts of arguments in their memory",
        "executor/dispatch/reader.py",
        "        if not self.parts.isdisjoint(self.leaf.outputs):\n",
        "        if False:\n",
        (
            "executor/dispatch/test_dispatch_host_calls.py"
            "::test_parts_of_arguments_are_copies_in_all_tiers_where_errors_are_raised",
        ),
    ),
    Mutation(
        "a value that has varied is the first one",
        "executor/interpret/record.py",
        "stored = None if seen.varied else KINDS[kind].stored(seen.value)",
        "stored = KINDS[kind].stored(seen.value)",
        (f"{_RECORD}::test_r3_5_one_value_is_kept_and_a_differing_hit_fails",),
    ),
    Mutation(
        "observers forget that they have failed",
        "executor/interpret/record.py",
        'return {**attrs, "failed": True} if stored is None',
        "return attrs if stored is None",
        (f"{_RECORD}::test_r3_5_one_value_is_kept_and_a_differing_hit_fails",),
    ),
    Mutation(
        "a value that varied is forgotten between processes",
        "executor/interpret/record.py",
        "values[_natural(site)] = SeenValue(constant, bool(varied), *counts)",
        "values[_natural(site)] = SeenValue(constant, False, *counts)",
        (f"{_RECORD}::test_r3_5_what_has_failed_stays_so_after_reload",),
    ),
    Mutation(
        "records hold lists of any length",
        "executor/interpret/record.py",
        "return len(value) <= MAX_ITEMS and all(map(_is_constant, value))",
        "return all(map(_is_constant, value))",
        (f"{_RECORD}::test_records_hold_short_values_alone",),
    ),
    Mutation(
        "a profile without values serves a graph with them",
        "executor/tiers/warm_start.py",
        '", values observed" if values else ""',
        '""',
        (f"{_SPECULATED}::test_profiles_with_values_are_others",),
    ),
    Mutation(
        "constants are observed",
        "dialect/profiling/observers.py",
        "if not kind or instr.operands[k] not in constants",
        "if True",
        (f"{_RECORD}::test_programs_and_ir_agree_on_observers",),
    ),
    Mutation(
        "conditional constants are constants",
        "dialect/mlir/facts.py",
        "return op.name in CONSTANTS and not len(op.operands)",
        "return op.name in CONSTANTS",
        (
            f"{_CONDITIONAL}::test_r3_6_conditional_constants_stay",
            f"{_SPECULATED}::test_r3_5_one_value_is_speculated_on",
        ),
    ),
    Mutation(
        "equal conditional constants are merged",
        "dialect/passes/cleanup/cse.py",
        " or is_conditional(op)",
        "",
        (f"{_CONDITIONAL}::test_r3_6_conditional_constants_stay",),
    ),
    Mutation(
        "observers that constants depend on are removed with the others",
        "dialect/passes/speculate/specialize.py",
        "remove_observers(func, classes, speculated=False)",
        "remove_observers(func, classes)",
        (f"{_CONDITIONAL}::test_r3_6_conditional_constants_stay",),
    ),
    Mutation(
        "an empty target of a sum stands for no axes",
        "dialect/ops/value_kinds.py",
        "return None if self.keeps_none and stored == () else stored",
        "return stored",
        (f"{_RECORD}::test_none_is_an_empty_target_and_else_no_value",),
    ),
    Mutation(
        "a size alone is no tuple",
        "executor/interpret/evaluate.py",
        "    if len(results) == 1:\n        env[results[0]] = out\n",
        "    if len(results) == 1 and not isinstance(out, tuple):\n        env[results[0]] = out\n",
        (f"{_SIZES}::test_a_graph_passes_sizes_on",),
    ),
    Mutation(
        "a late op takes any number for a dtype",
        "dialect/ops/late.py",
        "if not 0 <= value < len(DTYPES):",
        "if not value < len(DTYPES):",
        ("dialect/ops/test_late.py::test_wrong_values_are_errors",),
    ),
    Mutation(
        "a trace takes the number of the first call for an attribute",
        "dialect/importers/numpy/capture/inline.py",
        "bake(self.values[v], instr.loc)",
        "self.rec.known[self.values[v]]",
        (f"{_CALLS}::test_numbers_of_the_caller_are_guarded_in_traces",),
    ),
    Mutation(
        "the tape notes late ops",
        "executor/plans/on_tape.py",
        "_applied_late if op is Late else apply",
        "apply",
        (f"{_CALLS}::test_gradients",),
    ),
    Mutation(
        "emitted code takes a bool for its opposite",
        "executor/dispatch/conditions/speculated.py",
        "self._equals[result] = argument, wanted is not flips",
        "self._equals[result] = argument, wanted is flips",
        (f"{_DISPATCH}::test_r3_38_values_of_calls_are_compared_in_emitted_code",),
    ),
    Mutation(
        "emitted code does not compare values",
        "executor/dispatch/reader.py",
        "                self.test(self.speculated.tests[answer])\n",
        "",
        (f"{_DISPATCH}::test_r3_38_values_of_calls_are_compared_in_emitted_code",),
    ),
    Mutation(
        "bools are compared as numbers",
        "dialect/ops/size_lists.py",
        "return type(value) is type(wanted) and value == wanted",
        "return value == wanted",
        (f"{_SIZES}::test_r3_38_values_are_compared_with_the_profiled_one",),
    ),
)
