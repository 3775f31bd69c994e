"""Kernels that are wrong on purpose: the emulator says what, where, and by whom."""

import numpy as np
import pytest
from simt import KernelFault, SimtError, contents, empty, holding
from simt.checking import body, fault_of, run, words

SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"


def test_store_out_of_bounds():
    text = body("memref.store %one, %out[%t] : memref<?xf32>", "%out: memref<?xf32>")
    fault = fault_of(text, [empty([60], np.float32, "output 0")])
    assert fault.kind == "bounds"
    assert words(fault) == (
        "index 60 is out of bounds of output 0 (60 elements of float32); block (0, 0, 0), thread (60, 0, 0)"
    )


def test_negative_index():
    text = body(
        """%i = arith.subi %t, %c2 : index
        %v = memref.load %x[%i] : memref<?xf32>""",
        "%x: memref<?xf32>",
    )
    assert "index -2 is out of bounds" in words(fault_of(text, [np.ones(64, np.float32)]))


def test_index_outside_of_a_row_of_shared_memory():
    """An index past the end of one axis is no index of the next row."""
    tile = "memref<8x9xf32, #gpu.address_space<workgroup>>"
    text = body(f"memref.store %one, %s[%c1, %t] : {tile}", attributions=f"workgroup(%s : {tile})")
    assert words(fault_of(text, [])).startswith(
        "index 1, 9 is out of bounds of workgroup memory (8x9 elements of float32)"
    )


def test_vector_past_the_end():
    text = body("%v = vector.load %x[%c8] : memref<?xf32>, vector<4xf32>", "%x: memref<?xf32>")
    fault = fault_of(text, [holding(np.ones(10, np.float32), "input 0")])
    assert words(fault).startswith("index 8 to 11 is out of bounds of input 0 (10 elements of float32)")


def test_out_of_bounds_in_inactive_threads_is_fine():
    text = body(
        """%in = arith.cmpi ult, %t, %c8 : index
        scf.if %in { memref.store %one, %out[%t] : memref<?xf32> }""",
        "%out: memref<?xf32>",
    )
    out = empty([8], np.float32)
    run(text, [out])
    assert contents(out, [8], np.float32).sum() == 8


def test_misaligned_vector():
    text = body(
        """%i = arith.muli %t, %c2 : index
        %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>""",
        "%x: memref<?xf32>",
    )
    fault = fault_of(text, [holding(np.ones(256, np.float32), "input 0")])
    assert fault.kind == "alignment"
    assert words(fault) == (
        "index 2 to 5 of input 0 (256 elements of float32) is not aligned to 16 bytes; "
        "block (0, 0, 0), thread (1, 0, 0)"
    )


def test_misaligned_input():
    """The address of an input counts: a view that starts 4 bytes further on."""
    text = body("%v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>", "%x: memref<?xf32>")
    x = np.ones(64, np.float32)
    run(text, [x])
    assert fault_of(text, [x[1:]]).kind == "alignment"


def test_stated_alignment_may_be_less():
    text = body("%v = vector.load %x[%c1] {alignment = 4 : i64} : memref<?xf32>, vector<4xf32>", "%x: memref<?xf32>")
    run(text, [np.ones(64, np.float32)])


def test_uninitialised_shared_memory():
    text = body(f"%v = memref.load %s[%t] : {SHARED}", attributions=f"workgroup(%s : {SHARED})")
    fault = fault_of(text, [])
    assert fault.kind == "uninitialised"
    assert words(fault) == (
        "reads index 0 of workgroup memory (64 elements of float32), which nothing has written; "
        "block (0, 0, 0), thread (0, 0, 0)"
    )


def test_shared_memory_is_fresh_in_every_block():
    text = body(
        f"""%b = gpu.block_id x
        %first = arith.cmpi eq, %b, %c0 : index
        scf.if %first {{ memref.store %one, %s[%t] : {SHARED} }}
        gpu.barrier
        %v = memref.load %s[%t] : {SHARED}""",
        attributions=f"workgroup(%s : {SHARED})",
    )
    fault = fault_of(text, [], grid=(2,))
    assert (fault.kind, fault.block) == ("uninitialised", (1, 0, 0))


def test_uninitialised_output_read():
    text = body("%v = memref.load %out[%t] : memref<?xf32>", "%out: memref<?xf32>")
    fault = fault_of(text, [empty([64], np.float32, "output 0")])
    assert "reads index 0 of output 0" in words(fault)


def test_output_not_wholly_written():
    text = body(
        """%i = arith.muli %t, %c2 : index
        memref.store %one, %out[%i] : memref<?xf32>""",
        "%out: memref<?xf32>",
    )
    out = empty([128], np.float32, "output 0")
    run(text, [out])
    with pytest.raises(KernelFault) as caught:
        contents(out, [128], np.float32)
    assert str(caught.value) == ("64 of 128 elements of output 0 were never written, the first at index 1")


