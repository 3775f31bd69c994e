// RUN: profuse-opt -p to-gpu %s | FileCheck %s
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm --emit ptx %s | FileCheck %s --check-prefix=PTX \
// RUN:   --implicit-check-not=.local --implicit-check-not='{{div|rem}}.{{[su]}}' --implicit-check-not='{{atom|red}}.global'

// Sixteen chunks of rows, whose sums a second kernel adds up in order: no atomics.
// CHECK-LABEL: func.func private @column_sum(
// CHECK-SAME:  kernel='column_sum_nest0', grid=('8', '16', '1'), block=('32', '8', '1')
// CHECK-SAME:  kernel='column_sum_nest0_chunks', grid=('4', '1', '1')
// CHECK:       gpu.func @column_sum_nest0(
// CHECK:         scf.for
// CHECK:           vector.load
// CHECK-COUNT-4:   arith.addf
// CHECK:         gpu.barrier
// CHECK-NOT:     atomic
// CHECK:       gpu.func @column_sum_nest0_chunks(
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           memref.load
// CHECK-NEXT:      arith.addf
// CHECK:         memref.store
// PTX-LABEL:   .entry column_sum_nest0(
// PTX:         [[LOOP:\$L__BB0_[0-9]+]]:
// PTX:           ld.global.nc.v4.b32
// PTX:           bra [[LOOP]]
// PTX:           bar.sync
// PTX-LABEL:   .entry column_sum_nest0_chunks(
func.func @column_sum(%0: tensor<1024x1024xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.square"(%0) : (tensor<1024x1024xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sum"(%1) {axes = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// Maximum and sum of a row in one kernel; then the mean over rows.
// CHECK-LABEL: func.func private @cross_entropy(
// CHECK-SAME:  kernel='cross_entropy_nest0', grid=('1024', '1', '1')
// CHECK:       gpu.func @cross_entropy_nest0(
// CHECK-COUNT-2: vector.load
// CHECK:         gpu.barrier
// CHECK:         gpu.barrier
// CHECK-NOT:     vector.load
// CHECK:         gpu.return
func.func private @cross_entropy(%0: tensor<1024x1024xf32, {strides = "contiguous"}>, %1: tensor<1024xi64, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<1024x1024xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.sub"(%0, %2) : (tensor<1024x1024xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %4 = "profuse.exp"(%3) : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.sum"(%4) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.log"(%5) : (!profuse.tensor) -> !profuse.tensor
  %7 = "profuse.squeeze"(%2) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  %8 = "profuse.add"(%6, %7) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %9 = "profuse.expand_dims"(%1) {axes = array<i64: 1>} : (tensor<1024xi64, {strides = "contiguous"}>) -> !profuse.tensor
  %10 = "profuse.gather"(%0, %9) {axis = 1 : i64} : (tensor<1024x1024xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %11 = "profuse.squeeze"(%10) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  %12 = "profuse.sub"(%8, %11) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %13 = "profuse.mean"(%12) : (!profuse.tensor) -> !profuse.tensor
  return %13 : !profuse.tensor
}

// Everything as one number: a chunk per block, by shuffles and then shared memory; in order again.
// CHECK-LABEL: func.func private @total(
// CHECK-SAME:  kernel='total_nest0', grid=('1', '256', '1'), block=('256', '1', '1')
// CHECK-SAME:  kernel='total_nest0_chunks', grid=('1', '1', '1'), block=('256', '1', '1')
// CHECK:       gpu.func @total_nest0(
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         gpu.barrier
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK:       gpu.func @total_nest0_chunks(
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           memref.load
// CHECK:         gpu.shuffle xor
// PTX-LABEL:   .entry total_nest0(
// PTX:           ld.global.nc.v4.b32
// PTX-COUNT-5:   shfl.sync.bfly.b32
// PTX:           bar.sync
// PTX-COUNT-3:   shfl.sync.bfly.b32
// PTX:           st.global.b32
// PTX-LABEL:   .entry total_nest0_chunks(
func.func private @total(%0: tensor<1048576xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.sum"(%0) : (tensor<1048576xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}
