// RUN: profuse-opt %s -p insert-casts --verify-each | FileCheck %s

// Only inside fusion functions.
// CHECK-LABEL: func.func @main(
// CHECK-NOT:     profuse.cast
// CHECK:         return
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf64>, %n: i64, %i: tensor<4xi32>) -> (tensor<4xf64>, tensor<4xf32>, tensor<4xf64>) {
  %z = "profuse.add"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  %0 = "profuse.fusion_group"(%x, %z) {callee = @tensors} : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  %1 = "profuse.fusion_group"(%x, %n) {callee = @numbers} : (tensor<4xf32>, i64) -> tensor<4xf32>
  %2 = "profuse.fusion_group"(%i) {callee = @unary} : (tensor<4xi32>) -> tensor<4xf64>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf32>, tensor<4xf64>
}

// One cast per value and dtype, before its first use.
// CHECK-LABEL: func.func private @tensors(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32, {strides = "contiguous"}>, %[[Y:.*]]: tensor<4xf64>)
// CHECK-NEXT:    %[[C:.*]] = "profuse.cast"(%[[X]]) {dtype = f64} : (tensor<4xf32, {strides = "contiguous"}>) -> tensor<4xf64>
// CHECK-NEXT:    %[[A:.*]] = "profuse.add"(%[[C]], %[[Y]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.mul"(%[[A]], %[[C]])
// CHECK-NEXT:    return %[[B]]
func.func private @tensors(%x: tensor<4xf32, {strides = "contiguous"}>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = "profuse.add"(%x, %y) : (tensor<4xf32, {strides = "contiguous"}>, tensor<4xf64>) -> tensor<4xf64>
  %1 = "profuse.mul"(%0, %x) : (tensor<4xf64>, tensor<4xf32, {strides = "contiguous"}>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// Python numbers adopt the tensor's dtype; constant ones are converted here and now.
// CHECK-LABEL: func.func private @numbers(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[N:.*]]: i64)
// CHECK:         %[[C:.*]] = "profuse.cast"(%[[N]]) {dtype = f32} : (i64) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = "profuse.mul"(%[[X]], %[[C]]) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[K:.*]] = "profuse.constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT:    "profuse.add"(%[[A]], %[[K]])
func.func private @numbers(%x: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %k = "profuse.constant"() {value = 0.5 : f64} : () -> f64
  %0 = "profuse.mul"(%x, %n) : (tensor<4xf32>, i64) -> tensor<4xf32>
  %1 = "profuse.add"(%0, %k) : (tensor<4xf32>, f64) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// NumPy computes tanh of integers in float64.
// CHECK-LABEL: func.func private @unary(
// CHECK-NEXT:    %[[C:.*]] = "profuse.cast"(%{{.*}}) {dtype = f64} : (tensor<4xi32>) -> tensor<4xf64>
// CHECK-NEXT:    "profuse.tanh"(%[[C]])
func.func private @unary(%x: tensor<4xi32>) -> tensor<4xf64> {
  %0 = "profuse.tanh"(%x) : (tensor<4xi32>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
