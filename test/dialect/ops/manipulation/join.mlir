// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @join
func.func @join(%x: tensor<4x?xf32>, %y: tensor<4x3xf64>, %f: f64) {
  // CHECK-NEXT: "profuse.concatenate"(%arg0, %arg1) {axis = 1 : i64} : (tensor<4x?xf32>, tensor<4x3xf64>) -> tensor<4x?xf64>
  %0 = "profuse.concatenate"(%x, %y) {axis = 1} : (tensor<4x?xf32>, tensor<4x3xf64>) -> tensor<4x?xf64>
  // CHECK-NEXT: "profuse.stack"(%arg1, %arg1) {axis = -1 : i64} : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3x2xf64>
  %1 = "profuse.stack"(%y, %y) {axis = -1} : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3x2xf64>
  // CHECK-NEXT: "profuse.pad"(%arg1, %arg2) {widths = array<i64: 1, 0, 2, 2>}
  %2 = "profuse.pad"(%y, %f) {widths = array<i64: 1, 0, 2, 2>} : (tensor<4x3xf64>, f64) -> tensor<5x7xf64>
  // CHECK-NEXT: "profuse.tile"(%arg1) {reps = array<i64: 2, 1>}
  %3 = "profuse.tile"(%y) {reps = array<i64: 2, 1>} : (tensor<4x3xf64>) -> tensor<8x3xf64>
  // CHECK-NEXT: "profuse.repeat"(%arg1) {axis = 0 : i64, repeats = 3 : i64}
  %4 = "profuse.repeat"(%y) {repeats = 3, axis = 0} : (tensor<4x3xf64>) -> tensor<12x3xf64>
  return
}
