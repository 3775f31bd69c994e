// R1.45: a branch of one result with two empty blocks only chooses.
// RUN: profuse-opt %s --pass-pipeline=if-then-else --verify-each | FileCheck %s

// CHECK-LABEL: func.func @choose(
// CHECK-SAME:    %[[C:.*]]: i1, %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[R:.*]] = "profuse.if_then_else"(%[[C]], %[[X]], %[[Y]])
// CHECK-NEXT:    return %[[R]]
func.func @choose(%c: i1, %x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %r = scf.if %c -> (!profuse.tensor) {
    scf.yield %x : !profuse.tensor
  } else {
    scf.yield %y : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// Two results: unchanged.
// CHECK-LABEL: func.func @two(
// CHECK-NEXT:    scf.if
func.func @two(%c: i1, %x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %r:2 = scf.if %c -> (!profuse.tensor, !profuse.tensor) {
    scf.yield %x, %y : !profuse.tensor, !profuse.tensor
  } else {
    scf.yield %y, %x : !profuse.tensor, !profuse.tensor
  }
  return %r#0, %r#1 : !profuse.tensor, !profuse.tensor
}

// A block that does something: unchanged.
// CHECK-LABEL: func.func @busy(
// CHECK-NEXT:    scf.if
func.func @busy(%c: i1, %x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %r = scf.if %c -> (!profuse.tensor) {
    %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %0 : !profuse.tensor
  } else {
    scf.yield %y : !profuse.tensor
  }
  return %r : !profuse.tensor
}
