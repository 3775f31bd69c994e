"""Rules of the partitioner of device groups, one by one (R3.14 to R3.22), on programs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401  (fills OPS)
import pytest
from profuse.dialect.analysis.device_partition import DeviceGroups, GroupNode, GroupOptions
from profuse.dialect.errors import IRError
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, I64, U8
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INTS, ScalarType, TensorType, Type
from profuse.dialect.passes.device_fuser.device_members import DeviceMembers, MemberOptions
from profuse.dialect.reasons import Kind

CUDA = TensorType(F32, (4, 8), "contiguous", "cuda:0")
HOST = TensorType(F32, (4, 8), "contiguous", "cpu")
HALF = TensorType(F32, (4, 4), None, "cuda:0")


class Graph:
    """A program under construction, and its groups by the names of their ops."""

    def __init__(self, *types: Type) -> None:
        self.program = Program("f")
        self.block = self.program.body
        self.block.args = tuple(map(self.program.new_value, types or (CUDA,)))
        self.labels: dict[int, str] = {}
        self.reasons: list[Any] = []

    def __call__(self, name: str, *operands: int, label: str = "", type: Any = CUDA, **attrs: Any) -> Any:
        types = type if isinstance(type, tuple) else (type,)
        results = tuple(map(self.program.new_value, types))
        blocks = attrs.pop("blocks", ())
        instr = Instr(op_named(name), operands, results, attrs, tuple(blocks))
        self.block.instrs.append(instr)
        self.labels[id(instr)] = label or name
        return results[0] if len(results) == 1 else results

    def returns(self, *values: int) -> Graph:
        self.block.outputs = values
        return self

    def inside(self, block: Block) -> Graph:
        inner = Graph.__new__(Graph)
        inner.program, inner.block, inner.labels, inner.reasons = self.program, block, self.labels, self.reasons
        return inner

    def partition(self, members: MemberOptions | None = None, **options: Any) -> DeviceGroups:
        membership = DeviceMembers(self.program, members or MemberOptions(), lambda i, r: self.reasons.append(r))
        partition = DeviceGroups(self.program, self.block, membership, GroupOptions(**options))
        partition.run()
        valid(self.program)
        return partition

    def nodes(self, members: MemberOptions | None = None, **options: Any) -> list[GroupNode]:
        return [node for node in self.partition(members, **options).nodes if node.is_group]

    def groups(self, members: MemberOptions | None = None, **options: Any) -> list[list[str]]:
        return [[self.labels.get(id(i), i.op.name) for i in node.members] for node in self.nodes(members, **options)]


def valid(program: Program) -> None:
    """Every value is made before it is read, once."""

    def check(block: Block, known: set[int]) -> None:
        known = known | set(block.args)
        for instr in block.instrs:
            assert known.issuperset(instr.operands), instr
            assert known.isdisjoint(instr.results)
            for inner in instr.blocks:
                check(inner, known)
            known.update(instr.results)
        assert known.issuperset(block.outputs)

    check(program.body, set())


# --- the fixpoint -------------------------------------------------------------------------------


def test_r3_14_what_a_single_scan_misses_ends_in_one_group():
    """g(f), l(h(f)): f moves behind g's place with h and l, and g joins in the next round."""
    g = Graph()
    (x,) = g.block.args
    f = g("tanh", x, label="f")
    one = g("exp", f, label="g")
    h = g("neg", f, label="h")
    last = g("abs", h, label="l")
    assert g.returns(one, last).groups(horizontal=False) == [["f", "h", "l", "g"]]


def test_r3_14_rounds_end_when_nothing_changes():
    g = Graph()
    (x,) = g.block.args
    for _ in range(40):
        x = g("tanh", x)
    partition = g.returns(x).partition()
    assert not partition.is_cut_short
    assert [len(node.members) for node in partition.nodes] == [40]


