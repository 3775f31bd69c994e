// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<2x?x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>, %v: tensor<4xf32>) {
  // CHECK-NEXT: "profuse.linear"(%arg0, %arg1, %arg2) {given = 1 : i64} : (tensor<2x?x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<2x?x5xf32>
  %0 = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<2x?x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<2x?x5xf32>
  // CHECK-NEXT: "profuse.linear"(%arg0, %arg3) : (tensor<2x?x4xf32>, tensor<4xf32>) -> tensor<2x?xf32>
  %1 = "profuse.linear"(%x, %v) : (tensor<2x?x4xf32>, tensor<4xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: func.func @conv2d
func.func @conv2d(%x: tensor<2x4x9x8xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.conv2d"(%arg0, %arg1, %arg2) {dilation = array<i64: 2, 1>, given = 1 : i64, groups = 2 : i64, padding = array<i64: 1, 0>, stride = array<i64: 2, 1>} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x4x6xf32>
  %0 = "profuse.conv2d"(%x, %w, %b) {stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, dilation = array<i64: 2, 1>, groups = 2 : i64, given = 1 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x4x6xf32>
  // CHECK-NEXT: "profuse.conv2d"(%arg3, %arg1) : (!profuse.tensor, tensor<6x2x3x3xf32>) -> !profuse.tensor
  %1 = "profuse.conv2d"(%u, %w) : (!profuse.tensor, tensor<6x2x3x3xf32>) -> !profuse.tensor
  return
}
