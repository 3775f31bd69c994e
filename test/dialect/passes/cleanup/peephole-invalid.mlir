// RUN: not profuse-opt %s --pass-pipeline='peephole{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=peephole --verify-diagnostics

// OPTION: profuse-opt: error: pass peephole has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.size' must have 1 operand, not 2}}
  %0 = "profuse.size"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> i64
  return
}
