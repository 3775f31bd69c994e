"""Faults in `pf.nn`, and in what it draws and writes, for `mutations`."""

from __future__ import annotations

from mutation_runner import Mutation

_NEURAL = "dialect/importers/neural"

NETWORK_MUTATIONS = (
    Mutation(
        "what a differentiated function has written to a copy stays there",
        "dialect/autodiff/derived_functions.py",
        "            write(wrap(rec, value), wrap(rec, content))\n",
        "            pass\n",
        (f"{_NEURAL}/test_running_statistics.py::test_functions_that_are_differentiated_write",),
    ),
    Mutation(
        "a view from outside of what is written is read as it was",
        "dialect/autodiff/derived_functions.py",
        "        if (root := memory_of(rec, value)) in inputs:\n",
        "        if (root := value) in inputs:\n",
        (f"{_NEURAL}/test_running_statistics.py::test_a_view_from_outside_of_what_is_written_is_refused",),
    ),
    Mutation(
        "what runs again draws anew",
        "dialect/importers/numpy/world/own_draws.py",
        "    before, _keys.again = _keys.again, iter(keys)\n",
        "    before = _keys.again\n",
        (f"{_NEURAL}/test_dropout_draws.py::test_gradients_have_the_masks_of_the_forward_run",),
    ),
    Mutation(
        "running statistics are written again where a function runs again",
        "dialect/importers/numpy/neural/normalisations.py",
        "    if not runs_again():\n",
        "    if True:\n",
        (f"{_NEURAL}/test_running_statistics.py::test_what_runs_again_writes_once",),
    ),
    Mutation(
        "blocks of random bits all begin at 0",
        "dialect/ops/nn/dropouts.py",
        "np.arange(start, start + part.size, dtype=np.uint64)",
        "np.arange(part.size, dtype=np.uint64)",
        (f"{_NEURAL}/test_dropout_draws.py::test_a11_long_arrays_are_one_sequence",),
    ),
    Mutation(
        "the last of equal elements gets the gradient of a window",
        "dialect/importers/numpy/neural/pooling.py",
        "np.where((later > first) | (later != later), later, first)",
        "np.where((later >= first) | (later != later), later, first)",
        (f"{_NEURAL}/test_neural_meaning.py::test_the_first_of_the_largest_gets_the_gradient",),
    ),
    Mutation(
        "a query that sees no key divides by zero",
        "dialect/importers/numpy/neural/attention.py",
        "    return e / np.where(total == 0, 1, total)\n",
        "    return e / total\n",
        (f"{_NEURAL}/test_neural_meaning.py::test_a_query_that_sees_no_key_has_zeros",),
    ),
    Mutation(
        "negative classes count from the end in native code",
        "dialect/importers/numpy/neural/projections.py",
        "np.where(index < 0, count, index.astype(np.int64))",
        "index.astype(np.int64)",
        (f"{_NEURAL}/test_neural_errors.py::test_classes_that_are_none_raise_in_native_code",),
    ),
    Mutation(
        "guards say nothing of sizes that are equal",
        "dialect/importers/numpy/tracing/derivation.py",
        "{leaf: by}) for own, size in self._equal.items()} | {leaf: by}\n",
        "{leaf: by}) for own, size in self._equal.items()}\n",
        (f"{_NEURAL}/test_neural_meaning.py::test_one_graph_serves_batches_of_all_sizes",),
    ),
    Mutation(
        "an output that is a reshape of its buffer is made onto an input",
        "lowering/schedule/in_place.py",
        " and tensor.dims == buffer.dims\n",
        "\n",
        ("lowering/schedule/test_merges.py::test_reshapes_of_results_are_not_made_onto_inputs",),
    ),
    Mutation(
        "linear of 16-bit floats gives what it is summed in",
        "dialect/ops/nn/weighted_ops.py",
        "        return cast(b, y if bias is None else y + bias, dtype_of(dtype))\n",
        "        return y if bias is None else y + bias\n",
        (
            f"{_NEURAL}/test_recorded_ops.py::test_products_of_16_bit_floats_are_rounded_once_in_every_tier[linear-float16-op]",
        ),
    ),
    Mutation(
        "rows with a remainder by the stride begin where the first window does",
        "dialect/ops/nn/conv_gradients.py",
        "(one.offset, extra - one.offset - one.added)",
        "(0, extra - one.added)",
        ("dialect/ops/nn/test_convolutions.py::test_gradients[4]",),
    ),
    Mutation(
        "products of a transposed convolution are added without its dilation",
        "dialect/importers/numpy/neural/transposed_filters.py",
        'created("arange", size, dtype=np.int64) * step',
        'created("arange", size, dtype=np.int64)',
        (f"{_NEURAL}/test_neural_meaning.py::test_a_transposed_convolution_is_the_gradient_of_a_convolution",),
    ),
    Mutation(
        "edges of images are not where they are interpolated from",
        "dialect/importers/numpy/neural/resampling.py",
        "(places + 0.5) * step - 0.5",
        "places * step",
        (f"{_NEURAL}/test_neural_meaning.py::test_interpolation_is_between_the_centres_of_elements",),
    ),
    Mutation(
        "what one_hot is told is not looked at",
        "dialect/importers/numpy/neural/projections.py",
        "    return (places[..., None] == classes)",
        "    return (tensor[..., None] == classes)",
        (f"{_NEURAL}/test_neural_errors.py::test_classes_that_are_none_raise_in_native_code",),
    ),
    Mutation(
        "sizes that have a common factor fit only if they are equal to the last one",
        "dialect/guards/assumed_sizes.py",
        "    sizes = without_common_factors(*sizes)\n",
        "",
        ("dialect/test_assumed_sizes.py::test_what_was_so_is_assumed",),
    ),
    Mutation(
        "a transposed panel is read in the order of the others",
        "lowering/emit/cblas.py",
        "down, along = (1, depth) if transposed else (room, 1)",
        "down, along = room, 1",
        ("lowering/schedule/test_transposed_panels.py::test_gradients_by_weights_run_in_panels",),
    ),
)
