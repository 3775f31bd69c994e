// RUN: profuse-opt -p to-gpu %s | FileCheck %s
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm --emit ptx %s | FileCheck %s --check-prefix=PTX \
// RUN:   --implicit-check-not=.local

// A thread per row runs along it.
// CHECK-LABEL: func.func private @cum(
// CHECK-SAME:  kernel='cum_nest0', grid=('3', '1', '1'), block=('128', '1', '1')
// CHECK:       scf.for
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           memref.store
// PTX-LABEL:   .entry cum_nest0(
// PTX:           st.global.b32
func.func @cum(%0: tensor<300x64xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.cumsum"(%0) {axis = 1 : i64} : (tensor<300x64xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// The place of the maximum: two accumulators that only an ordered loop can keep.
// CHECK-LABEL: func.func private @amax(
// CHECK:       scf.for
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK-NOT:   gpu.shuffle
// PTX-LABEL:   .entry amax_nest0(
// PTX:           st.global
func.func private @amax(%0: tensor<300x64xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.argmax"(%0) {axis = 1 : i64} : (tensor<300x64xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// Joined arrays are stored once, then summed by rows, a warp each.
// CHECK-LABEL: func.func private @joined(
// CHECK:       Launch(kernel='joined_nest1', grid=('1', '16', '1'), block=('64', '4', '1')
// CHECK:       Launch(kernel='joined_nest2', grid=('16', '1', '1'), block=('32', '4', '1')
// CHECK:       gpu.func @joined_nest2(
// CHECK-NOT:     gpu.barrier
func.func private @joined(%0: tensor<64x128xf32, {strides = "contiguous"}>, %1: tensor<64x128xf32, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor) {
  %2 = "profuse.tanh"(%0) : (tensor<64x128xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.concatenate"(%2, %1) {axis = 1 : i64} : (!profuse.tensor, tensor<64x128xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  return %4, %3 : !profuse.tensor, !profuse.tensor
}
