"""Hooks in a region that is captured: their order, what they are given, what they may do."""

from __future__ import annotations

from region import scenario


def log(note, name, result=None):
    """A hook that notes its name and what it is given."""

    def hook(*given):
        note(name)
        note([list(g) if isinstance(g, (tuple, list)) else g for g in given])
        return result

    return hook


@scenario
def all_kinds_at_one_operation(t, note):
    x = t.leaf(1, 2)
    for _ in range(3):
        with t.step():
            y = t.exp(x) * x
            y.register_hook(log(note, "first"))
            y.register_hook(log(note, "second"))
            t.node(y).register_prehook(log(note, "pre"))
            t.node(y).register_hook(log(note, "post"))
            (y * 3).sum().backward()
        note(x.grad)
        x.grad = None


@scenario
def all_kinds_at_a_leaf(t, note):
    x = t.leaf(1, 2)
    t.post_accumulate(x, lambda x: (note("accumulated"), note(x.grad))[0])
    t.post_accumulate(x, lambda x: note("accumulated again"))
    x.register_hook(log(note, "tensor"))
    for _ in range(3):
        with t.step():
            (x * x).sum().backward()


@scenario
def nodes_of_a_diamond(t, note):
    x = t.leaf(1, 2)
    with t.step():
        a, b = t.exp(x), t.sin(x)
        c = a * b
        for name, y in (("a", a), ("b", b), ("c", c)):
            y.register_hook(lambda g, name=name: note(name))
            t.node(y).register_prehook(lambda gs, name=name: note(f"before {name}"))
            t.node(y).register_hook(lambda found, gs, name=name: note(f"after {name}"))
        c.sum().backward()


@scenario
def the_branch_that_was_made_last_runs_first(t, note):
    x = t.leaf(1, 2)
    with t.step():
        early, late = t.tanh(x), t.exp(x)
        for _ in range(3):
            early, late = early * 1.5, late * 0.5
        early.register_hook(lambda g: note("early"))
        late.register_hook(lambda g: note("late"))
        (late + early).sum().backward()


@scenario
def leaves_accumulate_when_their_gradient_is_whole(t, note):
    x, y, z = t.leaf(1, 2), t.leaf(3, 4), t.leaf(5, 6)
    for name, leaf in (("x", x), ("y", y), ("z", z)):
        t.post_accumulate(leaf, lambda leaf, name=name: note(name))
    for _ in range(2):
        with t.step():
            h = x * y
            h = t.sin(h) * z
            (h * x).sum().backward()
    note([x.grad, y.grad, z.grad])


@scenario
def several_hooks_see_what_those_before_have_returned(t, note):
    x = t.leaf(1, 2)
    with t.step():
        y = x * 2
        for factor in (2, 3, 5):
            y.register_hook(lambda g, factor=factor: (note(g), g * factor)[1])
        y.sum().backward()
    note(x.grad)


