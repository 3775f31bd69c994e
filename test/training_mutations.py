"""Faults in what training programs notice: switches, operands, what is kept of functions and of rules."""

from __future__ import annotations

from mutation_runner import Mutation

_USERS = "executor/tape/test_from_users.py"
_SPECIAL = "dialect/gradients/test_special_gradients.py"
_REPEATED = "executor/tape/test_repeated_calls.py"
_HOST = "dialect/gradients/test_host_gradients.py"

TRAINING_MUTATIONS = (
    Mutation(
        "a checkpoint repeats calls by the present plan",
        "executor/plans/link.py",
        "plan = CHECKPOINT.repeats.plan(plan)",
        "pass",
        (_REPEATED,),
    ),
    Mutation(
        "a checkpoint has graphs repeat what Python has run",
        "executor/functions/router.py",
        "CHECKPOINT.repeats.note_python()",
        "pass",
        (_REPEATED,),
    ),
    Mutation(
        "a checkpoint wants the same bits of another plan",
        "executor/tape/repeated_calls.py",
        "return all(call.is_python or call.graph is not None for call in self._calls)",
        "return True",
        (_REPEATED,),
    ),
    Mutation(
        "calls of a decorated function share one gradient mode",
        "executor/tape/api.py",
        "return type(self)()",
        "return self",
        ("executor/tape/test_switches.py",),
    ),
    Mutation(
        "generators keep their gradient mode while they wait",
        "executor/tape/api.py",
        "if not inspect.isgeneratorfunction(function):",
        "if True:",
        ("executor/tape/test_switches.py",),
    ),
    Mutation(
        "functions of math take the numbers of arrays that require gradients",
        "executor/tape/taken.py",
        'if module in ("math", "cmath"):',
        "if False:",
        ("executor/tape/test_nothing_lost.py::test_what_has_none_is_an_error",),
    ),
    Mutation(
        "methods of ndarrays that no name leads to take numbers",
        "executor/tape/taken.py",
        "return (_NUMPY, _NUMPY_HINT) if at.path and at.path[-1] in _OF_ARRAYS else None",
        "return None",
        ("executor/tape/test_nothing_lost.py::test_what_has_none_is_an_error",),
    ),
    Mutation(
        "masks of operands are ignored",
        "executor/tape/eager_recorder.py",
        '        check_array(x, "an operand beside an array of the tape: ")\n',
        "",
        (_USERS + "::test_arrays_whose_operators_are_others_are_refused",),
    ),
    Mutation(
        "results of objects lose their gradients",
        "executor/tape/op_node.py",
        'if dtype.kind not in "biu":',
        "if False:",
        (_USERS + "::test_results_that_hold_no_numbers_are_refused_where_they_would_lose_a_gradient",),
    ),
    Mutation(
        "a rule that reads a shape alone has a plan per step",
        "executor/tape/plans.py",
        "_ARRAYS = (np.ndarray, np.generic, Unsaved)",
        "_ARRAYS = (np.ndarray, np.generic)",
        ("executor/tape/test_straight.py::test_gradients_of_gradients_have_plans_once_for_all_steps",),
    ),
    Mutation(
        "derivatives are kept of all functions there have been",
        "executor/functions/grad.py",
        "if len(_made_of) > _KEPT:",
        "if False:",
        ("executor/functions/test_derivatives_kept.py",),
    ),
    Mutation(
        "a gradient is found again whatever it is differentiated by",
        "executor/functions/grad.py",
        "key = (fn, places, has_aux, with_value, knobs.changed)",
        "key = (fn, has_aux, with_value, knobs.changed)",
        ("executor/functions/test_derivatives_kept.py::test_gradients_are_found_again_while_they_are_there",),
    ),
    Mutation(
        "a gradient is found again under other settings",
        "executor/functions/grad.py",
        "key = (fn, places, has_aux, with_value, knobs.changed)",
        "key = (fn, places, has_aux, with_value)",
        ("executor/functions/test_derivatives_kept.py::test_derivatives_are_those_of_the_settings_that_hold",),
    ),
    Mutation(
        "settings that are as at first count as changed",
        "executor/settings/knobs.py",
        'if value != self.__dict__["_first"].setdefault(name, previous):',
        "if True:",
        ("executor/functions/test_derivatives_kept.py::test_derivatives_are_those_of_the_settings_that_hold",),
    ),
    Mutation(
        "a gradient that is asked for again and again is not kept",
        "executor/functions/grad.py",
        "        _keep_next(fn, key[1:], function)\n",
        "",
        ("executor/functions/test_derivatives_kept.py::test_a_gradient_that_is_asked_for_again_is_kept",),
    ),
    Mutation(
        "gradients of functions that are made anew are kept",
        "executor/functions/grad.py",
        "    if which not in asked_for:\n        asked_for.add(which)\n        return\n",
        "",
        ("executor/functions/test_derivatives_kept.py::test_gradients_of_functions_that_are_made_anew_are_let_go_of",),
    ),
    Mutation(
        "sizes are read of arrays that are kept for them",
        "dialect/autodiff/residuals.py",
        "    _read_sizes(rec, reverse, shaped)\n",
        "",
        ("dialect/gradients/test_borrowed.py::test_arrays_of_which_the_shape_alone_is_read_are_named_apart",),
    ),
    Mutation(
        "arrays whose shape alone is read may not be written to",
        "dialect/autodiff/pullback.py",
        "if v in places and v in read]",
        "if v in places]",
        ("dialect/gradients/test_borrowed.py::test_arrays_of_which_the_shape_alone_is_read_are_named_apart",),
    ),
    Mutation(
        "the last of an odd number of points stands for one",
        "dialect/ops/host/host_gradients.py",
        "(2 * point == points)",
        "(point == count - 1)",
        (_HOST + "::test_the_tape_has_the_same_gradients",),
    ),
    Mutation(
        "transforms of several axes are made again in another order",
        "dialect/ops/host/fourier.py",
        "for size, place in others:\n        a = np.fft.ifft",
        "for size, place in others[1:]:\n        a = np.fft.ifft",
        (_HOST + "::test_the_tape_has_the_same_gradients",),
    ),
    Mutation(
        "the trigamma function is not reflected",
        "dialect/ops/host/special_gradients.py",
        "(math.pi / sine) ** 2 - right",
        "right",
        (_SPECIAL,),
    ),
    Mutation(
        "graphs do not keep the rules of users",
        "dialect/ops/custom_rules.py",
        "        return RuleKey(first + count, rule)\n",
        "        return first + count\n",
        ("dialect/gradients/test_custom.py::test_a_graph_keeps_its_rules",),
    ),
    Mutation(
        "rules of users are kept for ever",
        "dialect/ops/custom_rules.py",
        "] = WeakValueDictionary()",
        "] = {}",
        ("dialect/gradients/test_custom.py::test_rules_go_with_what_needs_them",),
    ),
    Mutation(
        "numbers of rules that have gone are given again",
        "dialect/ops/custom_rules.py",
        "        _counts[first] = count + 1\n",
        "",
        ("dialect/gradients/test_custom.py::test_numbers_of_rules_are_not_given_again",),
    ),
)
