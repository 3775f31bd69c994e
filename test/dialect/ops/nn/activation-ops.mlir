// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @activations
func.func @activations(%x: tensor<3x4xf16>, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.gelu"(%arg0) : (tensor<3x4xf16>) -> tensor<3x4xf16>
  %0 = "profuse.gelu"(%x) : (tensor<3x4xf16>) -> tensor<3x4xf16>
  // CHECK-NEXT: "profuse.gelu"(%arg0) {approximate = "tanh"} : (tensor<3x4xf16>) -> tensor<3x4xf16>
  %1 = "profuse.gelu"(%x) {approximate = "tanh"} : (tensor<3x4xf16>) -> tensor<3x4xf16>
  // CHECK-NEXT: "profuse.silu"(%arg1) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.silu"(%u) : (!profuse.tensor) -> !profuse.tensor
  return
}

// CHECK-LABEL: func.func @softmaxes
func.func @softmaxes(%x: tensor<3x?xf16>, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.softmax"(%arg0) {axis = 0 : i64} : (tensor<3x?xf16>) -> tensor<3x?xf16>
  %0 = "profuse.softmax"(%x) {axis = 0 : i64} : (tensor<3x?xf16>) -> tensor<3x?xf16>
  // CHECK-NEXT: "profuse.log_softmax"(%arg0) {dtype = f32} : (tensor<3x?xf16>) -> tensor<3x?xf32>
  %1 = "profuse.log_softmax"(%x) {dtype = f32} : (tensor<3x?xf16>) -> tensor<3x?xf32>
  // CHECK-NEXT: "profuse.softmax_backward"(%0, %0) {axis = 0 : i64} : (tensor<3x?xf16>, tensor<3x?xf16>) -> tensor<3x?xf16>
  %2 = "profuse.softmax_backward"(%0, %0) {axis = 0 : i64} : (tensor<3x?xf16>, tensor<3x?xf16>) -> tensor<3x?xf16>
  // CHECK-NEXT: "profuse.log_softmax_backward"(%1, %1) {dtype = f16} : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf16>
  %3 = "profuse.log_softmax_backward"(%1, %1) {dtype = f16} : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf16>
  // CHECK-NEXT: "profuse.softmax"(%arg1) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.softmax"(%u) : (!profuse.tensor) -> !profuse.tensor
  return
}
