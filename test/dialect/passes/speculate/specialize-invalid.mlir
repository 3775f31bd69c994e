// RUN: profuse-opt %s -p specialize --verify-diagnostics --split-input-file

func.func @scalar(%n: i64) -> i64 {
  // expected-error@+1 {{observes tensors, not i64}}
  %0 = "profuse.profile"(%n) {site = 0 : i64} : (i64) -> i64
  return %0 : i64
}

// -----

func.func @record(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{profiled_type must be a tensor type, not i64}}
  %0 = "profuse.profile"(%x) {site = 0 : i64, profiled_type = i64} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
