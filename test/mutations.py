"""Break the code on purpose, one place at a time, and see whether the tests notice.

``make mutations``, or ``python test/mutations.py NAME …``. Each mutation replaces one piece of text
in a copy of the tree and runs the tests that should fail then. Exit status 1 = one was not caught,
its tests did not end in time, or its text is no longer there. `mutation_runner` does it.

``--selfcheck`` runs no test: of faults in the lowering for CPUs, those above and `lowering_faults`,
it tells whether the check of new kernels notices them while `proof_corpus` is compiled.
"""

from __future__ import annotations

import sys

from hook_mutations import HOOK_MUTATIONS
from loop_mutations import LOOP_MUTATIONS
from mutation_runner import Mutation, main
from tracing_mutations import TRACING_MUTATIONS
from trust_mutations import TRUST_MUTATIONS

MUTATIONS = (
    *HOOK_MUTATIONS,
    *LOOP_MUTATIONS,
    *TRACING_MUTATIONS,
    *TRUST_MUTATIONS,
    Mutation(
        "quick code serves tests of optimised code", "test/compiling.py",
        "request.pinned, request.name, libllvm.LEVEL)", "request.pinned, request.name)",
        ("test_compiling.py::test_code_of_one_mode_does_not_serve_another",),
    ),
    Mutation(
        "observers in blocks do not ask for gradients", "executor/settings/gradient_mode.py",
        "for instr in module.main.body.walk() if instr.op is Profile",
        "for instr in module.main.body.instrs if instr.op is Profile",
        ("executor/plans/test_differentiable.py::"
         "test_the_record_of_a_branch_alone_asks_for_gradients",),
    ),
    Mutation(
        "gradients are counted with results that have none", "executor/plans/differentiable.py",
        "[gradients[k] for k in op.input_vjps]", "gradients[: len(op.input_vjps)]",
        ("executor/plans/test_differentiable.py::"
         "test_results_that_are_no_floats_take_no_gradient",),
    ),
    Mutation(
        "a host call gives a tuple of its one result", "dialect/ops/host_call.py",
        "return _own(made, args)", "return (_own(made, args),)",
        ("executor/tape/test_calls_of_the_host.py",),
    ),
    Mutation(
        "recorded rules forget what they made of sizes alone", "executor/tape/straight.py",
        "for array, value, _ in captured:", "for array, value, _ in ():",
        ("executor/tape/test_calls_of_the_host.py::test_each_run_on_the_tape_has_the_gradient",),
    ),
    Mutation(
        "NumPy gets the numbers of what requires gradients", "executor/tape/conversions.py",
        "        if MODE.on and self.node is not None:\n            self._check_kept",
        "        if False:\n            self._check_kept",
        ("executor/tape/test_nothing_lost.py",),
    ),
    Mutation(
        "arguments of NumPy's functions lose gradients", "executor/tape/conversions.py",
        'if (frame.f_globals.get("__name__") or "").startswith("numpy.") or _takes_initial(frame):',
        "if False:",
        ("executor/tape/test_nothing_lost.py",),
    ),
    Mutation(
        "weights of counts lose gradients", "executor/tape/functions.py",
        "return func is np.histogram and noted(", "return False and noted(",
        ("executor/tape/test_nothing_lost.py",),
    ),
    Mutation(
        "traces do not look at gradient mode", "dialect/importers/numpy/tracing/recorder.py",
        "        if self.flow.is_off:\n", "        if False:\n",
        ("executor/tape/test_mode_in_traces.py",),
    ),
    Mutation(
        "gradients under no_grad are differentiated", "dialect/autodiff/functional.py",
        "    if not rec.flow.is_off:\n", "    if True:\n",
        ("executor/tape/test_mode_in_traces.py::"
         "test_a_gradient_that_is_computed_under_no_grad_is_one_and_has_none",),
    ),
    Mutation(
        "a function in a trace loses the mode that it asks for",
        "executor/functions/jit.py",
        "variant.executor.joins_traces and variant.trace.tells_gradients",
        "variant.executor.joins_traces",
        ("executor/tape/test_mode_in_traces.py::"
         "test_a_jitted_function_in_a_trace_keeps_its_own_mode",),
    ),
    Mutation(
        "results that no input flows into are on the tape", "dialect/autodiff/differentiate.py",
        "    made.leave_independent()\n", "",
        ("executor/tape/test_mode_in_traces.py",),
    ),
    Mutation(
        "operands of host calls are not observed", "dialect/profiling/observers.py",
        'return bool(op.partials or op.linear) or states(op, "vjp")', "return False",
        ("executor/plans/test_unobserved.py",),
    ),
    Mutation(
        "observers in branches count for nothing", "dialect/passes/gradients/observed.py",
        "        or is_enough(seen_in(every, v))\n", "",
        ("executor/plans/test_unobserved.py",),
    ),
    Mutation(
        "what a branch that never ran reads dissolves its subgraph",
        "dialect/passes/gradients/form_diff_graphs.py",
        "        if options.observed:\n", "        if False:\n",
        ("executor/plans/test_unobserved.py::"
         "test_a_branch_that_never_ran_stays_outside_of_the_subgraphs_and_has_its_gradient",),
    ),
    Mutation(
        "what a reverse half leaves undefined stays so", "executor/plans/differentiable.py",
        "            None if edge is None else _zeros(edge) if g is None else g\n",
        "            None if edge is None else g\n",
        ("executor/plans/test_differentiable.py::"
         "test_results_without_a_gradient_leave_zeros_and_not_nothing",),
    ),
    Mutation(
        "gradients move up where one is undefined", "executor/plans/differentiable.py",
        "            for edge, g in zip(self.edges, found, strict=True)",
        "            for edge, g in zip(self.edges, sorted(found, key=lambda g: g is None))",
        ("executor/plans/test_differentiable.py::"
         "test_nothing_before_a_gradient_does_not_shift_it",),
    ),
    Mutation(
        "integers that users are given are saved without a copy",
        "executor/plans/differentiable.py",
        "keep(found[k], None, versions, owned=y is None)",
        "keep(found[k], None, versions, owned=True)",
        ("executor/plans/test_differentiable.py::"
         "test_writes_to_results_that_are_no_floats_do_not_reach_gradients",),
    ),
    Mutation(
        "saved results are all the first one on the tape", "executor/plans/differentiable.py",
        "self.op.captured_outputs[k - first]) if edge is _OWN",
        "self.op.captured_outputs[0]) if edge is _OWN",
        ("executor/plans/test_differentiable.py::"
         "test_gradients_of_gradients_flow_to_the_result_that_was_saved",),
    ),
    Mutation(
        "captures are in the order in which a cut finds them",
        "dialect/autodiff/differentiate.py",
        "own = [v for v in computed if v in kept]",
        "own = [v for v in computed[::-1] if v in kept]",
        ("dialect/gradients/test_differentiate.py::test_captures_are_in_topological_order",),
    ),
    Mutation(
        "a sum of gradients on the tape keeps what may be undefined", "executor/plans/on_tape.py",
        "adds = instr.op is AutogradAdd", "adds = False",
        ("executor/plans/test_differentiable.py::"
         "test_gradients_of_gradients_flow_to_the_result_that_was_saved",),
    ),
    Mutation(
        "gradient mode of another thread counts", "executor/tape/elementwise.py",
        "if not table & 3 or (OFF and not MODE.on):", "if not table & 3 or OFF:",
        ("executor/tape/test_short_ways.py::test_modes_of_one_thread_leave_others_alone",),
    ),
    Mutation(
        "a reduction asks nobody who packs", "executor/tape/reductions.py",
        "SPECIAL and TAPE.special", "False",
        ("executor/tape/test_short_ways.py::test_what_a_reduction_saves_is_packed",),
    ),
    Mutation(
        "small budgets keep what others are computed from",
        "dialect/autodiff/residuals.py",
        "return 16 * taken if value in self.read else 17 * taken", "return taken",
        ("dialect/gradients/test_residuals.py::"
         "test_a_small_budget_keeps_what_blocks_begin_with",),
    ),
    Mutation(
        "arrays are held for their sizes", "executor/interpret/evaluate.py",
        "out.append(_keeping_shapes(step, shapes) if shapes else step)", "out.append(step)",
        ("executor/interpret/test_evaluate.py::test_of_an_array_whose_sizes_are_read_the_shape_stays",),
    ),
    Mutation(
        "a generated walk takes two arrays for one", "executor/backward/joined.py",
        "if arrays[k] is not arrays[first]:", "if False:",
        ("executor/backward/test_gather.py::test_constants_that_were_one_array_and_are_two",),
    ),
    Mutation(
        "a generated walk does not count writes", "executor/backward/joined.py",
        "if nodes[oldest].seq <= WRITES.last and written(nodes):", "if False:",
        ("executor/backward/test_gather.py::test_writes_and_freed_graphs_are_refused_as_ever",),
    ),
    Mutation(
        "nobody says when arrays were written to", "executor/tape/array.py",
        "        WRITES.last = next_seq()\n", "",
        ("executor/backward/test_gather.py::test_writes_and_freed_graphs_are_refused_as_ever",),
    ),
    Mutation(
        "contents that are looked at count as never written to", "executor/tape/saved.py",
        "        WRITES.last = FIRST  # nobody says when it is written to\n", "",
        ("executor/backward/test_gather.py::"
         "test_writes_that_nobody_counts_are_refused_where_contents_are_looked_at",),
    ),
    Mutation(
        "numbers that share a plan are not told by value", "executor/backward/walk.py",
        "elif plan.any_number:", "elif False:", ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "which result of a node is read is no part of the key", "executor/backward/walk.py",
        "(places[edge[0]], edge[1])", "(places[edge[0]], 0)", ("executor/backward/test_key.py",),
    ),
    Mutation(
        "posthooks are no part of the key", "executor/backward/walk.py",
        "len(accumulated), len(post))", "len(accumulated), 0)",
        ("executor/backward/test_key.py",),
    ),
    Mutation(
        "hooks count that a run has when it is walked", "executor/backward/walk.py",
        "hooks = taken.hooks(node, found)",
        "hooks = None if node.hooked is None else hooks_of(node, found)",
        ("executor/backward/test_first_run.py",),
    ),
    Mutation(
        "pasted halves leave gradients undefined", "executor/backward/record.py",
        "            g = _defined(c, g, type_, c.sizes_of(c.meta_at(target, index)))\n",
        "            pass\n", ("executor/backward/test_capture.py",),
    ),
    Mutation(
        "sections keep what nothing reads any more", "executor/backward/runner.py",
        "        for k in self.dying:\n            values[k] = None\n", "",
        ("executor/backward/test_deep_graphs.py::test_what_is_passed_on_is_let_go",),
    ),
    Mutation(
        "sections call each other's hooks", "dialect/analysis/sections.py",
        'instr.attrs["slots"] = tuple(', "tuple(",
        ("executor/backward/test_deep_graphs.py::test_hooks_stand_in_sections",),
    ),
    Mutation(
        "what may be undefined passes cuts", "dialect/analysis/sections.py",
        "weight = _NEVER if value in undefined else 1", "weight = 1",
        ("dialect/test_sections.py",),
    ),
    Mutation(
        "graphs that write to arrays are cut", "dialect/analysis/sections.py",
        "or any(i.op.writes for i in program.body.walk())", "",
        ("dialect/test_sections.py",),
    ),
    Mutation(
        "sizes that differ keep one symbol", "executor/backward/key.py",
        "if changed is None or not changed <= dynamic.keys() or _split(dynamic, shapes):",
        "if changed is None or not changed <= dynamic.keys():",
        ("executor/backward/test_key.py",),
    ),
    Mutation(
        "a generated walk takes sizes that differ for one", "executor/backward/gather.py",
        'tests.append(f"{name} != z{symbol}")', "pass",
        ("executor/backward/test_key.py", "executor/backward/test_gather.py"),
    ),
    Mutation(
        "numbers that changed are taken for constants", "executor/backward/key.py",
        "if self.numbers != numbers and not _others(self.numbers, numbers) <= self.changing:",
        "if False:", ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "a generated walk takes numbers that changed for constants", "executor/backward/gather.py",
        "            elif loose or node.plan.any_number:\n",
        "            elif False:\n",
        ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "a generated walk takes sizes from plans that are made for a number",
        "executor/backward/gather.py",
        "return bool(self.dynamic) or not self.changing.isdisjoint(self._numbers_of(node))",
        "return bool(self.dynamic)", ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "a generated walk does not ask for the order of branches", "executor/backward/gather.py",
        "if front is not None and not any(", "if False and not any(",
        ("executor/backward/test_gather.py::test_branches_that_are_made_in_the_other_order",),
    ),
    Mutation(
        "-0.0 is taken for 0.0", "executor/tape/plans.py",
        "return isfinite(x) and (x != 0.0 or copysign(1.0, x) > 0)", "return isfinite(x)",
        ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "inverses of unknown numbers are rounded twice", "dialect/ops/elementwise/binary.py",
        "inverse = 1 / _as_array(number, np.dtype(np.float64))",
        "inverse = 1 / _as_array(number, dtype)", ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "gradients of 0 lose their sign", "dialect/ops/gradients.py",
        "absorbed = np.equal(a, 0) & np.isnan(product)", "absorbed = np.equal(a, 0)",
        ("executor/backward/test_numbers.py",),
    ),
    Mutation(
        "emitted code of captured runs outlives a flush", "executor/backward/emitted.py",
        "if self._call is None or SWITCH.on or self.executor.settled is not self._plan:",
        "if self._call is None:", ("executor/backward/test_emitted.py",),
    ),
    Mutation(
        "emitted code writes to saved arrays that others hold", "executor/dispatch/attach.py",
        "if plan.donations and not plan.sole:", "if plan.donations:",
        ("executor/backward/test_emitted.py",),
    ),
    Mutation(
        "emitted code takes runs from plans that reuse big arrays", "executor/backward/emitted.py",
        "if any(inputs[k].nbytes > _SMALL for _, k in plan.donations):", "if False:",
        ("executor/backward/test_emitted.py",),
    ),
    Mutation(
        "exact kernels fuse products with sums", "lowering/emit/module.py",
        "        if exact:\n            _round_all", "        if False:\n            _round_all",
        ("executor/test_exact.py",),
    ),
    Mutation(
        "exact groups have what kernels round otherwise",
        "dialect/passes/speculate/form_fusions.py",
        "self.is_exact = self.options.exact and not self.on_device", "self.is_exact = False",
        ("executor/test_exact.py",),
    ),
    Mutation(
        "exact groups take arrays in any order", "dialect/passes/speculate/exact_groups.py",
        "if type_.shape is None or len(type_.shape) > 1:", "if False:",
        ("executor/test_exact.py",),
    ),
    Mutation(
        "arrays that others hold are written to", "executor/memory/donation.py",
        "if is_sole(inputs, k):", "if True:",
        ("executor/backward/test_stolen_inputs.py",),
    ),
    Mutation(
        "memory that others own is written to", "executor/memory/donation.py",
        "array.flags.owndata and is_plain(array)", "is_plain(array)",
        ("executor/backward/test_stolen_inputs.py",),
    ),
    Mutation(
        "saved values stay after a captured run", "executor/backward/run.py",
        "                node.release()\n    walk.arrays", "                pass\n    walk.arrays",
        ("executor/backward/test_key.py",),
    ),
    Mutation(
        "a captured run within one is captured", "executor/backward/run.py",
        "before, TAPE.captured = TAPE.captured, None\n    mode", "before = TAPE.captured\n    mode",
        ("executor/backward/test_scopes.py",),
    ),
    Mutation(
        "calls of users' code pass each other", "dialect/analysis/backward_order.py",
        "        return before.op not in _USERS_CODE\n", "        return True\n",
        ("executor/backward/test_one_contract.py",),
    ),
    Mutation(
        "accumulations in front of hooks become results", "dialect/analysis/backward_lists.py",
        "            if instr.op in _CALLS:\n                break",
        "            if False:\n                break",
        ("executor/backward/test_captured_hooks.py",),
    ),
    Mutation(
        "writes to saved arrays are not counted", "executor/tape/array.py",
        "version.count += 1", "version.count += 0",
        ("executor/tape/test_semantics.py::test_all_ways_to_write_are_counted",),
    ),
    Mutation(
        "views do not follow writes to their base", "executor/tape/array.py",
        "if base is not None and self._seen is not base._node", "if False",
        ("executor/tape/test_semantics.py::test_views_follow_what_is_written_to_their_base",),
    ),
    Mutation(
        "ndarrays that a gradient reads are kept without a copy", "executor/tape/saved.py",
        "return data.copy()", "return data",
        ("executor/tape/test_semantics.py::test_numpy_operands_may_be_written_to_afterwards",),
    ),
    Mutation(
        "leaves share a gradient", "executor/tape/array.py",
        "owned = sys.getrefcount(g) <= holders + 2 and _is_owned(g)", "owned = _is_owned(g)",
        ("executor/tape/test_semantics.py::test_leaves_do_not_share_gradients",),
    ),
    Mutation(
        "nodes run before all of their gradients are there", "executor/tape/engine.py",
        "                if left != 1:\n", "                if False:\n",
        ("executor/tape/test_core.py",),
    ),
    Mutation(
        "a recomputed function may give another result", "executor/tape/custom.py",
        "if len(found) != self._saved or _sums(result) != self._result:", "if False:",
        ("executor/tape/test_semantics.py::test_checkpoint_tells_functions_that_change",),
    ),
    Mutation(
        "a loop overwrites the array that it was handed", "executor/memory/liveness.py",
        "if ops and inits[k] not in fresh:", "if False:",
        ("executor/memory/test_overwrites.py",),
    ),
    Mutation(
        "a round overwrites an array that it reads afterwards", "executor/memory/liveness.py",
        "if dead & uses(instr):", "if False:",
        ("executor/memory/test_overwrites.py",),
    ),
    Mutation(
        "no round overwrites an array", "executor/memory/liveness.py",
        "self._ops.update(map(id, ops))", "ops = []",
        ("executor/memory/test_overwrites.py",),
    ),
    Mutation(
        "each chunk of the places adds at all of them", "lowering/emit/places.py",
        "if loop in nest.ranges:", "if False:",
        ("lowering/test_places.py",),
    ),
    Mutation(
        "blocks that need rare values keep the usual ones", "lowering/emit/rare.py",
        "_noting(ops, loop, bounds, again, False, results)",
        "_noting(ops, loop, bounds, ops.constant(0, ops.i1), False, results)",
        ("lowering/test_rare.py",),
    ),
    Mutation(
        "loops that read what they write run twice", "lowering/emit/rare.py",
        "if is_free and always and not written & read and", "if is_free and",
        ("lowering/test_rare.py::test_loops_that_may_write_what_they_read_run_once",),
    ),
    Mutation(
        "sums over rows may be added up in any order", "lowering/emit/nest.py",
        "self.own_loops(op), previous, in_order=True)", "self.own_loops(op), previous)",
        ("lowering/test_cpus.py::test_each_cpu_has_the_bits_of_the_others",),
    ),
    Mutation(
        "LLVM chooses what it fuses with sums in order", "lowering/emit/in_order.py",
        """        op.attributes["fastmath"] = ops.rounded
        if ops.fused""",
        """        op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")
        if False and ops.fused""",
        ("lowering/test_cpus.py::test_each_cpu_has_the_bits_of_the_others",),
    ),
    Mutation(
        "the size of expansions decides on the order of sums", "lowering/emit/unroll.py",
        "is_small = sum(EXPANDED in o.attributes for o in inside) * count <= _MAX_FUNCTIONS",
        "is_small = len(inside) * count <= _MAX_SIZE",
        ("lowering/test_cpus.py::test_each_cpu_has_the_bits_of_the_others",),
    ),
    Mutation(
        "short rows are added up in any order", "lowering/emit/unroll.py",
        "copy.attributes[IN_ORDER] = ir.UnitAttr.get()", "pass",
        ("lowering/test_cpus.py::test_each_cpu_has_the_bits_of_the_others",),
    ),
    Mutation(
        "a block of rows leaves out those behind its vectors", "lowering/emit/few_columns.py",
        "loop = ops.loop(whole, rows, ops.constant(1), starts)",
        "loop = ops.loop(whole, whole, ops.constant(1), starts)",
        ("lowering/test_columns.py::test_many_rows_of_few_columns",),
    ),
    Mutation(
        "rows add once to a sum over rows", "lowering/emit/few_columns.py",
        "if any(_is_same(a, b) for k", "if False and any(_is_same(a, b) for k",
        ("lowering/test_columns.py::test_rows_that_add_several_times",),
    ),
    Mutation(
        "steps of rows leave out what is left over", "lowering/emit/few_columns.py",
        "        loop.operands[0] = whole\n", "        loop.operands[0] = high\n",
        ("lowering/test_columns.py::test_many_rows_of_few_columns",),
    ),
    Mutation(
        "sums over columns read narrow tiles of rows", "lowering/schedule/columns.py",
        "if isinstance(lane.extent, int) and lane.extent <= width:", "if False:",
        ("lowering/test_columns.py",),
    ),
    Mutation(
        "rows that fill no step are left out of sums", "lowering/emit/nest.py",
        "if whole is not high:", "if False:",
        ("lowering/test_columns.py",),
    ),
    Mutation(
        "rows are read at indices that nobody has tested", "lowering/emit/rare.py",
        "is_free = not any(_is_guarded(op) for op in inside)", "is_free = True",
        ("lowering/test_rare.py::test_indices_outside_of_the_axis_void_the_launch",),
    ),
    Mutation(
        "rounds make arrays in C order, whatever NumPy does",
        "dialect/passes/speculate/carried_layouts.py",
        "if not _turns(made, samples) or order != order_of(samples.get(carried)):", "if True:",
        ("executor/loops/test_carried_layouts.py::test_rounds_read_memory_in_one_order",),
    ),
    Mutation(
        "an array whose order a round changes begins a loop transposed",
        "dialect/passes/speculate/carried_layouts.py",
        "if not _turns(made, samples) or order != order_of(samples.get(carried)):",
        "if (order := order_of(samples[carried])) is None:",
        ("executor/loops/test_carried_layouts.py",),
    ),
    Mutation(
        "halves of symmetric products are mirrored within a square", "lowering/emit/halves.py",
        "rows = loop(low, size, tile)", "rows = loop(low, high, tile)",
        ("lowering/test_gram.py::test_same_bits_on_any_number_of_threads",),
    ),
    Mutation(
        "elements behind the last vector are rounded twice", "lowering/emit/row_sums.py",
        "        if ops.fused:", "        if ops.fused and isinstance(type_, ir.VectorType):",
        ("lowering/test_row_sums.py::test_an_element_has_the_same_bits_wherever_it_lies",),
    ),
    Mutation(
        "parts of symmetric products are joined in one call", "lowering/schedule/product_chunks.py",
        "calls=Calls(_HALF, Joined.NONE, _HALF)", "calls=Calls(_HALF, Joined.ALL, _HALF)",
        ("lowering/test_gram.py::test_same_bits_on_any_number_of_threads",),
    ),
    Mutation(
        "products are cut within tiles of the library", "lowering/schedule/calls.py",
        "ROWS = 24\n", "ROWS = 20\n",
        ("lowering/test_product_calls.py::test_bits_with_each_kernel_of_the_library",),
    ),
    Mutation(
        "the rest of a vector's elements is joined", "lowering/emit/products.py",
        "is not None and has_rest(op):", "is None:",
        ("lowering/test_product_calls.py::test_bits_with_each_kernel_of_the_library",),
    ),
    Mutation(
        "a product on one thread is cut into its chunks", "lowering/emit/chunks.py",
        "%step = llvm.select %any, %count, %grain", "%step = llvm.select %any, %unit, %grain",
        ("lowering/test_product_calls.py::test_one_thread_makes_one_call",),
    ),
    Mutation(
        "chunks of products have so few multiplications that the library has other code for them",
        "lowering/schedule/calls.py", "FEW = 1_000_000", "FEW = 1_000",
        ("lowering/test_product_calls.py::test_chunks_are_not_small_products",),
    ),
    Mutation(
        "rows do not wait for sums over all rows", "lowering/schedule/rows.py",
        "or grouper.reaches(rows, group):", "or False:",
        ("lowering/test_rows.py",),
    ),
    Mutation(
        "a short leading axis keeps a kernel on one thread", "lowering/emit/grains.py",
        "is_short, has_more = ops.less(parts, ops.constant(FEW)),",
        "is_short, has_more = ops.constant(0, ops.i1),",
        ("lowering/test_chunks.py::test_sizes_decide_which_loop_is_divided",),
    ),
    Mutation(
        "a switch gives a fallback more depth than is left", "executor/tiers/profiling.py",
        "self.work, depth=depth)", "self.work)",
        ("executor/tiers/test_plan_choice.py::test_r1_42_a_callee_has_its_depth_whatever_is_switched_off_meanwhile",),
    ),
    Mutation(
        "a product with several readers is fused with one of them", "lowering/linalg/to_linalg.py",
        "    _round_shared_products(block)\n", "",
        ("lowering/test_contraction.py::test_one_product_does_not_vary",),
    ),
    Mutation(
        "gradient mode is not asked", "dialect/ir/gradient_mode.py",
        'bool(getattr(value, "requires_grad", False)) and MODE.on',
        'bool(getattr(value, "requires_grad", False))',
        ("executor/test_requires_grad.py::test_record_spec_and_guards_agree",),
    ),
    Mutation(
        "a plan's quick check forgets the flag", "executor/plans/guard.py",
        'if o.on_device else ""  # NumPy', 'if False else ""  # NumPy',
        ("executor/test_requires_grad.py",),
    ),
    Mutation(
        "rewrites that need types reach fallbacks", "dialect/pipeline/standard.py",
        '"specialize,fuse-loops,',
        '"specialize,typed-rewrites,fuse-loops,',
        ("executor/test_pipeline_effects.py::test_rewrites_that_need_types_happen_in_groups",),
    ),
    Mutation(
        "kernels of loops without end are launched", "executor/compile/proof/rounds.py",
        "            if not bounded.issuperset(instr.operands[:3]):\n"
        "                return False\n",
        "",
        ("executor/compile/test_rounds.py",),
    ),
    Mutation(
        "debuggers that come late are not seen", "executor/dispatch/conditions/debuggers.py",
        'w.unless(w.op(f"icmp eq i64 {kind}, {_word(w, HARMLESS)}"), ask)', "",
        ("executor/functions/test_plain_python.py::"
         "test_a_debugger_that_comes_late_stops_in_functions_that_run_natively",),
    ),
    Mutation(
        "coverage is taken for a debugger", "executor/settings/plain.py",
        'frozenset({"coverage"})', "frozenset()",
        ("executor/functions/test_plain_python.py::test_coverage_is_no_debugger",),
    ),
    Mutation(
        "a block of one thread holds for all", "executor/settings/plain.py",
        "    return scope is not None and scope.is_open\n", "    return _switches.blocks > 0\n",
        ("executor/functions/test_plain_python.py::test_a_block_holds_for_its_thread",),
    ),
    Mutation(
        "tasks stay in blocks that have ended", "executor/settings/plain.py",
        "        scope.is_open = False\n", "        pass\n",
        ("executor/functions/test_plain_python.py::"
         "test_a_block_holds_for_tasks_that_are_made_in_it_until_it_ends",),
    ),
    Mutation(
        "Python wins races that it loses", "executor/functions/race.py",
        "_EQUAL = 0.95", "_EQUAL = 1.5",
        ("executor/functions/test_race.py",),
    ),
    Mutation(
        "Python runs calls of any size at once", "executor/arguments/plain_calls.py",
        "        return arg.dtype, arg.ndim, magnitude(arg)", "        return arg.dtype, arg.ndim",
        ("executor/functions/test_race.py::test_python_need_not_win_each_call_anew",),
    ),
    Mutation(
        "threads of the pool wait for the interpreter", "executor/compile/worker/pool.py",
        "        with short_turns():\n            self._f", "        if True:\n            self._f",
        ("executor/compile/test_turns.py::test_a_background_compile_has_short_turns",),
    ),
    Mutation(
        "the interval of the interpreter stays short", "executor/settings/turns.py",
        "if not self._count and sys.getswitchinterval() == self._set:", "if False:",
        ("executor/compile/test_turns.py",),
    ),
    Mutation(
        "two results share memory", "executor/plans/plan.py",
        "and uses_in(self.main.body).count(instr.operands[0]) == 1", "",
        ("executor/plans/test_result_layouts.py::test_an_array_and_its_transpose_are_arrays_of_their_own",),
    ),
    Mutation(
        "emitted code keeps what is to be released", "executor/functions/dispatched.py",
        "            function.come_to_python()\n", "            pass\n",
        ("executor/tiers/test_release.py::test_a2_the_switch_and_its_delay_are_read_at_every_request",),
    ),
    Mutation(
        "kernels are measured in chunks that are for checks", "lowering/cpu/pool_block.py",
        "before, work.value = work.value, CHUNK", "before = work.value",
        ("executor/compile/test_demotion.py::test_chunks_are_those_of_programs",),
    ),
    Mutation(
        "a guard takes any size for a multiple", "executor/dispatch/conditions/guards.py",
        "return wanted == o.size(check) or [",
        "return o.size(check) // times * times == wanted or [",
        ("executor/test_sizes.py::test_r1_40_sizes_that_fitted_are_guarded_and_others_fall_back",),
    ),
    Mutation(
        "what did not hold is assumed of sizes", "dialect/guards/assumed_sizes.py",
        "if name in observed and observed[name] % times == 0:", "if name in observed:",
        ("dialect/test_assumed_sizes.py",),
    ),
    Mutation(
        "indices stay clamped in loops that are split", "lowering/emit/split.py",
        "least - (stop - 1) - offset", "least - stop - offset",
        ("lowering/test_split.py",),
    ),
    Mutation(
        "one run decides that a kernel is too slow", "executor/compile/proof/measure.py",
        "evaluated * _KEPT[min(number, len(_KEPT)) - 1]:", "evaluated or number == 1:",
        ("executor/compile/test_demotion.py::test_noise_demotes_no_kernel",),
    ),
    Mutation(
        "what was demoted is stored as a failure", "executor/compile/cache/codec.py",
        "{**result.kernels, **result.demoted}", "{**result.kernels}",
        ("executor/compile/test_demotion.py",),
    ),
    Mutation(
        "waiting for a worker has no name", "executor/compile/worker/job.py",
        "        add(made, WORKER, starting)\n", "",
        ("executor/compile/test_stages.py::test_stages_of_the_first_compiles_of_a_process_add_up",),
    ),
    Mutation(
        "what users call on objects gets NumPy itself", "dialect/importers/numpy/capture/calls.py",
        "node.func = ast.copy_location(ast.Call(name, [callee], []), callee)", "pass",
        ("dialect/importers/test_scope.py::test_whatever_users_call_sees_the_substitutes",),
    ),
    Mutation(
        "arrays stay as a refused trace has left them", "dialect/importers/numpy/world/contents.py",
        "            np.asarray(array)[...] = self._held\n", "            pass\n",
        ("dialect/importers/test_effects.py::test_effects_are_refused_and_undone",),
    ),
    Mutation(
        "nonlocal assignments go unnoticed", "dialect/importers/numpy/capture/scope.py",
        "if value is not cell.given:", "if False:",
        ("dialect/importers/test_effects.py::test_effects_are_refused_and_undone",),
    ),
    Mutation(
        "errors that are caught pin no sizes", "dialect/importers/numpy/tracing/recorder.py",
        '        if failure is Failure.SIZES:\n            self.numbers.pin()',
        '        if failure is Failure.SIZES:\n            pass',
        ("dialect/importers/test_caught.py::test_what_is_caught_holds_for_these_sizes",),
    ),
    Mutation(
        "refusals that are caught are forgotten", "dialect/importers/numpy/capture/tracer.py",
        "if rec.refused is not None:", "if False:",
        ("dialect/importers/test_caught.py::test_what_contents_decide_is_refused_even_if_caught",),
    ),
    Mutation(
        "traced values stay in returned objects", "dialect/importers/numpy/capture/tracer.py",
        "if holds_tracer(static):", "if False:",
        ("dialect/importers/test_scope.py::test_results_keep_no_traced_values_in_objects",),
    ),
    Mutation(
        "memory in use is given to another call", "executor/memory/thread_block.py",
        "free = kept is None or _holders(kept) == _ALONE", "free = True",
        ("executor/memory/test_plan_memory.py::test_a_call_within_a_call_gets_memory_of_its_own",
         "executor/memory/test_plan_memory.py::test_whoever_holds_a_block_keeps_it"),
    ),
    Mutation(
        "places are reused a step too early", "executor/dispatch/leaves/memory.py",
        "if last[v] == index", "if last[v] <= index + 1",
        ("executor/memory/test_plan_memory.py::test_places_of_live_arrays_never_overlap",),
    ),
    Mutation(
        "plans keep what is dead", "executor/plans/plan.py",
        '        if values:\n            self.emit(depth, f"del',
        '        if False:\n            self.emit(depth, f"del',
        ("executor/memory/test_plan_memory.py::test_peak_of_a_long_chain",),
    ),
    Mutation(
        "a frame is given to a call within a call", "executor/memory/thread_block.py",
        "    if kept is not None and _holders(kept) == _ALONE:\n", "    if kept is not None:\n",
        ("executor/memory/test_intermediates_meet.py::test_a_finalizer_that_calls_between_kernels",),
    ),
    Mutation(
        "the block stays in use after a fallback", "executor/plans/plan.py",
        "block, frame = forfeit(block, inner)", "forfeit(block, inner)",
        ("executor/memory/test_intermediates.py::test_fallbacks_may_keep_what_they_are_given",),
    ),
    Mutation(
        "calls get memory that a fallback may keep", "executor/memory/thread_block.py",
        "        arena.kept = None\n    return None, inner.nowhere",
        "        pass\n    return None, inner.nowhere",
        ("executor/memory/test_intermediates.py::test_fallbacks_may_keep_what_they_are_given",),
    ),
    Mutation(
        "a guard that always misses costs a block each time", "executor/memory/thread_block.py",
        "min(2 * inner.last_pause + 1, _LONGEST_PAUSE)", "0",
        ("executor/memory/test_intermediates.py::test_a_guard_that_always_misses_costs_few_blocks",),
    ),
    Mutation(
        "kernels write beyond the places they are given", "executor/plans/kernel_call.py",
        'fits = f"{g}.shape == {shape} and ', 'fits = f"',
        ("executor/memory/test_intermediates.py::test_predicted_sizes_that_are_wrong",
         "executor/functions/test_into.py"),
    ),
    Mutation(
        "evaluated ops see the block", "executor/memory/intermediates.py",
        "            else:\n                self.expose((*instr.operands, *instr.results))",
        "            else:\n                self.touch(instr)",
        ("executor/memory/test_intermediates.py::test_what_evaluated_ops_read_is_not_placed",
         "executor/memory/test_intermediates_meet.py::test_random_graphs_agree_without_the_block_and_in_emitted_code"),
    ),
    Mutation(
        "what a loop reads dies in its first round", "executor/memory/intermediates.py",
        "uses(instr) - inside", "set()",
        ("executor/memory/test_intermediates.py::test_loops",),
    ),
    Mutation(
        "interpreted groups see the block", "executor/memory/intermediates.py",
        "            self.expose(instr.operands)\n", "            pass\n",
        ("executor/memory/test_intermediates.py::test_operands_of_groups_that_may_be_interpreted",),
    ),
    Mutation(
        "results lie in the block", "executor/memory/intermediates.py",
        "self.expose((*main.inputs, *main.outputs))", "self.expose(main.inputs)",
        ("executor/memory/test_intermediates.py::test_results_are_never_placed",),
    ),
    Mutation(
        "an array dies although a guard's alias of it lives", "executor/memory/intermediates.py",
        "        self.join(alias, value)\n", "",
        ("executor/memory/test_intermediates.py::test_places_are_used_again",
         "executor/memory/test_intermediates_meet.py::test_random_graphs_agree_without_the_block_and_in_emitted_code"),
    ),
    Mutation(
        "results are written over arguments that overlap", "executor/memory/destinations.py",
        "not any(np.may_share_memory(array, x) for x in read)", "True",
        ("executor/functions/test_into.py::test_overlapping_an_argument_changes_no_value",),
    ),
    Mutation(
        "emitted code writes over arguments that overlap",
        "executor/dispatch/conditions/host_reads.py",
        "or i1 {before}, {behind}", "or i1 {before}, true",
        ("executor/functions/test_into.py::test_overlapping_an_argument_changes_no_value",
         "executor/memory/test_donation.py::test_only_plain_memory_that_nobody_else_has_is_overwritten"),
    ),
    Mutation(
        "donated views are overwritten", "executor/memory/donation.py",
        "is_view = type(array.base) is np.ndarray", "is_view = False",
        ("executor/memory/test_donation.py::test_only_plain_memory_that_nobody_else_has_is_overwritten",),
    ),
    Mutation(
        "an argument is overwritten that is read later", "executor/memory/donation.py",
        "elif after and id(instr) not in others:", "elif False:",
        ("executor/memory/test_donation.py::test_an_early_result_leaves_alone_what_is_read_later",),
    ),
    Mutation(
        "elements are overwritten before they are read", "lowering/schedule/in_place.py",
        "return len(written) == 1 and read == written", "return True",
        ("executor/memory/test_donation.py::test_kernels_that_cannot_leave_the_argument_alone",),
    ),
    Mutation(
        "a fallback keeps its parent's depth", "executor/tiers/profiling.py",
        "self.depth - 1", "self.depth",
        ("executor/tiers/test_tiers.py::test_static_chain_down_to_depth_0",),
    ),
    Mutation(
        "an input is returned as it is", "executor/interpret/evaluate.py",
        '        return out.copy("K")\n', "        return out\n",
        ("executor/functions/test_calls.py::test_outputs_are_fresh",),
    ),
    Mutation(
        "the compile lock is not taken", "executor/tiers/profiling.py",
        "        with self._lock:\n            if self.optimized is not None:",
        "        if True:\n            if self.optimized is not None:",
        ("executor/test_threads.py::test_one_compile_per_specialisation",),
    ),
    Mutation(
        "flush keeps the optimised plan", "executor/tiers/profiling.py",
        "        self.optimized: Plan | None = None\n",
        '        self.optimized = getattr(self, "optimized", None)\n',
        ("executor/tiers/test_tiers.py::test_flush_profiles_again",),
    ),
    Mutation(
        "the quick check forgets contiguity", "executor/plans/guard.py",
        'f"({o.value}.flags.carray or', 'f"(True or',
        ("executor/functions/test_calls.py::test_a_layout_that_was_not_profiled_misses",),
    ),
    Mutation(
        "the quick check forgets that sizes must be equal", "executor/plans/guard.py",
        '{wanted}" if first == own else f"{place} == {wanted}"',
        '{wanted}" if first == own else place',
        ("executor/explain/test_explain.py::test_sizes_that_were_equal_while_profiling",),
    ),
    Mutation(
        "evaluated results count as fresh", "executor/plans/plan.py",
        "        evaluate = bound_evaluate(instr, self.overwrites)\n",
        "        evaluate = bound_evaluate(instr)\n        self.fresh.update(instr.results)\n",
        ("executor/functions/test_calls.py::test_outputs_are_fresh",),
    ),
    Mutation(
        "a size of 0 passes for a symbol", "dialect/guards/checks.py",
        '    yield "positive", want, axis\n', "",
        ("dialect/test_guards.py",
         "executor/explain/test_explain.py::test_mismatches_are_empty_exactly_where_the_guard_passes"),
    ),
    Mutation(
        "a size of 1 is generalised", "dialect/guards/checks.py",
        "dim in (0, 1, given)", "dim in (0, given)",
        ("dialect/test_guards.py",),
    ),
    Mutation(
        "strategies are read from the front", "executor/settings/strategy.py",
        "for behavior, count in reversed(strategy)", "for behavior, count in strategy",
        ("executor/settings/test_settings.py::test_behavior_at_depth",),
    ),
    Mutation(
        "two threads trace the same graph", "executor/functions/graphs.py",
        "            if variant is not None:\n                return variant\n", "",
        ("executor/test_threads.py::test_one_compile_per_specialisation",),
    ),
    Mutation(
        "the newest trace is dropped", "executor/functions/graphs.py",
        "oldest = min(every", "oldest = max(every",
        ("executor/test_memory.py::test_traces_are_bounded",),
    ),
    Mutation(
        "live memory is lent twice", "executor/memory/output_pool.py",
        "found.blocks.pop() if found.blocks", "found.blocks[-1] if found.blocks",
        ("executor/memory/test_arrays.py",
         "executor/test_memory.py::test_output_pool_over_500_sizes"),
    ),
    Mutation(
        "a full pool keeps everything", "executor/memory/output_pool.py",
        "while self._held > knobs.output_pool_bytes", "while False",
        ("executor/test_memory.py::test_output_pool_over_500_sizes",),
    ),
    Mutation(
        "LLVM sees the constants of accumulated extrema", "lowering/cpu/stages.py",
        "        hide_constants(module)\n", "",
        ("lowering/test_hidden.py",),
    ),
    Mutation(
        "constants are hidden where loops carry values alone", "lowering/cpu/hidden.py",
        "            earlier.add(op.results[0])\n", "            pass\n",
        ("lowering/test_hidden.py::test_so_it_is_in_loops",),
    ),
    Mutation(
        "zeros are fenced as such", "lowering/cpu/hidden.py",
        "else 1 << 62", "else 0",
        ("lowering/test_hidden.py::test_so_it_is_in_loops[uint8-max]",),
    ),
    Mutation(
        "bounds are hidden from comparisons", "lowering/cpu/hidden.py",
        "_replace(bounding, key[1], hidden[key])", "pass",
        ("lowering/test_hidden.py::test_bounds_stay_bounds",),
    ),
    Mutation(
        "bits of hidden numbers stay flipped", "lowering/cpu/hidden.py",
        "number = emit(\"arith.xori\", i64, emit(\"arith.bitcast\", i64, fenced), flipped)",
        "number = emit(\"arith.bitcast\", i64, fenced)",
        ("executor/test_masked.py::test_values",),
    ),
    Mutation(
        "nests do not learn their bounds", "lowering/cpu/codegen.py",
        'KERNEL = (\n    "ipsccp,', 'KERNEL = (\n    "',
        ("lowering/test_codegen.py::test_nests_learn_their_bounds",),
    ),
    Mutation(
        "results of loops are made within", "lowering/cpu/codegen.py",
        'instcombine<no-verify-fixpoint>,loop-mssa(licm),"\n    "loop-vectorize',
        'instcombine<no-verify-fixpoint>,"\n    "loop-vectorize',
        ("lowering/test_codegen.py::test_results_of_a_loop_are_made_after_it",),
    ),
    Mutation(
        "modules of LLVM leak", "lowering/libllvm.py",
        "        self._api.LLVMContextDispose(self._context)\n", "",
        ("lowering/test_codegen.py::test_modules_are_freed",
         "executor/test_memory.py::test_compiles_leave_little_behind",),
    ),
    Mutation(
        "counts of flushed fallbacks are lost", "executor/settings/events.py",
        "            counters.move(into)\n", "            pass\n",
        ("executor/explain/test_state.py::test_totals_outlive_flushes_and_functions",),
    ),
    Mutation(
        "Ctrl-C ends workers that are starting", "dialect/interrupts.py",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})",
        "signal.pthread_sigmask(signal.SIG_BLOCK, ())",
        ("executor/compile/test_worker_contexts.py::test_ctrl_c_is_not_for_workers_that_are_starting",),
    ),
    Mutation(
        "Perfetto shows letters as escapes", "executor/observe/perfetto.py",
        "ensure_ascii=False", "ensure_ascii=True",
        ("executor/observe/test_trace_perfetto.py::test_times_are_exact_and_any_text_is_read",),
    ),
    Mutation(
        "Perfetto cannot read a backslash at the end of a text", "executor/observe/perfetto.py",
        "return _BACKSLASHES_AT_END.sub(r'\\1 \"', text)", "return text",
        ("executor/observe/test_trace_perfetto.py::test_times_are_exact_and_any_text_is_read",),
    ),
    Mutation(
        "stress mode fails no guard", "executor/settings/stress.py", "draw() * every < 1.0",
        "draw() < 0.0",
        ("executor/settings/test_stress.py::test_every_guard_fails_where_k_is_1",),
    ),
    Mutation(
        "stress mode takes the group all the same", "executor/plans/plan.py",
        'forced = f"v{ok} = False; {g}.forced', 'forced = f"{g}.forced',
        ("executor/settings/test_stress.py::test_every_guard_fails_where_k_is_1",),
    ),
    Mutation(
        "the last graph is that of the plan before", "executor/plans/link.py",
        "    LAST.plan, RECENT[0] = plan.ref, 0\n",
        "    LAST.plan, RECENT[0] = LAST.plan or plan.ref, 0\n",
        ("executor/explain/test_state.py::test_last_executed_graph",),
    ),
    Mutation(
        "kernels that are wrong serve", "executor/compile/compiler.py",
        "    if verdict.outcome == FAILED:\n", "    if False:\n",
        ("executor/compile/test_proof.py::test_a_wrong_kernel_never_serves",),
    ),
    Mutation(
        "checks do not look whether all of a result is written", "executor/compile/proof/check.py",
        "if not same_bits(a, b):", "if False:",
        ("executor/compile/test_proof.py::test_memory_that_is_not_the_kernels",),
    ),
    Mutation(
        "other rows are evaluated than compared", "executor/compile/proof/rows.py",
        "a[self.picked] if c else a", "a[: self.picked.size] if c else a",
        ("executor/compile/test_proof_large.py::test_rows_of_large_results_are_what_the_definition_gives",),
    ),
    Mutation(
        "sums along an axis are taken for rows", "executor/compile/proof/rows.py",
        'and 0 not in reduced_axes(attrs["axes"], given)', "",
        ("executor/compile/test_proof_large.py::test_rows_of_large_results_are_what_the_definition_gives",),
    ),
    Mutation(
        "checks take as long as it takes", "executor/compile/proof/check.py",
        "self.compares = launches + reference <= limit", "self.compares = True",
        ("executor/compile/test_proof_large.py::test_what_there_is_no_time_for_is_left_out",),
    ),
    Mutation(
        "a worker lost while it checks is told as any other", "executor/compile/worker/lane.py",
        "    if not lost.checking:\n", "    if True:\n",
        ("executor/compile/test_proof.py::test_a_kernel_that_crashes_costs_a_worker_and_its_kernel",),
    ),
    Mutation(
        "a void launch keeps its results", "executor/plans/kernel_call.py",
        'f"    if {void}:"', '"    if False:"',
        ("executor/plans/test_violations.py::test_several_checks_in_one_kernel",),
    ),
    Mutation(
        "what is far below the range of exp underflows to 0", "lowering/math/exp.py",
        "zero = -(2 * bias + log2_factor) * unit", "zero = low",
        ("lowering/test_math.py::test_far_below_the_range_nothing_underflows_anywhere",),
    ),
    Mutation(
        "computed elements of the block that has won are overwritten", "lowering/emit/extremum.py",
        "ops.store(ops.select(has_won, other, turn), self.turn)", "ops.store(turn, self.turn)",
        ("lowering/test_extremum.py::test_computed_elements_are_kept_for_the_search",),
    ),
    Mutation(
        "the first NaN of a block is not found", "lowering/emit/extremum.py",
        'return ops.create("arith.ori", ops.i1, same, is_nan)', "return same",
        ("lowering/test_extremum.py::test_known_sizes",),
    ),
    Mutation(
        "an extremum is searched in the first block", "lowering/emit/reduce.py",
        "search.find(results[value], results[index])", "search.find(results[value], nest.size(0))",
        ("lowering/test_extremum.py::test_known_sizes",),
    ),
    Mutation(
        "kernels do not report indices out of range", "lowering/linalg/builder.py",
        "        self._violations.append(found)\n", "        pass\n",
        ("executor/plans/test_violations.py::test_a_number_as_index",),
    ),
    Mutation(
        "what there is one of per row is not stored", "lowering/gpu/kernels/pointwise.py",
        "self.store_tail([g for g in self.stage_.parallel if g not in self.inner])", "pass",
        ("lowering/test_gpu_random.py::test_members_of_outer_loops_beside_an_inner_stage",),
    ),
    Mutation(
        "warps do not wait for one another", "lowering/gpu/kernels/combine.py",
        "    ops.barrier()\n", "",
        ("lowering/test_gpu_fused.py::test_static_sizes[softmax-5-1024]",),
    ),
    Mutation(
        "vectors are loaded at any address", "lowering/gpu/kernels/kernel.py",
        'self._require(Condition("aligned", buffer.index, bytes_))', "self.fast",
        ("lowering/test_gpu_fused.py::test_static_sizes[gelu-5-1024]",),
    ),
    Mutation(
        "elements past the end of a row count", "lowering/gpu/kernels/rows.py",
        "if inside is not None:\n                    new =", "if False:\n                    new =",
        ("lowering/test_gpu_fused.py::test_static_sizes[layernorm-3-1000]",),
    ),
    Mutation(
        "what stages leave overwrites what is still needed", "lowering/gpu/kernels/staging.py",
        "slot.free = stages[-1]", "slot.free = stages[0]",
        ("lowering/test_gpu_shared.py::test_a_warp_per_row",),
    ),
    Mutation(
        "rows of one block share their memory", "lowering/gpu/kernels/staging.py",
        "                if self.rows > 1:\n", "                if False:\n",
        ("lowering/test_gpu_shared.py::test_a_warp_per_row",),
    ),
    Mutation(
        "neighbouring threads meet in a bank", "lowering/gpu/kernels/staging.py",
        "        if vectors > 1:\n", "        if False:\n",
        ("lowering/test_gpu_shared.py::test_elements_of_several_sizes",),
    ),
    Mutation(
        "rows of any size are taken to fit", "lowering/gpu/kernels/rows.py",
        'Condition("below", str(need), room + 1)', 'Condition("below", str(need), 2 * room)',
        ("lowering/test_gpu_shared.py::test_rows_that_do_not_fit_are_read_again",),
    ),
    Mutation(
        "sums of halves are rounded that somebody else reads", "lowering/schedule/halves.py",
        "dtype is None or len(users) != 1 or", "dtype is None or",
        ("lowering/test_gpu_halves.py::test_what_else_reads_the_sum_gets_all_of_it",),
    ),
    Mutation(
        "products are rounded to any half", "lowering/schedule/halves.py",
        'names == [*_TO_HALF[dtype], "linalg.yield"]',
        'names[:-1] in _TO_HALF.values()',
        ("lowering/test_gpu_halves.py::test_results_are_rounded_to_what_operands_are",),
    ),
    Mutation(
        "products with a bias are gone for who else reads them", "lowering/schedule/biases.py",
        "if len(users) != 1:", "if not users:",
        ("lowering/test_gpu_biases.py::test_what_else_reads_the_product",),
    ),
    Mutation(
        "the library is given halves as a bias for floats", "lowering/schedule/biases.py",
        "or halves.dtype != product.halves", "",
        ("lowering/test_gpu_biases.py::test_a_bias_of_another_half_is_added_by_a_kernel",),
    ),
    Mutation(
        "biases with gaps are read as if they had none", "lowering/schedule/access.py",
        "tensor.dims == (1,) or offset.terms == {0: 1}", "True",
        ("lowering/test_gpu_biases.py::test_biases_of_any_layout",),
    ),
    Mutation(
        "shared memory is used again too early", "lowering/gpu/kernels/split.py",
        "if start:\n                        gpu.barrier()",
        "if False:\n                        gpu.barrier()",
        ("lowering/test_gpu_random.py::test_many_column_sums_at_once",),
    ),
    Mutation(
        "results are read before they are started", "executor/cuda/call.py",
        '        """A copy of an array on the host, counted; waits for all that makes it."""\n'
        "        self.flush()\n",
        "",
        ("executor/cuda/test_device_graphs.py::test_what_reads_results_starts_them_first",),
    ),
    Mutation(
        "graphs are replayed with old arguments", "executor/cuda/launching/graphs.py",
        "if values != known.values[index]:", "if False:",
        ("executor/cuda/test_device_graphs.py::"
         "test_the_second_run_makes_a_graph_and_later_ones_replay_it",),
    ),
    Mutation(
        "graphs let go of their kernels", "executor/cuda/launching/graphs.py",
        "self.functions = [node.function for node in nodes]", "self.functions = []",
        ("executor/cuda/test_device_graphs.py::test_graphs_hold_on_to_their_kernels",),
    ),
    Mutation(
        "streams do not wait for arguments", "executor/cuda/call.py",
        "driver().wait(index, self.stream(index), array.stream)", "pass",
        ("executor/cuda/test_device_calls.py::"
         "test_streams_wait_for_arguments_made_elsewhere",),
    ),
    Mutation(
        "an argument is returned as it is by a device", "executor/cuda/call.py",
        "id(array.owner) in inputs or ", "",
        ("executor/cuda/test_device_calls.py::test_an_argument_returned_as_it_is_is_a_copy",),
    ),
    Mutation(
        "what does not start is tried at every call", "executor/cuda/on_device.py",
        "executor.device_failure = error.what", "pass",
        ("executor/cuda/test_device_faults.py::test_what_does_not_start_is_not_tried_again",),
    ),
    Mutation(
        "guards of the host take device arrays", "dialect/guards/checks.py",
        'for field in ("device", "requires_grad")', 'for field in ("requires_grad",)',
        ("executor/cuda/test_device_guards.py::test_type_checks_compare_devices",),
    ),
    Mutation(
        "operands of products are swapped", "executor/cuda/launching/products.py",
        "right_swapped, left_swapped,\n", "left_swapped, right_swapped,\n",
        ("executor/cuda/test_device_products.py::test_values",),
    ),
    Mutation(
        "a bias is lost where the library does not add it", "executor/cuda/launching/products.py",
        "replace(product, bias=0, beta=1.0)", "replace(product, bias=0)",
        ("executor/cuda/test_device_biases.py::test_dtypes",),
    ),
    Mutation(
        "a bias is spread past the end of its product", "executor/cuda/launching/products.py",
        "more = min(filled, whole - filled)", "more = filled",
        ("executor/cuda/test_device_biases.py::test_a_bias_is_spread_by_copies_of_copies",),
    ),
    Mutation(
        "threads write their biases into one another's products",
        "executor/cuda/nvidia/cublaslt.py",
        "with plan.lock:", "if plan:",
        ("executor/cuda/test_cublaslt.py::"
         "test_threads_share_a_plan_and_keep_their_biases",),
    ),
    Mutation(
        "algorithms for aligned matrices run on any", "executor/cuda/nvidia/cublaslt.py",
        "key = (device, *product.shape, *alignments(product))",
        "key = (device, *product.shape)",
        ("executor/cuda/test_cublaslt.py::"
         "test_alignment_is_part_of_what_a_plan_is_for",),
    ),
    Mutation(
        "equal reads on both sides of a write merge", "dialect/passes/cleanup/cse.py",
        "not is_pure(op) or memory.is_touched(op)", "not is_pure(op)",
        ("dialect/importers/test_inplace.py::test_equal_reads_on_both_sides_of_a_write_differ",),
    ),
    Mutation(
        "passes are skipped where something has changed", "dialect/pipeline/run.py",
        "            self.passes.clear()", "            pass",
        ("dialect/test_idle_passes.py::test_a_pass_comes_again_once_something_has_changed",),
    ),
    Mutation(
        "a change of types is not counted", "dialect/passes/gradients/clear_undefinedness.py",
        '            self.count("types-cleared")\n', "",
        ("dialect/test_idle_passes.py::"
         "test_passes_count_what_they_change_in_our_own_tests",),
    ),
    Mutation(
        "a pass is missing from a pipeline", "dialect/pipeline/standard.py",
        "remove-list-mutation,peephole,fold", "peephole,fold",
        ("dialect/passes/test_pipelines.py::test_traces_are_the_lists_of_the_requirements",),
    ),
    Mutation(
        "the spec-keyed executor compiles the same spec again", "executor/tiers/keyed.py",
        "        self.cache[spec] = self.current = entry\n", "        self.current = entry\n",
        ("executor/tiers/test_keyed.py::test_same_spec_twice",),
    ),
    Mutation(
        "a flush recalls what is stored", "executor/tiers/profiling.py",
        "            self.options = replace(self.options, recall=False)\n", "",
        ("executor/tiers/test_warm.py::test_a_flush_forgets_what_is_stored",),
    ),
    Mutation(
        "a profile is that of any history", "executor/compile/cache/key.py",
        '            "history": history,\n', '            "history": "",\n',
        ("executor/tiers/test_warm.py::test_a_profile_of_the_same_history_only",),
    ),
    Mutation(
        "text goes into a report as it is", "tools/report/markup.py",
        "    return html.escape(text, quote=True)\n", "    return text\n",
        ("tools/test_report_escaping.py",),
    ),
    Mutation(
        "recording stays on", "executor/observe/timeline.py",
        "        setattr(cls, name, original)", "        _ = original",
        ("executor/observe/test_trace_file.py::test_calls_are_as_ever_when_nobody_records",),
    ),
    Mutation(
        "a child keeps its parent's calls", "executor/observe/timeline.py",
        "        timeline._forget()\n", "        pass\n",
        ("executor/observe/test_trace_file.py::test_a_child_inside_of_the_block_leaves_the_parents_trace_alone",),
    ),
    Mutation(
        "a log that cannot be written is tried for ever", "executor/settings/event_log.py",
        "    if not _first(_lost, where):\n        return \"\"\n", "",
        ("executor/settings/test_log.py::test_a_log_that_cannot_be_written_costs_one_warning",),
    ),
    Mutation(
        "the cache trusts what it reads", "executor/compile/cache/entry.py",
        "            if _checksum(data).hex() != checksum:\n", "            if False:\n",
        ("executor/compile/test_cache_faults.py::test_no_flipped_bit_and_no_cut_goes_unnoticed",),
    ),
    Mutation(
        "an entry appears before it is whole", "executor/compile/cache/store.py",
        "            new.write_bytes(data)\n",
        "            path.write_bytes(data)\n            new.write_bytes(data)\n",
        ("executor/compile/test_cache_faults.py::test_what_a_writer_could_not_finish_is_never_seen",),
    ),
    Mutation(
        "an edited compiler finds what it compiled before", "executor/settings/fingerprint.py",
        "        digest.update(content)\n", "",
        ("executor/compile/test_cache_key.py::test_the_digest_of_sources_depends_on_content_and_names_alone",),
    ),
    Mutation(
        "kernels that may write in place answer for others", "executor/compile/cache/key.py",
        'f"in_place={request.in_place} exact', 'f"exact',
        ("executor/compile/test_cache_key.py::test_a_miss_names_the_part_that_differs",),
    ),
    Mutation(
        "what lacks a pinned kernel is kept", "executor/compile/compiler.py",
        "result.failures[name], result.faulty = _no_kernel(pinned[name], name), True",
        "result.failures[name] = _no_kernel(pinned[name], name)",
        ("executor/compile/test_cache_key.py"
         "::test_what_lacks_a_pinned_kernel_is_not_kept_and_a_whole_result_serves",),
    ),
    Mutation(
        "a profile in a file is for any device", "executor/functions/saved/file.py",
        '"profiled_runs", "device")', '"profiled_runs")',
        ("executor/compile/test_cache_key.py::test_every_part_of_a_profiles_key",),
    ),
    Mutation(
        "the other end of a loop is taken for the least", "dialect/ir/size_algebra.py",
        "{name: 1 if factor > 0 else span}", "{name: span if factor > 0 else 1}",
        ("dialect/test_symbolic.py::test_bounds_inside_of_loops_hold_in_all_rounds",),
    ),
    Mutation(
        "what ravel copies is taken for a view", "dialect/analysis/must_alias.py",
        "any_gaps=result not in self._raveled", "any_gaps=True",
        ("dialect/importers/test_inplace.py::test_refusals_name_the_line_and_a_way_out",),
    ),
    Mutation(
        "copies of what NumPy views are not compared with it", "dialect/analysis/must_alias.py",
        "if self.aliases.of(copy) == {copy}:", "if False:",
        ("dialect/importers/test_inplace.py::test_refusals_name_the_line_and_a_way_out",),
    ),
    Mutation(
        "numbers widen arrays that a function closes over",
        "dialect/importers/numpy/handlers/axes.py",
        "if not all(isinstance(x, TracedScalar) or type(x) in NUMBERS for x in inputs):",
        "if any(isinstance(x, Traced) for x in inputs):",
        ("dialect/importers/test_numpy_ufuncs.py"
         "::test_numbers_beside_captured_arrays_stay_weakly_typed",),
    ),
    Mutation(
        "the cache evicts what was used last", "executor/compile/cache/store.py",
        "for file in reversed(files):", "for file in files:",
        ("executor/compile/test_cache_room.py::test_what_was_not_used_for_longest_is_evicted",),
    ),
    Mutation(
        "cached code is told of at its old lines", "executor/compile/cache/codec.py",
        "[Reason.from_json(data, places) for data in",
        '[Reason.from_json(data, [Loc("old", 1)] * len(places)) for data in',
        ("executor/compile/test_cache.py::test_moved_code_is_found_and_told_at_its_new_place",),
    ),
    Mutation(
        "others may put code into the cache", "executor/files.py",
        "if found.st_mode & stat.S_IWOTH:", "if False:",
        ("executor/compile/test_cache_faults.py::test_a_folder_that_others_can_write_is_refused",),
    ),
    Mutation(
        "profiling mode off makes no other executor", "executor/tiers/choice.py",
        "if not knobs.profiling_mode:", "if False:",
        ("executor/tiers/test_keyed.py::test_profiling_mode_picks_the_executor_for_good",),
    ),
    Mutation(
        "emitted guards take 0 for a symbol", "executor/dispatch/conditions/guards.py",
        '[Test(("positive", o.size(check)), 1)]', "True",
        ("executor/dispatch/test_dispatch_guards.py::test_random_guards",),
    ),
    Mutation(
        "emitted guards forget contiguity", "executor/dispatch/conditions/guards.py",
        "isinstance(o.value, MadeValue) or [o.value.is_contiguous()]", "True",
        ("executor/dispatch/test_dispatch_guards.py::test_random_guards",),
    ),
    Mutation(
        "emitted code takes any dtype", "executor/dispatch/leaf_spec.py",
        '                Test(("dtype", value.ref), dtype_word(value.dtype)),\n', "",
        ("executor/dispatch/test_dispatch_guards.py::test_random_guards",),
    ),
    Mutation(
        "a way out of emitted code keeps what it has made", "executor/dispatch/leaves/body.py",
        "            self.drop([reference])\n            w.jump", "            w.jump",
        ("executor/dispatch/test_dispatch_leaks.py::test_ways_out_leak_nothing",),
    ),
    Mutation(
        "emitted code reads tensors that require gradients", "executor/cuda/exchange/libraries.py",
        'false=("requires_grad",), ', "",
        ("executor/cuda/test_device_dispatch.py::test_what_is_no_plain_tensor_is_left_to_python",),
    ),
    Mutation(
        "emitted code reads lazily negated tensors as they lie",
        "executor/cuda/exchange/libraries.py",
        'negative=("is_neg",),', "",
        ("executor/cuda/test_device_dispatch.py::test_what_is_no_plain_tensor_is_left_to_python",),
    ),
    Mutation(
        "emitted code takes tensors of any device", "executor/dispatch/leaf_spec.py",
        '        Test(("device", ref), device_word(value.device)),\n', "",
        ("executor/cuda/test_device_dispatch.py::test_what_is_no_plain_tensor_is_left_to_python",),
    ),
    Mutation(
        "emitted code takes single elements for gaps",
        "executor/dispatch/conditions/device_reads.py",
        "or i1 {single}, {right}", "or i1 false, {right}",
        ("executor/cuda/test_device_dispatch.py::test_random_guards",),
    ),
    Mutation(
        "emitted code takes the aligned kernel always", "executor/dispatch/leaves/device_leaf.py",
        "urem i64 {inputs[subject]}, {number}", "urem i64 0, {number}",
        ("executor/cuda/test_device_dispatch.py::test_kernels_are_chosen_by_alignment",),
    ),
    Mutation(
        "emitted code launches in any context", "executor/dispatch/leaves/device_leaf.py",
        "icmp eq i64 {current}, ", "icmp ne i64 {current}, 1 ; ",
        ("executor/cuda/test_device_dispatch.py::test_a_thread_with_another_context_is_pythons",),
    ),
    Mutation(
        "emitted code overlooks launches that fail", "executor/dispatch/leaves/device_leaf.py",
        "        self.check_status(status)\n", "",
        ("executor/cuda/test_device_dispatch.py::test_a_launch_that_fails_is_pythons",),
    ),
    Mutation(
        "emitted code keeps what kernels hand to each other",
        "executor/dispatch/leaves/device_leaf.py",
        "        self.own(self.raise_unless(array, (Exception,)))\n",
        "        self.raise_unless(array, (Exception,))\n",
        ("executor/cuda/test_device_dispatch.py::test_kernels_hand_each_other_memory_that_is_let_go",
         "executor/cuda/test_device_dispatch.py::test_nothing_is_leaked"),
    ),
    Mutation(
        "what C functions say of tensors is taken on trust", "executor/cuda/exchange/libraries.py",
        "    verify(made, library, device)\n", "",
        ("executor/cuda/test_device_exchange.py"
         "::test_a_library_that_is_not_as_expected_is_read_by_python",),
    ),
    Mutation(
        "emitted relaxed guards forget the order of strides",
        "executor/dispatch/conditions/relaxed_guards.py",
        "or i1 {skipped}, {smaller}", "or i1 true, {smaller}",
        ("executor/dispatch/test_dispatch_relaxed.py::test_random_relaxed_guards",),
    ),
    Mutation(
        "emitted relaxed guards forget gaps", "executor/dispatch/conditions/relaxed_guards.py",
        "if self.order[k] in wanted:", "if False:",
        ("executor/dispatch/test_dispatch_relaxed.py::test_random_relaxed_guards",),
    ),
    Mutation(
        "emitted size checks cannot be switched off", "executor/dispatch/conditions/host_reads.py",
        "or i1 {same}, {off}", "or i1 {same}, false",
        ("executor/dispatch/test_dispatch_relaxed.py::test_size_checks_behind_relaxed_guards",),
    ),
    Mutation(
        "emitted code takes dicts of any keys", "executor/dispatch/conditions/argument_reads.py",
        '        checked.same(w.load("ptr", key), wanted.value)\n', "",
        ("executor/dispatch/test_dispatch_arguments.py::test_dicts_of_another_order_are_another_graph",),
    ),
    Mutation(
        "emitted code takes any keywords", "executor/dispatch/conditions/argument_reads.py",
        '        checked.same(w.call("PyTuple_GetItem"', '        str(w.call("PyTuple_GetItem"',
        ("executor/dispatch/test_dispatch_arguments.py::test_keywords_are_told_apart_by_name_and_order",),
    ),
    Mutation(
        "emitted code borrows what containers hold", "executor/dispatch/leaves/leaf.py",
        "        self.keep_items()\n", "",
        ("executor/dispatch/test_dispatch_arguments.py::test_items_live_until_the_call_ends",),
    ),
    Mutation(
        "emitted code reads big ints as small ones",
        "executor/dispatch/conditions/argument_reads.py",
        "and i1 {exact}, {small}", "or i1 {exact}, {small}",
        ("executor/dispatch/test_dispatch_arguments.py::test_random_baked_numbers",
         "executor/dispatch/test_dispatch_arguments.py::test_baked_numbers"),
    ),
    Mutation(
        "emitted code forgets numbers that were baked", "executor/functions/variants.py",
        "        found.tests += baked_tests(trace.guards, found.values)\n", "",
        ("executor/dispatch/test_dispatch_arguments.py::test_baked_numbers",),
    ),
    Mutation(
        "emitted code notes without gradient mode", "executor/dispatch/conditions/tape_reads.py",
        """    return w.op(f"and i64 {found}, {w.load('i64', _mode_slot(w))}")\n""",
        "    return found\n",
        ("executor/dispatch/test_dispatch_tape.py::test_without_gradient_mode_nothing_is_noted",),
    ),
    Mutation(
        "emitted code takes views for what they were", "executor/dispatch/conditions/tape_reads.py",
        "    checked.unless(w.op(f\"icmp eq ptr {known}, ", "    w.op((f\"icmp eq ptr {known}, ",
        ("executor/dispatch/test_dispatch_tape.py::test_views_are_read_where_they_belong",),
    ),
    Mutation(
        "emitted guards forget which arrays require gradients",
        "executor/dispatch/conditions/guards.py",
        "isinstance(o.value, ArrayValue) and o.value.tracked", "False",
        ("executor/dispatch/test_dispatch_tape.py::test_a_training_step_runs_in_emitted_code",),
    ),
    Mutation(
        "a node keeps arrays whose sizes alone it needs", "executor/plans/differentiable.py",
        "self.shapes_alone = gradient.shapes_alone", "self.shapes_alone = frozenset()",
        ("executor/dispatch/test_dispatch_tape.py::test_of_arrays_whose_sizes_alone_are_read_no_memory_is_kept",),
    ),
    Mutation(
        "emitted code delivers no signals", "executor/dispatch/leaves/leaf.py",
        "        self.check_signals(timed, result)\n", "",
        ("executor/dispatch/test_dispatch.py::test_keyboard_interrupt_is_delivered",),
        slow=True,
    ),
    Mutation(
        "emitted code keeps the GIL", "executor/dispatch/leaves/host_leaf.py",
        "or i1 {big}, {slow}", "and i1 {big}, false",
        ("executor/dispatch/test_dispatch_threads.py::test_long_kernels_release_the_gil",),
    ),
    Mutation(
        "emitted code outlives a flush", "executor/functions/dispatched.py",
        "        self._native = self._native_into = self._dispatcher = self._writer = None\n",
        "        self._dispatcher = None\n",
        ("executor/dispatch/test_dispatch.py::test_flush_goes_back_to_python",),
    ),
    Mutation(
        "kernels divide sizes towards zero", "lowering/emit/base.py",
        'rest = self.create("arith.remsi", self.word, self.add(rest, divisor), divisor)', "pass",
        ("executor/test_sizes.py::test_random_size_expressions_as_numbers_and_as_sizes",),
    ),
    Mutation(
        "negative sizes pass", "lowering/linalg/builder.py",
        "            self.forbid(lambda n: n < 0, self.size(size))\n", "",
        ("executor/test_sizes.py::test_a_negative_size_raises_on_every_tier",),
    ),
    Mutation(
        "loops may write less than the caller allocates", "lowering/schedule/read.py",
        "        if without_remainders(one) != without_remainders(other):", "        if False:",
        ("lowering/test_to_linalg.py::test_results_of_another_size_than_loops_write_are_refused",),
    ),
    Mutation(
        "a NaN argument takes the branch of a number",
        "dialect/importers/numpy/tracing/derivation.py",
        "if (same and exact) or", "if same or",
        ("executor/test_sizes.py::test_floats_and_large_ints_take_the_branch_that_they_take_in_python",),
    ),
    Mutation(
        "what dropped executors will count is lost", "executor/settings/events.py",
        "        self.heir = into ", "        #",
        ("executor/dispatch/test_dispatch_threads.py::test_counts_move_with_what_will_be_counted",),
    ),
    Mutation(
        "kernels get captured arrays that they cannot read", "executor/functions/graphs.py",
        "*(readable(array, self._own) for array in captured)", "*captured",
        ("executor/functions/test_captured.py::test_r1_39_layouts_and_in_place_changes",),
    ),
    Mutation(
        "a graph is reused for a captured array of another shape", "executor/functions/jit.py",
        "if variant is None or not variant.trace.holds_what_it_held():", "if variant is None:",
        ("executor/functions/test_captured.py::test_captured_arrays_that_change_shape_or_dtype",),
    ),
    Mutation(
        "emitted code takes a captured array of any shape", "executor/dispatch/arguments.py",
        "for have, want in zip(value.sizes, shape, strict=True)", "for have, want in ()",
        ("executor/functions/test_captured.py::test_captured_arrays_that_change_shape_or_dtype",),
    ),
    Mutation(
        "the quick check of a guard does not look at alignment", "executor/plans/guard.py",
        " and {o.value}.flags.aligned)", ")",
        ("executor/dispatch/test_dispatch_guards.py::"
         "test_r1_39_quick_checks_and_explanations_say_what_the_definition_says",),
    ),
    Mutation(
        "full groups are handed numbers that their ops need",
        "dialect/passes/speculate/form_fusions.py",
        "        while not self._merge_numbers():\n            self._analyse()\n", "",
        ("executor/test_group_limits.py::test_r1_48_numbers_are_in_the_group_that_computes_with_them",),
    ),
    Mutation(
        "the gradients of a quotient divide once each", "dialect/ops/elementwise/binary.py",
        "        return inverse, (inverse, y, -1)", "        return inverse, -y / b",
        ("dialect/gradients/test_compiled_gradients.py::test_a_divisor_is_inverted_once",),
    ),
    Mutation(
        "gradients on a device are made arrays of objects", "executor/functions/gradients.py",
        "    if not isinstance(gradient, DeviceTensor):\n        return np", "    return np",
        ("executor/cuda/test_device_gradients.py::test_pullbacks_take_and_give_device_arrays",),
    ),
    Mutation(
        "graphs of all ranks share a profile", "executor/compile/cache/key.py",
        '"arguments": arguments,', '"arguments": "",',
        ("executor/tiers/test_warm_ranks.py::test_saved_profiles_are_those_of_a_rank",),
    ),
    Mutation(
        "functions of main are pickled by name alone", "executor/functions/pickling.py",
        "if jitted._by_name is None or", "if True or",
        ("executor/functions/test_pickling.py::test_functions_of_main_are_pickled_by_value",),
    ),
    Mutation(
        "gradients of what was broadcast are not summed", "dialect/ir/gradients.py",
        'g if self.same_shape(g, x) else self.op("sum_to", g, x)', "g",
        ("dialect/gradients/test_rules.py::test_gradients_are_those_of_central_differences",),
    ),
    Mutation(
        "a broadcast to one more axis passes for none", "dialect/autodiff/builder.py",
        'if any(d != DYNAMIC for d in made.attrs["shape"]):', "if False:",
        ("dialect/gradients/test_operands.py"
         "::test_a_broadcast_to_more_axes_is_summed_over_them",),
    ),
    Mutation(
        "a number is divided by 0 without a word", "dialect/ops/elementwise/binary.py",
        "if not cls.python_total(known):", "if False:",
        ("executor/test_sizes.py::test_divisions_by_sizes_and_numbers_are_native",),
    ),
    Mutation(
        "multiples of what is centred sum to 0 whatever the multiples are",
        "dialect/autodiff/centred.py",
        "zero <= _constant_axes(rec, factor, zero)", "True",
        ("dialect/gradients/test_centred.py::test_gradients",),
    ),
    Mutation(
        "the gradient of a product's left operand is not transposed",
        "dialect/ops/linalg/contract.py",
        "np.matmul(g, b.conjugate(np.swapaxes(right, -1, -2)))", "np.matmul(g, b.conjugate(right))",
        ("dialect/gradients/test_rules.py::test_gradients_are_those_of_central_differences",),
    ),
    Mutation(
        "axes are permuted forwards in gradients", "dialect/ops/manipulation/permute.py",
        "np.transpose(g, tuple(map(order.index, range(len(order)))))",
        "np.transpose(g, tuple(order))",
        ("dialect/gradients/test_rules.py::test_gradients_are_those_of_central_differences",),
    ),
    Mutation(
        "gradients of a value with several readers do not add up",
        "dialect/autodiff/sweep.py",
        "found[value] = found[value] + g if value in found else g", "found[value] = g",
        ("dialect/gradients/test_functional.py",),
    ),
    Mutation(
        "gradients that rounds of a loop give are not added to those of others",
        "dialect/autodiff/loops.py",
        "result[value] = result[value] + g if value in result else g", "result[value] = g",
        ("dialect/gradients/test_flow.py",),
    ),
    Mutation(
        "a guard on the tape asks for no flag", "executor/plans/plan.py",
        "is_quick = self.is_quick and not flags", "is_quick = not flags",
        ("executor/plans/test_differentiable.py",),
    ),
    Mutation(
        "calls on the tape are specialised by profiles of others", "executor/tiers/warm_start.py",
        'f", noted on the tape {options.noted}" if options.gradients else ""', '""',
        ("executor/plans/test_differentiable.py",),
    ),
    Mutation(
        "gradients in memory of the pool are copied", "executor/memory/output_pool.py",
        "return is_ours and x.flags.c_contiguous", "return False and x.flags.c_contiguous",
        ("executor/backward/test_memory_of_gradients.py",),
    ),
    Mutation(
        "memory of the pool is an array's own whoever refers to it",
        "executor/memory/output_pool.py",
        " and sys.getrefcount(base) == _ONE", "",
        ("executor/backward/test_memory_of_gradients.py",),
    ),
    Mutation(
        "a leaf takes a gradient whoever holds it", "dialect/ops/backward.py",
        "leaf.add_gradient(g, 1)", "leaf.add_gradient(g, 9)",
        ("executor/backward/test_memory_of_gradients.py",),
    ),
    Mutation(
        "gradients behind hooks are copied", "executor/plans/plan.py",
        "if self.emit_taking(instr, depth):", "if False:",
        ("executor/backward/test_memory_of_gradients.py",),
    ),
    Mutation(
        "gathered runs have the bounds of the captured one", "executor/backward/gather.py",
        'sources += [f"b[{n}]" for', 'sources += [repr(node.plan.bounds[n]) for',
        ("executor/backward/test_slices.py",),
    ),
    Mutation(
        "bounds that change stay attributes in the graph", "executor/backward/record.py",
        "node.plan.attrs, [n is not None for n in bounds])", "node.plan.attrs, [])",
        ("executor/backward/test_slices.py",),
    ),
    Mutation(
        "bounds are no numbers of a run", "executor/backward/walk.py",
        "walk.numbers += plan.bounds", "walk.numbers += (0,) * len(plan.bounds)",
        ("executor/backward/test_slices.py",),
    ),
    Mutation(
        "frozen arguments are a matter of guards", "executor/tiers/on_tape.py",
        '"1" if is_noted(x) else "0" for x in inputs', '"1" for x in inputs',
        ("executor/plans/test_frozen_arguments.py",),
    ),
    Mutation(
        "equal halves compile each for itself", "executor/tiers/on_tape.py",
        "executor.shared[text] = found", "pass",
        ("executor/plans/test_frozen_arguments.py",),
    ),
    Mutation(
        "dropped plans take the counts of halves that others share", "executor/tiers/on_tape.py",
        "if id(member) not in kept:", "if True:",
        ("executor/plans/test_frozen_arguments.py",),
    ),
    Mutation(
        "a stored profile serves other frozen arguments", "executor/tiers/warm_start.py",
        "noted on the tape {options.noted}", "noted on the tape",
        ("executor/plans/test_frozen_arguments.py",),
    ),
    Mutation(
        "gradients of gradients stop at temporaries", "executor/plans/differentiable.py",
        "if gradient_mode() and self.inputs is not None:", "if False:",
        ("executor/plans/test_differentiable.py",),
    ),
    Mutation(
        "a sum of gradients forgets the earlier one", "dialect/autodiff/blocks.py",
        "        g = total\n", "",
        ("dialect/gradients/test_differentiate.py",),
    ),
    Mutation(
        "what a rule computes again is not kept", "dialect/autodiff/reads.py",
        "if self.reruns:", "if False:",
        ("dialect/gradients/test_host_gradients.py::test_the_tape_has_the_same_gradients",),
    ),
    Mutation(
        "rules whose sizes only a run tells are recorded", "executor/tape/straight.py",
        "if any(None in rule.rec.shape(v) for instr in rule.instrs for v in instr.results):",
        "if False:",
        ("dialect/gradients/test_host_gradients.py"
         "::test_gradients_of_the_tape_stay_as_they_are_however_often_they_run",),
    ),
    Mutation(
        "elementwise derivatives are not conjugated", "dialect/autodiff/rules.py",
        "times(conjugate(p), gs[0], multiply)", "times(p, gs[0], multiply)",
        ("dialect/gradients/test_operands.py::test_complex_numbers",),
    ),
    Mutation(
        "derivatives of complex products are not conjugated", "dialect/ops/reductions/reduce.py",
        "b.conjugate(np.where(zero, at_zero, y / others))", "np.where(zero, at_zero, y / others)",
        ("dialect/gradients/test_operands.py::test_complex_numbers",),
    ),
    Mutation(
        "norms have no gradient at 0", "dialect/importers/numpy/handlers/linalg.py",
        'op("flat_at_zero", op("sqrt", squares))', 'op("sqrt", squares)',
        ("dialect/gradients/test_operands.py::test_norms_of_zeros_have_the_gradient_0",),
    ),
    Mutation(
        "loops pass for ones that keep their sizes", "dialect/autodiff/loops.py",
        "if after not in made or not issubclass(made[after].op, Scatter):\n"
        "            return False", "if after not in made:\n            return True",
        ("dialect/gradients/test_flow.py",),
    ),
    Mutation(
        "the last segment of a loop runs on behind its end", "dialect/autodiff/loops.py",
        'left = op("minimum", length, rounds - at * length)', "left = length",
        ("dialect/gradients/test_segments.py",),
    ),
    Mutation(
        "stacks are kept that nothing reads", "dialect/autodiff/loops.py",
        "Needed(rec, [s for s in stacks if s in read]).block(apart)",
        "Needed(rec, stacks).block(apart)",
        ("dialect/gradients/test_segments.py::test_results_that_rounds_write_are_not_kept",),
    ),
    Mutation(
        "a pullback keeps results that the user may write to",
        "dialect/autodiff/pullback.py",
        'return op("copy", kept) if isinstance(rec.hints[value], TensorType) else kept',
        "return kept",
        ("dialect/gradients/test_residuals.py::test_later_writes_do_not_reach_a_pullback",),
    ),
    Mutation(
        "halves of one spec take the places of another's", "executor/tiers/keyed.py",
        'f"{len(self.cache)}/{name}": half', "name: half",
        ("executor/plans/test_tape_halves.py::test_halves_of_each_spec_stay",),
    ),
    Mutation(
        "writes that the tape notes run on plain arrays", "executor/functions/untaped.py",
        "-1 if trace.notes_writes else", "",
        ("executor/tape/test_optimizers.py::test_what_the_tape_notes_is_pythons",),
    ),
    Mutation(
        "gradients of results are lost in steps", "executor/functions/untaped.py",
        "return not (noted & self._noted and (self._asks or gradient_mode()))", "return True",
        ("executor/tape/test_optimizers.py::test_what_the_tape_notes_is_pythons",),
    ),
    Mutation(
        "the tape does not count what kernels write", "executor/functions/on_tape.py",
        "            x.wrote(place)", "            pass",
        ("executor/tape/test_optimizers.py::test_the_tape_counts_what_kernels_write",),
    ),
    Mutation(
        "arithmetic on sizes is differentiated", "dialect/passes/gradients/form_diff_graphs.py",
        "int(takes_arrays and not cls", "int(not cls",
        ("executor/plans/test_differentiable.py::test_arithmetic_on_sizes_is_no_subgraph",),
    ),
    Mutation(
        "derivatives of different gradients are one", "executor/functions/gradients.py",
        "taken = (*taken, (wrt, made.has_aux, made.with_value))", "taken = (*taken, 0)",
        ("executor/functions/test_derivatives_kept.py",),
    ),
    Mutation(
        "functions of numbers are infinite where Python raises", "executor/dispatch/number_ops.py",
        'self._leave_unless(self._w.op(f"fcmp olt double {size}', '(lambda _: None)((f"{size}',
        ("executor/dispatch/test_dispatch_numbers.py::test_errors_are_pythons",),
    ),
    Mutation(
        "quotients of ints are rounded to 0", "executor/dispatch/conditions/host_reads.py",
        "{w.op(f'sub i64 {quotient}, 1')}", "{quotient}",
        ("executor/dispatch/test_dispatch_numbers.py::test_arithmetic_of_ints_is_pythons",),
    ),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(MUTATIONS))
