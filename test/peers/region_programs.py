"""Programs in a region that is captured: what captures anew, accumulation, what is kept."""

from __future__ import annotations

from region import net, scenario
from test_tape_torch import fails

# --- what captures anew ---------------------------------------------------------------------------


def batches(t, note, sizes, **step):
    """Steps on batches of these sizes."""
    w, v = t.weights(3, 7), t.weights(7, 2)
    for k, batch in enumerate(sizes):
        with t.step(**step):
            net(t, w, v, batch, k).backward()
        note([w.grad, v.grad])


@scenario
def batches_with_gradients_cleared(t, note):
    batches(t, note, (4, 4, 5, 6, 4))


@scenario
def batches_with_gradients_kept(t, note):
    batches(t, note, (4, 4, 5, 6), kept=True)


@scenario
def batches_of_any_size_from_the_beginning(t, note):
    batches(t, note, (4, 4, 5, 6), dynamic=True)


@scenario
def two_sizes_that_change_one_after_the_other(t, note):
    for n, m in ((4, 7), (5, 7), (5, 8), (6, 9)):
        x, y = t.weights(n, 3), t.weights(m, 3)
        with t.step():
            (t.sin(x).sum() * t.exp(y).sum()).backward()
        note([x.grad, y.grad])


@scenario
def another_number_of_axes(t, note):
    for shape in ((4,), (4, 2), (4,), (4, 2)):
        x = t.weights(*shape)
        with t.step():
            t.sin(x).sum().backward()
        note(x.grad)


@scenario
def another_axis(t, note):
    x = t.weights(3, 4)
    for axis in (0, 1, 0, 1):
        with t.step():
            (x.sum(axis) ** 2).sum().backward()
        note(x.grad)


@scenario
def another_number_of_layers(t, note):
    x = t.leaf(0.1, 0.2)
    for layers in (1, 2, 3, 2, 1):
        y = x
        with t.step():
            for _ in range(layers):
                y = t.tanh(y) + x
            y.sum().backward()
        note(x.grad)


@scenario
def branches_of_python(t, note):
    x = t.leaf(1, 2)
    for k in range(5):
        with t.step():
            y = t.sin(x) if k % 2 else t.exp(x) * x
            y.sum().backward()
        note(x.grad)


