"""Faults of the ops of neural networks."""

from mutation_runner import Mutation

NEURAL_MUTATIONS = (
    Mutation(
        "bits of places beyond 32 bits repeat",
        "dialect/ops/nn/dropouts.py",
        "(place & _LOW, place >> 32), offset, key",
        "(place & _LOW, place & 0), offset, key",
        ("dialect/ops/nn/test_neural_ops.py::test_a11_words_of_places_beyond_32_bits",),
    ),
    Mutation(
        "dropout compares with a rounded probability",
        "dialect/ops/nn/dropouts.py",
        "math.ceil(p * 2**_KEPT_BITS)",
        "round(p * 2**_KEPT_BITS)",
        ("dialect/ops/nn/test_neural_ops.py::test_dropout_compares_exactly",),
    ),
    Mutation(
        "numbers of bodies are as narrow as indices",
        "lowering/gpu/kernels/emitter.py",
        "if isinstance(size, int):  # any number of a body, which a word may be too narrow for",
        "if isinstance(size, str):",
        ("lowering/gpu/test_gpu_random_bits.py::test_numbers_of_bodies_have_64_bits_where_indices_have_32",),
    ),
    Mutation(
        "a kernel normalises batches of one value",
        "dialect/ops/nn/batch_norms.py",
        "b.forbid(lambda n: n.eq(1), count)",
        "b.forbid(lambda n: n < 0, count)",
        ("dialect/ops/nn/test_neural_ops.py::test_one_value_per_channel_raises_in_every_tier",),
    ),
    Mutation(
        "the new running variance is the biased one",
        "dialect/ops/nn/batch_norms.py",
        "unbiased = variance * (count / (count - 1))",
        "unbiased = variance * (count / count)",
        ("dialect/ops/test_tier0.py::test_conforms[native_batch_norm-f32]",),
    ),
    Mutation(
        "a layer norm takes any sizes in a kernel for some",
        "dialect/ops/nn/operand_checks.py",
        "        return broadcast_to(b, x, (*x.shape[:lead], *sizes))\n",
        "        return x\n",
        (
            "dialect/ops/nn/test_neural_ops.py::test_a_layer_norm_of_other_sizes_raises_where_a_kernel_runs_for_some",
            "dialect/ops/test_compiled.py::test_refusals[native_layer_norm]",
        ),
    ),
    Mutation(
        "masked gradients keep ops from being fused",
        "dialect/mlir/typed_values.py",
        "return frozenset(k for k in undefined if next(iter(op.results[k].uses), None) is None)",
        "return frozenset()",
        ("dialect/ops/nn/test_neural_ops.py::test_a_masked_gradient_is_undefined_and_hinders_no_fusion",),
    ),
    Mutation(
        "gradients of norms forget those of the statistics",
        "dialect/ops/nn/composite.py",
        "        if all(g is None for g in gs[1:]):\n",
        "        if gs[0] is not None:\n",
        ("dialect/gradients/test_rules.py::test_gradients_are_those_of_central_differences",),
    ),
    Mutation(
        "emitted code does not take back what it has drawn",
        "executor/dispatch/leaves/leaf_body.py",
        "            if undo is not None:\n                self._undone(undo, reference)\n",
        "",
        ("executor/functions/test_emitted_draws.py::test_what_python_repeats_is_drawn_once",),
    ),
    Mutation(
        "kernels for all sizes know no windows",
        "dialect/importers/numpy/neural/filters.py",
        ', "window": kernel}',
        "}",
        ("dialect/ops/nn/test_convolutions.py::test_depthwise_convolutions_of_any_images_are_one_kernel",),
    ),
    Mutation(
        "no size is taken for a number because a product has to be one",
        "dialect/guards/assumed_sizes.py",
        "            return (names[0], observed[names[0]]) if names else None\n",
        "            return None\n",
        (
            "dialect/test_assumed_sizes.py",
            "dialect/ops/nn/test_convolutions.py::test_depthwise_convolutions_of_any_images_are_one_kernel",
        ),
    ),
    Mutation(
        "emitted code takes one generator for two",
        "executor/dispatch/arguments.py",
        'Test(("one", position, other), int(number == its))',
        'Test(("one", position, position), 1)',
        ("executor/functions/test_emitted_draws.py::test_generators_among_the_arguments",),
    ),
    Mutation(
        "emitted code draws from an argument that the function reads by name as well",
        "executor/functions/variants.py",
        "        arguments.tests += apart_from(arguments.generators, trace.generators)\n",
        "",
        ("executor/functions/test_emitted_draws.py::test_a_generator_that_the_graph_is_not_made_for_is_pythons",),
    ),
    Mutation(
        "emitted code draws from generators whose state is not all",
        "executor/functions/emitted_draws.py",
        "        if not drawing.can_undo:\n            raise Refused(_KEEPS_MORE)  # Python does the call\n",
        "",
        ("executor/functions/test_emitted_draws.py::test_generators_that_keep_more_than_a_state_are_pythons",),
    ),
    Mutation(
        "fallbacks of graphs that draw are dispatched in Python",
        "executor/dispatch/reader.py",
        "            or self.leaf.host_results\n",
        "            or self.leaf.between\n",
        ("executor/functions/test_emitted_draws.py::test_dropout_is_dispatched_in_emitted_code",),
    ),
    Mutation(
        "what another thread has drawn is taken back",
        "executor/functions/drawing.py",
        "                if not same_state(bits.state, after):\n                    return False\n",
        "                pass\n",
        ("executor/functions/test_emitted_draws.py::test_a_draw_that_another_thread_has_followed_is_told",),
    ),
)
