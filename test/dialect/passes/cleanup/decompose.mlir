// R1.47: ops that are others in one, where the result is the same to the last bit.
// RUN: profuse-opt %s --pass-pipeline=decompose --verify-each | FileCheck %s

// CHECK-LABEL: func.func @addmm(
// CHECK-SAME:    %[[C:[^:]*]]: !profuse.tensor, %[[A:[^:]*]]: tensor<4x3xf32>, %[[B:[^:]*]]: tensor<3x2xf32>
// CHECK-NEXT:    %[[P:.*]] = "profuse.matmul"(%[[A]], %[[B]]) {{.*}} -> tensor<4x2xf32>
// CHECK-NEXT:    %[[S:.*]] = "profuse.add"(%[[C]], %[[P]])
// CHECK-NEXT:    return %[[S]]
func.func @addmm(%c: !profuse.tensor, %a: tensor<4x3xf32>, %b: tensor<3x2xf32>) -> !profuse.tensor {
  %0 = "profuse.addmm"(%c, %a, %b) {alpha = 1.0 : f64} : (!profuse.tensor, tensor<4x3xf32>, tensor<3x2xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// CHECK-LABEL: func.func @scaled(
// CHECK-NEXT:    "profuse.addmm"
// CHECK-NEXT:    "profuse.addmm"
func.func @scaled(%c: !profuse.tensor, %a: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.addmm"(%c, %a, %a) {alpha = 2.0 : f64} : (!profuse.tensor, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.addmm"(%c, %a, %a) {beta = 0 : i64} : (!profuse.tensor, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// CHECK-LABEL: func.func @std(
// CHECK-NEXT:    %[[V:.*]] = "profuse.var"(%{{.*}}) {axes = array<i64: -1>, keepdims = true}
// CHECK-NEXT:    "profuse.sqrt"(%[[V]]) : (tensor<4x1xf32>) -> tensor<4x1xf32>
func.func @std(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "profuse.std"(%x) {axes = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// Halves are rounded after the root; an unknown dtype may be one.
// CHECK-LABEL: func.func @halves(
// CHECK-NEXT:    "profuse.std"
// CHECK-NEXT:    "profuse.std"
func.func @halves(%x: tensor<8xf16>, %y: !profuse.tensor) -> (tensor<f16>, !profuse.tensor) {
  %0 = "profuse.std"(%x) : (tensor<8xf16>) -> tensor<f16>
  %1 = "profuse.std"(%y) : (!profuse.tensor) -> !profuse.tensor
  return %0, %1 : tensor<f16>, !profuse.tensor
}
