"""Programs with code of users in their backward runs, for `test_one_contract`.

Each is called with a list to log to, and returns one step: a function of its number and of ``run``,
which is called in place of ``loss.backward()``. A step returns what it has computed.
"""

from __future__ import annotations

import re

import numpy as np
import profuse as pf
from profuse.dialect.errors import ProfuseError

SCENARIOS = {}


def scenario(make):
    SCENARIOS[make.__name__] = make
    return make


def leaf(*shape, seed=0):
    values = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return pf.array(values, requires_grad=True)


def fresh(*leaves):
    for x in leaves:
        x.grad = None


def grads(*leaves):
    """Copies of gradients, and whether two of them are in the same memory."""
    found = [x.grad for x in leaves]
    shared = [
        (i, k)
        for i, a in enumerate(found)
        for k, b in enumerate(found[:i])
        if a is not None and b is not None and np.shares_memory(a, b)
    ]
    return [None if g is None else np.array(g) for g in found], shared


def raised(f, *args):
    """What a call raises: its class, and how the message begins, without a place in code."""
    try:
        f(*args)
    except (ProfuseError, ValueError, KeyError, RuntimeError) as error:
        return type(error).__name__, re.sub(r"^\S+:\d+: ", "", str(error))[:40]
    return "nothing"


@scenario
def gradients_of_leaves_are_scaled_in_place(log):
    a, b, w = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
    w.register_hook(lambda g: None)

    def step(k, run):
        fresh(a, b, w)
        run(((a + b + np.tanh(w)) ** 2).sum())
        for x in (a, b, w):
            x.grad *= 0.5
        return grads(a, b, w)

    return step


@scenario
def a_view_write_stands_before_the_leaves(log):
    a, b, w = leaf(4), leaf(4, seed=1), leaf(4, seed=2)

    def step(k, run):
        fresh(a, b, w)
        z = w * 1.0
        z[1:3] = w[0:2] * 2.0
        run(((a + b + z) ** 2).sum())
        a.grad *= 0.5
        return grads(a, b, w)

    return step


@scenario
def a_hook_returns_its_own_buffer(log):
    a, b, buffer = leaf(3), leaf(3, seed=1), np.zeros(3)

    def own(g):
        np.multiply(g, 2.0, out=buffer)
        return buffer

    a.register_hook(own)

    def step(k, run):
        fresh(a, b)
        run((a * b + a).sum())
        a.grad += 1.0
        return grads(a, b), buffer.copy(), np.shares_memory(buffer, a.grad)

    return step


@scenario
def a_hook_in_the_middle_returns_its_own_buffer(log):
    a, b, buffer = leaf(3), leaf(3, seed=1), np.zeros(3)

    def own(g):
        np.multiply(g, 2.0, out=buffer)
        return buffer

    def step(k, run):
        fresh(a, b)
        y = np.tanh(a * b)
        y.register_hook(own)
        run((y * y).sum())
        a.grad += 1.0
        return grads(a, b), buffer.copy()

    return step


@scenario
def hooks_write_to_what_they_are_given(log):
    a, b = leaf(3), leaf(3, seed=1)

    def clip(g):
        np.clip(g, -0.1, 0.1, out=g)

    def step(k, run):
        fresh(a, b)
        y = np.sin(a) + b
        y.register_hook(lambda g: log.append(raised(clip, g)))
        y.node.register_prehook(lambda gs: log.append([raised(clip, g) for g in gs]))
        y.node.register_hook(lambda found, gs: log.append([raised(clip, g) for g in (*found, *gs)]))
        y[0].register_hook(lambda g: log.append(g.shape))
        run((y * y).sum())
        return grads(a, b)

    return step


@scenario
def hooks_keep_what_they_are_given(log):
    a, b, kept = leaf(3), leaf(3, seed=1), []
    a.register_hook(kept.append)
    b.register_hook(lambda g: g * 3.0)

    def step(k, run):
        y = np.exp(a) * b
        y.register_hook(kept.append)
        run((y * y).sum())
        a.grad *= 0.5
        return [np.array(g) for g in kept], grads(a, b)

    return step


@scenario
def an_optimizer_in_hooks_of_leaves(log):
    w, v = leaf(3, 4), leaf(4, 1, seed=1)

    def update(p):
        with pf.no_grad():
            p -= 0.1 * p.grad
        p.grad = None

    for p in (w, v):
        p.register_post_accumulate_grad_hook(update)
    x = np.random.default_rng(5).standard_normal((8, 3))

    def step(k, run):
        h = pf.array(x, requires_grad=True)
        run(((np.tanh(h @ w) @ v) ** 2).mean())
        return w.data.copy(), v.data.copy(), grads(h, w, v)

    return step


