// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<4x3xf32>, %b: tensor<3x8xf32>, %c: !profuse.tensor, %t: tensor<8x4xf64>) {
  // CHECK-NEXT: "profuse.mm_tree"(%arg0, %arg1) {adds = array<i64: 0>} : (tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  %0 = "profuse.mm_tree"(%a, %b) {adds = array<i64: 0>} : (tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: "profuse.mm_tree"(%arg0, %arg2, %arg1, %arg2) {adds = array<i64: 0, 1>, transposed = array<i1: true, false>}
  // CHECK-SAME:   -> !profuse.tensor
  %1 = "profuse.mm_tree"(%a, %c, %b, %c) {adds = array<i64: 0, 1>, transposed = array<i1: true, false>} : (tensor<4x3xf32>, !profuse.tensor, tensor<3x8xf32>, !profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.addmm"(%arg2, %arg0, %arg1) {alpha = 5.000000e-01 : f64} : (!profuse.tensor, tensor<4x3xf32>, tensor<3x8xf32>) -> !profuse.tensor
  %2 = "profuse.addmm"(%c, %a, %b) {alpha = 0.5 : f64} : (!profuse.tensor, tensor<4x3xf32>, tensor<3x8xf32>) -> !profuse.tensor
  // CHECK-NEXT: "profuse.addmm"(%{{.*}}, %arg0, %arg1) : (tensor<4x8xf32>, tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  %3 = "profuse.addmm"(%0, %a, %b) : (tensor<4x8xf32>, tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}
