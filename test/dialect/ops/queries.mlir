// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @queries
func.func @queries(%x: tensor<4x?xf32>, %s: tensor<f32>, %n: i64) {
  // CHECK-NEXT: "profuse.dim"(%arg0) {axis = -1 : i64} : (tensor<4x?xf32>) -> i64
  %0 = "profuse.dim"(%x) {axis = -1} : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: "profuse.size"(%arg0) : (tensor<4x?xf32>) -> i64
  %1 = "profuse.size"(%x) : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: "profuse.rank"(%arg0) : (tensor<4x?xf32>) -> i64
  %2 = "profuse.rank"(%x) : (tensor<4x?xf32>) -> i64
  // CHECK-NEXT: "profuse.item"(%arg1) : (tensor<f32>) -> f64
  %3 = "profuse.item"(%s) : (tensor<f32>) -> f64
  // CHECK-NEXT: "profuse.truth"(%arg1) : (tensor<f32>) -> i1
  %4 = "profuse.truth"(%s) : (tensor<f32>) -> i1
  // CHECK-NEXT: "profuse.to_tensor"(%arg2) {dtype = f32} : (i64) -> tensor<f32>
  %5 = "profuse.to_tensor"(%n) {dtype = f32} : (i64) -> tensor<f32>
  return
}
