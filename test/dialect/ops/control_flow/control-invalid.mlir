// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @bounds(%x: !profuse.tensor, %n: index) -> !profuse.tensor {
  // expected-error@+1 {{'index' is not a profuse type}}
  %0 = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (!profuse.tensor) {
    scf.yield %a : !profuse.tensor
  }
  return %0 : !profuse.tensor
}

// -----

func.func @branches(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  // expected-error@+1 {{successor operand type #0 '!profuse.tensor' should match successor input type #0 'tensor<4xf32>'}}
  %0 = scf.if %c -> tensor<4xf32> {
    scf.yield %x : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %x : !profuse.tensor
}

// -----

func.func @small_integers(%x: !profuse.tensor, %n: i32) {
  // expected-error@+1 {{type 'i32' is not a profuse type}}
  scf.for %i = %n to %n step %n : i32 {
  }
  return
}

// -----

func.func @choice(%x: !profuse.tensor, %c: i1, %n: i64) {
  // expected-error@+1 {{'profuse.if_then_else' the condition must be an i1, not i64}}
  %0 = "profuse.if_then_else"(%n, %x, %x) : (i64, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{'profuse.if_then_else' chooses between !profuse.tensor and i64}}
  %1 = "profuse.if_then_else"(%c, %x, %n) : (i1, !profuse.tensor, i64) -> !profuse.tensor
  return
}

// -----

// expected-error@+1 {{a block of 'func.func' does not end with a return or yield}}
func.func @no_return(%x: !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
}
