// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @additions
func.func @additions(%x: tensor<4x6xf32>, %v: tensor<3x6xf32>, %i: tensor<3xi64>, %w: tensor<4x2xf32>, %j: tensor<4x2xi64>) {
  // CHECK-NEXT: "profuse.index_add"(%arg0, %arg1, %arg2) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  %0 = "profuse.index_add"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  // CHECK-NEXT: "profuse.gather_add"(%arg0, %arg3, %arg4) {axis = -1 : i64}
  %1 = "profuse.gather_add"(%x, %w, %j) {axis = -1} : (tensor<4x6xf32>, tensor<4x2xf32>, tensor<4x2xi64>) -> tensor<4x6xf32>
  return
}
