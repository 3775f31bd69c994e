// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<4x?xf32>, %b: tensor<?x8xf64>, %v: tensor<8xf32>, %t: tensor<2x1x3x4xf32>, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.matmul"(%arg0, %arg1) : (tensor<4x?xf32>, tensor<?x8xf64>) -> tensor<4x8xf64>
  %0 = "profuse.matmul"(%a, %b) : (tensor<4x?xf32>, tensor<?x8xf64>) -> tensor<4x8xf64>
  // CHECK-NEXT: "profuse.matmul"(%arg1, %arg2) : (tensor<?x8xf64>, tensor<8xf32>) -> tensor<?xf64>
  %1 = "profuse.matmul"(%b, %v) : (tensor<?x8xf64>, tensor<8xf32>) -> tensor<?xf64>
  // CHECK-NEXT: "profuse.matmul"(%arg2, %arg2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %2 = "profuse.matmul"(%v, %v) : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  // CHECK-NEXT: "profuse.matmul"(%arg3, %arg0) : (tensor<2x1x3x4xf32>, tensor<4x?xf32>) -> tensor<2x1x3x?xf32>
  %3 = "profuse.matmul"(%t, %a) : (tensor<2x1x3x4xf32>, tensor<4x?xf32>) -> tensor<2x1x3x?xf32>
  // CHECK-NEXT: "profuse.matmul"(%arg4, %arg2) : (!profuse.tensor, tensor<8xf32>) -> !profuse.tensor
  %4 = "profuse.matmul"(%u, %v) : (!profuse.tensor, tensor<8xf32>) -> !profuse.tensor
  return
}
