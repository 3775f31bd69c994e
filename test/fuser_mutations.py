"""Deliberate faults in the switches and at the end of the fuser of device groups."""

from __future__ import annotations

from mutation_runner import Mutation

_SWITCHES = ("executor/settings/test_device_fusion.py",)
_GROUPS = "executor/cuda/test_device_fuser.py::"
_PIPELINES = ("dialect/passes/test_pipelines.py",)

FUSER_MUTATIONS = (
    Mutation(
        "the variable that forces the fuser of device groups off is forgotten",
        "executor/settings/device_fusion.py",
        "    if force_off:\n        return False\n",
        "",
        _SWITCHES,
    ),
    Mutation(
        "the environment goes before what the program has chosen",
        "executor/settings/device_fusion.py",
        "for choice in (runtime, env)",
        "for choice in (env, runtime)",
        _SWITCHES,
    ),
    Mutation(
        "ops of the host are taken without being asked for",
        "executor/settings/device_fusion.py",
        'if on_host and (chosen != "host" or knobs.device_fusion_off):',
        "if on_host and knobs.device_fusion_off:",
        _SWITCHES,
    ),
    Mutation(
        "the general fuser takes ops that are left to device groups",
        "dialect/passes/speculate/left_devices.py",
        "            return bool(self._leave)\n",
        "            return False\n",
        _PIPELINES,
    ),
    Mutation(
        "the spec-keyed executor has device groups",
        "dialect/pipeline/options.py",
        "*self._limits(), *layouts, *self._users()]",
        "*self._limits(), *layouts, *self._users(self._device_fuser())]",
        _PIPELINES,
    ),
    Mutation(
        "types of the profile go before device groups are formed",
        "dialect/passes/speculate/insert_guards.py",
        "            if self.leave:\n                refresh_signature(func)\n            else:\n",
        "            if True:\n",
        _PIPELINES,
    ),
    Mutation(
        "equal device groups have a kernel each",
        "dialect/passes/device_fuser/dedupe_device_groups.py",
        "            if shared != name:\n",
        "            if False:\n",
        (_GROUPS + "test_r3_49_equal_groups_share_a_kernel",),
    ),
    Mutation(
        "a group that has failed is compiled in the next graph",
        "executor/plans/link.py",
        "failed = failed_before(ids[group], group) if group in ids else None",
        "failed = None",
        (_GROUPS + "test_r3_50_a_group_that_fails_is_interpreted_for_good",),
    ),
    Mutation(
        "a kernel that raises is tried again",
        "executor/plans/device_groups.py",
        "        if FAILED.why(self._cache_id):\n",
        "        if False:\n",
        (_GROUPS + "test_r3_50_a_kernel_that_raises_runs_no_more",),
    ),
    Mutation(
        "a changed value is a hit of the guard",
        "executor/plans/python_source.py",
        'undo = f"{g}.counted -= 1; C.guard_hits -= 1; {g}.missed += 1; C.guard_misses += 1; C.value_misses += 1"',
        'undo = "pass"',
        (_GROUPS + "test_r3_36_a_value_that_changes_runs_the_fallback_with_the_new_one",),
    ),
    Mutation(
        "numbers of elements tie all sizes of a convolution",
        "dialect/guards/free_sizes.py",
        "        sizes = without_common_factor(sizes)\n",
        "",
        (_GROUPS + "test_a6_convolutions_serve_images_of_all_sizes",),
    ),
    Mutation(
        "a failed device group is computed of what its kernel has written",
        "executor/plans/device_groups.py",
        "            if _may_overlap(operands, args[self._count :]):",
        "            if False:",
        (f"{_GROUPS}test_r3_50_what_a_kernel_may_have_written_over_is_not_computed_with",),
    ),
    Mutation(
        "buffers that live at once share a region of the workspace",
        "dialect/analysis/regions.py",
        "if region.last < tenant.first]",
        "if region.last <= tenant.first]",
        ("lowering/schedule/test_workspace.py",),
    ),
    Mutation(
        "a region of the workspace is as large as its first buffer",
        "dialect/analysis/regions.py",
        "        if not self.fits(need):\n",
        "        if not self.sizes:\n",
        ("lowering/schedule/test_workspace.py",),
    ),
    Mutation(
        "strips go over the end of a row",
        "lowering/emit/strips.py",
        "            begin = ops.least(index, last)\n",
        "            begin = index\n",
        ("lowering/emit/test_strips.py",),
    ),
    Mutation(
        "sizes are divided by sizes that may be 0",
        "executor/memory/offsets.py",
        "and bounds(b, (0, math.inf))[0] > 0))",
        "and bounds(b, (0, math.inf))[0] >= 0))",
        ("dialect/test_symbolic.py::test_a_guarded_size_may_be_divided_by_one_that_is_positive",),
    ),
    Mutation(
        "a broadcast that a size depends on is not guarded",
        "dialect/importers/numpy/tracing/numbers.py",
        "        self.guard(expr, expected, loc)\n        return self._rec",
        "        self._rec.derivation.note(expr, expected)\n        return self._rec",
        ("dialect/importers/tracing/test_size_relations.py",),
    ),
    Mutation(
        "a size is told by no expression of others",
        "dialect/importers/numpy/tracing/derivation.py",
        "return all(isinstance(leaf, Dimension) for leaf in other.symbols) and size.symbols.isdisjoint(other.symbols)",
        "return False",
        ("dialect/importers/tracing/test_size_relations.py",),
    ),
)
