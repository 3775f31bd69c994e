// RUN: profuse-opt %s -p drop-unprofiled-groups --verify-diagnostics --split-input-file

// R3.46: what `insert-device-guards` has not made is an internal error, never guessed at.
func.func @read_twice(%x: !profuse.tensor) -> (!profuse.tensor, i1) {
  // expected-error@+1 {{must be read exactly once}}
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %k#1 -> !profuse.tensor {
    scf.yield %x : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r, %k#1 : !profuse.tensor, i1
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @no_fallback(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{must have exactly one fallback}}
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %k#1 -> !profuse.tensor {
    scf.yield %x : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// -----

func.func @returned(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{must decide an if}}
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = "profuse.if_then_else"(%k#1, %x, %x) : (i1, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %r : !profuse.tensor
}

// -----

func.func @checked_outside(%x: !profuse.tensor) -> (!profuse.tensor, tensor<?xf32>) {
  // expected-error@+1 {{a checked operand of a device group is read outside of the group}}
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %k#1 -> !profuse.tensor {
    scf.yield %x : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r, %k#0 : !profuse.tensor, tensor<?xf32>
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
