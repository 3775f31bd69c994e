// RUN: not profuse-opt %s --pass-pipeline='bind-late{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=bind-late --verify-diagnostics

// OPTION: profuse-opt: error: pass bind-late has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{attribute 'keepdims' of profuse.sum may be i1, not !profuse.tensor}}
  %0 = "profuse.late"(%x, %x) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return
}