def test_r3_14_nested_blocks_have_groups_of_their_own():
    g = Graph(CUDA, BOOL_SCALAR)
    x, c = g.block.args
    then, other = Block(), Block()
    inner = g.inside(then)
    inner.returns(inner("exp", inner("tanh", x)))
    other.outputs = (x,)
    y = g("scf.if", c, blocks=(then, other))
    z = g("neg", g("abs", y))
    assert g.returns(z).groups() == [["abs", "neg"]]
    assert g.inside(then).groups() == [["tanh", "exp"]]


# --- which ops -----------------------------------------------------------------------------------


def test_r3_15_ops_of_the_host_are_grouped_only_if_asked_for():
    def graph(type_: TensorType) -> Graph:
        g = Graph(type_)
        return g.returns(g("exp", g("tanh", g.block.args[0], type=type_), type=type_))

    assert graph(HOST).groups() == []
    assert graph(HOST).groups(MemberOptions(host=True)) == [["tanh", "exp"]]
    assert graph(CUDA).groups() == [["tanh", "exp"]]
    unknown = TensorType(F32, (4, 8))
    assert graph(unknown).groups() == [["tanh", "exp"]], "no device is known"


def test_r3_15_a_number_on_the_host_does_not_make_an_op_one_of_the_host():
    scalar = TensorType(F32, (), "contiguous", "cpu")
    g = Graph(CUDA, scalar)
    x, s = g.block.args
    assert g.returns(g("mul", g("tanh", x), s)).groups() == [["tanh", "mul"]]
    g = Graph(scalar)
    assert g.returns(g("exp", g("tanh", *g.block.args, type=scalar), type=scalar)).groups() == []


def test_r3_15_old_devices_have_groups_of_elementwise_ops():
    def graph() -> Graph:
        g = Graph()
        y = g("exp", g("tanh", g.block.args[0]))
        return g.returns(g("sum", y, type=TensorType(F32, (), None, "cuda:0")))

    assert graph().groups(MemberOptions(capability=70)) == [["tanh", "exp", "sum"]]
    g = graph()
    assert g.groups(MemberOptions(capability=60)) == [["tanh", "exp"]]
    assert [(r.kind, r.op) for r in g.reasons] == [(Kind.OLD_DEVICE, "sum")]


def test_r3_15_a_producer_on_another_device_stays_apart():
    there = TensorType(F32, (4, 8), "contiguous", "cuda:1")
    g = Graph(CUDA, there)
    x, y = g.block.args
    a, b = g("tanh", x), g("tanh", y, type=there)
    c, d = g("exp", a), g("exp", b, type=there)
    g("add", c, d)
    assert g.returns(c, d).groups() == [["tanh", "exp"], ["tanh", "exp"]]
    assert Kind.DEVICES in {r.kind for r in g.reasons}


def test_r3_15_the_reserve_and_the_index_of_a_batch_norm_keep_it_from_no_group():
    x, c = replace(CUDA, shape=(2, 8, 3, 3)), replace(CUDA, shape=(8,))
    reserve = TensorType(U8, (0,), None, "cuda:0")
    g = Graph(x, c, c)
    t = g("tanh", g.block.args[0], type=x)
    types = (x, c, c, reserve, ScalarType(I64), c, c)
    results = g("batch_norm_index", t, *g.block.args[1:], type=types, training=True, given=3)
    y = g("relu", results[0], type=x)
    assert g.returns(y, *results[1:5]).groups() == [["tanh", "batch_norm_index", "relu"]]


def test_r3_13_what_nobody_has_observed_stays_outside():
    g = Graph(TensorType())
    y = g("exp", g("tanh", g.block.args[0], type=TensorType()), type=TensorType())
    assert g.returns(y).groups() == []
    assert {r.kind for r in g.reasons} == {Kind.UNKNOWN_OPERAND}


