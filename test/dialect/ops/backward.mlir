// R4.13 - R4.28: the ops of captured backward runs, in both forms: with five lists, and without.
// RUN: profuse-opt %s --verify-each | FileCheck %s

// CHECK-LABEL: func.func @lists(
// CHECK:         "profuse.list_get"
// CHECK:         "profuse.call_gradient"
// CHECK:         "profuse.validate_grads"
// CHECK:         "profuse.call_hook"
// CHECK:         "profuse.call_backward"
// CHECK:         "profuse.accumulate_grad"
// CHECK:         "profuse.final_callbacks"
func.func @lists(%inputs: !profuse.list, %sizes: !profuse.list, %scalars: !profuse.list, %hooks: !profuse.list, %packed: !profuse.list) {
  %g = "profuse.list_get"(%inputs) {index = 0 : i64, origin = "root"} : (!profuse.list) -> !profuse.tensor
  %n = "profuse.list_get"(%sizes) {index = 0 : i64} : (!profuse.list) -> i64
  %f = "profuse.list_get"(%hooks) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %0 = "profuse.call_gradient"(%g) {callee = @NegBackward0, origin = "neg_backward (NodeCall 0)"} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.validate_grads"(%0, %n) {types = [tensor<?x3xf64>]} : (!profuse.tensor, i64) -> tensor<?x3xf64>
  %2 = "profuse.call_hook"(%f, %1) {hook_type = "tensor_pre_hook", present = array<i1: true>, replaced = 1 : i64} : (!profuse.tensor, tensor<?x3xf64>) -> !profuse.tensor
  %3:2 = "profuse.call_backward"(%f, %2) {present = array<i1: true, false>} : (!profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
  "profuse.accumulate_grad"(%g, %3#0) : (!profuse.tensor, !profuse.tensor) -> ()
  "profuse.final_callbacks"() : () -> ()
  return
}

// CHECK-LABEL: func.func @slots(
// CHECK:         slots = array<i64: 3>
// CHECK:         slots = array<i64: 0, 4>
func.func @slots(%g: !profuse.tensor) {
  "profuse.accumulate_grad"(%g) {slots = array<i64: 3>} : (!profuse.tensor) -> ()
  "profuse.call_hook"() {hook_type = "post_acc_grad_hook", present = array<i1: true>, slots = array<i64: 0, 4>} : () -> ()
  return
}

func.func private @NegBackward0(%g: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.neg"(%g) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
