// RUN: not profuse-opt %s --pass-pipeline='remove-value-observers{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=remove-value-observers --verify-diagnostics

// OPTION: profuse-opt: error: pass remove-value-observers has no option 'all'
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{observes values that are no tensors, not !profuse.tensor}}
  %0 = "profuse.profile_value"(%x) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
