"""Mutations of what becomes of loops; see `mutations`."""

from mutation_runner import Mutation

LOOP_MUTATIONS = (
    Mutation(
        "nothing keeps a loop that only raises",
        "dialect/importers/numpy/tracing/effect_results.py",
        "*exits, *rec.written)", "*rec.written)",
        ("executor/loops/test_exits.py", "executor/functions/test_exceptions_of_contents.py"),
    ),
    Mutation(
        "loops do not carry whether an exception is raised",
        "dialect/importers/numpy/source/snapshot.py",
        '            self.watch(rec.source.exits.held, "exits")\n', "            pass\n",
        ("executor/loops/test_exits.py",),
    ),
    Mutation(
        "Python repeats a call while an error is handled", "executor/functions/jit.py",
        "            has_failed = True\n",
        "            return self._leave(None, args, kwargs)\n",
        ("executor/functions/test_exceptions_of_contents.py::test_the_exception_being_handled_is_the_callers",),
    ),
    Mutation(
        "calls that raise now and then are Python's", "executor/functions/variants.py",
        "if since >= few or executor.python_only:", "if executor.python_only:",
        ("executor/functions/test_exceptions_of_contents.py::test_calls_that_raise_now_and_then_stay_native",),
    ),
    Mutation(
        "what most calls raise for is looked at each time", "executor/functions/variants.py",
        "min(max(1, self.skipped * _LONGER), _MOST_SKIPPED)", "0",
        ("executor/functions/test_exceptions_of_contents.py::test_most_calls_raise",),
    ),
    Mutation(
        "loops whose condition branches are not rotated", "lowering/cpu/rotation.py",
        "if len(inside) <= _MOST and", "if False and",
        ("lowering/test_rotation.py::test_a_condition_that_branches_is_there_twice",),
    ),
    Mutation(
        "numbers of Python's decide dtypes as NumPy's do",
        "dialect/importers/numpy/source/source.py",
        "widening.check_weak(self.rec, set(self.weak)) if self.weak else None", "None",
        ("executor/loops/test_weak_numbers.py::test_dtypes_are_numpys",),
    ),
    Mutation(
        "long conditions are there twice", "lowering/cpu/rotation.py",
        "if len(inside) <= _MOST and", "if",
        ("lowering/test_rotation.py::test_a_long_one_and_one_without_a_branch_stay",),
    ),
    Mutation(
        "a sample of a loop is a result", "executor/plans/evaluated.py",
        "        if limit is not None and limit.over:\n            raise SoonerInPython\n", "",
        ("executor/loops/test_loops_in_python.py",),
    ),
    Mutation(
        "a void kernel of a loop is evaluated round by round", "executor/plans/kernel_call.py",
        "        if loops and LIMITS.current is not None:\n            raise VoidRun\n", "",
        ("executor/loops/test_number_results.py::test_a_void_kernel_leaves_the_call_to_python",),
    ),
    Mutation(
        "ints of loops wrap", "lowering/linalg/numbers.py",
        "    b.end_if(Scalar(over, BOOL))\n", "",
        ("executor/loops/test_sizes_of_numbers.py::test_ints_that_leave_64_bits_in_branches",),
    ),
    Mutation(
        "powers of ints in loops wrap", "lowering/linalg/numbers.py",
        "return (x > most) | (x < least)", "return constant(False, BOOL)",
        ("executor/loops/test_ints_of_loops.py::test_ints_that_leave_64_bits",),
    ),
    Mutation(
        "whatever grows is a counter", "lowering/linalg/ranges.py",
        "    if a.is_counter and b.within(-_STEP, _STEP):", "    if a.is_counter:",
        ("executor/loops/test_ints_of_loops.py::test_what_grows_by_its_half_is_tested",),
    ),
    Mutation(
        "what the side not taken would forbid ends a run", "lowering/linalg/loop_builder.py",
        "                self.end_if(taken)", "                self.end_if(constant(True, BOOL))",
        ("executor/loops/test_ints_of_loops.py::"
         "test_what_the_side_not_taken_would_forbid_is_allowed",),
    ),
    Mutation(
        "a condition holds on both sides of a branch", "lowering/linalg/ranges.py",
        "op = instr.op if truth else _OPPOSITE.get(instr.op)", "op = instr.op",
        ("executor/loops/test_ints_of_loops.py::test_indices_behind_conditions",),
    ),
    Mutation(
        "ints of loops wrap in SIMD code", "lowering/linalg/numbers.py",
        "    b.note(signs < 0)\n", "",
        ("executor/loops/test_sizes_of_numbers.py::test_ints_that_leave_64_bits_in_straight_rounds",),
    ),
    Mutation(
        "products in loops are fused with sums", "lowering/linalg/to_linalg.py",
        'op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flags}>")', "pass",
        ("executor/loops/test_sizes_of_numbers.py::test_single_elements_are_rounded_as_in_python",),
    ),
    Mutation(
        "void runs keep their memory", "lowering/buffers/temporaries.py",
        "            _store(address, word)\n", "",
        ("executor/loops/test_sizes_of_numbers.py::test_void_runs_leave_no_memory_behind",),
    ),
    Mutation(
        "numbers are sizes without a look", "lowering/linalg/loops.py",
        "                self.builder.end_if(value.ne(", "                (value.ne(",
        ("executor/loops/test_sizes_of_numbers.py",),
    ),
    Mutation(
        "fallbacks take numbers for sizes", "dialect/passes/speculate/insert_guards.py",
        "        drop_counts(fallback)\n", "",
        ("executor/loops/test_sizes_of_numbers.py",),
    ),
    Mutation(
        "ints of loops are cut off", "lowering/linalg/parts.py",
        "        b.note(wide > int(info.max))\n", "        pass\n",
        ("executor/loops/test_number_results.py::test_ints_that_an_array_cannot_hold_raise",),
    ),
    Mutation(
        "powers of loops overflow", "lowering/linalg/numbers.py",
        "        b.note(~found.isfinite())\n", "",
        ("executor/loops/test_number_results.py::test_powers_raise_as_python_does",),
    ),
    Mutation(
        "a number of an outer graph stays in its array", "executor/dispatch/attach.py",
        "        leaf.numbers |= {leaf.outputs[k] for k in numbers}\n", "",
        ("executor/loops/test_number_results.py::test_numbers_behind_a_miss_of_a_guard",),
    ),
    Mutation(
        "what follows a branch that returns is lost", "dialect/importers/numpy/source/returns.py",
        "_valued(side if _returns(side) is ALWAYS else [*side, *rest], node)",
        "_valued(side, node)",
        ("dialect/importers/test_source_convert.py",),
    ),
    Mutation(
        "Python's functions do not raise", "dialect/ops/elementwise/python_math.py",
        'return Reason(Kind.PYTHON_RAISES, detail="where the result is no number")', "return None",
        ("executor/loops/test_user_programs.py",),
    ),
    Mutation(
        "what a round is handed is never what it writes", "dialect/analysis/must_alias.py",
        "return bool(loops) and loops[-1] in self._inside.get(root, ())", "return bool(loops)",
        ("executor/loops/test_loop_forms.py",),
    ),
    Mutation(
        "rows of products in loops may overlap", "lowering/buffers/products.py",
        'found = emit("arith.andi", ops.i1, found, fits)', "pass",
        ("executor/loops/test_products_in_loops.py",),
    ),
    Mutation(
        "rounds that read what others write are shared", "lowering/buffers/sharing/rounds.py",
        "if not _are_apart(found, loop):", "if False:",
        ("executor/loops/test_shared_loops.py::test_rounds_that_depend_on_others",),
    ),
    Mutation(
        "chunks forget what their rounds have noted", "lowering/buffers/sharing/share.py",
        "                _end_unless_zero(new[cell])", "                pass",
        ("executor/loops/test_shared_loops.py::test_a_forbidden_round_voids_the_run",),
    ),
    Mutation(
        "a row that is put elsewhere is taken for what it was", "lowering/buffers/merge_parts.py",
        "if made is None or not is_part(made.operands[1], op):", "if made is None:",
        ("executor/loops/test_loop_forms.py::test_rows_that_are_put_elsewhere",),
    ),
    Mutation(
        "what a list holds may be written", "dialect/importers/numpy/source/appends.py",
        "    array.storage.owner = array.storage.owner or _OWNER\n", "",
        ("executor/loops/test_appended_lists.py::test_other_programs_are_pythons",),
    ),
    Mutation(
        "lists that others have grow in kernels", "dialect/importers/numpy/source/appends.py",
        "    if _references(frame, name) > _ALONE:\n", "    if False:\n",
        ("executor/loops/test_appended_lists.py::test_other_programs_are_pythons",),
    ),
    Mutation(
        "other variables become what may be an int", "dialect/importers/numpy/source/widening.py",
        "if value in ints and k not in allowed:", "if False:",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "an int that nothing has changed is a float", "dialect/importers/numpy/source/widening.py",
        'return required(value, op("ne", value, start), told)', "return value",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "a result may be an int in Python", "dialect/importers/numpy/source/widening.py",
        'made: int = required(x, holds, "a result may be an int").value', "made = value",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "Python's complex numbers have NumPy's products", "lowering/linalg/complexes.py",
        'if how == "mul":\n        return _rounded_product(a, b)',
        'if how == "mul":\n        return arith(a, b, "mul")',
        ("executor/loops/test_complex_numbers.py::test_arithmetic_is_pythons_to_the_last_bit",),
    ),
    Mutation(
        "complex numbers take elements for NumPy's", "dialect/importers/numpy/tracing/traced.py",
        'return op("item", x) if is_float else x', "return x",
        ("executor/loops/test_complex_numbers.py::"
         "test_a_complex_number_takes_an_element_on_its_right_for_a_float",),
    ),
    Mutation(
        "plans of loops without kernels are taken", "executor/plans/scalar_plans.py",
        "if has_rounds(graph) and not any(i.op is FusionGroup for i in main.body.walk()):",
        "if False:",
        ("executor/loops/test_loops_in_python.py::"
         "test_a_plan_of_loops_without_a_kernel_is_pythons_at_once",),
    ),
    Mutation(
        "each round appends once", "dialect/importers/numpy/source/growing.py",
        "if self._calls > self._most or (", "if False and (",
        ("executor/loops/test_appended_lists.py::test_lists_of_rounds_are_native",),
    ),
    Mutation(
        "lists that rounds read do not begin with what was there",
        "dialect/importers/numpy/source/growing.py",
        "self._front = self._alike() if self._reads else 0", "self._front = 0",
        ("executor/loops/test_appended_lists.py::test_lists_of_rounds_are_native",),
    ),
    Mutation(
        "elements before the start are at the end", "dialect/importers/numpy/source/growing.py",
        "        return required(place, op(\"ge\", place, 0), _NO_ELEMENT)", "        return place",
        ("executor/loops/test_appended_lists.py::test_an_element_that_is_not_there",),
    ),
    Mutation(
        "elements that are not there yet are zeros", "dialect/importers/numpy/source/growing.py",
        "        return required(place, fits, _NO_ELEMENT)", "        return place",
        ("executor/loops/test_appended_lists.py::test_an_element_that_is_not_there",),
    ),
    Mutation(
        "empty lists become arrays of what was to be appended",
        "dialect/importers/numpy/source/growing.py",
        "            if not self.start:\n                told =",
        "            if False:\n                told =",
        ("executor/loops/test_appended_lists.py::test_other_programs_are_pythons",),
    ),
    Mutation(
        "elements of lists may be written to", "dialect/importers/numpy/source/growing.py",
        "                hold(found)\n", "",
        ("executor/loops/test_appended_lists.py::test_other_programs_are_pythons",),
    ),
    Mutation(
        "arrays for lists outlast a loop that has no round",
        "dialect/importers/numpy/source/loops.py",
        "            rec.reset(self._bare)\n            bool(self._range.any())",
        "            rec.reset(self.mark)\n            bool(self._range.any())",
        ("dialect/importers/test_source_loops.py::"
         "test_a_list_of_a_range_that_ends_before_it_begins",),
    ),
    Mutation(
        "a range runs by any step", "dialect/importers/numpy/source/iterables.py",
        "step = required(self.step, op(\"gt\", self.step, 0), told)", "step = self.step",
        ("executor/loops/test_appended_lists.py::test_a_step_of_a_range_that_is_not_positive",),
    ),
    Mutation(
        "attributes lose their arrays in loops without rounds",
        "dialect/importers/numpy/source/loops.py",
        "after = after or self.places.hold_arrays or bool(self.fixed)", "after = after",
        ("executor/loops/test_carried_places.py::test_other_programs_do_what_python_does",),
    ),
    Mutation(
        "attributes lose their arrays in whiles without rounds",
        "dialect/importers/numpy/source/whiles.py",
        "if self._is_open and (self.places.hold_arrays or self.fixed):", "if False:",
        ("executor/loops/test_carried_places.py::test_other_programs_do_what_python_does",),
    ),
    Mutation(
        "branches replace arrays that they leave", "dialect/importers/numpy/source/branches.py",
        "if is_kept and type(moved.old) is TracedArray and moved.old.ndim:", "if False:",
        ("executor/loops/test_carried_places.py::test_other_programs_do_what_python_does",),
    ),
    Mutation(
        "loops are given up for branches of what they call",
        "dialect/importers/numpy/capture/tracer.py",
        "if rec.source is not None and rec.source.open and _has_branches(error, rec):",
        "if False:",
        ("executor/loops/test_carried_places.py::"
         "test_loops_that_change_attributes_and_items_are_native",),
    ),
    Mutation(
        "calls that Python has won are looked at each time", "executor/arguments/plain_calls.py",
        "        if not self._left:\n            return False",
        "        if True:\n            return False",
        ("executor/functions/test_race.py::"
         "test_calls_that_python_has_won_are_looked_at_now_and_then",),
    ),
    Mutation(
        "a loop is left between two exchanges, and goes on",
        "dialect/importers/numpy/source/loops.py",
        "if self.site.stop is not None:  # a round", "if False:  # a round",
        ("executor/loops/test_exchanges.py::test_a_loop_that_may_be_left_between_two_exchanges",),
    ),
    Mutation(
        "a round that is left over is lost", "dialect/importers/numpy/source/loops.py",
        "self._singles = int(self._range.rounds() % period)", "self._singles = 0",
        ("executor/loops/test_exchanges.py::test_exchanges_are_native",),
    ),
    Mutation(
        "an int is a complex number for arrays of floats",
        "dialect/importers/numpy/source/widening.py",
        "is_wide = any(map(self._is_complex, used))", "is_wide = False and any(map(len, used))",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "whole numbers that may be ints are floats", "dialect/importers/numpy/source/source.py",
        "return tuple(widening.decided(self.rec, v) if v in ints else v for v in outputs)",
        "return tuple(outputs)",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "rounds make no ints of ints", "dialect/importers/numpy/source/widening.py",
        "return None, {place for place in places if blocks[-1].outputs[-place] in walk.made}",
        "return None, set()",
        ("executor/loops/test_ints_that_become_floats.py::test_pythons_int_is_a_result",),
    ),
    Mutation(
        "what a trial has bound stays bound", "dialect/importers/numpy/source/trial.py",
        "return {n: self.start.get(n, UNBOUND) for n in self.site.names if n in names}",
        "return {n: self.start[n] for n in self.site.names if n in names and n in self.start}",
        ("executor/loops/test_unbound_names.py", "executor/loops/test_loop_forms.py::"
         "test_what_a_loop_without_rounds_leaves_unbound",),
    ),
    Mutation(
        "names get what stands for none", "dialect/importers/numpy/source/convert.py",
        "[ast.Delete([ast.Name(name, ast.Del())])],", "[ast.Pass()],",
        ("executor/loops/test_unbound_names.py",),
    ),
    Mutation(
        "an endless loop gives None", "dialect/importers/numpy/source/returns.py",
        "            if is_endless:", "            if False:",
        ("executor/loops/test_endless_loops.py",),
    ),
    Mutation(
        "rounds of a GPU depend on each other", "lowering/gpu/loops/steps.py",
        "    if shared:\n", "    if False:\n",
        ("executor/cuda/test_device_void_loops.py::"
         "test_rounds_that_depend_on_each_other_stay_in_the_plan",),
    ),
    Mutation(
        "inner rounds of a grid depend on each other", "lowering/gpu/loops/steps.py",
        ' or what_rounds_share(effects[0]):', ":",
        ("executor/cuda/test_device_loops.py::"
         "test_programs_with_independent_rounds[forces]",),
    ),
    Mutation(
        "kernels begin although the run is void", "lowering/gpu/loops/kernel.py",
        "is_valid = ops.equal(self.load(flag, []), zero)", "is_valid = ops.equal(zero, zero)",
        ("executor/cuda/test_device_void_loops.py::"
         "test_what_is_forbidden_from_the_beginning_is_not_begun",),
    ),
    Mutation(
        "void runs of a GPU count", "lowering/gpu/void_runs.py",
        '            ir.Operation.create("llvm.store", operands=[true, flag])\n', "",
        ("lowering/test_gpu_loops.py::test_threads_set_the_flag_in_machine_code",),
    ),
    Mutation(
        "threads share a temporary", "lowering/gpu/loops/thread.py",
        "copies, first, ops.least(total, step))", "copies, ops.constant(0), ops.constant(1))",
        ("executor/cuda/test_device_loops.py::test_temporaries_of_unknown_size",),
    ),
    Mutation(
        "rounds of loops are never kernels of their own", "dialect/passes/speculate/fuse_loops.py",
        "if reason is None and not self.whole:", "if False:",
        ("executor/loops/test_rounds_apart.py::"
         "test_rounds_across_rows_are_kernels_of_their_own",),
    ),
    Mutation(
        "calls of kernels cost rounds nothing", "dialect/passes/speculate/round_costs.py",
        "LAUNCH = 3000.0", "LAUNCH = 0.0",
        ("executor/loops/test_rounds_apart.py::test_a_few_elements_stay_in_one_kernel",),
    ),
    Mutation(
        "rounds whose sizes depend on numbers run apart",
        "dialect/passes/speculate/round_costs.py",
        "not devices_of(types) <= {HOST} or not has_known_sizes(op, cls, if_refused=False)",
        "not devices_of(types) <= {HOST}",
        ("executor/loops/test_sizes_of_numbers.py::test_void_runs_leave_no_memory_behind",),
    ),
    Mutation(
        "strict fusion lets rounds run apart", "executor/tiers/profiling.py",
        "whole_loops=self._strict", "whole_loops=False",
        ("executor/loops/test_rounds_apart.py::test_strict_fusion_makes_one_kernel",),
    ),
    Mutation(
        "kernels of rounds write over arrays in use", "executor/memory/spare.py",
        "arrays[0] is not None and is_sole(arrays, 0)", "arrays[0] is not None",
        ("executor/loops/test_rounds_apart.py::"
         "test_arrays_that_are_still_in_use_are_not_written",),
    ),
    Mutation(
        "arrays begin loops in any order", "dialect/passes/speculate/carried_layouts.py",
        "    if not numbers:", "    if True:",
        ("executor/loops/test_rounds_apart.py::"
         "test_rounds_that_begin_with_another_layout",),
    ),
    Mutation(
        "rounds of short rows wait for themselves", "lowering/buffers/interchange.py",
        "ENOUGH = 64", "ENOUGH = 1",
        ("executor/loops/test_rounds_of_elements.py::test_masks_of_pairs",),
    ),
)  # fmt: skip

__all__ = ["LOOP_MUTATIONS"]
