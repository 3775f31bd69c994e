"""Loops that a trace records: one graph for all sizes and bounds, and Python's results."""

import copy

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import BoundsError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.python.users_code import generated_file
from profuse.dialect.importers.numpy.source.decisions import Decisions
from profuse.dialect.importers.numpy.source.source import ConvertedSource
from profuse.dialect.importers.numpy.tracing.recorder import Policy
from profuse.executor.interpret.evaluate import evaluate
from tracing import same

RNG = np.random.default_rng(0)
SIZES = (2, 1, 7, 0, 3)


def graphs(fn, calls, elements=True):
    """The graphs that calls need; each call must give what Python gives, effects included."""
    traces = []
    for args in calls:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        found = next((t for t in traces if t.accepts(list(mine))), None)
        if found is None:
            found = trace(fn, mine, loops=Policy(elements=elements), writes=True)
            traces.append(found)
        outputs = evaluate(found.module, [*mine, *found.captured])
        finals = outputs[len(outputs) - len(found.writes) :]
        for k, final in zip(found.writes, finals, strict=True):
            mine[k][...] = final
        leaves = [outputs[k] if k >= 0 else mine[~k] for k in found.sources or range(len(outputs))]
        same(found.out_tree.unflatten(leaves[: found.out_tree.leaves]), fn(*theirs))
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    return traces


def ops(traced):
    return [i.op.name for i in traced.module.main.body.walk()]


def one_graph(fn, calls, loop="for"):
    (found,) = graphs(fn, calls)
    assert loop in ops(found)
    assert not found.remarks, found.remarks
    return found


def left(fn, args, why, elements=True):
    """The trace of a loop that cannot be recorded; its rounds are, one by one."""
    (found,) = graphs(fn, [args], elements)
    assert "for" not in ops(found) and "while" not in ops(found)
    assert any(why in remark for remark in found.remarks), found.remarks
    return found


def vectors(*sizes):
    return [(RNG.random(n),) for n in sizes]


# --- `for` ---------------------------------------------------------------------------------------


def test_a_stencil_in_time_writes_its_arguments_in_place():
    def f(a, b, steps):
        for _ in range(steps):
            b[1:-1] = 0.5 * (a[:-2] + a[2:])
            a[1:-1] = 0.5 * (b[:-2] + b[2:])

    calls = [(RNG.random(n), RNG.random(n), t) for n, t in ((6, 3), (6, 0), (9, 1), (3, 7))]
    found = one_graph(f, calls)
    assert len(ops(found)) < 20


def test_the_graph_does_not_grow_with_the_rounds():
    def f(x, n):
        for i in range(n):
            x = np.sin(x) + i
        return x

    lengths = {len(ops(one_graph(f, [(np.ones(3), n)]))) for n in (1, 2, 50, 100_000)[:3]}
    assert len(lengths) == 1


def test_numbers_become_what_they_are_after_a_round():
    def f(x):
        total, count = 0, 0.0
        for i in range(len(x)):
            total = total + x[i]
            count = count + 1.0
        return total, count

    found = graphs(f, vectors(*SIZES))
    assert [len(t.guards) for t in found] == [1, 1]  # of no round the total is Python's 0


def test_a_number_that_becomes_an_array_takes_a_round_of_its_own():
    def f(x, n):
        total = 0.0
        for i in range(n):
            total = total + x * i
        return total

    assert len(graphs(f, [(np.ones(3), n) for n in SIZES])) == 2


def test_variables_after_the_loop():
    def f(x):
        for i in range(len(x)):
            y = x[i] * 2
        return i, y

    found = graphs(f, vectors(2, 1, 7))
    assert len(found) == 1
    with pytest.raises(UnboundLocalError):  # as in Python
        trace(f, (np.ones(0),), loops=Policy(elements=True))


def test_a_variable_keeps_its_value_where_there_is_no_round():
    def f(x, i):
        y = x * 3
        for i in range(len(x)):
            y = x + i
        return i, y

    graphs(f, [(RNG.random(n), 5) for n in SIZES])


def test_ranges_with_steps():
    def up(x):
        out = np.zeros(20)
        for i in range(1, len(x), 2):
            out[i] = i
        return out

    def down(x):
        out = np.zeros(20)
        k = 0.0
        for i in range(len(x) - 1, -1, -1):
            k = k * 0.5 + i
            out[i] = k
        return out

    def down_by_three(x):
        k = 0.0
        for i in range(len(x), 0, -3):
            k = k * 0.5 + i
        return k

    def turned(x):
        k = 0.0
        for i in reversed(range(1, len(x), 2)):
            k = k * 0.5 + i
        return k

    for fn in (up, down, down_by_three, turned):
        one_graph(fn, vectors(*SIZES, 8, 9))


