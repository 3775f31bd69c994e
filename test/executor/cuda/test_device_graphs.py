"""Plans of several launches: replayed as CUDA graphs from their second run on."""

import gc
import threading
import weakref

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from profuse.executor.cuda.launching.argument_block import ArgumentBlock
from profuse.executor.cuda.launching.cuda_graphs import launch_all
from profuse.executor.cuda.nvidia.driver_api import LaunchNode
from profuse.executor.settings.events import Counters
from support import counts, host, modulus, warmed

LONG = 20_000  # elements whose sum takes two kernels


def normalised(x):
    return x / (x * x).sum()


def test_the_second_run_makes_a_graph_and_later_ones_replay_it(device):
    x = host(LONG)
    f = warmed(normalised, xp.array(x))
    names = ("graph", "update", "replay", "launch")
    first = [device.calls[n] for n in names]
    assert first[0] == 0 and first[3] > 1
    kernels = first[3]
    kept = []
    for _ in range(3):
        kept.append(f(xp.array(x)))
        np.testing.assert_allclose(kept[-1].get(), normalised(x), rtol=1e-5)
    assert [device.calls[n] for n in names] == [1, 2 * kernels, 3, kernels]
    assert counts(f, "graph_replays", "kernel_launches") == [3, 4 * kernels]


def test_only_changed_arguments_are_written(device):
    x = xp.array(host(LONG))
    f = warmed(normalised, x)
    out = f(x)
    place = out.pointer
    del out
    device.next_address = place  # an allocator that gives the same memory again
    f(x)
    updates = device.calls["update"]
    assert updates < 4 * counts(f, "kernel_launches")[0]


def test_groups_of_a_plan_are_one_graph(device):
    """Two groups on one device, with nothing between that needs the first one's results."""

    def fn(x, y):
        return np.exp(x) + 1, np.exp(y) - 1

    with pf.knobs.override(max_fusion_ops=2):
        f = warmed(fn, xp.array(host(40)), xp.array(host(50)))
    x, y = host(40), host(50)
    for _ in range(2):
        one, two = f(xp.array(x), xp.array(y))
    np.testing.assert_allclose(one.get(), np.exp(x) + 1, rtol=1e-5)
    np.testing.assert_allclose(two.get(), np.exp(y) - 1, rtol=1e-5, atol=1e-6)
    assert len(f.state().specializations) == 2
    assert counts(f, "graph_replays", "kernel_launches") == [2, 6]


def test_what_reads_results_starts_them_first(device):
    f = warmed(lambda x: modulus(np.exp(x) * 2).sum(), xp.array(host(30)))
    x = host(30)
    device.log.clear()
    out = f(xp.array(x))
    kinds = [what.split()[0] for what, _ in device.log]
    assert kinds.index("launch") < kinds.index("to_host")
    np.testing.assert_allclose(out.get(), (np.exp(x) * 2).sum(), rtol=1e-5)


def test_graphs_are_bounded_and_can_be_switched_off(device):
    f = pf.jit(normalised, strategy=[("dynamic", 1)])
    sizes = [LONG + 1000 * k for k in range(4)]
    with pf.knobs.override(cuda_graphs=2):
        for size in (sizes[0], *sizes, *sizes[-1:], *sizes[:2], sizes[1], sizes[0]):
            f(xp.array(host(size)))
    assert counts(f, "compiles", "graph_replays") == [1, 3]
    assert device.calls["drop"] == 1
    with pf.knobs.override(cuda_graphs=0):
        f(xp.array(host(sizes[0])))
    assert counts(f, "graph_replays") == [3]


def test_a_new_kernel_is_never_taken_for_one_that_is_gone(device):
    """Graphs know kernels by identity, which objects that are gone leave to new ones."""
    x = host(LONG)
    for factor in range(2, 8):
        f = pf.jit(lambda x, factor=factor: x * factor / (x * x).sum())
        for _ in range(3):
            got = f(xp.array(x))
        np.testing.assert_allclose(got.get(), x * factor / (x * x).sum(), rtol=1e-5)
        assert counts(f, "graph_replays") == [1]
        del f


def test_graphs_hold_on_to_their_kernels(device):
    class Function:
        pass

    function = Function()
    nodes = [LaunchNode(function, (1, 1, 1), (32, 1, 1), 0, ArgumentBlock([]), []) for _ in range(2)]
    device.run_node = lambda node, stream: None
    launch_all(0, nodes, 7, Counters())
    known = weakref.ref(function)
    del function, nodes
    gc.collect()
    assert known() is not None


def test_threads_share_kernels_and_graphs(device):
    """The emulator does one thing at a time: what is tested is who gets whose results."""
    f = warmed(normalised, xp.array(host(LONG)))
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(LONG).astype(np.float32)
        for _ in range(3):
            got = f(xp.array(x)).get()
            if not np.allclose(got, normalised(x), rtol=1e-4):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert (counts(f, "device_fallbacks"), f.state().reasons) == ([0], ())


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_to_launch(device, size):
    x = np.ones((size, 0), np.float32)
    f = warmed(lambda x: x * 2 + 1, xp.array(x))
    assert f(xp.array(x)).get().shape == x.shape