@scenario
def an_optimizer_in_hooks_behind_jitted_layers(log):
    w, v = leaf(4, 3), leaf(4, 4, seed=1)

    @pf.jit(background=False)
    def layer(w, x):  # so that the gradient of w is there before w is read for that of x
        return np.tanh(w @ x) * 2.0

    def update(p):
        p.data[...] -= 0.1 * p.grad
        p.grad = None

    for p in (w, v):
        p.register_post_accumulate_grad_hook(update)
    x = np.random.default_rng(5).standard_normal((3, 8))
    for _ in range(4):  # its halves are in place from the first step on
        layer(leaf(4, 4), layer(leaf(4, 3), leaf(3, 8))).sum().backward()

    def step(k, run):
        h = pf.array(x, requires_grad=True)
        run((layer(v, layer(w, h)) ** 2).mean())
        return w.data.copy(), v.data.copy(), grads(h, w, v)

    return step


@scenario
def a_hook_writes_to_what_a_later_node_needs(log):
    a, b = leaf(3), leaf(3, seed=1)

    def step(k, run):
        fresh(a, b)
        y = np.exp(a)
        z = y * b

        def write(g):
            with pf.no_grad():
                b[0] = float(k)  # `y * b` has saved it

        if k % 2:
            z.register_hook(write)
        return raised(run, (z * z).sum()), grads(a, b)

    return step


@scenario
def a_hook_writes_to_what_no_node_needs_any_more(log):
    a, b = leaf(3), leaf(3, seed=1)

    def step(k, run):
        fresh(a, b)
        y = np.exp(a)
        z = y * b

        def write(g):
            with pf.no_grad():
                b[0] = float(k)

        y.register_hook(write)
        return raised(run, (z * z).sum()), grads(a, b), b.data.copy()

    return step


@scenario
def a_rule_writes_to_what_it_is_given(log):
    a, b = leaf(3), leaf(3, seed=1)

    @pf.custom_vjp
    class doubled:
        def forward(x):
            return x * 2.0, (x, [np.ones(3)])

        def backward(saved, g):
            def write(x):
                x *= 2.0

            log.append([raised(write, x) for x in (g, saved[0], saved[1][0])])
            return pf.array(g * 2.0)

    def step(k, run):
        fresh(a, b)
        run(((doubled(a) + b) ** 2).sum())
        return grads(a, b), type(a.grad)

    return step


@scenario
def a_rule_returns_none(log):
    a, b = leaf(3), leaf(3, seed=1)

    @pf.custom_vjp
    class first_only:
        def forward(x, y):
            return x * y, y

        def backward(saved, g):
            return g * saved, None

    b.register_hook(lambda g: log.append(np.array(g)))
    b.register_post_accumulate_grad_hook(lambda x: log.append(np.array(x.grad)))

    def step(k, run):
        fresh(a, b)
        run((first_only(a, np.tanh(b) * 2.0) + (b if k > 3 else 0.0)).sum())
        return grads(a, b)

    return step


@scenario
def hooks_remove_hooks(log):
    a = leaf(3)

    def step(k, run):
        fresh(a)
        y = a * 2.0
        z = np.tanh(y)
        handles = []

        def remover(which):
            def remove(*_):
                handles[which].remove()

            return remove

        handles += [
            y.register_hook(lambda g: log.append("y")),
            a.register_hook(lambda g: log.append("leaf")),
            a.register_post_accumulate_grad_hook(lambda x: log.append("accumulated")),
            y.node.register_prehook(lambda gs: log.append("pre")),
            y.node.register_hook(lambda found, gs: log.append("post")),
        ]
        order = [(0, 3), (0, 1), (4, 2), (3, 4), (2, 2), (1, 4)][k % 6]
        z.register_hook(remover(order[0]))
        removing = y.register_hook(remover(order[1]))
        run((z * z).sum())
        for handle in (*handles, removing):
            handle.remove()
        return grads(a)

    return step


@scenario
def hooks_remove_those_that_stand_beside_them(log):
    a = leaf(3)
    handles = []

    def once(name):
        def hook(*_):
            log.append(name)
            for handle in handles:
                handle.remove()

        return hook

    def step(k, run):
        fresh(a)
        handles.clear()
        y = np.tanh(a)
        handles[:] = [
            [y.register_hook(once(n)) for n in "ab"],
            [y.node.register_prehook(once(n)) for n in "cd"],
            [y.node.register_hook(once(n)) for n in "ef"],
            [a.register_post_accumulate_grad_hook(once(n)) for n in "gh"],
        ][k % 4]
        run((y * y).sum())
        return grads(a)

    return step


@scenario
def hooks_add_hooks(log):
    a = leaf(3)

    def step(k, run):
        fresh(a)
        y = np.tanh(a)
        added = []
        y.register_hook(lambda g: added.append(a.register_hook(lambda g: log.append(("added", k)))))
        run((y * y).sum())
        for handle in added:
            handle.remove()
        return grads(a)

    return step


@scenario
def all_kinds_of_hooks_in_their_order(log):
    a, b = leaf(3), leaf(3, seed=1)
    a.register_hook(lambda g: log.append("leaf"))
    a.register_hook(lambda g: (log.append("leaf too"), g * 2.0)[1])
    a.node.register_prehook(lambda gs: log.append("pre leaf"))
    a.node.register_hook(lambda found, gs: log.append(("post leaf", len(found), len(gs))))
    a.register_post_accumulate_grad_hook(lambda x: log.append(np.array(x.grad)))
    a.register_post_accumulate_grad_hook(lambda x: log.append("second"))

    def step(k, run):
        y, z = np.exp(a), np.tanh(b)
        for name, x in (("y", y), ("z", z)):
            x.register_hook(lambda g, name=name: log.append((name, np.array(g))))
            x.node.register_prehook(lambda gs, name=name: log.append(("pre", name, a.grad is None)))
            x.node.register_hook(lambda found, gs, name=name: [f * 2.0 for f in found])
        run((y * z * a).sum())
        return grads(a, b)

    return step


