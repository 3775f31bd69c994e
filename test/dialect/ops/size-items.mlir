// RUN: profuse-opt %s --verify-each | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// What is asked of sizes instead of a tensor, and sizes by the inference of other ops (R3.29, R3.33).
// CHECK-LABEL: func.func @items
// CHECK:         "profuse.dim_of"(%{{.*}}) {axis = -1 : i64} : (!profuse.ints) -> i64
// CHECK:         "profuse.rank_of"(%{{.*}}) : (!profuse.ints) -> i64
// CHECK:         "profuse.size_of"(%{{.*}}) : (!profuse.ints) -> i64
// CHECK:         "profuse.dtype_constant"() {dtype = bf16} : () -> i64
func.func @items(%s: !profuse.ints) -> (i64, i64, i64, i64) {
  %0 = "profuse.dim_of"(%s) {axis = -1 : i64} : (!profuse.ints) -> i64
  %1 = "profuse.rank_of"(%s) : (!profuse.ints) -> i64
  %2 = "profuse.size_of"(%s) : (!profuse.ints) -> i64
  %3 = "profuse.dtype_constant"() {dtype = bf16} : () -> i64
  return %0, %1, %2, %3 : i64, i64, i64, i64
}

// CHECK-LABEL: func.func @inferred
// CHECK:         "profuse.transpose_sizes"(%{{.*}}) {perm = array<i64: 1, 0>}
// CHECK:         "profuse.swapaxes_sizes"(%{{.*}}) {axis1 = 0 : i64, axis2 = 1 : i64}
// CHECK:         "profuse.moveaxis_sizes"(%{{.*}}) {destination = array<i64: 1>, source = array<i64: 0>}
// CHECK:         "profuse.matmul_sizes"(%{{.*}}, %{{.*}})
// CHECK:         "profuse.concatenate_sizes"(%{{.*}}, %{{.*}}) {axis = 1 : i64}
// CHECK:         "profuse.stack_sizes"(%{{.*}}, %{{.*}})
// CHECK:         "profuse.reshape_sizes"(%{{.*}}) {shape = array<i64: 2, -1>}
// CHECK:         "profuse.linear_sizes"(%{{.*}}, %{{.*}})
func.func @inferred(%s: !profuse.ints) -> !profuse.ints {
  %0 = "profuse.transpose_sizes"(%s) {perm = array<i64: 1, 0>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.swapaxes_sizes"(%0) {axis1 = 0 : i64, axis2 = 1 : i64} : (!profuse.ints) -> !profuse.ints
  %2 = "profuse.moveaxis_sizes"(%1) {source = array<i64: 0>, destination = array<i64: 1>} : (!profuse.ints) -> !profuse.ints
  %3 = "profuse.matmul_sizes"(%s, %2) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %4 = "profuse.concatenate_sizes"(%3, %3) {axis = 1 : i64} : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %5 = "profuse.stack_sizes"(%4, %4) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %6 = "profuse.reshape_sizes"(%5) {shape = array<i64: 2, -1>} : (!profuse.ints) -> !profuse.ints
  %7 = "profuse.linear_sizes"(%6, %s) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  return %7 : !profuse.ints
}
