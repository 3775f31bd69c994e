"""Faults in what is read of tensors of other libraries, and in what they are given back."""

from __future__ import annotations

from mutation_runner import Mutation

_READS = "executor/dispatch/conditions/described_reads.py"
_CALLS = "executor/functions/tensor_calls.py"
_MEMORY = "executor/dispatch/leaves/lent_memory.py"
_TENSORS = "executor/exchange/host_tensors.py"
_TEST = "executor/exchange/test_host_tensors.py"

TENSOR_MUTATIONS = (
    Mutation(
        "emitted code takes tensors that require gradients",
        _TENSORS,
        "    false = tuple([name for name in torch_tensors.FALSE if hasattr(kind, name)])\n",
        "    false = ()\n",
        (_TEST + "::test_gradients_are_not_lost",),
    ),
    Mutation(
        "the memory of results is where the head of the block is",
        _MEMORY,
        "head + _ALIGNMENT - 1",
        "head - 1",
        (_TEST + "::test_a_result_is_aligned_and_laid_out_as_arrays_are",),
    ),
    Mutation(
        "turned results have the strides of others",
        "executor/dispatch/leaves/host_leaf.py",
        "[strides[k] for k in order], [dims[k] for k in order]",
        "strides, [dims[k] for k in order]",
        (_TEST + "::test_a_result_is_aligned_and_laid_out_as_arrays_are",),
    ),
    Mutation(
        "arrays of tensors do not keep these",
        "executor/exchange/dlpack.py",
        "self.owner, self.dtype = owner, dtype",
        "self.owner, self.dtype = None, dtype",
        (_TEST + "::test_conversions_to_arrays_and_back",),
    ),
    Mutation(
        "what a function stores in containers of tensors is lost",
        _CALLS,
        "        exchanged.write_back(type_)\n        return",
        "        return",
        (_TEST + "::test_writes_are_seen_in_tensors_and_in_containers_of_them",),
    ),
    Mutation(
        "views of tensors are new tensors of the memory",
        _TENSORS,
        "        owner = owner_of(value)\n",
        "        owner = None\n",
        ("executor/exchange/test_torch_tensors.py::test_views_are_torchs",),
    ),
    Mutation(
        "strides of tensors are taken for bytes",
        _READS,
        "i64 {w.load('i64', w.element(steps, axis))}, {ref.itemsize}",
        "i64 {w.load('i64', w.element(steps, axis))}, 1",
        (_TEST + "::test_strided_tensors_are_read_where_they_lie",),
    ),
    Mutation(
        "emitted code puts arrays into containers that hold tensors",
        "executor/dispatch/tensor_leaf.py",
        "function(*arrays, stored=result_of)",
        "function(*arrays)",
        (_TEST + "::test_emitted_code_puts_tensors_into_containers_of_arguments_alone",),
    ),
    Mutation(
        "an array that is written and returned stays an array beside tensors",
        "executor/dispatch/effect_leaf.py",
        "    return target is not None and is_tensor == (leaf.tensors is not None)\n",
        "    return target is not None\n",
        (_TEST + "::test_an_array_that_is_written_beside_tensors_is_returned_as_one",),
    ),
    Mutation(
        "torch is not told of what emitted code writes",
        "executor/dispatch/leaves/host_leaf.py",
        "        if self.leaf.noting is None:\n",
        "        if False:\n",
        ("executor/exchange/test_torch_tensors.py::test_emitted_writes_are_counted_once",),
    ),
    Mutation(
        "writes to views of tensors are not those to the tensors",
        "executor/exchange/torch_tensors.py",
        "    return plain.as_strided(",
        "    return tensor.data.as_strided(",
        ("executor/exchange/test_torch_tensors.py::test_views_are_torchs",),
    ),
    Mutation(
        "what ends behind an error in emitted code may lose the error",
        "executor/dispatch/leaves/leaf_body.py",
        """        self.w.call("PyErr_Fetch", "void", *(f"ptr {place}" for place in self._error()))
""",
        "",
        (_TEST + "::test_an_error_behind_results_is_the_one_that_callers_see",),
        also=(
            (
                "executor/dispatch/leaves/leaf_body.py",
                """        w.call("PyErr_Restore", "void", *(f"ptr {w.load('ptr', place)}" for place in self._error()))
""",
                "",
            ),
        ),
    ),
    Mutation(
        "Dynamo traces this package where its regions call jitted functions",
        "executor/settings/dynamo.py",
        "    _not_told.append(function)\n",
        "",
        ("executor/exchange/test_torch_tensors.py::test_regions_of_dynamo_call_jitted_functions_as_they_are",),
        also=(("executor/settings/dynamo.py", "_torchdynamo_disable=True, ", ""),),
        slow=True,
    ),
    Mutation(
        "calls that are known do not look at what modules hold",
        "executor/torch/object_comparison.py",
        "        self._noted[id(table)] = table\n",
        "        pass\n",
        ("peers/test_torch_known_calls.py::test_changes_of_the_module_are_seen[other_parameter]",),
        slow=True,
    ),
    Mutation(
        "calls that are known do not look at names",
        "executor/torch/object_comparison.py",
        "            if tables:\n                yield",
        "            if not tables:\n                yield",
        ("peers/test_torch_known_calls.py::test_changes_of_names_are_seen[SCALE-3.0]",),
        slow=True,
    ),
    Mutation(
        "modules with tensors of other classes are exported",
        "executor/torch/module_state.py",
        "            if type(x) not in PLAIN_TENSORS:  # whose",
        "            if False:  # whose",
        ("peers/test_torch_known_calls.py::test_modules_with_tensors_of_other_classes_are_torchs",),
        slow=True,
    ),
    Mutation(
        "strides of a module's tensors are not compared",
        "executor/exchange/torch_tensors.py",
        "tensor.shape, tensor.stride(), *flags",
        "tensor.shape, *flags",
        ("peers/test_torch_known_calls.py::test_changes_of_the_module_are_seen[other_strides]",),
        also=(("executor/exchange/torch_tensors.py", "if quick is not None and quick(", "if False and quick("),),
        slow=True,
    ),
    Mutation(
        "where the tensors of a module are is not compared",
        "executor/exchange/torch_tensors.py",
        "            return list(map(torch.Tensor.data_ptr, self._tensors)) == self._pointers\n",
        "            return True\n",
        ("peers/test_torch_known_calls.py::test_changes_of_the_module_are_seen[other_memory]",),
        slow=True,
    ),
    Mutation(
        "dicts of modules are only compared once",
        "executor/torch/object_comparison.py",
        "if versions and versions == self._versions:",
        "if versions and self._versions:",
        ("peers/test_torch_known_calls.py::test_changes_of_the_module_are_seen[own_forward]",),
        slow=True,
    ),
    Mutation(
        "Python gets arrays where the function reads tensors",
        "executor/functions/in_python.py",
        "return (args, kwargs) if call is None or",
        "return (args, kwargs) if True or",
        ("executor/exchange/test_tensors_beside_arrays.py",),
        slow=True,
    ),
    Mutation(
        "a look for tensors that was in vain is not taken again",
        "executor/functions/in_python.py",
        "            if isinstance(raised, TypeError):\n                self._skips = 0\n",
        "",
        ("executor/exchange/test_tensors_beside_arrays.py::test_tensors_that_come_later_are_found",),
        slow=True,
    ),
    Mutation(
        "exports of Dynamo's graphs for one combination of sizes are not counted",
        "executor/torch/dynamo_backend.py",
        "            self.fixed.note(self._no_symbols)\n",
        "            pass\n",
        ("peers/test_torch_dynamo.py::test_graphs_that_hold_no_symbols_have_an_export_for_each_size",),
        slow=True,
    ),
    Mutation(
        "what a function reads is looked for by name among arguments alone",
        "executor/functions/tensor_reads.py",
        "        yield from (fn.__globals__[name] for name in names if name in fn.__globals__)\n",
        "",
        ("executor/exchange/test_tensor_reads.py",),
    ),
    Mutation(
        "a result that the function closes over is another tensor of the same memory",
        "executor/functions/graph_runs.py",
        "                    exchange.note(array, tensor)\n",
        "                    pass\n",
        ("executor/exchange/test_tensors_beside_arrays.py::test_views_and_errors_are_the_graph_s",),
        slow=True,
    ),
    Mutation(
        "calls that close over tensors are Python's where the layout of arguments decides that of results",
        "executor/functions/graph_runs.py",
        "if memory is not None and may_be_pythons and not memory.is_known(arrays):",
        "if memory is not None and not memory.is_known(arrays):",
        ("executor/exchange/test_tensors_beside_arrays.py::test_overlapping_arguments_are_the_graph_s",),
        slow=True,
    ),
)
