// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<4x6xf32>, %n: i64, %y: !profuse.tensor) {
  // CHECK-NEXT: "profuse.reshape"(%arg0) {shape = array<i64: 8, -1>} : (tensor<4x6xf32>) -> tensor<8x3xf32>
  %0 = "profuse.reshape"(%x) {shape = array<i64: 8, -1>} : (tensor<4x6xf32>) -> tensor<8x3xf32>
  // The least i64 stands for the next operand of `sizes`.
  // CHECK-NEXT: "profuse.reshape"(%arg0, %arg1, %arg1) {shape = array<i64: -9223372036854775808, 2, -9223372036854775808>}
  %1 = "profuse.reshape"(%x, %n, %n) {shape = array<i64: -9223372036854775808, 2, -9223372036854775808>} : (tensor<4x6xf32>, i64, i64) -> tensor<?x2x?xf32>
  // CHECK-NEXT: "profuse.reshape"(%arg2) {shape = array<i64>}
  %2 = "profuse.reshape"(%y) {shape = array<i64>} : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.broadcast_to"
  %3 = "profuse.broadcast_to"(%x, %n) {shape = array<i64: -9223372036854775808, 4, 6>} : (tensor<4x6xf32>, i64) -> tensor<?x4x6xf32>
  return
}

// CHECK-LABEL: func.func @axes
func.func @axes(%x: tensor<4x1x?xf32>) {
  // CHECK-NEXT: "profuse.transpose"(%arg0) : (tensor<4x1x?xf32>) -> tensor<?x1x4xf32>
  %0 = "profuse.transpose"(%x) : (tensor<4x1x?xf32>) -> tensor<?x1x4xf32>
  // CHECK-NEXT: "profuse.transpose"(%arg0) {perm = array<i64: 1, 0, -1>} : (tensor<4x1x?xf32>) -> tensor<1x4x?xf32>
  %1 = "profuse.transpose"(%x) {perm = array<i64: 1, 0, -1>} : (tensor<4x1x?xf32>) -> tensor<1x4x?xf32>
  // CHECK-NEXT: "profuse.swapaxes"
  %2 = "profuse.swapaxes"(%x) {axis1 = 0, axis2 = -1} : (tensor<4x1x?xf32>) -> tensor<?x1x4xf32>
  // CHECK-NEXT: "profuse.moveaxis"
  %3 = "profuse.moveaxis"(%x) {source = array<i64: 2>, destination = array<i64: 0>} : (tensor<4x1x?xf32>) -> tensor<?x4x1xf32>
  // CHECK-NEXT: "profuse.squeeze"
  %4 = "profuse.squeeze"(%x) {axes = array<i64: 1>} : (tensor<4x1x?xf32>) -> tensor<4x?xf32>
  // CHECK-NEXT: "profuse.expand_dims"
  %5 = "profuse.expand_dims"(%x) {axes = array<i64: 0, -1>} : (tensor<4x1x?xf32>) -> tensor<1x4x1x?x1xf32>
  // CHECK-NEXT: "profuse.flip"
  %6 = "profuse.flip"(%x) : (tensor<4x1x?xf32>) -> tensor<4x1x?xf32>
  return
}
