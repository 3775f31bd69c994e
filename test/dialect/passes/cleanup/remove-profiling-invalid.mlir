// RUN: profuse-opt %s -p remove-profiling --verify-diagnostics --split-input-file
// RUN: not profuse-opt %s -p 'remove-profiling{all=true}' 2>&1 | FileCheck %s

// CHECK: remove-profiling{{.*}}all

func.func @no_site(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{'profuse.profile' needs attribute 'site'}}
  %0 = "profuse.profile"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func @no_tensor(%x: i64) -> i64 {
  // expected-error@+1 {{observes tensors, not i64}}
  %0 = "profuse.profile"(%x) {site = 0 : i64} : (i64) -> i64
  return %0 : i64
}
