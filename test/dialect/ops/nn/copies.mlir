// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<2x1x6xf32>, %n: i64, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.reshape_copy"(%arg0, %arg1) {shape = array<i64: -9223372036854775808, 3>} : (tensor<2x1x6xf32>, i64) -> tensor<?x3xf32>
  %0 = "profuse.reshape_copy"(%x, %n) {shape = array<i64: -9223372036854775808, 3>} : (tensor<2x1x6xf32>, i64) -> tensor<?x3xf32>
  // CHECK-NEXT: "profuse.reshape_copy"(%arg0) {shape = array<i64: 3, -1>} : (tensor<2x1x6xf32>) -> tensor<3x4xf32>
  %1 = "profuse.reshape_copy"(%x) {shape = array<i64: 3, -1>} : (tensor<2x1x6xf32>) -> tensor<3x4xf32>
  // CHECK-NEXT: "profuse.squeeze_copy"(%arg0) : (tensor<2x1x6xf32>) -> tensor<2x6xf32>
  %2 = "profuse.squeeze_copy"(%x) : (tensor<2x1x6xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: "profuse.squeeze_copy"(%arg2) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.squeeze_copy"(%u) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.unsqueeze_copy"(%arg0) {axes = array<i64: 0, -1>} : (tensor<2x1x6xf32>) -> tensor<1x2x1x6x1xf32>
  %4 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: 0, -1>} : (tensor<2x1x6xf32>) -> tensor<1x2x1x6x1xf32>
  return
}

// CHECK-LABEL: func.func @sums_and_chunks
func.func @sums_and_chunks(%x: tensor<2x1x6xf32>, %row: tensor<6xf32>) {
  // CHECK-NEXT: "profuse.sum_to_size"(%arg0) {sizes = array<i64: 1, 6>} : (tensor<2x1x6xf32>) -> tensor<1x6xf32>
  %0 = "profuse.sum_to_size"(%x) {sizes = array<i64: 1, 6>} : (tensor<2x1x6xf32>) -> tensor<1x6xf32>
  // CHECK-NEXT: "profuse.sum_to_size"(%arg0) : (tensor<2x1x6xf32>) -> tensor<2x1x6xf32>
  %1 = "profuse.sum_to_size"(%x) : (tensor<2x1x6xf32>) -> tensor<2x1x6xf32>
  // CHECK-NEXT: "profuse.broadcasting_chunk"(%arg0, %arg1) {axis = -1 : i64, chunks = 2 : i64} : (tensor<2x1x6xf32>, tensor<6xf32>) -> (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>)
  %2:4 = "profuse.broadcasting_chunk"(%x, %row) {axis = -1 : i64, chunks = 2 : i64} : (tensor<2x1x6xf32>, tensor<6xf32>) -> (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>)
  // CHECK-NEXT: "profuse.add_optional"(%arg0, %arg1) {given = 1 : i64} : (tensor<2x1x6xf32>, tensor<6xf32>) -> tensor<2x1x6xf32>
  %3 = "profuse.add_optional"(%x, %row) {given = 1 : i64} : (tensor<2x1x6xf32>, tensor<6xf32>) -> tensor<2x1x6xf32>
  // CHECK-NEXT: "profuse.add_optional"(%arg0) : (tensor<2x1x6xf32>) -> tensor<2x1x6xf32>
  %4 = "profuse.add_optional"(%x) : (tensor<2x1x6xf32>) -> tensor<2x1x6xf32>
  return
}

// CHECK-LABEL: func.func @dropouts
func.func @dropouts(%x: tensor<2x6xf32>, %seed: i64, %offset: i64, %n: i64) {
  // CHECK-NEXT: "profuse.random_bits"(%arg1, %arg2, %arg3) {shape = array<i64: -9223372036854775808, 3>} : (i64, i64, i64) -> tensor<?x3xui32>
  %0 = "profuse.random_bits"(%seed, %offset, %n) {shape = array<i64: -9223372036854775808, 3>} : (i64, i64, i64) -> tensor<?x3xui32>
  // CHECK-NEXT: "profuse.native_dropout"(%arg0, %arg1, %arg2) {p = 2.500000e-01 : f64} : (tensor<2x6xf32>, i64, i64) -> (tensor<2x6xf32>, tensor<2x6xi1>)
  %1:2 = "profuse.native_dropout"(%x, %seed, %offset) {p = 0.25 : f64} : (tensor<2x6xf32>, i64, i64) -> (tensor<2x6xf32>, tensor<2x6xi1>)
  // CHECK-NEXT: "profuse.native_dropout_backward"(%arg0, %{{.*}}#1) {scale = 2.000000e+00 : f64} : (tensor<2x6xf32>, tensor<2x6xi1>) -> tensor<2x6xf32>
  %2 = "profuse.native_dropout_backward"(%x, %1#1) {scale = 2.0 : f64} : (tensor<2x6xf32>, tensor<2x6xi1>) -> tensor<2x6xf32>
  return
}
