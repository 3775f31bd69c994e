"""Regions of compiled autograd, ours and torch's, and both eager tapes: the same observations.

Each scenario of `region_hooks`, `region_programs` and `region_scopes` is played five times: on
torch's eager tape, captured by torch, on the tape, and captured, with the graph interpreted and
compiled; then captured in the background, with the switch in the middle. Where torch's captured
runs do otherwise, `region.DIFFERENCES` says why; `LABELS` says so of labels of nodes.
"""

from __future__ import annotations

import re

import numpy as np
import profuse as pf
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import region_hooks  # noqa: F401 - enters scenarios
import region_programs  # noqa: F401
import region_scopes  # noqa: F401
from profuse.dialect.ops.backward import LISTS, CallHook
from profuse.executor.backward.compile import compiled
from region import DIFFERENCES, SCENARIOS, interpreted, noted, ours, played, torchs, uncompiled
from test_tape_torch import _agree

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = pytest.mark.parametrize("name", SCENARIOS)


def differs(name, what):
    return DIFFERENCES.get(name, ("",))[0] == what


def test_there_are_many():
    assert len(SCENARIOS) >= 60 and set(DIFFERENCES) < set(SCENARIOS)
    assert len(DIFFERENCES) <= len(SCENARIOS) // 6


@NAMES
def test_captured_runs_do_what_those_of_torch_do(name):
    wanted, theirs = played(torchs(True), SCENARIOS[name])
    found, captures = played(ours(True), SCENARIOS[name])
    assert found and captures
    if differs(name, "notes"):
        assert not _agree(found, wanted), "the two agree now: it is no difference any more"
    else:
        assert _agree(found, wanted), f"ours {found}, torch's {wanted}"
    if differs(name, "captures"):
        assert captures != theirs, "the two agree now: it is no difference any more"
    elif not differs(name, "notes"):
        assert captures == theirs


@NAMES
def test_captured_runs_do_what_the_eager_tapes_do(name):
    """Bit for bit what ours does, where it is interpreted."""
    wanted, none = played(ours(False), SCENARIOS[name])
    assert not any(none)
    found, _ = played(ours(True), SCENARIOS[name])
    assert found == wanted
    assert _agree(wanted, played(torchs(False), SCENARIOS[name])[0]) is (name not in EAGER)


@NAMES
def test_compiled_graphs_do_what_interpreted_ones_do(name):
    """Up to what kernels round otherwise than NumPy."""
    wanted, captures = played(ours(True), SCENARIOS[name])
    with pf.knobs.override(background=False):
        found, own = played(ours(True, compiled), SCENARIOS[name])
    assert _near(found, wanted), f"compiled {found}, interpreted {wanted}"
    assert own == captures


@pytest.mark.sampled(6)
@NAMES
def test_runs_that_are_captured_beside_the_program_do_what_the_eager_tape_does(name):
    """The first ones are eager, then one is profiled, then there are kernels: three plays of one program."""
    wanted, none = played(ours(False), SCENARIOS[name])
    assert not any(none)
    pf.compiled_autograd.reset()
    with pf.knobs.override(background=True):
        for play in range(3):
            found = noted(ours(True, compiled, waits=True), SCENARIOS[name])
            assert _near(found, wanted), f"play {play}: {found}, on the tape {wanted}"
    pf.compiled_autograd.reset()


def _near(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-12, atol=1e-15))
    return type(a) is type(b) and a == b


EAGER = {"a_hook_that_adds_a_post_accumulate_hook": "hooks that are added in a run count from the next"}
"""Scenarios in which the two eager tapes differ, and why."""


# --- labels of nodes ------------------------------------------------------------------------------

_ORDER = "torch's captured runs take the edge that was met last first; ours take nodes as eager runs"
_OPS = "other operations, or other names: square for power, pick for select, a conform before a write"
_LEAVES = "torch captures the leaves of gradients that are handed back"
LABELS = (
    dict.fromkeys(
        (
            "nodes_of_a_diamond",
            "the_branch_that_was_made_last_runs_first",
            "detached_parts",
            "posthooks_replace_what_the_node_has_computed",
            "a_hook_that_adds_a_post_accumulate_hook",
            "gradients_are_not_shared_between_leaves",
            "a_function_that_gives_no_gradient_for_an_argument",
            "gradients_of_hooks_are_those_of_their_place",
        ),
        _ORDER,
    )
    | dict.fromkeys(
        (
            "hooks_around_a_write",
            "another_axis",
            "gradients_of_gradients",
            "gradients_of_gradients_in_the_region",
            "slices_and_rows",
            "transposes_and_reshapes",
            "writes_in_place",
            "writes_into_views",
            "joined_and_chosen_elements",
        ),
        _OPS,
    )
    | dict.fromkeys(("gradients_that_are_wanted", "two_roots_at_once"), _LEAVES)
)
"""Scenarios in which labels of nodes, or the order of hooks in the graph, differ, and why."""
_NAMES = {"mm": "matmul", "accumulategrad": "accumulate_grad"}


def first_graph(side, name, compiler):
    graphs = []
    played(side(True, lambda graph: (graphs.append(graph), compiler(graph))[1]), SCENARIOS[name])
    return graphs[0]


def labels(texts):
    """Numbers and names of nodes, in the order in which they are met."""
    found = [re.search(r"([\w:]+) \(NodeCall (\d+)\)", text or "") for text in texts]
    return list(dict.fromkeys((int(m[2]), m[1]) for m in found if m))


def torchs_labels(graph):
    """Numbered from 0 as ours, which do not count the root of the graph."""
    for number, name in labels(node.stack_trace for node in graph.graph.nodes):
        name = re.sub(r"^torch::autograd::|Backward\d*$", "", name).lower()
        if number > 0:
            yield number - 1, _NAMES.get(name, name)


def our_labels(instrs):
    for number, name in labels(instr.attrs.get("origin") for instr in instrs):
        yield number, name.removesuffix("_backward").lower()


@NAMES
def test_nodes_are_labelled_and_hooks_placed_as_by_torch(name):
    """R4.13, R4.14, R4.17, R4.26."""
    graph = first_graph(torchs, name, uncompiled)
    made = first_graph(ours, name, interpreted)
    instrs = made.module.main.body.instrs
    wanted, found = list(torchs_labels(graph)), list(our_labels(instrs))
    kinds = re.findall(r"hook_type: (\w+)", str(graph.graph))
    own = [instr.attrs["hook_type"] for instr in instrs if instr.op is CallHook]
    assert wanted and found and sorted(own) == sorted(kinds)
    assert ((found, own) == (wanted, kinds)) is (name not in LABELS), (found, wanted)
    heads = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    assert tuple(heads) == LISTS and len(made.module.main.inputs) == len(LISTS)