def test_r3_14_concatenation_and_chunks_take_part_only_if_asked_for():
    g = Graph(CUDA, CUDA)
    x, y = g.block.args
    wide = TensorType(F32, (8, 8), None, "cuda:0")
    z = g("concatenate", g("tanh", x), y, type=wide, axis=0)
    z = g("neg", g("exp", z, type=wide), type=wide)
    assert g.returns(z).groups() == [["exp", "neg"]]
    assert g.groups(MemberOptions(concat=True)) == [["tanh", "concatenate", "exp", "neg"]]


# --- merging ---------------------------------------------------------------------------------------


def test_r3_16_inputs_are_visited_last_first():
    """f(a, a + b): taken in the other order, a could not move over a + b."""
    g = Graph(CUDA, CUDA)
    x, b = g.block.args
    a = g("tanh", x, label="a")
    s = g("add", a, b, label="s")
    assert g.returns(g("mul", a, s, label="f")).groups(horizontal=False) == [["a", "s", "f"]]
    g = Graph(CUDA, CUDA, CUDA, CUDA)
    first, last = g("add", *g.block.args[:2], label="first"), g("add", *g.block.args[2:], label="last")
    g.returns(g("mul", first, last, label="f"))
    assert g.groups(horizontal=False, max_values=6) == [["last", "f"]], "there is room for one"


@pytest.mark.parametrize("writes", [True, False])
def test_r3_17_a_write_in_between_keeps_a_producer_where_it_is(writes):
    g = Graph()
    (x,) = g.block.args
    own = g("neg", x, label="own")
    read = g("tanh", own, label="read")
    g("add_" if writes else "add", own, x)
    again = g("exp", own, label="again")
    last = g("mul", read, again, label="last")
    groups = g.returns(last).groups(horizontal=False)
    # What reads before the write and what reads after it cannot be in one group.
    assert groups == ([["own", "read"], ["again", "last"]] if writes else [["own", "read", "again", "last", "add"]])


def test_r3_17_reads_move_over_writes_of_other_memory():
    g = Graph()
    (x,) = g.block.args
    own = g("neg", x, label="own")
    a = g("tanh", x, label="a")
    g("add_", own, x)
    assert g.returns(g("exp", a, label="b"), own).groups(horizontal=False) == [["a", "b"]]


def test_r3_17_views_of_what_is_written_stay_outside():
    g = Graph()
    (x,) = g.block.args
    own = g("neg", x)
    view = g("flip", own)
    y = g("exp", g("tanh", view))
    g("add_", own, x)
    assert g.returns(y).groups() == [["tanh", "exp"]]
    assert Kind.WRITTEN_VIEW in {r.kind for r in g.reasons}


def test_r3_17_128_values_of_both_pass_and_129_do_not():
    """Built from the last op on, a group of j ops has j + 1 operands and a result; the next op has three values."""

    def sizes(**options: int) -> list[int]:
        g = Graph(*[CUDA] * 131)
        y = g.block.args[0]
        for x in g.block.args[1:]:
            y = g("add", y, x)
        return [len(group) for group in g.returns(y).groups(**options)]

    assert sizes() == [6, 124], "123 ops and one more: 125 and 3 values; 124 and one more: 126 and 3"
    assert sizes(max_values=129) == [5, 125]
    assert sizes(max_values=127) == [7, 123]


def test_groups_have_no_more_ops_than_asked_for():
    g = Graph()
    (x,) = g.block.args
    for _ in range(10):
        x = g("tanh", x)
    partition = g.returns(x).partition(max_ops=4)
    assert [len(node.members) for node in partition.nodes] == [2, 4, 4]
    assert partition.is_limited
    assert not g.partition(max_ops=10).is_limited


def test_r3_17_a_value_that_both_read_counts_twice():
    g = Graph(CUDA, CUDA)
    x, y = g.block.args
    a = g("add", x, y)
    b = g("mul", a, x)
    assert g.returns(b).groups(max_values=6) == [["add", "mul"]], "3 of add, 3 of mul"
    assert g.groups(max_values=5) == []