def test_rows_enumerate_and_zip():
    def rows(x):
        total = np.zeros(3)
        for row in x:
            total += row * 2
        return total

    def counted(x, y):
        total = np.zeros(3)
        for k, (a, b) in enumerate(zip(x, y, strict=False), 2):
            total += k * a - b
        return total

    one_graph(rows, [(RNG.random((n, 3)),) for n in SIZES])
    one_graph(counted, [(RNG.random((n, 3)), RNG.random((m, 3))) for n, m in ((2, 3), (4, 1), (0, 2))])


def test_nested_loops_with_bounds_of_the_outer_index():
    def lu(a):
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                a[i, j] -= a[i, :j] @ a[:j, j]
                a[i, j] /= a[j, j]
            for j in range(i, n):
                a[i, j] -= a[i, :i] @ a[:i, j]

    def sums(a):
        n, m = a.shape
        total = 0.0
        for i in range(n):
            for j in range(i, m):
                if i == j:
                    total += a[i, j]
                else:
                    total -= a[i - 1, j]
        return total

    one_graph(lu, [(RNG.random((n, n)) + n * np.eye(n),) for n in SIZES])
    graphs(sums, [(RNG.random(shape),) for shape in ((2, 3), (1, 1), (4, 4), (3, 2))])


def test_slices_at_the_index_and_negative_indices():
    def f(x, w):
        out = np.zeros(len(x) - len(w) + 1)
        for i in range(len(out)):
            out[i] = x[i : i + len(w)] @ w + x[i - 1]
        return out

    one_graph(f, [(RNG.random(n), RNG.random(m)) for n, m in ((5, 2), (4, 4), (7, 1))])


def test_variables_that_change_places():
    def f(a, b, n):
        for _ in range(n):
            a, b = b + 1, a * 2
        return a, b

    one_graph(f, [(RNG.random(3), RNG.random(3), n) for n in SIZES])


def test_an_element_out_of_bounds():
    def f(x, n):
        total = 0.0
        for i in range(n):
            total += x[i]
        return total

    jitted = pf.jit(f)
    assert jitted(np.ones(3), 3) == 3.0
    with pytest.raises((IndexError, BoundsError)):
        jitted(np.ones(3), 4)
    assert jitted(np.ones(4), 4) == 4.0


def test_inner_functions_and_methods_are_converted_too():
    class Model:
        def __init__(self):
            self.w = np.ones(3)

        def go(self, x, n):
            for i in range(n):
                x = self.step(x) + i
            return x

        def step(self, x):
            for k in range(len(self.w)):
                x = x + self.w[k]
            return x

    model = Model()

    def f(x, n):
        return model.go(x, n)

    (found,) = graphs(f, [(np.ones(3), 2)])
    assert ops(found).count("for") == 2


def test_numbers_in_arrays_that_a_round_writes_are_no_constants():
    def f(x, n):
        count = np.array(0.0)
        hits = np.zeros(3)
        for _ in range(n):
            if count > 1:
                hits = hits + x
            count += 1
        return hits, count

    graphs(f, [(np.ones(3), n) for n in SIZES])


def test_a_list_of_a_range_that_ends_before_it_begins():
    def f(x, n):
        kept = []
        for i in range(1, n):
            kept.append(x[0] * i)  # noqa: PERF401
        return kept

    graphs(f, [(np.ones(3), n) for n in (20, 1, 0, -3)])


# --- what stays Python's -------------------------------------------------------------------------


def test_lists_that_rounds_change_in_other_ways():
    def f(x):
        out = [1.0]
        for i in range(len(x)):
            out.append(x[i])
            out.reverse()
        return out

    left(f, (np.ones(3),), "a list that its rounds append to is used in another way")


def test_lists_of_different_things():
    def f(x, n):
        parts = [1.0, 2.0, 5.0]
        for i in range(n):
            x = x + parts[i]
        return x

    left(f, (np.ones(3), 3), "number is needed")


def test_attributes():
    class Counter:
        def __init__(self):
            self.t, self.log = 0, ""

    counter = Counter()

    def f(x, n):
        for _ in range(n):
            counter.t += 1
            x = x + 1
        return x

    def g(x, n):
        for _ in range(n):
            counter.log += "."
            x = x + 1
        return x

    found = trace(f, (np.ones(3), 3), loops=Policy(), writes=True)
    assert ops(found).count("for") == 1 and ops(found).count("add") == 2
    found = trace(g, (np.ones(3), 3), loops=Policy(), writes=True)
    assert "for" not in ops(found)
    assert any("the attribute counter.log is changed" in r for r in found.remarks)
    assert (counter.t, counter.log) == (0, "")


