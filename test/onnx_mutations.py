"""Faults of the import of ONNX models."""

from mutation_runner import Mutation

_TESTS = "dialect/importers/foreign/onnx/test_onnx_operators.py"

ONNX_MUTATIONS = (
    Mutation(
        "integers of ONNX divide as NumPy's",
        "dialect/importers/foreign/onnx/tensors/onnx_elementwise.py",
        "return q + inexact.astype(q.dtype)",
        "return q",
        (f"{_TESTS}::test_integers_divide_to_zero",),
    ),
    Mutation(
        "sizes of ONNX models become arrays",
        "dialect/importers/foreign/onnx/onnx_table.py",
        "vectors = all_sizes(operands) if sizes is not None else None",
        "vectors = None",
        (f"{_TESTS}::test_branches_are_chosen_by_sizes_or_at_run_time",),
    ),
    Mutation(
        "padding of windows is the same on both sides",
        "dialect/importers/foreign/onnx/layers/window_geometry.py",
        "(pads[k], pads[k + count]) if",
        "(pads[k], pads[k]) if",
        (f"{_TESTS}::test_convolutions_with_uneven_padding",),
    ),
    Mutation(
        "models take floats of another width",
        "dialect/importers/foreign/foreign_arguments.py",
        "if dtype is not None and x.dtype != dtype:",
        "if dtype is not None and x.dtype.kind != dtype.kind:",
        (f"{_TESTS}::test_arguments_are_checked",),
    ),
    Mutation(
        "what stays behind a transposed convolution does not depend on the padding",
        "dialect/importers/foreign/onnx/layers/onnx_windows.py",
        "cut.append((before, extra[k] + before - behind))",
        "cut.append((before, extra[k]))",
        (f"{_TESTS}::test_transposed_convolutions_with_strides",),
    ),
    Mutation(
        "bounds of slices are left out before any axis ends",
        "dialect/ops/indexing/slicing.py",
        "return start <= -farthest, stop >= farthest",
        "return start <= -farthest, stop >= 2",
        ("dialect/ops/test_structural.py::test_bounds_that_no_axis_reaches",),
    ),
    Mutation(
        "text of StableHLO is looked for in the beginning of a file alone",
        "executor/functions/foreign_files.py",
        "head += file.read()",
        "head += b''",
        ("executor/functions/test_kinds_of_files.py::test_text_of_stablehlo_behind_a_long_head",),
    ),
    Mutation(
        "compiled guards of a trace are not asked",
        "dialect/importers/numpy/tracing/quick_guards.py",
        "not self.sizes_fit(leaves)",
        "self.sizes_fit(leaves) is None",
        ("dialect/importers/tracing/test_quick_guards.py::test_all_guards_have_to_hold",),
    ),
    Mutation(
        "the maximum of nothing is zero",
        "dialect/importers/foreign/onnx/tensors/onnx_reductions.py",
        "neutral = -np.inf if largest else np.inf",
        "neutral = 0.0",
        (f"{_TESTS}::test_reductions_of_nothing_are_neutral",),
    ),
    Mutation(
        "scans of many steps gather zeros",
        "dialect/importers/foreign/time_steps.py",
        "return new, tuple(_with(stack, number, y) for",
        "return new, tuple(_with(stack, number, y * 0) for",
        (f"{_TESTS}::test_scans_carry_states_and_gather_outputs",),
    ),
    Mutation(
        "weights that are given are not taken",
        "dialect/importers/foreign/imported_function.py",
        "if value is None and name in graph.defaults else value",
        "if name in graph.defaults else value",
        ("peers/test_onnx_models.py::test_weights_that_are_inputs_may_be_given",),
    ),
    Mutation(
        "functions of older operators are not inlined",
        "dialect/importers/foreign/onnx/model_reader.py",
        "            entry.version = version",
        "            pass",
        ("peers/test_onnx_models.py::test_functions_of_older_operators_are_inlined_in_branches",),
    ),
    Mutation(
        "boxes that overlap a better one stay",
        "dialect/importers/foreign/onnx/layers/onnx_detection.py",
        "dropped = item_of(overlaps, (images, best)) | (numbers == best[..., None])",
        "dropped = numbers == best[..., None]",
        ("dialect/importers/foreign/onnx/test_onnx_detection.py::test_boxes_that_overlap_none_before",),
    ),
    Mutation(
        "the class of support vectors is the most probable one",
        "dialect/importers/foreign/onnx/layers/onnx_support_vectors.py",
        "np.argmax(votes, axis=1)",
        "np.argmax(chances, axis=1)",
        ("peers/test_onnx_models.py::test_support_vectors_of_scikit_learn",),
    ),
    Mutation(
        "no rows are exchanged in a factorisation",
        "dialect/importers/foreign/triangles.py",
        "a = np.take_along_axis(a, np.broadcast_to(_exchanged(rows, k, place), (*batch, m))[..., None], -2)",
        "a = np.take_along_axis(a, np.broadcast_to(rows, (*batch, m))[..., None], -2)",
        ("peers/test_stablehlo_jax.py::test_a_function_of_jax[lu]",),
        slow=True,
    ),
)