def test_r3_18_a_producer_with_a_later_user_is_one_more_result():
    g = Graph()
    (x,) = g.block.args
    p = g("tanh", x)
    c = g("exp", p)
    s = g("concatenate", p, axis=0)
    (node,) = g.returns(c, s).nodes()
    assert node.results == [c, p]
    assert [i.op.name for i in node.members] == ["tanh", "exp"]


def test_r3_19_an_operand_that_a_member_makes_is_none_and_there_are_no_duplicates():
    g = Graph(CUDA, CUDA, CUDA)
    w, y, z = g.block.args
    x = g("tanh", w)
    s = g("mul", g("add", x, y), g("add", z, w))
    (node,) = g.returns(s).nodes()
    assert sorted(node.reads) == sorted([w, y, z])


def test_r3_19_a_conditional_constant_comes_with_its_observer():
    g = Graph(CUDA, INTS)
    x, axes = g.block.args
    y = g("tanh", x)
    seen = g("profile_value", axes, type=INTS, site=0)
    constant = g("constant", seen, type=INTS, value=(1,))
    out = TensorType(F32, (4,), None, "cuda:0")
    s = g("late", y, constant, type=out, op="sum", names=("axes",))
    (node,) = g.returns(s).nodes()
    assert [i.op.name for i in node.members] == ["tanh", "constant", "late"]
    assert node.reads == [x, seen]
    assert "constant" not in {i.op.name for i in g.block.instrs if i not in node.members}, "nobody reads the original"


def test_r3_19_a_constant_that_depends_on_anything_else_raises():
    g = Graph(CUDA, INTS)
    x, axes = g.block.args
    constant = g("constant", axes, type=INTS, value=(1,))
    g.returns(g("late", x, constant, type=CUDA, op="sum", names=("axes",)))
    with pytest.raises(IRError, match="no observer"):
        g.groups()


def test_r3_19_sizes_are_copied_into_every_group_that_reads_them():
    g = Graph()
    (x,) = g.block.args
    n = g("dim", x, type=ScalarType(I64), axis=1)
    a = g("div", g("tanh", x), n)
    s = g("concatenate", a, axis=0)
    b = g("div", g("exp", s), n)
    nodes = g.returns(b).nodes()
    assert [[i.op.name for i in node.members] for node in nodes] == [["tanh", "dim", "div"], ["exp", "dim", "div"]]
    assert x in nodes[1].reads, "the tensor of the size stands for the size"
    assert [i.op.name for i in g.block.instrs] == ["tanh", "dim", "div", "concatenate", "exp", "dim", "div"]


def test_r3_20_an_op_alone_is_a_group_with_the_switch_on():
    g = Graph()
    y = g("relu", g.block.args[0])
    g.returns(y)
    assert g.groups() == []
    assert g.groups(single=True) == [["relu"]]


def test_r3_20_no_group_is_made_of_an_op_without_an_input_in_the_block_nor_of_a_view():
    g = Graph(CUDA, BOOL_SCALAR)
    x, c = g.block.args
    then = Block()
    inner = g.inside(then)
    inner.returns(inner("relu", x))
    g.returns(g("scf.if", c, blocks=(then, Block(outputs=(x,)))))
    assert inner.groups(single=True) == []
    g = Graph()
    assert g.returns(g("flip", g.block.args[0])).groups(single=True) == []


def test_r3_21_ops_that_read_the_same_tensor_are_one_group_with_the_switch_on():
    g = Graph()
    (x,) = g.block.args
    g.returns(g("tanh", x), g("exp", x))
    assert g.groups(horizontal=False) == []
    assert g.groups() == [["tanh", "exp"]]


def test_r3_21_a_number_on_the_host_brings_nothing_together():
    scalar = TensorType(F32, (), "contiguous", "cpu")
    g = Graph(scalar, CUDA, CUDA)
    s, x, y = g.block.args
    g.returns(g("mul", x, s), g("mul", y, s))
    assert g.groups() == []