def test_cells_of_inner_functions():
    def f(x, n):
        count = 0

        def step(y):
            nonlocal count
            count += 1
            return y + 1

        for _ in range(n):
            x = step(x)
        return x, count

    left(f, (np.ones(3), 4), "count is changed by a round")


def test_iterators_that_a_round_uses_up():
    def f(x, n):
        parts = iter([1.0, 2.0, 3.0, 4.0])
        for _ in range(n):
            x = x + next(parts)
        return x

    left(f, (np.ones(3), 4), "parts iterates over")


def test_other_types_in_each_round():
    def f(x, n):
        for _ in range(n):
            x = x[None]
        return x

    found = graphs(f, [(np.ones(3), 3)])
    assert "for" not in ops(found[0])


def test_caught_errors():
    def f(x, n):
        parts = [1.0, 2.0]
        for i in range(n):
            try:
                x = x + parts[i]
            except IndexError:
                x = x - 1
        return x

    left(f, (np.ones(3), 4), "is needed")


def test_few_rounds_of_python_are_recorded_one_by_one():
    def f(x):
        for i in range(3):
            x = x + i
        return x

    (found,) = graphs(f, vectors(3))
    assert "for" not in ops(found) and not found.remarks


def test_many_rounds_of_python_are_a_loop():
    def f(x):
        for i in range(100):
            x = x * 0.5 + i
        return x

    assert len(ops(one_graph(f, vectors(3)))) < 15


def test_a_jump_that_is_pythons():
    def f(x, n, flag):
        for i in range(n):
            x = x + i
            if flag:
                break
        return x

    graphs(f, [(np.ones(3), 4, True), (np.ones(3), 4, False), (np.ones(3), 0, True)])


def test_a_jump_out_of_a_branch_is_noticed_in_the_next_round(monkeypatch):
    asked = []
    begun = ConvertedSource.if_
    space = {"asked": asked, "begun": begun}  # this package's own code is not watched
    text = "def if_(*args): asked.append(1); return begun(*args)"
    exec(compile(text, generated_file("test"), "exec"), space)
    monkeypatch.setattr(ConvertedSource, "if_", space["if_"])

    def f(x, rounds):
        total = 0.0
        for _ in rounds:
            try:
                if x[0] > 3:
                    continue
            finally:
                total += 1
            total += x[1]
        return total

    with pytest.raises(TraceError, match="truth of an array's contents"):
        trace(f, (np.ones(3), [None] * 500), loops=Policy())
    assert len(asked) < 20


def test_a_trace_starts_anew_as_often_as_its_ops_allow():
    long, short = Decisions(), Decisions()
    assert [long.restart(5000) for _ in range(4)] == [True, True, False, False]
    assert [short.restart(10) for _ in range(41)] == [True] * 40 + [False]


def test_a_return_under_a_traced_condition():
    def f(x, n):
        for i in range(n):
            x = x + i
            if x.sum() > 3:
                return x * 2
        return x

    graphs(f, [(np.ones(3), 4), (np.zeros(3), 4), (np.zeros(3), 1), (np.ones(3), 0)])


def test_loops_over_elements_are_pythons_where_python_is_as_fast():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += np.sort(x[i : i + 1])[0] * x[i] * x[i] * i
        return total

    left(f, (np.ones(3),), "single elements", elements=False)
    with pytest.raises(TraceError, match="single elements"):
        trace(f, (np.ones(1000),), loops=Policy())
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(f)
        assert jitted(np.ones(1000)) == f(np.ones(1000))
        assert jitted.state().tier == "python" and "single elements" in jitted.explain()


# --- `if`, `while` and jumps ---------------------------------------------------------------------


def test_branches_in_loops():
    def f(x):
        y = np.zeros_like(x)
        positive = 0
        for i in range(len(x)):
            if x[i].sum() > 1:
                y[i] = x[i] * 2
                positive += 1
            elif x[i, 0] > 0.5:
                y[i] = -x[i]
        return y, positive

    one_graph(f, [(RNG.random((n, 2)),) for n in (*SIZES, 20)])


def test_the_largest_element():
    def f(x):
        best, at = -np.inf, -1
        for i in range(len(x)):
            if x[i] > best:
                best, at = x[i], i
        return best, at

    graphs(f, vectors(*SIZES, 30))


def test_while_on_data():
    def f(x):
        k = 0
        while x.sum() > 1:
            x = x * 0.5
            k += 1
        return x, k

    one_graph(f, [(np.full(n, 3.0),) for n in (4, 1, 9)], "while")


def test_while_on_numbers():
    def collatz(n):
        k = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            k += 1
        return k

    def many(x):
        k = 0
        while k < 100:
            x = x * 0.5 + k
            k += 1
        return x, k

    one_graph(collatz, [(n,) for n in (6, 1, 27)], "while")
    one_graph(many, vectors(3), "while")


