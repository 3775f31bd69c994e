// RUN: profuse-opt %s -p split-linear --stats --verify-each 2>&1 | FileCheck %s

// A10: what is not known well enough stays whole, with the reason, instead of being an error.
// CHECK-DAG: 1 stays whole: linear: type of operand 0 is not known
// CHECK-DAG: 1 stays whole: linear: type of operand 1 is not known
// CHECK-NOT: "profuse.add_optional"
func.func @unknown_input(%x: tensor<?x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<?x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
func.func @unknown_weight(%x: tensor<5x3xf32>, %w: !profuse.tensor, %b: tensor<4xf32>) -> !profuse.tensor {
  %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<5x3xf32>, !profuse.tensor, tensor<4xf32>) -> !profuse.tensor
  return %y : !profuse.tensor
}