def test_r3_22_results_of_a_group_that_is_merged_come_behind_in_reverse():
    g = Graph(CUDA, CUDA)
    x, y = g.block.args
    a = g("tanh", x, label="a")
    b = g("exp", a, label="b")
    c = g("neg", b, label="c")
    d = g("add", g("abs", y, label="e"), c, label="d")
    (node,) = g.returns(a, b, d).nodes(horizontal=False)
    assert node.results == [d, b, a]


def test_r3_27_one_tensor_may_be_broadcast_in_two_ways_and_returned():
    """The optional rule that refuses such merges is not applied."""
    row, cube = replace(CUDA, shape=(8,)), replace(CUDA, shape=(3, 4, 8), strides=None)
    g = Graph(row, CUDA, cube)
    x, y, z = g.block.args
    t = g("tanh", x, type=row)
    a, b = g("add", t, y), g("mul", t, z, type=cube)
    assert sorted(*g.returns(t, a, b).groups()) == ["add", "mul", "tanh"]


def test_groups_of_views_alone_are_none():
    g = Graph()
    (x,) = g.block.args
    wide = TensorType(F32, (8, 4), None, "cuda:0")
    assert g.returns(g("transpose", g("flip", x), type=wide)).groups() == []


def test_views_that_are_no_group_find_the_sizes_that_they_read():
    """While the two views were a group, the size of the first stood behind them."""
    g = Graph()
    view = g("flip", *g.block.args)
    rows = g("dim", view, type=ScalarType(I64), axis=0)
    assert g.returns(g("reshape", view, rows, shape=(DYNAMIC, 8))).groups() == []
    assert [i.op.name for i in g.block.instrs] == ["flip", "dim", "reshape"]


def test_results_of_groups_are_said_to_be_in_c_order():
    g = Graph()
    (x,) = g.block.args
    turned = TensorType(F32, (8, 4), (1, 8), "cuda:0")
    y = g("transpose", g("tanh", x), type=turned)
    g.returns(y).groups()
    assert g.program.type_of(y).strides == "contiguous"


# --- all together ----------------------------------------------------------------------------------

UNARY = ["tanh", "neg", "abs", "flip", "cumsum", "concatenate"]


