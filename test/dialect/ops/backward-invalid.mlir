// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @element(%x: !profuse.tensor) {
  // expected-error@+1 {{operand 0 must be a list}}
  %0 = "profuse.list_get"(%x) {index = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @negative(%x: !profuse.list) {
  // expected-error@+1 {{index must not be negative}}
  %0 = "profuse.list_get"(%x) {index = -1 : i64} : (!profuse.list) -> !profuse.tensor
  return
}

// -----

func.func @kind(%f: !profuse.tensor) {
  // expected-error@+1 {{hook_type must be one of unpack_hook, tensor_pre_hook, pre_hook, post_hook, post_acc_grad_hook, not hook}}
  "profuse.call_hook"(%f) {hook_type = "hook"} : (!profuse.tensor) -> ()
  return
}

// -----

func.func @arguments(%f: !profuse.tensor) {
  // expected-error@+1 {{present names 2 arguments of 1}}
  "profuse.call_hook"(%f, %f) {hook_type = "pre_hook", present = array<i1: true, true>} : (!profuse.tensor, !profuse.tensor) -> ()
  return
}

// -----

func.func @gradient(%f: !profuse.tensor) {
  // expected-error@+1 {{takes a leaf and a gradient}}
  "profuse.accumulate_grad"(%f) : (!profuse.tensor) -> ()
  return
}

// -----

func.func @rank(%g: !profuse.tensor) {
  // expected-error@+1 {{types must have dtype and rank, which 0 has not}}
  %0 = "profuse.validate_grads"(%g) {types = [!profuse.tensor]} : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @sizes(%g: !profuse.tensor) {
  // expected-error@+1 {{takes 1 gradients and 1 sizes, not 1 operands}}
  %0 = "profuse.validate_grads"(%g) {types = [tensor<?xf64>]} : (!profuse.tensor) -> tensor<?xf64>
  return
}

// -----

func.func @callee(%g: !profuse.tensor) {
  // expected-error@+1 {{no function @none in the module}}
  %0 = "profuse.call_gradient"(%g) {callee = @none} : (!profuse.tensor) -> !profuse.tensor
  return
}
