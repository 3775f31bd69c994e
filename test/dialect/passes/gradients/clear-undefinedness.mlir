// R1.24: a double backward may pass undefined tensors; nothing is taken to be defined.
// RUN: profuse-opt %s --pass-pipeline=clear-undefinedness --verify-each | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32, {device = "cpu"}>, %[[Y:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    "profuse.profile"(%[[X]]) {profiled_type = tensor<4xf32, {defined = true}>
// CHECK-SAME:      -> tensor<4xf32, {device = "cpu"}>
func.func @f(%x: tensor<4xf32, {defined = true, device = "cpu"}>, %y: tensor<4xf32, {defined = false}>) -> tensor<4xf32, {defined = false}> {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32, {defined = true}>} : (tensor<4xf32, {defined = true, device = "cpu"}>) -> tensor<4xf32, {defined = true, device = "cpu"}>
  return %y : tensor<4xf32, {defined = false}>
}

// CHECK-LABEL: func.func private @inner(
// CHECK-SAME:    %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func private @inner(%x: tensor<4xf32, {defined = false}>) -> tensor<4xf32, {defined = false}> {
  return %x : tensor<4xf32, {defined = false}>
}