@pytest.mark.parametrize("seed", range(40))
def test_random_blocks_keep_what_they_compute(seed):
    """R3.17: run in the new order, groups and all, a block gives the same, writes included."""
    rng = random.Random(seed)
    types = [CUDA, TensorType(F32, (4, 8), "contiguous", "cuda:1")] if seed % 3 == 0 else [CUDA, CUDA]
    g = Graph(*types)
    values = {t.device: [v] for t, v in zip(types, g.block.args, strict=True)}
    values = values if len(values) > 1 else {"cuda:0": list(g.block.args)}
    own: dict[str, list[int]] = {device: [] for device in values}
    for _ in range(rng.randint(5, 40)):
        device = rng.choice(list(values))
        type_ = TensorType(F32, (4, 8), None, device)
        kind = rng.random()
        if kind < 0.15 and own[device]:
            g("add_", rng.choice(own[device]), rng.choice(values[device]), type=type_)
            continue
        if kind < 0.5:
            name = rng.choice(UNARY)
            value = g(name, rng.choice(values[device]), type=type_, **({"axis": 0} if name[0] == "c" else {}))
        else:
            name = rng.choice(["add", "mul", "maximum"])
            value = g(name, rng.choice(values[device]), rng.choice(values[device]), type=type_)
        values[device].append(value)
        if name != "flip" or rng.random() < 0.5:
            own[device].append(value)
    made = [v for vs in values.values() for v in vs]
    g.returns(*rng.sample(made, min(4, len(made))))
    arrays = [np.random.default_rng(seed + k).standard_normal((4, 8)).astype(np.float32) for k in range(2)]

    def run() -> list[np.ndarray]:
        env = dict(zip(g.block.args, (a.copy() for a in arrays), strict=True))
        for instr in g.block.instrs:
            out = instr.op.evaluate(instr.op.full_attrs(instr.attrs), *(env[v] for v in instr.operands))
            env.update(zip(instr.results, out if isinstance(out, tuple) else (out,), strict=True))
        return [np.array(env[v]) for v in g.block.outputs]

    before = run()
    groups = g.partition(max_values=rng.choice([6, 12, 128])).nodes
    for a, b in zip(before, run(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert seed or any(node.is_group for node in groups)


# --- views -----------------------------------------------------------------------------------------


def test_views_of_what_a_group_reads_are_no_results_of_it():
    """They stay views outside; members have their own. Views of what members make are results."""
    g = Graph()
    (x,) = g.block.args
    view = g("flip", x, label="view")
    y = g("tanh", view)
    later = g("flip", y)
    (node,) = g.returns(view, y, later).nodes()
    assert [i.op.name for i in g.block.instrs] == ["flip", "flip", "tanh", "flip"]
    assert [i.op.name for i in node.members] == ["flip", "tanh", "flip"]
    assert set(node.results) == {y, later}
    assert g.block.instrs[0].results == (view,)
    valid(g.program)


def test_copies_that_were_views_count_as_views():
    """R3.11, R3.12: in no group they become views again."""
    column = replace(CUDA, shape=(32, 1))
    g = Graph()
    a = g("reshape_copy", *g.block.args, type=column, shape=(32, 1), implicit=True)
    b = g("squeeze_copy", a, type=replace(CUDA, shape=(32,)), implicit=True)
    assert g.returns(b).groups(single=True) == []
    c = g("tanh", a, type=column)
    (node,) = g.returns(a, c).nodes()
    assert node.results == [c]
    g = Graph()
    a = g("reshape_copy", *g.block.args, type=column, shape=(32, 1))
    assert g.returns(a).groups(single=True) == [["reshape_copy"]], "a copy that was written"


def test_a_chain_of_views_that_members_do_not_read_is_outside_alone():
    g = Graph()
    (x,) = g.block.args
    a, b = g("chunk", g("flip", x), type=(HALF, HALF), axis=1, chunks=2)
    c = g("tanh", a, type=HALF)
    (node,) = g.returns(b, c).nodes(MemberOptions(leading_chunks=True))
    assert [i.op.name for i in g.block.instrs if i not in node.members] == ["flip", "chunk"]
    assert [i.op.name for i in node.members] == ["flip", "chunk", "tanh"]
    assert node.results == [c]
    g = Graph()
    d = g("flip", *g.block.args)
    e = g("exp", g("tanh", *g.block.args))
    (node,) = g.returns(d, e).nodes()
    assert [i.op.name for i in node.members] == ["tanh", "exp"]


def test_parts_of_arrays_that_loops_of_the_host_carry_are_written_in_place():
    """A kernel would copy the array in each round; evaluated, the op writes into it."""
    for type_, grouped in ((HOST, [["tanh", "exp"]]), (CUDA, [["tanh", "exp", "slice_scatter"]])):
        row = replace(type_, shape=(1, 8))
        g = Graph(type_, row, ScalarType(I64))
        x, y, n = g.block.args
        body = Block((g.program.new_value(ScalarType(I64)), g.program.new_value(type_)))
        inner = g.inside(body)
        part = inner("exp", inner("tanh", y, type=row), type=row)
        cut = {"axes": (0,), "starts": (0,), "stops": (1,)}
        inner.returns(inner("slice_scatter", body.args[1], part, type=type_, **cut))
        g.returns(g("scf.for", n, n, n, x, type=type_, blocks=(body,)))
        g.reasons.clear()
        assert inner.groups(MemberOptions(host=True)) == grouped
        assert (Kind.PART_OF_CARRIED in {r.kind for r in g.reasons}) == (type_ is HOST)
