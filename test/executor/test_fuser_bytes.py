"""The fuser of device groups on blocks of networks: no more bytes than by the general one, right for all sizes."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from fuser_blocks import BLOCKS, FUSERS, arguments, bytes_moved

pytestmark = pytest.mark.compiles  # kernels and counts are those of real compiles


@functools.cache
def compiled(name, fuser):
    """A block that has been compiled for arguments of its first shape."""
    block = BLOCKS[name]
    with pf.knobs.override(device_fusion=FUSERS[fuser]):
        f = pf.jit(block.fn, background=False)
        for _ in range(2):
            f(*arguments(block.shapes[0]))
    return f


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BLOCKS)
def test_kernels_for_all_sizes_move_no_more_bytes(name):
    (general,), (device,) = (compiled(name, fuser)._executors() for fuser in FUSERS)
    assert len(general.result.kernels) == len(device.result.kernels) == 1
    assert bytes_moved(device.result) <= bytes_moved(general.result)


@pytest.mark.parametrize("name", BLOCKS)
def test_kernels_for_all_sizes_are_called_by_emitted_code(name):
    """Their workspaces divide by sizes; dropout draws in front of them."""
    f = compiled(name, "device groups")
    with pf.knobs.override(device_fusion="host"):
        for shapes in BLOCKS[name].shapes[:3]:
            f(*arguments(shapes))
    assert f.state().emitted, f.explain()


@pytest.mark.parametrize("name", BLOCKS)
def test_one_compile_has_right_results_for_all_sizes(name):
    """Sizes of 1 and misfits go to Python or a fallback, and so do sizes that the ops refuse."""
    block, f = BLOCKS[name], compiled(name, "device groups")
    (first, *parameters), (height, *_) = block.shapes[0], reversed(block.shapes[0][0])
    sides = [*(shapes[0] for shapes in block.shapes), (1, *first[1:]), (0, *first[1:]), (2, *first[1:-1], height + 1)]
    with pf.knobs.override(device_fusion="host"):
        for shape in sides if EVERY_CASE else sides[1::2]:
            args = arguments([shape, *parameters])
            pf.manual_seed(3)
            try:
                expected = block.fn(*args)
            except ValueError:
                with pytest.raises(ValueError):
                    f(*args)
                continue
            pf.manual_seed(3)
            np.testing.assert_allclose(f(*args), expected, rtol=2e-4, atol=2e-5, err_msg=str(shape))
    assert f.state().counters["kernel_launches"] > len(sides) // 4
    assert len(f._executors()) <= 3  # others are for no elements, and for sizes of 1
