"""Threads that get in each other's way: races, barriers and shuffles."""

import numpy as np
import pytest
from simt import KernelFault, SimtError, contents, empty, holding, parse, programs, run_kernel
from simt import samples as k
from simt.checking import body, fault_of, run, words

SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"


SHIFT = """
memref.store %one, %s[%t] : {shared}
{between}
%u = arith.addi %t, %c1 : index
%i = arith.remsi %u, %n : index
%v = memref.load %s[%i] : {shared}
memref.store %v, %out[%t] : memref<?xf32>"""


def shift(between):
    text = "%n = gpu.block_dim x\n" + SHIFT.format(shared=SHARED, between=between)
    return body(text, "%out: memref<?xf32>", f"workgroup(%s : {SHARED})")


def test_race_in_shared_memory():
    fault = fault_of(shift(""), [empty([64], np.float32)])
    assert fault.kind == "race"
    assert words(fault) == (
        "reads index 1 of workgroup memory (64 elements of float32), which was written by "
        "block (0, 0, 0), thread (1, 0, 0) with no barrier between; "
        "block (0, 0, 0), thread (0, 0, 0)"
    )


def test_a_barrier_orders_a_block():
    out = empty([64], np.float32)
    run(shift("gpu.barrier"), [out])
    assert contents(out, [64], np.float32).all()


def test_overwriting_what_others_may_still_read():
    text = shift("gpu.barrier").replace("gpu.return", f"memref.store %v, %s[%t] : {SHARED}\ngpu.return")
    fault = fault_of(text, [empty([64], np.float32)])
    assert "writes index 0" in words(fault)
    assert "which was read by block (0, 0, 0), thread (63, 0, 0)" in words(fault)


def test_two_threads_write_one_element():
    text = body(
        """%i = arith.divui %t, %c2 : index
        memref.store %one, %out[%i] : memref<?xf32>""",
        "%out: memref<?xf32>",
    )
    fault = fault_of(text, [empty([32], np.float32, "output 0")])
    assert fault.kind == "race"
    assert words(fault).startswith("writes index 0 of output 0 (32 elements of float32), which was")
    assert "at once by block (0, 0, 0), thread (1, 0, 0)" in words(fault)


@pytest.mark.parametrize("barrier", ["", "gpu.barrier"])
@pytest.mark.parametrize("wave_threads", [8, 16])
def test_race_between_blocks(monkeypatch, barrier, wave_threads):
    """No barrier orders two blocks, whether these are emulated together or one by one."""
    monkeypatch.setattr("simt.kernel.WAVE_THREADS", wave_threads)
    text = body(
        f"""%b = gpu.block_id x
        %first = arith.cmpi eq, %t, %b : index
        scf.if %first {{ memref.store %one, %out[%t] : memref<?xf32> }}
        {barrier}
        scf.if %first {{ %v = memref.load %out[%c0] : memref<?xf32> }}""",
        "%out: memref<?xf32>",
    )
    out = holding(np.ones(8, np.float32), "output 0", writable=True)
    fault = fault_of(text, [out], grid=(2,), block=(8,))
    assert fault.kind == "race"
    assert words(fault) == (
        "reads index 0 of output 0 (8 elements of float32), which was written by "
        "block (0, 0, 0), thread (0, 0, 0) with no barrier between; "
        "block (1, 0, 0), thread (1, 0, 0)"
    )


def test_atomics_do_not_race_with_each_other_but_with_reads():
    update = ("%old = memref.atomic_rmw addf %one, %out[%c0] : (f32, memref<?xf32>) -> f32", "%out: memref<?xf32>")
    out = holding(np.zeros(1, np.float32), "output 0", writable=True)
    run(body(*update), [out], grid=(2,))
    assert contents(out, [1], np.float32) == 128
    text = body(update[0] + "\n%v = memref.load %out[%c0] : memref<?xf32>", update[1])
    fault = fault_of(text, [out])
    assert "which was atomically updated by several threads" in words(fault)


def test_one_launch_after_another_is_ordered():
    text = body("memref.store %one, %out[%t] : memref<?xf32>", "%out: memref<?xf32>")
    out = empty([64], np.float32)
    run(text, [out])
    run(text, [out])


def test_divergent_barrier():
    text = body(
        """%some = arith.cmpi ult, %t, %c8 : index
        scf.if %some { gpu.barrier }"""
    )
    fault = fault_of(text, [])
    assert fault.kind == "barrier"
    assert words(fault) == ("8 of 64 threads arrive, not thread (8, 0, 0); block (0, 0, 0), thread (0, 0, 0)")


def test_whole_blocks_may_skip_a_barrier():
    run(
        body(
            """%b = gpu.block_id x
            %first = arith.cmpi eq, %b, %c0 : index
            scf.if %first { gpu.barrier }"""
        ),
        [],
        grid=(3,),
    )


def shuffle(before="", width=32, mode="xor", after="", parameters=""):
    return body(
        f"""%w = arith.constant {width} : i32
        %d = arith.constant 1 : i32
        {before}
        %r, %valid = gpu.shuffle {mode} %one, %d, %w : f32
        {after}""",
        parameters,
    )


def test_shuffle_that_reads_an_inactive_lane():
    text = shuffle("%some = arith.cmpi ult, %t, %c8 : index\nscf.if %some {", after="}")
    fault = fault_of(text, [])
    assert fault.kind == "shuffle"
    assert words(fault) == (
        "a shuffle of the first 32 lanes reads lane 8, inactive here; block (0, 0, 0), thread (0, 0, 0)"
    )


