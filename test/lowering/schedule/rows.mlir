// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// A row is walked once for its sum, and once for its results and for their sums over all rows.
// CHECK-LABEL: // rows
// CHECK:       func.func @rows_nest0
// CHECK:         scf.for
// CHECK:           %{{.*}} = scf.for %{{.*}} iter_args
// CHECK:           scf.for
// CHECK:             arith.mulf
// CHECK:             llvm.store
// CHECK:             arith.addf
// CHECK:             llvm.store
// CHECK:             arith.addf
// CHECK:             llvm.store
// CHECK-NOT:     scf.for
// CHECK-NOT:   rows_nest1
// CHECK-LABEL: // in_turn
func.func @rows(%x: tensor<33x48xf32, {strides = "contiguous"}>, %y: tensor<33x48xf32, {strides = "contiguous"}>) -> (tensor<48xf32>, tensor<33x48xf32>, tensor<48xf32>) {
  %b = "profuse.sum"(%y) {axes = array<i64: 0>, keepdims = false} : (tensor<33x48xf32, {strides = "contiguous"}>) -> tensor<48xf32>
  %s = "profuse.sum"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<33x48xf32, {strides = "contiguous"}>) -> tensor<33x1xf32>
  %p = "profuse.mul"(%y, %s) : (tensor<33x48xf32, {strides = "contiguous"}>, tensor<33x1xf32>) -> tensor<33x48xf32>
  %w = "profuse.sum"(%p) {axes = array<i64: 0>, keepdims = false} : (tensor<33x48xf32>) -> tensor<48xf32>
  return %b, %p, %w : tensor<48xf32>, tensor<33x48xf32>, tensor<48xf32>
}

// Rows that read sums over all rows wait for these.
// CHECK:       func.func @in_turn_nest0
// CHECK:       func.func @in_turn_nest1
func.func private @in_turn(%x: tensor<33x48xf32, {strides = "contiguous"}>) -> tensor<33xf32> {
  %b = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<33x48xf32, {strides = "contiguous"}>) -> tensor<48xf32>
  %p = "profuse.mul"(%x, %b) : (tensor<33x48xf32, {strides = "contiguous"}>, tensor<48xf32>) -> tensor<33x48xf32>
  %s = "profuse.sum"(%p) {axes = array<i64: 1>, keepdims = false} : (tensor<33x48xf32>) -> tensor<33xf32>
  return %s : tensor<33xf32>
}
