// RUN: not profuse-opt %s --pass-pipeline='specialize-autograd-zero{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=specialize-autograd-zero --verify-diagnostics

// OPTION: profuse-opt: error: pass specialize-autograd-zero has no option 'all'
func.func @f(%x: i64) {
  // expected-error@+1 {{'profuse.any_nonzero' operand 0 must be a tensor, not i64}}
  %0 = "profuse.any_nonzero"(%x) : (i64) -> i1
  return
}
