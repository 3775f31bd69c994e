// RUN: not profuse-opt %s -p 'inline-diff-graphs{size=2}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s -p inline-diff-graphs --verify-diagnostics

// OPTION: pass inline-diff-graphs has no option 'size'

func.func @missing(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+2 {{'profuse.diff_graph' no function @f in the module}}
  // expected-error@+1 {{'profuse.diff_graph' no function @r in the module}}
  %0 = "profuse.diff_graph"(%x) {forward = @f, reverse = @r, f_real_outputs = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