def test_conditions_of_several_parts():
    def f(x, tol):
        err, rounds = 1.0, 0
        while err > tol and not rounds >= 50:
            y = x * 0.5 + 1
            err = np.abs(y - x).max()
            x = y
            rounds += 1
        return x, err, rounds

    def g(x):
        total = 0.0
        for i in range(len(x)):
            total = total + (x[i] if (0.2 < x[i] < 0.8 and i > 0) or i == 3 else -x[i])
        return total

    graphs(f, [(RNG.random(3), tol) for tol in (0.1, 1e-6, 2.0)])
    graphs(g, vectors(*SIZES, 9))


def test_break_and_continue():
    def f(x, limit):
        total = x[0] * 0  # an np.float64, as of Python's 0.0 the class would differ
        for i in range(len(x)):
            if x[i] < 0.5:
                continue
            total += x[i]
            if total > limit:
                break
        return total, i

    found = graphs(f, [(RNG.random(n), limit) for n in (5, 1, 9) for limit in (0.5, 2.0)])
    assert [t for t in found if "while" in ops(t)] == found and len(found) == 1


def test_break_of_while():
    def f(x):
        k = 0
        while True:
            x = x * 0.5
            k += 1
            if x.sum() < 1 or k > 40:
                break
        return x, k

    def g(x, n):
        k = 0
        while k < n:
            k += 1
            if x[k % 3] > 0.9:
                break
            x = x + 0.1
        return x, k

    graphs(g, [(RNG.random(3), n) for n in SIZES])
    graphs(f, [(RNG.random(3) * n,) for n in SIZES])


def test_the_break_of_a_loop_that_is_not_recorded():
    """A `break` under a traced condition cannot be left out when rounds are copied."""

    def f(x):
        out = {}
        for i in range(3):
            out[i] = i
            if x[i] > 0.5:
                break
        return out

    with pytest.raises(TraceError):
        trace(f, (np.array([0.1, 0.9, 0.1]),), loops=Policy(elements=True))


def test_min_and_max_of_elements():
    def edit(a, b):
        n, m = len(a), len(b)
        d = np.zeros((n + 1, m + 1))
        for i in range(n + 1):
            d[i, 0] = i
        for j in range(m + 1):
            d[0, j] = j
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cost = 0.0 if a[i - 1] == b[j - 1] else 1.0
                d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
        return d[n, m]

    one_graph(edit, [(RNG.integers(0, 3, n), RNG.integers(0, 3, m)) for n, m in ((4, 3), (1, 0), (6, 6))])


def test_bounds_in_arrays():
    def csr(data, columns, starts, x):
        y = np.zeros(len(starts) - 1)
        for i in range(len(y)):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += data[k] * x[columns[k]]
            y[i] = total
        return y

    one_graph(
        csr,
        [
            (RNG.random(6), RNG.integers(0, 4, 6), np.array([0, 2, 2, 3, 6]), RNG.random(4)),
            (RNG.random(3), RNG.integers(0, 4, 3), np.array([0, 2, 3]), RNG.random(4)),
        ],
    )


def test_one_plan_for_all_sizes():
    """Through the whole compiler: calls with other bounds need no trace of their own."""

    def f(x, n):
        y = x.copy()
        for i in range(n):
            if y.sum() > 4:
                y = y * 0.5
            else:
                y = y + i
        return y

    jitted = pf.jit(f)
    for n in (3, 0, 1, 7, 12):
        np.testing.assert_array_equal(jitted(np.ones(3), n), f(np.ones(3), n))
    counters = jitted.state().counters
    assert (counters["traces"], counters["python_calls"]) == (1, 0)
    assert jitted.state().tier == "optimized"


def test_ints_are_of_any_size():
    def f(x, n):
        product = 1
        for i in range(1, n + 1):
            product *= i
            x = x + 1
        return x, product

    jitted = pf.jit(f)
    for n in (3, 5, 30):
        assert jitted(np.ones(1), n) == f(np.ones(1), n)
    assert jitted.state().counters["traces"] == 1


def test_else_of_a_loop_that_is_left():
    def f(x, limit):
        for i in range(len(x)):
            if x[i] > limit:
                break
        else:
            x = x * 2
        return x

    graphs(f, [(RNG.random(3), limit) for limit in (0.0, 0.5, 0.9, 2.0)])


def test_off():
    def f(x, n):
        for i in range(n):
            x = x + i
        return x

    with pf.knobs.override(source_loops=False):
        jitted = pf.jit(f)
        for n in (1, 2, 3):
            jitted(np.ones(3), n)
    assert jitted.state().counters["traces"] == 3