def test_gaps_of_a_strided_input():
    text = body("%v = memref.load %x[%t] : memref<?xf32>", "%x: memref<?xf32>")
    x = holding(np.ones(20, np.float32)[::2], "input 0")
    assert "reads index 1 of input 0" in words(fault_of(text, [x], block=(2,)))


def test_writing_an_input():
    text = body("memref.store %one, %x[%t] : memref<?xf32>", "%x: memref<?xf32>")
    fault = fault_of(text, [holding(np.ones(64, np.float32), "input 0")])
    assert fault.kind == "read-only"
    assert words(fault).startswith("writes input 0 (64 elements of float32)")


def test_branching_on_poison():
    text = body("%p = ub.poison : i1\nscf.if %p { gpu.barrier }")
    assert "a branch depends on an undefined value" in words(fault_of(text, []))


def test_division_by_zero():
    text = body("%d = arith.subi %t, %c8 : index\n%q = arith.divsi %t, %d : index")
    assert words(fault_of(text, [])) == "divides by zero; block (0, 0, 0), thread (8, 0, 0)"


def test_endless_loop(monkeypatch):
    monkeypatch.setattr("simt.control.LONGEST_LOOP", 100)
    text = body(
        """%yes = arith.constant true
        scf.while : () -> () { scf.condition(%yes) } do { scf.yield }"""
    )
    fault = fault_of(text, [])
    assert words(fault).startswith("a loop runs for more than 100 iterations")
    assert fault.site.op == "scf.while"


def test_position_outside_of_a_vector():
    text = """%v = arith.constant dense<1.0> : vector<4xf32>
    %e = vector.extract %v[%t] : f32 from vector<4xf32>"""
    assert words(fault_of(body(text), [])) == (
        "position 4 is out of bounds of 4 elements; block (0, 0, 0), thread (4, 0, 0)"
    )
    some = "%some = arith.cmpi ult, %t, %c2 : index\nscf.if %some {{ {} }}"
    run(body(some.format(text)), [])


def test_poison_in_a_part_of_a_vector():
    """Casts to wider elements and reductions mix elements; an extract does not."""
    text = """%p = ub.poison : vector<4xf32>
    %v = vector.insert %one, %p[0] : f32 into vector<4xf32>
    {}
    memref.store %e, %out[%t] : memref<?xf32>"""
    parameters = "%out: memref<?xf32>"
    good = "%e = vector.extract %v[0] : f32 from vector<4xf32>"
    run(body(text.format(good), parameters), [empty([64], np.float32)])
    wide = """%w = vector.bitcast %v : vector<4xf32> to vector<2xf64>
    %d = vector.extract %w[0] : f64 from vector<2xf64>
    %e = arith.truncf %d : f64 to f32"""
    total = "%e = vector.reduction <add>, %v : vector<4xf32> into f32"
    for bad in (good.replace("[0]", "[1]"), wide, total):
        fault = fault_of(body(text.format(bad), parameters), [empty([64], np.float32)])
        assert fault.kind == "poison"


def test_an_op_that_is_not_emulated():
    text = body("%x = math.clampf %one to [%one, %one] : f32")
    with pytest.raises(SimtError, match=r"@bad, math.clampf at .*: this op is not emulated"):
        run(text, [])


def test_arguments_that_do_not_fit():
    text = body("", "%x: memref<?xf32>, %n: i64")
    with pytest.raises(SimtError, match="takes 2 arguments, not 1"):
        run(text, [np.ones(3, np.float32)])
    with pytest.raises(SimtError, match=r"argument 0 of @bad is memref<.xf32>, but .*float64"):
        run(text, [np.ones(3), 3])
    with pytest.raises(SimtError, match="argument 1 of @bad is i64, but memory was passed"):
        run(text, [np.ones(3, np.float32), np.ones(3)])
    with pytest.raises(SimtError, match=r"a block of \(2048, 1, 1\) threads; 1 to 1024 are possible"):
        run(text, [np.ones(3, np.float32), 3], block=(2048,))


def test_launches_that_the_driver_refuses():
    text = body("", attributions=f"workgroup(%s : {SHARED})").replace(
        " kernel {", " kernel attributes {known_block_size = array<i32: 64, 1, 1>} {"
    )
    run(text, [])
    with pytest.raises(SimtError, match=r"block of \(32, 1, 1\) threads, compiled for \(64, 1, 1\)"):
        run(text, [], block=(32,))
    with pytest.raises(SimtError, match=r"a grid of \(1, 70000, 1\) blocks"):
        run(text, [], grid=(1, 70000))
    with pytest.raises(SimtError, match=r"a grid of \(0, 1, 1\) blocks"):
        run(text, [], grid=(0,))
    with pytest.raises(SimtError, match="49184 bytes of workgroup memory and 0 dynamic"):
        run(text.replace("<64xf32", "<12296xf32"), [])