def test_shuffle_in_a_block_with_half_a_subgroup():
    fault = fault_of(shuffle(), [], block=(48,))
    assert "reads lane 16, inactive here; block (0, 0, 0), thread (32, 0, 0)" in words(fault)


def test_shuffle_by_lanes_that_take_no_part():
    fault = fault_of(shuffle(width=8), [])
    assert words(fault).startswith("lane 8 runs a shuffle of the first 8 lanes")


def test_storing_what_no_lane_gave():
    """`down` gives the last lane nothing; using that is reported, choosing against it is not."""
    parameters = "%out: memref<?xf32>"
    store = "memref.store %{}, %out[%t] : memref<?xf32>"
    text = shuffle(mode="down", after=store.format("r"), parameters=parameters)
    fault = fault_of(text, [empty([64], np.float32)])
    assert fault.kind == "poison"
    assert words(fault) == ("the value stored depends on an undefined value; block (0, 0, 0), thread (31, 0, 0)")
    chosen = "%s = arith.select %valid, %r, %one : f32\n" + store.format("s")
    out = empty([64], np.float32)
    run(shuffle(mode="down", after=chosen, parameters=parameters), [out])
    assert contents(out, [64], np.float32).all()


def without(text, number):
    """The kernel without one of its barriers."""
    parts = text.split("gpu.barrier")
    before, after = "gpu.barrier".join(parts[: number + 1]), "gpu.barrier".join(parts[number + 1 :])
    return before + after


@pytest.mark.parametrize("number", range(4))
def test_which_barriers_softmax_needs(number):
    """The last only keeps shared memory for a next reduction, and there is none."""
    x = np.random.default_rng(0).normal(size=(4, 300)).astype(np.float32)
    args = [x, empty(x.shape, np.float32), 300]
    text = without(k.SOFTMAX, number)
    if number == 3:
        run(text, args, grid=(4,), block=(256,))
        return
    (program,) = programs(parse(k.module(text))).values()
    with pytest.raises(KernelFault) as caught:
        run_kernel(program, (4,), (256,), args)
    # Without the first, nothing has been written yet where the threads look.
    assert caught.value.kind in ("race", "uninitialised")
    assert caught.value.site.op == ("memref.store" if number == 1 else "memref.load")


@pytest.mark.parametrize("number", range(2))
def test_histogram_needs_its_barriers(number):
    out = holding(np.zeros(16, np.int32), "output 0", writable=True)
    (program,) = programs(parse(k.module(without(k.HISTOGRAM, number)))).values()
    with pytest.raises(KernelFault) as caught:
        run_kernel(program, (2,), (64,), [np.arange(128, dtype=np.uint8) % 16, out, 128], 64)
    assert caught.value.kind == "race"


def views(second):
    """Doubles and, ``second`` bytes on, floats in one piece of dynamic workgroup memory."""
    space = "#gpu.address_space<workgroup>"
    return body(
        f"""%bytes = gpu.dynamic_shared_memory : memref<?xi8, {space}>
        %second = arith.constant {second} : index
        %a = memref.view %bytes[%c0][] : memref<?xi8, {space}> to memref<64xf64, {space}>
        %b = memref.view %bytes[%second][] : memref<?xi8, {space}> to memref<64xf32, {space}>
        %wide = arith.extf %one : f32 to f64
        memref.store %wide, %a[%t] : memref<64xf64, {space}>
        memref.store %one, %b[%t] : memref<64xf32, {space}>
        gpu.barrier
        %n = gpu.block_dim x
        %u = arith.addi %t, %c1 : index
        %i = arith.remsi %u, %n : index
        %x = memref.load %a[%i] : memref<64xf64, {space}>
        %y = memref.load %b[%i] : memref<64xf32, {space}>
        %narrow = arith.truncf %x : f64 to f32
        %sum = arith.addf %narrow, %y : f32
        memref.store %sum, %out[%t] : memref<?xf32>""",
        "%out: memref<?xf32>",
    )


def test_views_of_different_elements_share_memory():
    (program,) = programs(parse(k.module(views(512)))).values()
    out = empty([64], np.float32)
    run_kernel(program, (1,), (64,), [out], 768)
    assert (contents(out, [64], np.float32) == 2).all()


def test_views_that_overlap():
    """The first float lies over the second half of a double: another thread's."""
    fault = fault_of(views(260), [empty([64], np.float32)], shared_bytes=768)
    assert fault.kind == "race"
    assert "which was written by block (0, 0, 0), thread (32, 0, 0)" in words(fault)


def test_view_past_the_end():
    fault = fault_of(views(512), [empty([64], np.float32)], shared_bytes=764)
    assert words(fault) == (
        "index 63 is out of bounds of dynamic workgroup memory (64 elements of float32); "
        "block (0, 0, 0), thread (63, 0, 0)"
    )


def test_view_at_an_odd_place():
    fault = fault_of(views(514), [empty([64], np.float32)], shared_bytes=1024)
    assert fault.kind == "alignment"
    assert words(fault).startswith(
        "index 0 of dynamic workgroup memory (64 elements of float32) is not aligned to 4 bytes"
    )


def test_no_dynamic_memory():
    with pytest.raises(SimtError, match="the launch asks for no dynamic workgroup memory"):
        run(views(512), [empty([64], np.float32)])
