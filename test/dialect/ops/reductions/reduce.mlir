// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @axes
func.func @axes(%x: tensor<4x?x8xf32>, %y: !profuse.tensor) {
  // CHECK-NEXT: "profuse.sum"(%arg0) : (tensor<4x?x8xf32>) -> tensor<f32>
  %0 = "profuse.sum"(%x) : (tensor<4x?x8xf32>) -> tensor<f32>
  // CHECK-NEXT: "profuse.max"(%arg0) {axes = array<i64: 0, -1>} : (tensor<4x?x8xf32>) -> tensor<?xf32>
  %1 = "profuse.max"(%x) {axes = array<i64: 0, -1>} : (tensor<4x?x8xf32>) -> tensor<?xf32>
  // CHECK-NEXT: "profuse.mean"(%arg0) {axes = array<i64: 1>, keepdims = true} : (tensor<4x?x8xf32>) -> tensor<4x1x8xf32>
  %2 = "profuse.mean"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<4x?x8xf32>) -> tensor<4x1x8xf32>
  // CHECK-NEXT: "profuse.any"(%arg1) : (!profuse.tensor) -> tensor<i1>
  %3 = "profuse.any"(%y) : (!profuse.tensor) -> tensor<i1>
  return
}

// CHECK-LABEL: func.func @dtypes
func.func @dtypes(%x: tensor<4xi8>, %c: tensor<4xcomplex<f32>>) {
  // CHECK-NEXT: "profuse.sum"(%arg0) : (tensor<4xi8>) -> tensor<i64>
  %0 = "profuse.sum"(%x) : (tensor<4xi8>) -> tensor<i64>
  // CHECK-NEXT: "profuse.sum"(%arg0) {dtype = f32} : (tensor<4xi8>) -> tensor<f32>
  %1 = "profuse.sum"(%x) {dtype = f32} : (tensor<4xi8>) -> tensor<f32>
  // CHECK-NEXT: "profuse.mean"(%arg0) : (tensor<4xi8>) -> tensor<f64>
  %2 = "profuse.mean"(%x) : (tensor<4xi8>) -> tensor<f64>
  // CHECK-NEXT: "profuse.var"(%arg1) {ddof = 1.000000e+00 : f64} : (tensor<4xcomplex<f32>>) -> tensor<f32>
  %3 = "profuse.var"(%c) {ddof = 1.0 : f64} : (tensor<4xcomplex<f32>>) -> tensor<f32>
  return
}
