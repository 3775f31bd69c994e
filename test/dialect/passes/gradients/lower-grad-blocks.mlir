// R1.24, R2.30: a gradient block runs if any incoming gradient is defined.
// RUN: profuse-opt %s --pass-pipeline=lower-grad-blocks --verify-each | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[G:.*]]: !profuse.tensor, %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[D:.*]] = "profuse.any_nonzero"(%[[G]]) : (!profuse.tensor) -> i1
// CHECK-NEXT:    %[[R:.*]]:2 = scf.if %[[D]] -> (!profuse.tensor, !profuse.tensor) {
// CHECK-NEXT:      %[[A:.*]] = "profuse.mul"(%[[G]], %[[X]])
// CHECK-NEXT:      %[[E:.*]] = "profuse.any_nonzero"(%[[A]])
// CHECK-NEXT:      %[[N:.*]] = scf.if %[[E]]
// CHECK-NEXT:        "profuse.neg"(%[[A]])
// CHECK:           scf.yield %[[A]], %[[N]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[Y:.*]] = "profuse.autograd_zero"()
// CHECK-NEXT:      %[[Z:.*]] = "profuse.autograd_zero"()
// CHECK-NEXT:      scf.yield %[[Y]], %[[Z]]
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @f(%g: !profuse.tensor, %x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0:2 = "profuse.grad_of"(%g) ({
    %1 = "profuse.mul"(%g, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %2 = "profuse.grad_of"(%1) ({
      %3 = "profuse.neg"(%1) : (!profuse.tensor) -> !profuse.tensor
      "profuse.yield"(%3) : (!profuse.tensor) -> ()
    }) {forward = "neg"} : (!profuse.tensor) -> !profuse.tensor
    "profuse.yield"(%1, %2) : (!profuse.tensor, !profuse.tensor) -> ()
  }) {forward = "mul"} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
  return %0#0, %0#1 : !profuse.tensor, !profuse.tensor
}

// An op of two results has two incoming gradients, either of which suffices.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[G:.*]]: !profuse.tensor, %[[H:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[D:.*]] = "profuse.any_nonzero"(%[[G]], %[[H]]) : (!profuse.tensor, !profuse.tensor) -> i1
// CHECK-NEXT:    scf.if %[[D]]
func.func @two(%g: !profuse.tensor, %h: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.grad_of"(%g, %h) ({
    %1 = "profuse.mul"(%g, %h) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    "profuse.yield"(%1) : (!profuse.tensor) -> ()
  }) {forward = "divmod"} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
