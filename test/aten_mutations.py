"""Faults in the import of ATen's operators, each with the tests that notice it."""

from __future__ import annotations

from mutation_runner import Mutation

_OPERATORS = "dialect/importers/foreign/aten/"
_TESTS = "dialect/importers/foreign/aten/test_aten_operators.py"
_FACTORS = "dialect/importers/foreign/aten/test_aten_factors.py"

ATEN_MUTATIONS = (
    Mutation(
        "the gradient of a root at 0 is infinite",
        f"{_OPERATORS}tensors/reduction_operators.py",
        "    is_zero = x == zero\n",
        "    is_zero = x != x\n",
        ("peers/test_torch_edges.py::test_gradients_at_edges_are_torchs",),
    ),
    Mutation(
        "one of the elements that are the median has the gradient",
        f"{_OPERATORS}tensors/index_operators.py",
        "        return _shared(flat, _median(flat, 0, False)[0])\n",
        "        return _median(flat, 0, False)[0]\n",
        ("peers/test_torch_edges.py::test_gradients_at_edges_are_torchs",),
    ),
    Mutation(
        "tensors without axes widen those with axes",
        f"{_OPERATORS}promotion.py",
        "(0 if x.ndim else 1, x.dtype)",
        "(0, x.dtype)",
        ("dialect/importers/foreign/aten/test_aten_promotion.py::test_result_dtype",),
    ),
    Mutation(
        "integers are divided as integers",
        f"{_OPERATORS}tensors/binary_operators.py",
        "together(self, other, dtype=float_dtype(self, other))\n        return a / b",
        "together(self, other)\n        return a // b",
        (f"{_TESTS}::test_meaning",),
    ),
    Mutation(
        "overloads that write to out are taken for others",
        f"{_OPERATORS}aten_table.py",
        'if overload.endswith("out"):',
        'if overload == "never":',
        (f"{_TESTS}::test_names_find_handlers",),
    ),
    Mutation(
        "in-place forms give new tensors",
        f"{_OPERATORS}aten_table.py",
        "            self[...] = cast(result, self.dtype)\n        return self",
        "            return cast(result, self.dtype)\n        return self",
        (f"{_TESTS}::test_in_place_forms_write_in_the_dtype_of_the_tensor",),
    ),
    Mutation(
        "hardtanh has a gradient at its edges",
        f"{_OPERATORS}layers/activation_operators.py",
        "np.where(self <= low, low, np.where(self >= high, high, self))",
        "np.where(self < low, low, np.where(self > high, high, self))",
        (f"{_TESTS}::test_gradients_at_edges_are_torchs",),
    ),
    Mutation(
        "descending order turns equal elements round",
        f"{_OPERATORS}tensors/index_operators.py",
        'np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)\n    return x.shape[axis] - 1 - back',
        'np.argsort(x, axis=axis, kind="stable"), axis)\n    return back',
        (f"{_TESTS}::test_meaning",),
    ),
    Mutation(
        "integers may be divided by zero",
        f"{_OPERATORS}tensors/binary_operators.py",
        "return demanded(divisor, divisor != 0,",
        "return demanded(divisor, divisor == divisor,",
        (f"{_TESTS}::test_contents_that_are_errors_of_torch_are_errors",),
    ),
    Mutation(
        "indices of gather count from the end",
        f"{_OPERATORS}tensors/index_operators.py",
        'at = in_range("gather", "index", cast(at, INT64), x.shape[axis])',
        "at = cast(at, INT64)",
        (f"{_TESTS}::test_contents_that_are_errors_of_torch_are_errors",),
    ),
    Mutation(
        "the nearest element of a place outside is looked for before the place is taken inside",
        "dialect/importers/foreign/sampling.py",
        '(mode == "nearest" and not is_rounded_first)',
        '(mode == "nearest" and is_rounded_first)',
        ("peers/test_aten_names.py::test_places_in_images_at_ties_and_outside",),
    ),
    Mutation(
        "what a matrix is solved with has its rows in the order of before",
        f"{_OPERATORS}tensors/factor_operators.py",
        "return _solved(upper, _solved(lower, _taken(B, order)))",
        "return _solved(upper, _solved(lower, B))",
        (f"{_FACTORS}::test_solutions_by_factors",),
    ),
    Mutation(
        "least squares of a matrix whose rank is in doubt are given",
        f"{_OPERATORS}tensors/factor_operators.py",
        "> cast(_CLEAR * least, real)",
        ">= cast(0.0 * least, real)",
        (f"{_FACTORS}::test_least_squares",),
    ),
    Mutation(
        "a label may follow itself without a blank between",
        f"{_OPERATORS}layers/sequence_losses.py",
        "(states > 1) & (at != before)",
        "(states > 1)",
        (f"{_FACTORS}::test_the_loss_of_sequences_is_the_sum_over_all_paths",),
    ),
    Mutation(
        "steps behind the end of a sequence count",
        f"{_OPERATORS}layers/sequence_losses.py",
        "np.where((have > number)[:, None], new, alpha)",
        "new",
        (f"{_FACTORS}::test_the_loss_of_sequences_is_the_sum_over_all_paths",),
    ),
    Mutation(
        "weights of 0 may be drawn",
        f"{_OPERATORS}tensors/creation_operators.py",
        "np.sum(ends[:, None, :] <= drawn[..., None], axis=-1, dtype=np.int64)",
        "np.sum(ends[:, None, :] < drawn[..., None], axis=-1, dtype=np.int64) * 0",
        (f"{_FACTORS}::test_draws_by_weights",),
    ),
    Mutation(
        "memory is read in the order of axes",
        f"{_OPERATORS}tensors/memory_operators.py",
        "return np.reshape(np.transpose(x, tuple(order)), (-1,))",
        "return np.reshape(x, (-1,))",
        (f"{_FACTORS}::test_memory_is_read_by_places",),
    ),
    Mutation(
        "a group of rows begins where the first does",
        "dialect/ops/host/grouped.py",
        "        out[start:end] = rows[start:end] @ matrix\n        start = end\n",
        "        out[start:end] = rows[start:end] @ matrix\n",
        (f"{_FACTORS}::test_groups_of_rows_have_matrices_of_their_own",),
    ),
    Mutation(
        "an offset counts from the beginning of an input that may be a part of memory",
        "dialect/importers/foreign/fx/fx_reader.py",
        "    if offset is not None and isinstance(source, torch.Tensor) and _is_of_input(source, node.graph):\n",
        "    if False:\n",
        ("peers/test_torch_memory.py::test_offsets_count_from_the_beginning_of_memory",),
    ),
    Mutation(
        "a result that shares memory loses the gradient of a function of the user's",
        "executor/torch/result_promises.py",
        "    if own and any(",
        "    if False and any(",
        ("peers/test_torch_own_gradients.py::test_a_result_that_shares_memory_keeps_the_gradient",),
    ),
    Mutation(
        "checks of contents are left out of graphs",
        "dialect/importers/foreign/fx/content_checks.py",
        "        if not holds:\n            return results\n",
        "        return results\n",
        ("peers/test_torch_contents.py::test_contents_that_are_errors_are_those_of_torch",),
    ),
    Mutation(
        "results lie as NumPy's functions give them",
        "executor/torch/tensor_function.py",
        "    return tensor if tensor.is_contiguous() else tensor.contiguous()\n",
        "    return tensor\n",
        ("peers/test_torch_memory.py::test_results_lie_as_those_of_torch_in_each_tier",),
    ),
    Mutation(
        "gradients within a half of a function of the user's stop where torch notes none",
        "dialect/importers/foreign/fx/gradient_stops.py",
        "        is_off = self._has_gradients and not self._is_on and not self.in_own_half\n",
        "        is_off = self._has_gradients and not self._is_on\n",
        ("peers/test_torch_own_gradients.py::test_gradients_of_gradients_go_through_the_backward_half",),
    ),
)
