"""Deliberate faults in the passes around the partition of device groups; see `mutations`."""

from __future__ import annotations

from mutation_runner import Mutation

_ROOM = "dialect/passes/device_fuser"
_SHAPES = "dialect/test_device_shapes.py"
_REWRITES = "dialect/test_device_rewrites.py"

DEVICE_SHAPE_MUTATIONS = (
    Mutation(
        "sizes in front of a group are those of its results",
        f"{_ROOM}/shape_expressions.py",
        "return cls(program, call, body, ())",
        "return cls(program, call, body, range(len(call.results)))",
        (f"{_SHAPES}::test_a8_sizes_of_operands_alone_stand_in_front_of_the_group",),
    ),
    Mutation(
        "sizes outside of a group are of the axes that were observed",
        f"{_ROOM}/shape_expressions.py",
        "            value = maker.operands[0]\n"
        "        if value in self._outer or maker is None or maker.op is not Constant or maker.operands:\n",
        "            pass\n        if value in self._outer or maker is None or maker.op is not Constant:\n",
        (f"{_SHAPES}::test_r3_30_axes_that_are_values_are_read_outside_as_well",),
    ),
    Mutation(
        "of what operands broadcast to only the first counts",
        f"{_ROOM}/shape_rules.py",
        "    return (distinct[0],) * site.count\n",
        "    return (sizes[0],) * site.count\n",
        (f"{_SHAPES}::test_r3_32_sizes_are_those_that_operands_broadcast_to",),
    ),
    Mutation(
        "the last chunk has the size of the others",
        f"{_ROOM}/shape_rules.py",
        "return (*(regular,) * (count - 1), last)",
        "return (regular,) * count",
        (f"{_SHAPES}::test_r3_32_seven_in_three_chunks",),
    ),
    Mutation(
        "sizes are asked of the very result that should go",
        f"{_ROOM}/size_only_results.py",
        "materialised = [k for k in range(len(call.results)) if k not in queries]",
        "materialised = list(range(len(call.results)))",
        (f"{_SHAPES}::test_r3_33_random_groups_lose_results",),
    ),
    Mutation(
        "sizes that something else reads as well become part of others",
        f"{_ROOM}/shape_peephole.py",
        "elif len(users) == 1 and isinstance(users[0], Instr)",
        "elif users and isinstance(users[0], Instr)",
        (f"{_SHAPES}::test_r3_34_what_is_read_twice_stays",),
    ),
    Mutation(
        "views become copies though their memory is written",
        f"{_ROOM}/views_to_copies.py",
        "return aliases.is_written(view.operands[0]) or aliases.is_written(view.results[0])",
        "return False",
        (f"{_REWRITES}::test_r3_9_to_r3_12_leave_values_as_they_are",),
    ),
    Mutation(
        "copies that users wrote become views",
        f"{_ROOM}/copies_to_views.py",
        'if instr.op is Late else instr.attrs["implicit"]',
        "if instr.op is Late else True",
        (f"{_REWRITES}::test_r3_12_a_copy_that_was_one_from_the_beginning_has_memory_of_its_own",),
    ),
    Mutation(
        "products of 16-bit floats are rounded before their bias is added",
        f"{_ROOM}/op_splits.py",
        "t.dtype in (F16, BF16)",
        "t.dtype in (BF16,)",
        (f"{_REWRITES}::test_r3_9_and_r3_10_the_bias_of_16_bit_floats_stays_in_its_op",),
    ),
    Mutation(
        "the reserve of a batch normalisation is taken for its index",
        f"{_ROOM}/repair_batch_norm.py",
        'for name in ("reserve", "index"))',
        'for name in ("index", "reserve"))',
        (f"{_REWRITES}::test_r3_44_r3_45_a_repaired_batch_norm_gives_the_same",),
    ),
    Mutation(
        "a guard that knows no device stays",
        f"{_ROOM}/drop_unprofiled_groups.py",
        "None not in (type_.device, type_.rank, type_.dtype)",
        "None not in (type_.rank, type_.dtype)",
        (f"{_REWRITES}::test_r3_44_to_r3_48_leave_values_as_they_are",),
    ),
    Mutation(
        "a group gives the dtype of its first result for that of another one",
        f"{_ROOM}/dtype_only_results.py",
        "body.type_of(body.outputs[group.results.index(source)])",
        "body.type_of(body.outputs[0])",
        (f"{_REWRITES}::test_r3_44_to_r3_48_leave_values_as_they_are",),
    ),
    Mutation(
        "what something else reads is removed as unread",
        "dialect/analysis/readers.py",
        "or any(read.get(r) for r in instr.results)",
        "or False",
        (f"{_SHAPES}::test_r3_33_queries_of_sizes_give_the_same_without_the_result",),
    ),
    Mutation(
        "emitted code takes it for granted that sizes fit",
        "executor/dispatch/derived_sizes.py",
        '                tests.append(Test(("same", one, other), 1))\n',
        "",
        ("executor/dispatch/test_derived_sizes.py::test_r3_29_sizes_of_symbols_are_those_of_numbers",),
    ),
    Mutation(
        "emitted code does not ask whether products and joins fit",
        "executor/dispatch/derived_sizes.py",
        "                    op.prove(attrs, *shapes)\n",
        "                    pass\n",
        ("executor/dispatch/test_derived_sizes.py::test_r3_29_sizes_of_symbols_are_those_of_numbers",),
    ),
)
