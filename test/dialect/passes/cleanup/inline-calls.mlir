// R1.24: calls between graphs are replaced by what they call, callees first.
// RUN: profuse-opt %s --pass-pipeline=inline-calls,dce --verify-each | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[N:.*]]: i64)
// CHECK-NEXT:    %[[A:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[R:.*]] = scf.for {{.*}} iter_args(%[[I:.*]] = %[[A]])
// CHECK-NEXT:      %[[B:.*]] = "profuse.tanh"(%[[I]])
// CHECK-NEXT:      %[[C:.*]] = "profuse.add"(%[[B]], %[[A]])
// CHECK-NEXT:      scf.yield %[[C]]
// CHECK:         return %[[R]], %[[X]]
// CHECK-NOT:   func.func
func.func private @leaf(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @loop(%x: !profuse.tensor, %n: i64) -> (!profuse.tensor, !profuse.tensor) {
  %a = func.call @leaf(%x) : (!profuse.tensor) -> !profuse.tensor
  %r = scf.for %i = %n to %n step %n iter_args(%v = %a) -> (!profuse.tensor) : i64 {
    %b = func.call @leaf(%v) : (!profuse.tensor) -> !profuse.tensor
    %c = "profuse.add"(%b, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %c : !profuse.tensor
  }
  return %r, %x : !profuse.tensor, !profuse.tensor
}
func.func @main(%x: !profuse.tensor, %n: i64) -> (!profuse.tensor, !profuse.tensor) {
  %r:2 = func.call @loop(%x, %n) : (!profuse.tensor, i64) -> (!profuse.tensor, !profuse.tensor)
  return %r#0, %r#1 : !profuse.tensor, !profuse.tensor
}
