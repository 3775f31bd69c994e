// RUN: profuse-opt %s --pass-pipeline=lower-grad-blocks --verify-diagnostics --split-input-file

func.func @arguments(%g: !profuse.tensor) {
  // expected-error@+1 {{profuse.grad_of has one block, without arguments}}
  %0 = "profuse.grad_of"(%g) ({
  ^bb0(%x: !profuse.tensor):
    "profuse.yield"(%x) : (!profuse.tensor) -> ()
  }) : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @count(%g: !profuse.tensor) {
  %0 = "profuse.grad_of"(%g) ({
    // expected-error@+1 {{profuse.grad_of must yield (!profuse.tensor)}}
    "profuse.yield"(%g, %g) : (!profuse.tensor, !profuse.tensor) -> ()
  }) : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @number(%g: !profuse.tensor, %n: i64) {
  // expected-error@+1 {{profuse.grad_of yields tensors, not i64}}
  %0 = "profuse.grad_of"(%g) ({
    "profuse.yield"(%n) : (i64) -> ()
  }) : (!profuse.tensor) -> i64
  return
}