@scenario
def hooks_look_at_the_gradients_of_other_leaves(log):
    a, b, c = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
    for x in (a, b, c):
        others = [y for y in (a, b, c) if y is not x]
        x.register_post_accumulate_grad_hook(lambda x, others=others: log.append([y.grad is None for y in others]))
    a.register_hook(lambda g: log.append([y.grad is None for y in (a, b, c)]))

    def step(k, run):
        fresh(a, b, c)
        run(((a + b) * np.tanh(c)).sum())
        return grads(a, b, c)

    return step


@scenario
def saved_arrays_are_packed_and_computed_again(log):
    a, b = leaf(3), leaf(3, seed=1)

    def step(k, run):
        fresh(a, b)
        with pf.saved_arrays_hooks(np.copy, lambda x: (log.append("unpack"), x)[1]):
            y = np.exp(a) * b
        z = pf.checkpoint(lambda x: np.sin(x) * np.tanh(x))(y)
        run((a + b + z).sum())
        a.grad *= 2.0
        return grads(a, b)

    return step


@scenario
def scopes_and_runs_in_hooks(log):
    a = leaf(3)

    def inner(g):
        with pf.enable_grad():
            for scope in (pf.compiled_autograd, pf.compiled_autograd.disable):
                x = leaf(2)
                with scope():
                    (x * x).sum().backward()
                after = leaf(2)
                (after * 3.0).sum().backward()
                log.append((np.array(x.grad), np.array(after.grad)))
        return g * 2.0

    def step(k, run):
        fresh(a)
        y = np.tanh(a)
        y.register_hook(inner)
        run((y * y).sum())
        return grads(a)

    return step


@scenario
def hooks_return_other_dtypes_shapes_and_kinds(log):
    a = leaf(3)
    returns = [
        lambda g: g.astype(np.float32),
        lambda g: g[:2],
        lambda g: list(g),
        lambda g: g[::-1],
        lambda g: pf.array(g),
        lambda g: g[...],
        lambda g: np.broadcast_to(1.5, (3,)),
    ]

    def step(k, run):
        fresh(a)
        y = np.tanh(a)
        y.register_hook(lambda g: returns[k % len(returns)](g))
        a.register_hook(lambda g: returns[k % len(returns)](g)).remove()
        outcome = raised(run, (y * y + a).sum())
        return outcome, grads(a), None if a.grad is None else a.grad.dtype

    return step


@scenario
def hooks_raise(log):
    a, b = leaf(3), leaf(3, seed=1)

    def step(k, run):
        fresh(a, b)
        y = np.tanh(a)

        def fails(g):
            if k % 3 == 2:
                raise KeyError("of the user's")

        y.register_hook(fails)
        return raised(run, (y * y * b).sum()), grads(a, b)

    return step


@scenario
def gradients_of_results_are_the_users(log):
    a, b, given = leaf(3), leaf(3, seed=1), np.arange(3.0)
    b.register_hook(lambda g: None)

    def step(k, run):
        fresh(a, b)
        run(a + b, given)
        shared = [np.shares_memory(given, x.grad) for x in (a, b)]
        a.grad *= 3.0
        return grads(a, b), shared, given.copy()

    return step


@scenario
def hooks_of_numbers(log):
    a = leaf()

    def step(k, run):
        fresh(a)
        y = a * 2.0
        y.register_hook(lambda g: (log.append(np.shape(g)), g * 2.0)[1])
        y.register_hook(lambda g: float(g) + 1.0)
        run(np.tanh(y))
        return grads(a), type(a.grad)

    return step


@scenario
def graphs_that_are_kept_run_twice(log):
    a = leaf(3)

    def step(k, run):
        y = np.exp(a)
        y.register_hook(lambda g: (log.append(np.array(g)), g * 2.0)[1])
        z = (y * y).sum()
        run(z, retain_graph=True)
        first = grads(a)
        run(z)
        return first, grads(a), raised(run, z)

    return step


@scenario
def hooks_clip_by_the_norm_of_all(log):
    w, v = leaf(3, 4), leaf(4, 1, seed=1)
    seen = {}

    def noted(name):
        def hook(g):
            seen[name] = g
            return g / max(1.0, float(np.linalg.norm(g)))

        return hook

    w.register_hook(noted("w"))
    v.register_hook(noted("v"))
    x = np.random.default_rng(5).standard_normal((8, 3)) * 9

    def step(k, run):
        fresh(w, v)
        run((((x * (k + 1)) @ w @ v) ** 2).sum())
        return grads(w, v), {name: np.array(g) for name, g in seen.items()}

    return step
