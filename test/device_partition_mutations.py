"""Faults in the partitioner of device groups, for `mutations`."""

from __future__ import annotations

from mutation_runner import Mutation

_RULES = "dialect/test_device_partition.py"
_CHUNKS = "dialect/test_chunk_motion.py"
_PARTITION = "dialect/analysis/device_partition.py"
_MOTION = "dialect/analysis/chunk_motion.py"
_MEMBERS = "dialect/passes/device_fuser/device_members.py"

DEVICE_PARTITION_MUTATIONS = (
    Mutation(
        "device groups move ops over what lies between",
        _PARTITION,
        "        if not self.graph.can_merge(consumer.name, producer.name):\n            return False\n",
        "",
        (f"{_RULES}::test_r3_17_a_write_in_between_keeps_a_producer_where_it_is",),
    ),
    Mutation(
        "one scan forms all device groups",
        _PARTITION,
        "            if not self._scan():\n                break\n",
        "            self._scan()\n            break\n",
        (f"{_RULES}::test_r3_14_what_a_single_scan_misses_ends_in_one_group",),
    ),
    Mutation(
        "device groups take one value more",
        _PARTITION,
        "consumer.count + producer.count > self.options.max_values",
        "consumer.count + producer.count > self.options.max_values + 1",
        (f"{_RULES}::test_r3_17_128_values_of_both_pass_and_129_do_not",),
    ),
    Mutation(
        "inputs of device groups are visited first to last",
        _PARTITION,
        "key=lambda value: -places[value])",
        "key=lambda value: places[value])",
        (f"{_RULES}::test_r3_16_inputs_are_visited_last_first",),
    ),
    Mutation(
        "numbers on the host bring device groups together",
        _PARTITION,
        "isinstance(type_, TensorType) and not (type_.rank == 0 and type_.device == HOST)",
        "isinstance(type_, TensorType)",
        (f"{_RULES}::test_r3_21_a_number_on_the_host_brings_nothing_together",),
    ),
    Mutation(
        "groups of views that are dissolved read numbers from behind them",
        _PARTITION,
        "            if node.is_group:\n                node.members = with_numbers(",
        "            if node.computing and node.is_group:\n                node.members = with_numbers(",
        (f"{_RULES}::test_views_that_are_no_group_find_the_sizes_that_they_read",),
    ),
    Mutation(
        "device groups return views of what they read",
        _PARTITION,
        "views, node.members = split_views(self.program, node.members, read)",
        "views, node.members = [], node.members",
        (f"{_RULES}::test_views_of_what_a_group_reads_are_no_results_of_it",),
    ),
    Mutation(
        "writes and reads of memory trade places",
        "dialect/analysis/alias.py",
        "                before.update(readers.pop(root, ()))\n",
        "                readers.pop(root, ())\n",
        ("dialect/test_alias.py::test_r3_17_the_order_holds_every_pair_that_touches_the_same_memory",),
    ),
    Mutation(
        "ops on devices of which a chunk is read elsewhere move",
        _PARTITION,
        "        if any(self._is_read_beside(r, consumer) for r in split.results):\n            return False\n",
        "",
        (f"{_CHUNKS}::test_r3_23_a_foreign_use_of_a_chunk_keeps_it",),
    ),
    Mutation(
        "ops move behind chunks over writes to what they read",
        _PARTITION,
        "        return self.aliases is None or not any(map(self.aliases.is_written",
        "        return True or not any(map(self.aliases.is_written",
        (f"{_CHUNKS}::test_r3_23_operands_that_are_written_keep_it",),
    ),
    Mutation(
        "all ops can be computed chunk by chunk",
        _MOTION,
        "issubclass(instr.op, Elementwise) and len(instr.results) == 1",
        "len(instr.results) == 1",
        (f"{_CHUNKS}::test_r3_23_ops_that_are_not_elementwise_stay",),
    ),
    Mutation(
        "strides of broadcast axes are those of the array",
        _MOTION,
        "out.append(step if own == size else 0)",
        "out.append(step)",
        (f"{_CHUNKS}::test_r3_25_strides_are_those_of_numpy",),
    ),
    Mutation(
        "chunks of several operands are not broadcast",
        _MOTION,
        "    if len(instr.operands) == 1:\n        return instr.operands\n",
        "    if instr.operands:\n        return instr.operands\n",
        (f"{_CHUNKS}::test_r3_26_leftover_chunks_are_broadcast_and_cut_one_by_one",),
    ),
    Mutation(
        "device groups take ops on host tensors unasked",
        _MEMBERS,
        "        if not self.options.host and (HOST in devices or (not devices and _has_host_number(all_types))):\n"
        "            return None  # the general fuser's\n",
        "",
        (f"{_RULES}::test_r3_15_ops_of_the_host_are_grouped_only_if_asked_for",),
    ),
    Mutation(
        "device groups have views of memory that is written",
        _MEMBERS,
        "            return Reason(Kind.WRITTEN_VIEW)\n",
        "            pass\n",
        (f"{_RULES}::test_r3_17_views_of_what_is_written_stay_outside",),
    ),
    Mutation(
        "constants may depend on anything",
        _MEMBERS,
        "            if maker is None or maker.op is not ProfileValue:",
        "            if False:",
        (f"{_RULES}::test_r3_19_a_constant_that_depends_on_anything_else_raises",),
    ),
)
