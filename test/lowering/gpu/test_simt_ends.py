"""Assertions in the emulator: threads that end do nothing more, and set the kernel's flag."""

import numpy as np
import pytest
from simt import KernelFault, SimtError, contents, holding, parse, programs, run_kernel
from simt.samples import module

THREADS = 8


def run(body, *args, attributes="attributes {profuse.flag = 0 : i64}"):
    """Run a kernel of the flag, ``%x`` and ``%y``; what it leaves in the flag and ``%y``."""
    text = module(f"""
    gpu.func @k(%f: memref<?xi8>, %x: memref<?xi64>, %y: memref<?xi64>) kernel {attributes} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<?xi64>
      {body}
      gpu.return
    }}""")
    (program,) = programs(parse(text)).values()
    flag = holding(np.zeros(1, np.int8), "the flag", writable=True)
    (x,) = args
    y = holding(np.full(THREADS, -1), "y", writable=True)
    run_kernel(program, (1,), (THREADS,), [flag, np.array(x), y])
    return contents(flag, (1,), np.int8)[0], contents(y, (THREADS,), np.int64)


STORES = """
  %ok = arith.cmpi sge, %v, %zero : i64
  cf.assert %ok, "void"
  memref.store %v, %y[%t] : memref<?xi64>
"""


def test_threads_that_end_store_nothing_more():
    x = np.array([0, 1, -5, 3, 4, -1, 6, 7])
    flag, y = run(STORES, x)
    assert flag == 1
    np.testing.assert_array_equal(y, np.where(x < 0, -1, x))


def test_the_flag_stays_as_it_is_where_all_assertions_hold():
    flag, y = run(STORES, np.arange(THREADS))
    assert flag == 0
    np.testing.assert_array_equal(y, np.arange(THREADS))


def test_all_threads_may_end():
    flag, y = run(STORES, np.full(THREADS, -2))
    assert flag == 1
    np.testing.assert_array_equal(y, -1)


def test_they_end_in_branches_and_loops_too():
    body = """
      %n = arith.index_cast %v : i64 to index
      %total = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (i64) {
        %limit = arith.constant 3 : i64
        %far = arith.cmpi sge, %a, %limit : i64
        %b = scf.if %far -> (i64) {
          %never = arith.constant false
          cf.assert %never, "void"
          scf.yield %zero : i64
        } else {
          %c = arith.addi %a, %one : i64
          scf.yield %c : i64
        }
        memref.store %b, %y[%t] : memref<?xi64>
        scf.yield %b : i64
      }
      %twice = arith.addi %total, %total : i64
      memref.store %twice, %y[%t] : memref<?xi64>
    """
    flag, y = run(body, np.arange(THREADS))
    assert flag == 1
    np.testing.assert_array_equal(y, [0, 2, 4, 6, 3, 3, 3, 3])


def test_they_leave_loops_that_others_go_on_with():
    body = """
      %r = scf.while (%a = %v) : (i64) -> i64 {
        %more = arith.cmpi sgt, %a, %zero : i64
        scf.condition(%more) %a : i64
      } do {
      ^bb0(%a: i64):
        %five = arith.constant 5 : i64
        %fine = arith.cmpi ne, %a, %five : i64
        cf.assert %fine, "void"
        %b = arith.subi %a, %one : i64
        scf.yield %b : i64
      }
      memref.store %r, %y[%t] : memref<?xi64>
    """
    flag, y = run(body, np.array([0, 1, 2, 3, 4, 5, 6, 7]))
    assert flag == 1
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 0, -1, -1, -1])


def test_what_ended_threads_would_have_done_is_no_fault():
    body = """
      %ok = arith.cmpi slt, %v, %one : i64
      cf.assert %ok, "void"
      %n = arith.index_cast %v : i64 to index
      %w = memref.load %x[%n] : memref<?xi64>
      memref.store %w, %y[%t] : memref<?xi64>
    """
    flag, _ = run(body, np.array([0, 0, 99, 0, 0, 0, 0, 0]))
    assert flag == 1
    with pytest.raises(KernelFault, match="bounds"):
        run(body.replace("slt", "sge"), np.array([1, 1, 99, 1, 1, 1, 1, 1]))


def test_an_assertion_that_fails_needs_a_flag():
    with pytest.raises(SimtError, match="no flag"):
        run(STORES, np.full(THREADS, -2), attributes="")
