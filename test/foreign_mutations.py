"""Faults of the importers of foreign graphs."""

from mutation_runner import Mutation

_STABLEHLO = "dialect/importers/foreign/stablehlo"
_TEXT = f"{_STABLEHLO}/test_stablehlo_text.py"

FOREIGN_MUTATIONS = (
    Mutation(
        "sizes that arrays of narrow integers hold are guarded as if they did not wrap round",
        "dialect/importers/numpy/tracing/derivation.py",
        "elif value in rec.known and instr is not None and rec.dtype(value) == _WIDE:",
        "elif value in rec.known and instr is not None:",
        ("executor/test_sizes.py::test_numbers_in_narrow_arrays_wrap_round",),
    ),
    Mutation(
        "guards of sizes in arrays are left to Python",
        "dialect/importers/numpy/tracing/derivation.py",
        "return expr if integer is None else integer",
        "return expr",
        ("executor/test_sizes.py::test_guards_of_sizes_in_arrays_are_compared_in_emitted_code",),
    ),
    Mutation(
        "sizes in tensors are divided as if they may be negative",
        "dialect/importers/foreign/aten/tensors/binary_operators.py",
        " or (never_negative(a) and never_negative(b))",
        "",
        (
            "dialect/importers/foreign/torchscript/test_script_graphs.py"
            "::test_sizes_that_tensors_hold_are_compared_in_emitted_code",
        ),
    ),
    Mutation(
        "a graph that fails leaves its levels of torch.func",
        "dialect/importers/foreign/fx/torch_state.py",
        "            _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)\n",
        "            pass\n",
        ("peers/test_torch_transforms.py::test_a_graph_that_cannot_be_exported_leaves_the_state_of_torch",),
        slow=True,
    ),
    Mutation(
        "a graph that fails forbids hooks from then on",
        "dialect/importers/foreign/fx/torch_state.py",
        "            _autograd._saved_tensors_hooks_enable()\n",
        "            pass\n",
        ("peers/test_torch_transforms.py::test_an_error_within_a_transform_leaves_the_state_of_torch",),
        slow=True,
    ),
    Mutation(
        "transforms of torch are left to torch where nothing is differentiated",
        "dialect/importers/foreign/fx/gradient_stops.py",
        "return function is torch.Tensor.detach_ or _functorch.get_dynamic_layer_stack_depth() > 0",
        "return False",
        ("peers/test_torch_transforms.py::test_transforms_are_parts_of_the_graph",),
        slow=True,
    ),
    Mutation(
        "numbers that a graph of Dynamo reads are those of the first call",
        "executor/torch/dynamo_backend.py",
        "numbers = tuple([kept_value(inputs[k].item()) for k in self._read.values()])",
        "numbers = tuple([0 for k in self._read.values()])",
        ("peers/test_torch_dynamo.py::test_graphs_hold_numbers_of_python",),
    ),
    Mutation(
        "graphs of Dynamo that torch runs are not counted",
        "executor/torch/dynamo_backend.py",
        '        self._runs.counters["torch_calls"] += 1\n',
        "",
        ("peers/test_torch_dynamo.py::test_graphs_that_torch_runs_are_counted",),
    ),
    Mutation(
        "a foreign graph's constants are copied when it is made",
        "dialect/importers/foreign/interpreter.py",
        "self._values: dict[int, Any] = {} if are_changed else dict(graph.constants)",
        "self._values: dict[int, Any] = {k: x.copy() for k, x in graph.constants.items()}",
        ("dialect/importers/foreign/test_foreign_graphs.py::test_a_graph_is_a_function_in_all_tiers",),
    ),
    Mutation(
        "a window that reaches outside is moved inside by a scatter, too",
        f"{_STABLEHLO}/hlo_indexing.py",
        "            new = np.where(is_inside, new, old)\n",
        "            pass\n",
        (f"{_TEXT}::test_one_window_is_combined_in_or_left_out",),
    ),
    Mutation(
        "what is added outside makes zeros of another sign",
        f"{_STABLEHLO}/hlo_indexing.py",
        "np.negative(np.zeros((), dtype))",
        "np.zeros((), dtype)",
        (f"{_TEXT}::test_zeros_keep_their_sign_where_nothing_is_added",),
    ),
    Mutation(
        "rounds that update places of arrays go through all elements",
        "lowering/linalg/loop_builder.py",
        "        return update_in_rounds(self, combine, x, value, places, start)\n",
        "        return super().update_at(combine, x, value, places, start)\n",
        (f"{_TEXT}::test_rows_that_rounds_replace_stay_where_they_are",),
    ),
    Mutation(
        "arguments of a foreign graph may have any size",
        "dialect/importers/foreign/foreign_arguments.py",
        "if wanted is not None and x.shape[axis] != wanted:",
        "if wanted is None and x.shape[axis] != wanted:",
        (f"{_TEXT}::test_arguments_are_checked",),
    ),
    Mutation(
        "a table has its base's handlers first",
        "dialect/importers/foreign/operator_table.py",
        "        own = self._own(name)\n",
        "        own = self._base.find(name) if self._base else self._own(name)\n",
        ("dialect/importers/foreign/test_foreign_graphs.py::test_a_table_extends_another",),
    ),
    Mutation(
        "what becomes an input of a foreign graph stays a constant",
        "dialect/importers/foreign/foreign_graph.py",
        " for number, array in self.constants.items() if number not in numbers}",
        " for number, array in self.constants.items()}",
        ("dialect/importers/foreign/test_foreign_graphs.py::test_constants_become_inputs_and_inputs_constants",),
    ),
    Mutation(
        "kernels of a transposed convolution are not turned",
        "dialect/importers/foreign/window_axes.py",
        "    return np.flip(kernels, tuple(range(2, 2 + len(sizes))))\n",
        "    return kernels\n",
        ("dialect/importers/foreign/onnx/test_onnx_operators.py::test_convolutions_with_uneven_padding",),
    ),
    Mutation(
        "the start value of a reduction is left out",
        f"{_STABLEHLO}/hlo_reductions.py",
        'if init.dtype.kind in "iuf" and init == neutral:',
        'if init.dtype.kind in "iuf":',
        (f"{_TEXT}::test_reductions",),
    ),
    Mutation(
        "a region of any op is a sum",
        f"{_STABLEHLO}/hlo_reductions.py",
        "return name if name in _COMBINED and gives and takes == set(block.inputs) else None",
        'return name if name in _COMBINED else "add"',
        (f"{_TEXT}::test_reductions",),
    ),
    Mutation(
        "gathers outside of an array are not moved inside",
        f"{_STABLEHLO}/hlo_indexing.py",
        "np.clip(starts[..., 0].astype(_WIDE), 0, x.shape[axis] - 1)",
        "starts[..., 0].astype(_WIDE)",
        (f"{_TEXT}::test_gather_and_scatter",),
    ),
    Mutation(
        "floats beyond an integer wrap around",
        f"{_STABLEHLO}/hlo_elementwise.py",
        "return np.where(above, np.asarray(info.max, dtype), limits)",
        "return limits",
        (f"{_TEXT}::test_conversions_and_bits",),
    ),
    Mutation(
        "a loop that counts is a while loop",
        f"{_STABLEHLO}/hlo_control.py",
        "return (number, right) if _steps_by_one(body, number) else None",
        "return None",
        (f"{_TEXT}::test_a_counting_loop_is_one",),
    ),
    Mutation(
        "bits of floats are other ones",
        "lowering/linalg/bit_patterns.py",
        "pattern = bits(x) if x.dtype.is_float else x",
        "pattern = bits(x) + 1 if x.dtype.is_float else x",
        (f"{_TEXT}::test_conversions_and_bits",),
    ),
)
