// RUN: not profuse-opt %s --pass-pipeline='if-then-else{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=if-then-else --verify-diagnostics

// OPTION: profuse-opt: error: pass if-then-else has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.if_then_else' the condition must be an i1, not !profuse.tensor}}
  %0 = "profuse.if_then_else"(%x, %x, %x) : (!profuse.tensor, !profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return
}
