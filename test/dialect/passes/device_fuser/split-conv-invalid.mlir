// RUN: profuse-opt %s -p split-conv --stats --verify-each 2>&1 | FileCheck %s

// A10: a bias of unknown size stays in its op, with the reason. 16-bit floats are rounded once.
// CHECK-DAG: 1 stays whole: conv2d: type of operand 2 is not known
// CHECK-DAG: 1 stays whole: conv2d: with its bias it is rounded to 16 bits once
// CHECK-NOT: "profuse.add_optional"
func.func @unknown_bias(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<?xf32>) -> tensor<2x4x6x6xf32> {
  %y = "profuse.conv2d"(%x, %w, %b) {given = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<?xf32>) -> tensor<2x4x6x6xf32>
  return %y : tensor<2x4x6x6xf32>
}
func.func @halves(%x: tensor<2x3x8x8xf16>, %w: tensor<4x3x3x3xf16>, %b: tensor<4xf16>) -> tensor<2x4x6x6xf16> {
  %y = "profuse.conv2d"(%x, %w, %b) {given = 1 : i64} : (tensor<2x3x8x8xf16>, tensor<4x3x3x3xf16>, tensor<4xf16>) -> tensor<2x4x6x6xf16>
  return %y : tensor<2x4x6x6xf16>
}
