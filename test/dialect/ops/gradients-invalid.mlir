// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @operands(%g: !profuse.tensor, %n: i64) {
  // expected-error@+1 {{'profuse.any_nonzero' operand 1 must be a tensor, not i64}}
  %0 = "profuse.any_nonzero"(%g, %n) : (!profuse.tensor, i64) -> i1
  // expected-error@+1 {{'profuse.all_zero' result has type i64, but its operands make it i1}}
  %1 = "profuse.all_zero"(%g) : (!profuse.tensor) -> i64
  // expected-error@+1 {{'profuse.autograd_add' operand 1 must be a tensor, not i64}}
  %2 = "profuse.autograd_add"(%g, %n) : (!profuse.tensor, i64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.autograd_zero' must have 0 operands, not 1}}
  %3 = "profuse.autograd_zero"(%g) : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @block(%g: !profuse.tensor) {
  // expected-error@+1 {{'profuse.grad_of' must have 1 regions, not 0}}
  %0 = "profuse.grad_of"(%g) : (!profuse.tensor) -> !profuse.tensor
  return
}
