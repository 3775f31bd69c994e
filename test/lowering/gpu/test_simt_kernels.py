"""Kernels written by hand give what NumPy gives, on the emulator."""

import time

import ml_dtypes
import numpy as np
import pytest
from simt import contents, empty, holding, parse, programs, run_kernel
from simt import samples as k


def kernel(text, name=None):
    found = programs(parse(k.module(text)))
    return found[name] if name else next(iter(found.values()))


@pytest.mark.parametrize("n", [1, 4, 257, 5003])
def test_vector_add_grid_stride_with_tail(n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    out = empty([n], np.float32)
    run_kernel(kernel(k.VECTOR_ADD), (3,), (128,), [x, y.copy(), out, n])
    np.testing.assert_array_equal(contents(out, [n], np.float32), x + y)


def softmax(rows, columns):
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    out = empty(x.shape, np.float32)
    run_kernel(kernel(k.SOFTMAX), (rows,), (256,), [x, out, columns])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    wanted = e / e.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(contents(out, x.shape, np.float32), wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 255), (5, 700)])
def test_softmax_by_shuffles_and_shared_memory(shape):
    softmax(*shape)


def test_speed():
    softmax(1, 8)
    start = time.process_time()
    softmax(256, 1024)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("shape", [(32, 32), (40, 7), (65, 33)])
def test_transpose_through_shared_memory(shape):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    n, m = shape
    out = empty((m, n), np.int32)
    run_kernel(kernel(k.TRANSPOSE), (-(-m // 32), -(-n // 32)), (32, 32), [x, out, n, m])
    np.testing.assert_array_equal(contents(out, (m, n), np.int32), x.T)


def test_histogram_by_atomics():
    x = np.random.default_rng(0).integers(0, 16, 3000).astype(np.uint8)
    out = holding(np.zeros(16, np.int32), "output", writable=True)
    run_kernel(kernel(k.HISTOGRAM), (3,), (64,), [x, out, x.size], shared_bytes=64)
    np.testing.assert_array_equal(contents(out, [16], np.int32), np.bincount(x, minlength=16))


def test_while_loop_of_divergent_length():
    x = np.arange(1, 200)
    out = empty(x.shape, np.int64)
    run_kernel(kernel(k.COLLATZ), (1,), (x.size,), [x, out])

    def steps(v):
        return 0 if v == 1 else 1 + steps(3 * v + 1 if v % 2 else v // 2)

    assert contents(out, x.shape, np.int64).tolist() == [steps(int(v)) for v in x]


def test_old_values_of_atomics_are_all_different():
    text = """
gpu.func @tickets(%counter: memref<?xi32>, %out: memref<?xi32>) kernel {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %id = gpu.global_id x
  %mine = memref.atomic_rmw addi %one, %counter[%c0] : (i32, memref<?xi32>) -> i32
  memref.store %mine, %out[%id] : memref<?xi32>
  gpu.return
}"""
    counter = holding(np.array([5], np.int32), writable=True)
    out = empty([96], np.int32)
    run_kernel(kernel(text), (2,), (48,), [counter, out])
    assert sorted(contents(out, [96], np.int32)) == list(range(5, 101))
    assert contents(counter, [1], np.int32) == [101]


def test_blocks_beyond_one_wave():
    """40000 blocks do not fit one wave; each thread still has its own number."""
    text = """
gpu.func @ids(%out: memref<?xi64>) kernel {
  %x = gpu.global_id x
  %y = gpu.block_id y
  %gd = gpu.grid_dim x
  %r = arith.muli %y, %gd : index
  %i = arith.addi %r, %x : index
  %v = arith.index_cast %i : index to i64
  memref.store %v, %out[%i] : memref<?xi64>
  gpu.return
}"""
    out = empty([40000], np.int64)
    run_kernel(kernel(text), (400, 100), (1,), [out])
    np.testing.assert_array_equal(contents(out, [40000], np.int64), np.arange(40000))


def test_private_memory_is_a_thread_s_own():
    text = """
gpu.func @reverse(%x: memref<?xi32>, %out: memref<?xi32>)
    private(%p : memref<4xi32, #gpu.address_space<private>>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %base = arith.muli %t, %c4 : index
  scf.for %k = %c0 to %c4 step %c1 {
    %i = arith.addi %base, %k : index
    %v = memref.load %x[%i] : memref<?xi32>
    memref.store %v, %p[%k] : memref<4xi32, #gpu.address_space<private>>
  }
  scf.for %k = %c0 to %c4 step %c1 {
    %j = arith.subi %c3, %k : index
    %v = memref.load %p[%j] : memref<4xi32, #gpu.address_space<private>>
    %i = arith.addi %base, %k : index
    memref.store %v, %out[%i] : memref<?xi32>
  }
  gpu.return
}"""
    x = np.arange(40, dtype=np.int32)
    out = empty([40], np.int32)
    run_kernel(kernel(text), (1,), (10,), [x, out])
    np.testing.assert_array_equal(contents(out, [10, 4], np.int32), x.reshape(10, 4)[:, ::-1])


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[3:]])
def test_strided_inputs(view):
    text = """
gpu.func @copy(%x: memref<?xf32>, %out: memref<?xf32>, %stride: i64) kernel {
  %t = gpu.thread_id x
  %s = arith.index_cast %stride : i64 to index
  %i = arith.muli %t, %s : index
  %v = memref.load %x[%i] : memref<?xf32>
  memref.store %v, %out[%t] : memref<?xf32>
  gpu.return
}"""
    x = np.arange(20, dtype=np.float32)[view]
    out = empty(x.shape, np.float32)
    run_kernel(kernel(text), (1,), x.shape, [x, out, x.strides[0] // 4])
    np.testing.assert_array_equal(contents(out, x.shape, np.float32), x)


def test_bits_of_bf16_in_integers():
    text = """
gpu.func @twice(%x: memref<?xi16>, %out: memref<?xi16>) kernel {
  %t = gpu.thread_id x
  %bits = memref.load %x[%t] : memref<?xi16>
  %v = arith.bitcast %bits : i16 to bf16
  %s = arith.addf %v, %v : bf16
  %r = arith.bitcast %s : bf16 to i16
  memref.store %r, %out[%t] : memref<?xi16>
  gpu.return
}"""
    x = np.arange(-8, 8).astype(ml_dtypes.bfloat16)
    out = empty(x.shape, x.dtype)
    run_kernel(kernel(text), (1,), x.shape, [x, out])
    np.testing.assert_array_equal(contents(out, x.shape, x.dtype), x + x)
