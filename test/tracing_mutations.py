"""Faults in traces and in what they leave to Python, for `mutations`."""

from __future__ import annotations

from mutation_runner import Mutation

TRACING_MUTATIONS = (
    Mutation(
        "parts of what a kernel makes are contiguous", "executor/functions/results.py",
        "if view.root in self.inputs or view.root in self._shared:\n            return True\n",
        "if view.root in self.inputs or view.root in self._shared:\n            return True\n"
        "        return False\n",
        ("executor/functions/test_memory_of_results.py::test_results_are_those_of_python",),
    ),
    Mutation(
        "results that share memory have memory of their own", "executor/functions/results.py",
        "for root, count in Counter(roots).items() if count > 1}",
        "for root, count in Counter(roots).items() if count > 9}",
        ("executor/functions/test_memory_of_results.py::test_writes_through_results_are_seen",),
    ),
    Mutation(
        "results lie in C order", "executor/functions/layouts.py",
        "found.append(_order(sample) if is_turned else None)", "found.append(None)",
        ("executor/functions/test_memory_of_results.py::test_results_are_those_of_python",),
    ),
    Mutation(
        "emitted code serves arrays in any order", "executor/dispatch/conditions/host_reads.py",
        "    return _truth(w, fits)\n\n\n_FIELDS", "    return \"1\"\n\n\n_FIELDS",
        ("executor/functions/test_memory_of_results.py::test_one_graph_serves_all_layouts",
         "executor/functions/test_memory_of_results.py::test_results_are_those_of_python"),
    ),
    Mutation(
        "arrays do not overlap themselves", "executor/functions/write_back.py",
        "        if size > 1 and step < reach:\n            return True\n", "",
        ("executor/functions/test_memory_of_results.py::"
         "test_arrays_that_overlap_themselves_are_python_s",),
    ),
    Mutation(
        "emitted code does not ask who is told of errors", "executor/dispatch/emit.py",
        "        w.unless(tells_nothing(w), \"miss\")\n", "",
        ("executor/functions/test_float_errors.py",),
    ),
    Mutation(
        "one kind of error is asked for in emitted code", "executor/dispatch/layout.py",
        "TOLD_ERRORS = 0o6666", "TOLD_ERRORS = 0o6",
        ("executor/functions/test_float_errors.py",),
    ),
    Mutation(
        "what the last state asked for is what the next one does",
        "dialect/importers/numpy/python/float_errors.py",
        "    if state is not known:\n", "    if told is None:\n",
        ("executor/functions/test_float_errors.py",),
    ),
    Mutation(
        "a function may ask for errors by itself", "dialect/importers/numpy/tracing/recorder.py",
        "if STATE.get() is not self._float_state and", "if False and",
        ("executor/functions/test_float_errors.py::test_functions_that_ask_themselves_are_pythons",),
    ),
    Mutation(
        "texts say that a value is traced", "dialect/importers/numpy/tracing/texts.py",
        "if x.rec.runs and not _is_debugged(x.rec):", "if False:",
        ("executor/functions/test_texts.py::test_keys_made_of_text_count_calls_by_shape",),
    ),
    Mutation(
        "libraries may catch that there is no text", "dialect/importers/numpy/tracing/texts.py",
        "x.rec.refused = x.rec.refused or error", "pass",
        ("executor/functions/test_texts.py::test_what_a_library_catches_refuses_the_trace",),
    ),
    Mutation(
        "traced scalars have a length", "dialect/importers/numpy/tracing/types_seen.py",
        "return _has(x, name) if _stands_in(x) else", "return",
        ("executor/functions/test_texts.py::test_questions_about_classes",),
    ),
    Mutation(
        "NumPy's ints are operands of lists", "dialect/importers/numpy/tracing/traced.py",
        "_SEQUENCES = frozenset({str, bytes, bytearray, list, tuple})", "_SEQUENCES = frozenset()",
        ("executor/functions/test_texts.py::test_texts_of_contents_are_pythons[repeated]",),
    ),
    Mutation(
        "`is True` of a traced bool is Python's", "dialect/importers/numpy/world/identities.py",
        "if type(value) is TracedScalar and value.kind is bool:", "if False:",
        ("dialect/importers/test_identities.py::test_bools_that_loops_and_branches_set",),
    ),
    Mutation(
        "contents of plain arrays are constants", "dialect/importers/numpy/capture/state.py",
        "if may_change(value) and self._is_plain(value, self._of_themselves):", "if False:",
        ("executor/functions/test_contents.py::test_changes_in_place_are_seen",),
    ),
    Mutation(
        "contents of all arrays are compared", "dialect/importers/numpy/capture/tracer.py",
        "return itself or rec.shadows is None or not rec.shadows.has(array)", "return True",
        ("executor/functions/test_contents.py::test_arrays_that_the_graph_takes_as_inputs_may_change",),
    ),
    Mutation(
        "arguments may be what a graph holds the contents of", "executor/functions/write_back.py",
        "every = (*inputs, *trace.plain)", "every = inputs",
        ("executor/functions/test_contents.py::test_what_an_argument_writes_to_is_no_constant",),
    ),
    Mutation(
        "host functions give scalars for no axes", "dialect/importers/numpy/handlers/host.py",
        "in_memory(x) if k in made.arrays else x", "x",
        ("executor/functions/test_arrays_without_axes.py::test_types_of_results",),
    ),
    Mutation(
        "host functions give no views", "dialect/ops/host/probing.py",
        "and np.may_share_memory(x, operand)", "and False",
        ("dialect/importers/test_views_of_functions.py",),
    ),
    Mutation(
        "the order in which a dict is read is a constant",
        "dialect/importers/numpy/python/objects.py",
        "return tuple(target if type(target) is dict", "return tuple(sorted(target) if target",
        ("executor/functions/test_kept_sizes.py::test_the_order_in_which_a_dict_is_read",),
    ),
    Mutation(
        "a scalar with a view is an array", "dialect/importers/numpy/tracing/traced.py",
        "and (base.ndim or not is_immutable(base))", "",
        ("executor/functions/test_arrays_without_axes.py::test_types_of_results",),
    ),
    Mutation(
        "settings of modules are constants", "dialect/importers/numpy/capture/state.py",
        "self._settings(value, name)", "pass",
        ("executor/functions/test_settings_of_packages.py::test_changes_are_seen",),
    ),
    Mutation(
        "traced sizes stay keys of dicts", "dialect/importers/numpy/tracing/containers.py",
        "return key.bake() if issubclass(kind, Recording) else key", "return key",
        ("executor/functions/test_kept_sizes.py::test_as_in_python",),
    ),
    Mutation(
        "an ordered dict is read as any dict", "dialect/importers/numpy/python/instances.py",
        "return OrderedDict if isinstance(table, OrderedDict) else dict", "return dict",
        ("executor/functions/test_kept_sizes.py::"
         "test_ordered_dicts_of_another_order_than_that_of_insertion",),
    ),
    Mutation(
        "the order of attributes is no effect", "dialect/importers/numpy/world/stores.py",
        "self.facet not in (TABLE, ATTRIBUTES)", "self.facet is not TABLE",
        ("executor/functions/test_state_writes.py::"
         "test_the_order_of_attributes_is_that_of_python",),
    ),
    Mutation(
        "dicts among the arguments have no attributes", "dialect/importers/numpy/world/given.py",
        "for facet in facets_of(type(made))]", "for facet in facets_of(type(made))[:1]]",
        ("executor/functions/test_argument_writes.py::"
         "test_attributes_of_dicts_and_the_order_of_attributes",),
    ),
    Mutation(
        "the order of a dict is no effect", "dialect/importers/numpy/world/stores.py",
        "        return self.keeps_order(found)\n", "        return True\n",
        ("executor/functions/test_kept_sizes.py::test_as_in_python",),
    ),
    Mutation(
        "names that code makes up are not looked for", "dialect/importers/numpy/capture/state.py",
        "makes_names=any(map(_makes_names, codes))", "makes_names=False",
        ("executor/functions/test_names_made_up.py::test_new_values_are_seen",),
    ),
    Mutation(
        "equal objects share a graph", "dialect/importers/numpy/tracing/static_objects.py",
        "self.value is other.value", "self.value == other.value",
        ("executor/functions/test_equal_objects.py::test_equal_objects_with_other_attributes",),
        ((
            "dialect/importers/numpy/tracing/static_objects.py",
            "return id(self.value)", "return hash(type(self.value))",
        ),),
    ),
    Mutation(
        "attributes of objects of packages are constants",
        "dialect/importers/numpy/capture/state.py",
        "self._attributes(value, vars(value), name, every=every)", "pass",
        ("executor/functions/test_objects_of_packages.py::test_attributes_that_are_replaced",),
    ),
    Mutation(
        "objects of packages keep what a trace assigns", "dialect/importers/numpy/world/journal.py",
        "[k for k in changed if k in names or holds_tracer(found[k])]", "[]",
        ("executor/functions/test_objects_of_packages.py::test_attributes_that_are_assigned",),
    ),
    Mutation(
        "objects of C's classes have no attributes", "dialect/importers/numpy/capture/state.py",
        "self._attributes(value, attributes_of(value) or (), name)", "pass",
        ("executor/functions/test_kinds_of_objects.py::test_attributes_are_compared",),
    ),
    Mutation(
        "containers of the user's have no attributes", "dialect/importers/numpy/world/journal.py",
        "            if not is_packages or facet not in STATE:\n",
        "            if facet not in STATE or facets[0] in STATE:\n",
        ("executor/functions/test_kinds_of_objects.py::test_attributes_are_assigned",),
    ),
    Mutation(
        "records are numbers", "dialect/importers/numpy/world/journal.py",
        "(np.generic, Recording)) and kind is not np.void", "(np.generic, Recording))",
        ("executor/functions/test_kinds_of_objects.py::test_records_are_written_at_each_call",),
    ),
    Mutation(
        "what makes missing items is a constant", "dialect/importers/numpy/python/objects.py",
        "defaultdict: (TABLE, FIELDS)", "defaultdict: (TABLE,)",
        ("executor/functions/test_kinds_of_objects.py::test_what_makes_missing_items_is_compared",),
    ),
    Mutation(
        "functions that a trace makes leave it", "dialect/importers/numpy/world/journal.py",
        "if kind is types.FunctionType and type(value.__globals__) is not dict:", "if False:",
        ("executor/functions/test_kinds_of_objects.py::"
         "test_functions_that_are_stored_are_the_users_own",),
    ),
    Mutation(
        "copies of functions are stored", "dialect/importers/numpy/capture/scope.py",
        "            self._rec.shadows.stands_for(made, fn)\n", "            pass\n",
        ("executor/functions/test_kinds_of_objects.py::"
         "test_functions_that_are_stored_are_the_users_own",),
    ),
    Mutation(
        "rounds may change objects of packages", "dialect/importers/numpy/source/snapshot.py",
        "self._rec, self.codes = rec, rec.journal.codes", "self._rec = rec",
        ("executor/functions/test_kinds_of_objects.py::"
         "test_rounds_that_change_objects_of_packages",),
    ),
    Mutation(
        "draws of trials that are given up happen", "dialect/importers/numpy/tracing/recorder.py",
        "        del self.draws.made[mark.draws :]\n", "",
        ("executor/loops/test_draws_in_loops.py::test_short_loops_in_a_round_draw_as_often_as_they_are_long",),
    ),
    Mutation(
        "rounds that a break leaves out draw", "dialect/importers/numpy/source/loops.py",
        "return self.site.stop is None and self._period == 1", "return self._period == 1",
        ("executor/loops/test_draws_in_loops.py::test_other_draws_are_pythons",),
    ),
    Mutation(
        "a round draws once", "dialect/importers/numpy/world/round_draws.py",
        "        inner.draws_again(key, draws.count)\n", "",
        ("executor/loops/test_draws_in_loops.py::test_bit_generators",),
    ),
    Mutation(
        "what others have drawn since is drawn again", "executor/functions/jit.py",
        "            if drawing is None or drawing.undo():\n                raise\n",
        "            raise\n",
        ("executor/loops/test_loops_in_python.py::"
         "test_where_others_have_drawn_since_the_graph_goes_on",),
    ),
    Mutation(
        "each number of an index is traced", "executor/functions/in_vain.py",
        "in_vain = all(v.trace.guards and not _serves(v) for v in latest)", "in_vain = False",
        ("executor/functions/test_traces_in_vain.py::test_graphs_for_single_numbers_end",),
    ),
    Mutation(
        "calls that Python runs meanwhile count for no graph", "executor/functions/jit.py",
        "            variant.executor.counters.calls += 1\n            return self._leave(",
        "            self._own.calls += 1\n            return self._leave(",
        ("executor/functions/test_in_python.py::"
         "test_calls_that_python_runs_meanwhile_count_for_the_graph",),
    ),
    Mutation(
        "calls run op by op while code is under way", "executor/functions/variants.py",
        'return executor.is_recorded and executor.plan().kind == "compiling"', "return False",
        ("executor/functions/test_in_python.py::"
         "test_python_runs_graphs_until_there_is_code",),
    ),
    Mutation(
        "new texts are traced each time", "executor/functions/in_vain.py",
        "        return [k for k, x in enumerate(held[:least])",
        "        return [k for k, x in enumerate(held[:0])",
        ("executor/functions/test_python_looks.py::"
         "test_objects_and_texts_that_are_new_each_time_are_looked_at_no_more",),
    ),
    Mutation(
        "calls of unsupported arrays are refused anew", "executor/functions/jit.py",
        "        raise Refused(refused, by=self._in_python.by_kinds)\n",
        "        raise Refused(refused)\n",
        ("executor/functions/test_python_looks.py::"
         "test_arguments_that_no_graph_takes_are_refused_once",),
    ),
    Mutation(
        "looks do not get rare", "executor/arguments/plain_calls.py",
        "if self._grows else 0", "if False else 0",
        ("executor/functions/test_python_looks.py::test_looks_get_rare",),
    ),
    Mutation(
        "what is Python's stays so where errors are asked for", "executor/functions/graphs.py",
        'for _name in ("demote", "unsupported"):', 'for _name in ("demote",):',
        ("executor/functions/test_python_looks.py::"
         "test_a_knob_that_changes_has_calls_looked_at",),
    ),
    Mutation(
        "levels of a recursion are traced for each above them", "executor/functions/jit.py",
        "if self._traced_by == get_ident() or any(", "if any(",
        ("executor/functions/test_recursion.py::test_no_level_is_traced_for_each_above_it",),
    ),
    Mutation(
        "the limit of frames stays", "executor/functions/recursion.py",
        "            sys.setrecursionlimit(_limits[0] * _FRAMES)\n", "",
        ("executor/functions/test_recursion.py::test_a_depth_that_only_python_reaches",),
    ),
    Mutation(
        "both sides of a branch have the same statements behind it",
        "dialect/importers/numpy/source/jumps.py", "(node.orelse, copy.deepcopy(rest))",
        "(node.orelse, rest)",
        ("dialect/importers/test_source_convert.py::test_jumps_on_some_paths_of_a_branch",),
    ),
    Mutation(
        "kernels of loops are measured against whole evaluations",
        "executor/compile/proof/measure.py",
        "            limit.seconds = kernel / _KEPT[0]\n", "            pass\n",
        ("executor/compile/test_demotion.py::"
         "test_loops_of_an_evaluation_end_once_the_kernel_is_much_faster",),
    ),
    Mutation(
        "the first graph is for all ints", "executor/functions/graphs.py",
        "fixes_sizes=fixes_sizes and not raises", "fixes_sizes=False",
        ("executor/functions/test_fixed_sizes.py::test_the_first_graph_is_for_one_number",),
    ),
    Mutation(
        "ints that calls assign are constants", "dialect/importers/numpy/capture/tracer.py",
        "            self.fixable, self.fixed = 0, {}\n            return True\n",
        "            pass\n",
        ("executor/functions/test_fixed_sizes.py::test_numbers_that_calls_assign_are_inputs",),
    ),
    Mutation(
        "results without axes are scalars", "dialect/importers/numpy/capture/tracer.py",
        "isinstance(x, np.ndarray) and not x.ndim for x in leaves", "False for x in leaves",
        ("executor/functions/test_arrays_without_axes.py::test_types_of_results",),
    ),
    Mutation(
        "functions that are not pure are called", "dialect/importers/numpy/capture/watching.py",
        "            if purity.is_pure_call(arg):", "            if True:",
        ("executor/functions/test_watching.py::test_the_outside_is_asked_at_each_call",),
    ),
    Mutation(
        "code that Python calls reads constants", "dialect/importers/numpy/capture/watching.py",
        "(value, name)\n        self.reads.append(StateRead(place, value))\n", "(value, name)\n",
        ("executor/functions/test_watching.py::test_code_that_python_calls",),
    ),
    Mutation(
        "code that Python calls reads what others have written",
        "dialect/importers/numpy/capture/watching.py",
        "        if not self._unshadowed:\n            return\n", "        return\n",
        ("executor/functions/test_watching.py::test_effects_of_code_that_python_calls",),
    ),
    Mutation(
        "methods that are held have no object", "dialect/importers/numpy/world/shadows.py",
        "return Shadows._code if bound_to(value) is None else Shadows._bound", "return None",
        ("executor/functions/test_watching.py::test_methods_that_are_held",),
    ),
    Mutation(
        "iterators are advanced by traces", "dialect/importers/numpy/world/shadows.py",
        "            return Shadows._hidden\n", "            return None\n",
        ("executor/functions/test_watching.py::test_the_outside_is_asked_at_each_call",),
    ),
    Mutation(
        "code of functions is constant", "dialect/importers/numpy/capture/state.py",
        'self.reads.append(Place(FIELDS, function, "__code__", name).read())', "pass",
        ("executor/functions/test_watching.py::test_bindings",),
    ),
    Mutation(
        "methods that are stored are told by their functions",
        "dialect/importers/numpy/world/places.py",
        " and found.__self__ is value.__self__", "",
        ("executor/functions/test_state_reads.py::test_methods_of_other_objects",),
        ((
            "executor/dispatch/conditions/state_reads.py",
            "wanted = [held.value.__func__, held.value.__self__]",
            "wanted = [held.value.__func__, method]",
        ),),
    ),
    Mutation(
        "items and attributes of one name are one place", "dialect/importers/numpy/world/places.py",
        "return self.facet.step, id(self.holder), self.key", "return 0, id(self.holder), self.key",
        ("executor/loops/test_carried_places.py::test_items_and_attributes_of_one_name",),
    ),
    Mutation(
        "dispatchers keep the modules of what they call", "executor/dispatch/counts.py",
        "        self._launches = len(leaf.steps)", "        self._launches = len(leaf.steps)\n"
        "        self._leaf = leaf",
        ("executor/functions/test_watching.py::test_functions_are_freed_with_their_modules",),
    ),
    Mutation(
        "lengths are those that their parts come from", "lowering/emit/lengths.py",
        '_CHAIN = ("arith.truncf",', '_CHAIN = ("arith.addf", "arith.truncf",',
        ("executor/loops/test_rounds_of_elements.py::"
         "test_lengths_of_what_lengths_have_chosen",),
    ),
    Mutation(
        "loops with larger steps are split", "lowering/emit/split.py",
        "if is_split and literal(op.operands[2]) == 1:", "if is_split:",
        ("lowering/test_split.py::"
         "test_loops_that_read_several_rows_at_once_are_not_split",),
    ),
    Mutation(
        "functions in objects are others than those with names",
        "dialect/importers/numpy/capture/scope.py",
        "        if id(fn) in self._taken:\n            return self.function(fn)\n", "",
        ("executor/functions/test_functions_in_objects.py",),
    ),
    Mutation(
        "functions in classes are not compared with those with names",
        "dialect/importers/numpy/capture/scope.py",
        "        if id(value) in self._taken or is_of_module:", "        if False:",
        ("executor/functions/test_functions_in_objects.py::test_identities",),
    ),
    Mutation(
        "C functions in tuples are called once", "dialect/importers/numpy/capture/state.py",
        "                if not self._is_given(value):\n                    self._check(part)\n",
        "",
        ("executor/functions/test_functions_in_objects.py::test_c_functions_that_objects_hold",),
    ),
    Mutation(
        "what decorators of packages keep is constant", "dialect/importers/numpy/capture/state.py",
        "if function.__closure__ and function.__code__ in self._watched:", "if False:",
        ("executor/functions/test_kept_by_packages.py",),
    ),
    Mutation(
        "descriptors of packages are constant", "dialect/importers/numpy/capture/state.py",
        "                self._descriptor(holder, key, name)", "                pass",
        ("executor/functions/test_kept_by_packages.py::test_methods_that_dispatch_by_class",),
    ),
    Mutation(
        "patterns name no attributes", "dialect/importers/numpy/capture/state.py",
        "        if self._matches:", "        if False:",
        ("executor/functions/test_kept_by_packages.py"
         "::test_patterns_name_attributes_by_their_place",),
    ),
    Mutation(
        "registered classes are constant", "dialect/importers/numpy/capture/watching.py",
        "            if arg in _ASK_REGISTRY:", "            if False:",
        ("executor/functions/test_kept_by_packages.py::test_classes_that_are_registered",),
    ),
    Mutation(
        "answers that are kept are constant", "dialect/importers/numpy/capture/scope.py",
        "        yield from self._answers\n", "",
        ("executor/functions/test_kept_by_packages.py::test_results_that_are_kept",),
    ),
    Mutation(
        "objects of packages are written to once", "dialect/importers/numpy/world/journal.py",
        "for k, v in held.items() if issubclass(type(v), _MUTABLE)]",
        "for k, v in held.items() if type(v) is np.ndarray]",
        ("executor/functions/test_kept_by_packages.py::test_effects_of_code_of_packages",),
    ),
    Mutation(
        "emitted code gives what stands for objects", "executor/dispatch/leaves/leaf.py",
        "w.object(static_of(spec))", "w.object(spec[2])",
        ("executor/functions/test_functions_in_objects.py"
         "::test_results_are_the_objects_themselves",),
    ),
    Mutation(
        "keys of dicts are what stands for objects", "dialect/importers/numpy/world/shadows.py",
        "return self.original(plain_key(key))", "return plain_key(key)",
        ("executor/functions/test_functions_in_objects.py"
         "::test_keys_are_the_objects_themselves",),
    ),
)  # fmt: skip
