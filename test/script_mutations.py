"""Faults of the import of TorchScript."""

from mutation_runner import Mutation

_TESTS = "dialect/importers/foreign/torchscript/test_script_graphs.py::"

SCRIPT_MUTATIONS = (
    Mutation(
        "numbers of scripts are divided as in Python",
        "dialect/importers/foreign/torchscript/c_numbers.py",
        "    return b == 0\n",
        "    return False\n",
        ("peers/test_torchscript_values.py::test_numbers_are_infinite_where_python_raises",),
        slow=True,
    ),
    Mutation(
        "floats of scripts are divided exactly before they are rounded down",
        "dialect/importers/foreign/torchscript/c_numbers.py",
        "    number = a / b\n",
        "    return a // b\n",
        ("peers/test_torchscript_values.py::test_numbers_are_infinite_where_python_raises",),
        slow=True,
    ),
    Mutation(
        "numbers that only a run tells are Python's in scripts",
        "dialect/importers/foreign/torchscript/c_numbers.py",
        "    if _is_open(*numbers):\n",
        "    if False:\n",
        ("peers/test_torchscript_values.py::test_numbers_of_contents_are_infinite_where_python_raises",),
        slow=True,
    ),
    Mutation(
        "a text ends before its last letter",
        "dialect/importers/foreign/torchscript/text_operators.py",
        "last + len(text) + 1 if last < 0 else last",
        "last",
        ("peers/test_torchscript_values.py::test_values_of_python",),
    ),
    Mutation(
        "elements under a mask that are written are of another mask",
        "dialect/importers/numpy/handlers/masks.py",
        "if self.viewed or self._elements is not None or type(value) is not Masked:",
        "if True:",
        ("peers/test_torchscript_values.py::test_writes_under_a_mask",),
    ),
    Mutation(
        "a branch does not know that it is taken",
        "dialect/importers/foreign/interpreter.py",
        "self._values.update(dict.fromkeys(numbers, known))",
        "pass",
        (
            "peers/test_torchscript.py::test_what_follows_a_branch_is_recorded_for_each_way_where_these_have_no_value_in_common",
        ),
    ),
    Mutation(
        "what is computed of parameters alone is computed once",
        "dialect/importers/foreign/torchscript/script_function.py",
        "    are_changed = True",
        "    are_changed = False",
        ("peers/test_torchscript.py::test_what_is_computed_of_parameters_alone_follows_them",),
    ),
    Mutation(
        "a model's exception voids the runs that raise none",
        "dialect/importers/foreign/torchscript/script_branches.py",
        'holds = op("logical_not", condition) if number == 0 else condition',
        'holds = op("logical_not", condition) if number != 0 else condition',
        (_TESTS + "test_exceptions_of_models_make_runs_void",),
    ),
    Mutation(
        "rounds of a loop that may be left are numbered by twos",
        "dialect/importers/foreign/torchscript/script_loops.py",
        "return index + 1, wrap(",
        "return index + 2, wrap(",
        (_TESTS + "test_functions_are_left_in_loops",),
    ),
    Mutation(
        "a recorded branch appends to a list from outside",
        "dialect/importers/foreign/torchscript/script_containers.py",
        "return rec is None or rec.blocks[-1] is self._home",
        "return True",
        (_TESTS + "test_what_no_graph_holds_is_refused",),
    ),
    Mutation(
        "a loop within the loop that a list grows in takes the list for its own",
        "dialect/importers/foreign/torchscript/script_loops.py",
        "error.grown.growing is not None or not error.grown.is_of(self.rec.blocks[self.depth - 1])",
        "error.grown.growing is not None",
        (_TESTS + "test_lists_grow_in_loops_within_loops",),
    ),
    Mutation(
        "structures of branches that differ are taken for one",
        "dialect/importers/foreign/torchscript/carried_structures.py",
        "if all(map(is_leaf, valued)) and valued:",
        "if any(map(is_leaf, valued)) and valued:",
        (_TESTS + "test_what_no_graph_holds_is_refused",),
    ),
    Mutation(
        "numbers of dtypes are those of their neighbours",
        "dialect/importers/foreign/torch_values.py",
        "for code, name in enumerate(_NAMES) if name",
        "for code, name in enumerate(_NAMES, 1) if name",
        (_TESTS + "test_numbers_of_dtypes",),
    ),
    Mutation(
        "elements of vectors are numbers, to which nobody can write",
        "dialect/importers/foreign/torchscript/tensor_queries.py",
        "return value[..., index] if value.ndim == 1 else",
        "return value[index] if value.ndim == 1 else",
        (_TESTS + "test_elements_of_vectors_are_views_that_are_written",),
    ),
    Mutation(
        "operators that make new tensors give NumPy's views",
        "dialect/importers/foreign/torchscript/script_table.py",
        "results = _apart(results, operands)",
        "results = results",
        (_TESTS + "test_operators_that_make_new_tensors_give_no_views",),
    ),
    Mutation(
        "results of scripts have memory of their own",
        "dialect/importers/foreign/torchscript/script_function.py",
        "shares_memory = True",
        "shares_memory = False",
        (_TESTS + "test_results_share_memory_as_those_of_torch",),
    ),
    Mutation(
        "a tensor that may be another one is taken for a new one",
        "dialect/importers/foreign/torchscript/script_table.py",
        "context.interpreter.distinct[id(results)] = None",
        "context.interpreter.distinct[id(results)] = results",
        (_TESTS + "test_identity_is_kept_of_arguments_and_of_new_tensors",),
    ),
)
