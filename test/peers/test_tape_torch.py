"""The tape against torch's: the same programs, the same values in the same order.

Each scenario is one function of a library, ours or torch's, that notes what happens; the notes are
compared. Skipped where torch is not installed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

SCENARIOS: list[tuple[str, Callable[..., Any]]] = []
DIFFERENCES: list[tuple[str, Callable[..., Any]]] = []
Notes = list[Any]
pytestmark = pytest.mark.filterwarnings("ignore:Using backward")  # torch's, of create_graph


class Ours:
    """What scenarios call, by the tape."""

    exp, sin, tanh, where, concatenate = np.exp, np.sin, np.tanh, np.where, np.concatenate
    stack, log = np.stack, np.log
    no_grad, enable_grad = pf.no_grad, pf.enable_grad
    saved_hooks = staticmethod(pf.saved_arrays_hooks)
    checkpoint = staticmethod(lambda f, *args: pf.checkpoint(f)(*args))

    @staticmethod
    def leaf(*values: Any, **how: Any) -> Any:
        return pf.array(np.array(values, float), requires_grad=True)

    @staticmethod
    def constant(*values: Any) -> Any:
        return pf.array(np.array(values, float))

    @staticmethod
    def plain(*values: Any) -> Any:
        return np.array(values, float)

    shared = staticmethod(lambda x: x)
    gradients = staticmethod(pf.gradients)

    @staticmethod
    def node(x: Any) -> Any:
        return x.node

    @staticmethod
    def post_accumulate(x: Any, hook: Any) -> Any:
        return x.register_post_accumulate_grad_hook(hook)


class Torchs:
    """What scenarios call, by torch."""

    exp, sin, tanh, where, concatenate = (torch.exp, torch.sin, torch.tanh, torch.where, torch.cat)
    stack, log = torch.stack, torch.log
    no_grad, enable_grad = torch.no_grad, torch.enable_grad
    saved_hooks = staticmethod(torch.autograd.graph.saved_tensors_hooks)

    @staticmethod
    def checkpoint(f: Any, *args: Any) -> Any:
        from torch.utils.checkpoint import checkpoint

        return checkpoint(f, *args, use_reentrant=False)

    @staticmethod
    def leaf(*values: Any) -> Any:
        return torch.tensor(np.array(values, float), requires_grad=True)

    @staticmethod
    def constant(*values: Any) -> Any:
        return torch.tensor(np.array(values, float))

    plain = constant
    shared = staticmethod(torch.from_numpy)

    @staticmethod
    def gradients(outputs: Any, inputs: Any, gradients: Any = None, **how: Any) -> Any:
        found = torch.autograd.grad(outputs, inputs, gradients, **how)
        return found[0] if isinstance(inputs, torch.Tensor) else found

    @staticmethod
    def node(x: Any) -> Any:
        return x.grad_fn

    @staticmethod
    def post_accumulate(x: Any, hook: Any) -> Any:
        return x.register_post_accumulate_grad_hook(hook)


def scenario(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a scenario."""
    SCENARIOS.append((fn.__name__, fn))
    return fn


def different(reason: str) -> Callable[..., Any]:
    """Enter a scenario in which torch's does something else, for this reason."""

    def enter(fn: Callable[..., Any]) -> Callable[..., Any]:
        DIFFERENCES.append((fn.__name__, fn))
        return fn

    assert reason
    return enter