@scenario
def prehooks_replace_what_the_node_is_given(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = t.exp(x)
            t.node(y).register_prehook(lambda gs: tuple(g * 3 for g in gs))
            t.node(y).register_prehook(log(note, "next"))
            y.sum().backward()
    note(x.grad)


@scenario
def posthooks_replace_what_the_node_has_computed(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for _ in range(2):
        with t.step():
            z = x * y
            t.node(z).register_hook(lambda found, gs: tuple(g * 3 for g in found))
            t.node(z).register_hook(log(note, "next"))
            z.sum().backward()
    note([x.grad, y.grad])


@scenario
def hooks_of_the_root(t, note):
    x = t.leaf(1, 2)
    with t.step():
        loss = (x * x).sum()
        loss.register_hook(lambda g: g * 10)
        t.node(loss).register_prehook(log(note, "pre"))
        loss.backward()
    note(x.grad)


@scenario
def hooks_at_the_accumulation_of_a_leaf(t, note):
    x = t.leaf(1, 2)
    node = t.accumulator(x)
    node.register_prehook(log(note, "pre"))
    node.register_hook(lambda found, gs: note(["post", len(found), list(gs)]))
    t.post_accumulate(x, lambda x: note("accumulated"))
    x.register_hook(lambda g: note("tensor"))
    for _ in range(2):
        with t.step():
            (x * 3).sum().backward()


@scenario
def a_hook_that_is_there_in_every_other_step(t, note):
    x = t.leaf(1, 2)
    for k in range(4):
        with t.step():
            y = x * 3
            if k % 2:
                y.register_hook(lambda g, k=k: (note(k), g * k)[1])
            y.sum().backward()
        note(x.grad)


@scenario
def hooks_that_close_over_another_value_in_each_step(t, note):
    x = t.leaf(1, 2)
    for k in range(4):
        handle = x.register_hook(lambda g, k=k: g * k)
        with t.step():
            t.sin(x).sum().backward()
        handle.remove()
        note(x.grad)


@scenario
def a_hook_that_appends_each_gradient_to_a_list(t, note):
    x, seen = t.leaf(1, 2), []
    x.register_hook(seen.append)
    for _ in range(4):
        with t.step():
            (t.exp(x) * x).sum().backward()
    note(len(seen))
    note(seen)


@scenario
def a_hook_that_removes_itself(t, note):
    x, handles = t.leaf(1, 2), []

    def hook(g):
        note("called")
        handles.pop().remove()

    handles.append(x.register_hook(hook))
    for _ in range(3):
        with t.step():
            (x * 2).sum().backward()


@scenario
def a_hook_that_removes_one_of_a_later_node(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = x * 2
            handle = y.register_hook(lambda g: note("removed"))
            z = t.exp(y)
            z.register_hook(lambda g, handle=handle: handle.remove())
            z.sum().backward()
        note(x.grad)


@scenario
def hooks_removed_by_a_neighbour(t, note):
    x = t.leaf(1, 2)
    with t.step():
        y = x * 2
        t.node(y).register_prehook(lambda gs: later.remove())
        later = t.node(y).register_hook(lambda found, gs: note("later"))
        y.sum().backward()
    note(x.grad)


@scenario
def a_hook_that_adds_one_for_the_next_step(t, note):
    x = t.leaf(1, 2)

    def adds(g):
        note("adds")
        x.register_hook(lambda g: note("added"))

    x.register_hook(adds)
    for _ in range(3):
        with t.step():
            (x * 2).sum().backward()


@scenario
def a_hook_that_adds_a_post_accumulate_hook(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for k in range(2):
        with t.step():
            z = x * y
            if k == 0:
                z.register_hook(lambda g: t.post_accumulate(x, lambda x: note("added")) and None)
            z.sum().backward()
    note([x.grad, y.grad])


@scenario
def a_backward_run_of_another_graph_in_a_hook(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)

    def hook(g):
        with t.enable_grad():
            (t.exp(y) * y).sum().backward()

    x.register_hook(hook)
    for _ in range(2):
        with t.step():
            (x * x).sum().backward()
        note([x.grad, y.grad])


@scenario
def a_backward_run_to_the_same_leaf_in_a_hook(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = x * 3

            def hook(g):
                with t.enable_grad():
                    (x * x).sum().backward()
                note(x.grad)

            y.register_hook(hook)
            y.sum().backward()
        note(x.grad)


@scenario
def gradients_that_a_hook_asks_for(t, note):
    x = t.leaf(1, 2)

    def hook(g):
        with t.enable_grad():
            z = t.leaf(5, 6)
            note(t.gradients((z * z * 2).sum(), z))
        return g * 2

    x.register_hook(hook)
    for _ in range(2):
        with t.step():
            t.tanh(x).sum().backward()
        note(x.grad)


@scenario
def an_exception_in_a_tensor_hook_and_the_next_step(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)

    def hook(g):
        if not failed:
            failed.append(1)
            raise KeyError("once")
        return g * 2

    failed = []
    x.register_hook(hook)
    for _ in range(3):
        try:
            with t.step():
                (x * y).sum().backward()
        except KeyError as error:
            note(str(error))
            x.grad = y.grad = None
    note([x.grad, y.grad])


@scenario
def an_exception_in_a_post_accumulate_hook(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)

    def hook(x):
        raise ZeroDivisionError("of the hook")

    handle = t.post_accumulate(x, hook)
    try:
        with t.step():
            (x * 2).sum().backward()
    except ZeroDivisionError as error:
        note(str(error))
    note(x.grad)
    handle.remove()
    with t.step():
        (y * 2).sum().backward()
    note(y.grad)


@scenario
def an_exception_in_a_prehook_leaves_the_graph_used(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x).sum()

    def hook(gs):
        raise ValueError("of the hook")

    t.node(y).register_prehook(hook)
    try:
        with t.step():
            y.backward()
    except ValueError as error:
        note(str(error))
    with t.step():
        t.exp(x).sum().backward()
    note(x.grad)


@scenario
def hooks_that_return_something_else_are_refused(t, note):
    x = t.leaf(1, 2)
    for wrong in (lambda g: g[:1], lambda g: "text", lambda g: 3):
        handle = x.register_hook(wrong)
        try:
            with t.step():
                (x * 2).sum().backward()
            note("accepted")
        except (RuntimeError, TypeError):
            note("refused")
        handle.remove()
    with t.step():
        (x * 2).sum().backward()
    note(x.grad)


@scenario
def clipping_by_norm_in_a_hook(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for p in (w, v):
        p.register_hook(lambda g: (note(t.norm(g)), g * min(1.0, 0.5 / t.norm(g)))[1])
    for k in range(4):
        with t.step():
            h = t.tanh(t.batch(5, 3, seed=k) @ w) @ v
            (h * h).sum().backward()
        note([w.grad, v.grad])
        w.grad = v.grad = None


@scenario
def clipping_by_value_in_a_hook(t, note):
    x = t.leaf(-3, 0.1, 4)
    x.register_hook(lambda g: g.clip(-1, 1))
    for _ in range(3):
        with t.step():
            (x * x).sum().backward()
        note(x.grad)


@scenario
def an_optimiser_in_post_accumulate_hooks(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)

    def update(p):
        with t.no_grad():
            p -= 0.1 * p.grad
        p.grad = None

    for p in (w, v):
        t.post_accumulate(p, update)
    for k in range(4):
        with t.step():
            h = t.tanh(t.batch(5, 3, seed=k) @ w) @ v
            loss = (h * h).mean()
            loss.backward()
        note(loss)
        note(w.grad is None and v.grad is None)
    note([w, v])


@scenario
def hooks_on_views_and_on_what_they_are_of(t, note):
    x = t.leaf(1, 2, 3, 4)
    for _ in range(2):
        with t.step():
            y = x * 2
            y.register_hook(lambda g: note(["base", g]))
            part = y[1:3]
            part.register_hook(lambda g: note(["part", g]))
            (part * part).sum().backward()
    note(x.grad)


@scenario
def hooks_around_a_write(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = x * 2
            y.register_hook(lambda g: note(["before", g]))
            y *= 3
            y.register_hook(lambda g: note(["after", g]))
            y.sum().backward()
    note(x.grad)


@scenario
def gradients_of_hooks_are_those_of_their_place(t, note):
    """One array, used before and behind the hook of what is made of it."""
    x = t.leaf(1, 2)
    with t.step():
        y = x * x
        y.register_hook(lambda g: g * 0)
        (y + x * 3).sum().backward()
    note(x.grad)


@scenario
def gradient_mode_within_hooks_is_off(t, note):
    x, z = t.leaf(1, 2), t.leaf(3, 4)
    x.register_hook(lambda g: note((z * 2).requires_grad))
    t.post_accumulate(x, lambda x: note((z * 2).requires_grad))
    with t.step():
        (x * x).sum().backward()
