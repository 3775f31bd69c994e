// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @gradients
func.func @gradients(%g: !profuse.tensor, %x: tensor<4xf32>) -> (i1, i1, i1) {
  // CHECK-NEXT: %[[Z:.*]] = "profuse.autograd_zero"() : () -> !profuse.tensor
  %z = "profuse.autograd_zero"() : () -> !profuse.tensor
  // CHECK-NEXT: %[[S:.*]] = "profuse.autograd_add"(%arg0, %[[Z]]) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %s = "profuse.autograd_add"(%g, %z) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.any_nonzero"(%arg0, %arg1) : (!profuse.tensor, tensor<4xf32>) -> i1
  %any = "profuse.any_nonzero"(%g, %x) : (!profuse.tensor, tensor<4xf32>) -> i1
  // CHECK-NEXT: "profuse.all_nonzero"(%[[S]]) : (!profuse.tensor) -> i1
  %all = "profuse.all_nonzero"(%s) : (!profuse.tensor) -> i1
  // CHECK-NEXT: "profuse.all_zero"() : () -> i1
  %none = "profuse.all_zero"() : () -> i1
  // CHECK-NEXT: "profuse.grad_of"(%arg0) ({
  // CHECK-NEXT:   %[[M:.*]] = "profuse.mul"(%arg0, %arg1)
  // CHECK-NEXT:   "profuse.yield"(%[[M]]) : (!profuse.tensor) -> ()
  // CHECK-NEXT: }) {forward = "mul"} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.grad_of"(%g) ({
    %1 = "profuse.mul"(%g, %x) : (!profuse.tensor, tensor<4xf32>) -> !profuse.tensor
    "profuse.yield"(%1) : (!profuse.tensor) -> ()
  }) {forward = "mul"} : (!profuse.tensor) -> !profuse.tensor
  return %any, %all, %none : i1, i1, i1
}