def each(**cases: Any) -> Callable[..., Any]:
    """Enter a scenario several times, with another last argument."""

    def enter(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name, case in cases.items():
            SCENARIOS.append((f"{fn.__name__}-{name}", lambda t, note, c=case: fn(t, note, c)))
        return fn

    return enter


def number(x: Any) -> Any:
    """A note that can be compared: nested lists of numbers, or what is none."""
    if x is None or isinstance(x, (str, bool, int)):
        return x
    if isinstance(x, (tuple, list)):
        return [number(y) for y in x]
    x = x.detach() if hasattr(x, "detach") else x
    return np.asarray(x).tolist()


def fails(call: Callable[[], Any]) -> bool:
    """Whether a call raises an error."""
    try:
        call()
    except (RuntimeError, TypeError):
        return True
    return False


# --- accumulation ---------------------------------------------------------------------------------


@scenario
def grads_add_up_over_calls(t, note):
    x = t.leaf(1, 2, 3)
    for _ in range(3):
        (x * x).sum().backward()
        note(x.grad)
    x.grad = None
    (x * 2).sum().backward()
    note(x.grad)


@scenario
def an_array_used_twice(t, note):
    x = t.leaf(0.5, 2)
    y = t.exp(x)
    (y * y + y * x).sum().backward()
    note(x.grad)


@scenario
def a_leaf_that_nothing_depends_on(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    (x * 2).sum().backward()
    note(x.grad)
    note(y.grad)


@scenario
def a_gradient_that_is_given(t, note):
    x = t.leaf(1, 2, 3)
    (x * x).backward(t.plain(1, 0, -1))
    note(x.grad)
    note(fails(lambda: (x * x).backward(t.plain(1, 0))))
    note(fails(lambda: (x * x).backward()))


@scenario
def the_first_grad_is_not_the_gradient_that_is_given(t, note):
    x, g = t.leaf(1, 2), t.plain(3, 4)
    x.backward(g)
    g += 1
    note(x.grad)


@scenario
def one_gradient_for_two_leaves_is_not_shared(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    (x + y).backward(t.plain(1, 1))
    x.grad += 5
    note(y.grad)
    (x + y).backward(t.plain(1, 1))
    note(x.grad)
    note(y.grad)


@scenario
def a_user_sets_grad(t, note):
    x = t.leaf(1, 2)
    x.grad = t.constant(10, 20)
    (x * 3).sum().backward()
    note(x.grad)
    note(fails(lambda: setattr(x, "grad", t.constant(1, 2, 3))))


@scenario
def broadcast_operands(t, note):
    x, y = t.leaf(1, 2, 3), t.leaf([1.0], [2.0])
    (x * y).sum().backward()
    note(x.grad)
    note(y.grad)


@scenario
def chains_of_a_thousand_steps(t, note):
    x = t.leaf(0.1, 0.2)
    y = x
    for _ in range(3000):
        y = y * 1.0001
    y.sum().backward()
    note(x.grad)


# --- gradients of chosen arrays -------------------------------------------------------------------


@scenario
def chosen_inputs_leave_grad_alone(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    note(t.gradients((x * y).sum(), [x, y]))
    note(x.grad)


@scenario
def an_input_on_the_way(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    z = (y * y).sum()
    note(t.gradients(z, [y, x]))


@scenario
def an_input_that_is_the_output(t, note):
    x = t.leaf(1, 2)
    y = (x * 3).sum()
    note(t.gradients(y, [y]))


@scenario
def an_unused_input(t, note):
    x, y = t.leaf(1, 2), t.leaf(3)
    z = (x * 2).sum()
    note(fails(lambda: t.gradients(z, [y], retain_graph=True)))
    note(t.gradients(z, [y, x], allow_unused=True))


@scenario
def an_input_twice(t, note):
    x = t.leaf(1, 2)
    note(t.gradients((x * x).sum(), [x, x]))


@scenario
def several_outputs(t, note):
    x = t.leaf(1, 2)
    note(t.gradients([x * 2, x * x], [x], [t.plain(1, 1), t.plain(1, 10)]))


@scenario
def one_output_twice(t, note):
    x = t.leaf(1, 2)
    y = x * x
    note(t.gradients([y, y], [x], [t.plain(1, 1), t.plain(1, 10)]))


@scenario
def an_input_that_requires_no_gradient(t, note):
    x, c = t.leaf(1, 2), t.constant(1, 2)
    note(fails(lambda: t.gradients((x * c).sum(), [c])))


@scenario
def nodes_beside_the_way_are_not_freed(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    a, b = t.exp(x), t.exp(y)
    z = (a + b).sum()
    t.gradients(z, [x], retain_graph=True)
    note(t.gradients(b.sum(), [y]))


@scenario
def parts_that_are_not_run_do_not_call_hooks(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)
    y.register_hook(lambda g: note("y"))
    x.register_hook(lambda g: note("x"))
    note(t.gradients((x * y).sum(), [x]))


# --- retention ------------------------------------------------------------------------------------


@each(
    exp=lambda t, x: t.exp(x),
    mul=lambda t, x: x * x,
    tanh=lambda t, x: t.tanh(x),
    division=lambda t, x: 1 / x,
    power=lambda t, x: x**3,
)
def a_second_backward_fails(t, note, f):
    x = t.leaf(1, 2)
    y = f(t, x).sum()
    y.backward()
    note(fails(y.backward))
    note(x.grad)


@scenario
def what_keeps_nothing_runs_again(t, note):
    x = t.leaf(1, 2)
    y = (x + 1).sum()
    y.backward()
    note(x.grad)


@scenario
def retained_graphs_run_again(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    note(x.grad)
    note(fails(y.backward))


@scenario
def a_part_of_a_graph_that_was_freed(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x)
    a, b = (y * 2).sum(), (y * 3).sum()
    a.backward()
    note(fails(b.backward))
    note(x.grad)


@scenario
def leaves_alone_are_in_two_graphs(t, note):
    x = t.leaf(1, 2)
    (x * x).sum().backward()
    (x * x * x).sum().backward()
    note(x.grad)


# --- higher orders --------------------------------------------------------------------------------


@each(
    exp=lambda t, x: t.exp(x),
    sin=lambda t, x: t.sin(x),
    tanh=lambda t, x: t.tanh(x),
    product=lambda t, x: x * x * x,
    quotient=lambda t, x: 1 / (x + 2),
    power=lambda t, x: x**4,
    log=lambda t, x: t.log(x),
    chosen=lambda t, x: t.where(x > 1, x * x, x),
    maximum=lambda t, x: x * x[0],
)
def three_orders(t, note, f):
    x = t.leaf(0.7, 1.3)
    y = f(t, x).sum()
    for _ in range(3):
        (g,) = t.gradients(y, [x], create_graph=True, allow_unused=True)
        note(g)
        if not g.requires_grad:
            break
        y = g.sum()


@scenario
def a_penalty_of_gradients(t, note):
    w, x = t.leaf([0.3, -0.2], [0.5, 0.1]), t.leaf([1.0, 2.0], [0.5, -1.0])
    y = t.tanh(x @ w).sum()
    (g,) = t.gradients(y, [x], create_graph=True)
    (y + (g * g).sum()).backward()
    note(w.grad)
    note(x.grad)


@scenario
def grads_that_are_on_the_tape(t, note):
    x = t.leaf(1, 2)
    (x * x * x).sum().backward(create_graph=True)
    note(x.grad)
    note(x.grad.requires_grad)
    g, x.grad = x.grad, None
    g.sum().backward()
    note(x.grad)


@scenario
def without_create_graph_gradients_are_constants(t, note):
    x = t.leaf(1, 2)
    (g,) = t.gradients((x * x).sum(), [x])
    note(bool(getattr(g, "requires_grad", False)))


@scenario
def gradients_of_gradients_that_were_given(t, note):
    x, v = t.leaf(1, 2), t.leaf(3, 5)
    y = x * x
    (g,) = t.gradients(y, [x], v, create_graph=True)
    note(t.gradients(g.sum(), [v, x]))


# --- hooks ----------------------------------------------------------------------------------------


def noting(note, name):
    def hook(*args):
        note(name)
        note(list(args))

    return hook


@scenario
def tensor_hooks_of_a_leaf(t, note):
    x = t.leaf(1, 2)
    x.register_hook(noting(note, "one"))
    x.register_hook(lambda g: g * 10)
    x.register_hook(noting(note, "two"))
    (x * x).sum().backward()
    note(x.grad)


@scenario
def tensor_hooks_see_the_whole_gradient_once(t, note):
    x = t.leaf(1, 2)
    y = x * 2
    y.register_hook(noting(note, "y"))
    (y * y + t.exp(y)).sum().backward()


@scenario
def tensor_hooks_on_the_way(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    y.register_hook(lambda g: g * 0 + 1)
    (y * y).sum().backward()
    note(x.grad)


@scenario
def hooks_are_removed(t, note):
    x = t.leaf(1, 2)
    handle = x.register_hook(lambda g: g * 2)
    (x * 1).sum().backward()
    handle.remove()
    handle.remove()
    (x * 1).sum().backward()
    note(x.grad)


@scenario
def a_hook_that_removes_itself(t, note):
    x = t.leaf(1, 2)
    handles = []

    def hook(g):
        note("called")
        handles[0].remove()

    handles.append(x.register_hook(hook))
    x.register_hook(noting(note, "next"))
    for _ in range(2):
        (x * 1).sum().backward()


@scenario
def hooks_of_what_requires_no_gradient(t, note):
    x = t.constant(1, 2)
    note(fails(lambda: x.register_hook(print)))
    note(fails(lambda: x.retain_grad()))


@scenario
def node_hooks(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 5)
    z = x * y
    t.node(z).register_hook(noting(note, "post"))
    t.node(z).register_prehook(noting(note, "pre"))
    z.register_hook(noting(note, "tensor"))
    z.sum().backward()
    note(x.grad)


@scenario
def node_hooks_replace(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 5)
    z = x * y
    t.node(z).register_prehook(lambda gs: (gs[0] * 2,))
    t.node(z).register_hook(lambda found, gs: (found[0] + 1, found[1]))
    z.sum().backward()
    note(x.grad)
    note(y.grad)


@scenario
def node_hooks_must_return_as_many(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 5)
    z = x * y
    t.node(z).register_hook(lambda found, gs: (found[0],))
    note(fails(z.sum().backward))


@scenario
def post_accumulate_hooks(t, note):
    x = t.leaf(1, 2)
    t.post_accumulate(x, lambda p: note([p, p.grad]))
    x.register_hook(noting(note, "tensor"))
    for _ in range(2):
        (x * x).sum().backward()


@scenario
def post_accumulate_hooks_update(t, note):
    x = t.leaf(1, 2)

    def step(p):
        with t.no_grad():
            p -= 0.1 * p.grad
        p.grad = None

    t.post_accumulate(x, step)
    for _ in range(3):
        (x * x).sum().backward()
        note(x)
        note(x.grad)


@scenario
def post_accumulate_hooks_are_for_leaves(t, note):
    x = t.leaf(1, 2)
    note(fails(lambda: t.post_accumulate(x * 2, print)))


@scenario
def all_kinds_of_hooks_in_order(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x)
    z = y * y
    z.retain_grad()
    for name, a in (("x", x), ("y", y), ("z", z)):
        a.register_hook(noting(note, f"tensor {name}"))
    for name, a in (("z", z), ("y", y)):
        t.node(a).register_hook(noting(note, f"post {name}"))
        t.node(a).register_prehook(noting(note, f"pre {name}"))
        t.node(a).register_prehook(noting(note, f"pre again {name}"))
    t.post_accumulate(x, lambda p: note("accumulated"))
    z.sum().backward()
    note(z.grad)
    note(x.grad)


@scenario
def hooks_with_create_graph(t, note):
    x = t.leaf(1, 2)
    x.register_hook(lambda g: note(bool(getattr(g, "requires_grad", False))))
    x.register_hook(lambda g: g * x)
    (x * x).sum().backward(create_graph=True)
    note(x.grad)
    note(t.gradients(x.grad.sum(), [x]))


@scenario
def hooks_of_chosen_inputs_count(t, note):
    x = t.leaf(1, 2)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    note(t.gradients((y * y).sum(), [y], retain_graph=True))
    note(t.gradients((y * y).sum(), [x]))


@scenario
def prehooks_of_chosen_inputs_do_not(t, note):
    x = t.leaf(1, 2)
    y = x * 2
    t.node(y).register_prehook(lambda gs: (gs[0] * 10,))
    note(t.gradients((y * y).sum(), [y], retain_graph=True))
    note(t.gradients((y * y).sum(), [x]))


@scenario
def hooks_of_the_root(t, note):
    x = t.leaf(1, 2)
    y = (x * x).sum()
    y.register_hook(lambda g: g * 3)
    y.backward()
    note(x.grad)


@scenario
def hooks_before_a_write_belong_to_the_old_elements(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    y.register_hook(noting(note, "before"))
    y *= 3
    y.register_hook(noting(note, "after"))
    y.sum().backward()


@scenario
def hooks_that_fail(t, note):
    x = t.leaf(1, 2)

    def hook(g):
        raise RuntimeError("from the hook")

    handle = x.register_hook(hook)
    note(fails((x * x).sum().backward))
    handle.remove()
    (x * x).sum().backward()
    note(x.grad)


# --- retain_grad ----------------------------------------------------------------------------------


@scenario
def retained_gradients(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward()
    note(y.grad)
    note(x.grad)


@scenario
def retained_gradients_add_up(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    for _ in range(2):
        (y * y).sum().backward(retain_graph=True)
    note(y.grad)


@scenario
def retained_gradients_come_after_hooks(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 100)
    (y * y).sum().backward()
    note(y.grad)


@scenario
def retained_gradients_of_written_arrays(t, note):
    x = t.leaf(1, 2)
    y = x * 3
    y.retain_grad()
    y *= 2
    (y * y).sum().backward()
    note(y.grad)
    note(x.grad)


@scenario
def retaining_the_gradient_of_a_leaf(t, note):
    x = t.leaf(1, 2)
    x.retain_grad()
    (x * 2).sum().backward()
    note(x.grad)


# --- writes and versions --------------------------------------------------------------------------


@each(
    mul=lambda t, y: y * y,
    exp=lambda t, y: t.exp(y),
    sin=lambda t, y: t.sin(y),
    power=lambda t, y: y**3,
    log=lambda t, y: t.log(y),
)
def a_write_to_a_saved_operand(t, note, f):
    x = t.leaf(1, 2)
    y = x * 1
    z = f(t, y).sum()
    y += 1
    note(fails(z.backward))


@each(
    add=lambda t, y: y + 1,
    sub=lambda t, y: 1 - y,
    scale=lambda t, y: y * 2,
    neg=lambda t, y: -y,
    total=lambda t, y: y.sum(),
    reshaped=lambda t, y: y.reshape(2, 1) + 0,
    exp=lambda t, y: t.exp(y),
    tanh=lambda t, y: t.tanh(y),
)
def a_write_to_an_operand_that_is_not_saved(t, note, f):
    x = t.leaf(1, 2)
    y = x * 1
    z = f(t, y).sum()
    if f(t, y) is None:
        return
    y *= 5
    z.backward()
    note(x.grad)


@each(exp=lambda t, y: t.exp(y), tanh=lambda t, y: t.tanh(y))
def a_write_to_a_saved_result(t, note, f):
    x = t.leaf(1, 2)
    y = f(t, x)
    z = (y + 0).sum()
    y += 1
    note(fails(z.backward))


@scenario
def writes_to_leaves(t, note):
    x = t.leaf(1, 2)

    def write():
        nonlocal x
        x += 1

    note(fails(write))

    def put():
        x[0] = 3

    note(fails(put))
    note(x)


@scenario
def writes_to_views_of_leaves(t, note):
    x = t.leaf(1, 2)
    v = x[:1]

    def write():
        nonlocal v
        v += 1

    note(fails(write))


@scenario
def updates_under_no_grad(t, note):
    x = t.leaf(1, 2)
    (x * x).sum().backward()
    with t.no_grad():
        x -= 0.5 * x.grad
    note(x)
    note(x.requires_grad)
    x.grad = None
    (x * x).sum().backward()
    note(x.grad)


@scenario
def an_update_between_forward_and_backward(t, note):
    x = t.leaf(1, 2)
    y = (x * x).sum()
    with t.no_grad():
        x += 1
    note(fails(y.backward))


@each(
    add=lambda y, x: y.__iadd__(x),
    sub=lambda y, x: y.__isub__(x),
    mul=lambda y, x: y.__imul__(x),
    div=lambda y, x: y.__itruediv__(x),
)
def in_place_operators(t, note, f):
    x, w = t.leaf(1, 2), t.leaf(3, 5)
    y = x + 0
    f(y, w + 0)
    note(y)
    y.sum().backward()
    note(x.grad)
    if f(t.constant(4.0), t.constant(2.0)) is not None and number(w.grad) is not None:
        note(w.grad)


@scenario
def writes_at_indices(t, note):
    x, w = t.leaf(1, 2, 3), t.leaf(10, 20)
    y = x * 1
    y[0] = w[1]
    y[1:] = w * w
    y[-1] = 0
    (y * y).sum().backward()
    note(y)
    note(x.grad)
    note(w.grad)


@scenario
def writes_to_constants(t, note):
    w = t.leaf(10, 20)
    y = t.constant(0, 0, 0)
    y[1:] = w
    y[0] = w[0] * 2
    note(y.requires_grad)
    (y * y).sum().backward()
    note(w.grad)


@scenario
def writes_through_views(t, note):
    x = t.leaf(1, 2, 3, 4)
    y = x * 1
    v = y.reshape(2, 2)
    v[0] *= x[2:]
    v += 1
    note(y)
    (y * y).sum().backward()
    note(x.grad)


@scenario
def views_see_writes_to_the_base(t, note):
    x = t.leaf(1, 2, 3, 4)
    y = x * 1
    v, u = y[1:3], y[::2]
    y *= x
    note(v)
    (v * v).sum().backward(retain_graph=True)
    note(x.grad)
    x.grad = None
    (u * 3).sum().backward()
    note(x.grad)


@scenario
def views_see_writes_through_other_views(t, note):
    x = t.leaf(1, 2, 3, 4)
    y = x * 1
    v, u = y[:3], y[1:]
    v *= 10
    note(u)
    (u * u).sum().backward()
    note(x.grad)


@scenario
def views_of_views(t, note):
    x = t.leaf([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    y = x * 1
    v = y[1][1:]
    v *= 3
    y[:, 0] += 1
    note(y)
    (y * y).sum().backward()
    note(x.grad)


@scenario
def transposed_views(t, note):
    x = t.leaf([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    y = x * 1
    v = y.T
    v[1:] *= 2
    v[0] = x[:, 2]
    note(y)
    (y * y * y).sum().backward()
    note(x.grad)


@scenario
def loops_of_writes(t, note):
    x = t.leaf(0.5, 1.0, 1.5, 2.0)
    y = x * 1
    for k in range(1, 4):
        y[k] = y[k - 1] * 3 + x[k] * x[0]
    note(y)
    (y * y).sum().backward()
    note(x.grad)


@scenario
def a_saved_base_and_a_write_through_a_view(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    z = (y * y).sum()
    y[:1] += 1
    note(fails(z.backward))


@scenario
def a_saved_view_and_a_write_to_the_base(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    v = y[:1]
    z = (v * v).sum()
    y += 1
    note(fails(z.backward))


@scenario
def writes_to_detached_arrays_count(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    z = (y * y).sum()
    d = y.detach()
    d += 1
    note(y)
    note(fails(z.backward))


@scenario
def writes_and_higher_orders(t, note):
    x = t.leaf(1, 2, 3)
    y = x * x
    y[1:] *= x[:2]
    (g,) = t.gradients((y * y).sum(), [x], create_graph=True)
    note(g)
    note(t.gradients((g * g).sum(), [x]))


@scenario
def writes_by_a_mask(t, note):
    x = t.leaf(1, -2, 3)
    y = x * 1
    y[y < 0] = 0.5
    (y * y).sum().backward()
    note(x.grad)


@scenario
def elements_that_were_overwritten_have_no_gradient(t, note):
    x = t.leaf(1, 2)
    y = x * 5
    y[0] = 7
    y.sum().backward()
    note(x.grad)


# --- modes and flags ------------------------------------------------------------------------------


@scenario
def modes(t, note):
    x = t.leaf(1, 2)
    with t.no_grad():
        y = x * 2
        with t.enable_grad():
            z = x * 3
    for a in (x, y, z, x.detach(), z.detach(), x * 2):
        note(bool(a.requires_grad))
        note(bool(a.is_leaf))


@scenario
def decorators(t, note):
    @t.no_grad()
    def quiet(x):
        return x * 2

    x = t.leaf(1, 2)
    note(bool(quiet(x).requires_grad))
    note(bool((x * 2).requires_grad))


@scenario
def flags_of_leaves_are_set(t, note):
    x = t.constant(1, 2)
    x.requires_grad = True
    (x * x).sum().backward()
    note(x.grad)
    x.requires_grad = False
    note(bool((x * 2).requires_grad))
    y = t.leaf(1) * 2
    note(fails(lambda: setattr(y, "requires_grad", False)))


@scenario
def integers_and_comparisons(t, note):
    x = t.leaf(1, 2)
    note(bool((x > 1).requires_grad))


@scenario
def constants_have_no_grad(t, note):
    x, c = t.leaf(1, 2), t.constant(3, 4)
    (x * c).sum().backward()
    note(c.grad)
    note(x.grad)


@scenario
def detached_parts(t, note):
    x = t.leaf(1, 2)
    y = x * x
    (y.detach() * x).sum().backward()
    note(x.grad)


@scenario
def backward_of_what_requires_no_gradient(t, note):
    note(fails(t.constant(1, 2).sum().backward))
    x = t.leaf(1, 2)
    with t.no_grad():
        y = x.sum()
    note(fails(y.backward))


@scenario
def backward_of_a_leaf(t, note):
    x = t.leaf(1, 2)
    x.backward(t.plain(1, 2))
    x.backward(t.plain(1, 2))
    note(x.grad)


# --- reentrance, threads, saved arrays ------------------------------------------------------------


@scenario
def backward_in_a_hook(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)

    def hook(g):
        with t.enable_grad():
            (y * y * 2).sum().backward()
        note(y.grad)

    x.register_hook(hook)
    (x * x).sum().backward()
    note(x.grad)


@scenario
def backward_of_the_same_leaf_in_a_hook(t, note):
    x = t.leaf(1, 2)
    z = x * x
    state = []

    def hook(g):
        if not state:
            state.append(1)
            with t.enable_grad():
                (x * 10).sum().backward()

    z.register_hook(hook)
    z.sum().backward()
    note(x.grad)


@scenario
def gradients_in_a_post_accumulate_hook(t, note):
    x, y = t.leaf(1, 2), t.leaf(3, 4)

    def hook(p):
        with t.enable_grad():
            note(t.gradients((y * p).sum(), [y]))

    t.post_accumulate(x, hook)
    (x * x).sum().backward()


@scenario
def modes_in_hooks(t, note):
    x = t.leaf(1, 2)
    x.register_hook(lambda g: note(bool((x * 2).requires_grad)))
    (x * x).sum().backward()
    (x * x).sum().backward(create_graph=True)


@scenario
def threads_with_graphs_of_their_own(t, note):
    found = [None] * 4

    def work(k):
        x = t.leaf(1.0, k)
        for _ in range(20):
            y = t.exp(x * 0.1)
            y = y * y
            y.sum().backward()
        found[k] = x.grad

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note(found)


@scenario
def modes_belong_to_threads(t, note):
    x = t.leaf(1, 2)
    with t.no_grad():
        thread = threading.Thread(target=lambda: note(bool((x * 2).requires_grad)))
        thread.start()
        thread.join()


@scenario
def threads_that_add_to_one_leaf(t, note):
    x = t.leaf(1, 2)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note(x.grad)


@scenario
def saved_arrays_are_packed(t, note):
    x = t.leaf(1, 2)
    packed = []

    def pack(a):
        packed.append(number(a))
        return len(packed) - 1

    def unpack(k):
        note(f"unpack {k}")
        return t.constant(*packed[k])

    with t.saved_hooks(pack, unpack):
        y = t.exp(x)
        z = (y * 2).sum()
    note(packed)
    z.backward()
    note(x.grad)


@scenario
def packed_arrays_can_be_changed(t, note):
    x = t.leaf(1, 2)
    with t.saved_hooks(lambda a: a * 1, lambda a: a * 10):
        y = (x * x).sum()
    y.backward()
    note(x.grad)


@scenario
def inner_packing_counts(t, note):
    x = t.leaf(1, 2)
    with t.saved_hooks(lambda a: note("outer") or a * 1, lambda a: a):
        with t.saved_hooks(lambda a: note("inner") or a * 1, lambda a: a):
            t.exp(x)
        t.exp(x)
    t.exp(x)


@scenario
def checkpointed_functions(t, note):
    x, w = t.leaf(1, 2), t.leaf(0.5, 0.25)
    calls = []

    def f(x):
        calls.append(1)
        return t.tanh(t.sin(x) * w)

    t.checkpoint(f, x).sum().backward()
    note(len(calls))
    note(x.grad)
    note(w.grad)


# --- the order of nodes ---------------------------------------------------------------------------


@scenario
def branches_are_run_from_the_latest_on(t, note):
    x = t.leaf(1, 2)
    a, b, c = x * 2, x * 3, x * 5
    d = a * b
    e = d + c
    for name, v in zip("abcdex", (a, b, c, d, e, x), strict=True):
        v.register_hook(lambda g, name=name: note(name))
    e.sum().backward()


@scenario
def leaves_accumulate_as_soon_as_they_are_ready(t, note):
    x, y, z = t.leaf(1, 2), t.leaf(1, 3), t.leaf(1, 4)
    for name, v in zip("xyz", (x, y, z), strict=True):
        t.post_accumulate(v, lambda p, name=name: note(name))
    u = x * y
    v = u * z
    u.register_hook(lambda g: note("u"))
    v.register_hook(lambda g: note("v"))
    (v + y).sum().backward()


@scenario
def the_order_of_a_diamond(t, note):
    x = t.leaf(1, 2)
    y = t.exp(x)
    left, right = t.sin(y), t.tanh(y)
    out = left * right
    for name, v in (("x", x), ("y", y), ("left", left), ("right", right), ("out", out)):
        t.node(v).register_prehook(lambda g, name=name: note(name)) if v is not x else (
            t.post_accumulate(x, lambda p: note("x"))
        )
    out.sum().backward()


@scenario
def several_roots_in_order(t, note):
    x = t.leaf(1, 2)
    a = x * 2
    b = t.exp(x)
    for name, v in (("a", a), ("b", b)):
        v.register_hook(lambda g, name=name: note(name))
    note(t.gradients([a, b], [x], [t.plain(1, 1), t.plain(1, 1)]))


@scenario
def conversion_to_numpy(t, note):
    note(fails(lambda: np.asarray(t.leaf(1, 2))))


# --- what differs ---------------------------------------------------------------------------------


@different("the gradient of an input that is on the way to others is that after its hooks, always")
def hooks_of_chosen_inputs_on_the_way(t, note):
    x = t.leaf(1, 2)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    note(t.gradients((y * y).sum(), [y, x]))


@different("an element that is read is a copy, so that writes to others do not reach it")
def loops_of_writes_of_products(t, note):
    x = t.leaf(0.5, 1.0, 1.5, 2.0)
    y = x * 1
    for k in range(1, 4):
        y[k] = y[k - 1] * y[k] + x[k]
    note(fails((y * y).sum().backward))


@different("the rule of a quotient reads the divisor; torch's reciprocal reads the result")
def a_write_to_a_divisor(t, note):
    x = t.leaf(1, 2)
    y = x * 1
    z = (1 / y).sum()
    y += 1
    note(fails(z.backward))


@different("hooks that are registered in a backward run count from the next, as in compiled ones")
def hooks_registered_in_a_run(t, note):
    x = t.leaf(1, 2)
    y = x * 2
    z = y * 3
    z.register_hook(lambda g: y.register_hook(lambda g: note("called")) and None)
    z.sum().backward()


@different("a write to memory that a constant of the gradient has is seen, or the constant is kept")
def writes_to_numpy_operands(t, note):
    x, c = t.leaf(1, 2), t.shared(np.array([3.0, 4.0]))
    y = (x * c).sum()
    np.asarray(c)[...] = 0
    y.backward()
    note(x.grad)


def _played(library: Any, fn: Callable[..., Any]) -> Notes:
    found: Notes = []
    fn(library, lambda x: found.append(number(x)))
    return found


def _agree(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_agree, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-9, atol=0))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("name", "fn"), SCENARIOS, ids=[name for name, _ in SCENARIOS])
def test_the_same_happens(name, fn):
    ours, theirs = _played(Ours, fn), _played(Torchs, fn)
    assert ours and _agree(ours, theirs), f"ours {ours}, torch's {theirs}"


@pytest.mark.parametrize(("name", "fn"), DIFFERENCES, ids=[name for name, _ in DIFFERENCES])
def test_these_are_the_differences(name, fn):
    ours, theirs = _played(Ours, fn), _played(Torchs, fn)
    assert not _agree(ours, theirs), "the two agree now: it belongs to the scenarios"


def test_there_are_many():
    assert len(SCENARIOS) >= 80
