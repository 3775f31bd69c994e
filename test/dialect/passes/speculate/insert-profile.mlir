// RUN: profuse-opt %s -p insert-profile --verify-each | FileCheck %s

// R1.17: one observer per operand of an op worth observing, and before every returned tensor.
// CHECK-LABEL: func.func @operands(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[PX:.*]] = "profuse.profile"(%[[X]]) {site = 0 : i64}
// CHECK-NEXT:    %[[PY:.*]] = "profuse.profile"(%[[Y]]) {site = 1 : i64}
// CHECK-NEXT:    %[[R:.*]] = "profuse.mul"(%[[PX]], %[[PY]])
// CHECK-NEXT:    %[[PR:.*]] = "profuse.profile"(%[[R]]) {site = 2 : i64}
// CHECK-NEXT:    "profuse.profile_counter"() : () -> ()
// CHECK-NEXT:    return %[[PR]]
func.func @operands(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// One observer per value and user; each user has its own.
// CHECK-LABEL: func.func @uses(
// CHECK-NEXT:    %[[A:.*]] = "profuse.profile"(%[[X:.*]]) {site = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = "profuse.mul"(%[[A]], %[[A]])
// CHECK-NEXT:    %[[C:.*]] = "profuse.profile"(%[[X]]) {site = 1 : i64}
// CHECK-NEXT:    %[[D:.*]] = "profuse.profile"(%[[B]]) {site = 2 : i64}
// CHECK-NEXT:    "profuse.add"(%[[C]], %[[D]])
func.func @uses(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.add"(%x, %0) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// R1.16: what was known before is erased. Scalars are not observed.
// CHECK-LABEL: func.func @refined(
// CHECK-SAME:    %{{.*}}: !profuse.tensor, %[[N:.*]]: i64) -> (!profuse.tensor, i64)
// CHECK-NOT:     tensor<
// CHECK:         "profuse.mul"(%{{.*}}, %[[N]]) : (!profuse.tensor, i64) -> !profuse.tensor
// CHECK:         return %{{.*}}, %[[N]] : !profuse.tensor, i64
func.func @refined(%x: tensor<4xf32>, %n: i64) -> (tensor<4xf32>, i64) {
  %0 = "profuse.mul"(%x, %n) : (tensor<4xf32>, i64) -> tensor<4xf32>
  return %0, %n : tensor<4xf32>, i64
}

// Nested blocks: operands and returned tensors of each; an observed producer's result is
// observed for any user, such as the loop that starts with it.
// CHECK-LABEL: func.func @nested(
// CHECK:         %[[T:.*]] = "profuse.tanh"
// CHECK-NEXT:    %[[P1:.*]] = "profuse.profile"(%[[T]]) {site = 1 : i64}
// CHECK-NEXT:    scf.for {{.*}} iter_args(%[[A:.*]] = %[[P1]])
// CHECK-NEXT:      %[[P2:.*]] = "profuse.profile"(%[[A]]) {site = 2 : i64}
// CHECK-NEXT:      %[[E:.*]] = "profuse.exp"(%[[P2]])
// CHECK-NEXT:      %[[I:.*]] = scf.if
// CHECK-NEXT:        %[[P3:.*]] = "profuse.profile"(%[[E]]) {site = 3 : i64}
// CHECK-NEXT:        scf.yield %[[P3]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[P4:.*]] = "profuse.profile"(%[[A]]) {site = 4 : i64}
// CHECK-NEXT:        scf.yield %[[P4]]
// CHECK:           %[[P5:.*]] = "profuse.profile"(%[[I]]) {site = 5 : i64}
// CHECK-NEXT:      scf.yield %[[P5]]
// CHECK:         "profuse.profile"(%{{.*}}) {site = 6 : i64}
// CHECK-NEXT:    "profuse.profile_counter"
// CHECK-NEXT:    return
func.func @nested(%x: !profuse.tensor, %n: i64, %c: i1) -> !profuse.tensor {
  %t = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %r = scf.for %i = %n to %n step %n iter_args(%a = %t) -> (!profuse.tensor) : i64 {
    %e = "profuse.exp"(%a) : (!profuse.tensor) -> !profuse.tensor
    %s = scf.if %c -> !profuse.tensor {
      scf.yield %e : !profuse.tensor
    } else {
      scf.yield %a : !profuse.tensor
    }
    scf.yield %s : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// Private functions are subgraphs of others.
// CHECK-LABEL: func.func private @subgraph
// CHECK-NEXT:    "profuse.tanh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func private @subgraph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
