// RUN: profuse-opt %s | profuse-opt | FileCheck %s
// RUN: profuse-opt %s -p functionalize | FileCheck %s --check-prefix=PURE

// CHECK-LABEL: func.func @updates
func.func @updates(%x: tensor<4x6xf32>, %v: tensor<3x6xf32>, %i: tensor<3xi64>) {
  // CHECK-NEXT: "profuse.index_put"(%arg0, %arg1, %arg2) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  %0 = "profuse.index_put"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  // CHECK-NEXT: "profuse.index_multiply"
  %1 = "profuse.index_multiply"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  // CHECK-NEXT: "profuse.index_maximum"
  %2 = "profuse.index_maximum"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  // CHECK-NEXT: "profuse.index_minimum"
  %3 = "profuse.index_minimum"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  return
}

// PURE-LABEL: func.func @written
// PURE:         %[[X:.*]] = "profuse.exp"(%arg0)
// PURE:         %[[OLD:.*]] = "profuse.index"(%[[X]], %arg1)
// PURE-NEXT:    %[[NEW:.*]] = "profuse.conform"(%arg2, %[[OLD]]) {assign = true}
// PURE-NEXT:    %[[OUT:.*]] = "profuse.index_put"(%[[X]], %[[NEW]], %arg1) {axes = array<i64: 0>}
// PURE-NEXT:    return %[[OUT]]
func.func @written(%x: !profuse.tensor, %i: !profuse.tensor, %v: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.index_put_"(%0, %v, %i) {axes = array<i64: 0>} : (!profuse.tensor, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
