"""Functions of users, scopes, threads, views, writes and training in a region that is captured."""

from __future__ import annotations

import threading

from region import net, scenario
from test_tape_torch import fails

# --- functions with gradients of their own --------------------------------------------------------


def scaled(t, note, name="Scaled"):
    def forward(x, factor):
        return x * factor, (x, factor)

    def backward(saved, g):
        x, factor = saved
        note([name, x, factor, g])
        return g * factor, None

    return t.function(name, forward, backward)


@scenario
def a_function_with_a_gradient_of_its_own(t, note):
    x, f = t.leaf(1, 2), scaled(t, note)
    for _ in range(3):
        with t.step():
            t.sin(f(x, 3.0)).sum().backward()
        note(x.grad)


@scenario
def functions_one_in_the_other(t, note):
    x, f, g = t.leaf(1, 2), scaled(t, note, "F"), scaled(t, note, "G")
    for _ in range(2):
        with t.step():
            g(f(f(x, 2.0), 3.0), 5.0).sum().backward()
        note(x.grad)


@scenario
def a_function_that_gives_no_gradient_for_an_argument(t, note):
    def forward(x, y):
        return x + y * 2, ()

    first = t.function("First", forward, lambda saved, g: (g * 10, None))
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    for _ in range(2):
        with t.step():
            first(x, y).sum().backward()
        note(x.grad)


@scenario
def a_function_with_hooks(t, note):
    x, f = t.leaf(1, 2), scaled(t, note)
    for _ in range(2):
        with t.step():
            y = f(x * 2, 3.0)
            y.register_hook(lambda g: (note(["tensor", g]), g * 10)[1])
            t.node(y).register_prehook(lambda gs: note(["pre", list(gs)]))
            y.sum().backward()
        note(x.grad)


@scenario
def a_function_whose_gradient_fails(t, note):
    state = []

    def backward(saved, g):
        if not state:
            state.append(1)
            raise ValueError("once")
        return g * 2

    double = t.function("Double", lambda x: (x * 2, ()), backward)
    x = t.leaf(1, 2)
    for _ in range(2):
        try:
            with t.step():
                double(x).sum().backward()
        except ValueError as error:
            note(str(error))
        note(x.grad)


@scenario
def a_function_that_runs_backwards_itself(t, note):
    def backward(saved, g):
        with t.enable_grad():
            z = t.leaf(7, 8)
            inner = t.gradients((z * z).sum(), z)
        return g * inner

    f = t.function("Inner", lambda x: (x * 2, ()), backward)
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            f(x).sum().backward()
        note(x.grad)


# --- scopes and threads ---------------------------------------------------------------------------


@scenario
def scopes_within_scopes(t, note):
    x = t.leaf(1, 2)
    with t.step():
        with t.step():
            t.exp(x).sum().backward()
        t.sin(x).sum().backward()
    note(x.grad)
    t.tanh(x).sum().backward()
    note(x.grad)


@scenario
def a_scope_that_is_switched_off_within(t, note):
    x = t.leaf(1, 2)
    with t.step():
        with t.disabled():
            t.exp(x).sum().backward()
            note(x.grad)
            x.grad = None
        t.sin(x).sum().backward()
    note(x.grad)


@scenario
def a_scope_within_one_that_is_switched_off(t, note):
    x = t.leaf(1, 2)
    with t.disabled():
        with t.step():
            t.exp(x).sum().backward()
        t.sin(x).sum().backward()
    note(x.grad)