@scenario
def a_term_that_is_added_to_the_loss_later(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for k in range(4):
        with t.step():
            loss = net(t, w, v, 5, k)
            if k >= 2:
                loss = loss + (w * w).sum() * 0.01
            loss.backward()
        note([w.grad, v.grad])


@scenario
def a_parameter_that_is_shared_or_not(t, note):
    w, v = t.weights(3, 3), t.weights(3, 3)
    for second in (v, w, v, w):
        with t.step():
            (t.tanh(t.batch(2, 3) @ w) @ second).sum().backward()
        note([w.grad, v.grad])


@scenario
def a_parameter_that_is_frozen_for_a_while(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for k in range(4):
        with t.step():
            net(t, w, v.detach() if k % 2 else v, 5).backward()
        note([w.grad, v.grad])


@scenario
def gradients_that_are_wanted(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for inputs in ([x, y], [x], [y], [x, y]):
        with t.step():
            note(t.gradients((t.exp(x) * y).sum(), inputs))
    note([x.grad, y.grad])


@scenario
def a_gradient_that_is_given(t, note):
    x = t.leaf(1, 2)
    for k in range(3):
        with t.step():
            t.sin(x).backward(t.plain(k, 10 * k))
        note(x.grad)


@scenario
def a_number_that_changes_with_each_step(t, note):
    x = t.leaf(1, 2)
    for k in range(3):
        with t.step():
            (t.sin(x) * (k + 0.5)).sum().backward()
        note(x.grad)


@scenario
def numbers_that_change_where_sizes_are_inputs(t, note):
    x = t.leaf(1, 2)
    for k in range(4):
        with t.step(dynamic=True):
            ((t.sin(x) * (k + 0.5) - (0.1 + k)) / (k + 1.5) + 0.25 * k).sum().backward()
        note(x.grad)


@scenario
def an_exponent_that_changes_with_each_step(t, note):
    x = t.leaf(1, 2)
    for k in (2.5, 3.5, 2.5, 4.5):
        with t.step():
            (t.sin(x) ** k).sum().backward()
        note(x.grad)


@scenario
def numbers_that_a_function_of_ones_own_saves(t, note):
    scaled = t.function("Scaled", lambda x, k: (x * k, (x, k, 2 * k)), lambda saved, g: (g * saved[1] + saved[2], None))
    x = t.leaf(1, 2)
    for k in range(4):
        with t.step():
            scaled(t.sin(x), k + 0.5).sum().backward()
        note(x.grad)


@scenario
def a_rate_in_an_array_that_changes_with_each_step(t, note):
    x = t.leaf(1, 2)
    for k in range(3):
        with t.step():
            (t.sin(x) * t.constant(k + 0.5)).sum().backward()
        note(x.grad)


# --- accumulation ---------------------------------------------------------------------------------


@scenario
def gradients_of_several_micro_batches(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for _ in range(2):
        for k in range(3):
            with t.step(kept=k > 0):
                (net(t, w, v, 5, k) / 3).backward()
        note([w.grad, v.grad])


@scenario
def a_value_that_is_used_many_times(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = t.tanh(x)
            total = y
            for k in range(5):
                total = total + y * (k + 1)
            (total * y).sum().backward()
        note(x.grad)


@scenario
def two_losses_one_after_the_other(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = t.exp(x)
            y.sum().backward(retain_graph=True)
            (y * y).sum().backward()
        note(x.grad)


@scenario
def two_roots_at_once(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for _ in range(2):
        with t.step():
            a, b = t.exp(x) * y, t.sin(x)
            note(t.gradients([a, b], [x, y], [t.plain(1, 2), t.plain(3, 4)]))


@scenario
def a_gradient_that_the_user_has_set(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step(kept=True):
            x.grad = t.plain(100, 200)
            (x * x).sum().backward()
        note(x.grad)


@scenario
def parameters_that_nothing_depends_on(t, note):
    w, unused = t.leaf(1, 2), t.leaf(3, 4)
    unused.register_hook(lambda g: note("never"))
    for _ in range(2):
        with t.step():
            t.exp(w).sum().backward()
        note([w.grad, unused.grad])


@scenario
def gradients_are_not_shared_between_leaves(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for _ in range(2):
        with t.step():
            (x + y).sum().backward()
        x.grad += 10
        note([x.grad, y.grad])


@scenario
def gradients_of_broadcast_parameters(t, note):
    gain, bias = t.leaf(1, 2, 3), t.leaf([0.5])
    for k in range(2):
        with t.step():
            (t.batch(4, 3, seed=k) * gain + bias).sum().backward()
        note([gain.grad, bias.grad])


# --- what is kept ---------------------------------------------------------------------------------


@scenario
def a_graph_that_is_retained(t, note):
    x = t.leaf(1, 2)
    with t.step():
        y = (t.exp(x) * x).sum()
        y.backward(retain_graph=True)
        note(x.grad)
        y.backward()
        note(x.grad)
        note(fails(y.backward))


@scenario
def a_graph_that_was_freed_outside(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x).sum()
    y.backward()
    with t.step():
        note(fails(y.backward))
        t.exp(x).sum().backward()
    note(x.grad)


@scenario
def a_checkpoint(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for k in range(3):
        with t.step():
            x = t.batch(5, 3, seed=k)

            def block(x, w):
                note("block")
                return t.tanh(x @ w)

            (t.checkpoint(block, x, w) @ v).sum().backward()
        note([w.grad, v.grad])


@scenario
def checkpoints_one_after_the_other(t, note):
    x = t.leaf(0.1, 0.2)
    for _ in range(2):
        with t.step():
            y = x
            for k in range(3):
                y = t.checkpoint(lambda y, k=k: (note(k), t.tanh(y) * x)[1], y)
            y.sum().backward()
        note(x.grad)


@scenario
def a_checkpoint_with_hooks_around(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = x * 2
            y.register_hook(lambda g: note(["in front", g]))
            z = t.checkpoint(lambda y: (note("run"), t.exp(y))[1], y)
            z.register_hook(lambda g: note(["behind", g]))
            z.sum().backward()
        note(x.grad)


@scenario
def arrays_that_are_packed(t, note):
    x = t.leaf(1, 2)
    for k in range(3):
        with t.step():
            with t.saved_hooks(lambda a: (note("pack"), a)[1], lambda a, k=k: (note(["unpack", k]), a)[1]):
                y = t.exp(x) * x
            y.sum().backward()
        note(x.grad)


@scenario
def gradients_of_gradients(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        g = t.gradients((x**3).sum(), x, create_graph=True)
        with t.step():
            (g**2).sum().backward()
        note(x.grad)


@scenario
def gradients_of_gradients_in_the_region(t, note):
    x = t.leaf(1, 2)
    with t.step():
        try:
            g = t.gradients((x**3).sum(), x, create_graph=True)
            (g**2).sum().backward()
        except RuntimeError:
            note("refused")
    note(x.grad)
