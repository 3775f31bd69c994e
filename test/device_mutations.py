"""Deliberate faults in guards of device groups, and in what they compare."""

from __future__ import annotations

from mutation_runner import Mutation

_VALUES = ("executor/test_device_group_sizes.py::test_a6_no_shapes_give_a_wrong_value",)
_WRITTEN = ("dialect/guards/test_free_sizes.py",)
_RUNS = ("executor/test_speculated_values.py",)

DEVICE_MUTATIONS = (
    Mutation(
        "relaxed guards ask nothing of how sizes fit each other",
        "dialect/guards/checks.py",
        "    checks += _free_checks(free)\n",
        "",
        _VALUES,
    ),
    Mutation(
        "relaxed guards forget expressions over sizes",
        "dialect/guards/checks.py",
        '        yield Check("fit", axis_of(names[-1])[0], sides)\n',
        "",
        _VALUES,
    ),
    Mutation(
        "relaxed guards forget sizes that are equal",
        "dialect/guards/free_sizes.py",
        "                equal.append((*axis_of(first[dim]), *axis_of(name)))\n",
        "                pass\n",
        _VALUES,
    ),
    Mutation(
        "sizes that have to be large enough are not asked for",
        "dialect/guards/free_sizes.py",
        "least = [least_of(own)] if least_of(own) > _LEAST else []",
        "least = []",
        _WRITTEN,
    ),
    Mutation(
        "sizes that have to exceed others are not asked for",
        "dialect/guards/free_sizes.py",
        "for floor in (*least, *floors)",
        "for floor in least",
        _WRITTEN,
    ),
    Mutation(
        "a size exceeds another one although that is an expression now",
        "dialect/guards/free_sizes.py",
        "                more, size = floors.pop(root), places[root]\n",
        "                more, size = floors[root], places[root]\n",
        _WRITTEN,
    ),
    Mutation(
        "a size that exceeds another one may be smaller",
        "dialect/ir/size_algebra.py",
        "            return (0, symbols[1])\n",
        "            return (1, symbols[1])\n",
        ("dialect/test_symbolic.py::test_bounds_hold_for_sizes_that_exceed_others",),
    ),
    Mutation(
        "kernels are checked with sizes that their guard refuses",
        "executor/compile/proof/inputs.py",
        "        _raise_to_floors(sizes)\n",
        "",
        ("executor/compile/test_proof.py::test_sizes_of_checks_exceed_others_as_their_guard_wants_it",),
    ),
    Mutation(
        "an op that some sizes are too much for has all sizes stay",
        "dialect/passes/device_fuser/group_sizes.py",
        "solver.keep(_sizes_in(types.of(ops[number])))",
        "solver.keep(())",
        ("executor/test_device_group_sizes.py::test_a6_what_sizes_have_to_fit_follows_from_the_ops",),
    ),
    Mutation(
        "products of sizes keep all of them",
        "dialect/guards/free_sizes.py",
        "            if self.observed.get(earlier, inf) == self.observed.get(later):\n",
        "            if False:\n",
        _WRITTEN,
    ),
    Mutation(
        "products of sizes overflow in emitted guards",
        "executor/dispatch/conditions/guards.py",
        "limit), 1) for name in names if",
        "limit), 1) for name in () if",
        ("executor/dispatch/test_dispatch_relaxed.py::test_a6_products_of_sizes_of_two_arrays_do_not_overflow",),
    ),
    Mutation(
        "what a kernel makes passes guards on any order",
        "executor/dispatch/conditions/guards.py",
        "        if list(layout.order) != sorted(layout.order):\n",
        "        if False:\n",
        ("executor/dispatch/test_dispatch_relaxed.py::test_relaxed_guards_hold_for_what_kernels_make_in_c_order",),
    ),
    Mutation(
        "equal profiled sizes share a symbol",
        "dialect/guards/free_sizes.py",
        "self.sizes[axis_name(k, axis)] = symbol(axis_name(k, axis))",
        'self.sizes[axis_name(k, axis)] = symbol(f"s0_{dim}")',
        _WRITTEN,
    ),
    Mutation(
        "a multiple is not asked for",
        "dialect/guards/free_sizes.py",
        'return f"{symbol(name) % times}{_EQUALS}0"',
        'return f"{name}{_EQUALS}{name}"',
        _VALUES,
    ),
    Mutation(
        "sizes that stay literal are not asked for",
        "dialect/guards/free_sizes.py",
        "if isinstance(dim, int) or (first[dim]",
        "if not isinstance(dim, int) and (first[dim]",
        ("executor/test_device_group_sizes.py::test_a6_what_sizes_have_to_fit_follows_from_the_ops",),
    ),
    Mutation(
        "sizes that differed from run to run may be 1",
        "dialect/guards/free_sizes.py",
        "symbol(axis_name(k, a)) if dim is None else dim",
        "None if dim is None else dim",
        _WRITTEN,
    ),
    Mutation(
        "strides are told although an axis broadcasts",
        "dialect/guards/relaxed.py",
        "is_told = wide == sorted(want.order) and want.order[-1] in want.dense",
        "is_told = bool(want.order) and want.order[-1] in want.dense",
        _WRITTEN,
    ),
    Mutation(
        "emitted code forgets expressions over sizes",
        "executor/dispatch/conditions/guards.py",
        'return tests if left == right else [*tests, Test(("same", left, right), 1)]',
        "return tests",
        ("executor/dispatch/test_dispatch_relaxed.py::test_a6_random_relations_between_sizes",),
    ),
    Mutation(
        "groups expect of each other the layout of NumPy",
        "dialect/passes/device_fuser/insert_device_guards.py",
        "_as_kernels_give_it(t) if is_a(defining_op(v), CudaGroup) else t",
        "t",
        ("executor/test_device_group_sizes.py::test_a_group_takes_what_another_makes_in_c_order",),
    ),
    Mutation(
        "a view keeps the sizes that it was profiled with",
        "dialect/passes/device_fuser/speculated_values.py",
        '        if check.kind in ("view", "target"):\n',
        '        if check.kind == "target":\n',
        _RUNS,
    ),
    Mutation(
        "the constraint of a view forgets factors",
        "dialect/guards/view_constraints.py",
        "    return view_sizes is not None and view_constraint(sizes, view_sizes) == constraint\n",
        "    return view_sizes is not None and view_constraint(sizes, view_sizes) is not None\n",
        _RUNS,
    ),
    Mutation(
        "targets of sums need not fit what is summed",
        "dialect/guards/relaxed.py",
        "    if summed is not None and sizes and not _can_be_summed(summed, sizes):\n        return False\n",
        "",
        _RUNS,
    ),
    Mutation(
        "fallbacks use the values that were profiled",
        "dialect/passes/device_fuser/insert_device_guards.py",
        "        take_operands(fallback)\n",
        "        take_constants(fallback)\n",
        _RUNS,
    ),
    Mutation(
        "values of the run are not compared",
        "dialect/passes/device_fuser/guarded_values.py",
        "passed = emit(AllTrue, [*conditions, answer])",
        "passed = emit(AllTrue, [answer])",
        _RUNS,
    ),
)
