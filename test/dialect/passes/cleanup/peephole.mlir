// R1.24, R1.26: small rewrites across two ops, through observers.
// RUN: profuse-opt %s --pass-pipeline=peephole,dce --verify-each | FileCheck %s

// CHECK-LABEL: func.func @signs(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[A:.*]] = "profuse.sub"(%[[X]], %[[Y]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.add"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %n = "profuse.neg"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %p = "profuse.profile"(%n) {site = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %a = "profuse.add"(%x, %p) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = "profuse.sub"(%x, %n) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Negation in a narrow dtype wraps before the sum widens.
// CHECK-LABEL: func.func @widths(
// CHECK-NEXT:    "profuse.neg"
// CHECK-NEXT:    "profuse.add"
func.func @widths(%x: tensor<4xi32>, %y: tensor<4xi8>) -> tensor<4xi32> {
  %n = "profuse.neg"(%y) : (tensor<4xi8>) -> tensor<4xi8>
  %a = "profuse.add"(%x, %n) : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return %a : tensor<4xi32>
}

// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[N:.*]] = "profuse.size"(%[[X]])
// CHECK-NEXT:    return %[[N]]
func.func @sizes(%x: !profuse.tensor) -> i64 {
  %t = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %n = "profuse.size"(%t) : (!profuse.tensor) -> i64
  return %n : i64
}

// CHECK-LABEL: func.func @idle(
// CHECK-SAME:    %[[C:.*]]: i1, %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    return %[[X]], %[[C]]
func.func @idle(%c: i1, %x: !profuse.tensor) -> (!profuse.tensor, i1) {
  %true = "profuse.constant"() {value = true} : () -> i1
  %false = "profuse.constant"() {value = false} : () -> i1
  %r:2 = scf.if %c -> (!profuse.tensor, i1) {
    scf.yield %x, %true : !profuse.tensor, i1
  } else {
    scf.yield %x, %false : !profuse.tensor, i1
  }
  return %r#0, %r#1 : !profuse.tensor, i1
}