@scenario
def a_scope_that_an_exception_leaves(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        try:
            with t.step():
                t.exp(x).sum().backward()
                raise KeyError
        except KeyError:
            note("left")
    t.sin(x).sum().backward()
    note(x.grad)


@scenario
def one_scope_around_all_steps(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    with t.step():
        for k in range(3):
            loss = net(t, w, v, 5, k)
            loss.backward()
            with t.no_grad():
                for p in (w, v):
                    p -= 0.1 * p.grad
                    p.grad = None
            note(loss)


@scenario
def a_reset_between_steps(t, note):
    x = t.leaf(1, 2)
    for k in range(4):
        with t.step():
            t.exp(x).sum().backward()
        note(x.grad)
        if k == 1:
            t.reset()


@scenario
def threads_with_regions_of_their_own(t, note):
    leaves = [t.leaf(k, k + 1) for k in range(3)]

    def work(x):
        with t.scope():
            (t.exp(x) * x).sum().backward()

    for x in leaves:  # one after another: which is first would be chance
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        thread.join()
    with t.step(kept=True):
        pass
    note([x.grad for x in leaves])


@scenario
def threads_that_share_a_leaf(t, note):
    x = t.leaf(1, 2)
    losses = [(x * t.constant(k, 1)).sum() for k in range(4)]

    def work(loss):
        with t.scope():
            loss.backward()

    threads = [threading.Thread(target=work, args=(loss,)) for loss in losses]
    for thread in threads:
        thread.start()
        thread.join()
    with t.step(kept=True):
        pass
    note(x.grad)


# --- views, writes, detached parts ----------------------------------------------------------------


@scenario
def detached_parts(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = t.exp(x)
            (y.detach() * x + y).sum().backward()
        note(x.grad)


@scenario
def parts_without_gradients(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            with t.no_grad():
                factor = t.exp(x)
            (factor * x).sum().backward()
        note(x.grad)


@scenario
def slices_and_rows(t, note):
    x = t.weights(4, 3)
    for k in range(3):
        with t.step():
            (x[1:3] * x[0] + x[k % 2]).sum().backward()
        note(x.grad)


@scenario
def transposes_and_reshapes(t, note):
    x = t.weights(4, 3)
    for _ in range(2):
        with t.step():
            y = t.sin(x).T.reshape(2, 6)
            (y * y.reshape(12)[:6]).sum().backward()
        note(x.grad)


@scenario
def writes_in_place(t, note):
    x = t.leaf(1, 2)
    for _ in range(2):
        with t.step():
            y = x * 1
            y *= x
            y += t.sin(x)
            y.sum().backward()
        note(x.grad)


@scenario
def writes_into_views(t, note):
    x = t.leaf(1, 2, 3, 4)
    for _ in range(2):
        with t.step():
            y = x * 1
            y[1:3] *= t.plain(10, 20)
            y[0] = x[3] * 5
            (y * y).sum().backward()
        note(x.grad)


@scenario
def a_write_to_what_was_saved(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    z = (y * y).sum()
    y += 1
    with t.step():
        note(fails(z.backward))
        (x * x).sum().backward()
    note(x.grad)


@scenario
def joined_and_chosen_elements(t, note):
    x, y = t.leaf(1, -2, 3), t.leaf(-4, 5, 6)
    for _ in range(2):
        with t.step():
            z = t.where(x > y, x * 2, y * 3)
            joined = t.concatenate([z, t.maximum(x, y)])
            (joined * t.stack([x, y]).reshape(6)).sum().backward()
        note([x.grad, y.grad])


# --- training -------------------------------------------------------------------------------------


@scenario
def descent_with_a_schedule(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    for k in range(6):
        with t.step():
            loss = net(t, w, v, 5, k)
            loss.backward()
        rate = 0.5 * (k + 1) / 6
        with t.no_grad():
            for p in (w, v):
                p -= rate * p.grad
        note(loss)
    note([w, v])


@scenario
def adam(t, note):
    w, v = t.weights(3, 4), t.weights(4, 2)
    moments = [[0.0, 0.0], [0.0, 0.0]]
    for k in range(5):
        with t.step():
            loss = net(t, w, v, 5, k)
            loss.backward()
        with t.no_grad():
            for p, m in zip((w, v), moments, strict=True):
                m[0] = m[0] * 0.9 + p.grad * 0.1
                m[1] = m[1] * 0.99 + p.grad * p.grad * 0.01
                scale = 0.1 * (1 - 0.99 ** (k + 1)) ** 0.5 / (1 - 0.9 ** (k + 1))
                p -= scale * m[0] / (t.root(m[1]) + 1e-8)
        note(loss)


@scenario
def everything_at_once(t, note):
    """Clipped by hooks and logged, over micro-batches, with a schedule and a decay."""
    w, v, b = t.weights(3, 4), t.weights(4, 2), t.leaf(0.5, -0.5)
    norms = []
    for p in (w, v):
        p.register_hook(lambda g: g * min(1.0, 0.2 / (t.norm(g) + 1e-9)))
    t.post_accumulate(b, lambda b: norms.append(t.norm(b.grad)))
    for k in range(4):
        for n in range(2):
            with t.step(kept=n > 0):
                h = t.tanh(t.batch(5, 3, seed=2 * k + n) @ w) @ v + b
                loss = ((h * h).mean() + (w * w).sum() * 0.01) / 2
                loss.backward()
            note(loss)
        with t.no_grad():
            for p in (w, v, b):
                p -= 0.3 / (k + 1) * p.grad
    note(norms)
    note([w, v, b])
