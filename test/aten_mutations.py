"""Faults in the import of ATen's operators, each with the tests that notice it."""

from __future__ import annotations

from mutation_runner import Mutation

_OPERATORS = "dialect/importers/foreign/aten/"
_TESTS = "dialect/importers/foreign/aten/test_aten_operators.py"

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
        "return required(divisor, np.all(divisor != 0),",
        "return required(divisor, np.all(divisor == divisor),",
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
)
